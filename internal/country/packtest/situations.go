package packtest

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// Situation is something that happens every day in a country: what is sent, and
// what the filed document says, or why it is refused.
type Situation struct {
	Name   string // as the table of the country's page has it
	Draft  country.Draft
	Files  []string // parts of what is read of the filed document, see Bench.Reads
	Not    []string
	Warns  string // field of a warning
	Refuse string // part of the message of a fault
	Field  string // of that fault
	Unsent bool   // it is made and not sent: its original is not with the double
}

// Bench is where situations are tried: a pack beside its double.
type Bench struct {
	Pack    country.Pack
	Page    string // file of the country's page, whose table has a line for each
	Channel country.Channel
	Send    func(t *testing.T, f country.Filing) country.Receipt
	// Reads is the text that Files and Not are looked for in. Nil: the report.
	Reads func(s Situation, f country.Filing) string
	// Strict refuses warnings that a situation does not expect.
	Strict bool
}

// Beside puts a pack beside its double and answers a channel to it, and how a
// filing is driven to its end there, by calls of the authority where it calls.
func Beside(t *testing.T, pack country.Pack, o Options) (country.Channel, func(*testing.T, country.Filing) country.Receipt) {
	t.Helper()
	w := suite{pack: pack, o: o, sequence: new(atomic.Int64)}.wired(t)
	return w.channel, func(t *testing.T, f country.Filing) country.Receipt {
		t.Helper()
		e := w.file(t, f)
		if e.verdict == unknown {
			t.Errorf("the authority does not decide: %v", e.errors)
		}
		return e.receipt
	}
}

// situationsLeast is how many everyday situations a country shows.
const situationsLeast = 40

// Tabled compares the table of a country's page with the situations that are
// tested: each line is a test, and each test is a line, once.
func Tabled(t testing.TB, page string, names []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < situationsLeast {
		t.Errorf("only %d situations", len(names))
	}
	_, section, _ := strings.Cut(string(text), "\n## Everyday situations\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := map[string]int{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		name := strings.TrimPrefix(cells[0], "| ")
		switch {
		case !strings.HasPrefix(line, "| ") || name == "Situation":
		case len(cells) != 4:
			t.Errorf("%s: %q says not what is sent, what is filed and the source", page, name)
		default:
			lines[name]++
		}
	}
	for _, name := range names {
		if lines[name] != 1 {
			t.Errorf("%s has %d lines for %q", page, lines[name], name)
		}
		delete(lines, name)
	}
	for name := range lines {
		t.Errorf("%s has a line that no test is for: %q", page, name)
	}
}

// Try files each situation with the double, which takes it, or sees it refused
// before it is filed. In a chain each follows the one before.
func (b Bench) Try(t *testing.T, list []Situation) {
	t.Helper()
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	Tabled(t, b.Page, names)
	var last country.Link
	for i, s := range list {
		t.Run(s.Name, func(t *testing.T) {
			s.Draft.Previous = last
			if b.Pack.Sequence {
				s.Draft.Sequence = int64(i) + 1
			}
			if f, filed := b.try(t, s); filed && f.Link != (country.Link{}) {
				last = f.Link
			}
		})
	}
}

// try tries one; true when it was filed.
func (b Bench) try(t *testing.T, s Situation) (country.Filing, bool) {
	t.Helper()
	faults, warnings := b.found(s.Draft)
	f, err := b.Channel.Prepare(s.Draft)
	if err != nil {
		var told *fault.Error
		if !errors.As(err, &told) {
			t.Fatal(err)
		}
		faults = append(faults, told.Faults...)
	}
	if s.Refuse != "" {
		for _, f := range faults {
			if f.Field == s.Field && strings.Contains(f.Message, s.Refuse) {
				return country.Filing{}, false
			}
		}
		t.Fatalf("not refused for %q at %s: %v", s.Refuse, s.Field, faults)
	}
	if len(faults) > 0 {
		t.Fatalf("refused: %v", faults)
	}
	warned := s.Warns == ""
	for _, w := range warnings {
		warned = warned || w.Field == s.Warns
		if b.Strict && w.Field != s.Warns {
			t.Errorf("a warning that nobody expects: %v", w)
		}
	}
	if !warned {
		t.Errorf("no warning at %s: %v", s.Warns, warnings)
	}
	if !s.Unsent {
		if r := b.Send(t, f); r.Outcome != country.Accepted {
			t.Errorf("the authority: %+v", r.Faults)
		}
	}
	text := string(f.Report)
	if b.Reads != nil {
		text = b.Reads(s, f)
	}
	for _, want := range s.Files {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, wrong := range s.Not {
		if strings.Contains(text, wrong) {
			t.Errorf("%q is in\n%s", wrong, text)
		}
	}
	return f, true
}

// found is what the country's table of rates and its checks say of a draft.
func (b Bench) found(d country.Draft) (faults, warnings []fault.Fault) {
	in := country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both, Now: d.Now}
	for _, f := range append(country.CheckRates(b.Pack.Facts, in), b.Pack.Check(in)...) {
		if f.Type == fault.Warning {
			warnings = append(warnings, f)
		} else {
			faults = append(faults, f)
		}
	}
	return faults, warnings
}

// Package packtest is the conformance suite that every country pack passes.
//
// It owns the questions: golden documents, purity of Prepare, the outcomes of
// every script, exactly one registration, the official schema, legal sources.
// It refuses to own a pack's own rules, which the pack tests itself. Law: a
// pack passes with the real simulator over real HTTP, or it does not pass.
//
// Hostile answers are tried here as well, for every pack alike
// (docs/decisions/0025): a front before the double answers one call of a filing in
// one of 18 ways, and which call is hit changes from way to way.
// [Options.StatusAlone] exempts access points whose whole word is the status of an
// answer: what they lie about cannot be seen.
package packtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/leaks"
)

// Main runs a pack's tests: it adds the flag -update, which rewrites golden
// files, and fails when goroutines are left over.
func Main(m *testing.M) {
	flag.Bool("update", false, "rewrite golden files")
	leaks.Main(m)
}

func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// Case is one document. Its name is that of the golden file.
type Case struct {
	Name  string
	Draft country.Draft
}

// Options say what a pack brings to the suite.
type Options struct {
	// Name begins the names of golden files where a package has several suites.
	Name string
	// Cases, in an order in which the authority would accept them. The first is
	// an invoice; the scripts are played with it.
	Cases []Case
	// Credentials of the supplier of all cases; also put into every draft.
	Credentials country.Credentials
	// CallsBack ends the number of a document that the authority decides by
	// calling back, twice. "": it never calls.
	CallsBack string
	// Identity is the operator's, where the pack asks for one.
	Identity country.Identity
	// Schema checks reports against the official schema. Nil: there is none.
	Schema func(t *testing.T, reports [][]byte)
	// Stable takes random values (signatures, times of signing) out of a
	// report before it is compared. Nil: reports have none.
	Stable func(report []byte) []byte
	// Immediate says that the authority decides at once and knows no pending.
	Immediate bool
	// StatusAlone says that all an authority says is the status of its answer: a
	// lie of it cannot be seen.
	StatusAlone bool
	// Abilities says how the pack's double is told what the suite needs for
	// abilities that not every authority has.
	Abilities Abilities
}

// Exercise asks of a pack everything that is asked of every pack. A pack
// without a channel has documents only: the questions about its authority have
// no subject then.
func Exercise(t *testing.T, pack country.Pack, o Options) {
	t.Helper()
	if len(o.Cases) == 0 {
		t.Fatal("a suite without cases proves nothing")
	}
	if o.Stable == nil {
		o.Stable = func(report []byte) []byte { return report }
	}
	for i := range o.Cases {
		o.Cases[i].Draft.Credentials = o.Credentials
		if pack.Sequence {
			o.Cases[i].Draft.Sequence = int64(i) + 1
		}
	}
	t.Run("pack is consistent", func(t *testing.T) { checkPack(t, pack) })
	t.Run("checks and types", func(t *testing.T) { checkTypes(t, pack, o) })
	if pack.Connect == nil {
		return
	}
	s := suite{pack: pack, o: o, sequence: new(atomic.Int64)}
	ask(t, "documents", s.documents)
	ask(t, "limits", s.limits)
	ask(t, "every case is accepted", s.everyCase)
	ask(t, "batch keeps its order", s.batch)
	ask(t, "link that does not fit", s.misfit)
	ask(t, "authority that cannot be reached", s.unreachable)
	ask(t, "authority restarts", s.restart)
	ask(t, "operator's identity", s.identity)
	ask(t, "authority that calls back", s.callbacks)
	s.scripts(t)
	ask(t, "any run of mishaps", s.mishaps)
	ask(t, "hostile authority", s.hostile)
	s.abilities(t)
}

// ask asks one question beside the others: each has an authority of its own.
func ask(t *testing.T, name string, question func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		question(t)
	})
}

func checkPack(t *testing.T, pack country.Pack) {
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack}})
	if err != nil {
		t.Fatal(err)
	}
	atlas.Close()
	if _, err := time.LoadLocation(pack.Facts.TimeZone); err != nil {
		t.Errorf("time zone: %v", err)
	}
	if len(pack.Facts.Derivations) == 0 {
		t.Error("the rules by which tax types are derived are not shown")
	}
	if pack.Connect != nil && (len(pack.Sources) == 0 || len(pack.Facts.Formats) == 0) {
		t.Error("a pack with an authority shows its legal sources and formats")
	}
	if pack.Connect != nil && pack.Simulator == nil {
		t.Error("a pack with an authority brings its simulator")
	}
}

// checkTypes writes what the pack finds and derives, for every case, and
// proves that neither touches the transaction.
func checkTypes(t *testing.T, pack country.Pack, o Options) {
	var out bytes.Buffer
	for _, c := range o.Cases {
		before := snapshot(c.Draft)
		in := country.Case{Transaction: &c.Draft.Transaction, Totals: c.Draft.Totals, UseCase: pack.Facts.UseCases[0],
			Now: c.Draft.Now}
		fmt.Fprintf(&out, "%s\n", c.Name)
		faults := append(country.CheckRates(pack.Facts, in), pack.Check(in)...)
		for _, f := range faults {
			fmt.Fprintf(&out, "  %s %s %s: %s\n", f.Type, f.Code, f.Field, f.Message)
		}
		for i, item := range pack.TypedItems(in) {
			for j, tax := range item.Taxes {
				if tax.Type == "" {
					t.Errorf("%s: items.%d.tax_breakdowns.%d has no type", c.Name, i, j)
				}
				fmt.Fprintf(&out, "  items.%d.tax_breakdowns.%d %s\n", i, j,
					strings.Join(strings.Fields(tax.Regime+" "+tax.Rate.MinimalString()+" "+tax.Type+" "+tax.Code), " "))
			}
		}
		if before != snapshot(c.Draft) {
			t.Errorf("%s: checking or typing changed the transaction", c.Name)
		}
	}
	golden(t, strings.TrimSpace(o.Name+" types")+".golden", out.Bytes())
}

// snapshot is a deep copy for comparison, by way of text.
func snapshot(d country.Draft) string {
	location := ""
	if d.Location != nil {
		location = d.Location.String()
	}
	d.Location = nil
	text, err := json.Marshal(d)
	if err != nil {
		return "cannot be written: " + err.Error()
	}
	return string(text) + location
}

type suite struct {
	pack     country.Pack
	o        Options
	sequence *atomic.Int64
}

// documents compares every case's filing with its golden file, twice prepared.
func (s suite) documents(t *testing.T) {
	ch := s.wired(t).channel
	var reports [][]byte
	for _, c := range s.o.Cases {
		t.Run(c.Name, func(t *testing.T) {
			before := snapshot(c.Draft)
			first, err := ch.Prepare(c.Draft)
			if err != nil {
				t.Fatal(err)
			}
			second, err := ch.Prepare(c.Draft)
			if err != nil {
				t.Fatal(err)
			}
			if before != snapshot(c.Draft) {
				t.Error("Prepare changed its input")
			}
			if a, b := s.o.Stable(first.Report), s.o.Stable(second.Report); !bytes.Equal(a, b) {
				t.Errorf("prepared twice, the documents differ:\n%s\n%s", a, b)
			}
			if first.SHA256 != hash(first.Report) {
				t.Errorf("sha256 is %s, that of the report is %s", first.SHA256, hash(first.Report))
			}
			if first.Number == "" || first.Supplier == "" || first.Format == "" || first.OperationID != c.Draft.OperationID {
				t.Errorf("number, supplier, format and operation id belong into a filing: %+v", first)
			}
			reports = append(reports, first.Report)
			golden(t, strings.TrimSpace(s.o.Name+" "+c.Name)+".golden", s.describe(first))
		})
	}
	if s.o.Schema != nil {
		t.Run("official schema", func(t *testing.T) { s.o.Schema(t, reports) })
	}
}

// describe writes a filing as text. Hashes of a report with random values are random too.
func (s suite) describe(f country.Filing) []byte {
	report := s.o.Stable(f.Report)
	var out bytes.Buffer
	fmt.Fprintf(&out, "number %s\nsupplier %s\nkind %s\nformat %s\n", f.Number, f.Supplier, f.Kind, f.Format)
	if bytes.Equal(report, f.Report) {
		fmt.Fprintf(&out, "sha256 %s\nkey %s\nauthority id %s\nqr %s\n", f.SHA256, f.DedupeKey, f.AuthorityID, f.QRCode)
		if f.Link != (country.Link{}) {
			fmt.Fprintf(&out, "link %d %s %s\n", f.Link.Position, f.Link.Hash, f.Link.Extra)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", bytes.TrimSuffix(report, []byte("\n")))
	return out.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-"))
	if updating() {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the tests with -update to make it)", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (-update rewrites it):\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/fault"
)

// fake writes a binary that answers --version, notes each run in the file
// calls, and then does what script says; $engine is what it is asked to measure on.
func fake(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, `#!/bin/sh
if [ "$1" = --version ]; then echo "v-`+name+`"; exit; fi
echo "`+name+` $*" >> "$CALLS"
case "$*" in *postgres://*) engine=postgres ;; *) engine=sqlite ;; esac
`+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// reporting prints a report with figures; %d in them is the number of the run.
func reporting(figures string) string {
	return `n=$(grep -c "^${0##*/} " "$CALLS")
echo "measuring submits …" >&2
printf '\n%s, 2 CPUs\n\nnot of the progress\n' "$engine" >&2
printf '{"engine":"%s","cpus":2,"figures":[` + figures + `]}' "$engine" ` + strings.Repeat(`"$n" `, strings.Count(figures, "%d"))
}

func figure(name, value, unit string) string {
	return fmt.Sprintf(`{"name":"%s","value":%s,"unit":"%s"}`, name, value, unit)
}

// paired compares two fakes.
type paired struct {
	out, progress bytes.Buffer
	calls         []string
	err           error
}

func runPair(t *testing.T, cfg Config) *paired {
	t.Helper()
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("CALLS", calls)
	found := &paired{}
	cfg.Out, cfg.Err, cfg.JSON, cfg.Rounds = &found.out, &found.progress, true, max(cfg.Rounds, RoundsMin)
	found.err = Run(t.Context(), cfg)
	if text, err := os.ReadFile(calls); err == nil {
		found.calls = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return found
}

func (p *paired) comparison(t *testing.T) (c Comparison) {
	t.Helper()
	if p.err != nil {
		t.Fatalf("%v\n%s", p.err, p.progress.String())
	}
	if err := json.Unmarshal(p.out.Bytes(), &c); err != nil {
		t.Fatalf("%v: %s", err, p.out.String())
	}
	return c
}

func TestBothBinariesAreMeasuredInTurns(t *testing.T) {
	this := fake(t, "this", reporting(figure("rate", "1%d0", "1/s")+","+figure("time", "5", "ms")))
	other := fake(t, "other", reporting(figure("rate", "100", "1/s")+","+figure("time", "5", "ms")))
	t.Setenv("TRIBUTARY_BENCH_DATABASE", "postgres://elsewhere")
	t.Setenv("TRIBUTARY_QUICK", "true")
	p := runPair(t, Config{Program: this, Pair: other, Database: "postgres://server/name", Stored: 7, Quick: true})
	c := p.comparison(t)
	sqlite, postgres := " bench --json --stored 7 --quick",
		" bench --json --database postgres://server/name --stored 7 --quick"
	want := []string{}
	for _, engine := range []string{sqlite, postgres} {
		for _, name := range []string{"this", "other", "other", "this", "this", "other"} {
			want = append(want, name+engine)
		}
	}
	if !slices.Equal(p.calls, want) {
		t.Errorf("called\n%s\nwant\n%s", strings.Join(p.calls, "\n"), strings.Join(want, "\n"))
	}
	if c.This.Path != this || c.This.Version != "v-this" || c.Other.Path != other || c.Other.Version != "v-other" ||
		len(c.This.SHA256) != 64 || c.This.SHA256 == c.Other.SHA256 {
		t.Errorf("binaries are %+v and %+v", c.This, c.Other)
	}
	if c.Rounds != 3 || !c.Quick || c.Stored != 7 || c.CPUs < 1 || c.StartedAt == "" || len(c.Engines) != 2 ||
		c.Engines[0].Engine != "sqlite" || c.Engines[1].Engine != "postgres" {
		t.Fatalf("reported %s", p.out.String())
	}
	rate := c.Engines[0].Figures[0]
	if !reflect.DeepEqual(rate, ComparedFigure{"rate", "1/s", []float64{110, 120, 130}, []float64{100, 100, 100},
		[]float64{1.1, 1.2, 1.3}, 1.2, 1.1, 1.3}) {
		t.Errorf("rate is %+v", rate)
	}
	for _, line := range []string{
		"round 2 of 3, sqlite, other: measuring submits …\n", "round 3 of 3, postgres, this: measuring submits …\n",
		"rate   1/s  120.00  100.00  1.200  1.100–1.300\n", "no difference: the spread includes 1: time\n",
	} {
		if !strings.Contains(p.progress.String(), line) {
			t.Errorf("%q is not told:\n%s", line, p.progress.String())
		}
	}
	for _, line := range []string{"not of the progress", "PostgreSQL was not measured", "Both binaries are identical"} {
		if strings.Contains(p.progress.String(), line) {
			t.Errorf("%q is told:\n%s", line, p.progress.String())
		}
	}
}

func TestWithoutAServerPostgreSQLIsSaidToBeMissing(t *testing.T) {
	script := reporting(figure("rate", "100", "1/s"))
	this := fake(t, "this", script)
	for database, flags := range map[string]string{"": "",
		"sqlite:/place/bench.db": " --database sqlite:/place/bench.db"} {
		p := runPair(t, Config{Program: this, Pair: this, Database: database, Rounds: 4})
		c := p.comparison(t)
		if len(p.calls) != 8 || slices.ContainsFunc(p.calls, func(call string) bool {
			return call != "this bench --json"+flags
		}) {
			t.Errorf("--database %q: called %q", database, p.calls)
		}
		if len(c.Engines) != 1 || c.Engines[0].Engine != "sqlite" || len(c.Engines[0].Figures[0].Ratios) != 4 {
			t.Errorf("--database %q: reported %s", database, p.out.String())
		}
		for _, line := range []string{"PostgreSQL was not measured: give --database postgres://…",
			"Both binaries are identical", "the spread of 4 rounds excludes 1 by chance for 12 % of the figures"} {
			if !strings.Contains(p.progress.String(), line) {
				t.Errorf("--database %q: %q is not told:\n%s", database, line, p.progress.String())
			}
		}
	}
}

// An older binary lacks figures and has others: nothing of that is hidden, and nothing fails.
func TestFiguresOfOneBinaryAreListed(t *testing.T) {
	this := fake(t, "this",
		reporting(figure("rate", "100", "1/s")+","+figure("fresh", "1", "1/s")+","+figure("wait", "3", "ms")+","+
			figure("zero", "0", "")))
	other := fake(t, "other", `if [ "$(grep -c "^other " "$CALLS")" = 2 ]; then
`+reporting(figure("rate", "200", "1/s")+","+figure("wait", "3000", "us")+","+figure("gone", "1", "1/s")+","+figure("zero", "0", "")+","+figure("at times", "1", ""))+`
else
`+reporting(figure("rate", "200", "1/s")+","+figure("wait", "3000", "us")+","+figure("gone", "1", "1/s")+","+figure("zero", "0", ""))+`
fi`)
	p := runPair(t, Config{Program: this, Pair: other})
	e := p.comparison(t).Engines[0]
	if !slices.Equal(e.OnlyThis, []string{"fresh", "wait"}) || !slices.Equal(e.OnlyOther, []string{"wait", "gone"}) ||
		!slices.Equal(e.Incomplete, []string{"at times"}) {
		t.Errorf("only this %q, only other %q, incomplete %q", e.OnlyThis, e.OnlyOther, e.Incomplete)
	}
	if len(e.Figures) != 2 || e.Figures[0].Ratio != .5 || e.Figures[1].Name != "zero" || e.Figures[1].Ratios != nil {
		t.Errorf("figures are %+v", e.Figures)
	}
	for _, line := range []string{"reported by this only: fresh, wait\n", "reported by other only: wait, gone\n",
		"missing in some rounds: at times\n"} {
		if !strings.Contains(p.progress.String(), line) {
			t.Errorf("%q is not told:\n%s", line, p.progress.String())
		}
	}
	if strings.Contains(p.progress.String(), "no difference:") {
		t.Errorf("a figure without a ratio, or half as large, is told to show no difference:\n%s", p.progress.String())
	}
}

func TestARunThatFailsEndsTheComparison(t *testing.T) {
	this := fake(t, "this", reporting(figure("rate", "100", "1/s")))
	for name, c := range map[string]struct {
		script string
		says   []string
	}{
		"exit": {`for i in 1 2 3 4 5 6 7 8; do echo "line $i" >&2; done; printf 'the disk is full' >&2; exit 3`,
			[]string{"exit status 3", "line 2\n", "the disk is full"}},
		"garbage": {`echo "a warning" >&2; echo 'submits: many'`, []string{"printed no report", "a warning"}},
		"twice":   {reporting(figure("rate", "100", "1/s")) + "\necho '{}'", []string{"printed no report"}},
		"nothing": {`true`, []string{"printed no report"}},
		"empty":   {`echo '{"engine":"sqlite"}'`, []string{"printed no report: it has no figures"}},
		"elsewhere": {`engine=postgres; ` + reporting(figure("rate", "100", "1/s")),
			[]string{`measured on "postgres" instead of sqlite`}},
		"endless": {`yes`, []string{"printed more than 1048576 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			other := fake(t, "other", c.script)
			p := runPair(t, Config{Program: this, Pair: other})
			if p.err == nil || fault.KindOf(p.err) != fault.Internal || p.out.Len() > 0 {
				t.Fatalf("ended with %v, printed %q", p.err, p.out.String())
			}
			for _, text := range append(c.says, "round 1 of 3, sqlite, other: "+other+": ") {
				if !strings.Contains(p.err.Error(), text) {
					t.Errorf("%q is not in %v", text, p.err)
				}
			}
			if strings.Contains(p.err.Error(), "line 1\n") {
				t.Errorf("more than the last lines are in %v", p.err)
			}
			if len(p.calls) != 2 {
				t.Errorf("went on after the failure: %q", p.calls)
			}
		})
	}
}

func TestTheRoundOfAFailureIsNamed(t *testing.T) {
	good := reporting(figure("rate", "100", "1/s"))
	this := fake(t, "this", `if [ "$(grep -c "^this " "$CALLS")" = 2 ]; then exit 1; fi`+"\n"+good)
	p := runPair(t, Config{Program: this, Pair: fake(t, "other", good)})
	if p.err == nil || !strings.Contains(p.err.Error(), "round 2 of 3, sqlite, this: "+this+": exit status 1") ||
		p.out.Len() > 0 {
		t.Errorf("ended with %v, printed %q", p.err, p.out.String())
	}
}

func TestABinaryThatCannotBeComparedIsRefused(t *testing.T) {
	this := fake(t, "this", reporting(figure("rate", "100", "1/s")))
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	write(t, plain, "text")
	for path, c := range map[string]struct {
		kind fault.Kind
		says string
	}{
		filepath.Join(dir, "none"): {fault.Invalid, "no such file"}, dir: {fault.Invalid, "not a file"},
		plain: {fault.Internal, "permission denied"},
	} {
		p := runPair(t, Config{Program: this, Pair: path})
		if p.err == nil || fault.KindOf(p.err) != c.kind || !strings.Contains(p.err.Error(), c.says) ||
			!strings.Contains(p.err.Error(), path) {
			t.Errorf("%s: %v", path, p.err)
		}
		if len(p.calls) > 0 {
			t.Errorf("%s: measured before it was refused: %q", path, p.calls)
		}
	}
}

// Whoever builds into the file that is measured learns of it.
func TestABinaryThatChangesMeanwhileIsTold(t *testing.T) {
	good := reporting(figure("rate", "100", "1/s"))
	this := fake(t, "this", good)
	other := fake(t, "other", good+"\necho '# built again' >> \"$0\"")
	p := runPair(t, Config{Program: this, Pair: other})
	if p.err == nil || !strings.Contains(p.err.Error(), "other ("+other+") changed while it was measured") ||
		p.out.Len() > 0 {
		t.Errorf("ended with %v, printed %q", p.err, p.out.String())
	}
}

func TestRoundsAreBounded(t *testing.T) {
	this := fake(t, "this", "true")
	for rounds, says := range map[int]string{-1: "must be at least 3", 2: "must be at least 3", 3: "", 100: "",
		101: "must be at most 100"} {
		err := newPair(Config{Program: this, Pair: this, Rounds: rounds}).refused()
		if says == "" && err != nil || says != "" &&
			(err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says)) {
			t.Errorf("%d rounds: %v", rounds, err)
		}
	}
}

// cancelOn cancels a context when a text is written.
type cancelOn struct {
	bytes.Buffer
	text   string
	cancel context.CancelFunc
}

func (c *cancelOn) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(c.text)) {
		c.cancel()
	}
	return c.Buffer.Write(text)
}

func TestAnInterruptedComparisonEndsItsRun(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("CALLS", calls)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	this := fake(t, "this", reporting(figure("rate", "100", "1/s")))
	other := fake(t, "other",
		`trap 'echo ended >> "$CALLS"; exit 1' TERM; echo "measuring submits …" >&2; while :; do sleep 0.01; done`)
	progress, out := &cancelOn{text: "other: measuring submits", cancel: cancel}, bytes.Buffer{}
	err := Run(ctx, Config{Program: this, Pair: other, Rounds: 3, JSON: true, Out: &out, Err: progress})
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(),
			"round 1 of 3, sqlite, other: interrupted; an incomplete comparison is not reported") || out.Len() > 0 {
		t.Errorf("ended with %v, printed %q", err, out.String())
	}
	if text, err := os.ReadFile(calls); err != nil || string(text) != "this bench --json\nother bench --json\nended\n" {
		t.Errorf("the run was not asked to end: %q, %v", text, err)
	}
}

func TestARunThatDoesNotEndIsKilled(t *testing.T) {
	t.Setenv("CALLS", filepath.Join(t.TempDir(), "calls"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPair(Config{Err: &cancelOn{text: "measuring submits", cancel: cancel}})
	c := p.newCall("round 1", fake(t, "other", `trap '' TERM; echo "measuring submits …" >&2; exec sleep 600`))
	if err := c.run(ctx, time.Millisecond, "bench"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestMedians(t *testing.T) {
	for want, values := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 3, 2}, 7: {7}} {
		before := slices.Clone(values)
		if got := median(values); got != want || !slices.Equal(values, before) {
			t.Errorf("the median of %v is %v, want %v; left as %v", before, got, want, values)
		}
	}
}

func TestNoDifferenceIsShownWhereTheSpreadIncludesOne(t *testing.T) {
	for _, c := range []struct {
		this []float64
		want bool
	}{{[]float64{90, 100.5, 110}, true}, {[]float64{100, 110, 120}, true}, {[]float64{80, 90, 100}, true},
		{[]float64{101, 110, 120}, false}, {[]float64{80, 90, 99}, false}, {[]float64{0, 100, 120}, false}} {
		f := newComparedFigure(Figure{Name: "rate"}, c.this, []float64{100, 100, 100})
		if f.noDifference() != c.want {
			t.Errorf("%v of 100: spread %v–%v, no difference is %v", c.this, f.RatioLow, f.RatioHigh, !c.want)
		}
	}
}

// Progress keeps overwriting its line where the run does, and goes on to the table only in errors.
func TestProgressIsPassedOnWithTheRound(t *testing.T) {
	var to bytes.Buffer
	p := progress{to: &to, label: "round 1"}
	for _, text := range []string{"measur", "ing …\n\rloading 1\rloaded 2   \n",
		strings.Repeat("x", lineBytesMax+1) + "\n", "\ntable\n", "at the end"} {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	p.end()
	if want := "round 1: measuring …\nround 1: loading 1\rround 1: loaded 2\nround 1: " +
		strings.Repeat("x", lineBytesMax) + "\n"; to.String() != want {
		t.Errorf("told %q, want %q", to.String(), want)
	}
	if got := p.last[len(p.last)-2:]; !slices.Equal(got, []string{"table", "at the end"}) {
		t.Errorf("kept %q", p.last)
	}
}

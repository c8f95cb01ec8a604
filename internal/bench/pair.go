package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tributary/internal/fault"
)

// RoundsMin is the fewest rounds of a comparison, and how many it has unless
// told otherwise: of fewer there is no spread to speak of.
const RoundsMin = 3

const (
	roundsMax  = 100
	pairEnding = 20 * time.Second // a run that is ended drops its databases first
)

// pair compares two binaries by whole runs in turns. Who begins changes with
// each round: a machine that becomes slower meanwhile becomes so for both.
//
// Failure policy: a run that fails ends the comparison, and nothing of it is
// reported. Ratios of the rounds before would look like a finished one.
type pair struct {
	cfg   Config
	grace time.Duration
	sides [2]side // this program, the other binary
}

type side struct {
	name string // as messages and the report call it
	Binary
}

// Binary is one of the two that are compared.
type Binary struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// storage is one engine to measure on: its name in reports, and --database of the runs.
type storage struct{ engine, database string }

func newPair(cfg Config) *pair {
	return &pair{cfg: cfg, grace: pairEnding,
		sides: [2]side{{"this", Binary{Path: cfg.Program}}, {"other", Binary{Path: cfg.Pair}}}}
}

func (p *pair) run(ctx context.Context) error {
	if err := p.refused(); err != nil {
		return err
	}
	on, err := p.storages()
	if err != nil {
		return err
	}
	for i := range p.sides {
		if err := p.identify(ctx, &p.sides[i]); err != nil {
			return err
		}
	}
	found := &Comparison{
		This: p.sides[0].Binary, Other: p.sides[1].Binary, Rounds: p.cfg.Rounds, CPUs: runtime.GOMAXPROCS(0),
		StartedAt: time.Now().UTC().Format(time.RFC3339),
		Stored:    p.cfg.Stored, Quick: p.cfg.Quick, Engines: []EngineComparison{},
	}
	for _, at := range on {
		this, other, err := p.measure(ctx, at)
		if err != nil {
			return err
		}
		found.Engines = append(found.Engines, compare(at.engine, this, other))
	}
	if err := p.unchanged(); err != nil {
		return err
	}
	found.table(p.cfg.Err)
	if !p.cfg.JSON {
		return nil
	}
	return json.NewEncoder(p.cfg.Out).Encode(found)
}

// refused says which other flags a comparison does not go with.
func (p *pair) refused() error {
	switch c := p.cfg; {
	case c.Nodes != 0:
		return fault.New(fault.Invalid, "--pair and --nodes are mutually exclusive")
	case c.Received:
		return fault.New(fault.Invalid, "--pair and --received are mutually exclusive")
	case c.Compare != "":
		return fault.New(fault.Invalid, "--pair and --compare are mutually exclusive: --pair measures both builds itself")
	case c.Plot != "":
		return fault.New(fault.Invalid, "--pair and --plot are mutually exclusive: only a single run can be plotted")
	case c.Rounds < RoundsMin:
		return fault.New(fault.Invalid, "--rounds: must be at least %d", RoundsMin)
	case c.Rounds > roundsMax:
		return fault.New(fault.Invalid, "--rounds: must be at most %d", roundsMax)
	}
	about, err := os.Stat(p.cfg.Pair)
	if err != nil {
		return fault.New(fault.Invalid, "--pair: %v", err)
	}
	if !about.Mode().IsRegular() {
		return fault.New(fault.Invalid, "--pair %s: not a file", p.cfg.Pair)
	}
	return nil
}

// storages are SQLite always, and PostgreSQL where a server is named.
func (p *pair) storages() ([]storage, error) {
	switch at := p.cfg.Database; {
	case at == "" || strings.HasPrefix(at, "sqlite:"):
		return []storage{{"sqlite", at}}, nil
	case strings.HasPrefix(at, "postgres"):
		return []storage{{"sqlite", ""}, {"postgres", at}}, nil
	}
	return nil, fault.New(fault.Invalid, "--database: must be sqlite:PATH or postgres://…")
}

// identify asks a binary for its version, and takes its checksum.
func (p *pair) identify(ctx context.Context, s *side) (err error) {
	if s.Path, err = filepath.Abs(s.Path); err != nil {
		return err
	}
	c := p.newCall("before round 1, "+s.name, s.Path)
	if err := c.run(ctx, p.grace, "--version"); err != nil {
		return err
	}
	version, _, _ := strings.Cut(string(c.out.text), "\n")
	s.Version = strings.TrimSpace(version)
	s.SHA256, err = checksum(s.Path)
	return err
}

// unchanged: whoever builds into the same file meanwhile has measured neither the old nor the new one.
func (p *pair) unchanged() error {
	for _, s := range p.sides {
		now, err := checksum(s.Path)
		if err == nil && now != s.SHA256 {
			err = errors.New("its checksum has changed")
		}
		if err != nil {
			return fmt.Errorf("%s (%s) changed while it was measured: %w", s.name, s.Path, err)
		}
	}
	return nil
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// measure runs all rounds on one engine: this other, other this, this other, …
func (p *pair) measure(ctx context.Context, at storage) (this, other []Report, err error) {
	var reports [len(p.sides)][]Report
	for round := range p.cfg.Rounds {
		for turn := range p.sides {
			i := (round + turn) % len(p.sides)
			c := p.newCall(fmt.Sprintf("round %d of %d, %s, %s", round+1, p.cfg.Rounds, at.engine, p.sides[i].name), p.sides[i].Path)
			report, err := p.once(ctx, c, at)
			if err != nil {
				return nil, nil, err
			}
			reports[i] = append(reports[i], report)
		}
	}
	return reports[0], reports[1], nil
}

// once is one whole run of one binary. Only flags that older binaries know are passed.
func (p *pair) once(ctx context.Context, c *call, at storage) (report Report, err error) {
	args := []string{"bench", "--json"}
	if at.database != "" {
		args = append(args, "--database", at.database)
	}
	if p.cfg.Stored != 0 {
		args = append(args, "--stored", strconv.Itoa(p.cfg.Stored))
	}
	if p.cfg.Quick {
		args = append(args, "--quick")
	}
	if err := c.run(ctx, p.grace, args...); err != nil {
		return report, err
	}
	if err := json.Unmarshal(c.out.text, &report); err != nil {
		return report, c.failed(fmt.Errorf("printed no report: %w", err))
	}
	if len(report.Figures) == 0 {
		return report, c.failed(errors.New("printed no report: it has no figures"))
	}
	if report.Engine != at.engine {
		return report, c.failed(fmt.Errorf("measured on %q instead of %s", report.Engine, at.engine))
	}
	return report, nil
}

// call is one run of a binary, from its start to its end.
type call struct {
	label, path string
	out         bounded
	said        progress
}

func (p *pair) newCall(label, path string) *call {
	return &call{label: label, path: path, said: progress{to: p.cfg.Err, label: label}}
}

// run waits for the end. Where ctx ends first the binary is asked to end, and killed if it has not within grace.
func (c *call) run(ctx context.Context, grace time.Duration, args ...string) error {
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), passedOn)
	cmd.Stdout, cmd.Stderr = &c.out, &c.said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	c.said.end()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: interrupted; an incomplete comparison is not reported: %w", c.label, ctx.Err())
	}
	if c.out.over {
		err = fmt.Errorf("printed more than %d bytes", reportBytesMax) // how it ended is our doing
	}
	if err != nil {
		return c.failed(err)
	}
	return nil
}

// failed names the binary and the round, with the last that it said.
func (c *call) failed(err error) error {
	if len(c.said.last) == 0 {
		return fmt.Errorf("%s: %s: %w", c.label, c.path, err)
	}
	return fmt.Errorf("%s: %s: %w; it said last:\n  %s", c.label, c.path, err, strings.Join(c.said.last, "\n  "))
}

// passedOn reports whether a variable sets a flag that this call has resolved
// and passes on itself. Left in the environment, an address of PostgreSQL would
// send the runs on SQLite there, too; and a file may have keys that an older
// binary refuses.
func passedOn(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{
		"TRIBUTARY_CONFIG", "TRIBUTARY_BENCH_DATABASE", "TRIBUTARY_STORED", "TRIBUTARY_QUICK", "TRIBUTARY_JSON",
		"TRIBUTARY_COMPARE", "TRIBUTARY_PLOT", "TRIBUTARY_NODES", "TRIBUTARY_RECEIVED",
	}, name)
}

// Package bench measures the service on the machine it runs on: the real
// server over real HTTP, with the load generator on the same cores.
//
// It owns the generator, the yardsticks and the report. Law: every figure is
// taken in the same run as the yardstick it is compared with, and two versions
// are compared by runs of both in turns.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tributary/internal/country"
	"tributary/internal/server"
)

// Config says what to measure.
type Config struct {
	Database string // empty: a temporary SQLite file
	Stored   int    // settled transactions to load first
	JSON     bool
	Compare  string
	Plot     string
	Quick    bool   // a fraction of the load, to see that everything works
	Nodes    int    // 0: one process; else so many of Program against one PostgreSQL, and nothing else is measured
	Received bool   // documents that wait at an authority, and nothing else
	Pair     string // not empty: Program and this binary in turns, by Rounds runs of each
	Rounds   int
	Program  string // the program's own binary
	Out, Err io.Writer
}

// Report is the outcome; its JSON form is what --compare reads.
type Report struct {
	Engine    string   `json:"engine"`
	CPUs      int      `json:"cpus"`
	StartedAt string   `json:"started_at"`
	Figures   []Figure `json:"figures"`
}

// Figure is one measured value.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r *Report) add(name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{name, value, unit})
}

func (r *Report) find(name string) (float64, bool) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// run is one benchmark under way.
type run struct {
	cfg    Config
	dir    string
	report *Report
	rss    *rssWatch
}

// Run measures and prints.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.Pair != "" {
		return newPair(cfg).run(ctx)
	}
	dir, err := os.MkdirTemp("", "tributary-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{cfg: cfg, dir: dir, report: &Report{CPUs: runtime.GOMAXPROCS(0), StartedAt: time.Now().UTC().Format(time.RFC3339)}}
	if cfg.Nodes != 0 && !cfg.Received {
		if err := r.nodes(ctx); err != nil {
			return fmt.Errorf("measure nodes: %w", err)
		}
		return r.print()
	}
	r.rss = watchRSS()
	defer r.rss.stop()
	if cfg.Received {
		if err := r.received(ctx); err != nil {
			return fmt.Errorf("measure received documents: %w", err)
		}
		return r.print()
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{{"submits", r.submits}, {"whole journey", r.journeys}, {"burst", r.burst}, {"growth", r.growth},
		{"deliveries", r.deliveries}, {"documents", r.documents}, {"large documents", r.largeDocuments}} {
		if phase.name == "growth" && cfg.Stored == 0 {
			continue
		}
		if phase.name == "large documents" {
			// Full load is everything up to here: sales as shops have them.
			r.report.add("resident_memory_full_load", float64(r.rss.peak())/(1<<20), "MiB")
		}
		fmt.Fprintf(cfg.Err, "measuring %s …\n", phase.name)
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("measure %s: %w", phase.name, err)
		}
	}
	r.report.add("resident_memory_peak", float64(r.rss.peak())/(1<<20), "MiB")
	return r.print()
}

func (r *run) print() error {
	table(r.cfg.Err, r.report, r.cfg.Compare)
	if r.cfg.Plot != "" {
		if err := plot(r.cfg.Plot, r.report); err != nil {
			return err
		}
	}
	if !r.cfg.JSON {
		return nil
	}
	return json.NewEncoder(r.cfg.Out).Encode(r.report)
}

// place is where the data of one phase lives, so that a server can be closed
// and opened again over it.
type place struct {
	name, database, data string
	drop                 func() error
}

func (r *run) place(ctx context.Context, name string) (*place, error) {
	database, drop, err := ownDatabase(ctx, r.cfg.Database, name)
	if err != nil {
		return nil, err
	}
	return &place{name: name, database: database, data: filepath.Join(r.dir, name), drop: drop}, nil
}

// open starts a server for one phase, with a place of its own.
func (r *run) open(ctx context.Context, name string, change func(*server.Config)) (*subject, error) {
	at, err := r.place(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := r.openAt(ctx, at, change)
	if err != nil {
		return nil, errors.Join(err, at.drop())
	}
	s.drop = at.drop
	return s, nil
}

// openAt starts a server of the demo kind on free ports.
func (r *run) openAt(ctx context.Context, at *place, change func(*server.Config)) (*subject, error) {
	cfg := server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0",
		Data: at.data, Database: at.database, DemoUseCase: country.Reporting,
	}
	if change != nil {
		change(&cfg)
	}
	s, err := server.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	sub := &subject{Server: s, mark: fmt.Sprintf("b%x", time.Now().UnixNano()), stop: stop, ended: make(chan error, 1)}
	go func() { sub.ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-sub.ended:
		stop()
		return nil, errors.Join(err, s.Close())
	}
	r.report.Engine = s.Engine()
	return sub, nil
}

// subject is a running server under test.
type subject struct {
	*server.Server
	mark  string       // tells the ids of this run from those of others in the same database
	drop  func() error // the data, where nobody comes back to it
	stop  context.CancelFunc
	ended chan error
}

func (s *subject) close() error {
	s.stop()
	err := errors.Join(<-s.ended, s.Close())
	if s.drop != nil {
		err = errors.Join(err, s.drop())
	}
	return err
}

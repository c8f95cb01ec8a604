package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// Jobs says what the job engine works on. River carries sweeps, alarms and
// whatever is periodic; docs/decisions/0001 says why it is not used for more.
// What clients cause is worked in turns: see [ClientJob].
type Jobs struct {
	Workers  *river.Workers
	Periodic []*river.PeriodicJob
	Parallel int // jobs at the same time; default 8

	Clients map[string]ClientWorker // by kind: work of clients, who take turns
}

// jobEngine hides that River's client has the engine's transaction in its type.
type jobEngine interface {
	start(ctx context.Context, j Jobs, log *slog.Logger) error
	stop(ctx context.Context) error
	migrate(ctx context.Context) error
	behind(ctx context.Context) (bool, error)
}

const jobsParallelDefault = 8

// StartJobs works jobs until StopJobs.
func (d *DB) StartJobs(ctx context.Context, j Jobs) error {
	if d.cfg.Guest {
		return errors.New("a guest of the database works no jobs")
	}
	if j.Parallel == 0 {
		j.Parallel = jobsParallelDefault
	}
	if err := d.eng.jobs().start(ctx, j, d.log); err != nil {
		return fmt.Errorf("start the job engine: %w", err)
	}
	if len(j.Clients) > 0 {
		d.clientJobs.Store(startClientJobs(ctx, d, j.Clients))
	}
	return nil
}

// StopJobs lets running jobs finish until ctx ends, then cancels them; they run again later.
func (d *DB) StopJobs(ctx context.Context) error {
	var both sync.WaitGroup
	if running := d.clientJobs.Swap(nil); running != nil {
		both.Go(func() { running.halt(ctx) })
	}
	err := d.eng.jobs().stop(ctx)
	both.Wait()
	return err
}

func riverConfig(j Jobs, log *slog.Logger) *river.Config {
	return &river.Config{
		Workers:           j.Workers,
		PeriodicJobs:      j.Periodic,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: j.Parallel}},
		Logger:            slog.New(quiet{log.Handler()}).With("part", "jobs"),
		FetchPollInterval: 500 * time.Millisecond,
		JobTimeout:        -1, // jobs carry their own deadlines
	}
}

// client is River's client with the engine's transaction type.
type client[TTx any] struct {
	mu       sync.Mutex
	inserter *river.Client[TTx]
	worker   *river.Client[TTx]
	driver   riverdriver.Driver[TTx]
	guest    bool // the tables belong to another role: River must not rebuild their indexes
}

func (c *client[TTx]) inserting() (*river.Client[TTx], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker != nil {
		return c.worker, nil // it wakes its own fetcher after the commit
	}
	if c.inserter == nil {
		made, err := river.NewClient(c.driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		c.inserter = made
	}
	return c.inserter, nil
}

func (c *client[TTx]) insert(ctx context.Context, tx TTx, jobs []river.InsertManyParams) error {
	made, err := c.inserting()
	if err != nil {
		return err
	}
	if _, err := made.InsertManyTx(ctx, tx, jobs); err != nil {
		return fmt.Errorf("enqueue jobs: %w", err)
	}
	return nil
}

func (c *client[TTx]) start(ctx context.Context, j Jobs, log *slog.Logger) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worker != nil {
		return errors.New("the job engine is already running")
	}
	cfg := riverConfig(j, log)
	if c.guest {
		cfg.ReindexerIndexNames = []string{}
	}
	made, err := river.NewClient(c.driver, cfg)
	if err != nil {
		return err
	}
	if err := made.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	c.worker = made
	return nil
}

func (c *client[TTx]) stop(ctx context.Context) error {
	c.mu.Lock()
	running := c.worker
	c.worker = nil
	c.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.Stop(ctx); err != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		return running.StopAndCancel(hard)
	}
	return nil
}

func (c *client[TTx]) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(c.driver, nil)
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (c *client[TTx]) behind(ctx context.Context) (bool, error) {
	m, err := rivermigrate.New(c.driver, nil)
	if err != nil {
		return false, err
	}
	res, err := m.Validate(ctx, nil)
	return err == nil && !res.OK, err
}

// quiet passes on warnings and errors only: River tells a lot at level info.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }

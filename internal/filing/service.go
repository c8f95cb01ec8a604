// Package filing is the heart: submission, idempotency, the operation's state
// machine and the exactly-once protocol with authorities.
//
// It owns transactions, their processing attempts (operations), what was filed
// and what came back, the lanes in which filings travel, and answers to received
// documents (responses), which travel in them too. It does not own
// HTTP, countries' rules, documents, webhooks or suppliers: it calls those who
// do; nor numbers, corrections, periods and life cycles, which it asks in its own
// writes. What clients and operators read of it is the package ledger's. Law of
// [Service.Submit]: when it answers, the body is on disk and will end in
// exactly one result.
//
// A link that an authority refuses is first held against the authority's own head,
// by the holder of the lane: links that it counts are asked for, links behind one
// that it did not count are made anew. That needs what the holder knows of each
// filing, and its lease, so it stays here; where the head explains nothing, filing
// holds the supplier and the package recovery resumes the chain when a person says
// so. Companies that were onboarded after a restored backup are held at their first
// filing in the same way: filing needs no knowledge of restorations.
package filing

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"tributary/internal/admission"
	"tributary/internal/alert"
	"tributary/internal/breaker"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/exchange"
	"tributary/internal/files"
	"tributary/internal/killpoint"
	"tributary/internal/lease"
	"tributary/internal/lifecycle"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/period"
	"tributary/internal/series"
	"tributary/internal/turnstile"
	"tributary/internal/webhook"
)

// Config is what a Service stands on.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
	Documents *files.Store
	Hooks     *webhook.Hooks
	Alerts    *alert.Alerts
	Log       *slog.Logger
	RetryBase time.Duration // first retry to an authority; default 1 s
	Slots     int           // lanes in work at the same time of one country and environment; default 32
	Backlog   int           // operations that could be worked and wait; past it submits are refused; default 2,000,000

	// Render makes the document for people; nil makes none (tests of filing alone).
	Render func(ctx context.Context, issued Issued) (document.Rendering, error)

	// Count is told in each commit what it does to transactions; nil counts nothing.
	Count func(tx *db.Tx, done []Tallied)
}

// How long an operation may go without reaching its authority before somebody is
// told, and before it ends.
const (
	DoubtfulAfter = 24 * time.Hour
	HopelessAfter = 48 * time.Hour
)

const (
	retryBaseDefault = time.Second
	retryMax         = 5 * time.Minute
	waitingMax       = 1000 // attempts of one transaction that may wait; past it 429

	lanesAtOnce   = 32 // lanes in work on this node, of one country and environment; see Config.Slots
	countries     = 16 // so many of which may have all of theirs in work
	periodsAtOnce = 4  // periods that are closed at the same time; of one supplier one
)

// Service is the filing slice of a running program.
type Service struct {
	Intake *admission.Gate // whether submissions are taken
	Series series.Store    // of the clients' numbers

	cfg     Config
	db      *db.DB
	log     *slog.Logger
	life    *lifecycle.Cycle
	periods *period.Periods
	submits *db.Gather[submission, accepted]
	pauses  exchange.Ladder // between calls to an authority
	begun   time.Time

	pump     *lease.Pump[laneState]
	room     *turnstile.Parts // bytes that may be in work, by endpoint
	large    *turnstile.Gate  // processors for large sales
	breakers breaker.Breakers

	suspectsAfter time.Duration // tests shorten it
	earlierMax    int64         // tests lower it

	// Tests only; zero in production.
	signal func(killpoint.Point, string) // called where a stage has just been stored or a call made
	poll   time.Duration                 // between looks at idle lanes, see lease.Pump
}

// New returns a service that accepts submissions; [Service.Run] processes them.
func New(cfg Config) *Service {
	if cfg.RetryBase == 0 {
		cfg.RetryBase = retryBaseDefault
	}
	if cfg.Slots == 0 {
		cfg.Slots = lanesAtOnce
	}
	if cfg.Count == nil {
		cfg.Count = func(*db.Tx, []Tallied) {}
	}
	pauses := exchange.Ladder{Base: cfg.RetryBase, Most: retryMax, Jitter: rand.Float64}
	life := &lifecycle.Cycle{DB: cfg.DB, Atlas: cfg.Atlas, Companies: cfg.Companies, Hooks: cfg.Hooks, Alerts: cfg.Alerts, Log: cfg.Log, Pauses: pauses}
	s := &Service{
		Intake: admission.New(cfg.DB, cfg.Log, cfg.Backlog),
		Series: series.Store{DB: cfg.DB, Atlas: cfg.Atlas, Companies: cfg.Companies},
		cfg:    cfg, db: cfg.DB, log: cfg.Log, life: life, begun: cfg.DB.Now(), room: turnstile.NewParts(workBytesMax, endpointBytesMax),
		large: turnstile.New(int64(max(1, runtime.GOMAXPROCS(0)/2)), math.MaxInt), suspectsAfter: suspectsAfterDefault,
		periods: &period.Periods{DB: cfg.DB, Atlas: cfg.Atlas, Cycle: life, Alerts: cfg.Alerts, AtOnce: period.AtOnceDefault},
		pauses:  pauses,
	}
	life.OfSales = s.periods.Said
	s.submits = db.NewIntake(cfg.DB, s.store)
	return s
}

// Close ends the intake after everything accepted is stored.
func (s *Service) Close() {
	s.submits.Close()
}

// Run processes operations until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	s.pump = &lease.Pump[laneState]{DB: s.db, Queue: laneQueue, Log: s.log, InFlight: countries * s.cfg.Slots, Work: s.visit, Poll: s.poll,
		Class: endpointOf, ClassMost: s.cfg.Slots}
	listener := &lifecycle.Listener{Cycle: s.life, Poll: s.poll, Reached: func(lane string) { s.reached("listened", lane) }}
	var others sync.WaitGroup
	others.Go(func() { listener.Run(ctx) })
	others.Go(func() { s.closePeriods(ctx) })
	defer others.Wait()
	return s.pump.Run(ctx)
}

// Pause is how long an authority is left alone after the n-th failure in a row.
func (s *Service) Pause(n int64) time.Duration { return s.pauses.Pause(n) }

// reached passes a place at which a process may die.
func (s *Service) reached(p killpoint.Point, lane string) {
	killpoint.Reach(p)
	if s.signal != nil {
		s.signal(p, lane)
	}
}

// Caller is on whose behalf a call is made. Scope is the client's id; a client
// is live or test as a whole, so a test never stands in for a real filing.
type Caller struct {
	Scope   string
	Live    country.Live
	UseCase func(code string) (country.UseCase, bool)

	WarnTotals bool // its totals that differ from ours are warnings
}

// Those of the package operation.
type (
	Stage  = operation.Stage
	Status = operation.Status
	Place  = operation.Place
)

// The stages and statuses.
const (
	Waiting     = operation.Waiting
	Blocked     = operation.Blocked
	Received    = operation.Received
	Prepared    = operation.Prepared
	Sent        = operation.Sent
	Pending     = operation.Pending
	Quarantined = operation.Quarantined
	Settled     = operation.Settled

	Processing = operation.Processing
	Success    = operation.Success
	Failure    = operation.Failure
)

// For rehearsals: what tests and the simulation change, before Run. A program
// that serves anybody calls none of this.

// Observe calls fn at the points of an operation's journey, see [killpoint.Point].
func (s *Service) Observe(fn func(point, lane string)) {
	s.signal = func(p killpoint.Point, lane string) { fn(string(p), lane) }
}

// LookEvery sets how often idle lanes are looked at, so that virtual days are not spent looking.
func (s *Service) LookEvery(d time.Duration) { s.poll = d }

// SuspectLater lets suspects wait for so long after the start; 0: a young process works on them.
func (s *Service) SuspectLater(d time.Duration) { s.suspectsAfter = d }

// PauseAtMost lengthens the longest pause between retries and polls, for tests of virtual days.
func (s *Service) PauseAtMost(d time.Duration) { s.pauses.Most, s.life.Pauses.Most = d, d }

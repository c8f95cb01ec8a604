// Package filing is the heart: submission, idempotency, the operation's state
// machine, corrections, and the exactly-once protocol with authorities.
//
// It owns transactions, their processing attempts (operations), what was filed
// and what came back, and the lanes in which filings travel. It does not own
// HTTP, countries' rules, documents, webhooks or suppliers: it calls those who
// do. What clients and operators read of it is the package ledger's. Law of
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
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/files"
	"tributary/internal/killpoint"
	"tributary/internal/onboarding"
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
	doubtfulAfter    = DoubtfulAfter
	hopelessAfter    = HopelessAfter
)

// Service is the filing slice of a running program.
type Service struct {
	cfg    Config
	db     *db.DB
	log    *slog.Logger
	intake *db.Gather[submission, accepted]
	jitter func() float64 // 0 ≤ x < 1
	begun  time.Time

	gate *gate // whether the intake is open
	room *room // bytes that may be in work, see budget.go

	backlog  backlog
	breakers breakers

	suspectsAfter time.Duration // tests shorten it
	earlierMax    int64         // tests lower it

	// Tests only; zero in production.
	signal   func(killpoint.Point, string) // called where a stage has just been stored or a call made
	poll     time.Duration                 // between looks at idle lanes, see lease.Pump
	pauseMax time.Duration                 // instead of retryMax
}

// reached passes a place at which a process may die.
func (s *Service) reached(p killpoint.Point, lane string) {
	killpoint.Reach(p)
	if s.signal != nil {
		s.signal(p, lane)
	}
}

// New returns a service that accepts submissions; [Service.Run] processes them.
func New(cfg Config) *Service {
	if cfg.RetryBase == 0 {
		cfg.RetryBase = retryBaseDefault
	}
	if cfg.Slots == 0 {
		cfg.Slots = lanesAtOnce
	}
	if cfg.Backlog == 0 {
		cfg.Backlog = backlogMaxDefault
	}
	if cfg.Count == nil {
		cfg.Count = func(*db.Tx, []Tallied) {}
	}
	s := &Service{cfg: cfg, db: cfg.DB, log: cfg.Log, jitter: randomJitter, begun: cfg.DB.Now(), gate: newGate(), room: newRoom(), suspectsAfter: suspectsAfterDefault}
	s.backlog.most = cfg.Backlog
	s.intake = db.NewIntake(cfg.DB, s.store)
	return s
}

// Close ends the intake after everything accepted is stored.
func (s *Service) Close() {
	s.intake.Close()
}

// Caller is on whose behalf a call is made. Scope is the client's id; a client
// is live or test as a whole, so a test never stands in for a real filing.
type Caller struct {
	Scope   string
	Live    country.Live
	UseCase func(code string) (country.UseCase, bool)

	WarnTotals bool // its totals that differ from ours are warnings
}

// Stage is where an operation stands. It is stored before anything is done
// that could not be done twice.
type Stage string

// The stages.
const (
	Waiting     Stage = "waiting"     // behind earlier attempts of the same transaction
	Blocked     Stage = "blocked"     // a correction behind its original
	Received    Stage = "received"    // on disk, nothing built yet
	Prepared    Stage = "prepared"    // exact bytes on disk, provably unsent
	Sent        Stage = "sent"        // may be at the authority
	Pending     Stage = "pending"     // at the authority, undecided
	Quarantined Stage = "quarantined" // crashed the process too often; a person must look
	Settled     Stage = "settled"
)

// Status is what the client sees.
type Status string

// The statuses of a result.
const (
	Processing Status = "PROCESSING"
	Success    Status = "SUCCESS"
	Failure    Status = "FAILURE"
)

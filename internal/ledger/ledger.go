// Package ledger is what clients and operators read: results, histories, lists,
// the search over all clients with its index, counts for plots, the timeline of
// one operation, and how things stand with authorities.
//
// It owns the index (operation_terms, search_cursors) and the counts
// (transaction_counts, transaction_usage) and writes nothing else. It reads the
// tables of others: of filing transactions, operations, bodies, filings,
// corrections, lanes, exchanges and exchange_operations; of received the documents
// that others sent and what they refer to; of inbox the mailboxes of companies. Attachments, companies
// and events it asks of their owners. Law: nothing here decides anything about an
// operation; a ledger that is gone loses nobody a filing.
//
// Search and counts cost a submit nothing: terms are written behind the intake by
// an indexer that follows operation ids, counts are kept in memory and flushed
// every few seconds. A crash loses a few seconds of a plot and never a term.
package ledger

import (
	"log/slog"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/turnstile"
	"tributary/internal/webhook"
)

// Config is what a Ledger stands on.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
	Documents *files.Store
	Hooks     *webhook.Hooks
	Filing    *filing.Service
	Tally     *Tally // whose OnCommit the filing slice calls; nil counts nothing
	Log       *slog.Logger
}

// Ledger is the reading side of a running program.
type Ledger struct {
	cfg   Config
	db    *db.DB
	log   *slog.Logger
	tally *Tally
	poll  time.Duration // tests only: between rounds of the index

	reads   *turnstile.Gate // what is read of large results, by bytes
	answers *turnstile.Gate // what of it is being written
}

// New returns a ledger that answers; [Ledger.Run] keeps its index.
func New(cfg Config) *Ledger {
	if cfg.Tally == nil {
		cfg.Tally = NewTally(cfg.DB, cfg.Log)
	}
	return &Ledger{cfg: cfg, db: cfg.DB, log: cfg.Log, tally: cfg.Tally, reads: newReads(), answers: newAnswers()}
}

// Close stores what was counted.
func (s *Ledger) Close() { s.tally.close() }

// LookEvery sets how long the index rests, for tests of virtual days. Before Run.
func (s *Ledger) LookEvery(d time.Duration) { s.poll = d }

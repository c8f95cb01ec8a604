// Package retention forgets what has had its time: diagnostics after days,
// events and validations after ninety, and the legal record after the years of
// its country.
//
// It owns the rounds, what they report and how far they have come. It does not
// own the rows that go: each owner removes its own, in steps so small that no
// other write waits for them. The law of [Retention.Round]: nothing goes that is
// under a legal hold, nothing of the record before its years are over, and what
// goes wrong with one client leaves none of the others undone.
//
// A record's age counts from the end of the calendar year of the later of its
// document date and its acceptance. Records are walked once a year: how far a
// client's walk came, for which years and holds, is kept, so that on other days
// nothing is looked for. Messages of authorities lose their content with the record
// they speak of and keep their names, so that a repetition is still nothing.
package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/inbox"
	"tributary/internal/lease"
	"tributary/internal/ledger"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/operator"
	"tributary/internal/webhook"
)

// Every is the time between two rounds. One is also made at every start.
const Every = 24 * time.Hour

// roundsKept is how many reports are kept.
const roundsKept = 400

// Config is what rounds work with.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Accounts  *account.Accounts
	Operators *operator.Operators
	Documents *files.Store
	Hooks     *webhook.Hooks
	Lookups   *lookup.Lookups
	Filing    *filing.Service
	Ledger    *ledger.Ledger
	Alerts    *alert.Alerts
	Log       *slog.Logger
	Now       func() time.Time // nil: the database's wall clock
}

// Retention makes rounds.
type Retention struct{ cfg Config }

// New makes it ready; see [Retention.Workers] and [Retention.Periodic].
func New(cfg Config) *Retention {
	if cfg.Now == nil {
		cfg.Now = cfg.DB.Wall
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Retention{cfg}
}

// Counts say what a round removed.
type Counts struct {
	Operations  int `json:"operations"`  // records destroyed after their years
	Documents   int `json:"documents"`   // of those records
	Events      int `json:"events"`      // closed for ninety days
	Tries       int `json:"tries"`       // of notifications, with the receivers' replies
	Calls       int `json:"calls"`       // to authorities
	Links       int `json:"links"`       // between operations and such calls
	Validations int `json:"validations"` // of tax numbers
	Alerts      int `json:"alerts"`      // acknowledged
	Messages    int `json:"messages"`    // of authorities, about nothing of ours
}

func (c *Counts) add(d Counts) {
	c.Operations, c.Documents, c.Events, c.Tries = c.Operations+d.Operations, c.Documents+d.Documents, c.Events+d.Events,
		c.Tries+d.Tries
	c.Calls, c.Links, c.Validations, c.Alerts = c.Calls+d.Calls, c.Links+d.Links, c.Validations+d.Validations, c.Alerts+d.Alerts
	c.Messages += d.Messages
}

// Report is what a round did.
type Report struct {
	StartedAt time.Time `json:"-"`
	EndedAt   time.Time `json:"-"`
	Removed   Counts    `json:"removed"`
	// the clock leapt, or another database may be the real one: nothing was forgotten
	Waits  bool     `json:"waits,omitempty"`
	Held   []string `json:"held,omitempty"`   // clients under a legal hold, left alone
	Failed []string `json:"failed,omitempty"` // what went wrong, by client
}

// Round forgets once what is due. The error is what went wrong on the way; the
// report says what was done all the same, and is kept.
func (r *Retention) Round(ctx context.Context) (Report, error) {
	now := r.cfg.Now()
	report := Report{StartedAt: now}
	var clients []account.Client
	err := r.cfg.DB.Read(ctx, func(reader db.Reader) (err error) {
		clients, err = r.cfg.Accounts.List(reader)
		return err
	})
	if err != nil {
		return report, fmt.Errorf("list clients: %w", err)
	}
	var all []error
	fail := func(subject string, err error) {
		if err == nil || ctx.Err() != nil {
			return
		}
		all = append(all, fmt.Errorf("%s: %w", subject, err))
		report.Failed = append(report.Failed, subject)
		all = append(all, r.cfg.Alerts.Raise(ctx, alert.RetentionFailed, subject, err.Error()))
	}
	waits, err := r.waits(ctx, now)
	report.Waits = waits
	fail("clock", err)
	if certain, err := r.certain(ctx); err != nil || !certain {
		report.Waits, waits = true, true
		fail("documents", err)
	}
	days, err := r.days(ctx, clients, now, waits)
	report.Removed.add(days)
	fail("partitions", err)
	for _, c := range clients {
		if ctx.Err() != nil {
			break
		}
		if c.Config.LegalHold {
			report.Held = append(report.Held, c.ID)
			continue
		}
		if waits {
			continue
		}
		removed, err := r.client(ctx, c, now)
		report.Removed.add(removed)
		fail(c.ID, err)
	}
	if !waits {
		removed, err := r.common(ctx, report.Held, now)
		report.Removed.add(removed)
		fail("service", err)
	}
	report.EndedAt = r.cfg.Now()
	return report, errors.Join(errors.Join(all...), ctx.Err(), r.keep(context.WithoutCancel(ctx), report))
}

// client does one client's part.
func (r *Retention) client(ctx context.Context, c account.Client, now time.Time) (n Counts, err error) {
	days := c.Config.Retention.DiagnosticDays
	if days == 0 {
		days = account.DiagnosticDaysMax
	}
	diagnostics := now.AddDate(0, 0, -days)
	held, err := r.held(ctx, c.ID)
	if err != nil {
		return n, err
	}
	var all []error
	step := func(into *int, do func() (int, error)) {
		if ctx.Err() != nil {
			return
		}
		gone, err := do()
		*into += gone
		all = append(all, err)
	}
	step(&n.Tries, func() (int, error) { return r.cfg.Hooks.ForgetTries(ctx, c.ID, diagnostics) })
	step(&n.Events, func() (int, error) { return r.cfg.Hooks.ForgetEvents(ctx, c.ID, now.AddDate(0, 0, -webhook.KeptDays)) })
	step(&n.Calls, func() (int, error) {
		return exchange.ForgetCalls(ctx, r.cfg.DB, exchange.Held{Scope: c.ID, Suppliers: held}, diagnostics)
	})
	step(&n.Validations, func() (int, error) { return r.cfg.Lookups.Forget(ctx, c.ID, now.AddDate(0, 0, -lookup.KeptDays)) })
	if ctx.Err() == nil {
		run := &retirement{Retention: r, client: c, expiry: r.expiryOf(c, now, held)}
		all = append(all, run.all(ctx))
		n.Operations, n.Documents = run.operations, run.documents
	}
	if n != (Counts{}) {
		r.cfg.Log.Info("retention deleted expired records", "client", c.ID, "records", n.Operations, "documents", n.Documents,
			"events", n.Events, "tries", n.Tries, "calls", n.Calls, "validations", n.Validations)
	}
	return n, errors.Join(all...)
}

// common is what belongs to no client.
func (r *Retention) common(ctx context.Context, held []string, now time.Time) (n Counts, err error) {
	var links, alerts, messages error
	n.Links, links = exchange.ForgetLinks(ctx, r.cfg.DB, now)
	n.Alerts, alerts = r.cfg.Alerts.Forget(ctx, now.AddDate(0, 0, -account.DiagnosticDaysMax))
	n.Messages, messages = inbox.Forget(ctx, r.cfg.DB, held, operation.IDAt(now.AddDate(0, 0, -inbox.KeptDays)))
	return n, errors.Join(links, alerts, messages)
}

func (r *Retention) held(ctx context.Context, clientID string) (held map[string]bool, err error) {
	var ids []string
	err = r.cfg.DB.Read(ctx, func(reader db.Reader) (err error) {
		ids, err = onboarding.Held(reader, clientID)
		return err
	})
	held = make(map[string]bool, len(ids))
	for _, id := range ids {
		held[id] = true
	}
	return held, err
}

// keep stores a report and drops the oldest.
func (r *Retention) keep(ctx context.Context, report Report) error {
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("store the report of a run: %w", err)
	}
	err = r.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(keepSQL, db.Micros(report.StartedAt), db.Micros(report.EndedAt), string(text)); err != nil {
			return err
		}
		return tx.Exec(dropSQL, roundsKept)
	})
	if err != nil {
		return fmt.Errorf("store the report of a run: %w", err)
	}
	return nil
}

// Last reads the reports of the latest rounds, newest first.
func Last(r db.Reader, limit int) ([]Report, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (report Report, err error) {
		var started, ended int64
		var text string
		if err := scan(&started, &ended, &text); err != nil {
			return report, err
		}
		err = json.Unmarshal([]byte(text), &report)
		report.StartedAt, report.EndedAt = db.FromMicros(started), db.FromMicros(ended)
		return report, err
	}, lastSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("read the reports of retention: %w", err)
	}
	return list, nil
}

// Tasks are what is done again and again.
func (r *Retention) Tasks() []lease.Task {
	return []lease.Task{lease.Every("retention_round", Every, func(ctx context.Context) error {
		_, err := r.Round(ctx)
		return err
	})}
}

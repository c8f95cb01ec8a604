package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/inbox"
	"tributary/internal/ledger"
	"tributary/internal/lifecycle"
	"tributary/internal/operator"
	"tributary/internal/received"
)

// earliestYear is how much sooner than in UTC a calendar year ends anywhere: a
// document of the first hours of a year is never taken for one of the year before.
const earliestYear = 14 * time.Hour

// expiryOf says which records of a client have expired at an instant. The years
// are the country's, counted from the end of the calendar year; a client may
// have more, never fewer.
func (r *Retention) expiryOf(c account.Client, now time.Time, held map[string]bool) expiry {
	e := expiry{Before: map[string]time.Time{}, Held: held}
	for _, code := range r.cfg.Atlas.Codes() {
		pack, _ := r.cfg.Atlas.Pack(code) // the atlas has what it lists
		years := max(pack.KeptYears(), c.Config.Retention.Years)
		e.Before[pack.Code] = time.Date(now.UTC().Year()-years, time.January, 1, 0, 0, 0, 0, time.UTC).Add(-earliestYear)
	}
	return e
}

// retirement destroys the records of one client whose years are over: bodies,
// results, filings and receipts, documents and what they are found by.
//
// Failure policy: each step is one write of a bounded number of operations and
// bytes, in which all of their record goes or none of it. A round that is cut
// off is gone through again. What was destroyed is told in the log, in the
// report and in the operators' audit log.
type retirement struct {
	*Retention
	client     account.Client
	expiry     expiry
	operations int
	documents  int
}

func (r *retirement) all(ctx context.Context) error {
	goal, err := json.Marshal(r.expiry)
	if err != nil {
		return err
	}
	var at, done string
	err = r.cfg.DB.Read(ctx, func(reader db.Reader) error {
		err := reader.Row(progressSQL, r.client.ID).Scan(&at, &done)
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		return err
	})
	// Years end once a year: between two New Years, and without another hold or
	// another wish of the client, there is nothing to look for.
	if err != nil || done == string(goal) {
		return err
	}
	clean := at // up to here nothing was left behind
	for whole := true; ; {
		aged, err := r.step(ctx, at)
		if err != nil {
			return errors.Join(err, r.tell(context.WithoutCancel(ctx)))
		}
		if whole = whole && !aged.Kept; whole && aged.Last != "" {
			clean = aged.Last
		}
		if at = aged.Last; at == "" {
			break
		}
	}
	if err := r.received(ctx); err != nil {
		return errors.Join(err, r.tell(context.WithoutCancel(ctx)))
	}
	return errors.Join(r.tell(ctx), r.cfg.DB.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec(advanceSQL, r.client.ID, clean, string(goal))
	}))
}

// step looks at a stretch and destroys what has expired of it.
func (r *retirement) step(ctx context.Context, after string) (old aged, err error) {
	var entries ledger.Entries
	err = r.cfg.DB.Read(ctx, func(reader db.Reader) error {
		if old, err = aging(reader, r.client.ID, r.expiry, after); err != nil || len(old.Expired) == 0 {
			return err
		}
		entries, err = r.cfg.Ledger.Entries(reader, old.Expired)
		return err
	})
	if err != nil || len(old.Expired) == 0 {
		return old, err
	}
	documents := 0
	err = r.cfg.DB.Write(ctx, func(tx *db.Tx) (err error) {
		if err := r.cfg.Ledger.Forget(tx, entries); err != nil {
			return err
		}
		if documents, err = r.cfg.Documents.Drop(tx, r.client.ID, old.Expired); err != nil {
			return err
		}
		if err := inbox.Retire(tx, r.cfg.DB, old.Expired); err != nil {
			return err
		}
		return r.cfg.Filing.Retire(tx, old.Expired)
	})
	if err != nil {
		return old, fmt.Errorf("delete records of client %s: %w", r.client.ID, err)
	}
	r.operations, r.documents = r.operations+len(old.Expired), r.documents+documents
	return old, nil
}

// received destroys what others sent, by the same years.
func (r *retirement) received(ctx context.Context) error {
	expiry := received.Expiry{Before: r.expiry.Before, Newest: r.expiry.newest(), Held: r.expiry.Held}
	for after, first := "", true; first || after != ""; first = false {
		var ids []string
		err := r.cfg.DB.Read(ctx, func(reader db.Reader) (err error) {
			ids, after, err = received.Aged(reader, r.client.ID, expiry, after)
			return err
		})
		if err == nil && len(ids) > 0 {
			err = r.cfg.DB.Write(ctx, func(tx *db.Tx) error {
				documents, err := r.cfg.Documents.Drop(tx, r.client.ID, ids)
				if err != nil {
					return err
				}
				tx.OnCommit(func() { r.operations, r.documents = r.operations+len(ids), r.documents+documents })
				if err := lifecycle.Forget(tx, r.cfg.DB, db.Strings(ids)); err != nil { // what was answered to it
					return err
				}
				return received.Retire(tx, r.cfg.DB, r.client.ID, ids)
			})
		}
		if err != nil {
			return fmt.Errorf("delete received documents of client %s: %w", r.client.ID, err)
		}
	}
	return nil
}

// tell notes in the audit log what was destroyed.
func (r *retirement) tell(ctx context.Context) error {
	if r.operations == 0 {
		return nil
	}
	return r.cfg.Operators.Record(ctx, audit.Actor{Name: "retention"},
		operator.Act{Action: "records.retired", Subject: r.client.ID, ClientID: r.client.ID,
			After: map[string]int{"operations": r.operations, "documents": r.documents}})
}

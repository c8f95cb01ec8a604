package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/lease"
)

// mailboxQueue leases companies whose messages wait at their authority. A mailbox
// is one row and one key, so clients take turns and endpoints can be bounded.
var mailboxQueue = &lease.Queue[mailbox]{
	Table: "inbox_mailboxes", ID: "mailbox", Key: "mailbox",
	Columns: "country, live, client_id, company_id, cursor, failures, failing_since", Scan: scanMailbox,
	Group: "|", // a mailbox begins with its client
	// A country may look less often: a look that comes early finds what there is.
	Longest: fmt.Sprint((2 * lookPauseMax).Microseconds()),
}

// mailbox is one as it is looked into.
type mailbox struct {
	at           country.Environment
	of           country.Mailbox
	cursor       string
	failures     int64
	failingSince time.Time // zero: the last look succeeded
}

func scanMailbox(scan func(...any) error) (m mailbox, err error) {
	err = scan(&m.at.Code, (*bool)(&m.at.Live), &m.of.Scope, &m.of.SupplierID, &m.cursor, &m.failures,
		db.NullInstant(&m.failingSince))
	return m, err
}

func mailboxID(at country.Environment, of country.Mailbox) string {
	return of.Scope + "|" + at.String() + "|" + of.SupplierID
}

// endpointOf is the CC.live or CC.test in the id of a mailbox.
func endpointOf(id string) string {
	_, rest, _ := strings.Cut(id, "|")
	at, _, _ := strings.Cut(rest, "|")
	return at
}

const mailboxColumns = "mailbox,endpoint,country,live,client_id,company_id,due_at"

func mailboxRow(at country.Environment, of country.Mailbox, due time.Time) []any {
	return []any{mailboxID(at, of), at.String(), at.Code, bool(at.Live), of.Scope, of.SupplierID, db.Micros(due)}
}

// Follow lets a company's mailbox be looked into from now on, in the commit that
// stores the company or a change of it. One that has failed is looked into at
// once: what was changed may have been the reason.
func (i *Inbox) Follow(tx *db.Tx, scope string, live bool, s country.Supplier) error {
	pack, _ := i.cfg.Atlas.Pack(s.CountryCode)
	at := country.Environment{Code: pack.Code, Live: country.Live(live)}
	if !pack.Fetch.Wants(s) || !i.cfg.Atlas.Offers(at.Code, at.Live) {
		return nil // one that is looked into stops by itself
	}
	err := tx.InsertReturning(db.Insert{Table: "inbox_mailboxes", Columns: mailboxColumns,
		Suffix: `ON CONFLICT (mailbox) DO UPDATE SET due_at = excluded.due_at WHERE inbox_mailboxes.lease_until IS NULL
			AND (inbox_mailboxes.due_at IS NULL OR inbox_mailboxes.failures > 0) RETURNING mailbox`},
		[][]any{mailboxRow(at, country.Mailbox{Scope: scope, SupplierID: s.ID}, tx.Now())}, func(*db.Rows) error { return nil })
	if err != nil {
		return fmt.Errorf("follow the mailbox of company %s: %w", s.ID, err)
	}
	tx.Wake(mailboxQueue.Table)
	return nil
}

// followAll finds companies that were onboarded before their country had
// mailboxes. It runs once at the start of a worker.
func (i *Inbox) followAll(ctx context.Context) error {
	for _, code := range i.cfg.Atlas.Codes() {
		pack, _ := i.cfg.Atlas.Pack(code)
		if pack.Fetch == nil {
			continue
		}
		for after, more := (country.Mailbox{}), true; more; {
			page, err := i.cfg.Companies.Suppliers(ctx, code, after, followPage)
			if err != nil {
				return fmt.Errorf("look for mailboxes of %s: %w", code, err)
			}
			var rows [][]any
			for _, c := range page {
				at := country.Environment{Code: code, Live: country.Live(c.Live)}
				after = country.Mailbox{Scope: c.ClientID, SupplierID: c.Supplier.ID}
				if pack.Fetch.Wants(c.Supplier) && i.cfg.Atlas.Offers(code, at.Live) {
					rows = append(rows, mailboxRow(at, after, i.db.Now()))
				}
			}
			if more = len(page) == followPage; len(rows) == 0 {
				continue
			}
			err = i.db.Write(ctx, func(tx *db.Tx) error {
				tx.Wake(mailboxQueue.Table)
				return tx.InsertReturning(db.Insert{Table: "inbox_mailboxes", Columns: mailboxColumns,
					Suffix: "ON CONFLICT (mailbox) DO NOTHING RETURNING mailbox"},
					rows, func(*db.Rows) error { return nil })
			})
			if err != nil {
				return fmt.Errorf("follow mailboxes of %s: %w", code, err)
			}
		}
	}
	return nil
}

// followPage is how many companies are read at once.
const followPage = 500

// EndpointChanged lets mailboxes be looked into at once that failed, perhaps for
// want of the address or identity that an operator has just set.
func (i *Inbox) EndpointChanged(ctx context.Context, at country.Environment) error {
	err := i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Wake(mailboxQueue.Table)
		return tx.Exec("UPDATE inbox_mailboxes SET due_at = $1 WHERE endpoint = $2 AND failures > 0 AND due_at IS NOT NULL AND lease_until IS NULL", db.Micros(tx.Now()), at.String())
	})
	if err != nil {
		return fmt.Errorf("end the pauses of mailboxes at %s: %w", at, err)
	}
	return nil
}

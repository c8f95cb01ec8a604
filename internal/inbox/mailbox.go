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
	Columns: "country, live, client_id, company_id, documents, since, cursor, failures, failing_since", Scan: scanMailbox,
	Group: "|", // a mailbox begins with its client
	// A country may look less often: a look that comes early finds what there is.
	Longest: fmt.Sprint((2 * lookPauseMax).Microseconds()),
}

// mailbox is one as it is looked into.
type mailbox struct {
	at           country.Environment
	of           country.Mailbox
	documents    bool      // received ones are asked for, not messages
	since        time.Time // of documents: the day from which on the last look wanted them
	cursor       string
	failures     int64
	failingSince time.Time // zero: the last look succeeded
}

func scanMailbox(scan func(...any) error) (m mailbox, err error) {
	err = scan(&m.at.Code, (*bool)(&m.at.Live), &m.of.Scope, &m.of.SupplierID, &m.documents, db.NullInstant(&m.since),
		&m.cursor, &m.failures, db.NullInstant(&m.failingSince))
	return m, err
}

// fetch is how the mailbox is looked into; nil: nothing can wait in it.
func (m *mailbox) fetch(p country.Pack) *country.Fetch {
	if m.documents {
		return p.Receive.Fetching()
	}
	return p.Fetch
}

func (m *mailbox) id() string {
	id := m.of.Scope + "|" + m.at.String() + "|" + m.of.SupplierID
	if m.documents {
		id += "|documents"
	}
	return id
}

// endpointOf is the CC.live or CC.test in the id of a mailbox.
func endpointOf(id string) string {
	_, rest, _ := strings.Cut(id, "|")
	at, _, _ := strings.Cut(rest, "|")
	return at
}

const mailboxColumns = "mailbox,endpoint,country,live,client_id,company_id,documents,due_at"

func (m *mailbox) row(due time.Time) []any {
	return []any{m.id(), m.at.String(), m.at.Code, bool(m.at.Live), m.of.Scope, m.of.SupplierID, m.documents, db.Micros(due)}
}

// mailboxes are the rows of what may wait for a company: its messages and its documents.
func (i *Inbox) mailboxes(at country.Environment, scope string, s *country.Supplier, due time.Time) (rows [][]any) {
	pack, _ := i.cfg.Atlas.Pack(at.Code)
	if !i.cfg.Atlas.Offers(at.Code, at.Live) {
		return nil
	}
	for _, documents := range []bool{false, true} {
		m := mailbox{at: at, of: country.Mailbox{Scope: scope, SupplierID: s.ID}, documents: documents}
		if m.fetch(pack).Wants(*s) && (!documents || s.ReceivesFrom() != "") {
			rows = append(rows, m.row(due))
		}
	}
	return rows
}

// Follow lets a company's mailbox be looked into from now on, in the commit that
// stores the company or a change of it. One that has failed is looked into at
// once: what was changed may have been the reason.
func (i *Inbox) Follow(tx *db.Tx, scope string, live bool, s country.Supplier) error {
	rows := i.mailboxes(country.Environment{Code: s.CountryCode, Live: country.Live(live)}, scope, &s, tx.Now())
	if len(rows) == 0 {
		return nil // one that is looked into stops by itself
	}
	err := tx.InsertReturning(db.Insert{Table: "inbox_mailboxes", Columns: mailboxColumns,
		Suffix: `ON CONFLICT (mailbox) DO UPDATE SET due_at = excluded.due_at WHERE inbox_mailboxes.lease_until IS NULL
			AND (inbox_mailboxes.due_at IS NULL OR inbox_mailboxes.failures > 0) RETURNING mailbox`},
		rows, func(*db.Rows) error { return nil })
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
		if pack.Fetch == nil && pack.Receive.Fetching() == nil {
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
				rows = append(rows, i.mailboxes(at, c.ClientID, &c.Supplier, i.db.Now())...)
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

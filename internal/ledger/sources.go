package ledger

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/result"
)

// Source is a way by which messages, or documents that others sent, come to a company.
type Source struct {
	At           country.Environment
	Documents    bool      // else messages about what the company sent
	Called       bool      // the authority, or the network, calls; of it there is no more than From
	From         string    // the day from which on documents are wanted; "": they are not, or they are messages
	Mark         time.Time // everything before it was brought; zero: the pack does not say
	Brought      int64
	LookedAt     time.Time
	DueAt        time.Time // of the next look; zero: there is none
	Looking      bool
	FailingSince time.Time
	Failures     int64 // looks in a row
	Problem      string
}

// Aside is a received document that a company has and that could not be read, or came under a name of another.
type Aside struct {
	OperationID string
	Source      string
	AuthorityID string
	At          time.Time
	Why         string
}

// asideMax is how many of them are shown.
const asideMax = 20

const (
	sourcesSQL = `SELECT country, live, documents, cursor, brought, looked_at, due_at, lease_until, failing_since, failures, coalesce(problem, '')
		FROM inbox_mailboxes WHERE client_id = $1 AND company_id = $2 ORDER BY mailbox DESC`
	asideSQL = `SELECT operation_id, source, authority_id, accepted_at, coalesce(substr(result, 1, $3), '') FROM received
		WHERE client_id = $1 AND company_id = $2 AND status = 'FAILURE' ORDER BY operation_id DESC LIMIT $4`
)

// Sources answers how messages and documents come to a company, and its newest documents that were kept aside; more:
// there are others.
func (s *Ledger) Sources(ctx context.Context, clientID, companyID string, live country.Live) (list []Source, aside []Aside, more bool, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		company, err := s.cfg.Companies.Supplier(r, clientID, companyID)
		if err != nil {
			return err
		}
		if list, err = s.asked(r, clientID, companyID); err != nil {
			return err
		}
		from, asked := "", false
		if !s.cfg.Atlas.ReceivesSince(&company).IsZero() {
			from = company.ReceivesFrom()
		}
		for i := range list {
			if list[i].Documents {
				list[i].From, asked = from, true
			}
		}
		if from != "" && !asked {
			list = append(list, Source{At: country.Environment{Code: company.CountryCode, Live: live}, Documents: true, Called: true, From: from})
		}
		aside, err = db.Collect(r, scanAside, asideSQL, clientID, companyID, receivedHead, asideMax+1)
		return err
	})
	if err != nil {
		return nil, nil, false, fmt.Errorf("read the sources of %s: %w", companyID, err)
	}
	if more = len(aside) > asideMax; more {
		aside = aside[:asideMax]
	}
	return list, aside, more, nil
}

// asked are the sources into which somebody looks.
func (s *Ledger) asked(r db.Reader, clientID, companyID string) ([]Source, error) {
	return db.Collect(r, func(scan func(...any) error) (o Source, err error) {
		var cursor string
		var held time.Time
		err = scan(&o.At.Code, (*bool)(&o.At.Live), &o.Documents, &cursor, &o.Brought, db.NullInstant(&o.LookedAt), db.NullInstant(&o.DueAt),
			db.NullInstant(&held), db.NullInstant(&o.FailingSince), &o.Failures, &o.Problem)
		if mark, unread := country.ReadMark(cursor); err == nil && o.Documents && unread == nil {
			o.Mark = mark.At
		}
		o.Looking = held.After(r.Now())
		return o, err
	}, sourcesSQL, clientID, companyID)
}

func scanAside(scan func(...any) error) (a Aside, err error) {
	var at int64
	var kept result.Kept
	if err := scan(&a.OperationID, &a.Source, &a.AuthorityID, &at, &kept.Text); err != nil {
		return a, err
	}
	a.At = db.FromMicros(at)
	if kept.Text == "" {
		return a, nil // its record was destroyed
	}
	row, _, err := kept.Row()
	if err != nil {
		return a, fmt.Errorf("read the result of %s: %w", a.OperationID, err)
	}
	if len(row.Errors) > 0 {
		a.Why = row.Errors[0].Message
	}
	return a, nil
}

package ledger

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
)

// Cursors of what came with the search by pieces.
const (
	cursorOlder      = "parts"       // operations that were indexed before there were parts
	cursorOlderUntil = "parts_until" // where those end: nodes of the version before may run for a while
	cursorCompanies  = "companies"
)

const olderFor = time.Hour

// indexOlder gives operations their parts that were indexed by a version without them.
func (x *indexer) indexOlder(ctx context.Context) (more bool, err error) {
	var from, until string
	var ids []string
	var rows Entries
	err = x.ledger.db.Read(ctx, func(r db.Reader) error {
		if from, err = readCursor(r, cursorOlder); err != nil {
			return err
		}
		if until, err = readCursor(r, cursorOlderUntil); err != nil || until == "" || from >= until {
			return err
		}
		if ids, rows, err = readIndexed(r, nextSQL, from, indexSet); err != nil || len(ids) == 0 {
			return err
		}
		decided, err := x.ledger.decidedTerms(r, ids)
		rows = rows.with(decided)
		return err
	})
	if err == nil && until == "" {
		return true, x.store(ctx, move{cursorOlderUntil, "", operation.IDAt(x.now().Add(olderFor))}, Entries{})
	}
	if err != nil || len(ids) == 0 {
		return false, err
	}
	rows.terms = nil // those are there
	return len(ids) == indexSet, x.store(ctx, move{cursorOlder, from, ids[len(ids)-1]}, rows)
}

// changedSQL reads companies as they were last changed. Those of the newest
// seconds are read again: commits do not come in the order of their times.
const changedSQL = `SELECT company_id, updated_at, profile FROM companies
	WHERE (updated_at, company_id) > ($1, $2) ORDER BY updated_at, company_id LIMIT $3`

// indexCompanies makes companies findable by pieces of their names. A name that
// was changed is found under both.
func (x *indexer) indexCompanies(ctx context.Context) (more bool, err error) {
	type company struct {
		id, profile string
		at          int64
	}
	var from string
	var list []company
	err = x.ledger.db.Read(ctx, func(r db.Reader) error {
		if from, err = readCursor(r, cursorCompanies); err != nil {
			return err
		}
		at, id := readPosition(from)
		list, err = db.Collect(r, func(scan func(...any) error) (c company, err error) {
			return c, scan(&c.id, &c.at, &c.profile)
		}, changedSQL, at, id, indexSet)
		return err
	})
	if err != nil || len(list) == 0 {
		return false, err
	}
	var rows [][]any
	to := from
	trail := db.Micros(x.now().Add(-settledTrail))
	for _, c := range list {
		var profile struct {
			LegalName string `json:"legal_name"`
		}
		if json.Unmarshal([]byte(c.profile), &profile) != nil {
			continue // found by its numbers
		}
		var set termSet
		set.addParts(profile.LegalName)
		for _, part := range set {
			rows = append(rows, []any{part, c.id})
		}
		if c.at < trail {
			to = position(c.at, c.id)
		}
	}
	return len(list) == indexSet && to != from, x.storeCompanies(ctx, move{cursorCompanies, from, to}, rows)
}

func (x *indexer) storeCompanies(ctx context.Context, m move, rows [][]any) error {
	return x.ledger.db.Write(ctx, func(tx *db.Tx) error {
		if m.to != m.from {
			if err := tx.ExecOne("UPDATE search_cursors SET position = $1 WHERE name = $2 AND position = $3", m.to, m.cursor,
				m.from); err != nil {
				return err
			}
		}
		return tx.InsertReturning(db.Insert{Table: "company_parts", Columns: "part,company_id",
			Suffix: "ON CONFLICT DO NOTHING"}, rows, nil)
	})
}

// position is a place in the order of changes, as a cursor keeps it.
func position(at int64, id string) string {
	text, _ := json.Marshal(at) // a number cannot fail
	return string(text) + " " + id
}

func readPosition(text string) (at int64, id string) {
	number, id, _ := strings.Cut(text, " ")
	_ = json.Unmarshal([]byte(number), &at) // "" is the beginning
	return at, id
}

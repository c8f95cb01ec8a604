package lookup

import (
	"encoding/json"
	"fmt"

	"tributary/internal/db"
)

// The statements. A request that is running and claimed by nobody waits for
// its turn, or for its job to be looked at.
const (
	findSQL = `SELECT name, status, entries, requested_at FROM lookups WHERE lookup_id = $1 AND client_id = $2 AND kind = $3`

	openBatchesSQL = `SELECT count(*) FROM lookups WHERE client_id = $1 AND kind = 'batch' AND status = 'running'`

	segmentsSQL = `SELECT first, entries FROM lookup_entries WHERE lookup_id = $1 AND first > $2 AND first < $3 ORDER BY first`

	answersSQL = `SELECT position, format, status, is_business, business_name, business_address, error_code, answered_at, request_id
		FROM lookup_answers WHERE lookup_id = $1 AND position >= $2 AND position < $3`

	cancelSQL = `UPDATE lookups SET ended_at = CASE WHEN status = 'running' THEN $1 ELSE ended_at END,
			status = CASE WHEN status = 'running' THEN 'canceled' ELSE status END
		WHERE lookup_id = $2 AND client_id = $3 AND kind = 'batch' RETURNING status`

	// Only the oldest running batch of a client can be claimed.
	claimSQL = `UPDATE lookups SET claim = claim + 1, crashes = crashes + 1, claimed_by = $1, claimed_until = $2
		WHERE lookup_id = $3 AND status = 'running' AND (claimed_by IS NULL OR claimed_until <= $4)
			AND (kind = 'single' OR NOT EXISTS (SELECT 1 FROM lookups o WHERE o.client_id = lookups.client_id AND o.kind = 'batch'
				AND o.status = 'running' AND (o.requested_at, o.lookup_id) < (lookups.requested_at, lookups.lookup_id)))
		RETURNING entries, claim, crashes`

	subjectSQL = `SELECT client_id FROM lookups WHERE lookup_id = $1 AND status = 'running'`

	turnSQL = `SELECT lookup_id FROM lookups WHERE client_id = $1 AND kind = 'batch' AND status = 'running'
		ORDER BY requested_at, lookup_id LIMIT 1`

	heldSQL = `SELECT count(*) FROM lookups WHERE lookup_id = $1 AND claim = $2 AND status = 'running'`

	renewSQL    = `UPDATE lookups SET claimed_until = $1 WHERE lookup_id = $2 AND claim = $3 AND status = 'running'`
	progressSQL = `UPDATE lookups SET claimed_until = $1, crashes = 0 WHERE lookup_id = $2 AND claim = $3 AND status = 'running'`
	giveBackSQL = `UPDATE lookups SET claimed_until = $1, crashes = 0, claimed_by = NULL WHERE lookup_id = $2 AND claim = $3 AND status = 'running'`
	completeSQL = `UPDATE lookups SET status = 'completed', ended_at = $1 WHERE lookup_id = $2 AND claim = $3 AND status = 'running'`

	// Where no other process can be alive ($2), whoever else holds a claim is dead.
	lostSQL = `SELECT lookup_id, client_id, kind, claim FROM lookups WHERE status = 'running'
		AND (claimed_until <= $1 OR $2 <> '' AND claimed_by IS NOT NULL AND claimed_by <> $2) ORDER BY claimed_until LIMIT $3`
	requeueSQL = `UPDATE lookups SET claimed_by = NULL, claimed_until = $1, claim = claim + 1 WHERE lookup_id = $2 AND claim = $3 AND status = 'running'`
)

const answerColumns = "lookup_id,position,format,status,is_business,business_name,business_address,error_code,answered_at,request_id"

// segmentEntries is how many entries share a row of lookup_entries: as many as
// the longest page, so that a page reads two rows at most, and a batch of ten
// thousand costs the writer a hundred rows.
const segmentEntries = pageMax

// storedEntry is an entry with what its text decided; without a status it is the register's to answer.
type storedEntry struct {
	Country    string   `json:"c"`
	Number     string   `json:"n"`
	Format     Format   `json:"f"`
	Status     Status   `json:"s,omitempty"`
	IsBusiness Business `json:"b,omitempty"`
	ErrorCode  string   `json:"e,omitempty"`
}

func segments(id string, stored []storedEntry) (rows [][]any, err error) {
	for first := 0; first < len(stored); first += segmentEntries {
		text, err := json.Marshal(stored[first:min(first+segmentEntries, len(stored))])
		if err != nil {
			return nil, fmt.Errorf("encode entries: %w", err)
		}
		rows = append(rows, []any{id, first, string(text)})
	}
	return rows, nil
}

// span is the entries of a batch from one position up to another.
type span struct {
	id       string
	from, to int
}

// eachEntry hands over the stored entries of a span.
func eachEntry(r db.Reader, s span, fn func(position int, e storedEntry)) error {
	rows, err := r.Query(segmentsSQL, s.id, s.from-segmentEntries, s.to)
	if err != nil {
		return fmt.Errorf("read entries of %s: %w", s.id, err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var first int
		var text string
		if err := scan(&first, &text); err != nil {
			return err
		}
		var stored []storedEntry
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			return fmt.Errorf("read entries of %s from %d: %w", s.id, first, err)
		}
		for i, e := range stored {
			if position := first + i; position >= s.from && position < s.to {
				fn(position, e)
			}
		}
		return nil
	})
}

// readAnswers reads what was learnt about the entries from one position up to another.
func readAnswers(r db.Reader, id string, from, to int) (map[int]*Result, error) {
	rows, err := r.Query(answersSQL, id, from, to)
	if err != nil {
		return nil, fmt.Errorf("read answers of %s: %w", id, err)
	}
	answers := map[int]*Result{}
	err = rows.Each(func(scan func(...any) error) error {
		var position int
		var name, address, code, request *string
		var at *int64
		a := &Result{}
		if err := scan(&position, &a.Format, &a.Status, &a.IsBusiness, &name, &address, &code, &at, &request); err != nil {
			return err
		}
		a.BusinessName, a.BusinessAddress, a.ErrorCode, a.RequestID = orEmpty(name), orEmpty(address), orEmpty(code), orEmpty(request)
		if at != nil {
			a.AnsweredAt = db.FromMicros(*at)
		}
		answers[position] = a
		return nil
	})
	return answers, err
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func readPage(r db.Reader, head *header, from, to int) ([]Validation, error) {
	answers, err := readAnswers(r, head.id, from, to)
	if err != nil {
		return nil, err
	}
	page := make([]Validation, 0, to-from)
	err = eachEntry(r, span{head.id, from, to}, func(position int, e storedEntry) {
		page = append(page, validationOf(head, position, e, answers[position]))
	})
	if err == nil && len(page) != to-from {
		err = fmt.Errorf("read entries of %s: %d of %d are there", head.id, len(page), to-from)
	}
	return page, err
}

func answerRow(id string, position int, a Result) []any {
	var at any
	if !a.AnsweredAt.IsZero() {
		at = db.Micros(a.AnsweredAt)
	}
	return []any{id, position, string(a.Format), string(a.Status), string(a.IsBusiness),
		db.Null(a.BusinessName), db.Null(a.BusinessAddress), db.Null(a.ErrorCode), at, db.Null(a.RequestID)}
}

package lookup

import (
	"encoding/json"
	"fmt"

	"tributary/internal/db"
)

// The statements. A running batch that is never due waits for its turn.
const (
	findSQL = `SELECT name, status, entries, requested_at FROM lookups WHERE lookup_id = $1 AND client_id = $2 AND kind = $3`

	openBatchesSQL = `SELECT count(*) FROM lookups WHERE client_id = $1 AND kind = 'batch' AND status = 'running'`

	segmentsSQL = `SELECT first, entries FROM lookup_entries WHERE lookup_id = $1 AND first > $2 AND first < $3 ORDER BY first`

	answersSQL = `SELECT position, format, status, is_business, business_name, business_address, error_code, answered_at, request_id
		FROM lookup_answers WHERE lookup_id = $1 AND position >= $2 AND position < $3`

	cancelSQL = `UPDATE lookups SET ended_at = CASE WHEN status = 'running' THEN $1 ELSE ended_at END,
			status = CASE WHEN status = 'running' THEN 'canceled' ELSE status END,
			due_at = NULL, lease_until = NULL, lease_node = NULL
		WHERE lookup_id = $2 AND client_id = $3 AND kind = 'batch' RETURNING status`

	// The oldest running batch of a client has its turn, unless it is being worked.
	turnSQL = `UPDATE lookups SET due_at = $1 WHERE lookup_id = (SELECT lookup_id FROM lookups
			WHERE client_id = $2 AND kind = 'batch' AND status = 'running' ORDER BY requested_at, lookup_id LIMIT 1)
		AND due_at IS NULL`

	beginSQL    = `UPDATE lookups SET crashes = crashes + 1 WHERE lookup_id = $1 RETURNING entries, crashes`
	heldSQL     = `SELECT count(*) FROM lookups WHERE lookup_id = $1 AND lease_token = $2 AND lease_until IS NOT NULL`
	progressSQL = `UPDATE lookups SET crashes = 0 WHERE lookup_id = $1`
	completeSQL = `UPDATE lookups SET status = 'completed', ended_at = $1 WHERE lookup_id = $2`
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
		a.BusinessName, a.BusinessAddress, a.ErrorCode, a.RequestID = orEmpty(name), orEmpty(address), orEmpty(code),
			orEmpty(request)
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

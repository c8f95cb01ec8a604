package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/result"
)

// Documents that others sent stand beside what clients submit: their ids are of one kind and in one order, so one
// cursor goes over both.

// Direction says whether documents were sent or received.
type Direction string

// The directions of a list; the zero value is Sent.
const (
	Sent     Direction = result.Sent
	Received Direction = result.Received
	All      Direction = "ALL"
)

// receivedOf finds a received document without reading more than a small result.
func receivedOf(r db.Reader, scope, id string) (at outcome, err error) {
	at = outcome{id: id, winner: id, settled: true, received: true}
	var there bool
	err = r.Row(fmt.Sprintf(`SELECT result IS NOT NULL, coalesce(octet_length(result), 0),
		CASE WHEN octet_length(result) <= %d THEN result END FROM received WHERE client_id = $1 AND operation_id = $2`, readSmall),
		scope, id).Scan(&there, &at.length, &at.stored)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return at, filing.Unknown()
	case err != nil:
		return at, fmt.Errorf("read received document %s: %w", id, err)
	case !there:
		return at, result.Expired()
	}
	if at.stored != nil {
		at.text.Text = *at.stored
	}
	return at, nil
}

// kept is the stored result as it stands.
func (at *outcome) kept(r db.Reader) (text result.Kept, err error) {
	if !at.received {
		return result.ReadKept(r, at.winner)
	}
	err = r.Row("SELECT coalesce(result, '') FROM received WHERE operation_id = $1", at.id).Scan(&text.Text)
	return text, err
}

// whole is the stored result, read.
func (at *outcome) whole(r db.Reader) (*result.Result, error) {
	if !at.received {
		return result.Stored(r, at.winner)
	}
	text, err := at.kept(r)
	if err != nil {
		return nil, err
	}
	whole := &result.Result{}
	if err := json.Unmarshal([]byte(text.Text), whole); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", at.id, err)
	}
	return whole, nil
}

// receivedLook is how many of a client's received documents one page looks at: what several filters leave out together
// is walked past, a bounded stretch at a time.
const receivedLook = 2000

// receivedHead is what a list reads of a result, in characters: its row, with all warnings that it can have.
const receivedHead = 64 << 10

// listReceived answers received documents, newest first.
func (s *Ledger) listReceived(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, next = nil, ""
		ids, err := receivedIDs(r, scope, f)
		if err != nil || len(ids) == 0 {
			return err
		}
		if len(ids) == receivedLook {
			next = ids[len(ids)-1]
		}
		text, args := f.receivedText(s.db, scope, ids)
		rows, err := r.Query(text, args...)
		if err != nil {
			return err
		}
		size := 0
		return rows.Each(func(scan func(...any) error) error {
			var id string
			kept := result.Kept{}
			if err := scan(&id, &kept.Text); err != nil {
				return err
			}
			if len(list) == f.Limit || size > pageBytesMax {
				next = list[len(list)-1].OperationID
				return nil
			}
			row, _, err := kept.Row()
			if err != nil {
				return fmt.Errorf("read the result of %s: %w", id, err)
			}
			size += len(kept.Text)
			list = append(list, row)
			return nil
		})
	})
	if err != nil {
		return nil, "", fmt.Errorf("list received documents: %w", err)
	}
	return list, next, nil
}

// receivedIDs are the newest candidates behind a cursor.
func receivedIDs(r db.Reader, scope string, f Filter) ([]string, error) {
	where, args := "client_id = $1", []any{scope}
	if f.Number != "" {
		args = append(args, f.Number)
		where += " AND number = $2"
	}
	if f.After != "" {
		args = append(args, f.After)
		where += " AND operation_id < $" + strconv.Itoa(len(args))
	}
	return collectIDs(r, "SELECT operation_id FROM received WHERE "+where+" ORDER BY operation_id DESC LIMIT "+
		strconv.Itoa(receivedLook), args...)
}

// receivedText asks for the rows of those candidates that a filter allows; no line of a document is read where it stands
// behind the row.
func (f Filter) receivedText(d *db.DB, scope string, ids []string) (string, []any) {
	where, args := "client_id = $1 AND "+d.In("operation_id", "$2")+" AND result IS NOT NULL", []any{scope, db.Strings(ids)}
	add := func(condition string, value any) {
		args = append(args, value)
		where += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	for _, narrow := range [][2]string{{"status =", string(f.Status)}, {"country =", f.Country}, {"sender_id =", f.SupplierID}} {
		if narrow[1] != "" {
			add(narrow[0], narrow[1])
		}
	}
	if !f.From.IsZero() {
		add("dated_at >=", db.Micros(f.From))
	}
	if !f.To.IsZero() {
		add("dated_at <=", db.Micros(f.To))
	}
	return fmt.Sprintf("SELECT operation_id, substr(result, 1, %d) FROM received WHERE ", receivedHead) + where + " ORDER BY operation_id DESC LIMIT " +
		strconv.Itoa(f.Limit+1), args
}

// listAll merges both directions. A list that ended early says how far down it is complete: below that nothing of the
// other one is shown yet, and the next page begins there.
func (s *Ledger) listAll(ctx context.Context, scope string, f Filter) (list []*result.Row, next string, err error) {
	sent, sentTo, err := s.listSent(ctx, scope, f)
	if err != nil {
		return nil, "", err
	}
	received, receivedTo, err := s.listReceived(ctx, scope, f)
	if err != nil {
		return nil, "", err
	}
	next = max(sentTo, receivedTo)
	list = slices.DeleteFunc(append(sent, received...), func(row *result.Row) bool { return row.OperationID < next })
	slices.SortFunc(list, func(a, b *result.Row) int { return strings.Compare(b.OperationID, a.OperationID) })
	if len(list) > f.Limit {
		list, next = list[:f.Limit], list[f.Limit-1].OperationID
	}
	return list, next, nil
}

const relatedMax = 100

// relate finds the documents of the other direction, and of the same sender, that belong to one.
func relate(r db.Reader, scope string, to *result.Result) error {
	if to.Response != nil {
		to.Related = []result.Related{{OperationID: to.Response.OperationID, Direction: result.Received, Relation: result.Answers}}
		return nil
	}
	if to.Number == nil {
		return nil
	}
	if to.Direction == result.Received {
		return relateReceived(r, scope, to)
	}
	if to.Supplier.ID == nil {
		return nil
	}
	// What one company of the client sent, another may have received; and somebody may have answered it.
	return collectRelated(r, to, `SELECT operation_id, 'RECEIVED', 'SAME_DOCUMENT' FROM received
			WHERE client_id = $1 AND number = $2 AND sender_id = $3 AND status = 'SUCCESS'
		UNION ALL SELECT operation_id, 'RECEIVED', 'REFERRED_BY' FROM received_references
			WHERE client_id = $1 AND number = $2 AND company_id = $3 ORDER BY 1`, scope, *to.Number, *to.Supplier.ID)
}

func relateReceived(r db.Reader, scope string, to *result.Result) error {
	var company, sender, key string
	err := r.Row("SELECT company_id, sender_id, sender_key FROM received WHERE client_id = $1 AND operation_id = $2", scope,
		to.OperationID).Scan(&company, &sender, &key)
	if err != nil || company == "" {
		return err
	}
	return collectRelated(r, to, `SELECT operation_id, 'SENT', 'SAME_DOCUMENT' FROM operations
			WHERE client_id = $1 AND number = $2 AND supplier_id = $3 AND $3 <> '' AND status <> 'FAILURE'
		UNION ALL SELECT o.operation_id, 'SENT', 'REFERS_TO' FROM received_references f
			JOIN operations o ON o.client_id = f.client_id AND o.number = f.number AND o.supplier_id = f.company_id
			WHERE f.client_id = $1 AND f.operation_id = $4 AND o.status <> 'FAILURE'
		UNION ALL SELECT o.operation_id, 'RECEIVED', 'REFERS_TO' FROM received_references f
			JOIN received o ON o.client_id = f.client_id AND o.number = f.number AND o.company_id = f.company_id AND o.sender_key = f.sender_key
			WHERE f.client_id = $1 AND f.operation_id = $4 AND o.status = 'SUCCESS'
		UNION ALL SELECT f.operation_id, 'RECEIVED', 'REFERRED_BY' FROM received_references f
			WHERE f.client_id = $1 AND f.number = $2 AND f.company_id = $5 AND f.sender_key = $6
		UNION ALL SELECT operation_id, 'SENT', 'ANSWERED_BY' FROM responses WHERE client_id = $1 AND document_id = $4 ORDER BY 1`,
		scope, *to.Number, sender, to.OperationID, company, key)
}

func collectRelated(r db.Reader, to *result.Result, query string, args ...any) (err error) {
	to.Related, err = db.Collect(r, func(scan func(...any) error) (one result.Related, err error) {
		return one, scan(&one.OperationID, &one.Direction, &one.Relation)
	}, query+" LIMIT "+strconv.Itoa(relatedMax), args...)
	if err != nil {
		return fmt.Errorf("look for related documents: %w", err)
	}
	if to.Direction == result.Received {
		return referTo(r, to)
	}
	return nil
}

// referTo names the transaction of the client's own that a received document refers to.
func referTo(r db.Reader, to *result.Result) error {
	for _, one := range to.Related {
		if one.Direction != result.Sent || one.Relation != result.RefersTo {
			continue
		}
		var id string
		if err := r.Row("SELECT transaction_id FROM operations WHERE operation_id = $1", one.OperationID).Scan(&id); err != nil {
			return err
		}
		to.ReferenceID = &id
	}
	return nil
}

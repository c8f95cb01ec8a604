package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
)

// Batch is a batch of validations as the client reads it.
type Batch struct {
	BatchID     string       `json:"batch_id"`
	BatchName   *string      `json:"batch_name"`
	Validations []Validation `json:"validations"`
	RequestedAt time.Time    `json:"requested_at"`
	Status      Progress     `json:"status"`
	ResultURL   string       `json:"batch_validation_result_url"`
	NextCursor  *Cursor      `json:"next_cursor,omitempty"` // nil where the answer is not a page
}

// Cursor is where the next page begins, opaque to clients. The empty one says
// that there is none and is null on the wire.
type Cursor string

// MarshalJSON writes the empty cursor as null.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// The form of a cursor: a mark, so that a number from elsewhere is not taken
// for one, and the position of the next entry.
const cursorMark = "v"

func cursorAt(position int) Cursor { return Cursor(cursorMark + strconv.Itoa(position)) }

func (c Cursor) position(entries int) (int, error) {
	if c == "" {
		return 0, nil
	}
	position, err := strconv.Atoi(string(c[1:]))
	if err != nil || position < 0 || position > entries || cursorAt(position) != c {
		return 0, fault.New(fault.Invalid, "invalid cursor").
			With(fault.At("cursor", fault.FieldNotValid, "must be a next_cursor of this batch"))
	}
	return position, nil
}

// CreateBatch stores a batch and answers all its entries: those their text
// decides are final, the others are pending.
func (l *Lookups) CreateBatch(ctx context.Context, clientID string, body []byte) (Batch, error) {
	request, err := decodeBatch(body)
	if err != nil {
		return Batch{}, err
	}
	head := &header{id: ids.New(), clientID: clientID, kind: kindBatch, name: request.name, status: Running,
		entries: len(request.entries)}
	stored, err := l.create(ctx, head, request.entries)
	if err != nil {
		return Batch{}, err
	}
	batch := l.batch(head)
	batch.Validations = make([]Validation, len(stored))
	for i, e := range stored {
		batch.Validations[i] = validationOf(head, i, e, nil)
	}
	return batch, nil
}

func (l *Lookups) batch(head *header) Batch {
	return Batch{
		BatchID: head.id, BatchName: orNull(head.name), RequestedAt: wireTime(head.requestedAt), Status: head.status,
		ResultURL: l.cfg.BaseURL + kindBatch.path(head.id),
	}
}

// Batch answers a batch with one page of its entries, in the order in which
// they were sent. Limit 0 is the default; an empty cursor begins at the first.
func (l *Lookups) Batch(ctx context.Context, clientID, id string, limit int, cursor string) (batch Batch, err error) {
	if limit == 0 {
		limit = pageDefault
	}
	if limit < 1 || limit > pageMax {
		return Batch{}, fault.New(fault.Invalid, "invalid page size").
			With(fault.At("limit", fault.FieldNotValid, "must be between 1 and %d", pageMax))
	}
	err = l.db.Read(ctx, func(r db.Reader) error {
		head, err := find(r, kindBatch, clientID, id)
		if err != nil {
			return err
		}
		from, err := Cursor(cursor).position(head.entries)
		if err != nil {
			return err
		}
		to := min(from+limit, head.entries)
		batch = l.batch(head)
		if batch.Validations, err = readPage(r, head, from, to); err != nil {
			return err
		}
		batch.NextCursor = new(Cursor)
		if to < head.entries {
			*batch.NextCursor = cursorAt(to)
		}
		return nil
	})
	if err != nil {
		return Batch{}, err
	}
	return batch, nil
}

// CancelBatch ends a batch without an event. Entries without an answer stay
// so; those with one keep it. Canceling again changes nothing; a batch that is
// completed cannot be canceled.
func (l *Lookups) CancelBatch(ctx context.Context, clientID, id string) error {
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Lock(turnLock(clientID)); err != nil {
			return err
		}
		var status Progress
		err := tx.Row(cancelSQL, db.Micros(tx.Now()), id, clientID).Scan(&status)
		switch {
		case errors.Is(err, db.ErrNoRows):
			return notFound(kindBatch)
		case err != nil:
			return err
		case status == Completed:
			return fault.New(fault.Conflict, "the batch is completed and cannot be canceled").
				With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: "the batch is completed"})
		}
		tx.OnCommit(func() { l.halt(id) })
		return nextTurn(tx, clientID)
	})
	if err != nil {
		return fmt.Errorf("cancel batch validation: %w", err)
	}
	return nil
}

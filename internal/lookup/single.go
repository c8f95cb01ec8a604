package lookup

import (
	"context"
	"time"

	"tributary/internal/db"
	"tributary/internal/ids"
)

// Single is a single validation as the client reads it. Its status is pending
// until the register has been asked.
type Single struct {
	Validation
	RequestedAt time.Time `json:"requested_at"`
	ResultURL   string    `json:"single_validation_result_url"`
}

// CreateSingle stores a single validation. Like a batch it ends with an event,
// also where the text has decided already.
func (l *Lookups) CreateSingle(ctx context.Context, clientID string, body []byte) (Single, error) {
	entry, err := decodeSingle(body)
	if err != nil {
		return Single{}, err
	}
	head := &header{id: ids.New(), clientID: clientID, kind: kindSingle, status: Running, entries: 1}
	stored, err := l.create(ctx, head, []Entry{entry})
	if err != nil {
		return Single{}, err
	}
	return l.single(head, validationOf(head, 0, stored[0], nil)), nil
}

func (l *Lookups) single(head *header, v Validation) Single {
	return Single{Validation: v, RequestedAt: wireTime(head.requestedAt), ResultURL: l.cfg.BaseURL + kindSingle.path(head.id)}
}

// Single answers a single validation.
func (l *Lookups) Single(ctx context.Context, clientID, id string) (single Single, err error) {
	err = l.db.Read(ctx, func(r db.Reader) error {
		head, err := find(r, kindSingle, clientID, id)
		if err != nil {
			return err
		}
		page, err := readPage(r, head, 0, 1)
		if err != nil {
			return err
		}
		single = l.single(head, page[0])
		return nil
	})
	return single, err
}

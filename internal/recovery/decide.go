package recovery

import (
	"context"

	"tributary/internal/adoption"
	"tributary/internal/db"
)

// Held is an operation that waits for a person.
type Held = adoption.Held

// HeldOperations lists them.
func HeldOperations(r db.Reader) ([]Held, error) { return adoption.HeldList(r) }

// Word is what a person says of an operation that waits.
type Word struct {
	Adopt  bool   // the document at the authority is its own; false: it is not registered, file it
	Number string // of that document, where the authority has no list
	ID     string // the authority's of it
}

// Decide ends the wait of an operation of which nobody could tell whether the
// authority holds it: a person has looked. also joins the commit that stores the
// decision, for whoever keeps a log; it may be nil.
func (s *Recovery) Decide(ctx context.Context, operationID string, said Word, also func(tx *db.Tx, h Held) error) error {
	decision := adoption.File
	if said.Adopt {
		decision = adoption.Adopt
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		h, err := adoption.Decide(tx, operationID, decision, adoption.Gap{Number: said.Number, ID1: said.ID})
		if err != nil || also == nil {
			return err
		}
		return also(tx, h)
	})
	if err != nil {
		return err
	}
	_, err = s.cfg.Filing.Retry(ctx, operationID, nil)
	return err
}

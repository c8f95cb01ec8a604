package recovery

import (
	"context"

	"tributary/internal/adoption"
	"tributary/internal/db"
)

// Decide ends the wait of an operation of which nobody could tell whether the
// authority holds it: a person has looked. doc names the document where the
// authority has no list, and is empty otherwise. also joins the commit that
// stores the decision, for whoever keeps a log; it may be nil.
func (s *Recovery) Decide(ctx context.Context, operationID string, said adoption.Decision, doc adoption.Gap, also func(tx *db.Tx, h adoption.Held) error) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		h, err := adoption.Decide(tx, operationID, said, doc)
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

package lease

import (
	"cmp"
	"context"
	"fmt"

	"tributary/internal/db"
)

// recall makes due what lies further ahead than its own pause could have put it: a
// clock stored it that was ahead and has been put right since. Such a row would wait
// for as long as that clock was wrong. Doing a row's work early changes nothing: what
// is true stands in its owner's tables and is read first.
func (q *Queue[T]) recall(ctx context.Context, d *db.DB) error {
	var texts []string
	if q.Longest != "" {
		texts = append(texts, "UPDATE "+q.Table+" SET due_at = "+cmp.Or(q.Recalled, "$1")+", lease_until = NULL, lease_node = NULL,"+
			" lease_token = lease_token + 1 WHERE due_at > $1 AND due_at > $1 + ("+q.Longest+")")
	}
	if q.Feed != nil && q.Feed.Longest != "" {
		texts = append(texts, "UPDATE "+q.Feed.Table+" SET due_at = $1 WHERE due_at > $1 AND due_at > $1 + ("+
			q.Feed.Longest+")")
	}
	if len(texts) == 0 {
		return nil
	}
	err := d.Write(ctx, func(tx *db.Tx) error {
		for _, text := range texts {
			if err := tx.Exec(text, db.Micros(tx.Now())); err != nil {
				return err
			}
		}
		tx.Wake(q.Table)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for rows of %s that a wrong clock has put off: %w", q.Table, err)
	}
	return nil
}

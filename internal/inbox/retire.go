package inbox

import (
	"context"
	"fmt"

	"tributary/internal/db"
)

// Retire destroys what authorities told us about operations whose years are
// over, in the caller's write. Their names stay: a repetition is still nothing.
func Retire(tx *db.Tx, d *db.DB, operations []string) error {
	err := tx.Exec("UPDATE inbox_messages SET raw = '', receipt = '{}' WHERE "+d.In("operation_id", "$1"),
		db.Strings(operations))
	if err != nil {
		return fmt.Errorf("destroy messages about retired operations: %w", err)
	}
	return nil
}

// KeptDays is how long messages stay that no filing has taken.
const KeptDays = 90

// Forget deletes messages that match nothing and whose ids, which begin with the
// time of arrival, are below one, but for clients under a legal hold, in steps that
// keep no other write waiting.
func Forget(ctx context.Context, d *db.DB, held []string, before string) (int, error) {
	return d.Trim(ctx, db.Trim{Table: "inbox_messages", Key: "message_id", By: "message_id", Before: before,
		Of:    "taken_at IS NULL AND tries > 0",
		Where: "due_at IS NULL AND lease_until IS NULL AND NOT coalesce(" + d.In("client_id", "$1") + ", false)",
		Args:  []any{db.Strings(held)}})
}

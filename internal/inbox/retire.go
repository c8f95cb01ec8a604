package inbox

import (
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

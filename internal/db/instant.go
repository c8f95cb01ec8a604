package db

import (
	"database/sql"
	"fmt"
	"time"
)

// NullInstant scans an instant that may be NULL, which becomes the zero time.
func NullInstant(to *time.Time) sql.Scanner { return nullInstant{to} }

type nullInstant struct{ to *time.Time }

// Scan reads microseconds.
func (n nullInstant) Scan(v any) error {
	switch us := v.(type) {
	case nil:
		*n.to = time.Time{}
	case int64:
		*n.to = FromMicros(us)
	default:
		return fmt.Errorf("an instant is %T", v)
	}
	return nil
}

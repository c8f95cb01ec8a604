package db

import (
	"database/sql"
	"fmt"
	"strconv"
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

// TimeOfID is the time that an id begins with.
func TimeOfID(id string) (time.Time, error) {
	if len(id) < 13 {
		return time.Time{}, fmt.Errorf("id %q is too short to begin with a time", id)
	}
	digits := id[:12]
	if id[8] == '-' { // a UUID
		digits = id[:8] + id[9:13]
	}
	ms, err := strconv.ParseInt(digits, 16, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("id %q does not begin with a time", id)
	}
	return time.UnixMilli(ms).UTC(), nil
}

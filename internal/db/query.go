package db

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// In is the text of "is one of" for a column of type TEXT and the placeholder
// of a list made by [Strings]: one statement whatever the list's length.
func (d *DB) In(column, placeholder string) string {
	if d.Engine() == "postgres" {
		return column + " = ANY(ARRAY(SELECT jsonb_array_elements_text(" + placeholder + "::text::jsonb)))"
	}
	return column + " IN (SELECT value FROM json_each(" + placeholder + "))"
}

// Strings is a list as one argument, for [DB.In].
func Strings(list []string) string {
	if list == nil {
		return "[]" // not null: that is no list
	}
	text, _ := json.Marshal(list) // strings always encode
	return string(text)
}

// Null is v, or NULL where v is the zero value.
func Null[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// PlanByValue has the statements of this snapshot planned for the values they
// carry. PostgreSQL otherwise plans a statement that it has seen five times once
// and for all, for values of average frequency; a search for a value that a
// million rows have would then read and sort them all instead of walking its
// index from the end. SQLite plans every statement without looking at values.
func (d *DB) PlanByValue(r Reader) error {
	if d.Engine() != "postgres" {
		return nil
	}
	var mode string
	if err := r.Row("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)").Scan(&mode); err != nil {
		return fmt.Errorf("plan by value: %w", err)
	}
	return nil
}

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

// Storable reports whether a text could be stored at all: PostgreSQL keeps
// neither NUL nor broken UTF-8, so nothing with them in it is ever known, and
// asking for it would be an error.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// Cell keeps a program for tables from taking a text for a formula. Those of East
// Asian locales take the full-width forms of the signs for the plain ones.
func Cell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

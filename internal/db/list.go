package db

import "encoding/json"

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

package db

import (
	"errors"
	"testing"
)

func TestAnUpdateOfOneRowIsWrittenForMany(t *testing.T) {
	t.Parallel()
	columns := map[string]string{"id": "text", "stage": "text", "due_at": "bigint", "report": "bytea"}
	for sql, want := range map[string]string{
		"UPDATE o SET stage = $2, due_at = $3, tries = tries + 1 WHERE id = $1 AND stage = $4 AND EXISTS (SELECT 1 FROM f WHERE f.id = o.id)": "UPDATE o SET stage = v.c2, due_at = v.c3, tries = tries + 1 " +
			"FROM unnest($1::text[],$2::text[],$3::bigint[],$4::text[]) AS v(c1,c2,c3,c4) WHERE id = v.c1 AND stage = v.c4 AND EXISTS (SELECT 1 FROM f WHERE f.id = o.id)",
		"UPDATE o SET report = $1 WHERE id = $2": "UPDATE o SET report = v.c1 FROM unnest($1::bytea[],$2::text[]) AS v(c1,c2) WHERE id = v.c2",
		"UPDATE o SET stage = CASE WHEN again THEN 'p' ELSE CAST($2 AS TEXT) END, due_at = coalesce(CAST($3 AS BIGINT), due_at) WHERE id = $1": "UPDATE o SET stage = CASE WHEN again THEN 'p' ELSE CAST(v.c2 AS TEXT) END, " +
			"due_at = coalesce(CAST(v.c3 AS BIGINT), due_at) FROM unnest($1::text[],$2::text[],$3::bigint[]) AS v(c1,c2,c3) WHERE id = v.c1",
		"UPDATE o SET due_at = due_at + $2 WHERE id = $1":            "",
		"UPDATE o SET stage = coalesce(stage, $2) WHERE id = $1":     "",
		"UPDATE o SET stage = $2 WHERE id = $1 AND due_at > $3":      "",
		"UPDATE o SET stage = $3 WHERE id = $1":                      "", // the second is nowhere
		"UPDATE o SET stage = $1":                                    "",
		"DELETE FROM o WHERE id = $1":                                "",
		"INSERT INTO o (id) VALUES ($1) ON CONFLICT DO NOTHING":      "",
		"UPDATE o SET stage = (SELECT 1 WHERE id = $1) WHERE id = 1": "",
	} {
		set, err := updateSetOf(sql, columns)
		if set.sql != want || (want == "") != errors.Is(err, errNotASet) {
			t.Errorf("%s\nbecomes\n%s (%v), want\n%s", sql, set.sql, err, want)
		}
	}
	if _, err := updateSetOf("UPDATE o SET colour = $2 WHERE id = $1", columns); err == nil || errors.Is(err, errNotASet) {
		t.Errorf("a column that is not known: %v", err)
	}
}

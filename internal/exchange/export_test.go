package exchange

import (
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/operation"
)

// Statement is a text and what it is asked with.
type Statement struct {
	Text string
	Args []any
}

// Statements are those that look for calls: about an operation, sent since, and of a lane, made before.
func Statements(d *db.DB, operationID, lane string, sinceBefore [2]time.Time) map[string]Statement {
	since, before := sinceBefore[0], sinceBefore[1]
	stored := operation.IDAt(before.Add(recordedWithin))
	return map[string]Statement{
		"last told":   {lastToldSQL(d), []any{db.Strings([]string{operationID}), From(since)}},
		"sent before": {sentBeforeSQL, []any{operationID, "x"}},
		"old lanes":   {oldLanesSQL, []any{strings.Split(lane, "|")[0], db.Micros(before), stored}},
		"old links":   {oldLinksSQL, []any{operationID, "", operation.IDAt(before), callLinksLook}},
	}
}

package filing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/exchange"
)

// Backoff is the pause after the n-th failure in a row, with a given jitter in [0, 1).
func Backoff(base time.Duration, n int64, jitter float64) time.Duration {
	return exchange.Ladder{Base: base, Most: retryMax, Jitter: func() float64 { return jitter }}.Pause(n)
}

// Limits that tests go to and past.
const (
	WaitingMax   = waitingMax
	CrashesMax   = crashesMax
	BatchMax     = batchMax
	RetryMax     = retryMax
	RetryBase    = retryBaseDefault
	LanesAtOnce  = lanesAtOnce
	SuspectsLook = suspectsLook
)

// EarlierAtMost lowers the limit of what a correction is handed of others.
func (s *Service) EarlierAtMost(bytes int64) { s.earlierMax = bytes }

// TellAtOnce lowers how many sales of a period are told in one commit.
func (s *Service) TellAtOnce(sales int) { s.periods.AtOnce = sales }

// What may be in work at the same time, in bytes of bodies.
const (
	TakenBytesMax    = takenBytesMax
	WorkBytesMax     = workBytesMax
	EndpointBytesMax = endpointBytesMax
)

// SomebodyWaits reports whether a lane was due without a slot when last looked at.
func (s *Service) SomebodyWaits() bool {
	_, waiting := s.pump.Beside("")
	return waiting
}

// BatchBeside bounds a batch of so many beside others at work.
func BatchBeside(most, working int, unhurried bool) int { return batchBeside(most, working, unhurried) }

// Within says how many of what is due are taken together.
func Within(most int64, sizes ...int64) int {
	var due []candidate
	for _, n := range sizes {
		due = append(due, candidate{bytes: n})
	}
	return len(within(due, most))
}

// Shift is one move of one operation, for the test of the table.
type Shift struct {
	Move Move
	ID   string
	From Stage
}

// Apply makes a move, with plausible values for its columns.
func Apply(tx *db.Tx, s Shift) error {
	t := transition{move: s.Move, id: s.ID, from: s.From}
	r, _ := ruleOf(s.Move)
	for _, column := range r.columns {
		t.values = append(t.values, map[string]any{"due_at": int64(1), "sent_at": int64(1), "settled_at": int64(1),
			"crashes": int64(0), "status": "FAILURE", "behind": nil}[column])
		if t.values[len(t.values)-1] == nil && column != "behind" {
			t.values[len(t.values)-1] = "text"
		}
	}
	if s.Move == hurried {
		t.values = append(t.values, int64(0))
	}
	return apply(tx, []transition{t})
}

// Allowed lists where a move leads from a stage; "": nowhere.
func Allowed(m Move, from Stage) Stage {
	r, _ := ruleOf(m)
	if !slices.Contains(r.from, from) {
		return ""
	}
	return r.target(from)
}

// Moves lists all of them.
func Moves() (list []Move) {
	for _, r := range rules {
		list = append(list, r.move)
	}
	return list
}

// Statement is a text and what it is asked with.
type Statement struct {
	Text string
	Args []any
}

// VisitStatement is that by which a visit takes operations.
func VisitStatement(d *db.DB, ids []string) Statement {
	return Statement{countVisitSQL(d), []any{db.Micros(d.Now()), db.Strings(ids)}}
}

// LaneStatements look for lanes of a supplier, and of an authority; by the index that each should use.
func LaneStatements(d *db.DB) map[string]Statement {
	return map[string]Statement{
		"lanes_supplier": {supplierLanesSQL, []any{"c1", "s1"}},
		"lanes_endpoint": {endPausesSQL + d.In("reason", "$4"),
			[]any{"XX", db.Micros(d.Now()), "test", db.Strings([]string{"held"})}},
	}
}

// Stages prints the table of moves in Markdown.
func Stages() string {
	var b strings.Builder
	b.WriteString("| From | To | Move | What must hold |\n|---|---|---|---|\n")
	for _, r := range rules {
		from := make([]string, len(r.from))
		for i, stage := range r.from {
			from[i] = "`" + string(stage) + "`"
		}
		to := "the same"
		if r.to != "" {
			to = "`" + string(r.to) + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(from, ", "), to, r.move, r.when)
	}
	return b.String()
}

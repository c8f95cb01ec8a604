package filing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
)

// Move names a way in which an operation changes its stage, or its place in it.
type Move string

// The moves; see rules for what each of them asks for.
const (
	promoted     Move = "promoted"
	joined       Move = "joined"
	blocked      Move = "blocked"
	unblocked    Move = "unblocked"
	moved        Move = "moved"
	putOff       Move = "put off"
	notYetRead   Move = "not yet read"
	prepared     Move = "prepared"
	signedAnew   Move = "signed anew"
	marked       Move = "sent"
	notTaken     Move = "not taken"
	unknown      Move = "unknown"
	notYetShown  Move = "not yet shown"
	undecided    Move = "undecided"
	relinked     Move = "relinked"
	takenForSent Move = "taken for sent"
	heldBack     Move = "held back"
	renumbered   Move = "renumbered"
	setAside     Move = "set aside"
	keptAside    Move = "kept aside"
	begunAnew    Move = "begun anew"
	takenUp      Move = "taken up"
	hurried      Move = "hurried"
	spokenOf     Move = "spoken of"
	settled      Move = "settled"
)

// rule is one row of the table of moves. Whatever is not in it cannot happen.
type rule struct {
	move Move
	from []Stage
	to   Stage  // "": it stays where it is
	when string // what must hold, for people

	columns  []string // that the transition gives values for, $4 and on
	also     string   // what changes besides, in SQL
	guard    string   // what must hold besides stage and status, in SQL
	optional bool     // the guard may fail: then nothing changes, and nobody minds
	uncounts bool     // takes the crash count back
}

// stored is true of operations whose exact bytes are on disk.
const stored = "EXISTS (SELECT 1 FROM filings f WHERE f.operation_id = operations.operation_id AND length(f.report) > 0)"

// rules is the state machine. ARCHITECTURE.md prints it.
var rules = []rule{
	{move: promoted, from: []Stage{Waiting}, to: Received, when: "every attempt before it failed", columns: []string{"due_at"}},
	{move: joined, from: []Stage{Waiting}, to: Settled, when: "an attempt before it succeeded; it ends with that one's result",
		columns: []string{"settled_at", "settled_by", "result"}, also: "status = 'SUCCESS', due_at = NULL"},
	{move: blocked, from: []Stage{Received}, to: Blocked, when: "what it corrects, or another correction of it, has not ended",
		columns: []string{"behind"}, also: "due_at = NULL, started_at = NULL, crashes = 0", optional: true,
		guard: "EXISTS (SELECT 1 FROM transactions t WHERE t.client_id = operations.client_id AND t.transaction_id = coalesce($4, operations.reference_id) AND t.success_id IS NULL AND t.open > 0)"},
	{move: unblocked, from: []Stage{Blocked}, to: Received, when: "what it waited for has ended", columns: []string{"due_at"}, also: "behind = NULL"},
	{move: moved, from: []Stage{Received}, to: Received, when: "its original says whose it is: it goes to that supplier's lane",
		columns: []string{"lane", "supplier_id"}, also: "crashes = 0", uncounts: true},
	{move: putOff, from: []Stage{Received}, to: Received, when: "it could not be prepared; it is tried again later",
		columns: []string{"due_at"}, also: "crashes = crashes + 1, doubts = 'internal_error'", uncounts: true},
	{move: notYetRead, from: []Stage{Received}, to: Received, when: "after a restored backup the authority holds what may be its document, and has not shown the lines of that yet; it is asked again",
		columns: []string{"due_at", "doubts"}, also: "tries = tries + 1, crashes = 0", uncounts: true},
	{move: prepared, from: []Stage{Received}, to: Prepared, when: "its exact bytes, and its place in the chain, are stored in the same commit",
		columns: []string{"supplier_id", "pack_version", "due_at"}, also: "doubts = ''", guard: stored},
	{move: signedAnew, from: []Stage{Prepared}, to: Received, when: "the supplier's credentials were replaced; the authority certainly holds nothing of it, and it is in no chain"},
	{move: marked, from: []Stage{Prepared, Sent}, to: Sent, when: "its exact bytes are stored; not one of them leaves before this commit",
		columns: []string{"sent_at"}, also: "tries = tries + 1", guard: stored},
	{move: notTaken, from: []Stage{Prepared, Sent, Pending}, to: Prepared, when: "the authority certainly holds nothing of it; the same bytes go again",
		columns: []string{"due_at", "doubts", "said"}, also: "crashes = 0", uncounts: true},
	{move: unknown, from: []Stage{Sent, Pending}, to: Sent, when: "nobody knows whether the authority holds it; it is asked again",
		columns: []string{"due_at", "doubts"}, also: "tries = tries + 1, crashes = 0, said = NULL", uncounts: true},
	{move: notYetShown, from: []Stage{Sent}, to: Sent, when: "the authority may hold it and not show it yet; it is asked again",
		columns: []string{"due_at"}, also: "crashes = 0", uncounts: true},
	{move: undecided, from: []Stage{Sent, Pending}, to: Pending, when: "the authority has it and has not decided",
		columns: []string{"due_at", "doubts"}, also: "tries = tries + 1, crashes = 0, said = NULL", uncounts: true},
	{move: relinked, from: []Stage{Prepared, Sent, Pending}, to: Received, when: "the authority does not hold it, and the link it hangs on is not the last one there",
		also: "due_at = accepted_at, sent_at = NULL, tries = 0, doubts = '', said = NULL"},
	{move: takenForSent, from: []Stage{Prepared}, to: Sent, when: "a backup was restored: what was unsent then may have been sent since", columns: []string{"sent_at"}},
	{move: heldBack, from: []Stage{Received, Prepared, Sent, Pending}, to: Quarantined, when: "after a restored backup nobody can tell whether a document at the authority is its own, or other documents have every number that it was given; a person decides",
		also: "due_at = NULL, sent_at = NULL, tries = 0, crashes = 0, doubts = ''", uncounts: true},
	{move: renumbered, from: []Stage{Received, Prepared, Sent, Pending}, to: Received, when: "after a restored backup the authority holds another document under the number that our series drew",
		columns: []string{"number", "due_at"}, also: "sent_at = NULL, tries = 0, crashes = 0, doubts = ''", uncounts: true},
	{move: setAside, from: []Stage{Received, Prepared}, to: Quarantined, when: "it was alone in work each time the process ended, and is certainly not at the authority",
		columns: []string{"due_at"}},
	{move: keptAside, from: []Stage{Prepared, Sent, Pending}, when: "the same, but it may be at the authority; or its bytes are lost", also: "due_at = NULL"},
	{move: begunAnew, from: []Stage{Quarantined}, to: Received, when: "an operator releases it, and no bytes were made", columns: []string{"due_at"}, also: "crashes = 0"},
	{move: takenUp, from: []Stage{Quarantined}, to: Prepared, when: "an operator releases it, and its bytes are stored", columns: []string{"due_at"}, also: "crashes = 0", guard: stored},
	{move: hurried, from: []Stage{Received, Prepared, Sent, Pending}, when: "an operator ends its pause", columns: []string{"due_at", "crashes"}, guard: "crashes = $6"},
	{move: spokenOf, from: []Stage{Sent, Pending}, when: "the authority's decision came by itself and is stored in the same commit", columns: []string{"due_at"}},
	{move: settled, from: []Stage{Received, Prepared, Sent, Pending, Quarantined}, to: Settled, when: "its outcome is known; result, documents and events are stored in the same commit",
		columns: []string{"status", "settled_at", "result", "supplier_id", "number"}, also: "due_at = NULL, crashes = 0, doubts = '', said = NULL", uncounts: true},
}

func ruleOf(m Move) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.move == m })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// transition is one move of one operation, from the stage in which its maker
// believes it to be.
type transition struct {
	move   Move
	id     string
	from   Stage
	op     *op   // nil where nobody holds it in memory
	values []any // of the rule's columns, then what its guard compares
}

// to makes a transition of an operation that is held in memory.
func (o *op) to(m Move, values ...any) transition {
	return transition{move: m, id: o.ID, from: o.stage, op: o, values: values}
}

// step takes operations that the caller knows and says how they move, at the
// instant of the commit.
type step func(now time.Time) []transition

// apply is the only writer of an operation's stage. Each transition is checked
// against the table and against what is stored: an operation that is not in the
// stage it was believed to be in, has ended, or does not fulfil the move's
// guard fails the whole write with db.ErrStale.
func apply(tx *db.Tx, list []transition) error {
	byMove := map[Move][][]any{}
	var order []Move
	for _, t := range list {
		r, known := ruleOf(t.move)
		if !known || !slices.Contains(r.from, t.from) {
			return fmt.Errorf("operation %s: there is no move %q from stage %q", t.id, t.move, t.from)
		}
		if byMove[t.move] == nil {
			order = append(order, t.move)
		}
		byMove[t.move] = append(byMove[t.move], append([]any{t.id, string(r.target(t.from)), string(t.from)}, t.values...))
	}
	for _, m := range order {
		r, _ := ruleOf(m)
		run := tx.UpdateEachOne
		if r.optional {
			run = tx.UpdateEach
		}
		if err := run(r.sql(), byMove[m]); err != nil {
			return fmt.Errorf("%d operations %s: %w", len(byMove[m]), m, err)
		}
	}
	return nil
}

func (r rule) target(from Stage) Stage {
	if r.to == "" {
		return from
	}
	return r.to
}

// sql is the statement of a rule: $1 the operation, $2 the new stage, $3 the stage it must be in.
func (r rule) sql() string {
	var b strings.Builder
	b.WriteString("UPDATE operations SET stage = $2")
	for i, column := range r.columns {
		b.WriteString(", " + column + " = $" + strconv.Itoa(4+i))
	}
	if r.also != "" {
		b.WriteString(", " + r.also)
	}
	b.WriteString(" WHERE operation_id = $1 AND status = 'PROCESSING' AND stage = $3")
	if r.guard != "" {
		b.WriteString(" AND " + r.guard)
	}
	return b.String()
}

// landed notes in memory what a commit has stored.
func landed(list []transition) {
	for _, t := range list {
		r, _ := ruleOf(t.move)
		if t.op == nil || r.optional {
			continue
		}
		t.op.stage = r.target(t.from)
		if r.uncounts {
			t.op.counted = false
		}
	}
}

// moving are the operations of transitions.
func moving(list []transition) []string {
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = t.id
	}
	return ids
}

// Taking operations and giving them back changes no stage: it counts visits
// that ended with the process, see visit.take.

// countVisit raises the crash counts of operations that a visit takes.
func countVisit(tx *db.Tx, d *db.DB, ids []string) ([]*op, error) {
	return db.Collect(tx, scanOp, countVisitSQL(d), db.Micros(tx.Now()), db.Strings(ids))
}

// countVisitSQL finds them by their ids: by a plain comparison of due_at PostgreSQL, which knows
// that hardly anything stored has one, would read all that is due and pick them from it.
func countVisitSQL(d *db.DB) string {
	return `UPDATE operations SET crashes = crashes + 1, started_at = coalesce(started_at, $1)
		WHERE ` + d.In("operation_id", "$2") + ` AND coalesce(due_at, 9223372036854775807) <= $1 RETURNING ` + opFields
}

// uncountVisit takes the counts back.
func uncountVisit(tx *db.Tx, d *db.DB, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return tx.Exec("UPDATE operations SET crashes = 0 WHERE "+d.In("operation_id", "$1")+" AND status = 'PROCESSING'", db.Strings(ids))
}

// deferSuspects lets operations of a lane that crashed so often wait.
func deferSuspects(tx *db.Tx, lane string, crashes int64, until time.Time) error {
	return tx.Exec("UPDATE operations SET due_at = $1 WHERE lane = $2 AND due_at <= $3 AND crashes >= $4", db.Micros(until), lane, db.Micros(tx.Now()), crashes)
}

// hurryAll makes operations due at once on which a decision has come, those set aside excepted.
// With a plain comparison of due_at PostgreSQL would plan it anew each time, which costs more than running it.
func hurryAll(tx *db.Tx, d *db.DB, ids []string) error {
	return tx.Exec("UPDATE operations SET due_at = $1 WHERE "+d.In("operation_id", "$2")+` AND status = 'PROCESSING' AND stage IN ('prepared', 'sent', 'pending')
		AND coalesce(due_at, 9223372036854775807) > $1 AND crashes <= $3 AND EXISTS (SELECT 1 FROM told t WHERE t.operation_id = operations.operation_id)`,
		db.Micros(tx.Now()), db.Strings(ids), AsideFrom)
}

// holdOpen keeps an operation that has not ended as it is until the write ends.
func holdOpen(tx *db.Tx, id string) error {
	return tx.Exec("UPDATE operations SET due_at = due_at WHERE operation_id = $1 AND status = 'PROCESSING'", id)
}

// dropResults takes the results of retired operations away, the one change that
// the database lets a SUCCESS have.
func dropResults(tx *db.Tx, d *db.DB, ids []string) error {
	return tx.Exec("UPDATE operations SET result = NULL WHERE "+d.In("operation_id", "$1")+" AND result IS NOT NULL", db.Strings(ids))
}

// noteSeries notes of which series the numbers of new operations are: operation, series.
func noteSeries(tx *db.Tx, rows [][]any) error {
	return tx.ExecEach("UPDATE operations SET series = $2 WHERE operation_id = $1", rows)
}

// renumberWaiting gives an operation's later attempts its new number.
func renumberWaiting(tx *db.Tx, o *op, number string) error {
	return tx.Exec("UPDATE operations SET number = $3 WHERE client_id = $1 AND transaction_id = $2 AND stage = 'waiting' AND series <> ''", o.Scope, o.TransactionID, number)
}

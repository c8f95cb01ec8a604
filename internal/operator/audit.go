package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// Limits of the log.
const (
	auditDefault = 50
	auditMax     = 500
	stateMax     = 8 << 10 // bytes of before and of after; a longer one is replaced by its digest
)

// AuditScope names this log among the audit logs.
const AuditScope = "operators"

// Act is one action of an operator.
type Act struct {
	Action   string // "transaction.retried"
	Subject  string // what it was done to
	ClientID string // whose, where it is a client's
	Before   any    // encoded as JSON; never a secret. nil: nothing
	After    any
}

// Entry is one line of the log. Unlike a client's log in package account, which
// proves by hashes that the stored state is what it should be, this one says in
// words what somebody did, also to things that have no state.
type Entry struct {
	audit.Link
	Actor    audit.Actor `json:"actor"`
	Action   string      `json:"action"`
	Subject  string      `json:"subject"`
	ClientID string      `json:"client_id,omitempty"`
	Before   string      `json:"before,omitempty"` // JSON
	After    string      `json:"after,omitempty"`
	Outcome  string      `json:"outcome,omitempty"` // empty: done; else why not
}

func scanEntry(scan func(...any) error) (Entry, error) {
	var e Entry
	var at int64
	var prev, own []byte
	err := scan(&e.Seq, &at, &e.Actor.Name, &e.Actor.IP, &e.Action, &e.Subject, &e.ClientID, &e.Before, &e.After,
		&e.Outcome, &prev, &own, &e.MAC)
	e.At, e.Prev, e.Own = db.FromMicros(at), audit.DigestOf(prev), audit.DigestOf(own)
	return e, err
}

// compute is the hash of everything but the hash.
func (e *Entry) compute() audit.Digest {
	return audit.Hash("tributary operator audit v1", audit.Number(e.Seq), audit.Number(db.Micros(e.At)),
		[]byte(e.Actor.Name), []byte(e.Actor.IP), []byte(e.Action), []byte(e.Subject), []byte(e.ClientID),
		[]byte(e.Before), []byte(e.After), []byte(e.Outcome), e.Prev[:])
}

// RecordIn notes an action in the action's own write: the one is stored if and
// only if the other is.
func (o *Operators) RecordIn(tx *db.Tx, by audit.Actor, a Act) error {
	return o.recordIn(tx, by, a, "")
}

// Record notes an action in a write of its own, for actions that are not ours
// to write: a call to another service, a change that has a log of its own.
func (o *Operators) Record(ctx context.Context, by audit.Actor, a Act) error {
	return o.record(ctx, by, a, "")
}

// Refused notes what somebody tried and may not do.
func (o *Operators) Refused(ctx context.Context, by audit.Actor, tried, why string) error {
	return o.record(ctx, by, Act{Action: "console.refused", Subject: clip(tried)}, clip(why))
}

// Do runs an action and notes it, also when it fails. fn answers the state
// afterwards, for the log.
//
// Failure policy: the note follows the action. When the note cannot be stored
// the action stands and the caller hears of it; the log line of this process
// says what was done.
func (o *Operators) Do(ctx context.Context, by audit.Actor, a Act, fn func(context.Context) (after any, err error)) error {
	after, err := fn(ctx)
	outcome := ""
	if err != nil {
		outcome = fault.Clip(err.Error(), stateMax)
	} else if after != nil {
		a.After = after
	}
	noted := o.record(context.WithoutCancel(ctx), by, a, outcome)
	if noted != nil {
		o.log.Error("record an operator's action", "operator", by.Name, "action", a.Action, "subject", a.Subject, "outcome",
			outcome, "error", noted)
	}
	if err != nil {
		return err
	}
	return noted
}

func (o *Operators) record(ctx context.Context, by audit.Actor, a Act, outcome string) error {
	return o.db.Write(ctx, func(tx *db.Tx) error { return o.recordIn(tx, by, a, outcome) })
}

func (o *Operators) recordIn(tx *db.Tx, by audit.Actor, a Act, outcome string) error {
	if by.Name == "" || a.Action == "" {
		return errors.New("an audit entry needs an action and an actor")
	}
	if o.audit != nil && !o.audit.Loaded() {
		return errors.New("the audit key is not loaded: nothing is done that the log cannot prove")
	}
	before, err := stateText(a.Before)
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", a.Action, a.Subject, err)
	}
	after, err := stateText(a.After)
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", a.Action, a.Subject, err)
	}
	// One chain, one writer at a time.
	if err := tx.Lock("operator audit"); err != nil {
		return err
	}
	if err := o.audit.Current(tx); err != nil {
		return err
	}
	tail := audit.Tail{Log: AuditScope, Key: o.audit}
	var head []byte
	if err := tx.Row(headSQL).Scan(&tail.Seq, &head); err != nil {
		return fmt.Errorf("read the head of the audit log: %w", err)
	}
	tail.Head = audit.DigestOf(head)
	e := Entry{
		Link: audit.Link{At: db.FromMicros(db.Micros(tx.Now()))}, Actor: audit.Actor{Name: clip(by.Name), IP: clip(by.IP)},
		Action: clip(a.Action), Subject: clip(a.Subject),
		ClientID: clip(a.ClientID), Before: before, After: after, Outcome: fault.Clip(outcome, stateMax),
	}
	tail.Add(&e.Link, e.compute)
	if err := tx.Insert("operator_audit", auditColumns,
		[]any{e.Seq, db.Micros(e.At), e.Actor.Name, e.Actor.IP, e.Action, e.Subject, e.ClientID,
			e.Before, e.After, e.Outcome, e.Prev[:], e.Own[:], e.MAC}); err != nil {
		return fmt.Errorf("store the audit log: %w", err)
	}
	return nil // the entry has moved the head
}

// stateText is a state as the log keeps it.
func stateText(state any) (string, error) {
	if state == nil {
		return "", nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	if len(text) > stateMax {
		sum := sha256.Sum256(text)
		return fmt.Sprintf(`{"bytes":%d,"sha256":"%x"}`, len(text), sum), nil
	}
	return fault.Clip(string(text), stateMax), nil
}

// AuditFilter narrows the log. Zero members do not narrow.
type AuditFilter struct {
	Actor, Action, Subject, ClientID string
	From, To                         time.Time // From inclusive, To exclusive
	Before                           int64     // seq of the last entry seen
	Limit                            int       // default 50, at most 500
}

// Audit reads the log, newest first, and where to go on; 0 at the end.
func (o *Operators) Audit(r db.Reader, f AuditFilter) (list []Entry, next int64, err error) {
	if f.Limit <= 0 {
		f.Limit = auditDefault
	}
	if f.Limit > auditMax {
		return nil, 0, fault.New(fault.Invalid,
			"invalid list request").With(fault.At("limit", fault.FieldNotValid, "must be 1 to %d", auditMax))
	}
	where, args := f.conditions()
	list, err = db.Collect(r, scanEntry, auditSQL+where+" ORDER BY seq DESC LIMIT "+strconv.Itoa(f.Limit+1), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit log: %w", err)
	}
	if len(list) > f.Limit {
		list = list[:f.Limit]
		next = list[f.Limit-1].Seq
	}
	return list, next, nil
}

func (f AuditFilter) conditions() (string, []any) {
	var where []string
	var args []any
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+" $"+strconv.Itoa(len(args)))
	}
	for _, narrow := range [][2]string{{"actor =", f.Actor}, {"action =", f.Action}, {"subject =", f.Subject},
		{"client_id =", f.ClientID}} {
		if narrow[1] != "" {
			add(narrow[0], narrow[1])
		}
	}
	if f.ClientID != "" {
		where = append(where, "client_id <> ''") // the words of its index
	}
	if !f.From.IsZero() {
		add("at >=", db.Micros(f.From))
	}
	if !f.To.IsZero() {
		add("at <", db.Micros(f.To))
	}
	if f.Before > 0 {
		add("seq <", f.Before)
	}
	if len(where) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(where, " AND "), args
}

// VerifyAudit verifies the log.
func (o *Operators) VerifyAudit(r db.Reader) (audit.Verdict, error) {
	rows, err := r.Query(auditSQL + " ORDER BY seq")
	if err != nil {
		return audit.Verdict{}, fmt.Errorf("read the audit log: %w", err)
	}
	v, err := o.audit.Verify(AuditScope, rows, func(scan func(...any) error) (audit.Proof, error) {
		e, err := scanEntry(scan)
		return audit.Proof{Link: e.Link, Sum: e.compute()}, err
	})
	if err != nil {
		return v, fmt.Errorf("read the audit log: %w", err)
	}
	var seq int64
	var head []byte
	if err := r.Row(headSQL).Scan(&seq, &head); err != nil {
		return v, fmt.Errorf("read the head of the audit log: %w", err)
	}
	v.EndsAt(seq, head)
	return v, nil
}

// Head reads where the log stands.
func (o *Operators) Head(r db.Reader) (h audit.Head, err error) {
	var hash []byte
	if err := r.Row(headSQL).Scan(&h.Seq, &hash); err != nil {
		return h, fmt.Errorf("read the head of the audit log: %w", err)
	}
	h.Log, h.Hash = AuditScope, hex.EncodeToString(hash)
	return h, nil
}

// Against says how the log differs from a head of it that was kept outside; nil:
// what the head knew is still there.
func (o *Operators) Against(r db.Reader, head audit.Head) (*audit.Break, error) {
	return head.Against(r.Row(entryHashSQL, head.Seq))
}

// CheckAudit verifies the log and raises an alert when it does not hold.
func (o *Operators) CheckAudit(ctx context.Context) (v audit.Verdict, err error) {
	err = o.db.Read(ctx, func(r db.Reader) error {
		if err := o.audit.Current(r); err != nil {
			return err
		}
		v, err = o.VerifyAudit(r)
		return err
	})
	if err != nil || v.Broken == nil || o.alerts == nil {
		return v, err
	}
	return v, o.alerts.Raise(ctx, alert.AuditBroken, AuditScope, "the audit log of operators "+v.Broken.String())
}

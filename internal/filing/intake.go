package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// submission is a checked body on its way to disk.
type submission struct {
	operationID string
	caller      Caller
	examined    *country.Examined
	body        []byte
	digest      string // of what the body says; empty: taken when it is needed
	lane        string
	customer    string // facts of the company that it names as its customer, as stored
	draw        *draw  // from which it gets its number; nil: it has one, or needs none
}

// accepted is what the intake decided.
type accepted struct {
	operationID string
	refused     bool // too many attempts wait
}

func (s submission) key() [2]string { return [2]string{s.caller.Scope, s.examined.Transaction.ID} }

// Submit checks a body, stores it and answers the operation that will carry
// its result: a new one, or the one that succeeded before: the table of
// docs/specification.md, section 5.
func (s *Service) Submit(ctx context.Context, caller Caller, kind transaction.Kind, body []byte) (operationID string, err error) {
	if s.gate.closed.Load() {
		return "", errClosed()
	}
	if s.full(ctx) {
		return "", errFull()
	}
	defer s.db.Pace().Submit()()
	look := &looker{ctx: ctx, service: s, caller: caller}
	examined, err := country.Examine(kind, body, look.terms())
	if err != nil {
		return s.replay(ctx, caller, kind, refusal{body, err})
	}
	if err := look.complete(examined); err != nil {
		return "", err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an operation id: %w", err)
	}
	sub := s.submission(id.String(), caller, examined, body)
	sub.draw, sub.customer = look.draw, look.customer
	answer, err := s.intake.Do(ctx, sub)
	if err != nil {
		return "", err
	}
	killpoint.Reach(killpoint.Accepted)
	if answer.refused {
		return "", &fault.Error{Kind: fault.Limited, RetryAfter: 10 * time.Second,
			Message: fmt.Sprintf("%d attempts of this transaction are already waiting", waitingMax),
			Faults:  []fault.Fault{{Code: fault.RateLimited, Type: fault.General, Field: "transaction_id", Message: "transaction_id has too many waiting attempts"}}}
	}
	return answer.operationID, nil
}

// refusal is a body that was not accepted, and why.
type refusal struct {
	body []byte
	why  error
}

// replay answers a body that would be refused today with the success that its
// transaction_id already has: replaying is safe any number of times, whatever
// rules, dates or configurations say by now. Otherwise the refusal stands.
func (s *Service) replay(ctx context.Context, caller Caller, kind transaction.Kind, r refusal) (operationID string, err error) {
	if fault.KindOf(r.why) != fault.Invalid {
		return "", r.why
	}
	read, err := transaction.Read(kind, r.body)
	if err != nil || read.Transaction == nil || read.Transaction.ID == "" {
		return "", r.why
	}
	id := read.Transaction.ID
	err = s.db.Read(ctx, func(reader db.Reader) error {
		return reader.Row("SELECT coalesce(success_id, '') FROM transactions WHERE client_id = $1 AND transaction_id = $2", caller.Scope, id).Scan(&operationID)
	})
	switch {
	case errors.Is(err, db.ErrNoRows), err == nil && operationID == "":
		return "", r.why
	case err != nil:
		return "", err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error { return s.cfg.Hooks.Notify(tx, completed(caller.Scope, id, operationID)) })
	if err != nil {
		return "", err
	}
	return operationID, nil
}

func (s *Service) submission(id string, caller Caller, examined *country.Examined, body []byte) submission {
	shard := 0
	if examined.Transaction.SupplierID != "" {
		shard = shardFor(id, examined.Transaction, examined.Pack, lanesOf(s.cfg.Atlas, examined.Pack, caller.Live))
	}
	at := Place{Scope: caller.Scope, Code: examined.Pack.Code, Live: caller.Live, SupplierID: examined.Transaction.SupplierID}
	sub := submission{operationID: id, caller: caller, examined: examined, body: body, lane: at.Lane(shard)}
	if len(body) >= digestAhead {
		sub.digest = digest(examined.Transaction)
	}
	return sub
}

// Validate makes the same checks as Submit and stores nothing.
func (s *Service) Validate(ctx context.Context, caller Caller, kind transaction.Kind, body []byte) (*country.Examined, error) {
	look := &looker{ctx: ctx, service: s, caller: caller}
	examined, err := country.Examine(kind, body, look.terms())
	if err == nil {
		err = look.err
	}
	return examined, err
}

func (s *Service) terms(caller Caller) country.Terms {
	return country.Terms{Atlas: s.cfg.Atlas, UseCase: caller.UseCase, Live: caller.Live, Now: s.db.Wall(), WarnTotals: caller.WarnTotals}
}

// store writes a set of submissions in one commit. The upsert on transactions
// is the whole idempotency: it locks the key, reads its state and counts the
// new attempts, for all of the set in one statement.
func (s *Service) store(tx *db.Tx, set []submission) ([]accepted, error) {
	byKey := map[[2]string][]int{}
	for i, sub := range set {
		byKey[sub.key()] = append(byKey[sub.key()], i)
	}
	keys := make([][2]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	// One order for everybody, so that two sets never wait for each other.
	sort.Slice(keys, func(i, j int) bool {
		return keys[i][0] < keys[j][0] || keys[i][0] == keys[j][0] && keys[i][1] < keys[j][1]
	})
	rows := make([][]any, len(keys))
	for i, key := range keys {
		n := len(byKey[key])
		rows[i] = []any{key[0], key[1], n, n}
	}
	in := &intakeSet{set: set, answers: make([]accepted, len(set))}
	err := tx.InsertReturning(upsertTransactions, rows, func(r *db.Rows) error {
		var st standing
		if err := r.Scan(&st.scope, &st.id, &st.attempts, &st.open, &st.successID); err != nil {
			return err
		}
		in.decide(st, byKey[[2]string{st.scope, st.id}], tx.Now())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("register transactions: %w", err)
	}
	if err := in.numbers(tx); err != nil {
		return nil, err
	}
	if err := in.write(tx); err != nil {
		return nil, err
	}
	if err := s.cfg.Hooks.Notify(tx, in.events...); err != nil {
		return nil, err
	}
	s.cfg.Count(tx, in.tallied())
	tx.Wake(laneQueue.Table)
	return in.answers, nil
}

var upsertTransactions = db.Insert{
	Table: "transactions", Columns: "client_id,transaction_id,attempts,open",
	Suffix: `ON CONFLICT (client_id, transaction_id) DO UPDATE SET
		attempts = transactions.attempts + CASE WHEN transactions.success_id IS NULL THEN excluded.attempts ELSE 0 END,
		open = transactions.open + CASE WHEN transactions.success_id IS NULL THEN excluded.open ELSE 0 END
		RETURNING client_id, transaction_id, attempts, open, success_id`,
}

// standing is a transaction as the upsert left it.
type standing struct {
	scope, id      string
	attempts, open int64
	successID      *string
}

// intakeSet collects the rows of one commit.
type intakeSet struct {
	set        []submission
	answers    []accepted
	operations [][]any
	bodies     [][]any
	undo       [][]any
	events     []webhook.Event

	drawings []drawing
	named    [][]any // operations with the series of their number
}

// decide applies the table of docs/specification.md, section 5, to the members of one key.
func (in *intakeSet) decide(st standing, members []int, now time.Time) {
	if st.successID != nil {
		for _, i := range members {
			in.answers[i] = accepted{operationID: *st.successID}
			in.events = append(in.events, completed(st.scope, st.id, *st.successID))
		}
		return
	}
	before := st.open - int64(len(members))
	first := st.attempts - int64(len(members)) + 1
	over := min(int64(len(members)), max(0, st.open-1-waitingMax))
	if over > 0 {
		in.undo = append(in.undo, []any{st.scope, st.id, over})
	}
	for n, i := range members {
		if int64(n) >= int64(len(members))-over {
			in.answers[i] = accepted{refused: true}
			continue
		}
		in.add(i, first+int64(n), before+int64(n) > 0, now)
	}
}

func (in *intakeSet) add(i int, attempt int64, waits bool, now time.Time) {
	sub := in.set[i]
	t := sub.examined.Transaction
	stage, due := Received, any(db.Micros(now))
	if waits {
		stage, due = Waiting, nil
		if sub.digest == "" {
			sub.digest = digest(t)
		}
	}
	in.answers[i] = accepted{operationID: sub.operationID}
	if sub.draw != nil {
		in.drawings = append(in.drawings, drawing{row: len(in.operations), sub: i})
	}
	in.operations = append(in.operations, []any{
		sub.operationID, sub.caller.Scope, t.ID, attempt, string(t.Kind), sub.examined.Pack.Code, bool(sub.caller.Live),
		string(sub.examined.UseCase), t.SupplierID, t.Number, db.Micros(t.Date), db.Micros(now), db.Null(t.ReferenceID),
		sub.lane, string(stage), string(Processing), due, sub.examined.Pack.Version, len(sub.body),
	})
	in.bodies = append(in.bodies, []any{sub.operationID, sub.body, encodeFaults(sub.examined.Warnings), db.Null(sub.digest), db.Null(sub.customer)})
}

const operationColumns = "operation_id,client_id,transaction_id,attempt,kind,country,live,use_case,supplier_id,number,dated_at,accepted_at,reference_id,lane,stage,status,due_at,pack_version,bytes"

func (in *intakeSet) write(tx *db.Tx) error {
	if err := tx.ExecEach("UPDATE transactions SET attempts = attempts - $3, open = open - $3 WHERE client_id = $1 AND transaction_id = $2", in.undo); err != nil {
		return fmt.Errorf("take back attempts over the limit: %w", err)
	}
	if err := tx.Insert("operations", operationColumns, in.operations...); err != nil {
		return fmt.Errorf("store operations: %w", err)
	}
	if err := tx.Insert("bodies", "operation_id,body,warnings,digest,customer", in.bodies...); err != nil {
		return fmt.Errorf("store bodies: %w", err)
	}
	if err := noteSeries(tx, in.named); err != nil {
		return fmt.Errorf("name the series of numbers: %w", err)
	}
	return nil
}

// completed is the event of a settled operation. Events of one transaction are
// a series: their first tries keep the order of the attempts.
func completed(scope, transactionID, operationID string) webhook.Event {
	return webhook.Event{
		ClientID: scope, Type: webhook.TransactionCompleted, ResourceID: operationID,
		ResourcePath: "/v1/transactions/" + operationID, Series: scope + "/" + transactionID,
	}
}

func encodeFaults(list []fault.Fault) any {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // plain structs always encode
	return string(text)
}

// ReadFaults reads stored warnings.
func ReadFaults(text *string) (list []fault.Fault) {
	if text != nil {
		_ = json.Unmarshal([]byte(*text), &list) // written by encodeFaults
	}
	return list
}

func randomJitter() float64 { return rand.Float64() }

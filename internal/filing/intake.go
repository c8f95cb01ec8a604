package filing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/killpoint"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/series"
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
	customer    string       // facts of the company that it names as its customer, as stored
	draw        *series.Draw // from which it gets its number; nil: it has one, or needs none
}

// accepted is what the intake decided.
type accepted struct {
	operationID string
	refused     bool // too many attempts wait
}

func (s submission) key() series.Transaction {
	return series.Transaction{Scope: s.caller.Scope, ID: s.examined.Transaction.ID}
}

// Submit checks a body, stores it and answers the operation that will carry
// its result: a new one, or the one that succeeded before: the table of
// docs/specification.md, section 5.
func (s *Service) Submit(ctx context.Context, caller Caller, kind transaction.Kind, body []byte) (operationID string, err error) {
	if err := s.Intake.Enter(ctx); err != nil {
		return "", err
	}
	defer s.db.Pace().Submit()()
	read, err := transaction.Read(kind, body)
	if err != nil {
		return "", err
	}
	examined, found, err := s.examine(ctx, caller, read)
	if err != nil {
		return s.replay(ctx, caller, read.Transaction.ID, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an operation id: %w", err)
	}
	sub := s.submission(id.String(), caller, examined, body)
	sub.draw, sub.customer = found.draw, found.customer
	answer, err := s.submits.Do(ctx, sub)
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

// Validate makes the same checks as Submit and stores nothing.
func (s *Service) Validate(ctx context.Context, caller Caller, kind transaction.Kind, body []byte) (*country.Examined, error) {
	read, err := transaction.Read(kind, body)
	if err != nil {
		return nil, err
	}
	examined, _, err := s.examine(ctx, caller, read)
	return examined, err
}

// replay answers a body that would be refused today with the success that its
// transaction_id already has: replaying is safe any number of times, whatever
// rules, dates or configurations say by now. Otherwise the refusal stands.
func (s *Service) replay(ctx context.Context, caller Caller, id string, refused error) (operationID string, err error) {
	if fault.KindOf(refused) != fault.Invalid || id == "" {
		return "", refused
	}
	err = s.db.Read(ctx, func(reader db.Reader) error {
		return reader.Row("SELECT coalesce(success_id, '') FROM transactions WHERE client_id = $1 AND transaction_id = $2", caller.Scope, id).Scan(&operationID)
	})
	switch {
	case errors.Is(err, db.ErrNoRows), err == nil && operationID == "":
		return "", refused
	case err != nil:
		return "", err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		return s.cfg.Hooks.Notify(tx, lifecycle.Completed(caller.Scope, id, operationID))
	})
	if err != nil {
		return "", err
	}
	return operationID, nil
}

// examine checks a body that was read, with what it leaves to the client's own records.
func (s *Service) examine(ctx context.Context, caller Caller, read *transaction.Reading) (*country.Examined, found, error) {
	found, err := s.look(ctx, caller, read.Transaction)
	if err != nil {
		return nil, found, err
	}
	terms := s.terms(caller)
	terms.Numbered = found.draw != nil
	examined, err := country.ExamineRead(read, terms)
	if err != nil {
		return examined, found, err
	}
	if found.supplierID != "" {
		examined.Transaction.SupplierID = found.supplierID
	}
	return examined, found, s.ofCompany(ctx, caller, examined, terms.Now)
}

// ofCompany asks the pack what the company behind a sale decides. One that is not
// known is told in the result, as everywhere.
func (s *Service) ofCompany(ctx context.Context, caller Caller, e *country.Examined, now time.Time) error {
	if e.Pack.CheckSale == nil || e.Transaction.Customer != nil && e.Transaction.Customer.ID != "" {
		return nil // a customer that is a company of ours is read with the document
	}
	var company country.Supplier
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		company, err = s.cfg.Companies.Supplier(r, caller.Scope, e.Transaction.SupplierID)
		return err
	})
	switch {
	case fault.KindOf(err) == fault.NotFound || err == nil && (company.Closed || company.CountryCode != e.Pack.Code):
		return nil
	case err != nil:
		return err
	}
	found := e.Pack.CheckSale(country.Case{Transaction: e.Transaction, Totals: e.Totals, UseCase: e.UseCase, Now: now}, company)
	if len(found) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "the request is not valid for this company").With(found...)
}

// found is what a body leaves to the client's own records: the company behind an
// external_id or a customer's id, the series of a number that is missing.
type found struct {
	supplierID string       // by the client's own id; "" where the body names none
	customer   string       // as stored, see operation.WithCustomer
	draw       *series.Draw // nil: it has a number, or there is no series
}

// look finds it. A body that says everything itself costs no look. A backfill has
// a number of its own.
func (s *Service) look(ctx context.Context, caller Caller, t *transaction.Transaction) (f found, err error) {
	pack, known := s.cfg.Atlas.Pack(t.CountryCode)
	named := t.Customer != nil && t.Customer.ID != ""
	numberless := t.Number == "" && t.Kind != transaction.Backfill
	if !known || t.SupplierOwnID == "" && !named && !numberless || !storable(t) {
		return f, nil // what is refused needs none either
	}
	err = s.db.Read(ctx, func(r db.Reader) (err error) {
		of := *t
		if t.SupplierOwnID != "" {
			if f.supplierID, err = s.cfg.Companies.IDOf(r, caller.Scope, t.SupplierOwnID); err != nil {
				return err
			}
			f.supplierID = cmp.Or(f.supplierID, result.UnknownSupplier+t.SupplierOwnID)
			of.SupplierID = f.supplierID
		}
		if named {
			if f.customer, err = s.customerOf(r, caller.Scope, t.Customer.ID); err != nil {
				return err
			}
		}
		if numberless {
			f.draw, err = s.Series.For(r, caller.Scope, pack.Code, &of)
		}
		return err
	})
	return f, err
}

// storable reports whether the names by which something is looked for can be asked for at all.
func storable(t *transaction.Transaction) bool {
	ok := db.Storable(t.SupplierID) && db.Storable(t.SupplierOwnID) && db.Storable(t.ReferenceID)
	return ok && (t.Customer == nil || db.Storable(t.Customer.ID))
}

// customerOf is the stored form of the customer that a body names by id; "" when
// there is none, or none that could buy.
func (s *Service) customerOf(r db.Reader, scope, id string) (string, error) {
	company, err := s.cfg.Companies.Supplier(r, scope, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && company.Closed {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return operation.EncodeCustomer(company)
}

func (s *Service) submission(id string, caller Caller, examined *country.Examined, body []byte) submission {
	shard := 0
	if examined.Transaction.SupplierID != "" {
		shard = operation.Shard(id, examined.Transaction, examined.Pack, operation.Shards(s.cfg.Atlas, examined.Pack, caller.Live))
	}
	at := Place{Scope: caller.Scope, Code: examined.Pack.Code, Live: caller.Live, SupplierID: examined.Transaction.SupplierID}
	sub := submission{operationID: id, caller: caller, examined: examined, body: body, lane: at.Lane(shard)}
	if len(body) >= digestAhead {
		sub.digest = digest(examined.Transaction)
	}
	return sub
}

func (s *Service) terms(caller Caller) country.Terms {
	return country.Terms{Atlas: s.cfg.Atlas, UseCase: caller.UseCase, Live: caller.Live, Now: s.db.Wall(), WarnTotals: caller.WarnTotals}
}

// store writes a set of submissions in one commit. The upsert on transactions
// is the whole idempotency: it locks the key, reads its state and counts the
// new attempts, for all of the set in one statement.
func (s *Service) store(tx *db.Tx, set []submission) ([]accepted, error) {
	byKey := map[series.Transaction][]int{}
	for i, sub := range set {
		byKey[sub.key()] = append(byKey[sub.key()], i)
	}
	keys := make([]series.Transaction, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	// One order for everybody, so that two sets never wait for each other.
	sort.Slice(keys, func(i, j int) bool {
		return keys[i].Scope < keys[j].Scope || keys[i].Scope == keys[j].Scope && keys[i].ID < keys[j].ID
	})
	rows := make([][]any, len(keys))
	for i, key := range keys {
		n := len(byKey[key])
		rows[i] = []any{key.Scope, key.ID, n, n}
	}
	in := &intakeSet{set: set, answers: make([]accepted, len(set)), rows: map[int]int{}}
	err := tx.InsertReturning(upsertTransactions, rows, func(r *db.Rows) error {
		var st upserted
		if err := r.Scan(&st.scope, &st.id, &st.attempts, &st.open, &st.successID); err != nil {
			return err
		}
		in.decide(st, byKey[series.Transaction{Scope: st.scope, ID: st.id}], tx.Now())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("register transactions: %w", err)
	}
	if err := in.number(tx); err != nil {
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

// upserted is a transaction as the upsert left it.
type upserted struct {
	scope, id      string
	attempts, open int64
	successID      *string
}

// intakeSet collects the rows of one commit.
type intakeSet struct {
	set        []submission
	answers    []accepted
	operations [][]any
	rows       map[int]int // of operations, by member
	bodies     [][]any
	undo       [][]any
	events     []webhook.Event

	drawing []int   // members that get their numbers from a series
	named   [][]any // operations with the series of their number
}

// decide applies the table of docs/specification.md, section 5, to the members of one key.
func (in *intakeSet) decide(st upserted, members []int, now time.Time) {
	if st.successID != nil {
		for _, i := range members {
			in.answers[i] = accepted{operationID: *st.successID}
			in.events = append(in.events, lifecycle.Completed(st.scope, st.id, *st.successID))
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
		in.drawing = append(in.drawing, i)
		in.rows[i] = len(in.operations)
	}
	in.operations = append(in.operations, []any{
		sub.operationID, sub.caller.Scope, t.ID, attempt, string(t.Kind), sub.examined.Pack.Code, bool(sub.caller.Live),
		string(sub.examined.UseCase), t.SupplierID, t.Number, db.Micros(t.Date), db.Micros(now), db.Null(t.ReferenceID),
		sub.lane, string(stage), string(Processing), due, sub.examined.Pack.Version, len(sub.body),
	})
	in.bodies = append(in.bodies, []any{sub.operationID, sub.body, operation.EncodeFaults(sub.examined.Warnings), db.Null(sub.digest), db.Null(sub.customer)})
}

const numberColumn = 9 // of operationColumns

// number draws for the operations of a set that came without a number.
func (in *intakeSet) number(tx *db.Tx) error {
	if len(in.drawing) == 0 {
		return nil
	}
	wants := make([]series.Want, len(in.drawing))
	for n, i := range in.drawing {
		wants[n] = series.Want{Of: in.set[i].key(), From: in.set[i].draw}
	}
	numbers, err := series.Numbers(tx, wants)
	if err != nil {
		return err
	}
	for _, i := range in.drawing {
		sub := in.set[i]
		in.operations[in.rows[i]][numberColumn] = numbers[sub.key()]
		in.named = append(in.named, []any{sub.operationID, sub.draw.ID})
	}
	return nil
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

// digestBytes is enough to tell bodies of one transaction apart.
const digestBytes = 16

// digestAhead is the size of a body from which its digest is taken before its
// commit. Only attempts that wait for another one are ever compared, and those
// are known in the commit; what is small is encoded there, and most never are.
const digestAhead = 4 << 10

// digest stands for what a body says, however it is written: the order of its
// members and its blanks do not count. A supplier that was found by the client's
// own id is not something that the body says.
func digest(t *transaction.Transaction) string {
	if t.SupplierOwnID != "" {
		said := *t
		said.SupplierID = ""
		t = &said
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "" // nothing of ours fails to encode; whoever reads "" compares the bodies
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:digestBytes])
}

// digestOf is the digest of a stored body; of one that cannot be read it is that of its bytes.
func digestOf(kind transaction.Kind, body []byte) string {
	t, _, _ := transaction.Decode(kind, body)
	if t == nil {
		sum := sha256.Sum256(body)
		return hex.EncodeToString(sum[:digestBytes])
	}
	return digest(t)
}

// Tallied is what a commit did to transactions of one client and country, or
// which calls to an authority it records; see [Config].Count.
type Tallied struct {
	Country, ClientID           string
	Live                        country.Live
	Accepted, Succeeded, Failed int64

	Calls, CallsFailed int64 // to the authority, of whomever
	CallsTook          time.Duration
}

// together adds to the last entry where it is of the same client and country,
// so that a set of one of them costs one entry.
func together(list []Tallied, t Tallied) []Tallied {
	if n := len(list); n > 0 && list[n-1].Country == t.Country && list[n-1].ClientID == t.ClientID && list[n-1].Live == t.Live {
		list[n-1].Accepted += t.Accepted
		list[n-1].Succeeded += t.Succeeded
		list[n-1].Failed += t.Failed
		return list
	}
	return append(list, t)
}

// tallied counts the new operations of an intake.
func (in *intakeSet) tallied() (list []Tallied) {
	for i, sub := range in.set {
		if a := in.answers[i]; !a.refused && a.operationID == sub.operationID {
			list = together(list, Tallied{Country: sub.examined.Pack.Code, ClientID: sub.caller.Scope, Live: sub.caller.Live, Accepted: 1})
		}
	}
	return list
}

// talliedEnds counts operations that ended, those that waited behind them
// included, those of our own not: nobody submitted them.
func talliedEnds(endings []ending, joined []*op, own map[string]bool) (list []Tallied) {
	for _, e := range endings {
		if own[e.op.ID] {
			continue
		}
		t := Tallied{Country: e.op.Code, ClientID: e.op.Scope, Live: e.op.Live, Failed: 1}
		if e.status == Success {
			t.Failed, t.Succeeded = 0, 1
		}
		list = together(list, t)
	}
	for _, o := range joined {
		list = together(list, Tallied{Country: o.Code, ClientID: o.Scope, Live: o.Live, Succeeded: 1})
	}
	return list
}

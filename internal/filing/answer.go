package filing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// An answer to a received document is an operation like a sale's, of kind RESPONSE: prepared, marked, sent and settled
// by the same steps, in the lanes of the company that answers. It names its document in the table responses.
//
// Failure policy: the same answer is the same operation for as long as that has not failed; after a FAILURE it is tried
// anew. Answers to one document go out one after another in the order of their arrival: each is blocked behind the one
// before it until that has ended, however it ended.

// answerPrefix begins the transaction_id of an answer, which the service makes.
const answerPrefix = "response:"

// Answer stores an answer and gives its operation: a new one, or that of the same answer.
func (s *Service) Answer(ctx context.Context, caller Caller, a transaction.Answer) (operationID string, err error) {
	if err := s.Intake.Enter(ctx); err != nil {
		return "", err
	}
	a.Date = s.db.Wall().UTC().Truncate(time.Second)
	pack, rules, err := s.answers(ctx, caller, &a)
	if err != nil {
		return "", err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an operation id: %w", err)
	}
	said, _ := json.Marshal(a.Said()) // texts always encode
	sum := sha256.Sum256(said)
	a.ID = answerPrefix + a.To.OperationID + ":" + hex.EncodeToString(sum[:8])
	in := answering{a: &a, pack: pack, once: rules.Once, id: id.String(), live: caller.Live, scope: caller.Scope}
	err = s.db.Write(ctx, func(tx *db.Tx) (err error) {
		operationID, err = s.storeAnswer(tx, in)
		return err
	})
	return operationID, err
}

// answers finds the rules by which a document may be answered, or why it may not.
func (s *Service) answers(ctx context.Context, caller Caller, a *transaction.Answer) (country.Pack, *country.Responses, error) {
	pack, known := s.cfg.Atlas.Pack(a.Country)
	refuse := func(field, why string) error {
		return fault.New(fault.Invalid, "%s", why).With(fault.Fault{Code: fault.UnsupportedOperation, Type: fault.Validation, Field: field, Message: why})
	}
	rules := pack.Facts.Responses
	if !known || rules == nil || pack.Connect == nil {
		return pack, nil, refuse("", "received documents cannot be answered in "+a.Country)
	}
	if !slices.Contains(rules.Statuses, a.Status) {
		return pack, nil, refuse("status", "status cannot be "+a.Status+" in "+a.Country+": it is one of "+strings.Join(rules.Statuses, ", "))
	}
	var company country.Supplier
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		company, err = s.cfg.Companies.Supplier(r, caller.Scope, a.SupplierID)
		return err
	})
	if err != nil {
		return pack, nil, err
	}
	if company.Closed {
		return pack, nil, refuse("", "the company that received the document is closed")
	}
	if found := pack.Answerable(company, *a); len(found) > 0 {
		return pack, nil, fault.New(fault.Invalid, "the document cannot be answered so").With(found...)
	}
	return pack, rules, nil
}

// answering is an answer on its way to disk.
type answering struct {
	a     *transaction.Answer
	pack  country.Pack
	once  bool
	id    string
	live  country.Live
	scope string
}

// before is an answer to the same document.
type before struct {
	transactionID, operationID string
	kind                       transaction.Kind
	status                     Status
}

func (s *Service) storeAnswer(tx *db.Tx, in answering) (operationID string, err error) {
	if err := tx.Lock("response|" + in.a.To.OperationID); err != nil {
		return "", err
	}
	// Whoever settles an answer holds its transaction's row, too: what is read behind this is what will be.
	err = tx.Exec(`UPDATE transactions SET open = open WHERE client_id = $1 AND transaction_id IN
		(SELECT transaction_id FROM responses WHERE client_id = $1 AND document_id = $2)`, in.scope, in.a.To.OperationID)
	if err != nil {
		return "", fmt.Errorf("hold the answers to a document: %w", err)
	}
	list, err := db.Collect(tx, func(scan func(...any) error) (b before, err error) {
		return b, scan(&b.transactionID, &b.operationID, &b.kind, &b.status)
	}, `SELECT o.transaction_id, o.operation_id, o.kind, o.status FROM responses r JOIN operations o ON o.operation_id = r.operation_id
		WHERE r.client_id = $1 AND r.document_id = $2 ORDER BY r.operation_id`, in.scope, in.a.To.OperationID)
	if err != nil {
		return "", fmt.Errorf("read the answers to a document: %w", err)
	}
	attempt, behind := int64(1), ""
	for _, b := range list {
		switch {
		case b.transactionID == in.a.ID && b.status != Failure:
			return b.operationID, nil
		case b.transactionID == in.a.ID:
			attempt++
		case in.once && b.status != Failure:
			const why = "the document has another answer already, and only one can be given"
			return "", fault.New(fault.Conflict, why).With(fault.Fault{Code: fault.CodeConflict, Type: fault.Validation, Field: "status", Message: why})
		}
		if b.status == Processing {
			behind = b.transactionID
		}
	}
	if attempt == 1 {
		if err := nameFree(tx, in); err != nil {
			return "", err
		}
	}
	return in.id, s.insertAnswer(tx, in, attempt, behind)
}

// nameFree refuses an answer whose name the client has given to a transaction of its own.
func nameFree(tx *db.Tx, in answering) error {
	var one int
	err := tx.Row("SELECT 1 FROM transactions WHERE client_id = $1 AND transaction_id = $2", in.scope, in.a.ID).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err == nil {
		why := "a transaction of yours has the transaction_id " + in.a.ID + ", which the service gives to this answer"
		err = fault.New(fault.Conflict, "%s", why).With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: why})
	}
	return err
}

func (s *Service) insertAnswer(tx *db.Tx, in answering, attempt int64, behind string) error {
	body, err := in.a.Body()
	if err != nil {
		return err
	}
	now := db.Micros(tx.Now())
	at := Place{Scope: in.scope, Code: in.pack.Code, Live: in.live, SupplierID: in.a.SupplierID}
	// All answers to a document ride in one lane.
	lane := at.Lane(operation.Shard(in.a.To.OperationID, nil, in.pack, operation.Shards(s.cfg.Atlas, in.pack, in.live)))
	stage, due := Received, any(now)
	if behind != "" {
		stage, due = Blocked, nil
	}
	err = tx.Exec(`INSERT INTO transactions (client_id, transaction_id, attempts, open) VALUES ($1, $2, 1, 1)
		ON CONFLICT (client_id, transaction_id) DO UPDATE SET attempts = transactions.attempts + 1, open = transactions.open + 1`,
		in.scope, in.a.ID)
	if err != nil {
		return fmt.Errorf("register an answer: %w", err)
	}
	tx.Wake(laneQueue.Table)
	err = errors.Join(
		tx.Insert("operations", operationColumns+",behind", []any{in.id, in.scope, in.a.ID, attempt, string(transaction.Response), in.pack.Code,
			bool(in.live), string(country.Reporting), in.a.SupplierID, "", db.Micros(in.a.Date), now, nil, lane, string(stage),
			string(Processing), due, in.pack.Version, len(body), db.Null(behind)}),
		tx.Insert("bodies", "operation_id,body", []any{in.id, body}),
		tx.Insert("responses", "client_id,document_id,operation_id,transaction_id", []any{in.scope, in.a.To.OperationID, in.id, in.a.ID}),
	)
	if err != nil {
		return fmt.Errorf("store an answer: %w", err)
	}
	s.cfg.Count(tx, []Tallied{{Country: in.pack.Code, ClientID: in.scope, Live: in.live, Accepted: 1}})
	return nil
}

// tellAnswered adds what was answered to the life cycles of the documents, and gives their events.
func (s *Service) tellAnswered(tx *db.Tx, endings []ending) (events []webhook.Event, err error) {
	for _, e := range endings {
		if e.op.Kind != transaction.Response || e.status != Success || e.op.Document.Answer == nil {
			continue
		}
		a := e.op.Document.Answer
		said, err := s.life.TellAll(tx, []lifecycle.Subject{{ID: a.To.OperationID, TransactionID: a.To.OperationID, Scope: e.op.Scope, Succeeded: true}}, country.News{
			Key: "response/" + e.op.ID, At: tx.Now(), Code: a.Status, Name: "Answered", Source: country.FromBuyer, Severity: country.Info,
			Message: strings.TrimSpace(strings.Join([]string{a.Reason, a.Note}, " "))})
		if err != nil {
			return nil, err
		}
		events = append(events, said...)
	}
	return events, nil
}

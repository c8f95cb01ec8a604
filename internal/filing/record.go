package filing

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/period"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// Outline is the result of an operation that has not ended: what its body says.
func (s *Service) Outline(r db.Reader, scope, id string) (*result.Result, error) {
	o, err := correction.Read(r, scope, id)
	if err != nil {
		return nil, err
	}
	pack, _ := s.cfg.Atlas.Pack(o.Code)
	supplier, err := s.cfg.Companies.Supplier(r, scope, o.SupplierID)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	return result.Describe(o, pack, supplier), nil
}

// Stored reads the bytes of an attachment that lives in this slice's records.
func (s *Service) Stored(r db.Reader, a files.Attachment) ([]byte, error) {
	column := "report"
	if a.Kind == "RECEIPT" {
		column = "document"
	}
	var data []byte
	if err := r.Row("SELECT "+column+" FROM filings WHERE operation_id = $1", a.OperationID).Scan(&data); err != nil {
		return nil, fmt.Errorf("read the %s of %s: %w", a.Kind, a.OperationID, err)
	}
	return data, nil
}

// HandleMessage takes one message of an authority about a filing, in the caller's
// write, which takes no other of this country. It answers the operation it belongs
// to; "" means that the handle is not known, and nothing was stored. A decision is
// left for the holder of the lane, who is woken; see [lifecycle.Cycle.HandleMessage].
func (s *Service) HandleMessage(tx *db.Tx, at country.Environment, of country.Mailbox, m country.Message) (operationID string, err error) {
	id, err := lifecycle.Find(tx, at, of, m.Handle)
	if err != nil || id == "" {
		return "", err
	}
	if err := holdOpen(tx, id); err != nil {
		return "", err
	}
	o, stage := lifecycle.Addressee{Subject: lifecycle.Subject{ID: id}}, Stage("")
	err = tx.Row("SELECT client_id, transaction_id, stage, status, sent_at FROM operations WHERE operation_id = $1", id).
		Scan(&o.Scope, &o.TransactionID, &stage, &o.Status, db.NullInstant(&o.SentAt))
	if err != nil {
		return "", fmt.Errorf("read the operation of the filing %q: %w", m.Handle, err)
	}
	taken, err := s.life.HandleMessage(tx, at, o, m)
	if err != nil || !taken.Known {
		return "", err
	}
	if !taken.Decision || stage != Sent && stage != Pending {
		return id, nil // one that is being made ready finds it when it may be there
	}
	tx.Wake(laneQueue.Table)
	return id, apply(tx, []transition{{move: spokenOf, id: id, from: stage, values: []any{db.Micros(tx.Now())}}})
}

// Retire destroys the records of operations: bodies, results, what was filed
// and what came back. What stays answers the
// same submit again with 202, keeps numbers from being used twice and chains
// from being torn: the operation with its status, hashes and links. Documents
// and the index are destroyed by their owners, in the same write.
//
// Failure policy: it may run twice, on two nodes as well; what is gone stays gone.
func (s *Service) Retire(tx *db.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, now := db.Strings(ids), db.Micros(tx.Now())
	marks := make([][]any, len(ids))
	for i, id := range ids {
		marks[i] = []any{id, now}
	}
	if err := tx.InsertReturning(db.Insert{Table: "retired_operations", Columns: "operation_id,retired_at", Suffix: "ON CONFLICT (operation_id) DO NOTHING"}, marks, nil); err != nil {
		return fmt.Errorf("mark retired operations: %w", err)
	}
	for _, destroy := range []func() error{
		func() error { return s.destroyRecords(tx, list) },
		func() error { return exchange.ForgetOperations(tx, s.db, list) },
		func() error { return lifecycle.Forget(tx, s.db, list) },
		func() error { return period.Forget(tx, s.db, list) },
		func() error { return correction.Forget(tx, s.db, list) },
		func() error { return dropResults(tx, s.db, ids) },
	} {
		if err := destroy(); err != nil {
			return fmt.Errorf("destroy the records of retired operations: %w", err)
		}
	}
	return nil
}

// destroyRecords deletes bodies and leaves of what was filed its place in a chain,
// its hash and the name under which the authority knows it. On PostgreSQL the owner
// of the tables does it for us, and looks at the years himself.
func (s *Service) destroyRecords(tx *db.Tx, list string) error {
	remains := map[string]string{}
	rows, err := tx.Query("SELECT operation_id, filing FROM filings WHERE "+s.db.In("operation_id", "$1"), list)
	if err != nil {
		return fmt.Errorf("read filings: %w", err)
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, text string
		if err := scan(&id, &text); err != nil {
			return err
		}
		full, err := operation.ReadFiling(text, nil)
		remains[id] = operation.EncodeFiling(country.Filing{OperationID: full.OperationID, Number: full.Number,
			Kind: full.Kind, Format: full.Format, SHA256: full.SHA256, DedupeKey: full.DedupeKey, Link: full.Link,
			PreparedAt: full.PreparedAt})
		return err
	})
	if err != nil {
		return fmt.Errorf("read filings: %w", err)
	}
	if s.db.Engine() == "postgres" {
		text, _ := json.Marshal(remains) // texts always encode
		return tx.Exec("SELECT forget_records($1, $2)", list, string(text))
	}
	reduced := make([][]any, 0, len(remains))
	for id, text := range remains {
		reduced = append(reduced, []any{id, text, []byte{}})
	}
	const reduce = "UPDATE filings SET filing = $2, report = $3, receipt = NULL, document = NULL WHERE operation_id = $1"
	if err := tx.ExecEach(reduce, reduced); err != nil {
		return err
	}
	return tx.Exec("DELETE FROM bodies WHERE "+s.db.In("operation_id", "$1"), list)
}

// loadSet is how many transactions one commit of LoadSettled carries.
const loadSet = 500

// LoadSettled stores settled transactions directly, so that a benchmark can see
// how the service does when it is old. body makes the i-th body.
func (s *Service) LoadSettled(ctx context.Context, caller Caller, n int, body func(i int) []byte) error {
	for from := 0; from < n; from += loadSet {
		var set []submission
		for i := from; i < min(n, from+loadSet); i++ {
			text := body(i)
			examined, err := country.Examine(transaction.Invoice, text, s.terms(caller))
			if err != nil {
				return err
			}
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			set = append(set, s.submission(id.String(), caller, examined, text))
		}
		if err := s.db.Write(ctx, func(tx *db.Tx) error { return s.storeSettled(tx, set) }); err != nil {
			return fmt.Errorf("load settled transactions: %w", err)
		}
	}
	return nil
}

func (s *Service) storeSettled(tx *db.Tx, set []submission) error {
	now := db.Micros(tx.Now())
	var transactions, operations, bodies, filings [][]any
	for _, sub := range set {
		t := sub.examined.Transaction
		o := &operation.Operation{Accepted: operation.Accepted{ID: sub.operationID, TransactionID: t.ID, Kind: t.Kind, Code: sub.examined.Pack.Code, SupplierID: t.SupplierID,
			AcceptedAt: tx.Now()}, Content: operation.Content{Document: t, Totals: sub.examined.Totals}}
		ended := result.Describe(o, sub.examined.Pack, country.Supplier{})
		ended.Status = Success
		transactions = append(transactions, []any{sub.caller.Scope, t.ID, 1, 0, sub.operationID})
		operations = append(operations, []any{
			sub.operationID, sub.caller.Scope, t.ID, 1, string(t.Kind), o.Code, bool(sub.caller.Live), string(sub.examined.UseCase), t.SupplierID, t.Number,
			db.Micros(t.Date), now, nil, sub.lane, string(Settled), string(Success), nil, sub.examined.Pack.Version, len(sub.body), now, ended.Encode(),
		})
		bodies = append(bodies, []any{sub.operationID, sub.body, nil, db.Null(sub.digest)})
		filings = append(filings, []any{sub.operationID, sub.body, sub.operationID, "{}"})
	}
	if err := tx.Insert("transactions", "client_id,transaction_id,attempts,open,success_id", transactions...); err != nil {
		return err
	}
	if err := tx.Insert("operations", operationColumns+",settled_at,result", operations...); err != nil {
		return err
	}
	if err := tx.Insert("bodies", "operation_id,body,warnings,digest", bodies...); err != nil {
		return err
	}
	return tx.Insert("filings", "operation_id,report,sha256,filing", filings...)
}

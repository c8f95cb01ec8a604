package adoption

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// An operation waits for a person where a document at the authority may be its
// own and nobody can tell: adopted by mistake a sale would never be filed, filed
// by mistake it would be twice.

// Decision is what a person said of an operation that waited.
type Decision string

// The decisions; "" is none.
const (
	Adopt Decision = "adopt" // the document at the authority is its own
	File  Decision = "file"  // it is not registered: file it
)

// Held is an operation that waits for a person.
type Held struct {
	OperationID string    `json:"operation_id"`
	ClientID    string    `json:"client_id"`
	SupplierID  string    `json:"supplier_id"`
	Number      string    `json:"number"` // of the document that may be its own; "" where the authority has no list
	Why         string    `json:"why"`
	Since       time.Time `json:"since"`
}

// Store lets an operation wait.
func (h Held) Store(tx *db.Tx) error {
	return tx.Exec(`INSERT INTO held_operations (operation_id, client_id, supplier_id, number, why, since) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (operation_id) DO UPDATE SET number = excluded.number, why = excluded.why, since = excluded.since, decision = ''`,
		h.OperationID, h.ClientID, h.SupplierID, h.Number, h.Why, db.Micros(tx.Now()))
}

// HeldList lists the operations that wait.
func HeldList(r db.Reader) ([]Held, error) {
	list, err := db.Collect(r, scanHeld, "SELECT "+heldColumns+" FROM held_operations WHERE decision = '' ORDER BY operation_id")
	if err != nil {
		return nil, fmt.Errorf("list held operations: %w", err)
	}
	return list, nil
}

const heldColumns = "operation_id, client_id, supplier_id, number, why, since"

func scanHeld(scan func(...any) error) (h Held, err error) {
	var since int64
	err = scan(&h.OperationID, &h.ClientID, &h.SupplierID, &h.Number, &h.Why, &since)
	h.Since = db.FromMicros(since)
	return h, err
}

// HeldOf is what a person must know of an operation that waits; false: it does not.
func HeldOf(r db.Reader, operationID string) (h Held, waits bool, err error) {
	h, err = scanHeld(r.Row("SELECT "+heldColumns+" FROM held_operations WHERE operation_id = $1 AND decision = ''", operationID).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return Held{}, false, nil
	}
	return h, err == nil, err
}

// Decided is what a person said of an operation, and which number they named.
func Decided(r db.Reader, operationID string) (d Decision, number string, err error) {
	err = r.Row("SELECT decision, number FROM held_operations WHERE operation_id = $1", operationID).Scan(&d, &number)
	if errors.Is(err, db.ErrNoRows) {
		err = nil
	}
	return d, number, err
}

// DecidedAt is when a person last said something of an operation; zero: never.
func DecidedAt(r db.Reader, operationID string) (at time.Time, err error) {
	err = r.Row("SELECT decided_at FROM held_operations WHERE operation_id = $1", operationID).Scan(db.NullInstant(&at))
	if errors.Is(err, db.ErrNoRows) {
		err = nil
	}
	return at, err
}

// Decide stores what a person said. Who adopts where the authority has no list
// names the document.
func Decide(tx *db.Tx, operationID string, d Decision, doc Gap) (Held, error) {
	h, waits, err := HeldOf(tx, operationID)
	if err != nil {
		return h, err
	}
	if !waits {
		return h, fault.New(fault.Conflict, "operation %s does not wait for a decision", operationID)
	}
	if d == Adopt && h.Number == "" {
		if doc.Number == "" {
			return h, fault.New(fault.Invalid, "say under which number the authority holds it")
		}
		if _, err := Leave(tx, operation.Place{Scope: h.ClientID, SupplierID: h.SupplierID}, []Gap{doc}); err != nil {
			return h, err
		}
		h.Number = doc.Number
	}
	return h, tx.Exec("UPDATE held_operations SET decision = $2, number = $3, decided_at = $4 WHERE operation_id = $1",
		operationID, string(d), h.Number, db.Micros(tx.Now()))
}

// Unlisted notes that a supplier's authority has no list: which periods it was
// told of before a backup was restored nobody knows but a person.
func Unlisted(tx *db.Tx, of operation.Place, began time.Time) error {
	return tx.Exec(`INSERT INTO unlisted_suppliers (client_id, supplier_id, began) VALUES ($1, $2, $3)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET began = excluded.began`, of.Scope, of.SupplierID, db.Micros(began))
}

// Untold reports whether nobody knows what a supplier's authority was told of a
// period: it had ended when the backup was restored, late sales and all.
func Untold(r db.Reader, of operation.Place, ended time.Time) (untold bool, err error) {
	err = r.Row("SELECT count(*) > 0 FROM unlisted_suppliers WHERE client_id = $1 AND supplier_id = $2 AND began >= $3",
		of.Scope, of.SupplierID, db.Micros(ended)).Scan(&untold)
	return untold, err
}

// Left is a gap, and who adopted it.
type Left struct {
	Gap
	OperationID string // "" while nobody did
}

// Under reads the gaps of a supplier whose numbers begin alike, adopted or not.
func Under(r db.Reader, of operation.Place, prefix string) ([]Left, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (l Left, err error) {
		l.Gap, err = scanGap(func(to ...any) error { return scan(append(to, &l.OperationID)...) })
		return l, err
	}, "SELECT "+gapColumns+", coalesce(operation_id, '') FROM adoptions WHERE client_id = $1 AND supplier_id = $2 AND number >= $3 AND number < $4 ORDER BY number",
		of.Scope, of.SupplierID, prefix, prefix+"~")
	if err != nil {
		return nil, fmt.Errorf("look for documents of a period: %w", err)
	}
	return list, nil
}

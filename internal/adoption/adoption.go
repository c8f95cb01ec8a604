// Package adoption keeps documents that an authority holds and a restored backup
// does not know, until the operations come that made them: these adopt them
// instead of being filed.
//
// It owns adoptions, held_operations and unlisted_suppliers.
package adoption

import (
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Gap is a document that an authority holds and a restored backup does not know.
type Gap struct {
	Number    string // "" for a cancellation that is seen only at its original
	Reference string
	ID1, ID2  string
	Kind      transaction.Kind // "" where the authority does not say
	Day       string
	Gross     *int64 // sums are nil where the authority does not say
	Net, Tax  *int64
	Currency  string   // of the sums; "" for that of the document
	Customer  string   // tax number; "" where the authority does not say
	Sales     []string // numbers in the document of a period; nil where the authority does not say
	Lines     []int64  // without tax; nil where the authority does not say
	SHA256    string
	QRCode    string
	At        time.Time
	Found     time.Time // by us
}

// Leave leaves documents for the operations that come for them: these are
// adopted instead of being filed. It returns how many were not known before.
func Leave(tx *db.Tx, of operation.Place, gaps []Gap) (added int64, err error) {
	if len(gaps) == 0 {
		return 0, nil
	}
	rows := make([][]any, len(gaps))
	for i, g := range gaps {
		at := any(nil)
		if !g.At.IsZero() {
			at = db.Micros(g.At)
		}
		rows[i] = []any{of.Scope, of.SupplierID, g.Number, g.Reference, g.ID1, g.ID2, string(g.Kind), g.Day,
			g.Gross, g.Net, g.Tax, g.Currency, g.Customer, encoded(g.Sales), encoded(g.Lines), g.SHA256, g.QRCode, at, db.Micros(tx.Now())}
	}
	err = tx.InsertReturning(insert, rows, func(*db.Rows) error { added++; return nil })
	return added, err
}

var insert = db.Insert{
	Table: "adoptions",
	Columns: "client_id,supplier_id,number,reference,authority_id_1,authority_id_2,kind,day," +
		"gross,net,tax,currency,customer,sales,lines,sha256,qr_code,registered_at,found_at",
	Suffix: "ON CONFLICT (client_id, supplier_id, number, reference, authority_id_1, authority_id_2) DO NOTHING RETURNING number",
}

// Entry is the document as its authority's list named it.
func (g *Gap) Entry() country.Entry {
	return country.Entry{Number: g.Number, AuthorityID1: g.ID1, AuthorityID2: g.ID2, Kind: g.Kind, Reference: g.Reference, At: g.At}
}

// Read keeps the lines that were read from a document which waits.
func Read(tx *db.Tx, of operation.Place, key Key, lines []int64) error {
	err := tx.Exec(`UPDATE adoptions SET lines = $1 WHERE client_id = $2 AND supplier_id = $3 AND number = $4 AND reference = $5
		AND authority_id_1 = $6 AND authority_id_2 = $7`, encoded(lines), of.Scope, of.SupplierID, key.number, key.reference, key.id1, key.id2)
	if err != nil {
		return fmt.Errorf("keep the lines of %s: %w", key.number, err)
	}
	return nil
}

// Counts counts, by supplier, what was left for adoption, and how much of it was adopted.
func Counts(r db.Reader) (found map[[2]string][2]int64, err error) {
	found = map[[2]string][2]int64{}
	rows, err := r.Query("SELECT client_id, supplier_id, count(*), count(operation_id) FROM adoptions GROUP BY client_id, supplier_id")
	if err != nil {
		return nil, fmt.Errorf("count adoptions: %w", err)
	}
	return found, rows.Each(func(scan func(...any) error) error {
		var key [2]string
		var n [2]int64
		err := scan(&key[0], &key[1], &n[0], &n[1])
		found[key] = n
		return err
	})
}

// Key is a gap's primary key within its supplier.
type Key struct{ number, reference, id1, id2 string }

// Key is what tells a gap from others.
func (g *Gap) Key() Key { return Key{g.Number, g.Reference, g.ID1, g.ID2} }

// Receipt is the authority's word on the document, as far as it can be had.
func (g *Gap) Receipt() country.Receipt {
	return country.Receipt{Outcome: country.Accepted, AuthorityID1: g.ID1, AuthorityID2: g.ID2, QRCode: g.QRCode,
		SHA256: g.SHA256, At: g.At}
}

// near reports whether a document's day is a given one, or next to it.
func near(date time.Time, where *time.Location, day string) bool {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return false
	}
	if where == nil {
		where = time.UTC
	}
	own, _ := time.Parse(time.DateOnly, date.In(where).Format(time.DateOnly)) // printed a moment ago
	return own.Sub(at).Abs() <= 24*time.Hour
}

// Taken is a gap that an operation adopts.
type Taken struct {
	Gap         *Gap
	OperationID string
}

// Take stores who adopted which gap: one each.
func Take(tx *db.Tx, of operation.Place, list []Taken) error {
	rows := make([][]any, len(list))
	for i, t := range list {
		rows[i] = []any{of.Scope, of.SupplierID, t.Gap.Number, t.Gap.Reference, t.Gap.ID1, t.Gap.ID2, t.OperationID}
	}
	if err := tx.ExecEachOne(`UPDATE adoptions SET operation_id = $7 WHERE client_id = $1 AND supplier_id = $2 AND number = $3 AND reference = $4
		AND authority_id_1 = $5 AND authority_id_2 = $6 AND operation_id IS NULL`, rows); err != nil {
		return fmt.Errorf("adopt gaps: %w", err)
	}
	return nil
}

// Fill closes the gap of a success that the authority confirmed otherwise, when it
// was asked for bytes the backup had; rows are its number, its id there, its operation.
func Fill(tx *db.Tx, of operation.Place, rows [][]any) error {
	for i, row := range rows {
		rows[i] = append([]any{of.Scope, of.SupplierID}, row...)
	}
	return tx.ExecEach(`UPDATE adoptions SET operation_id = $5 WHERE client_id = $1 AND supplier_id = $2 AND number = $3
		AND (authority_id_1 = $4 OR authority_id_1 = '') AND operation_id IS NULL`, rows)
}

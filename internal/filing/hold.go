package filing

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// What the package recovery may do to filings: hold a supplier, release it,
// make links anew, leave documents for adoption, and close the intake. It
// writes nothing of filing's in any other way.

// Hold is why nothing of a supplier is filed.
type Hold struct {
	Place
	Reason fault.Code // Held or ChainStopped
	Why    string     // for people
	Since  time.Time
}

// Hold lets nothing of a supplier be filed until Release.
//
// Failure policy: it is a row that every holder of a lane reads before it
// works, so it outlives crashes and binds every node. A holder that read
// before the hold was stored finishes its visit.
func (s *Service) Hold(tx *db.Tx, h Hold) error {
	return tx.Exec(`INSERT INTO supplier_holds (client_id, supplier_id, country, live, reason, why, since) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET reason = excluded.reason, why = excluded.why, since = excluded.since, released_at = NULL`,
		h.Scope, h.SupplierID, h.Code, bool(h.Live), string(h.Reason), h.Why, db.Micros(tx.Now()))
}

// Release lets a supplier's lanes go on. One that was never held is noted as
// looked into: it is not held as a newcomer either.
func (s *Service) Release(tx *db.Tx, p Place) error {
	now := db.Micros(tx.Now())
	err := tx.Exec(`INSERT INTO supplier_holds (client_id, supplier_id, country, live, reason, why, since, released_at) VALUES ($1, $2, $3, $4, $5, '', $6, $6)
		ON CONFLICT (client_id, supplier_id) DO UPDATE SET released_at = excluded.released_at`, p.Scope, p.SupplierID, p.Code, bool(p.Live), string(fault.Held), now)
	if err != nil {
		return err
	}
	lanes, err := lanesOfSupplier(tx, p.Scope, p.SupplierID)
	if err != nil {
		return err
	}
	rows := make([][]any, len(lanes))
	for i, lane := range lanes {
		rows[i] = []any{lane, now, string(fault.Held), string(fault.ChainStopped)}
	}
	tx.Wake(laneQueue.Table)
	return tx.ExecEach("UPDATE lanes SET "+soonAgain+", reason = '', trouble = '' WHERE lane = $1 AND lease_until IS NULL AND reason IN ($3, $4)", rows)
}

// soonAgain ends our own pause of a lane; what the authority asked for stays. $2 is now.
const soonAgain = "due_at = CASE WHEN asked_until > $2 THEN asked_until END"

// Holds lists the suppliers that are held.
func Holds(r db.Reader) ([]Hold, error) {
	list, err := db.Collect(r, scanHold, "SELECT "+holdColumns+" FROM supplier_holds WHERE released_at IS NULL ORDER BY client_id, supplier_id")
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	return list, nil
}

const holdColumns = "client_id, supplier_id, country, live, reason, why, since"

func scanHold(scan func(...any) error) (h Hold, err error) {
	var live bool
	var since int64
	err = scan(&h.Scope, &h.SupplierID, &h.Code, &live, &h.Reason, &h.Why, &since)
	h.Live, h.Since = country.Live(live), db.FromMicros(since)
	return h, err
}

// HoldOf is why a supplier is held; false: it is not.
func HoldOf(r db.Reader, clientID, supplierID string) (Hold, bool, error) {
	h, err := scanHold(r.Row("SELECT "+holdColumns+" FROM supplier_holds WHERE client_id = $1 AND supplier_id = $2 AND released_at IS NULL",
		clientID, supplierID).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return Hold{}, false, nil
	}
	return h, err == nil, err
}

// Relink sets the head on which a chain's next link is built, and lets
// operations that the authority does not hold be prepared anew behind it.
//
// Failure policy: the lane is taken from whoever works it, so that nobody sends
// a link that is undone here; its next holder finds everything as it is stored.
func (s *Service) Relink(tx *db.Tx, lane string, head country.Link, anew []OpenLink) error {
	if err := tx.Exec("UPDATE lanes SET lease_token = lease_token + 1, lease_until = NULL, lease_node = NULL, due_at = NULL WHERE lane = $1 AND lease_until IS NOT NULL", lane); err != nil {
		return err
	}
	tx.Wake(laneQueue.Table)
	return s.relink(tx, lane, head, anew)
}

// relink is Relink for the lane's own holder.
func (s *Service) relink(tx *db.Tx, lane string, head country.Link, anew []OpenLink) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	list, marks := make([]transition, len(anew)), make([]mark, len(anew))
	for i, l := range anew {
		marks[i] = mark{l.OperationID, l.SentAt}
		list[i] = transition{move: relinked, id: l.OperationID, from: l.Stage}
	}
	if err := s.keepMarks(tx, lane, marks); err != nil {
		return err
	}
	if err := tx.Exec("DELETE FROM filings WHERE "+s.db.In("operation_id", "$1"), db.Strings(idsOf(list))); err != nil {
		return err
	}
	if err := apply(tx, list); err != nil {
		return err
	}
	if err := tx.Exec("DELETE FROM chains WHERE lane = $1", lane); err != nil || head.Position == 0 {
		return err // at position 0 it begins anew
	}
	return tx.Insert("chains", "lane,position,link", []any{lane, head.Position, string(text)})
}

// Gap is a document that an authority holds and a restored backup does not know.
type Gap struct {
	Number    string // "" for a cancellation that is seen only at its original
	Reference string
	ID1, ID2  string
	Kind      transaction.Kind // "" where the authority does not say
	Day       string
	Gross     *int64
	SHA256    string
	QRCode    string
	At        time.Time
}

// Adopt leaves documents for the operations that come for them: these are
// adopted instead of being filed. It returns how many were not known before.
func (s *Service) Adopt(tx *db.Tx, clientID, supplierID string, gaps []Gap) (added int64, err error) {
	if len(gaps) == 0 {
		return 0, nil
	}
	rows := make([][]any, len(gaps))
	for i, g := range gaps {
		at := any(nil)
		if !g.At.IsZero() {
			at = db.Micros(g.At)
		}
		rows[i] = []any{clientID, supplierID, g.Number, g.Reference, g.ID1, g.ID2, string(g.Kind), g.Day, g.Gross, g.SHA256, g.QRCode, at, db.Micros(tx.Now())}
	}
	err = tx.InsertReturning(insertGaps, rows, func(*db.Rows) error { added++; return nil })
	return added, err
}

var insertGaps = db.Insert{
	Table:   "adoptions",
	Columns: "client_id,supplier_id,number,reference,authority_id_1,authority_id_2,kind,day,gross,sha256,qr_code,registered_at,found_at",
	Suffix:  "ON CONFLICT (client_id, supplier_id, number, reference, authority_id_1, authority_id_2) DO NOTHING RETURNING number",
}

// Adoptions counts, by supplier, what was left for adoption, and how much of it was adopted.
func Adoptions(r db.Reader) (found map[[2]string][2]int64, err error) {
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

// TakeForSent makes every operation that was prepared one that may be at its
// authority: provably unsent when a backup was made is not provably unsent when
// it is restored.
func (s *Service) TakeForSent(tx *db.Tx) error {
	list, err := db.Collect(tx, func(scan func(...any) error) (t transition, err error) {
		var at int64
		t = transition{move: takenForSent, from: Prepared}
		err = scan(&t.id, &at)
		t.values = []any{at}
		return t, err
	}, "SELECT operation_id, coalesce(sent_at, $1) FROM operations WHERE stage = 'prepared'", db.Micros(tx.Now()))
	if err != nil {
		return fmt.Errorf("look for prepared operations: %w", err)
	}
	return apply(tx, list)
}

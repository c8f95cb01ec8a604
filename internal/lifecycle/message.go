package lifecycle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/operation"
)

// Handle is a name by which an authority that calls us may speak of a filing.
type Handle struct {
	Name string // "": there is none
	Of   *operation.Accepted
}

// KeepHandles notes names.
func KeepHandles(tx *db.Tx, handles []Handle) error {
	var rows [][]any
	for _, h := range handles {
		if h.Name != "" && h.Name != h.Of.ID { // our own id needs no table
			rows = append(rows, []any{h.Of.Code, bool(h.Of.Live), h.Name, h.Of.ID})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.InsertReturning(db.Insert{Table: "filing_handles", Columns: "country,live,handle,operation_id",
		Suffix: "ON CONFLICT (country, live, handle, operation_id) DO NOTHING RETURNING handle"}, rows, func(*db.Rows) error {
		return nil
	})
}

// Find is the operation by a name under which an authority speaks of its filing;
// "": nobody has it. What lay in a company's mailbox speaks of that company's
// filings alone: a name that two companies use must not end the other's.
func Find(tx *db.Tx, at country.Environment, of country.Mailbox, handle string) (operationID string, err error) {
	text := `SELECT n.operation_id FROM (SELECT operation_id FROM filing_handles WHERE country = $1 AND live = $2 AND handle = $3
		UNION ALL SELECT operation_id FROM operations WHERE country = $1 AND live = $2 AND operation_id = $3) AS n`
	args := []any{at.Code, bool(at.Live), handle}
	if of != (country.Mailbox{}) {
		text += " JOIN operations o ON o.operation_id = n.operation_id WHERE o.client_id = $4 AND o.supplier_id = $5"
		args = append(args, of.Scope, of.SupplierID)
	}
	err = tx.Row(text+" ORDER BY n.operation_id DESC LIMIT 1", args...).Scan(&operationID)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return "", fmt.Errorf("look for the filing %q: %w", handle, err)
	}
	return operationID, nil
}

// Addressee is the operation that a message speaks of, as it stands.
type Addressee struct {
	Subject
	Status operation.Status
	SentAt time.Time
}

// Taken is what became of a message.
type Taken struct {
	Known    bool // it belongs to the operation; else nothing was stored
	Decision bool // it decides, and that is new: the holder of the lane acts on it
}

// HandleMessage takes one message of an authority about a filing: news of it, a
// decision, or both. The same message again changes nothing.
//
// A decision does not end anything here: it is left for the holder of the lane,
// who treats it like an answer. A decision that contradicts how an operation has
// ended changes nothing either: of a SUCCESS it is an entry of severity PROBLEM,
// of a FAILURE an alert.
func (c *Cycle) HandleMessage(tx *db.Tx, at country.Environment, o Addressee, m country.Message) (taken Taken, err error) {
	if others, err := ofOthers(tx, o.ID, m.Receipt.SHA256); err != nil || others {
		return taken, err
	}
	if m.Receipt.Outcome == country.Rejected && m.Receipt.Duplicate {
		if what, err := c.isDuplicateReply(tx, at, o); err != nil || what != notDuplicate {
			return Taken{Known: what == duplicateOfOurs && err == nil}, err
		}
	}
	taken.Known = true
	news := m.Receipt.News
	switch o.Status {
	case operation.Success:
		o.Succeeded = true
		news = append(slices.Clone(news), contradiction(m.Receipt)...)
	case operation.Failure:
		if m.Receipt.Outcome == country.Accepted {
			err = c.Alerts.RaiseIn(tx, alert.OutcomeContested, o.ID,
				fmt.Sprintf("the authority says that it accepted operation %s, which ended in FAILURE", o.ID))
		}
	default:
		taken.Decision, err = queueDecision(tx, o.ID, m)
	}
	if err != nil {
		return Taken{}, err
	}
	return taken, c.Announce(tx, o.Subject, news)
}

// queueDecision leaves a decision for the holder of the lane; false: it is none, or not new.
func queueDecision(tx *db.Tx, operationID string, m country.Message) (fresh bool, err error) {
	if m.Receipt.Outcome != country.Accepted && m.Receipt.Outcome != country.Rejected {
		return false, nil
	}
	key := fault.Clip(cmp.Or(m.Key, string(m.Receipt.Outcome)), keyMax)
	row := []any{operationID, key, operation.EncodeReceipt(m.Receipt), m.Receipt.Document, m.Raw, db.Micros(tx.Now())}
	err = tx.InsertReturning(db.Insert{Table: "told", Columns: "operation_id,message_key,receipt,document,raw,at",
		Suffix: "ON CONFLICT (operation_id, message_key) DO NOTHING RETURNING message_key"}, [][]any{row}, func(*db.Rows) error {
		fresh = true
		return nil
	})
	return fresh, err
}

// ofOthers reports whether a message names the bytes of another document than
// ours: somebody else has used the name as well.
func ofOthers(tx *db.Tx, operationID, hash string) (bool, error) {
	if hash == "" {
		return false, nil
	}
	var text string
	err := tx.Row("SELECT filing FROM filings WHERE operation_id = $1", operationID).Scan(&text)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look what was filed of %s: %w", operationID, err)
	}
	filed, err := operation.ReadFiling(text, nil)
	return err == nil && filed.SHA256 != hash, err
}

// duplicate is what a refusal of a name as used means.
type duplicate int

const (
	notDuplicate    duplicate = iota // somebody else has used it
	duplicateOfOurs                  // we have: the first filing lives on
	duplicateOrNot                   // nobody knows yet
)

// isDuplicateReply judges the refusal of a filing whose name an authority knows
// already. Of one that left twice it speaks of the first. Of one that left once it
// is believed when nothing else was said for as long as the authority may take to
// speak of what it has.
func (c *Cycle) isDuplicateReply(tx *db.Tx, at country.Environment, o Addressee) (duplicate, error) {
	before, err := exchange.SentBefore(tx, o.ID)
	if err != nil {
		return duplicateOrNot, err
	}
	if before || o.Status != operation.Processing {
		return duplicateOfOurs, nil
	}
	channel, err := c.Atlas.Channel(at.Code, at.Live)
	if err != nil {
		return duplicateOrNot, nil // no address now: it is looked at again
	}
	if tx.Now().Before(o.SentAt.Add(channel.Limits().VisibleAfter)) {
		return duplicateOrNot, nil
	}
	return notDuplicate, nil
}

// Decisions reads those that came by themselves, the first of each operation.
func Decisions(r db.Reader, d *db.DB, ids []string) (map[string]*country.Receipt, error) {
	rows, err := r.Query("SELECT operation_id, receipt, document, raw FROM told WHERE "+d.In("operation_id", "$1")+
		" ORDER BY operation_id, at", db.Strings(ids))
	if err != nil {
		return nil, fmt.Errorf("look for decisions: %w", err)
	}
	found := map[string]*country.Receipt{}
	return found, rows.Each(func(scan func(...any) error) error {
		var id, text string
		var said country.Receipt
		if err := scan(&id, &text, &said.Document, &said.Raw); err != nil {
			return err
		}
		if found[id] != nil {
			return nil
		}
		document, raw := said.Document, said.Raw
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			return fmt.Errorf("read a decision on %s: %w", id, err)
		}
		said.Document, said.Raw = document, raw
		said = said.Bounded()
		found[id] = &said
		return nil
	})
}

// ForgetDecisions removes those that were acted on.
func ForgetDecisions(tx *db.Tx, d *db.DB, ids []string) error {
	return tx.Exec("DELETE FROM told WHERE "+d.In("operation_id", "$1"), db.Strings(ids))
}

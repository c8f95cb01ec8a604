package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// End is how an operation ended.
type End struct {
	Status     operation.Status
	Faults     []fault.Fault
	Filing     country.Filing
	Receipt    country.Receipt
	Structured *country.Structured // the invoice as data; nil: there is none
	Visual     bool                // there is a document for people
	At         time.Time
}

// Ended is what the settling commit keeps: final but for addresses and corrections.
func Ended(o *operation.Operation, pack country.Pack, supplier country.Supplier, e End) *Result {
	r := Describe(o, pack, supplier)
	r.Status = e.Status
	for _, f := range e.Faults {
		r.Errors = append(r.Errors, o.Document.Spelled(f))
	}
	if e.Status != operation.Success {
		return r
	}
	r.UniqueNumber = opt(o.UniqueNumber())
	if e.Visual {
		r.GeneratedAt = opt(Stamp(e.At))
	}
	if e.Structured != nil {
		r.RoundingAmount = e.Structured.Rounding
		if o.Whole() {
			r.RoundingAmount = -r.RoundingAmount
		}
	}
	r.AuthorityID1 = opt(e.Receipt.AuthorityID1)
	r.AuthorityID2 = opt(cmp.Or(e.Receipt.AuthorityID2, e.Filing.AuthorityID))
	r.QRCode = opt(cmp.Or(e.Receipt.QRCode, e.Filing.QRCode))
	if e.Receipt.Outcome == country.Accepted {
		at := e.Receipt.At
		if at.IsZero() {
			at = e.At
		}
		r.ReportedAt = opt(Stamp(at))
	}
	if o.Kind == transaction.Backfill {
		r.AuthorityID1 = opt(o.Document.AuthorityID1)
	}
	return r
}

// Encode is the stored form.
func (r *Result) Encode() string {
	text, _ := json.Marshal(r) // plain data always encodes
	return string(text)
}

// Stored is the result that a settling commit kept; fault.Expired once it was
// destroyed.
func Stored(r db.Reader, id string) (*Result, error) {
	text, err := ReadKept(r, id)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	if err := json.Unmarshal([]byte(text.Text), result); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", id, err)
	}
	result.gathered(text)
	return result, nil
}

// ReadKept is the same as it stands.
func ReadKept(r db.Reader, id string) (text Kept, err error) {
	var stored *string
	err = r.Row(`SELECT o.result, e.authority_id_1, e.authority_id_2 FROM operations o LEFT JOIN period_entries e ON e.operation_id = o.operation_id
		WHERE o.operation_id = $1`, id).Scan(&stored, &text.ID1, &text.ID2)
	if err != nil {
		return text, fmt.Errorf("read the result of %s: %w", id, err)
	}
	if stored == nil {
		gone, err := Retired(r, id)
		if err == nil && gone {
			err = Expired()
		} else if err == nil {
			err = fmt.Errorf("operation %s has no stored result", id)
		}
		return text, err
	}
	text.Text = *stored
	return text, nil
}

// Retired reports whether an operation's record was destroyed.
func Retired(r db.Reader, id string) (bool, error) {
	var one int
	err := r.Row("SELECT 1 FROM retired_operations WHERE operation_id = $1", id).Scan(&one)
	if errors.Is(err, db.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s among the retired: %w", id, err)
	}
	return true, nil
}

// Expired is the answer to who asks for a record that was destroyed.
func Expired() error {
	const message = "the record was kept for the years of the law, and is destroyed"
	return fault.New(fault.Expired, message).With(fault.Fault{Code: fault.CodeExpired, Type: fault.General, Message: message})
}

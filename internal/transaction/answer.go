package transaction

import (
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/fault"
)

// What a company may answer to a document that it received.
const (
	Accepted = "ACCEPTED"
	Rejected = "REJECTED"
	Disputed = "DISPUTED"
	Paid     = "PAID"
)

// AnswerStatuses are all that can be answered.
func AnswerStatuses() []string { return []string{Accepted, Rejected, Disputed, Paid} }

// Answer is what a company of ours says to a document that it received. It is the body of an operation of kind
// [Response], which the service itself writes.
type Answer struct {
	ID         string    `json:"transaction_id"`
	Country    string    `json:"country_code"`
	SupplierID string    `json:"company_id"`
	Date       time.Time `json:"date"`
	Status     string    `json:"status"`
	Reason     string    `json:"reason,omitempty"` // the network's own code, where it has one for it
	Note       string    `json:"note,omitempty"`
	To         Answered  `json:"to"`
}

// Answered is the document that is answered, as far as an answer names it.
type Answered struct {
	OperationID  string    `json:"operation_id"`
	Source       string    `json:"source"` // upload, or the endpoint that brought it
	AuthorityID  string    `json:"authority_id,omitempty"`
	AuthorityID2 string    `json:"authority_id_2,omitempty"`
	At           time.Time `json:"at"` // when it came
	Format       string    `json:"format"`
	TypeCode     string    `json:"type_code"`
	Number       string    `json:"number"`
	Day          string    `json:"day"` // YYYY-MM-DD
	Currency     string    `json:"currency"`
	Gross        int64     `json:"gross"`
	Sender       Party     `json:"sender"`
	Receiver     Party     `json:"receiver"`
}

// Said is what the client says of it; equal answers are one.
func (a *Answer) Said() [3]string { return [3]string{a.Status, a.Reason, a.Note} }

// Body is the answer as it is stored.
func (a *Answer) Body() ([]byte, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("write an answer: %w", err)
	}
	return body, nil
}

// readAnswer reads a stored answer back; nobody else sends one.
func readAnswer(body []byte) (*Reading, error) {
	a := &Answer{}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fault.New(fault.Invalid, "the body is no answer").Because(err)
	}
	return &Reading{Transaction: &Transaction{Kind: Response, ID: a.ID, CountryCode: a.Country, SupplierID: a.SupplierID, Date: a.Date,
		Note: a.Note, Answer: a}}, nil
}

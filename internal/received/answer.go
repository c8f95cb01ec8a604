package received

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// Answered is what an answer to a document says of it, with the company of ours that was its receiver and that
// company's country.
func (d *Documents) Answered(ctx context.Context, scope, id string) (a transaction.Answer, err error) {
	var status operation.Status
	var text *string
	var came int64
	err = d.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT status, company_id, country, source, accepted_at, result FROM received WHERE client_id = $1 AND operation_id = $2",
			scope, id).Scan(&status, &a.SupplierID, &a.Country, &a.To.Source, &came, &text)
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		const message = "there is no received document with this operation_id"
		return a, fault.New(fault.NotFound, message).With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: message})
	case err != nil:
		return a, fmt.Errorf("read the received document %s: %w", id, err)
	case text == nil:
		return a, result.Expired()
	case status != operation.Success:
		const message = "the document is not read, or cannot be: its status must be SUCCESS"
		return a, fault.New(fault.Conflict, message).With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Message: message})
	}
	var said result.Result
	if err := json.Unmarshal([]byte(*text), &said); err != nil {
		return a, fmt.Errorf("read the result of %s: %w", id, err)
	}
	a.To.OperationID, a.To.At = id, db.FromMicros(came)
	a.To.AuthorityID, a.To.AuthorityID2 = result.Text(said.AuthorityID1), result.Text(said.AuthorityID2)
	a.To.Format, a.To.TypeCode, a.To.Number = said.DocumentFormat, said.DocumentType, result.Text(said.Number)
	a.To.Day, _, _ = strings.Cut(said.Date, "T")
	a.To.Currency = result.Text(said.CurrencyCode)
	if said.TotalAmount != nil {
		a.To.Gross = *said.TotalAmount
	}
	a.To.Sender, a.To.Receiver = said.Supplier.Party(), said.Customer.Party()
	return a, nil
}

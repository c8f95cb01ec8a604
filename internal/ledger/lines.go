package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// Line is an operation as lists show it to people: with whom and for how much,
// and why it failed or waits.
type Line struct {
	Summary
	Total              *int64 // nil: not known yet
	Currency           string
	Customer, Supplier string
	Reason             string // code of the first error, or of the wait; "" where all is well
	Message            string // of the error
}

// Lines adds what people want to see to the operations of one page.
func (s *Ledger) Lines(ctx context.Context, list []Summary) (lines []Line, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		lines, err = s.lines(r, list)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the lines of a list: %w", err)
	}
	return lines, nil
}

func (s *Ledger) lines(r db.Reader, list []Summary) ([]Line, error) {
	lines, at, ids := make([]Line, len(list)), map[string]*Line{}, make([]string, len(list))
	for i, one := range list {
		lines[i] = Line{Summary: one}
		at[one.OperationID], ids[i] = &lines[i], one.OperationID
	}
	if len(list) == 0 {
		return nil, nil
	}
	rows, err := r.Query("SELECT o.operation_id, b.body, coalesce(o.result, ''), "+reasonSQL("o", "$2")+
		" FROM operations o JOIN bodies b ON b.operation_id = o.operation_id LEFT JOIN lanes l ON l.lane = o.lane WHERE "+
		s.db.In("o.operation_id", "$1"), db.Strings(ids), db.Micros(r.Now()))
	if err != nil {
		return nil, err
	}
	err = rows.Each(func(scan func(...any) error) error {
		var id, result, reason string
		var body []byte
		if err := scan(&id, &body, &result, &reason); err != nil {
			return err
		}
		l := at[id]
		if l.Status == filing.Processing {
			l.Reason = reason
		}
		l.read(body)
		return l.readResult(result)
	})
	if err != nil {
		return nil, err
	}
	if err := s.receivedLines(r, at); err != nil {
		return nil, err
	}
	return lines, s.nameSuppliers(r, lines)
}

// read takes what the submitted body says; what cannot be read is left out.
func (l *Line) read(body []byte) {
	t, _, _ := transaction.Decode(l.Kind, body)
	if t == nil {
		return
	}
	l.Currency = t.CurrencyCode
	if t.Customer != nil {
		l.Customer = t.Customer.LegalName
	}
	if len(t.Items) > 0 {
		if totals, _ := transaction.Calculate(t.Items); totals.Gross != 0 {
			l.Total = &totals.Gross
		}
	}
}

func (l *Line) readResult(text string) error {
	if text == "" {
		return nil
	}
	var row result.Row
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return fmt.Errorf("read the result of %s: %w", l.OperationID, err)
	}
	if row.TotalAmount != nil {
		l.Total = row.TotalAmount
	}
	if row.CurrencyCode != nil {
		l.Currency = *row.CurrencyCode
	}
	if row.Customer != nil && row.Customer.LegalName != "" {
		l.Customer = row.Customer.LegalName
	}
	for _, f := range row.Errors {
		if l.Status == filing.Failure && f.Type != fault.Warning {
			l.Reason, l.Message = string(f.Code), f.Message
			break
		}
	}
	return nil
}

func (s *Ledger) nameSuppliers(r db.Reader, lines []Line) error {
	names := map[[2]string]string{}
	for i := range lines {
		l := &lines[i]
		if l.Received {
			continue // their results name them
		}
		key := [2]string{l.ClientID, l.SupplierID}
		name, known := names[key]
		if !known && l.SupplierID != "" {
			company, err := s.cfg.Companies.Supplier(r, l.ClientID, l.SupplierID)
			if err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
			name = company.LegalName
			names[key] = name
		}
		l.Supplier = name
	}
	return nil
}

// Alike counts the operations that wait at one environment for one reason.
func Alike(waits []Waiting, at country.Environment, code fault.Code) int {
	for _, w := range waits {
		if w.At == at && w.Code == code {
			return w.Operations
		}
	}
	return 0
}

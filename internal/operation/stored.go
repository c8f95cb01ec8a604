package operation

import (
	"encoding/json"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Scan reads Fields.
func Scan(scan func(...any) error) (*Operation, error) {
	o := &Operation{}
	var live bool
	var accepted int64
	err := scan(o.Targets(&live, &accepted)...)
	o.Live, o.AcceptedAt = country.Live(live), db.FromMicros(accepted)
	return o, err
}

// EncodeFiling is the stored form of a filing; its report has a column of its own.
func EncodeFiling(f country.Filing) string {
	f.Report = nil
	text, _ := json.Marshal(f) // plain data always encodes
	return string(text)
}

// ReadFiling reads what is stored of a filing, with its report.
func ReadFiling(text string, report []byte) (f country.Filing, err error) {
	if err = json.Unmarshal([]byte(text), &f); err != nil {
		return f, fmt.Errorf("read a stored filing: %w", err)
	}
	if len(report) > 0 { // of an adopted document nothing is left
		f.Report = report
	}
	return f, nil
}

// EncodeReceipt is the stored form of a receipt.
func EncodeReceipt(r country.Receipt) string {
	r.Raw, r.Document, r.News = nil, nil, nil // these have places of their own
	text, _ := json.Marshal(r)                // plain data always encodes
	return string(text)
}

// EncodeFaults is the stored form of warnings; nil: there are none.
func EncodeFaults(list []fault.Fault) any {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // plain structs always encode
	return string(text)
}

// ReadFaults reads stored warnings.
func ReadFaults(text *string) (list []fault.Fault) {
	if text != nil {
		_ = json.Unmarshal([]byte(*text), &list) // written by EncodeFaults
	}
	return list
}

// A customer may be named by the id of a company of the client's own. Its facts
// are those of the company when the transaction was accepted: they are kept beside
// the body in the intake's commit, so that what is filed, printed and shown later
// says the same, whatever becomes of the company. Whether it exists, and whether
// its facts satisfy the country, is found when the operation runs.

// EncodeCustomer is the stored form of the facts of a company as a customer's.
func EncodeCustomer(c country.Supplier) (string, error) {
	address := c.Address
	p := transaction.Party{ID: c.ID, LegalName: c.LegalName, Type: c.Type, EntityNumber: c.CompanyNumber,
		Address: &address, TaxNumber: c.TaxNumber, TaxRegime: c.TaxRegime}
	if p.Type == "" {
		p.Type = transaction.Business
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// WithCustomer gives a decoded body the stored facts of the customer that it
// names by id.
func WithCustomer(t *transaction.Transaction, stored string) {
	if t.Customer == nil || t.Customer.ID == "" || stored == "" {
		return
	}
	var p transaction.Party
	if json.Unmarshal([]byte(stored), &p) != nil {
		return // it stays unknown, and its operation ends so
	}
	own := t.Customer
	p.Email, p.Phone, p.TaxUse, p.Electronic = own.Email, own.Phone, own.TaxUse, own.Electronic
	if own.FiscalCode != "" {
		p.FiscalCode = own.FiscalCode
	}
	t.Customer = &p
}

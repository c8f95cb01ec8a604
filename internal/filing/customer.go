package filing

import (
	"encoding/json"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// A customer may be named by the id of a company of the client's own. Its facts
// are those of the company when the transaction was accepted: they are kept beside
// the body in the intake's commit, so that what is filed, printed and shown later
// says the same, whatever becomes of the company. Whether it exists, and whether
// its facts satisfy the country, is found when the operation runs.

// partyOf are the facts of a company as a customer's.
func partyOf(c country.Supplier) transaction.Party {
	address := c.Address
	p := transaction.Party{ID: c.ID, LegalName: c.LegalName, Type: c.Type, EntityNumber: c.CompanyNumber, Address: &address, TaxNumber: c.TaxNumber, TaxRegime: c.TaxRegime}
	if p.Type == "" {
		p.Type = transaction.Business
	}
	return p
}

// customerOf is the stored form of the customer that a body names by id; "" when
// there is none, or none that could buy.
func (s *Service) customerOf(r db.Reader, scope string, t *transaction.Transaction) (string, error) {
	if t.Customer == nil || t.Customer.ID == "" || !db.Storable(t.Customer.ID) {
		return "", nil
	}
	company, err := s.cfg.Companies.Supplier(r, scope, t.Customer.ID)
	if fault.KindOf(err) == fault.NotFound || err == nil && company.Closed {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(partyOf(company))
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

// meetCustomer makes the checks that the intake could not: on the facts of a
// customer that is named by id. False: the operation has ended.
func (b *batch) meetCustomer(o *operation) (goOn bool) {
	customer := o.document.Customer
	if customer == nil || customer.ID == "" || o.whole() {
		return true // the original's was met
	}
	if customer.LegalName == "" {
		b.fail(o, fault.At("customer.id", fault.FieldNotValid, "is not the id of a company that is onboarded and open"))
		return false
	}
	var wrong []fault.Fault
	for _, f := range b.pack.Check(country.Case{Transaction: o.document, Totals: o.totals, UseCase: o.useCase, Now: o.acceptedAt}) {
		if f.Type == fault.Warning {
			o.warnings = appendNew(o.warnings, f)
		} else {
			wrong = append(wrong, f)
		}
	}
	if len(wrong) > 0 {
		b.fail(o, wrong...)
	}
	return len(wrong) == 0
}

func appendNew(list []fault.Fault, f fault.Fault) []fault.Fault {
	for _, known := range list {
		if known.Code == f.Code && known.Field == f.Field {
			return list
		}
	}
	return append(list, f)
}

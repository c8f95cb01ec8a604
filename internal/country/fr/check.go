package fr

import (
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func checks() []country.Check {
	return []country.Check{
		{Reads: []string{"customer"}, Find: func(c country.Case) []fault.Fault {
			if c.Transaction.Customer == nil {
				return nil
			}
			return identified(c.Transaction)
		}},
	}
}

// identified finds what is wrong with the numbers of a business in France, by
// which the platform finds it.
func identified(t *transaction.Transaction) []fault.Fault {
	b := t.Customer
	if b.Type != transaction.Business || !inFrance(b.Address) {
		return nil
	}
	known := buyer(b)
	switch {
	case known.siren == "":
		return nil // BR-FR-11 says so
	case known.public():
		return []fault.Fault{fault.At("customer.entity_number", fault.UnsupportedField,
			"is that of a public body: its invoices go to Chorus Pro, which this service does not file with")}
	}
	if e := b.Electronic; e != nil && (e.Scheme != schemeRouting || !strings.HasPrefix(e.ID, known.siren)) {
		return []fault.Fault{fault.At("customer.electronic_address", fault.FieldNotValid,
			"must have the scheme 0225 and begin with the SIREN %s (BT-49, BR-FR-21)", known.siren)}
	}
	for _, numbers := range [][2]string{{"customer.entity_number", b.EntityNumber}, {"customer.tax_information.tax_number", b.TaxNumber}} {
		if other := registered(numbers[1]); other.siren != "" && other.siren != known.siren {
			return []fault.Fault{fault.At(numbers[0], fault.ValidationMatchInvalid, "is of another business than %s", known.siren)}
		}
	}
	return nil
}

// unrouted says why the platform takes no invoice of a sale.
func unrouted(t *transaction.Transaction, unlisted bool) []fault.Fault {
	switch routeOf(t, unlisted) {
	case toConsumers:
		return []fault.Fault{fault.At("customer", fault.UnsupportedOperation,
			"is a consumer, nobody, or in no directory of receivers: such a sale is told by period (CGI, art. 290), never as an invoice")}
	case abroadBusiness:
		return []fault.Fault{fault.At("customer.address.country_code", fault.UnsupportedOperation,
			"is not France: such a sale is told by period (CGI, art. 290), never as an invoice")}
	}
	if t.Customer == nil {
		return nil
	}
	return identified(t)
}

// checkCompany finds who cannot be told from its numbers.
func checkCompany(s country.Supplier) (found []fault.Fault) {
	switch own := company(&s); {
	case own.siren == "" && s.Type == transaction.Individual: // who may buy; whoever sells has one
	case own.siren == "":
		found = append(found, fault.At("company_number", fault.FieldNotValid, "must be the SIREN or the SIRET of the company, or be contained in its VAT number (BR-FR-10)"))
	case own.public():
		found = append(found, fault.At("company_number", fault.UnsupportedField, "is that of a public body"))
	}
	if scheme := s.Settings.Text("endpoint_scheme"); scheme != "" && scheme != schemeRouting {
		found = append(found, fault.At("settings.endpoint_scheme", fault.FieldNotValid, "must be 0225 in France"))
	}
	return found
}

// filed: what the company issues since it is obliged to. The day is that of Paris.
func filed(s *country.Supplier, t *transaction.Transaction, _ *country.Original) bool {
	if s == nil || t == nil {
		return true
	}
	since := s.Settings.Text(settingSince)
	if since == "" {
		since = firstWave
	}
	return t.Date.In(paris()).Format(time.DateOnly) >= since
}

func paris() *time.Location {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		return time.UTC
	}
	return zone
}

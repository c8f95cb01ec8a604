package it_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// found is what the pack says of a draft at submit.
func found(d country.Draft) []fault.Fault {
	p := it.Pack()
	in := country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both, Now: d.Now}
	var list []fault.Fault
	for _, f := range append(country.CheckRates(p.Facts, in), p.Check(in)...) {
		if f.Type != fault.Warning {
			list = append(list, f)
		}
	}
	return list
}

func TestDocumentsOfTheSuitePassAtSubmit(t *testing.T) {
	for _, c := range cases() {
		if got := found(c.Draft); len(got) > 0 {
			t.Errorf("%s: %v", c.Name, got)
		}
	}
}

// What SdI would refuse is refused at submit, each with SdI's code and the
// client's own path.
func TestChecksOfSdIAreMadeAtSubmit(t *testing.T) {
	buyer := func(change func(*transaction.Party)) country.Draft {
		b := business()
		change(b)
		return draft("1", b, item("Penna", "1", 99, vat("22", transaction.Included)))
	}
	address := func(scheme, id string) country.Draft {
		return buyer(func(p *transaction.Party) { p.Electronic = &transaction.ElectronicAddress{Scheme: scheme, ID: id} })
	}
	line := func(i transaction.Item) country.Draft { return sale("1", i) }
	for name, c := range map[string]struct {
		draft country.Draft
		field string
		says  string
	}{
		"public office": {address(transaction.SchemeSDI, "UF1234"), "customer.electronic_address.id",
			"qualified signature"},
		"foreign address at home": {address(transaction.SchemeSDI, "XXXXXXX"), "customer.electronic_address.id", "00313"},
		"mailbox of SdI": {address(transaction.SchemePEC, "sdi01@pec.fatturapa.it"),
			"customer.electronic_address.id", "00330"},
		"nobody": {buyer(func(p *transaction.Party) {
			p.TaxNumber = ""
		}), "customer.tax_information.tax_number", "00417"},
		"wrong number": {buyer(func(p *transaction.Party) {
			p.TaxNumber = "00743110158"
		}), "customer.tax_information.tax_number", "00305"},
		"wrong code": {buyer(func(p *transaction.Party) {
			p.FiscalCode = "RSSMRA80A01H501X"
		}), "customer.tax_information.fiscal_code", "00306"},
		"postal code": {buyer(func(p *transaction.Party) {
			p.Address.PostalCode = "2012"
		}), "customer.address.postal_code", "CAP"},
		"no letters": {buyer(func(p *transaction.Party) {
			p.LegalName = "株式会社"
		}), "customer.legal_name", "Latin"},
		"no customer": {draft("1", nil, item("Penna", "1", 99, vat("22", transaction.Included))), "customer",
			"CessionarioCommittente"},
		"number without digit": {sale("ABC"), "transaction_number", "00425"},
		"number too long":      {sale("123456789012345678901"), "transaction_number", "20"},
		"number not of ASCII":  {sale("É1"), "transaction_number", "ASCII"},
		"tomorrow": {with(sale("1"), func(d *country.Draft) {
			d.Transaction.Date = d.Now.Add(48 * time.Hour)
		}), "transaction_date", "00403"},
		"no reason": {line(item("Penna", "1", 99, vat("0", transaction.Added))),
			"items.0.tax_breakdowns.0.type", "00400"},
		"reason beside a rate": {line(item("Penna", "1", 99, coded(vat("22", transaction.Added), "N4"))),
			"items.0.tax_breakdowns.0.code", "00401"},
		"plain N2": {line(item("Penna", "1", 99, untaxed(transaction.TaxOutside, "N2"))),
			"items.0.tax_breakdowns.0.code", "00445"},
		"unknown reason": {line(item("Penna", "1", 99, untaxed(transaction.TaxOutside, "N9"))),
			"items.0.tax_breakdowns.0.code", "one of"},
		"reason of another type": {line(item("Penna", "1", 99, untaxed(transaction.TaxExempt, "N2.2"))),
			"items.0.tax_breakdowns.0.code", "means OUTSIDE"},
		"rate below one": {line(item("Penna", "1", 9900, vat("0.22", transaction.Added))),
			"items.0.tax_breakdowns", "00424"},
		"rate of three decimals": {line(item("Penna", "1", 99, vat("22.125", transaction.Added))),
			"items.0.tax_breakdowns.0.rate", "two decimals"},
		"two rates": {line(item("Penna", "1", 99, vat("22", transaction.Added), vat("4", transaction.Added))),
			"items.0.tax_breakdowns", "at most 1"},
		"withholding without name": {line(service(item("Lavoro", "1", 9900, vat("22", transaction.Added),
			withheld("20", "F")))), "items.0.tax_breakdowns.1.code", "CausalePagamento"},
		"intent without protocol": {line(item("Penna", "1", 99, untaxed(transaction.TaxExport, "N3.5"))),
			"items.0.classification", "00477"},
		"Union at home": {line(item("Penna", "1", 99, untaxed(transaction.TaxIntraEU, ""))),
			"items.0.tax_breakdowns.0.type", "N3.2"},
		"export at home": {line(item("Penna", "1", 99, untaxed(transaction.TaxExport, "N3.1"))),
			"items.0.tax_breakdowns.0.type", "N3.1"},
		"price of too many": {line(item("Vite", "9500003", 1, vat("22", transaction.Included))), "items.0.quantity", "00423"},
		"TD17 at home": {reason(draft("1", business(),
			service(item("Lavoro", "1", 9900, vat("22", transaction.Added)))), "TD17"), "customer.tax_information.tax_number",
			"00473"},
		"TD29 abroad": {reason(draft("1", abroad("DE", "DE136695976", transaction.Business),
			item("Merce", "1", 9900, vat("22", transaction.Added))), "TD29"), "customer.tax_information.tax_number", "00473"},
		"TD21 without tax": {reason(draft("1", nil, item("Merce", "1", 9900, untaxed(transaction.TaxExempt, ""))), "TD21"),
			"items.0.tax_breakdowns.0.rate", "00474"},
		"unknown document": {reason(sale("1"), "TD07"), "reason", "one of"},
		"dollars": {with(sale("1"), func(d *country.Draft) {
			d.Transaction.CurrencyCode = "USD"
		}), "currency_code", "EUR"},
		"reason that adds": {reason(correct(transaction.Adjustment, sale("ND-9"), sale("1")), "TD04"), "reason", "lowers"},
	} {
		got := found(c.draft)
		ok := false
		for _, f := range got {
			ok = ok || f.Field == c.field && strings.Contains(f.Message, c.says)
		}
		if !ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What only the company decides is found when the document is made.
func TestChecksThatNeedTheCompanyAreMadeBeforeSending(t *testing.T) {
	ch := offline(t)
	for name, c := range map[string]struct {
		draft country.Draft
		says  string
	}{
		"sale to oneself": {draft("1", with(business(), func(p **transaction.Party) {
			(*p).TaxNumber = supplierNumber
		}), item("Penna", "1", 99, vat("22", transaction.Included))), "00471"},
		"before the original": {with(correct(transaction.Credit, sale("NC-1"), sale("1")), func(d *country.Draft) {
			d.Transaction.Date = day.AddDate(0, 0, -1)
		}), "00418"},
		"cancellation": {with(sale("1"), func(d *country.Draft) {
			d.Transaction.Kind = transaction.Cancellation
		}), "use a credit"},
	} {
		_, err := ch.Prepare(c.draft)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, sequence := range []int64{0, -1, 60466176} {
		if f, err := ch.Prepare(with(sale("1"), func(d *country.Draft) { d.Sequence = sequence })); err == nil {
			t.Errorf("%d makes the name %s", sequence, f.DedupeKey)
		}
	}
	f, err := ch.Prepare(with(sale("1"), func(d *country.Draft) { d.Sequence = 60466175 }))
	if err != nil || f.DedupeKey != "IT"+supplierNumber+"_ZZZZZ.xml" {
		t.Errorf("the last name: %s %v", f.DedupeKey, err)
	}
}

package hu

import (
	"cmp"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/incoming"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// invoicesMax is how many invoices one modification may be of.
const invoicesMax = 1000

func formats() []country.Format {
	return []country.Format{{Name: incoming.NAV, Space: navwire.SpaceData, Root: "InvoiceData", Read: ReadAll}}
}

// Read reads the data of one invoice.
func Read(document []byte) (*incoming.Document, error) {
	all, err := ReadAll(document)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%w: the data are of %d invoices", incoming.ErrInvalid, len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// ReadAll reads the data of an invoice, or of a modification of several invoices as
// a document each. What amounts come to in forints is a translation and is passed
// over, but for the tax in total.
func ReadAll(document []byte) ([]*incoming.Document, error) {
	s, err := incoming.Parse(document)
	if err != nil {
		return nil, err
	}
	if !s.Root.Is(navwire.SpaceData, "InvoiceData") {
		return nil, fmt.Errorf("%w: the root {%s}%s is not InvoiceData 3.0", incoming.ErrInvalid, s.Root.Space, s.Root.Local)
	}
	head := incoming.Document{Format: incoming.NAV, Number: s.Text(s.Root, "invoiceNumber"), Day: s.Day(s.Root, "invoiceIssueDate")}
	s.Text(s.Root, "completenessIndicator")
	main := s.Root.At("invoiceMain")
	invoices := main.All("invoice")
	for _, e := range main.All("batchInvoice") {
		s.Text(e, "batchIndex")
		invoices = append(invoices, e.At("invoice"))
	}
	if len(invoices) == 0 || len(invoices) > invoicesMax {
		return nil, fmt.Errorf("%w: the data are of %d invoices, not of 1 to %d", incoming.ErrInvalid, len(invoices), invoicesMax)
	}
	all := make([]*incoming.Document, 0, len(invoices))
	for _, e := range invoices {
		d := head
		r := taking{Source: s.Part(), d: &d}
		r.invoice(e)
		if _, err := r.Finish(&d, e); err != nil {
			return nil, err
		}
		all = append(all, &d)
	}
	return all, nil
}

// taking is a document that is being read.
type taking struct {
	*incoming.Source
	d *incoming.Document
}

func (r *taking) invoice(e *xmltree.Element) {
	d := r.d
	d.Kind = transaction.Invoice
	if original := e.At("invoiceReference"); original != nil {
		d.Kind = transaction.Adjustment
		d.Earlier = []incoming.Reference{{Number: r.Text(original, "originalInvoiceNumber")}}
		r.Usual(original, "false", "modifyWithoutMaster")
	}
	head := e.At("invoiceHead")
	r.parties(head)
	r.detail(head.At("invoiceDetail"))
	if account := r.Text(head, "supplierInfo", "supplierBankAccountNumber"); account != "" {
		if len(d.Payments) == 0 {
			d.Payments = []transaction.Payment{{Type: "OTHER"}}
		}
		d.Payments[0].IBAN = account
	}
	r.Usual(e, "false", "invoiceLines", "mergedItemIndicator")
	for i, line := range e.At("invoiceLines").All("line") {
		d.Lines = append(d.Lines, r.line(i, line))
	}
	r.sums(e.At("invoiceSummary"))
}

func (r *taking) parties(head *xmltree.Element) {
	d := r.d
	supplier, customer := head.At("supplierInfo"), head.At("customerInfo")
	d.Sender = transaction.Party{LegalName: r.Text(supplier, "supplierName"), TaxNumber: r.number(supplier.At("supplierTaxNumber")),
		Address: r.address(supplier.At("supplierAddress"))}
	data := customer.At("customerVatData")
	d.Receiver = transaction.Party{LegalName: r.Text(customer, "customerName"), Address: r.address(customer.At("customerAddress")),
		TaxNumber: cmp.Or(r.number(data.At("customerTaxNumber")), r.Text(data, "communityVatNumber"), r.Text(data, "thirdStateTaxId"))}
	switch r.Text(customer, "customerVatStatus") {
	case "PRIVATE_PERSON":
		d.Receiver.Type = transaction.Individual
	case "DOMESTIC":
		d.Receiver.Type = transaction.Business
	}
}

// number is a Hungarian tax number as people write it: 12345678-2-41.
func (r *taking) number(e *xmltree.Element) string {
	return text.Join("-", r.Text(e, "taxpayerId"), r.Text(e, "vatCode"), r.Text(e, "countyCode"))
}

func (r *taking) address(e *xmltree.Element) *transaction.Address {
	if e == nil {
		return nil
	}
	at := e.At("simpleAddress")
	if at == nil {
		at = e.At("detailedAddress")
	}
	return &transaction.Address{CountryCode: r.Text(at, "countryCode"), PostalCode: r.Text(at, "postalCode"), City: r.Text(at, "city"),
		Region: r.Text(at, "region"), Number: r.Text(at, "number"),
		AddressLine1: text.Join(" ", r.Text(at, "additionalAddressDetail"), r.Text(at, "streetName"), r.Text(at, "publicPlaceCategory"))}
}

func (r *taking) detail(e *xmltree.Element) {
	d := r.d
	d.TypeCode, d.Currency = r.Text(e, "invoiceCategory"), r.Text(e, "currencyCode")
	r.Money(d.Currency)
	d.DeliveryDay, d.DueDay = r.Day(e, "invoiceDeliveryDate"), r.Day(e, "paymentDate")
	d.Period = r.Span(e, "invoiceDeliveryPeriodStart", "invoiceDeliveryPeriodEnd")
	if rate := r.Maybe(e, "exchangeRate"); d.Currency != ownMoney {
		d.ExchangeRate = rate
	}
	r.Text(e, "invoiceAppearance")
	if method := r.Text(e, "paymentMethod"); method != "" {
		p := transaction.Payment{Type: method, Code: method}
		if method != "CASH" && method != "CARD" && method != "TRANSFER" {
			p.Type = "OTHER"
		}
		d.Payments = []transaction.Payment{p}
	}
	d.References.Order = r.Text(e, "conventionalInvoiceInfo", "orderNumbers", "orderNumber")
	d.References.Contract = r.Text(e, "conventionalInvoiceInfo", "contractNumbers", "contractNumber")
	for _, more := range e.All("additionalInvoiceData") {
		r.Text(more, "dataName")
		d.Notes = append(d.Notes, text.Join(": ", r.Text(more, "dataDescription"), r.Text(more, "dataValue")))
	}
}

func (r *taking) line(i int, e *xmltree.Element) incoming.Line {
	l := incoming.Line{Number: r.Counted(i, e, "lineNumber"), Name: r.Text(e, "lineDescription"), Quantity: r.Number(e, "quantity"),
		UnitPrice: r.Number(e, "unitPrice"), Unit: r.Text(e, "unitOfMeasure")}
	r.Text(e, "lineExpressionIndicator")
	r.Text(e, "unitPriceHUF")
	if own := r.Text(e, "unitOfMeasureOwn"); own != "" {
		l.Unit = own
	}
	if nature := r.Text(e, "lineNatureIndicator"); nature != "" {
		l.Classes = append(l.Classes, transaction.Classification{Scheme: "lineNatureIndicator", Code: nature})
	}
	for _, c := range e.At("productCodes").All("productCode") {
		scheme, code := r.Text(c, "productCodeCategory"), cmp.Or(r.Text(c, "productCodeValue"), r.Text(c, "productCodeOwnValue"))
		if scheme == "OWN" && l.Code == "" {
			l.Code = code
			continue
		}
		l.Classes = append(l.Classes, transaction.Classification{Scheme: scheme, Code: code})
	}
	if off := e.At("lineDiscountData"); off != nil {
		extra := incoming.Extra{Reason: r.Text(off, "discountDescription"), Amount: r.Amount(off, "discountValue")}
		if off.At("discountRate") != nil {
			rate := r.Percent(off, "discountRate")
			extra.Percent = &rate
		}
		l.Allowances = []incoming.Extra{extra}
	}
	normal, simple := e.At("lineAmountsNormal"), e.At("lineAmountsSimplified")
	switch {
	case normal != nil:
		l.Net = r.pair(normal, "lineNetAmountData", "lineNetAmount")
		t := r.rate(normal.At("lineVatRate"))
		t.Base, t.Amount = l.Net, r.pair(normal, "lineVatData", "lineVatAmount")
		r.pair(normal, "lineGrossAmountData", "lineGrossAmountNormal") // what the two before it come to
		l.Taxes = []incoming.Tax{t}
	case simple != nil:
		l.Gross, l.Net = true, r.Amount(simple, "lineGrossAmountSimplified")
		r.Text(simple, "lineGrossAmountSimplifiedHUF")
		l.Taxes = []incoming.Tax{r.rate(simple.At("lineVatRate"))}
	}
	return l
}

// pair is an amount beside which it stands in forints.
func (r *taking) pair(e *xmltree.Element, of, name string) int64 {
	r.Text(e, of, name+"HUF")
	return r.Amount(e, of, name)
}

// rate is a rate, the part of the gross that is tax (CONTENT), or why there is none.
func (r *taking) rate(e *xmltree.Element) incoming.Tax {
	t := incoming.Tax{Regime: transaction.VAT}
	switch {
	case e.At("vatPercentage") != nil:
		t.Rate = r.Percent(e, "vatPercentage")
	case e.At("vatContent") != nil:
		t.Rate, t.Code = r.Percent(e, "vatContent"), "CONTENT"
	case e.At("vatExemption") != nil:
		t.Type, t.Code, t.Reason = transaction.TaxExempt, r.Text(e, "vatExemption", "case"), r.Text(e, "vatExemption", "reason")
		switch t.Code {
		case "KBAET", "KBAUK":
			t.Type = transaction.TaxIntraEU
		case "EAM":
			t.Type = transaction.TaxExport
		}
	case e.At("vatOutOfScope") != nil:
		t.Type, t.Code, t.Reason = transaction.TaxOutside, r.Text(e, "vatOutOfScope", "case"), r.Text(e, "vatOutOfScope", "reason")
	case e.Value("vatDomesticReverseCharge") == "true":
		t.Type, t.Code = transaction.TaxReverse, "vatDomesticReverseCharge"
		r.Text(e, t.Code)
	case e.Value("noVatCharge") == "true":
		t.Code = "noVatCharge"
		r.Text(e, t.Code)
	case e.At("marginSchemeIndicator") != nil:
		t.Code = r.Text(e, "marginSchemeIndicator")
	case e.At("vatAmountMismatch") != nil:
		t.Rate, t.Code = r.Percent(e, "vatAmountMismatch", "vatRate"), r.Text(e, "vatAmountMismatch", "case")
	}
	return t
}

// sums: a simplified invoice states neither net nor tax, only what is to pay and how
// much of it is of which rate.
func (r *taking) sums(e *xmltree.Element) {
	d, normal := r.d, e.At("summaryNormal")
	for _, row := range normal.All("summaryByVatRate") {
		t := r.rate(row.At("vatRate"))
		t.Base, t.Amount = r.pair(row, "vatRateNetData", "vatRateNetAmount"), r.pair(row, "vatRateVatData", "vatRateVatAmount")
		r.pair(row, "vatRateGrossData", "vatRateGrossAmount")
		d.Taxes = append(d.Taxes, t)
	}
	for _, row := range e.All("summarySimplified") {
		t := r.rate(row.At("vatRate"))
		t.Base = r.Amount(row, "vatContentGrossAmount")
		r.Text(row, "vatContentGrossAmountHUF")
		d.Taxes = append(d.Taxes, t)
	}
	if normal != nil {
		d.Net, d.Tax = r.Amount(normal, "invoiceNetAmount"), r.Amount(normal, "invoiceVatAmount")
		r.Text(normal, "invoiceNetAmountHUF")
		d.Gross = r.Plus(e, d.Net, d.Tax)
	}
	if total := e.At("summaryGrossData"); total != nil {
		d.Gross = r.Amount(total, "invoiceGrossAmount")
		r.Text(total, "invoiceGrossAmountHUF")
	}
	d.Payable = d.Gross
	if own := normal.At("invoiceVatAmountHUF"); own != nil && d.Currency != ownMoney {
		r.Money(ownMoney)
		d.TaxCurrency, d.AccountingTax = ownMoney, r.Amount(own)
	} else {
		r.Text(normal, "invoiceVatAmountHUF")
	}
}

package en16931

import (
	"strings"
	"sync"

	"tributary/internal/xmltree"
)

// UN/CEFACT Cross Industry Invoice, bound as EN 16931-3-3 says. What is written
// is valid by D16B and by D22B: the two differ in elements that EN 16931 does
// not use.

var ciiInvoice = sync.OnceValue(ciiDocument)

func ciiDocument() []part[Invoice] {
	return []part[Invoice]{
		in("rsm:ExchangedDocumentContext",
			in("ram:BusinessProcessSpecifiedDocumentContextParameter", code("ram:ID", func(d *Invoice) *string { return &d.Process })),
			in("ram:GuidelineSpecifiedDocumentContextParameter", code("ram:ID", func(d *Invoice) *string { return &d.Specification }))),
		in("rsm:ExchangedDocument",
			code("ram:ID", func(d *Invoice) *string { return &d.Number }),
			passed[Invoice]("ram:Name"),
			code("ram:TypeCode", func(d *Invoice) *string { return &d.TypeCode }),
			moment("ram:IssueDateTime", "udt:DateTimeString", func(d *Invoice) *Date { return &d.IssueDate }),
			passed[Invoice]("ram:LanguageID"),
			many("ram:IncludedNote", func(d *Invoice) *[]Note { return &d.Notes },
				text("ram:Content", func(n *Note) *string { return &n.Text }),
				code("ram:SubjectCode", func(n *Note) *string { return &n.Subject }))),
		in("rsm:SupplyChainTradeTransaction",
			many("ram:IncludedSupplyChainTradeLineItem", func(d *Invoice) *[]Line { return &d.Lines }, ciiLine()...),
			in("ram:ApplicableHeaderTradeAgreement", ciiAgreement()...),
			always("ram:ApplicableHeaderTradeDelivery",
				loose("ram:ShipToTradeParty", of(func(d *Invoice) *Delivery { return &d.Delivery },
					ciiLocation(),
					text("ram:Name", func(d *Delivery) *string { return &d.Name }),
					loose("ram:PostalTradeAddress", of(func(d *Delivery) *Address { return &d.Address }, ciiAddress()...)))),
				in("ram:ActualDeliverySupplyChainEvent", moment("ram:OccurrenceDateTime", "udt:DateTimeString", func(d *Invoice) *Date { return &d.Delivery.Date })),
				issued("ram:DespatchAdviceReferencedDocument", func(d *Invoice) *string { return &d.DespatchReference }),
				issued("ram:ReceivingAdviceReferencedDocument", func(d *Invoice) *string { return &d.ReceiptReference })),
			in("ram:ApplicableHeaderTradeSettlement", ciiSettlement()...)),
	}
}

func ciiAgreement() []part[Invoice] {
	return []part[Invoice]{
		text("ram:BuyerReference", func(d *Invoice) *string { return &d.BuyerReference }),
		in("ram:SellerTradeParty", of(func(d *Invoice) *Party { return &d.Seller }, ciiParty()...)),
		in("ram:BuyerTradeParty", of(func(d *Invoice) *Party { return &d.Buyer }, ciiParty()...)),
		maybe("ram:SellerTaxRepresentativeTradeParty", func(d *Invoice) **Party { return &d.TaxRepresentative }, ciiParty()...),
		issued("ram:SellerOrderReferencedDocument", func(d *Invoice) *string { return &d.SalesOrderReference }),
		issued("ram:BuyerOrderReferencedDocument", func(d *Invoice) *string { return &d.OrderReference }),
		issued("ram:ContractReferencedDocument", func(d *Invoice) *string { return &d.ContractReference }),
		many("ram:AdditionalReferencedDocument", func(d *Invoice) *[]Document { return &d.Documents },
			code("ram:IssuerAssignedID", func(d *Document) *string { return &d.Reference }),
			code("ram:URIID", func(d *Document) *string { return &d.Location }),
			usual[Document]("ram:TypeCode", "916"),
			text("ram:Name", func(d *Document) *string { return &d.Description }),
			binary("ram:AttachmentBinaryObject", func(d *Document) *[]byte { return &d.Content },
				attr("mimeCode", func(d *Document) *string { return &d.MIME }), attr("filename", func(d *Document) *string { return &d.Filename }))),
		loose("ram:AdditionalReferencedDocument",
			code("ram:IssuerAssignedID", func(d *Invoice) *string { return &d.TenderReference }), fixed[Invoice]("ram:TypeCode", "50")),
		loose("ram:AdditionalReferencedDocument", of(func(d *Invoice) *Identifier { return &d.Object }, ciiObject(fixed[Identifier])...)),
		in("ram:SpecifiedProcuringProject",
			code("ram:ID", func(d *Invoice) *string { return &d.ProjectReference }), filler[Invoice]("ram:Name", "Project reference")),
	}
}

// ciiObject is an object identifier with its scheme; on lines its type goes without saying.
func ciiObject(typed func(name, value string) part[Identifier]) []part[Identifier] {
	return []part[Identifier]{
		code("ram:IssuerAssignedID", func(i *Identifier) *string { return &i.ID }),
		typed("ram:TypeCode", "130"),
		code("ram:ReferenceTypeCode", func(i *Identifier) *string { return &i.Scheme }),
	}
}

func ciiSettlement() []part[Invoice] {
	return []part[Invoice]{
		code("ram:CreditorReferenceID", func(d *Invoice) *string { return &d.Payment.Creditor }),
		text("ram:PaymentReference", func(d *Invoice) *string { return &d.Payment.Remittance }),
		ciiTaxCurrency(),
		ciiCurrency(),
		maybe("ram:PayeeTradeParty", func(d *Invoice) **Party { return &d.Payee }, ciiParty()...),
		many("ram:SpecifiedTradeSettlementPaymentMeans", func(d *Invoice) *[]PaymentMeans { return &d.Payment.Means }, ciiPayment()...),
		ciiBreakdown(),
		in("ram:BillingSpecifiedPeriod", of(func(d *Invoice) *Period { return &d.Period }, ciiPeriod()...)),
		many("ram:SpecifiedTradeAllowanceCharge", func(d *Invoice) *[]AllowanceCharge { return &d.Allowances }, ciiAllowance("false", true)...),
		many("ram:SpecifiedTradeAllowanceCharge", func(d *Invoice) *[]AllowanceCharge { return &d.Charges }, ciiAllowance("true", true)...),
		in("ram:SpecifiedTradePaymentTerms",
			text("ram:Description", func(d *Invoice) *string { return &d.PaymentTerms }),
			moment("ram:DueDateDateTime", "udt:DateTimeString", func(d *Invoice) *Date { return &d.DueDate }),
			code("ram:DirectDebitMandateID", func(d *Invoice) *string { return &d.Payment.Mandate })),
		in("ram:SpecifiedTradeSettlementHeaderMonetarySummation", of(func(d *Invoice) *Totals { return &d.Totals },
			plain("ram:LineTotalAmount", func(t *Totals) *Decimal { return &t.Lines }),
			plain("ram:ChargeTotalAmount", func(t *Totals) *Decimal { return &t.Charges }),
			plain("ram:AllowanceTotalAmount", func(t *Totals) *Decimal { return &t.Allowances }),
			plain("ram:TaxBasisTotalAmount", func(t *Totals) *Decimal { return &t.Net }),
			ciiTaxTotal(false, func(t *Totals) *Decimal { return &t.Tax }),
			ciiTaxTotal(true, func(t *Totals) *Decimal { return &t.TaxAccounting }),
			plain("ram:RoundingAmount", func(t *Totals) *Decimal { return &t.Rounding }),
			plain("ram:GrandTotalAmount", func(t *Totals) *Decimal { return &t.Gross }),
			plain("ram:TotalPrepaidAmount", func(t *Totals) *Decimal { return &t.Paid }),
			plain("ram:DuePayableAmount", func(t *Totals) *Decimal { return &t.Due }))),
		many("ram:InvoiceReferencedDocument", func(d *Invoice) *[]Preceding { return &d.Preceding },
			code("ram:IssuerAssignedID", func(p *Preceding) *string { return &p.Number }),
			moment("ram:FormattedIssueDateTime", "qdt:DateTimeString", func(p *Preceding) *Date { return &p.Date })),
		in("ram:ReceivableSpecifiedTradeAccountingAccount", code("ram:ID", func(d *Invoice) *string { return &d.AccountingReference })),
	}
}

// plain is an amount; CII says the currency once. Many writers repeat it all the
// same, which is no loss while it is the document's.
func plain[T any](name string, at func(*T) *Decimal) part[T] {
	p := money(name, at)
	p.write = number(name, at).write
	return p
}

func ciiCurrency() part[Invoice] {
	return leaf("ram:InvoiceCurrencyCode", func(w *writer, d *Invoice) bool { return w.text(d.Currency) }, func(r *reader, e *xmltree.Element, d *Invoice) {
		d.Currency = strings.TrimSpace(e.Text)
		r.currency = d.Currency
	})
}

func ciiTaxCurrency() part[Invoice] {
	return leaf("ram:TaxCurrencyCode", func(w *writer, d *Invoice) bool { return w.text(d.TaxCurrency) }, func(r *reader, e *xmltree.Element, d *Invoice) {
		d.TaxCurrency = strings.TrimSpace(e.Text)
		r.taxCurrency = d.TaxCurrency
	})
}

// ciiTaxTotal: two elements of one name, told apart by their currency.
func ciiTaxTotal(accounting bool, at func(*Totals) *Decimal) part[Totals] {
	n := named("ram:TaxTotalAmount")
	p := number("ram:TaxTotalAmount", at, leafAttr[Totals]{name: "currencyID", value: func(w *writer, _ *Totals) string {
		if accounting {
			return w.taxCurrency
		}
		return w.currency
	}})
	p.read = func(r *reader, in *xmltree.Element, t *Totals) {
		for _, c := range in.Children {
			currency := c.Attr("currencyID")
			own := currency == r.currency || currency == "" || currency != r.taxCurrency
			if c.Local != n.local || c.Space != n.space || r.taken[c] || own == accounting {
				continue
			}
			r.taken[c] = true
			d, err := ParseDecimal(strings.TrimSpace(c.Text))
			if err != nil {
				r.fail(c, "%q is %v", clip(c.Text), err)
			}
			*at(t) = d
			if own && currency != "" && currency != r.currency {
				r.unknown.Add(func() string { return c.Path() + "/@currencyID" })
			}
			return
		}
	}
	return p
}

// issued is a document reference that has nothing but its number.
func issued[T any](name string, at func(*T) *string) part[T] {
	return loose(name, code("ram:IssuerAssignedID", at))
}

// moment is a day, which CII writes as YYYYMMDD one element deeper.
func moment[T any](name, inner string, at func(*T) *Date) part[T] {
	return loose(name, leaf(inner, func(w *writer, v *T) bool {
		d := *at(v)
		if len(d) != len("2006-01-02") {
			return w.text(string(d))
		}
		w.out = append(append(append(w.out, d[:4]...), d[5:7]...), d[8:]...)
		return true
	}, func(r *reader, e *xmltree.Element, v *T) {
		s := strings.TrimSpace(e.Text)
		if len(s) == len("20060102") && e.Attr("format") == "102" {
			s = s[:4] + "-" + s[4:6] + "-" + s[6:]
		}
		d := Date(s)
		if !d.valid() {
			r.fail(e, "%q is not a day in format 102", clip(e.Text))
		}
		*at(v) = d
	}, leafAttr[T]{name: "format", value: func(*writer, *T) string { return "102" }}))
}

func ciiPeriod() []part[Period] {
	return []part[Period]{
		moment("ram:StartDateTime", "udt:DateTimeString", func(p *Period) *Date { return &p.Start }),
		moment("ram:EndDateTime", "udt:DateTimeString", func(p *Period) *Date { return &p.End }),
	}
}

// ciiIDs: identifiers without a scheme first, then those with one under another name.
func ciiIDs() part[Party] {
	plain, global := named("ram:ID"), named("ram:GlobalID")
	return part[Party]{
		write: func(w *writer, p *Party) bool {
			for _, scheme := range []bool{false, true} {
				n := plain
				if scheme {
					n = global
				}
				for _, id := range p.IDs {
					if id.ID == "" || (id.Scheme != "") != scheme {
						continue
					}
					w.out = append(w.out, n.open...)
					if scheme {
						w.out = append(xmltree.AppendValue(append(w.out, ` schemeID="`...), id.Scheme), '"')
					}
					w.out = xmltree.AppendText(append(w.out, '>'), id.ID)
					w.out = append(w.out, n.close...)
				}
			}
			return len(p.IDs) > 0
		},
		read: func(r *reader, in *xmltree.Element, p *Party) {
			for _, n := range []elementName{plain, global} {
				for e := range each[Party](r, in, n, nil) {
					p.IDs = append(p.IDs, Identifier{ID: strings.TrimSpace(e.Text), Scheme: e.Attr("schemeID")})
				}
			}
		},
	}
}

func ciiLocation() part[Delivery] {
	ids := ciiIDs()
	return part[Delivery]{
		write: func(w *writer, d *Delivery) bool {
			return d.Location.ID != "" && ids.write(w, &Party{IDs: []Identifier{d.Location}})
		},
		read: func(r *reader, in *xmltree.Element, d *Delivery) {
			var p Party
			if ids.read(r, in, &p); len(p.IDs) > 0 {
				d.Location = p.IDs[0]
			}
			for _, id := range p.IDs[min(1, len(p.IDs)):] {
				r.unknown.Add(func() string { return in.Path() + "/GlobalID=" + id.ID })
			}
		},
	}
}

// ciiParty: a buyer's and a seller's trade name stands in the legal organisation.
func ciiParty() []part[Party] {
	return []part[Party]{
		ciiIDs(),
		text("ram:Name", func(p *Party) *string { return &p.Name }),
		text("ram:Description", func(p *Party) *string { return &p.LegalForm }),
		loose("ram:SpecifiedLegalOrganization",
			identified("ram:ID", func(p *Party) *Identifier { return &p.LegalID }),
			text("ram:TradingBusinessName", func(p *Party) *string { return &p.TradeName })),
		loose("ram:DefinedTradeContact",
			text("ram:PersonName", func(p *Party) *string { return &p.Contact.Name }),
			loose("ram:TelephoneUniversalCommunication", text("ram:CompleteNumber", func(p *Party) *string { return &p.Contact.Phone })),
			loose("ram:EmailURIUniversalCommunication", text("ram:URIID", func(p *Party) *string { return &p.Contact.Email }))),
		loose("ram:PostalTradeAddress", of(func(p *Party) *Address { return &p.Address }, ciiAddress()...)),
		loose("ram:URIUniversalCommunication", identified("ram:URIID", func(p *Party) *Identifier { return &p.Electronic })),
		loose("ram:SpecifiedTaxRegistration", code("ram:ID", func(p *Party) *string { return &p.VATID }, fixedAttr[Party]("schemeID", "VA"))),
		loose("ram:SpecifiedTaxRegistration", code("ram:ID", func(p *Party) *string { return &p.TaxID }, fixedAttr[Party]("schemeID", "FC"))),
	}
}

func ciiAddress() []part[Address] {
	return []part[Address]{
		code("ram:PostcodeCode", func(a *Address) *string { return &a.PostCode }),
		text("ram:LineOne", func(a *Address) *string { return &a.Line1 }),
		text("ram:LineTwo", func(a *Address) *string { return &a.Line2 }),
		text("ram:LineThree", func(a *Address) *string { return &a.Line3 }),
		text("ram:CityName", func(a *Address) *string { return &a.City }),
		code("ram:CountryID", func(a *Address) *string { return &a.Country }),
		text("ram:CountrySubDivisionName", func(a *Address) *string { return &a.Subdivision }),
	}
}

// ciiPayment: account numbers that are no IBAN have an element of their own.
func ciiPayment() []part[PaymentMeans] {
	account := func(name string, iban bool) part[PaymentMeans] {
		return leaf(name, func(w *writer, m *PaymentMeans) bool {
			return ValidIBAN(strings.ReplaceAll(m.Account.ID, " ", "")) == iban && w.text(m.Account.ID)
		}, func(_ *reader, e *xmltree.Element, m *PaymentMeans) {
			if s := strings.TrimSpace(e.Text); s != "" {
				m.Account.ID = s
			}
		})
	}
	return []part[PaymentMeans]{
		code("ram:TypeCode", func(m *PaymentMeans) *string { return &m.Code }),
		text("ram:Information", func(m *PaymentMeans) *string { return &m.Text }),
		in("ram:ApplicableTradeSettlementFinancialCard",
			code("ram:ID", func(m *PaymentMeans) *string { return &m.Card.Number }),
			text("ram:CardholderName", func(m *PaymentMeans) *string { return &m.Card.Holder })),
		in("ram:PayerPartyDebtorFinancialAccount", code("ram:IBANID", func(m *PaymentMeans) *string { return &m.DebitAccount })),
		in("ram:PayeePartyCreditorFinancialAccount",
			account("ram:IBANID", true),
			text("ram:AccountName", func(m *PaymentMeans) *string { return &m.Account.Name }),
			account("ram:ProprietaryID", false)),
		in("ram:PayeeSpecifiedCreditorFinancialInstitution", code("ram:BICID", func(m *PaymentMeans) *string { return &m.Account.BIC })),
	}
}

// taxRow is one row of the breakdown with the document's tax point, which CII
// has inside of it.
type taxRow struct {
	doc   *Invoice
	sum   *TaxSubtotal
	first bool
}

// ciiBreakdown: the tax point is written in the first row only, because a date
// may occur once.
func ciiBreakdown() part[Invoice] {
	n := named("ram:ApplicableTradeTax")
	parts := []part[taxRow]{
		plain("ram:CalculatedAmount", func(t *taxRow) *Decimal { return &t.sum.Tax }),
		fixed[taxRow]("ram:TypeCode", "VAT"),
		text("ram:ExemptionReason", func(t *taxRow) *string { return &t.sum.Reason }),
		plain("ram:BasisAmount", func(t *taxRow) *Decimal { return &t.sum.Taxable }),
		code("ram:CategoryCode", func(t *taxRow) *string { return &t.sum.Category }),
		code("ram:ExemptionReasonCode", func(t *taxRow) *string { return &t.sum.ReasonCode }),
		moment("ram:TaxPointDate", "udt:DateString", func(t *taxRow) *Date {
			if !t.first {
				return new(Date)
			}
			return &t.doc.TaxPointDate
		}),
		leaf("ram:DueDateTypeCode", func(w *writer, t *taxRow) bool { return t.first && w.text(timeReference(t.doc.TaxPointCode, true)) },
			func(_ *reader, e *xmltree.Element, t *taxRow) {
				t.doc.TaxPointCode = timeReference(strings.TrimSpace(e.Text), false)
			}),
		number("ram:RateApplicablePercent", func(t *taxRow) *Decimal { return &t.sum.Rate }),
	}
	return part[Invoice]{
		write: func(w *writer, d *Invoice) bool {
			for i := range d.Breakdown {
				row := taxRow{d, &d.Breakdown[i], i == 0}
				w.element(n, func() bool { return writeAll(w, &row, parts) })
			}
			return len(d.Breakdown) > 0
		},
		read: func(r *reader, in *xmltree.Element, d *Invoice) {
			for e := range each(r, in, n, parts) {
				row := taxRow{d, &TaxSubtotal{}, true}
				readAll(r, e, &row, parts)
				d.Breakdown = append(d.Breakdown, *row.sum)
			}
		},
	}
}

// timeReference translates BT-8 between UNTDID 2005, which the model has, and
// UNTDID 2475, which CII has.
func timeReference(code string, toCII bool) string {
	for _, pair := range [...][2]string{{"3", "5"}, {"35", "29"}, {"432", "72"}} {
		if toCII && code == pair[0] {
			return pair[1]
		}
		if !toCII && code == pair[1] {
			return pair[0]
		}
	}
	return code
}

func ciiAllowance(indicator string, taxed bool) []part[AllowanceCharge] {
	parts := []part[AllowanceCharge]{
		marker("ram:ChargeIndicator", fixed[AllowanceCharge]("udt:Indicator", indicator)),
		number("ram:CalculationPercent", func(a *AllowanceCharge) *Decimal { return &a.Percent }),
		plain("ram:BasisAmount", func(a *AllowanceCharge) *Decimal { return &a.Base }),
		plain("ram:ActualAmount", func(a *AllowanceCharge) *Decimal { return &a.Amount }),
		code("ram:ReasonCode", func(a *AllowanceCharge) *string { return &a.ReasonCode }),
		text("ram:Reason", func(a *AllowanceCharge) *string { return &a.Reason }),
	}
	if taxed {
		parts = append(parts, loose("ram:CategoryTradeTax", fixed[AllowanceCharge]("ram:TypeCode", "VAT"),
			code("ram:CategoryCode", func(a *AllowanceCharge) *string { return &a.Category }),
			number("ram:RateApplicablePercent", func(a *AllowanceCharge) *Decimal { return &a.Rate })))
	}
	return parts
}

func ciiLine() []part[Line] {
	return []part[Line]{
		in("ram:AssociatedDocumentLineDocument",
			code("ram:LineID", func(l *Line) *string { return &l.ID }),
			in("ram:IncludedNote", text("ram:Content", func(l *Line) *string { return &l.Note }))),
		in("ram:SpecifiedTradeProduct", of(func(l *Line) *Item { return &l.Item }, ciiProduct()...)),
		in("ram:SpecifiedLineTradeAgreement",
			in("ram:BuyerOrderReferencedDocument", code("ram:LineID", func(l *Line) *string { return &l.OrderLine })),
			of(func(l *Line) *Price { return &l.Price }, ciiPrice()...)),
		in("ram:SpecifiedLineTradeDelivery", number("ram:BilledQuantity", func(l *Line) *Decimal { return &l.Quantity }, attr("unitCode", func(l *Line) *string { return &l.Unit }))),
		in("ram:SpecifiedLineTradeSettlement",
			loose("ram:ApplicableTradeTax", fixed[Line]("ram:TypeCode", "VAT"),
				code("ram:CategoryCode", func(l *Line) *string { return &l.Category }),
				number("ram:RateApplicablePercent", func(l *Line) *Decimal { return &l.Rate })),
			in("ram:BillingSpecifiedPeriod", of(func(l *Line) *Period { return &l.Period }, ciiPeriod()...)),
			many("ram:SpecifiedTradeAllowanceCharge", func(l *Line) *[]AllowanceCharge { return &l.Allowances }, ciiAllowance("false", false)...),
			many("ram:SpecifiedTradeAllowanceCharge", func(l *Line) *[]AllowanceCharge { return &l.Charges }, ciiAllowance("true", false)...),
			in("ram:SpecifiedTradeSettlementLineMonetarySummation", plain("ram:LineTotalAmount", func(l *Line) *Decimal { return &l.Net })),
			loose("ram:AdditionalReferencedDocument", of(func(l *Line) *Identifier { return &l.Object }, ciiObject(usual[Identifier])...)),
			in("ram:ReceivableSpecifiedTradeAccountingAccount", code("ram:ID", func(l *Line) *string { return &l.AccountingReference }))),
	}
}

func ciiProduct() []part[Item] {
	return []part[Item]{
		identified("ram:GlobalID", func(i *Item) *Identifier { return &i.StandardID }),
		code("ram:SellerAssignedID", func(i *Item) *string { return &i.SellerID }),
		code("ram:BuyerAssignedID", func(i *Item) *string { return &i.BuyerID }),
		text("ram:Name", func(i *Item) *string { return &i.Name }),
		text("ram:Description", func(i *Item) *string { return &i.Description }),
		many("ram:ApplicableProductCharacteristic", func(i *Item) *[]Attribute { return &i.Attributes },
			text("ram:Description", func(a *Attribute) *string { return &a.Name }),
			text("ram:Value", func(a *Attribute) *string { return &a.Value })),
		many("ram:DesignatedProductClassification", func(i *Item) *[]Class { return &i.Classes },
			code("ram:ClassCode", func(c *Class) *string { return &c.Code },
				attr("listID", func(c *Class) *string { return &c.Scheme }), attr("listVersionID", func(c *Class) *string { return &c.Version }))),
		in("ram:OriginTradeCountry", code("ram:ID", func(i *Item) *string { return &i.Origin })),
	}
}

// ciiPrice: the base quantity is written with the net price; where a document
// has it with the gross price as well, the net price's counts.
func ciiPrice() []part[Price] {
	base := number("ram:BasisQuantity", func(p *Price) *Decimal { return &p.BaseQuantity }, attr("unitCode", func(p *Price) *string { return &p.BaseUnit }))
	grossBase := base
	grossBase.write = func(*writer, *Price) bool { return false }
	return []part[Price]{
		loose("ram:GrossPriceProductTradePrice",
			plain("ram:ChargeAmount", func(p *Price) *Decimal { return &p.Gross }),
			grossBase,
			loose("ram:AppliedTradeAllowanceCharge",
				marker("ram:ChargeIndicator", fixed[Price]("udt:Indicator", "false")),
				plain("ram:ActualAmount", func(p *Price) *Decimal { return &p.Discount }))),
		loose("ram:NetPriceProductTradePrice", plain("ram:ChargeAmount", func(p *Price) *Decimal { return &p.Net }), base),
	}
}

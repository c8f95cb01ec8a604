package en16931

import (
	"strings"
	"sync"

	"tributary/internal/xmltree"
)

// UBL 2.1, bound as EN 16931-3-2 says. Credit notes are a document type of
// their own with another order of elements.

const (
	spaceInvoice    = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	spaceCreditNote = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"
)

var (
	ublInvoice    = sync.OnceValue(func() []part[Invoice] { return ublDocument(false) })
	ublCreditNote = sync.OnceValue(func() []part[Invoice] { return ublDocument(true) })
)

// ublDocument lists the parts of an invoice or a credit note in the order of its schema.
func ublDocument(credit bool) []part[Invoice] {
	head := []part[Invoice]{
		passed[Invoice]("cbc:UBLVersionID"),
		code("cbc:CustomizationID", func(d *Invoice) *string { return &d.Specification }),
		code("cbc:ProfileID", func(d *Invoice) *string { return &d.Process }),
		code("cbc:ID", func(d *Invoice) *string { return &d.Number }),
		day("cbc:IssueDate", func(d *Invoice) *Date { return &d.IssueDate }),
	}
	taxPoint := day("cbc:TaxPointDate", func(d *Invoice) *Date { return &d.TaxPointDate })
	notes := ublNotes()
	if credit {
		head = append(head, taxPoint, code("cbc:CreditNoteTypeCode", func(d *Invoice) *string { return &d.TypeCode }), notes)
	} else {
		head = append(head, day("cbc:DueDate", func(d *Invoice) *Date { return &d.DueDate }),
			code("cbc:InvoiceTypeCode", func(d *Invoice) *string { return &d.TypeCode }), notes, taxPoint)
	}
	head = append(head,
		leaf("cbc:DocumentCurrencyCode", func(w *writer, d *Invoice) bool { return w.text(d.Currency) }, func(r *reader, e *xmltree.Element, d *Invoice) {
			d.Currency = strings.TrimSpace(e.Text)
			r.currency = d.Currency
		}),
		leaf("cbc:TaxCurrencyCode", func(w *writer, d *Invoice) bool { return w.text(d.TaxCurrency) }, func(r *reader, e *xmltree.Element, d *Invoice) {
			d.TaxCurrency = strings.TrimSpace(e.Text)
			r.taxCurrency = d.TaxCurrency
		}),
		text("cbc:AccountingCost", func(d *Invoice) *string { return &d.AccountingReference }),
		text("cbc:BuyerReference", func(d *Invoice) *string { return &d.BuyerReference }),
		in("cac:InvoicePeriod",
			day("cbc:StartDate", func(d *Invoice) *Date { return &d.Period.Start }),
			day("cbc:EndDate", func(d *Invoice) *Date { return &d.Period.End }),
			code("cbc:DescriptionCode", func(d *Invoice) *string { return &d.TaxPointCode })),
		in("cac:OrderReference", ublOrder(), code("cbc:SalesOrderID", func(d *Invoice) *string { return &d.SalesOrderReference })),
		many("cac:BillingReference", func(d *Invoice) *[]Preceding { return &d.Preceding }, in("cac:InvoiceDocumentReference",
			code("cbc:ID", func(p *Preceding) *string { return &p.Number }),
			day("cbc:IssueDate", func(p *Preceding) *Date { return &p.Date }))),
		reference("cac:DespatchDocumentReference", func(d *Invoice) *string { return &d.DespatchReference }),
		reference("cac:ReceiptDocumentReference", func(d *Invoice) *string { return &d.ReceiptReference }),
	)
	head = append(head, ublReferences(credit)...)
	return append(head, ublBody(credit)...)
}

// ublReferences: the two document types have them in different orders, and
// credit notes have no project reference.
func ublReferences(credit bool) []part[Invoice] {
	tender := reference("cac:OriginatorDocumentReference", func(d *Invoice) *string { return &d.TenderReference })
	contract := reference("cac:ContractDocumentReference", func(d *Invoice) *string { return &d.ContractReference })
	object := in("cac:AdditionalDocumentReference",
		identified("cbc:ID", func(d *Invoice) *Identifier { return &d.Object }), fixed[Invoice]("cbc:DocumentTypeCode", "130"))
	untyped := func(e *xmltree.Element) bool { return e.At("DocumentTypeCode") == nil }
	documents := many("cac:AdditionalDocumentReference", func(d *Invoice) *[]Document { return &d.Documents },
		only(code("cbc:ID", func(d *Document) *string { return &d.Reference }), untyped),
		text("cbc:DocumentDescription", func(d *Document) *string { return &d.Description }),
		in("cac:Attachment",
			binary("cbc:EmbeddedDocumentBinaryObject", func(d *Document) *[]byte { return &d.Content },
				attr("mimeCode", func(d *Document) *string { return &d.MIME }), attr("filename", func(d *Document) *string { return &d.Filename })),
			in("cac:ExternalReference", code("cbc:URI", func(d *Document) *string { return &d.Location }))))
	if !credit {
		return []part[Invoice]{tender, contract, object, documents,
			reference("cac:ProjectReference", func(d *Invoice) *string { return &d.ProjectReference })}
	}
	project := in("cac:AdditionalDocumentReference",
		code("cbc:ID", func(d *Invoice) *string { return &d.ProjectReference }), fixed[Invoice]("cbc:DocumentTypeCode", "50"))
	return []part[Invoice]{contract, object, project, documents, tender}
}

func ublBody(credit bool) []part[Invoice] {
	parts := []part[Invoice]{
		in("cac:AccountingSupplierParty", in("cac:Party", of(func(d *Invoice) *Party { return &d.Seller }, ublParty()...))),
		in("cac:AccountingCustomerParty", in("cac:Party", of(func(d *Invoice) *Party { return &d.Buyer }, ublParty()...))),
		maybe("cac:PayeeParty", func(d *Invoice) **Party { return &d.Payee },
			many("cac:PartyIdentification", func(p *Party) *[]Identifier { return &p.IDs }, identified("cbc:ID", self[Identifier])),
			in("cac:PartyName", text("cbc:Name", func(p *Party) *string { return &p.Name })),
			in("cac:PartyLegalEntity", identified("cbc:CompanyID", func(p *Party) *Identifier { return &p.LegalID }))),
		maybe("cac:TaxRepresentativeParty", func(d *Invoice) **Party { return &d.TaxRepresentative },
			in("cac:PartyName", text("cbc:Name", func(p *Party) *string { return &p.Name })),
			in("cac:PostalAddress", of(func(p *Party) *Address { return &p.Address }, ublAddress()...)),
			loose("cac:PartyTaxScheme", code("cbc:CompanyID", func(p *Party) *string { return &p.VATID }), vatScheme21[Party]())),
		in("cac:Delivery", of(func(d *Invoice) *Delivery { return &d.Delivery },
			day("cbc:ActualDeliveryDate", func(d *Delivery) *Date { return &d.Date }),
			in("cac:DeliveryLocation", identified("cbc:ID", func(d *Delivery) *Identifier { return &d.Location }),
				in("cac:Address", of(func(d *Delivery) *Address { return &d.Address }, ublAddress()...))),
			in("cac:DeliveryParty", in("cac:PartyName", text("cbc:Name", func(d *Delivery) *string { return &d.Name }))))),
		ublPayments(credit),
		in("cac:PaymentTerms", text("cbc:Note", func(d *Invoice) *string { return &d.PaymentTerms })),
		many("cac:AllowanceCharge", func(d *Invoice) *[]AllowanceCharge { return &d.Allowances }, ublAllowance("false", true)...),
		many("cac:AllowanceCharge", func(d *Invoice) *[]AllowanceCharge { return &d.Charges }, ublAllowance("true", true)...),
	}
	parts = append(parts, ublTotals()...)
	if credit {
		return append(parts, many("cac:CreditNoteLine", func(d *Invoice) *[]Line { return &d.Lines }, ublLine("cbc:CreditedQuantity")...))
	}
	return append(parts, many("cac:InvoiceLine", func(d *Invoice) *[]Line { return &d.Lines }, ublLine("cbc:InvoicedQuantity")...))
}

func self[T any](v *T) *T { return v }

// reference is a document reference that has nothing but its number.
func reference[T any](name string, at func(*T) *string) part[T] {
	return loose(name, code("cbc:ID", at))
}

// day is an element with a date.
func day[T any](name string, at func(*T) *Date) part[T] {
	return leaf(name, func(w *writer, v *T) bool { return w.text(string(*at(v))) }, func(r *reader, e *xmltree.Element, v *T) {
		d := Date(strings.TrimSpace(e.Text))
		if d != "" && !d.valid() {
			r.fail(e, "%q is not a day", clip(e.Text))
		}
		*at(v) = d
	})
}

// ublNotes: UBL has no place for the subject of a note; it stands before the
// text between number signs.
func ublNotes() part[Invoice] {
	return many("cbc:Note", func(d *Invoice) *[]Note { return &d.Notes }, part[Note]{
		write: func(w *writer, n *Note) bool {
			if n.Text == "" {
				return false
			}
			if n.Subject != "" {
				w.text("#" + n.Subject + "#")
			}
			return w.text(n.Text)
		},
		read: func(_ *reader, in *xmltree.Element, n *Note) {
			n.Text = in.Text
			if s := in.Text; len(s) > 5 && s[0] == '#' && s[4] == '#' && among(noteSubjects, s[1:4]) {
				n.Subject, n.Text = s[1:4], s[5:]
			}
		},
	})
}

// noOrder stands for an order number where there is only a sales order: UBL
// wants one.
const noOrder = "NA"

func ublOrder() part[Invoice] {
	return leaf("cbc:ID", func(w *writer, d *Invoice) bool {
		if d.OrderReference == "" && d.SalesOrderReference != "" {
			return w.text(noOrder)
		}
		return w.text(d.OrderReference)
	}, func(_ *reader, e *xmltree.Element, d *Invoice) {
		if d.OrderReference = strings.TrimSpace(e.Text); d.OrderReference == noOrder && e.Parent.At("SalesOrderID") != nil {
			d.OrderReference = ""
		}
	})
}

// vatScheme21 marks a tax as VAT.
func vatScheme21[T any]() part[T] { return marker("cac:TaxScheme", fixed[T]("cbc:ID", "VAT")) }

func ublParty() []part[Party] {
	otherTax := func(e *xmltree.Element) bool { return !strings.EqualFold(e.Value("TaxScheme", "ID"), "VAT") }
	return []part[Party]{
		identified("cbc:EndpointID", func(p *Party) *Identifier { return &p.Electronic }),
		many("cac:PartyIdentification", func(p *Party) *[]Identifier { return &p.IDs }, identified("cbc:ID", self[Identifier])),
		loose("cac:PartyName", text("cbc:Name", func(p *Party) *string { return &p.TradeName })),
		loose("cac:PostalAddress", of(func(p *Party) *Address { return &p.Address }, ublAddress()...)),
		loose("cac:PartyTaxScheme", code("cbc:CompanyID", func(p *Party) *string { return &p.VATID }), vatScheme21[Party]()),
		loose("cac:PartyTaxScheme", only(code("cbc:CompanyID", func(p *Party) *string { return &p.TaxID }), otherTax),
			marker("cac:TaxScheme", filler[Party]("cbc:ID", "TAX"))),
		loose("cac:PartyLegalEntity",
			text("cbc:RegistrationName", func(p *Party) *string { return &p.Name }),
			identified("cbc:CompanyID", func(p *Party) *Identifier { return &p.LegalID }),
			text("cbc:CompanyLegalForm", func(p *Party) *string { return &p.LegalForm })),
		loose("cac:Contact",
			text("cbc:Name", func(p *Party) *string { return &p.Contact.Name }),
			text("cbc:Telephone", func(p *Party) *string { return &p.Contact.Phone }),
			text("cbc:ElectronicMail", func(p *Party) *string { return &p.Contact.Email })),
	}
}

func ublAddress() []part[Address] {
	return []part[Address]{
		text("cbc:StreetName", func(a *Address) *string { return &a.Line1 }),
		text("cbc:AdditionalStreetName", func(a *Address) *string { return &a.Line2 }),
		text("cbc:CityName", func(a *Address) *string { return &a.City }),
		code("cbc:PostalZone", func(a *Address) *string { return &a.PostCode }),
		text("cbc:CountrySubentity", func(a *Address) *string { return &a.Subdivision }),
		loose("cac:AddressLine", text("cbc:Line", func(a *Address) *string { return &a.Line3 })),
		loose("cac:Country", code("cbc:IdentificationCode", func(a *Address) *string { return &a.Country })),
	}
}

// paymentRow is one means of payment with the terms of the whole instruction,
// which UBL repeats in each.
type paymentRow struct {
	doc   *Invoice
	means *PaymentMeans
}

func ublPayments(credit bool) part[Invoice] {
	n := named("cac:PaymentMeans")
	parts := []part[paymentRow]{
		code("cbc:PaymentMeansCode", func(p *paymentRow) *string { return &p.means.Code }, attr("name", func(p *paymentRow) *string { return &p.means.Text })),
	}
	if credit {
		parts = append(parts, day("cbc:PaymentDueDate", func(p *paymentRow) *Date { return &p.doc.DueDate }))
	}
	parts = append(parts,
		leaf("cbc:PaymentID", func(w *writer, p *paymentRow) bool { return w.text(p.doc.Payment.Remittance) }, func(r *reader, e *xmltree.Element, p *paymentRow) {
			if before := p.doc.Payment.Remittance; before != "" && before != e.Text {
				r.unknown.Add(e.Path) // the standard has one for the whole instruction
				return
			}
			p.doc.Payment.Remittance = e.Text
		}),
		in("cac:CardAccount",
			code("cbc:PrimaryAccountNumberID", func(p *paymentRow) *string { return &p.means.Card.Number }),
			filler[paymentRow]("cbc:NetworkID", "NA"),
			text("cbc:HolderName", func(p *paymentRow) *string { return &p.means.Card.Holder })),
		in("cac:PayeeFinancialAccount",
			code("cbc:ID", func(p *paymentRow) *string { return &p.means.Account.ID }),
			text("cbc:Name", func(p *paymentRow) *string { return &p.means.Account.Name }),
			in("cac:FinancialInstitutionBranch", code("cbc:ID", func(p *paymentRow) *string { return &p.means.Account.BIC }))),
		in("cac:PaymentMandate",
			code("cbc:ID", func(p *paymentRow) *string { return &p.doc.Payment.Mandate }),
			in("cac:PayerFinancialAccount", code("cbc:ID", func(p *paymentRow) *string { return &p.means.DebitAccount }))))
	return part[Invoice]{
		write: func(w *writer, d *Invoice) bool {
			for i := range d.Payment.Means {
				row := paymentRow{d, &d.Payment.Means[i]}
				w.element(n, func() bool { return writeAll(w, &row, parts) })
			}
			return len(d.Payment.Means) > 0
		},
		read: func(r *reader, in *xmltree.Element, d *Invoice) {
			for e := range each(r, in, n, parts) {
				row := paymentRow{d, &PaymentMeans{}}
				readAll(r, e, &row, parts)
				d.Payment.Means = append(d.Payment.Means, *row.means)
			}
		},
	}
}

// money is a decimal with the currency of the document.
func money[T any](name string, at func(*T) *Decimal) part[T] {
	return number(name, at, leafAttr[T]{name: "currencyID",
		value: func(w *writer, _ *T) string { return w.currency },
		take: func(r *reader, e *xmltree.Element, _ *T, value string) {
			if value != r.currency {
				r.unknown.Add(func() string { return e.Path() + "/@currencyID" })
			}
		}})
}

func ublAllowance(indicator string, taxed bool) []part[AllowanceCharge] {
	parts := []part[AllowanceCharge]{
		fixed[AllowanceCharge]("cbc:ChargeIndicator", indicator),
		code("cbc:AllowanceChargeReasonCode", func(a *AllowanceCharge) *string { return &a.ReasonCode }),
		text("cbc:AllowanceChargeReason", func(a *AllowanceCharge) *string { return &a.Reason }),
		number("cbc:MultiplierFactorNumeric", func(a *AllowanceCharge) *Decimal { return &a.Percent }),
		money("cbc:Amount", func(a *AllowanceCharge) *Decimal { return &a.Amount }),
		money("cbc:BaseAmount", func(a *AllowanceCharge) *Decimal { return &a.Base }),
	}
	if taxed {
		parts = append(parts, loose("cac:TaxCategory",
			code("cbc:ID", func(a *AllowanceCharge) *string { return &a.Category }, noted[AllowanceCharge]("schemeID")),
			number("cbc:Percent", func(a *AllowanceCharge) *Decimal { return &a.Rate }), vatScheme21[AllowanceCharge]()))
	}
	return parts
}

// ublTotals: the total in the accounting currency is a second tax total.
func ublTotals() []part[Invoice] {
	accounting := in("cac:TaxTotal", number("cbc:TaxAmount", func(d *Invoice) *Decimal { return &d.Totals.TaxAccounting },
		leafAttr[Invoice]{name: "currencyID", value: func(w *writer, _ *Invoice) string { return w.taxCurrency }}))
	accounting.read = func(inner func(*reader, *xmltree.Element, *Invoice)) func(*reader, *xmltree.Element, *Invoice) {
		return func(r *reader, in *xmltree.Element, d *Invoice) {
			if r.taxCurrency != "" {
				inner(r, in, d) // the first tax total was taken before
			}
		}
	}(accounting.read)
	inCurrency := part[Invoice]{
		write: func(*writer, *Invoice) bool { return false },
		read:  func(*reader, *xmltree.Element, *Invoice) {},
		fits: func(r *reader, in *xmltree.Element) bool {
			c := in.At("TaxAmount").Attr("currencyID")
			return c == "" || c == r.currency || c != r.taxCurrency
		},
	}
	return []part[Invoice]{
		loose("cac:TaxTotal", inCurrency,
			money("cbc:TaxAmount", func(d *Invoice) *Decimal { return &d.Totals.Tax }),
			many("cac:TaxSubtotal", func(d *Invoice) *[]TaxSubtotal { return &d.Breakdown },
				money("cbc:TaxableAmount", func(s *TaxSubtotal) *Decimal { return &s.Taxable }),
				money("cbc:TaxAmount", func(s *TaxSubtotal) *Decimal { return &s.Tax }),
				loose("cac:TaxCategory",
					code("cbc:ID", func(s *TaxSubtotal) *string { return &s.Category }, noted[TaxSubtotal]("schemeID")),
					number("cbc:Percent", func(s *TaxSubtotal) *Decimal { return &s.Rate }),
					code("cbc:TaxExemptionReasonCode", func(s *TaxSubtotal) *string { return &s.ReasonCode }),
					text("cbc:TaxExemptionReason", func(s *TaxSubtotal) *string { return &s.Reason }), vatScheme21[TaxSubtotal]()))),
		accounting,
		in("cac:LegalMonetaryTotal", of(func(d *Invoice) *Totals { return &d.Totals },
			money("cbc:LineExtensionAmount", func(t *Totals) *Decimal { return &t.Lines }),
			money("cbc:TaxExclusiveAmount", func(t *Totals) *Decimal { return &t.Net }),
			money("cbc:TaxInclusiveAmount", func(t *Totals) *Decimal { return &t.Gross }),
			money("cbc:AllowanceTotalAmount", func(t *Totals) *Decimal { return &t.Allowances }),
			money("cbc:ChargeTotalAmount", func(t *Totals) *Decimal { return &t.Charges }),
			money("cbc:PrepaidAmount", func(t *Totals) *Decimal { return &t.Paid }),
			money("cbc:PayableRoundingAmount", func(t *Totals) *Decimal { return &t.Rounding }),
			money("cbc:PayableAmount", func(t *Totals) *Decimal { return &t.Due }))),
	}
}

func ublLine(quantity string) []part[Line] {
	return []part[Line]{
		code("cbc:ID", func(l *Line) *string { return &l.ID }),
		text("cbc:Note", func(l *Line) *string { return &l.Note }),
		number(quantity, func(l *Line) *Decimal { return &l.Quantity }, attr("unitCode", func(l *Line) *string { return &l.Unit })),
		money("cbc:LineExtensionAmount", func(l *Line) *Decimal { return &l.Net }),
		text("cbc:AccountingCost", func(l *Line) *string { return &l.AccountingReference }),
		in("cac:InvoicePeriod",
			day("cbc:StartDate", func(l *Line) *Date { return &l.Period.Start }),
			day("cbc:EndDate", func(l *Line) *Date { return &l.Period.End })),
		in("cac:OrderLineReference", code("cbc:LineID", func(l *Line) *string { return &l.OrderLine })),
		loose("cac:DocumentReference", identified("cbc:ID", func(l *Line) *Identifier { return &l.Object }), usual[Line]("cbc:DocumentTypeCode", "130")),
		many("cac:AllowanceCharge", func(l *Line) *[]AllowanceCharge { return &l.Allowances }, ublAllowance("false", false)...),
		many("cac:AllowanceCharge", func(l *Line) *[]AllowanceCharge { return &l.Charges }, ublAllowance("true", false)...),
		in("cac:Item",
			of(func(l *Line) *Item { return &l.Item }, ublItem()...),
			loose("cac:ClassifiedTaxCategory",
				code("cbc:ID", func(l *Line) *string { return &l.Category }, noted[Line]("schemeID")),
				number("cbc:Percent", func(l *Line) *Decimal { return &l.Rate }), vatScheme21[Line]()),
			many("cac:AdditionalItemProperty", func(l *Line) *[]Attribute { return &l.Item.Attributes },
				text("cbc:Name", func(a *Attribute) *string { return &a.Name }),
				text("cbc:Value", func(a *Attribute) *string { return &a.Value }))),
		in("cac:Price", of(func(l *Line) *Price { return &l.Price },
			money("cbc:PriceAmount", func(p *Price) *Decimal { return &p.Net }),
			number("cbc:BaseQuantity", func(p *Price) *Decimal { return &p.BaseQuantity }, attr("unitCode", func(p *Price) *string { return &p.BaseUnit })),
			loose("cac:AllowanceCharge", fixed[Price]("cbc:ChargeIndicator", "false"),
				money("cbc:Amount", func(p *Price) *Decimal { return &p.Discount }),
				money("cbc:BaseAmount", func(p *Price) *Decimal { return &p.Gross })))),
	}
}

func ublItem() []part[Item] {
	return []part[Item]{
		text("cbc:Description", func(i *Item) *string { return &i.Description }),
		text("cbc:Name", func(i *Item) *string { return &i.Name }),
		in("cac:BuyersItemIdentification", code("cbc:ID", func(i *Item) *string { return &i.BuyerID })),
		in("cac:SellersItemIdentification", code("cbc:ID", func(i *Item) *string { return &i.SellerID })),
		in("cac:StandardItemIdentification", identified("cbc:ID", func(i *Item) *Identifier { return &i.StandardID })),
		in("cac:OriginCountry", code("cbc:IdentificationCode", func(i *Item) *string { return &i.Origin })),
		many("cac:CommodityClassification", func(i *Item) *[]Class { return &i.Classes },
			code("cbc:ItemClassificationCode", func(c *Class) *string { return &c.Code },
				attr("listID", func(c *Class) *string { return &c.Scheme }), attr("listVersionID", func(c *Class) *string { return &c.Version }))),
	}
}

package en16931

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
)

// ReadIncoming reads somebody else's document of either syntax. Terms that the shape
// has no place for are listed by their numbers (BT-14), what is no term at all by its
// path.
func ReadIncoming(document []byte) (*incoming.Document, error) {
	d, syntax, unread, err := readWithin(incoming.Limits(), document)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", incoming.ErrInvalid, err)
	}
	decimals, known := transaction.CurrencyExponent(d.Currency)
	if !known {
		return nil, fmt.Errorf("%w: the currency %q is none that amounts could be in", incoming.ErrInvalid, clip(d.Currency))
	}
	r := receiver{d: d, decimals: decimals, unread: unread,
		out: &incoming.Document{Format: syntax, TypeCode: d.TypeCode, Number: d.Number, Currency: d.Currency, PaymentTerms: d.PaymentTerms}}
	r.head()
	r.parties()
	r.totals()
	r.lines()
	r.payments()
	r.placeless()
	r.out.NotRead = r.unread.List()
	if r.err == nil {
		r.out.Broken = broken(d, syntax)
	}
	return r.out, r.err
}

// broken are the official rules that a document breaks: those of the specification that it
// names (BT-24), where we have them. A specification that leaves terms out, or adds some,
// has others.
func broken(d *Invoice, syntax string) (list []incoming.BrokenRule) {
	p, ok := profileOf(d.Specification)
	switch {
	case !ok:
		return nil
	case len(d.Breakdown) > subtotalsMax:
		return []incoming.BrokenRule{{Text: fmt.Sprintf("the official rules were not checked: there are more than %d tax subtotals", subtotalsMax)}}
	}
	p.CII = syntax == incoming.CII
	found := Check(d, p)
	for i, f := range found {
		if len(list) == incoming.NotReadMax-1 && i < len(found)-1 {
			return append(list, incoming.BrokenRule{Text: fmt.Sprintf("%d more rules are broken", len(found)-i)})
		}
		term := f.Term
		if f.Index >= 0 {
			term = fmt.Sprintf("%s, number %d", f.Term, f.Index+1)
		}
		list = append(list, incoming.BrokenRule{Rule: f.Rule, Term: term, Text: f.Text})
	}
	return list
}

// subtotalsMax bounds the work on somebody else's document: the lines are added up for each subtotal.
const subtotalsMax = 100

func profileOf(specification string) (Profile, bool) {
	for _, p := range []Profile{PeppolBIS(), PeppolSelfBilling(), XRechnung(false), CIUSRO()} {
		if p.Specification == specification {
			return p, true
		}
	}
	further, compliant := strings.CutPrefix(specification, specificationCore+"#compliant#")
	return Profile{Specification: specification}, specification == specificationCore || compliant && !strings.Contains(further, "#")
}

type receiver struct {
	d        *Invoice
	out      *incoming.Document
	decimals int
	unread   incoming.Unread
	err      error
}

// minor is an amount in minor units. One with more decimals than the currency is
// rounded and listed.
func (r *receiver) minor(term string, d Decimal) int64 { return r.minorOf(term, d, r.decimals) }

func (r *receiver) minorOf(term string, d Decimal, decimals int) int64 {
	amount, exact, err := incoming.Minor(amountOf(d), decimals)
	switch {
	case err != nil && r.err == nil:
		r.err = fmt.Errorf("%w: %s: %w", incoming.ErrInvalid, term, err)
	case err == nil && !exact:
		r.unread.Add(func() string { return term + " = " + d.String() })
	}
	return amount
}

func amountOf(d Decimal) num.Amount { return num.MakeAmount(d.unscaled, uint32(d.scale)) }

// given is a number, nil where the document has none.
func given(d Decimal) *num.Amount {
	if !d.given {
		return nil
	}
	n := amountOf(d)
	return &n
}

// miss lists a term that the document has and the shape has no place for.
func (r *receiver) miss(term string, has bool) {
	if has {
		r.unread.Add(func() string { return term })
	}
}

func (r *receiver) head() {
	d, out := r.d, r.out
	out.Kind = transaction.Invoice
	switch {
	case d.IsCreditNote():
		out.Kind = transaction.Credit
	case d.TypeCode == "384":
		out.Kind = transaction.Adjustment
	}
	out.Day, out.DueDay, out.DeliveryDay = string(d.IssueDate), string(d.DueDate), string(d.Delivery.Date)
	out.Period = spanOf(d.Period)
	out.References = transaction.References{Buyer: d.BuyerReference, Order: d.OrderReference, Contract: d.ContractReference,
		Project: d.ProjectReference}
	for _, p := range d.Preceding {
		out.Earlier = append(out.Earlier, incoming.Reference{Number: p.Number, Day: string(p.Date)})
	}
	for _, n := range d.Notes {
		text := n.Text
		if n.Subject != "" { // as UBL writes it
			text = "#" + n.Subject + "#" + text
		}
		out.Notes = append(out.Notes, text)
	}
	for _, a := range d.Documents {
		if len(a.Content) > 0 {
			out.Attachments = append(out.Attachments,
				transaction.Attachment{Name: cmp.Or(a.Filename, a.Reference), Type: a.MIME, Content: a.Content})
		}
		r.miss("BT-122 "+a.Reference, len(a.Content) == 0)
		r.miss("BT-123", a.Description != "" && a.Description != a.Reference)
		r.miss("BT-124", a.Location != "")
	}
}

func spanOf(p Period) *transaction.Span {
	if p == (Period{}) {
		return nil
	}
	return &transaction.Span{From: string(p.Start), To: string(p.End)}
}

func (r *receiver) parties() {
	d, out := r.d, r.out
	out.Sender, out.Receiver = r.party("BG-4", &d.Seller), r.party("BG-7", &d.Buyer)
	if p := d.Payee; p != nil {
		out.Payee = &transaction.Payee{Name: p.Name, ID: p.LegalID.ID}
		if out.Payee.ID == "" && len(p.IDs) > 0 {
			out.Payee.ID = p.IDs[0].ID
		} else {
			r.miss("BT-60", len(p.IDs) > 0)
		}
	}
	if p := d.TaxRepresentative; p != nil {
		other := r.party("BG-11", p)
		other.Role = "tax representative"
		out.Others = append(out.Others, other)
	}
	if to := d.Delivery; to.Name != "" || to.Address != (Address{}) {
		out.Delivery = &transaction.Delivery{Name: to.Name, Address: r.address(to.Address)}
	}
	r.miss("BT-71", d.Delivery.Location.ID != "")
}

func (r *receiver) party(group string, p *Party) transaction.Party {
	out := transaction.Party{LegalName: p.Name, TradeName: p.TradeName, EntityNumber: p.LegalID.ID,
		TaxNumber: cmp.Or(p.VATID, p.TaxID), Address: r.address(p.Address), Email: p.Contact.Email, Phone: p.Contact.Phone}
	if p.Electronic.ID != "" {
		out.Electronic = &transaction.ElectronicAddress{Scheme: p.Electronic.Scheme, ID: p.Electronic.ID}
	}
	ids := p.IDs
	if out.EntityNumber == "" && len(ids) > 0 {
		out.EntityNumber, ids = ids[0].ID, ids[1:]
	}
	for _, id := range ids {
		r.miss(group+" identifier "+id.ID, true)
	}
	r.miss(group+" second tax number "+p.TaxID, p.VATID != "" && p.TaxID != "" && p.TaxID != p.VATID)
	r.miss(group+" legal form", p.LegalForm != "")
	r.miss(group+" contact "+p.Contact.Name, p.Contact.Name != "")
	return out
}

func (r *receiver) address(a Address) *transaction.Address {
	if a == (Address{}) {
		return nil
	}
	r.miss("address, third line: "+a.Line3, a.Line3 != "")
	return &transaction.Address{AddressLine1: a.Line1, AddressLine2: a.Line2, City: a.City, PostalCode: a.PostCode,
		Region: a.Subdivision, CountryCode: a.Country}
}

func (r *receiver) totals() {
	d, out := r.d, r.out
	t := &d.Totals
	out.Net, out.Tax, out.Gross = r.minor("BT-109", t.Net), r.minor("BT-110", t.Tax), r.minor("BT-112", t.Gross)
	out.Prepaid, out.Rounding, out.Payable = r.minor("BT-113", t.Paid), r.minor("BT-114", t.Rounding), r.minor("BT-115", t.Due)
	if t.TaxAccounting.given {
		if decimals, known := transaction.CurrencyExponent(d.TaxCurrency); known {
			out.TaxCurrency, out.AccountingTax = d.TaxCurrency, r.minorOf("BT-111", t.TaxAccounting, decimals)
		} else {
			r.miss("BT-111", true)
		}
	}
	for _, b := range d.Breakdown {
		tax := taxOf(b.Category, b.Rate)
		tax.Reason = cmp.Or(b.Reason, b.ReasonCode)
		r.miss("BT-121", b.Reason != "" && b.ReasonCode != "" && b.Reason != b.ReasonCode)
		tax.Base, tax.Amount = r.minor("BT-116", b.Taxable), r.minor("BT-117", b.Tax)
		out.Taxes = append(out.Taxes, tax)
	}
	out.Allowances, out.Charges = r.extras("BT-92", d.Allowances), r.extras("BT-99", d.Charges)
}

// taxOf is a category with its rate. S says only that there is a rate.
func taxOf(category string, rate Decimal) incoming.Tax {
	tax := incoming.Tax{Regime: transaction.VAT, Code: category, Rate: amountOf(rate)}
	switch category {
	case "L":
		tax.Regime = "IGIC"
	case "M":
		tax.Regime = "IPSI"
	case "Z":
		tax.Type = transaction.TaxZero
	case "E":
		tax.Type = transaction.TaxExempt
	case "AE":
		tax.Type = transaction.TaxReverse
	case "K":
		tax.Type = transaction.TaxIntraEU
	case "G":
		tax.Type = transaction.TaxExport
	case "O":
		tax.Type = transaction.TaxOutside
	}
	return tax
}

func (r *receiver) extras(term string, list []AllowanceCharge) (out []incoming.Extra) {
	for _, a := range list {
		extra := incoming.Extra{Code: a.ReasonCode, Reason: a.Reason, Amount: r.minor(term, a.Amount), Percent: given(a.Percent)}
		if a.Category != "" {
			extra.Taxes = []incoming.Tax{taxOf(a.Category, a.Rate)}
		}
		r.miss("base of "+term, a.Base.given && !a.Percent.given)
		out = append(out, extra)
	}
	return out
}

func (r *receiver) lines() {
	for i := range r.d.Lines {
		r.out.Lines = append(r.out.Lines, r.line(i, &r.d.Lines[i]))
	}
}

func (r *receiver) line(i int, l *Line) incoming.Line {
	miss := func(term string, has bool) {
		if has {
			r.miss(fmt.Sprintf("%s of line %d", term, i+1), true)
		}
	}
	out := incoming.Line{Number: int64(i) + 1, Name: l.Item.Name, Description: l.Item.Description, Code: cmp.Or(l.Item.SellerID, l.Item.BuyerID),
		Quantity: amountOf(l.Quantity), Unit: l.Unit, UnitPrice: amountOf(l.Price.Net), Net: r.minor("BT-131", l.Net),
		Period: spanOf(l.Period), Allowances: r.extras("BT-136", l.Allowances), Charges: r.extras("BT-141", l.Charges)}
	if n, err := ParseDecimal(l.ID); err == nil && n.scale == 0 && n.unscaled > 0 {
		out.Number = n.unscaled
	} else {
		miss("BT-126 "+l.ID, l.ID != "")
	}
	if l.Category != "" {
		out.Taxes = []incoming.Tax{taxOf(l.Category, l.Rate)}
	}
	switch id := l.Item.StandardID; id.Scheme {
	case "0160", "0088", "":
		out.EAN = id.ID
	default:
		out.Classes = append(out.Classes, transaction.Classification{Scheme: id.Scheme, Code: id.ID})
	}
	for _, c := range l.Item.Classes {
		out.Classes = append(out.Classes, transaction.Classification{Scheme: c.Scheme, Code: c.Code})
		miss("BT-158 version", c.Version != "")
	}
	if base := l.Price.BaseQuantity; base.given && !base.Equal(Dec(1, 0)) {
		out.PriceOf = given(base)
		miss("BT-150 "+l.Price.BaseUnit, l.Price.BaseUnit != "" && l.Price.BaseUnit != l.Unit)
	}
	miss("BT-127 "+l.Note, l.Note != "")
	miss("BT-128", l.Object.ID != "")
	miss("BT-132", l.OrderLine != "")
	miss("BT-133", l.AccountingReference != "")
	miss("BT-147", l.Price.Discount.given && l.Price.Discount.Sign() != 0)
	miss("BT-148", l.Price.Gross.given && !l.Price.Gross.Equal(l.Price.Net))
	miss("BT-156", l.Item.BuyerID != "" && l.Item.SellerID != "")
	miss("BT-159", l.Item.Origin != "")
	for _, a := range l.Item.Attributes {
		miss("BT-160 "+a.Name, true)
	}
	return out
}

func (r *receiver) payments() {
	p := &r.d.Payment
	for _, m := range p.Means {
		out := transaction.Payment{Type: paymentType(m.Code), Code: m.Code, IBAN: m.Account.ID, Reference: p.Remittance}
		if m.DebitAccount != "" || m.Code == "49" || m.Code == "59" {
			out.Mandate = &transaction.Mandate{Reference: p.Mandate, CreditorID: p.Creditor}
			out.IBAN = cmp.Or(m.DebitAccount, m.Account.ID)
		}
		r.miss("BT-82", m.Text != "")
		r.miss("BT-85", m.Account.Name != "")
		r.miss("BT-86", m.Account.BIC != "")
		r.miss("BG-18", m.Card != Card{})
		r.out.Payments = append(r.out.Payments, out)
	}
	r.miss("BT-83", len(p.Means) == 0 && p.Remittance != "")
}

// paymentType is a code of UNTDID 4461 in the words of a transaction.
func paymentType(code string) string {
	switch code {
	case "10":
		return "CASH"
	case "20", "21", "22", "23", "24", "25", "26":
		return "CHECK"
	case "48", "54", "55":
		return "CARD"
	case "30", "31", "42", "58":
		return "TRANSFER"
	}
	return "OTHER"
}

// placeless lists the terms of the document that have no place at all. What it says
// of itself (BT-23, BT-24) is no content.
func (r *receiver) placeless() {
	d := r.d
	r.miss("BT-7", d.TaxPointDate != "")
	r.miss("BT-8", d.TaxPointCode != "")
	r.miss("BT-14", d.SalesOrderReference != "")
	r.miss("BT-15", d.ReceiptReference != "")
	r.miss("BT-16", d.DespatchReference != "")
	r.miss("BT-17", d.TenderReference != "")
	r.miss("BT-18", d.Object.ID != "")
	r.miss("BT-19", d.AccountingReference != "")
}

// Formats are the two syntaxes, UBL with two roots.
func Formats() []country.Format {
	read := func(document []byte) ([]*incoming.Document, error) { return incoming.One(ReadIncoming(document)) }
	return []country.Format{{Name: incoming.UBL, Space: spaceInvoice, Root: "Invoice", Read: read},
		{Name: incoming.UBL, Space: spaceCreditNote, Root: "CreditNote", Read: read},
		{Name: incoming.CII, Space: namespaces["rsm"], Root: "CrossIndustryInvoice", Read: read}}
}

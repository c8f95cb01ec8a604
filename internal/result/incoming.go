package result

import (
	"cmp"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Arrival is a document that was received, as it is shown.
type Arrival struct {
	ID                        string
	At                        time.Time // when it came
	Status                    operation.Status
	AuthorityID, AuthorityID2 string
	Document                  *incoming.Document // nil: not read, or it cannot be
	Company                   *country.Supplier  // ours, that it was sent to; nil: nobody knows
	Sender                    *country.Supplier  // a company of the same client that sent it; nil: somebody else did
	Faults                    []fault.Fault
}

// Arrived is the result of a received document. Amounts are those that the document states.
func Arrived(a Arrival) *Result {
	r := &Result{Attachments: []Attachment{}, Items: []ResultItem{}, Payments: []ResultPayment{}, Lifecycle: []LifecycleEntry{}}
	r.Row = Row{OperationID: a.ID, Date: Stamp(a.At), Status: a.Status, Kind: transaction.Invoice, BusinessModel: transaction.B2B,
		Direction: Received, OperationRegime: transaction.General, Type: transaction.Full, AuthorityID1: opt(a.AuthorityID),
		AuthorityID2: opt(a.AuthorityID2), Corrections: []CorrectionEntry{}, Errors: append([]fault.Fault{}, a.Faults...)}
	if a.Document != nil {
		r.state(a.Document)
	}
	if a.Sender != nil {
		r.Supplier.ID, r.Supplier.ExternalID = opt(a.Sender.ID), opt(a.Sender.ExternalID)
	}
	if a.Company == nil {
		return r
	}
	r.CountryCode = a.Company.CountryCode
	if r.Customer == nil {
		r.Customer = &ResultParty{LegalName: a.Company.LegalName, Type: cmp.Or(a.Company.Type, transaction.Business)}
	}
	r.Customer.ID, r.Customer.ExternalID = a.Company.ID, a.Company.ExternalID
	return r
}

// state fills in what the document says.
func (r *Result) state(d *incoming.Document) {
	r.Number, r.Kind, r.CurrencyCode = opt(d.Number), d.Kind, opt(d.Currency)
	r.DocumentFormat, r.DocumentType = d.Format, d.TypeCode
	if r.AuthorityID1 == nil {
		r.AuthorityID1 = opt(d.AuthorityID)
	}
	if day, err := time.Parse(time.DateOnly, d.Day); err == nil {
		r.Date = Stamp(day)
	}
	r.ExchangeRate = perhaps(d.ExchangeRate)
	r.Supplier.ResultParty, r.Customer = stated(&d.Sender), stated(&d.Receiver)
	if d.Receiver.Address != nil {
		r.CountryCode = d.Receiver.Address.CountryCode
	}
	if d.Receiver.Type == transaction.Individual {
		r.BusinessModel = transaction.B2C
	}
	gross, net, tax, withheld := d.Gross, d.Net, d.Tax, d.Withheld
	r.TotalAmount, r.TotalNetAmount, r.TotalTaxAmount, r.TotalWithheld = &gross, &net, &tax, &withheld
	r.RoundingAmount = d.Rounding
	r.ResultTerms = ResultTerms{
		BuyerReference: opt(d.References.Buyer), OrderReference: opt(d.References.Order),
		ContractReference: opt(d.References.Contract), ProjectReference: opt(d.References.Project),
		DueDate: opt(d.DueDay), DeliveryDate: opt(d.DeliveryDay), PaymentTerms: opt(d.PaymentTerms), Period: d.Period,
		Delivery: d.Delivery, Payee: d.Payee,
	}
	for i := range d.Others {
		r.ThirdParties = append(r.ThirdParties, stated(&d.Others[i]))
	}
	for i := range d.Lines {
		r.Items = append(r.Items, statedItem(d.Lines[i].Signed(), d.Currency))
	}
	for i := range d.Ordered {
		r.OrderItems = append(r.OrderItems, statedItem(d.Ordered[i].Signed(), d.Currency))
	}
	for _, e := range d.Earlier {
		r.References = append(r.References, ResultShare{Amount: e.Amount, Number: e.Number, Date: e.Day, AuthorityID1: e.AuthorityID,
			Relation: e.Relation})
	}
	r.Allowances, r.Charges = statedExtras(d.Allowances), statedExtras(d.Charges)
	for i, t := range statedTaxes(d.Taxes) {
		r.TaxSummary = append(r.TaxSummary, ResultTaxSum{Base: d.Taxes[i].Base, Amount: t.Amount, Rate: t.Rate, Regime: t.Regime,
			Type: t.Type, Code: t.Code, Reason: t.Reason})
	}
	for _, p := range d.Payments {
		r.Payments = append(r.Payments, ResultPayment{Type: p.Type, Code: opt(p.Code), Amount: p.Amount, IBAN: opt(p.IBAN),
			Reference: opt(p.Reference), Date: opt(p.Date), Mandate: p.Mandate})
	}
	for i, note := range d.Notes {
		text := note
		if i > 0 {
			text = *r.Note + "\n" + note
		}
		r.Note = &text
	}
}

// stated is a party of somebody else's document: what is not said of it is empty.
func stated(p *transaction.Party) *ResultParty {
	own := *p
	own.ID = ""
	own.Type = cmp.Or(own.Type, transaction.Business)
	return party(&own)
}

// Party is a party as a result shows it, as far as an answer to its document needs it.
func (p *ResultParty) Party() transaction.Party {
	if p == nil {
		return transaction.Party{}
	}
	out := transaction.Party{LegalName: p.LegalName, TradeName: Text(p.TradeName), EntityNumber: Text(p.EntityNumber), Address: p.Address,
		Type: p.Type}
	if p.TaxInformation != nil {
		out.TaxNumber, out.FiscalCode = Text(p.TaxInformation.TaxNumber), Text(p.TaxInformation.FiscalCode)
	}
	if p.Electronic != nil {
		out.Electronic = &transaction.ElectronicAddress{Scheme: p.Electronic.Scheme, ID: p.Electronic.ID}
	}
	return out
}

func statedItem(l incoming.Line, currency string) ResultItem {
	price, _ := l.Price(currency)
	r := ResultItem{Number: l.Number, Name: l.Name, Description: opt(l.Description), Code: opt(l.Code), EAN: opt(l.EAN),
		Unit: opt(l.Unit), Quantity: decimalOf(l.Quantity), UnitPrice: price, NetPrice: l.Net, Type: transaction.Goods,
		Taxes: statedTaxes(l.Taxes), Period: l.Period,
		Allowances: statedExtras(l.Allowances), Charges: statedExtras(l.Charges)}
	mode := transaction.Added
	if l.Gross {
		mode = transaction.Included
	}
	for i := range r.Taxes {
		if r.Taxes[i].Regime != transaction.Withholding {
			r.Taxes[i].Mode = opt(mode)
		}
	}
	for _, c := range l.Classes {
		r.Classifications = append(r.Classifications, ResultClassification(c))
	}
	return r
}

func statedExtras(list []incoming.Extra) (all []ResultExtra) {
	for _, e := range list {
		all = append(all, ResultExtra{Reason: e.Reason, Code: e.Code, Amount: e.Amount, Rate: perhaps(e.Percent), NetPrice: e.Amount,
			Taxes: statedTaxes(e.Taxes)})
	}
	return all
}

func statedTaxes(list []incoming.Tax) []ResultTax {
	all := []ResultTax{}
	for _, t := range list {
		all = append(all, ResultTax{Amount: t.Amount, Rate: decimalOf(t.Rate), Regime: t.Regime, Type: t.Type, Code: opt(t.Code),
			Reason: opt(t.Reason)})
	}
	return all
}

// NotRead are the warnings of what a reader did not understand.
func NotRead(paths []string) (list []fault.Fault) {
	for _, path := range paths {
		list = append(list, fault.Warn(fault.Clip(path, pathMax), fault.FieldUnknown,
			"the document says this, and it was not read; the original has it"))
	}
	return list
}

// Broken are the warnings of the rules that a received document breaks.
func Broken(rules []incoming.BrokenRule) (list []fault.Fault) {
	for _, b := range rules {
		text := b.Text
		if b.Rule != "" {
			text += " (rule " + b.Rule + ")"
		}
		list = append(list, fault.Warn(fault.Clip(b.Term, pathMax), fault.FieldNotValid, "%s", text))
	}
	return list
}

const pathMax = 200

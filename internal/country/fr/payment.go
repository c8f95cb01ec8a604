package fr

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/fr/ereport"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// The status by which a seller says what was paid of an invoice (external
// specifications 3.2, § 3.6.4), and how it is written.
const (
	collected     = "212"
	collectedName = "Encaissée"
	statusPaid    = "47" // UNTDID 1373, as the official sample has it

	schemePlatform = "0238"
	administration = "9998" // the public portal, among platforms
)

// rulesOf are how a company is taxed.
func rulesOf(s *country.Supplier) ereport.Rules {
	debits, _ := s.Settings[settingDebits].(bool)
	return ereport.Rules{Untaxed: franchise(s), Debits: debits}
}

// flowOf says where money for a sale is told: as the status of an invoice that the
// platform has, or in a report.
func flowOf(o country.Original) ereport.Flow {
	to := routeOf(&o.Transaction, false)
	switch {
	case len(o.Report) > 0, o.Backfilled && to == betweenBusinesses:
		return ereport.Elsewhere
	case to == abroadBusiness:
		return ereport.OfInvoice
	}
	return ereport.OfSales
}

// untold says why nothing is told of a payment, or not in one message.
func untold(in *country.Draft) []fault.Fault {
	refuse := func(text string) []fault.Fault {
		return []fault.Fault{fault.At("references", fault.UnsupportedOperation, "%s", text)}
	}
	rules := rulesOf(&in.Supplier)
	switch {
	case len(in.Shares) == 0:
		return refuse("must name the sales that were paid")
	case rules.Untaxed:
		return refuse("are sales without VAT (vat_regime franchise): nothing is told of their payment")
	case rules.Debits:
		return refuse("are sales whose VAT is owed when they are invoiced (vat_on_debits): nothing is told of their payment")
	}
	services := false
	for i := range in.Shares {
		s := &in.Shares[i]
		if !filed(&in.Supplier, &s.Transaction, nil) {
			return refuse("has a sale from before obliged_since, of which nothing was told")
		}
		if len(in.Shares) > 1 && flowOf(s.Original) == ereport.Elsewhere {
			return []fault.Fault{fault.At("references", fault.ValidationMatchInvalid,
				"has an invoice of the platform, which gets a status of its own: report what was paid of each by itself")}
		}
		rates, err := rules.Received(s)
		services = services || err != nil || len(rates) > 0
	}
	if !services {
		return refuse("has no services whose VAT is owed when they are paid (CGI, art. 269, 2, c): nothing is told of their payment")
	}
	return nil
}

// paidOn is when money came: the day of the payments where they agree on one, else
// that of the transaction.
func paidOn(t *transaction.Transaction, where *time.Location) time.Time {
	for i := range t.Payments {
		if t.Payments[i].Date != t.Payments[0].Date {
			return t.Date
		}
	}
	if len(t.Payments) > 0 {
		if day, err := time.ParseInLocation(time.DateOnly, t.Payments[0].Date, cmp.Or(where, time.UTC)); err == nil {
			return day.Add(12 * time.Hour)
		}
	}
	return t.Date
}

// gatherPayment says what money received contributes to the report of payments (10.2,
// 10.4). Nil: it is the status of an invoice, which goes to the platform by itself.
func gatherPayment(in *country.Draft) (*country.Gathered, error) {
	if found := untold(in); len(found) > 0 {
		return nil, fault.New(fault.Invalid, "the payment cannot be told").With(found...)
	}
	if flowOf(in.Shares[0].Original) == ereport.Elsewhere {
		return nil, nil
	}
	in.Transaction.Date = paidOn(&in.Transaction, in.Location)
	c, err := rulesOf(&in.Supplier).Payments(in, flowOf)
	if err != nil {
		return nil, err
	}
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	g := &country.Gathered{Lines: len(c.Paid) + len(c.Settled), Data: data, Currency: ownMoney,
		Span: regime(&in.Supplier).Payments(in.Transaction.Date.In(cmp.Or(in.Location, time.UTC)))}
	for _, p := range c.Paid {
		g.Gross += total(p.Rates)
	}
	for _, s := range c.Settled {
		g.Gross += total(s.Rates)
	}
	g.Net = g.Gross
	return g, nil
}

func total(rates []ereport.Rate) (sum int64) {
	for _, r := range rates {
		sum += r.Base
	}
	return sum
}

// collection is the status 212 of an invoice.
func (ch *channel) collection(in *country.Draft) (country.Filing, error) {
	if found := untold(in); len(found) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the payment cannot be told").With(found...)
	}
	share := &in.Shares[0]
	rates, err := rulesOf(&in.Supplier).Received(share)
	if err != nil {
		return country.Filing{}, err
	}
	own := company(&in.Supplier)
	m := statusOf{seller: own.siren, name: in.Supplier.LegalName, number: cmp.Or(share.Transaction.Number, share.UniqueNumber), kind: typeOf(share.Report),
		day: share.Transaction.Date.In(paris()).Format("20060102"), made: in.Now.In(paris()).Format("20060102150405"),
		paid: paidOn(&in.Transaction, in.Location).In(paris()).Format("20060102150405"), id: tracking(in.OperationID)[:8], rates: rates}
	if b := share.Transaction.Customer; b != nil {
		m.buyer, m.buyerName = buyer(b).siren, b.LegalName
		m.address = m.buyer
		if b.Electronic != nil {
			m.address = b.Electronic.ID
		}
	}
	name := strings.NewReplacer("/", "-", "+", "-").Replace(m.number) + "_" + collected + ".xml"
	f, err := in.Filing(m.write(), cmp.Or(in.Transaction.Number, in.UniqueNumber), own.siren, extra{Syntax: syntaxStatus, Name: name, Rule: string(betweenBusinesses)})
	f.DedupeKey = tracking(in.OperationID)
	return f, err
}

// typeOf is the type of an invoice that was filed (BT-3).
func typeOf(report []byte) string {
	doc, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(report)
	if err != nil {
		return "380" // it was issued elsewhere
	}
	return cmp.Or(doc.Root.Value("ExchangedDocument", "TypeCode"), doc.Root.Value("InvoiceTypeCode"), doc.Root.Value("CreditNoteTypeCode"), "380")
}

// statusOf is a status that we say of an invoice (CDAR D22B).
type statusOf struct {
	seller, name              string
	buyer, buyerName, address string // "": nobody in France is known
	number, kind, day         string // of the invoice
	made, paid                string // instants of Paris
	id                        string // tells it from others of the same second
	rates                     []ereport.Rate
}

const spaceAggregates = "urn:un:unece:uncefact:data:standard:"

func (m *statusOf) write() []byte {
	w := &xmltree.Writer{Lines: true}
	w.Declare()
	w.Start("rsm:CrossDomainAcknowledgementAndResponse", "xmlns:rsm", spaceStatus,
		"xmlns:ram", spaceAggregates+"ReusableAggregateBusinessInformationEntity:100",
		"xmlns:qdt", spaceAggregates+"QualifiedDataType:100", "xmlns:udt", spaceAggregates+"UnqualifiedDataType:100")
	w.Start("rsm:ExchangedDocumentContext")
	within(w, "REGULATED", "ram:BusinessProcessSpecifiedDocumentContextParameter", "ram:ID")
	within(w, "urn.cpro.gouv.fr:1p0:CDV:invoice", "ram:GuidelineSpecifiedDocumentContextParameter", "ram:ID")
	w.End()
	w.Start("rsm:ExchangedDocument")
	w.Leaf("ram:ID", fmt.Sprintf("%s_%s_%s_%s#%s_%s", m.number, collected, m.made, m.id, m.kind, m.day))
	moment(w, m.made)
	within(w, "WK", "ram:SenderTradeParty", "ram:RoleCode")
	speaker{id: m.seller, scheme: schemeSIREN, name: m.name, role: "SE"}.write(w, "ram:IssuerTradeParty")
	if m.buyer != "" {
		speaker{id: m.buyer, scheme: schemeSIREN, name: m.buyerName, role: "BY", address: m.address}.write(w, "ram:RecipientTradeParty")
	}
	speaker{id: administration, scheme: schemePlatform, name: "PPF", role: "DFH"}.write(w, "ram:RecipientTradeParty")
	w.End()
	m.about(w)
	w.End()
	return w.Bytes()
}

// about writes which invoice was paid, and how much of it at which rates.
func (m *statusOf) about(w *xmltree.Writer) {
	w.Start("rsm:AcknowledgementDocument")
	within(w, "false", "ram:MultipleReferencesIndicator", "udt:Indicator")
	w.Leaf("ram:TypeCode", "23")
	moment(w, m.paid)
	w.Start("ram:ReferenceReferencedDocument")
	w.Leaf("ram:IssuerAssignedID", m.number)
	w.Leaf("ram:StatusCode", statusPaid)
	w.Leaf("ram:TypeCode", m.kind)
	w.Start("ram:FormattedIssueDateTime")
	w.Leaf("qdt:DateTimeString", m.day, "format", "102")
	w.End()
	w.Leaf("ram:ProcessConditionCode", collected)
	w.Leaf("ram:ProcessCondition", collectedName)
	w.Start("ram:IssuerTradeParty")
	w.Leaf("ram:GlobalID", m.seller, "schemeID", schemeSIREN)
	w.End()
	w.Start("ram:SpecifiedDocumentStatus")
	w.Leaf("ram:SequenceNumeric", "1")
	for _, r := range m.rates {
		w.Start("ram:SpecifiedDocumentCharacteristic")
		w.Leaf("ram:TypeCode", "MEN")
		within(w, "false", "ram:ValueChangedIndicator", "udt:IndicatorString")
		w.Leaf("ram:ValueAmount", amount.Text(r.Base, 2), "currencyID", ownMoney)
		w.Leaf("ram:ValuePercent", r.Percent)
		w.End()
	}
	w.End()
	w.End()
	w.End()
}

// within writes a value below names.
func within(w *xmltree.Writer, value string, names ...string) {
	last := len(names) - 1
	for _, name := range names[:last] {
		w.Start(name)
	}
	w.Leaf(names[last], value)
	for range last {
		w.End()
	}
}

// moment writes when something was said, to the second (UN/EDIFACT 2379, 204).
func moment(w *xmltree.Writer, at string) {
	w.Start("ram:IssueDateTime")
	w.Leaf("udt:DateTimeString", at, "format", "204")
	w.End()
}

// speaker is who says a status, or is told it.
type speaker struct{ id, scheme, name, role, address string }

func (s speaker) write(w *xmltree.Writer, element string) {
	w.Start(element)
	w.Leaf("ram:GlobalID", s.id, "schemeID", s.scheme)
	w.Leaf("ram:Name", s.name)
	w.Leaf("ram:RoleCode", s.role)
	if s.address != "" {
		w.Start("ram:URIUniversalCommunication")
		w.Leaf("ram:URIID", s.address, "schemeID", schemeRouting)
		w.End()
	}
	w.End()
}

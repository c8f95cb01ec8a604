package fr

import (
	"cmp"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// page is what differs in France from the European invoice.
func page() en16931.Page {
	return en16931.Page{
		Code: home, Version: version, Offer: offer, Shape: shape, Settled: settled,
		Reasons: map[string]string{"AE": "Autoliquidation", "K": "Exonération de TVA, art. 262 ter, I du CGI",
			"G": "Exonération de TVA, art. 262, I du CGI", "O": "Opération non soumise à la TVA française"},
		SelfBilled: "Autofacturation", Exempt: "Exonéré de TVA, art. 261 du CGI",
		Required:  country.InOwnCurrency(ownMoney, "the tax is stated in euros (BR-FR-CO-12)"),
		TaxNumber: "FR44732829320", Example: example(),
	}
}

// offer: what is checked at submit is the invoice between businesses.
func offer(s en16931.Sale) []en16931.Profile {
	if s.Business && s.BuyerCountry != "" && strings.Contains(overseas, s.BuyerCountry) {
		return []en16931.Profile{en16931.France(true)}
	}
	return nil
}

// shape brings a document into the words of the French rules.
func shape(in country.Issue, d *en16931.Invoice) {
	s, t := in.Supplier, in.Transaction
	own := company(s)
	own.write(&d.Seller)
	if franchise(s) && !strings.HasPrefix(strings.ToUpper(s.TaxNumber), home) && d.Seller.VATID != "" {
		d.Seller.VATID, d.Seller.TaxID = "", own.siren // it has a SIREN and no VAT number
	}
	if s.Settings.Text("endpoint_id") == "" {
		d.Seller.Electronic = en16931.Identifier{ID: own.siren, Scheme: schemeRouting}
	}
	if b := t.Customer; b != nil && inFrance(b.Address) {
		known := buyer(b)
		known.write(&d.Buyer)
		if b.Electronic == nil {
			d.Buyer.Electronic = en16931.Identifier{ID: known.siren, Scheme: schemeRouting}
		}
	}
	d.Process = frame(t)
	if d.Process[0] == 'S' && !d.IsCreditNote() {
		d.TaxPointCode = "432" // VAT of services is owed when they are paid (art. 269, 2, c du CGI)
		if debits, _ := s.Settings[settingDebits].(bool); debits {
			d.TaxPointCode = "3"
		}
	}
	d.Notes = append(d.Notes, mentions(s)...)
	d.Notes = append(d.Notes, en16931.Note{Subject: "BAR", Text: string(routeOf(t, false))})
}

func franchise(s *country.Supplier) bool { return s.Settings.Text(settingRegime) == regimeFranchise }

// mentions are what every invoice between businesses says of late and early
// payment (Code de commerce, art. L441-9).
func mentions(s *country.Supplier) (list []en16931.Note) {
	for _, m := range [][2]string{{"PMT", settingCharges}, {"PMD", settingPenalty}, {"AAB", settingDiscount}} {
		list = append(list, en16931.Note{Subject: m[0], Text: cmp.Or(s.Settings.Text(m[1]), defaultOf(m[1]))})
	}
	return list
}

// defaultOf is the text of a setting that nobody chose.
func defaultOf(key string) string {
	for _, s := range settings() {
		if text, ok := s.Default.(string); ok && s.Key == key {
			return text
		}
	}
	return ""
}

// frame is the processing frame of what is to be paid: goods, services or both.
func frame(t *transaction.Transaction) string {
	goods, services := false, false
	for i := range t.Items {
		if t.Items[i].Type == transaction.Discount {
			continue
		}
		if country.IsServices(t.Items, i) {
			services = true
		} else {
			goods = true
		}
	}
	switch {
	case goods && services:
		return "M1"
	case services:
		return "S1"
	}
	return "B1"
}

// settled marks what is paid already, and says why a company in franchise charges
// no tax.
func settled(in country.Issue, d *en16931.Invoice) {
	if d.Totals.Paid.Given() && d.Totals.Gross.Sign() > 0 && d.Totals.Paid.Equal(d.Totals.Gross) {
		d.Process = d.Process[:1] + "2"
		d.DueDate = d.IssueDate // of the payment, which is the day of the sale unless it is said
		for _, p := range in.Transaction.Payments {
			if p.Date != "" {
				d.DueDate = en16931.Date(p.Date)
			}
		}
	}
	if !franchise(in.Supplier) {
		return
	}
	for i := range d.Breakdown {
		if row := &d.Breakdown[i]; row.Category == "E" && row.ReasonCode == "" {
			row.ReasonCode = "VATEX-FR-FRANCHISE"
			if in.Supplier.Settings.Text("exemption_text") == "" {
				row.Reason = franchiseText
			}
		}
	}
}

const franchiseText = "TVA non applicable, art. 293 B du CGI"

// extra is what a filing carries beyond its document; it is stored with it, so
// names once used keep their meaning.
type extra struct {
	Syntax     string `json:"syntax"`
	Name       string `json:"name"` // of the file
	Rule       string `json:"rule"` // processingRule
	Rounding   int64  `json:"rounding,omitempty"`
	TaxedBySum bool   `json:"taxed_by_sum,omitempty"`
}

// Syntaxes of a flow.
const (
	syntaxCII = "CII"
	syntaxUBL = "UBL"

	syntaxReport = "FRR"
	syntaxStatus = "CDAR"
)

// whole is a draft with the customer of the document it corrects, where it names none.
func whole(in *country.Draft) transaction.Transaction {
	t := in.Transaction
	if t.Customer == nil && in.Original != nil {
		t.Customer = in.Original.Transaction.Customer
	}
	return t
}

// Prepare writes the invoice or the credit note.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	if in.Period != nil {
		return ch.report(&in)
	}
	if in.Transaction.Kind == transaction.PaymentReport {
		return ch.collection(&in)
	}
	if in.Transaction.Answer != nil {
		return ch.answer(&in)
	}
	if err := country.Preparable(&in, func() []fault.Fault { return nil }, "France has no document for the operation",
		"an invoice that the platform has cannot be cancelled; use a credit"); err != nil {
		return country.Filing{}, err
	}
	t := whole(&in)
	known, err := readLearned(in.Learned)
	if err != nil {
		return country.Filing{}, err
	}
	if found := unrouted(&t, known.Unlisted); len(found) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the platform takes no invoice of this sale").With(found...)
	}
	if known.Address != "" {
		to := *t.Customer
		to.Electronic = &transaction.ElectronicAddress{Scheme: schemeRouting, ID: known.Address}
		t.Customer = &to
	}
	t.Items = country.ClassifyTaxes(facts(), country.Case{Transaction: &t, Totals: in.Totals, Now: in.Now})
	format := cmp.Or(in.Supplier.Settings.Text(settingFormat), formatFacturX)
	issue := country.Issue{Transaction: &t, Totals: in.Totals, Supplier: &in.Supplier, Original: in.Original, Shares: in.Shares,
		UniqueNumber: in.UniqueNumber, Location: in.Location, At: in.Now}
	made := page().Compose(issue, en16931.France(format != formatUBL))
	if flaws := made.Faults(); len(flaws) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the invoice cannot be written").With(flaws...)
	}
	x := extra{Syntax: syntaxCII, Rule: string(betweenBusinesses), Rounding: made.Rounding, TaxedBySum: made.TaxedBySum()}
	report := en16931.Write(made.Invoice, made.Profile)
	if format == formatUBL {
		x.Syntax = syntaxUBL
	}
	x.Name = strings.NewReplacer("/", "-", "+", "-").Replace(made.Invoice.Number) + ".xml"
	own := company(&in.Supplier)
	f, err := in.Filing(report, made.Invoice.Number, own.siren, x)
	f.DedupeKey = tracking(in.OperationID)
	f.Aliases = []string{alias(own.siren, made.Invoice.TypeCode, made.Invoice.Number, string(made.Invoice.IssueDate))}
	return f, err
}

// tracking is the name that we give a flow: 32 digits, the same for the same operation.
func tracking(operationID string) string { return country.SHA256([]byte("fr/" + operationID))[:32] }

// alias is how statuses speak of a document.
func alias(siren, kind, number, day string) string {
	return strings.Join([]string{"fr", siren, kind, number, strings.ReplaceAll(day, "-", "")}, "|")
}

// structured is the invoice as data: what was filed, or what a sale of which
// nothing is filed yet would be.
func structured(in country.Issue) (*country.Structured, error) {
	format := cmp.Or(in.Supplier.Settings.Text(settingFormat), formatFacturX)
	hybrid := func(s *country.Structured) *country.Structured {
		if format == formatFacturX {
			s.Embedded = &country.Embedding{FileName: "factur-x.xml", Level: "EN 16931"}
		}
		return s
	}
	if in.Filing != nil {
		var x extra
		if err := in.Filing.Carried(&x); err != nil {
			return nil, err
		}
		if x.Syntax == syntaxReport || x.Syntax == syntaxStatus {
			return &country.Structured{Format: in.Filing.Format, Content: in.Filing.Report, Name: x.Syntax}, nil
		}
		return hybrid(&country.Structured{Format: in.Filing.Format, Content: in.Filing.Report, Name: x.Syntax, Rounding: x.Rounding,
			TaxedBySum: x.TaxedBySum}), nil
	}
	if in.Transaction.Customer == nil || routeOf(in.Transaction, false) != betweenBusinesses {
		return nil, nil
	}
	made := page().Compose(in, en16931.France(format != formatUBL))
	if flaws := made.Faults(); len(flaws) > 0 {
		return nil, fault.New(fault.Invalid, "the invoice cannot be written").With(flaws...)
	}
	return hybrid(&country.Structured{Format: "XML", Content: en16931.Write(made.Invoice, made.Profile), Name: format,
		Rounding: made.Rounding, TaxedBySum: made.TaxedBySum()}), nil
}

// imprint prints what an invoice between businesses must say (Code de commerce,
// art. L441-9; CGI, annex II, art. 242 nonies A).
func imprint(plain func(country.Issue) country.Imprint) func(country.Issue) country.Imprint {
	return func(in country.Issue) country.Imprint {
		if in.Supplier == nil {
			return plain(in)
		}
		if franchise(in.Supplier) && in.Supplier.Settings.Text("exemption_text") == "" {
			own := *in.Supplier
			own.Settings = country.Settings{"exemption_text": franchiseText}
			for key, value := range in.Supplier.Settings {
				if key != "exemption_text" {
					own.Settings[key] = value
				}
			}
			in.Supplier = &own
		}
		out := plain(in)
		if b := in.Transaction.Customer; b == nil || b.Type != transaction.Business {
			return out
		}
		for _, m := range mentions(in.Supplier) {
			out.Texts = append(out.Texts, m.Text)
		}
		if debits, _ := in.Supplier.Settings[settingDebits].(bool); debits {
			out.Texts = append(out.Texts, "Option pour le paiement de la taxe d'après les débits")
		}
		return out
	}
}

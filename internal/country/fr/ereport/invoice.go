package ereport

import (
	"fmt"
	"regexp"
	"strings"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Invoice is an international one between businesses, as 10.1 has it.
type Invoice struct {
	Number   string     `json:"number"`
	Issued   string     `json:"issued"`
	Type     string     `json:"type"`
	Currency string     `json:"currency"`
	Due      string     `json:"due,omitempty"` // TT-24
	Process  string     `json:"process"`       // TT-28
	Original string     `json:"original,omitempty"`
	Dated    string     `json:"dated,omitempty"` // of the original
	Seller   Party      `json:"seller"`
	Buyer    Party      `json:"buyer"`
	Supplied string     `json:"supplied"`
	Net      int64      `json:"net"` // in Currency
	Taxes    []Subtotal `json:"taxes"`
}

// Subtotal is what of an invoice has one category and rate, in euro.
type Subtotal struct {
	Category string `json:"category"`
	Percent  string `json:"percent"`
	Reason   string `json:"reason,omitempty"`
	Code     string `json:"code,omitempty"`
	Base     int64  `json:"base"`
	Tax      int64  `json:"tax"`
}

// Party is the seller or the buyer of an invoice.
type Party struct {
	ID      string `json:"id"`
	Scheme  string `json:"scheme"`
	VAT     string `json:"vat,omitempty"`
	Country string `json:"country"`
}

// Schemes of parties.
const (
	SchemeSIREN  = "0002"
	SchemeEU     = "0223" // a VAT number of another member state
	SchemeAbroad = "0227" // outside of the Union: country and the beginning of the name
)

// abroadMax is how long an identifier of a party abroad is.
const abroadMax = 18

// Abroad is a business that is not in France: by its VAT number within the Union, by
// country and name elsewhere.
func Abroad(p *transaction.Party, home string, inUnion bool) Party {
	number := strings.ToUpper(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(p.TaxNumber))
	if inUnion && number != "" {
		if !strings.HasPrefix(number, home) && !(home == "GR" && strings.HasPrefix(number, "EL")) {
			number = home + number
		}
		return Party{ID: number, Scheme: SchemeEU, VAT: number, Country: home}
	}
	name := []rune(home + strings.Join(strings.Fields(p.LegalName), " "))
	return Party{ID: strings.TrimSpace(string(name[:min(len(name), abroadMax)])), Scheme: SchemeAbroad, Country: home}
}

// Invoice is what an international invoice, or a credit note, contributes. With goods
// from elsewhere or VAT of another country nothing is taxed here: category S at 0 %.
func (r Rules) Invoice(in *country.Draft, seller, buyer Party) (*Contribution, error) {
	t := &in.Transaction
	if len(in.Totals.Lines) != len(t.Items) {
		return nil, fmt.Errorf("reporting %s: %d lines with %d amounts", t.ID, len(t.Items), len(in.Totals.Lines))
	}
	v := Invoice{Number: t.Number, Issued: dayOf(t.Date, in.Location), Type: "380", Currency: currencyOf(t), Seller: seller,
		Buyer: buyer, Supplied: strings.ReplaceAll(t.DeliveryDate, "-", "")}
	if v.Supplied == "" {
		v.Supplied = v.Issued
	}
	sign := int64(1)
	if t.Kind == transaction.Credit || in.Totals.Gross < 0 {
		v.Type = "381"
	}
	if in.Totals.Gross < 0 {
		sign = -1
	}
	if in.Original != nil {
		v.Original, v.Dated = in.Original.Transaction.Number, dayOf(in.Original.Transaction.Date, in.Location)
	}
	if err := v.named(); err != nil {
		return nil, err
	}
	v.Process = processOf(t.Items)
	if r.Debits && v.Process != "B1" {
		v.Due = DebitsCode
	}
	for i := range t.Items {
		if err := r.line(&v, in, i, sign); err != nil {
			return nil, err
		}
	}
	return &Contribution{Invoices: []Invoice{v}}, nil
}

// named refuses numbers that a report cannot have (G1.05, G1.06).
func (v *Invoice) named() error {
	pattern := regexp.MustCompile(`^[A-Za-z0-9+_/-]+( [A-Za-z0-9+_/-]+)*$`)
	if len(v.Number) > 35 || !pattern.MatchString(v.Number) {
		return invalid(fault.At("transaction_number", fault.FieldNotValid, "must have at most 35 of A–Z, a–z, 0–9, blank, +, -, _ and /"))
	}
	if v.Original != "" && (len(v.Original) > 35 || !pattern.MatchString(v.Original)) {
		return invalid(fault.At("reference_transaction_id", fault.FieldNotValid, "is an invoice whose number cannot be reported"))
	}
	return nil
}

// processOf is goods, services, or both.
func processOf(items []transaction.Item) string {
	goods, services := false, false
	for i := range items {
		services = services || items[i].Type == transaction.Services
		goods = goods || items[i].Type == transaction.Goods || items[i].Type == ""
	}
	switch {
	case goods && services:
		return "M1"
	case services:
		return "S1"
	}
	return "B1"
}

// line adds a line to its subtotal.
func (r Rules) line(v *Invoice, in *country.Draft, i int, sign int64) error {
	t, line := &in.Transaction, in.Totals.Lines[i]
	s, at := r.subtotal(&t.Items[i])
	if s.Category == "E" && s.Code == "" {
		return invalid(fault.At(fmt.Sprintf("items.%d.tax_breakdowns.0.code", i), fault.FieldRequired,
			"must say why nothing is charged (a code VATEX-…): reports of invoices need it"))
	}
	var err error
	if s.Base, err = euro(t, sign*line.Net); err == nil && at >= 0 {
		s.Tax, err = euro(t, sign*line.Taxes[at])
	}
	if err != nil {
		return err
	}
	if v.Net, err = plus(v.Net, sign*line.Net); err != nil {
		return err
	}
	for j := range v.Taxes {
		if o := &v.Taxes[j]; o.Category == s.Category && o.Percent == s.Percent && o.Code == s.Code {
			if o.Base, err = plus(o.Base, s.Base); err == nil {
				o.Tax, err = plus(o.Tax, s.Tax)
			}
			return err
		}
	}
	v.Taxes = append(v.Taxes, s)
	return nil
}

// subtotal is how a line is taxed, and by which of its entries; −1: by none of France's.
func (r Rules) subtotal(item *transaction.Item) (s Subtotal, tax int) {
	s.Percent = "0"
	if r.Untaxed {
		return Subtotal{Category: "E", Percent: "0", Code: "VATEX-FR-FRANCHISE", Reason: "TVA non applicable, article 293 B du CGI"}, -1
	}
	tax = item.OnlyTax()
	if tax < 0 {
		s.Category = "O"
		return s, -1
	}
	entry := &item.Taxes[tax]
	switch entry.Type {
	case transaction.TaxZero:
		s.Category = "Z"
	case transaction.TaxExempt:
		s.Category, s.Reason = "E", "Exonération de TVA"
		if strings.HasPrefix(strings.ToUpper(entry.Code), "VATEX-") {
			s.Code = strings.ToUpper(entry.Code)
		}
	case transaction.TaxReverse:
		s.Category, s.Reason, s.Code = "AE", "Autoliquidation", "VATEX-EU-AE"
	case transaction.TaxIntraEU:
		s.Category, s.Reason, s.Code = "K", "Livraison intracommunautaire", "VATEX-EU-IC"
	case transaction.TaxExport:
		s.Category, s.Reason, s.Code = "G", "Exportation", "VATEX-EU-G"
	case transaction.TaxOutside:
		s.Category, s.Reason, s.Code = "O", "Hors champ de la TVA", "VATEX-EU-O"
	default:
		s.Category = "S"
		if percent := percentOf(entry); entry.Regime != regimeOSS && allowed(percent) {
			s.Percent = percent
			return s, tax
		}
	}
	return s, -1
}

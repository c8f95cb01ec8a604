package mx

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/invopop/gobl/l10n"

	"tributary/internal/country"
	"tributary/internal/country/mx/wire"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// aheadMax is how far a client's clock may be ahead of ours; such a document
// is dated with the moment in which it is sealed.
const aheadMax = 5 * time.Minute

var (
	rfcPattern    = regexp.MustCompile(`^[A-Z&Ñ]{3,4}[0-9]{2}(0[1-9]|1[012])(0[1-9]|[12][0-9]|3[01])[A-Z0-9]{2}[0-9A]$`)
	postalPattern = regexp.MustCompile(`^[0-9]{5}$`)
	regimePattern = regexp.MustCompile(`^([0-9]{3})(?:[/ :-]([GDIS][0-9]{2}))?$`)
	codePattern   = regexp.MustCompile(`^(?:(PUE|PPD)(?::([0-9]{2}))?|([0-9]{2}))$`)
)

// rfcOf is a tax number as SAT writes it: capitals without blanks, dashes and
// a country's prefix.
func rfcOf(number string) string {
	text := strings.ToUpper(strings.NewReplacer(" ", "", "-", "", ".", "", "/", "").Replace(number))
	if bare, prefixed := strings.CutPrefix(text,
		"MX"); prefixed && rfcPattern.MatchString(bare) && !rfcPattern.MatchString(text) {
		return bare
	}
	return text
}

// direction says which voucher a transaction becomes, and whether its amounts
// change their sign.
func direction(kind transaction.Kind, totals transaction.Totals) (voucher string, sign int64) {
	switch {
	case kind == transaction.Credit:
		return satwire.TypeExpense, 1
	case totals.Gross < 0:
		return satwire.TypeExpense, -1
	}
	return satwire.TypeIncome, 1
}

// planOf decides everything about the voucher of a draft.
func planOf(cat *catalog, in *country.Draft) (*plan, error) {
	t := &in.Transaction
	kind, sign := direction(t.Kind, in.Totals)
	if t.Kind == transaction.Credit && in.Totals.Gross < 0 {
		return nil, invalid(fault.At("reference_transaction_id", fault.UnsupportedOperation,
			"is a credit note, which is cancelled and not credited"))
	}
	decimals, known := transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	if !known {
		return nil, invalid(fault.At("currency_code", fault.FieldNotValid, "is not a currency of SAT's catalogue"))
	}
	settings := in.Supplier.Settings
	p := &plan{
		kind: kind, currency: strings.ToUpper(t.CurrencyCode), items: typed(cat, t, in.Totals),
		defaults: defaults{product: settings.Text(settingProduct), unit: settings.Text(settingUnit)}, units: cat.units,
		place: placeOf(&in.Supplier), issuer: issuerOf(&in.Supplier), thirds: thirdsOf(settings),
	}
	if p.defaults.product == "" {
		p.defaults.product = productNone
	}
	var found []fault.Fault
	p.book, found = lay(p.items, in.Totals, sign, decimals)
	if !postalPattern.MatchString(p.place) {
		found = append(found, fault.At("supplier.id", fault.ValidationMatchInvalid,
			"needs a postal code of five digits, in its address or its setting place_of_issue"))
	}
	found = append(append(found, p.unknownThirds(in)...), p.outsideBorder(in)...)
	if len(found) > 0 {
		return nil, invalid(found...)
	}
	p.serie, p.folio = split(cmp.Or(t.Number, in.UniqueNumber))
	p.at = issued(t.Date, in.Now).In(cat.zone(p.place, in.Location))
	p.receiver = receiverOf(t.Customer, p.place, kind, settings.Text(settingUse))
	if p.currency != "MXN" && t.ExchangeRate != nil {
		p.rate = t.ExchangeRate.MinimalString()
	}
	if shorter, found := capitalRegime(p.issuer.name); found && isCompany(p.issuer.rfc) {
		return nil, invalid(fault.At("supplier.id", fault.ValidationMatchInvalid,
			"has a legal_name that SAT would refuse (CFDI40139): it "+withoutCapital, shorter))
	}
	if p.global() {
		p.book.condense()
	}
	p.method, p.form = p.paid(in)
	return p, p.relate(in)
}

// issued is the moment on the document: the client's, but never in the future.
func issued(date, now time.Time) time.Time {
	if date.After(now) {
		return now
	}
	return date
}

func placeOf(s *country.Supplier) string {
	return cmp.Or(s.Settings.Text(settingPlace), strings.TrimSpace(s.Address.PostalCode))
}

func issuerOf(s *country.Supplier) taxpayer {
	rfc := rfcOf(s.TaxNumber)
	return taxpayer{rfc: rfc, name: official(s.LegalName), regime: cmp.Or(s.Settings.Text(settingRegime), usualRegime(rfc))}
}

// usualRegime is what a business is in unless it says otherwise.
func usualRegime(rfc string) string {
	if isCompany(rfc) {
		return "601"
	}
	return "612"
}

// abroad reports whether a party lives outside Mexico.
func abroad(p *transaction.Party) bool {
	return taxid.CountryOf("MX", p) != "MX"
}

// receiverOf is the customer as SAT wants to see it: registered with an RFC,
// from abroad, or the general public.
func receiverOf(c *transaction.Party, place, kind, use string) taxpayer {
	if c == nil {
		return taxpayer{rfc: satwire.RFCPublic, name: satwire.NamePublic, regime: "616", use: "S01", domicile: place}
	}
	rfc := rfcOf(c.TaxNumber)
	switch {
	case rfcPattern.MatchString(rfc) && rfc != satwire.RFCPublic && rfc != satwire.RFCForeign && (!abroad(c) || len(rfc) >= 12):
		return registered(c, rfc, kind, use)
	case abroad(c):
		r := taxpayer{rfc: satwire.RFCForeign, name: official(c.LegalName), regime: "616", use: "S01", domicile: place}
		r.residence, r.foreign = residenceOf(c)
		return r
	}
	name := official(c.LegalName)
	if isPublic(name) {
		name = satwire.NamePublic
	}
	return taxpayer{rfc: satwire.RFCPublic, name: name, regime: "616", use: "S01", domicile: place}
}

func isPublic(name string) bool {
	return strings.Map(func(r rune) rune {
		if r == 'Ú' {
			return 'U'
		}
		return r
	}, name) == satwire.NamePublic
}

// registered is a customer with an RFC. The regime, and after a slash the use,
// come from tax_information.regime where it names them ("601" or "601/G01");
// tax_information.use is the use of this sale and wins.
func registered(c *transaction.Party, rfc, kind, use string) taxpayer {
	r := taxpayer{rfc: rfc, name: official(c.LegalName), use: use}
	if c.Address != nil {
		r.domicile = strings.TrimSpace(c.Address.PostalCode)
	}
	if said := regimePattern.FindStringSubmatch(c.TaxRegime); said != nil {
		r.regime = said[1]
		if said[2] != "" {
			r.use = said[2]
		}
	}
	if c.TaxUse != "" {
		r.use = c.TaxUse
	}
	if r.regime == "" {
		r.regime = usualRegime(rfc)
		if c.Type == transaction.Individual && len([]rune(rfc)) == 13 {
			r.regime = "616"
		}
	}
	if kind == satwire.TypeExpense {
		r.use = "G02" // returns, discounts and allowances
	}
	if !useFits(r.use, rfc, r.regime) {
		r.use = "S01" // every regime has it
	}
	return r
}

// residenceOf is the country of a foreigner and its number there, where SAT
// takes it: both or none, and for the United States and Canada nine digits
// (c_Pais, "Formato de Registro de Identidad Tributaria").
func residenceOf(c *transaction.Party) (residence, number string) {
	residence = l10n.ISOCountryCode(strings.ToUpper(c.Address.CountryCode)).Alpha3()
	number = wire.Tidy(c.TaxNumber)
	if residence == "" || number == "" || len([]rune(number)) > 40 || strings.Contains(number, "|") {
		return "", ""
	}
	if residence == "USA" || residence == "CAN" {
		number = strings.NewReplacer("-", "", " ", "").Replace(number)
		if len(number) != 9 || strings.Trim(number, "0123456789") != "" {
			return "", ""
		}
	}
	return residence, number
}

// Forms of payment (c_FormaPago).
const (
	formCash    = "01"
	formWaived  = "15"
	formAdvance = "30"
)

// paid finds MetodoPago and FormaPago.
func (p *plan) paid(in *country.Draft) (method, form string) {
	payments := in.Transaction.Payments
	switch {
	case p.kind == satwire.TypeExpense:
		return satwire.MethodOnce, p.refunded(in)
	case in.Totals.Payable() == 0: // nothing is owed that could be paid later
		if _, form = paymentOf(payments); form == satwire.FormUndefined {
			form = formCash
		}
		return satwire.MethodOnce, form
	case len(payments) == 0 && p.receiver.rfc == satwire.RFCPublic:
		return satwire.MethodOnce, formCash // a sale over the counter is paid
	}
	return paymentOf(payments)
}

// refunded is the form in which a type E is settled: the one it says, else the
// one in which the original was paid. What was never paid is waived; what an
// advance covers is applied.
func (p *plan) refunded(in *country.Draft) string {
	if _, form := paymentOf(in.Transaction.Payments); form != satwire.FormUndefined {
		return form
	}
	if strings.HasPrefix(in.Transaction.Reason, relationAdvance) {
		return formAdvance
	}
	if in.Original == nil {
		return formWaived
	}
	if sold, err := readXML(in.Original.Report); err == nil && paidForm(sold.Attr("FormaPago")) {
		return sold.Attr("FormaPago")
	}
	for _, e := range slices.Backward(in.Original.Corrections) {
		if e.Transaction.Kind == transaction.PaymentReport && !e.Cancelled {
			if _, form := paymentOf(e.Transaction.Payments); form != satwire.FormUndefined {
				return form
			}
		}
	}
	if _, form := paymentOf(in.Original.Transaction.Payments); form != satwire.FormUndefined {
		return form
	}
	if in.Original.Gathered != nil {
		return formCash // as the global invoice says
	}
	return formWaived
}

// paidForm reports whether a form says how something was paid.
func paidForm(form string) bool { return paymentForm(form) && form != satwire.FormUndefined }

// paymentOf reads the payments: PPD where one says so or nothing is paid yet,
// else PUE in the form of the largest payment, the first of equals.
func paymentOf(payments []transaction.Payment) (method, form string) {
	var largest int64 = -1
	for i := range payments {
		m, f := methodOf(&payments[i])
		if m == satwire.MethodPartial {
			return satwire.MethodPartial, satwire.FormUndefined
		}
		size := payments[i].Amount
		if size < 0 {
			size = -size
		}
		if size > largest {
			largest, form = size, f
		}
	}
	if form == "" {
		return satwire.MethodPartial, satwire.FormUndefined
	}
	return satwire.MethodOnce, form
}

func methodOf(p *transaction.Payment) (method, form string) {
	said := codePattern.FindStringSubmatch(p.Code)
	if said == nil {
		if p.Type == "CREDIT" {
			return satwire.MethodPartial, satwire.FormUndefined
		}
		said = []string{"", satwire.MethodOnce, "", ""}
	}
	if said[3] != "" { // a form alone is paid at once
		return satwire.MethodOnce, said[3]
	}
	if said[2] != "" {
		return said[1], said[2]
	}
	form = map[string]string{"CASH": "01", "CHECK": "02", "TRANSFER": "03", "CARD": "04", "CREDIT": "04"}[p.Type]
	return said[1], cmp.Or(form, "31") // through an intermediary
}

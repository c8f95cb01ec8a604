package mx

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// typed gives every tax entry its type. Entries that are not withheld follow
// the rules of all countries; a withheld one is ISR or IVA by its rate.
func typed(cat *catalog, t *transaction.Transaction, totals transaction.Totals) []transaction.Item {
	items := country.ClassifyTaxes(cat.facts, country.Case{Transaction: t, Totals: totals})
	for i := range items {
		for j := range items[i].Taxes {
			tax := &items[i].Taxes[j]
			if tax.Withheld() && tax.Type == transaction.Withholding {
				tax.Type = withheldType(tax.Rate.MinimalString())
			}
		}
	}
	return items
}

// withheldType tells ISR from IVA by the rates at which each is withheld
// (LISR articles 106, 113-A, 113-J, 116; LIVA article 1-A and RLIVA article 3).
// 4 % is both: IVA of freight, and ISR of lodging through a platform.
func withheldType(percent string) string {
	switch percent {
	case "5.3333", "5.33", "6", "8", "10.6666", "10.6667", "10.67", "16":
		return regimeIVA
	case "1", "1.25", "2.1", "2.5", "10", "20", "25", "30", "35":
		return regimeISR
	}
	return transaction.Withholding
}

// checker gathers what is wrong with one transaction.
type checker struct {
	cat   *catalog
	in    country.Case
	found []fault.Fault
}

func (c *checker) add(field string, code fault.Code, format string, args ...any) {
	c.found = append(c.found, fault.At(field, code, format, args...))
}

// checks find what SAT would refuse and the body alone shows.
func checks(cat *catalog) []country.Check {
	one := func(find func(*checker), reads ...string) country.Check {
		return country.Check{Reads: reads, Find: func(in country.Case) []fault.Fault {
			c := &checker{cat: cat, in: in}
			find(c)
			return c.found
		}}
	}
	lines := []string{"items.*.classification", "items.*.quantity", "items.*.unit_price", "items.*.code", "items.*.type",
		"items.*.tax_breakdowns", "customer.type", "customer.tax_information", "customer.address.country_code", "transaction_date"}
	whole := country.Check{Reads: append(lines, "items", "currency_code"), Amounts: true,
		Find: func(in country.Case) []fault.Fault {
			return layable(cat, in)
		}}
	sums := one(func(c *checker) { c.sums() }, "items", "reason")
	sums.Amounts = true
	received := one(func(c *checker) { c.received() }, "payments", "payments.*.date", "transaction_date")
	received.Kind = transaction.PaymentReport
	cards := one(func(c *checker) {
		c.cards()
	}, "payments", "payments.*.code", "payments.*.type", "items", "customer.tax_information")
	cards.Amounts = true
	cardsOf := one(func(c *checker) { c.cards() }, "payments", "payments.*.code", "payments.*.type")
	cardsOf.Kind = transaction.PaymentReport
	return []country.Check{
		received, cards, cardsOf,
		one(func(c *checker) {
			c.customer(c.in.Transaction.Customer)
		}, "customer.type", "customer.tax_information", "customer.address.country_code", "customer.legal_name"),
		one(func(c *checker) { c.money(c.in.Transaction) }, "exchange_rate"),
		one(func(c *checker) { c.number(c.in.Transaction.Number) }, "transaction_number"),
		one(func(c *checker) { c.payments(c.in.Transaction.Payments) }, "payments.*.code", "payments.*.type"),
		one(func(c *checker) { c.public() }, append(lines, "customer.legal_name", "payments.*.code", "payments.*.type")...),
		one(func(c *checker) {
			c.guesses()
		}, "customer.type", "customer.tax_information", "customer.address.country_code", "customer.legal_name", "payments"),
		one(func(c *checker) { c.lines() }, lines...),
		sums, whole,
	}
}

// lines checks each on its own.
func (c *checker) lines() {
	items := typed(c.cat, c.in.Transaction, c.in.Totals)
	for i := range items {
		c.line(i, &items[i])
	}
}

// layable tries to write the lines: what they take away must be somewhere.
func layable(cat *catalog, in country.Case) []fault.Fault {
	c := &checker{cat: cat, in: in}
	if c.lines(); len(c.found) > 0 {
		return nil // said already
	}
	t := in.Transaction
	decimals, _ := transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode))
	_, sign := direction(t.Kind, in.Totals)
	_, faults := lay(typed(cat, t, in.Totals), in.Totals, sign, decimals)
	return faults
}

func (c *checker) customer(p *transaction.Party) {
	if p == nil {
		return
	}
	rfc := rfcOf(p.TaxNumber)
	switch {
	case abroad(p) && !rfcPattern.MatchString(rfc), rfc == satwire.RFCPublic, rfc == satwire.RFCForeign:
		return
	case rfc == "":
		return
	case !rfcPattern.MatchString(rfc):
		c.add("customer.tax_information.tax_number", fault.FieldNotValid,
			"is not an RFC: three letters and a date and three characters for companies, four letters for people")
		return
	}
	c.registered(p, rfc)
}

func (c *checker) registered(p *transaction.Party, rfc string) {
	if shorter, found := capitalRegime(p.LegalName); found && isCompany(rfc) {
		c.add("customer.legal_name", fault.FieldNotValid, withoutCapital, shorter)
	}
	c.use(p, rfc)
	said := regimePattern.FindStringSubmatch(p.TaxRegime)
	if said == nil {
		return // "VAT" and the like: the usual regime of such a person
	}
	const field = "customer.tax_information.regime"
	switch meaning, _ := satwire.Regime(said[1]); {
	case meaning == "":
		c.add(field, fault.FieldNotValid, "is not a fiscal regime of SAT's catalogue: %s", strings.Join(satwire.Regimes(), ", "))
	case !regimeFits(rfc, said[1]):
		c.add(field, fault.ValidationMatchInvalid, "is a regime that a person with such an RFC cannot be in")
	case said[2] != "" && !slices.Contains(satwire.Uses(), said[2]):
		c.add(field, fault.FieldNotValid, "names a use that SAT's catalogue does not have: %s", strings.Join(satwire.Uses(), ", "))
	case unwritten(said[2]) != "":
		c.add("customer.tax_information.regime", fault.UnsupportedField, "%s", unwritten(said[2]))
	case said[2] != "" && !useFits(said[2], rfc, said[1]):
		c.add(field, fault.ValidationMatchInvalid, "names a use that the regime does not have")
	}
}

// use checks the use that the customer named for this sale.
func (c *checker) use(p *transaction.Party, rfc string) {
	const field = "customer.tax_information.use"
	switch {
	case p.TaxUse == "":
	case !slices.Contains(satwire.Uses(), p.TaxUse):
		c.add(field, fault.FieldNotValid, "is not a use of SAT's catalogue: %s", strings.Join(satwire.Uses(), ", "))
	case !useFits(p.TaxUse, rfc, registered(p, rfc, satwire.TypeIncome, "").regime):
		c.add(field, fault.ValidationMatchInvalid, "is a use that the customer's regime does not have")
	case unwritten(p.TaxUse) != "":
		c.add(field, fault.UnsupportedField, "%s", unwritten(p.TaxUse))
	}
}

// unwritten says why a voucher of a use cannot be made: it needs a complement
// that no schema judges here.
func unwritten(use string) string {
	switch use {
	case "D04":
		return "D04 needs the complement Donatarias (CFF 29-A V b; RMF 2.7.1.8), which this service does not write"
	case "D10":
		return "D10 needs the complement of private schools, iedu (decree of 26 December 2013, article 1.8; RMF 2.7.1.8), which this service does not write"
	}
	return ""
}

// number checks that a long one can be cut into Serie and Folio.
func (c *checker) number(number string) {
	if serie, folio := split(number); serie != strings.TrimSpace(serie) || folio != strings.TrimSpace(folio) {
		c.add("transaction_number", fault.FieldNotValid,
			"must not have a blank before or behind its last %d characters, where Serie ends and Folio begins", folioMax)
	}
}

func (c *checker) money(t *transaction.Transaction) {
	if t.ExchangeRate != nil && !strings.EqualFold(t.CurrencyCode, "MXN") && !t.ExchangeRate.IsPositive() {
		c.add("exchange_rate", fault.FieldNotValid, "must be more than 0")
	}
}

// sums checks what the lines come to.
func (c *checker) sums() {
	t := c.in.Transaction
	switch {
	case t.Kind == transaction.Invoice && c.in.Totals.Gross < 0:
		c.add("items", fault.FieldNotValid,
			"must not come to less than nothing: what is given back goes to /v1/transactions/adjustment")
	case t.Kind == transaction.Adjustment && c.in.Totals.Gross == 0:
		c.add("items", fault.FieldNotValid, "must come to more or less than nothing")
	}
	c.relation()
}

func (c *checker) payments(payments []transaction.Payment) {
	once, partial := false, false
	for i := range payments {
		field := fmt.Sprintf("payments.%d.code", i)
		said := codePattern.FindStringSubmatch(payments[i].Code)
		switch {
		case payments[i].Code == "":
		case said == nil:
			c.add(field, fault.FieldNotValid, "must be PUE or PPD, or either with a form of payment like PUE:03")
		case said[3] != "" && !paidForm(said[3]):
			c.add(field, fault.FieldNotValid, "is a form of payment that SAT's catalogue does not have, or that is not one yet")
		case said[2] != "" && (!paymentForm(said[2]) || said[1] == satwire.MethodOnce && said[2] == satwire.FormUndefined):
			c.add(field, fault.FieldNotValid, "names a form of payment that SAT's catalogue does not have, or that is not one yet")
		case said[1] == satwire.MethodPartial && said[2] != "" && said[2] != satwire.FormUndefined:
			c.add(field, fault.ValidationMatchInvalid, "must be PPD alone: what is paid later has the form 99 (CFDI40105)")
		}
		method, _ := methodOf(&payments[i])
		once, partial = once || method == satwire.MethodOnce, partial || method == satwire.MethodPartial
	}
	if once && partial {
		c.add("payments", fault.ValidationMatchInvalid, "must be all PUE or all PPD: a voucher has one MetodoPago")
	}
}

// received checks a report of a payment: money that came, in a form that it came in.
func (c *checker) received() {
	t := c.in.Transaction
	c.payments(t.Payments)
	for i := range t.Payments {
		if _, form := methodOf(&t.Payments[i]); form == satwire.FormUndefined {
			c.add(fmt.Sprintf("payments.%d.type", i), fault.FieldNotValid,
				"must be how the money came: CREDIT and PPD are not yet paid (CRP20212)")
		}
		if strings.Contains(t.Payments[i].Reference, "|") {
			c.add(fmt.Sprintf("payments.%d.reference", i), fault.FieldNotValid,
				"must not have the character |, which separates the parts of the original string")
		}
	}
	for i := range t.Payments {
		if day := t.Payments[i].Date; day != "" && day > t.Date.Format(time.DateOnly) {
			c.add(fmt.Sprintf("payments.%d.date", i), fault.FieldNotValid,
				"must not be after transaction_date: it is when the money came")
		}
	}
	if t.Date.After(c.in.Now.Add(aheadMax)) {
		c.add("transaction_date", fault.FieldNotValid, "must not be in the future: it is when the money came")
	}
}

func (c *checker) line(i int, item *transaction.Item) {
	at := func(member string) string { return fmt.Sprintf("items.%d.%s", i, member) }
	if item.Code != "" && !c.cat.product(item.Code) {
		c.add(at("code"), fault.FieldNotValid,
			"is not a product or service of SAT's catalogue c_ClaveProdServ: eight digits, 01010101 where none fits")
	}
	iva, ieps, ish := 0, 0, 0
	for j := range item.Taxes {
		tax, field := &item.Taxes[j], fmt.Sprintf("items.%d.tax_breakdowns.%d", i, j)
		switch {
		case tax.Withheld():
			c.withheld(tax, field)
			continue
		case tax.Regime == regimeIEPS:
			ieps++
			c.quota(tax, field)
		case tax.Regime == regimeISH:
			ish++
		default:
			iva++
		}
		switch tax.Type {
		case transaction.TaxReverse, transaction.TaxIntraEU:
			c.add(field+".type", fault.FieldNotValid,
				"is not a kind of tax in Mexico: STANDARD, REDUCED, ZERO, EXEMPT, EXPORT, OUTSIDE")
		case transaction.TaxExport:
			if !country.IsServices(c.in.Transaction.Items, i) {
				c.add(field+".type", fault.UnsupportedOperation,
					"is of goods that leave the country: their voucher needs the complement Comercio Exterior, which this service does not write. Goods that stay, sold to somebody from abroad, have the type of their rate, as ZERO")
			}
		case transaction.TaxExempt, transaction.TaxOutside:
			if !tax.Rate.IsZero() {
				c.add(field+".rate", fault.ValidationMatchInvalid, "must be 0 where nothing is taxed")
			}
		}
	}
	if iva > 1 || ieps > 1 || ish > 1 {
		c.add(at("tax_breakdowns"), fault.ValidationMatchInvalid, "must have at most one entry of IVA, one of IEPS and one of ISH")
	}
	c.marks(i, item)
}

// quotaMax is the largest quota of IEPS in c_TasaOCuota, in centavos (2026).
const quotaMax = 7216_0500 // with 4 decimals

// quota checks a tax of so many pesos a unit.
func (c *checker) quota(tax *transaction.Tax, field string) {
	switch {
	case tax.Quota == nil:
	case !strings.EqualFold(c.in.Transaction.CurrencyCode, "MXN"):
		c.add(field+".quota", fault.ValidationMatchInvalid, "is in pesos, as the law has it: the currency must be MXN")
	case scaled(*tax.Quota) > quotaMax:
		c.add(field+".quota", fault.FieldNotValid, "must be at most 7216.05 centavos a unit (c_TasaOCuota)")
	}
}

func (c *checker) withheld(tax *transaction.Tax, field string) {
	switch rate := scaled(tax.Rate); {
	case tax.Type == transaction.Withholding && rate == 40_000:
		c.add(field+".type", fault.FieldRequired,
			"must say which tax is withheld at 4 %%: IVA of freight (RLIVA, article 3), or ISR of lodging through a platform (LISR, article 113-A)")
	case tax.Type == transaction.Withholding:
		c.add(field+".type", fault.FieldRequired, "must say which tax is withheld at this rate: ISR or IVA")
	case tax.Type == regimeISR && rate > 350_000:
		c.add(field+".rate", fault.FieldNotValid, "must be at most 35 where ISR is withheld (c_TasaOCuota)")
	case tax.Type == regimeIVA && rate > 160_000:
		c.add(field+".rate", fault.FieldNotValid, "must be at most 16 where IVA is withheld (c_TasaOCuota)")
	case tax.Type == typeLocal && (localName(tax.Code) == "" || strings.Contains(tax.Code, "|")):
		c.add(field+".code", fault.FieldRequired,
			"must name the local tax that is withheld, as CEDULAR, or 5MILLAR for 5 AL MILLAR, without the character |")
	case tax.Type == typeLocal && rate%localRateStep != 0:
		c.add(field+".rate", fault.FieldNotValid,
			"must have at most 2 decimals where a local tax is withheld (Impuestos Locales, TasadeRetencion)")
	case tax.Type != regimeISR && tax.Type != regimeIVA && tax.Type != typeLocal:
		c.add(field+".type", fault.FieldNotValid, "must be ISR, IVA or LOCAL where a tax is withheld")
	}
}

// checkCompany finds what is wrong with a supplier. The certificate itself,
// its key and its subject are looked at by whoever onboards; here only whether
// it is one that seals vouchers.
func checkCompany(cat *catalog, keys *identity.Keeper, s country.Supplier, with country.Credentials) []fault.Fault {
	found := sealing(keys, with)
	rfc := rfcOf(s.TaxNumber)
	if !rfcPattern.MatchString(rfc) || rfc == satwire.RFCPublic || rfc == satwire.RFCForeign {
		found = append(found, fault.At("tax_information.tax_number", fault.FieldNotValid,
			"is not the RFC of a company or a person"))
		return found
	}
	if name := official(s.LegalName); strings.Contains(name, "|") || utf8.RuneCountInString(name) > 300 {
		found = append(found, fault.At("legal_name", fault.FieldNotValid,
			"must be at most 300 characters long, without the character |"))
	}
	if shorter, is := capitalRegime(s.LegalName); is && isCompany(rfc) {
		found = append(found, fault.At("legal_name", fault.FieldNotValid, withoutCapital, shorter))
	}
	found = append(found, checkThirds(s.Settings)...)
	if regime := s.Settings.Text(settingRegime); regime != "" && !regimeFits(rfc, regime) {
		found = append(found, fault.At("settings."+settingRegime, fault.ValidationMatchInvalid,
			"is a regime that a person with such an RFC cannot be in"))
	}
	if why := unwritten(s.Settings.Text(settingUse)); why != "" {
		found = append(found, fault.At("settings."+settingUse, fault.FieldNotValid, "%s", why))
	}
	if !postalPattern.MatchString(placeOf(&s)) {
		found = append(found, fault.At("address.postal_code", fault.FieldRequired,
			"must have five digits: it is the place of issue unless settings.place_of_issue names another"))
	}
	if key := s.Settings.Text(settingProduct); key != "" && !cat.product(key) {
		found = append(found, fault.At("settings."+settingProduct, fault.FieldNotValid,
			"is not in SAT's catalogue c_ClaveProdServ"))
	}
	if key := s.Settings.Text(settingUnit); key != "" && !cat.units[key] {
		found = append(found, fault.At("settings."+settingUnit, fault.FieldNotValid, "is not in SAT's catalogue c_ClaveUnidad"))
	}
	return found
}

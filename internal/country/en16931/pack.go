package en16931

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Extend makes a country of the family of a country that has documents only:
// what the country is stays, structured invoices are added.
func Extend(base country.Pack, p Page) country.Pack {
	pack := base
	pack.Version = p.Version
	pack.Sources = append(slices.Clone(p.Sources), base.Sources...)
	pack.Facts.Settings = append(slices.Concat(base.Facts.Settings, commonSettings(p)), p.Settings...)
	pack.Facts.Formats = append(slices.Clone(base.Facts.Formats), "XML")
	pack.Facts.Derivations = append(slices.Clone(base.Facts.Derivations), derivations(p)...)
	if p.offers() {
		pack.Facts.Required = append(slices.Clone(base.Facts.Required),
			country.FieldRule{Field: "customer.address.country_code", BusinessModel: transaction.B2B, Reason: "a structured invoice names the country of the buyer (EN 16931 BR-11)"},
			country.FieldRule{Field: "items.*.tax_breakdowns", BusinessModel: transaction.B2B, Reason: "each line of a structured invoice has one VAT category (EN 16931 BR-CO-04)"})
	}
	pack.Facts.Required = append(slices.Clone(pack.Facts.Required), p.Required...)
	pack.Facts.NumberExample = p.TaxNumber
	pack.Checks = append(slices.Clone(base.Checks), country.Check{
		// What is missing elsewhere is a finding at its own place, which was refused already.
		Reads:   []string{"customer", "currency_code", "transaction_date", "items.*.type", "items.*.quantity", "items.*.unit_price", "items.*.discount", "items.*.tax_breakdowns"},
		Amounts: true,
		Find:    func(c country.Case) []fault.Fault { return p.check(c, base) },
	}, country.Check{
		Reads: []string{"customer", "transaction_date", "items.*.type", "items.*.tax_breakdowns"},
		Find:  func(c country.Case) []fault.Fault { return p.untaxed(c, base) },
	}, country.Check{Reads: []string{"customer", "buyer_reference"}, Find: misrouted})
	pack.CheckCompany = func(s country.Supplier, k country.Credentials) []fault.Fault {
		var found []fault.Fault
		if base.CheckCompany != nil {
			found = base.CheckCompany(s, k)
		}
		return append(found, p.checkCompany(s)...)
	}
	pack.Structured = p.structured
	if p.Example != nil {
		pack.Example = p.Example
	}
	pack.Imprint = func(in country.Issue) country.Imprint {
		out := base.Printed(in)
		out.Texts = append(slices.Clone(out.Texts), p.printed(in)...)
		out.Advice = p.advice(in)
		if country.SelfBilled(in.Transaction) {
			out.Texts = append(out.Texts, cmp.Or(p.SelfBilled, "Self-billing"))
			if p.SelfBilled == germanSelfBilled && in.Transaction.Kind == transaction.Invoice && (in.Language == "" || in.Language == "DE") {
				out.Title = germanSelfBilled // § 14 (4) no. 10 UStG, § 11 (8) UStG in Austria
			}
		}
		return out
	}
	return pack
}

// offered are the profiles that a sale may have.
func (p Page) offered(s Sale) []Profile {
	if p.Filed != nil {
		return []Profile{*p.Filed}
	}
	return p.Offer(s)
}

// offers reports whether the country makes structured invoices without being asked.
func (p Page) offers() bool {
	return len(p.offered(Sale{SellerCountry: p.Code, BuyerCountry: p.Code, Business: true})) > 0
}

// Union is the page of a member state that makes documents for people, and a
// Peppol invoice where the settings ask for one.
func Union(code string) Page {
	return Page{Code: code, Version: "en16931-1", Formats: []string{"PEPPOL_UBL"}, Offer: Nothing}
}

func commonSettings(p Page) []country.Setting {
	text := func(key, description string) country.Setting {
		return country.Setting{Key: key, Type: "string", Description: description}
	}
	return []country.Setting{
		{Key: "format", Type: "string", Default: FormatAuto, Values: append([]string{FormatAuto, FormatNone}, p.Formats...),
			Description: "which structured invoice is made; " + FormatAuto + ": as the country's page says"},
		text("endpoint_scheme", "scheme of the company's own electronic address, by the list of electronic address schemes; empty: derived from its numbers"),
		text("endpoint_id", "the company's own electronic address in that scheme"),
		text("contact_name", "who answers questions about invoices"),
		{Key: "contact_phone", Type: "string", Pattern: `^.*([0-9].*){3}$`, Description: "telephone number of the contact"},
		{Key: "contact_email", Type: "string", Pattern: `^[^@\s]+@([^@.\s]+\.)+[^@.\s]+$`, Description: "address of the contact"},
		text("iban", "account that buyers pay to"),
		text("bic", "bank of the account"),
		text("account_name", "holder of the account, where it is not the company"),
		{Key: "payment_days", Type: "integer", Default: int64(daysDefault), Description: "days until an invoice is due"},
		text("payment_terms", "terms of payment in words"),
		text("buyer_reference", "reference that buyers are given where a transaction has none; empty: its transaction_id"),
		text("exemption_code", "code of the list of VAT exemption reasons (VATEX) for EXEMPT without a code of its own"),
		text("exemption_text", "why the company charges no VAT, in words"),
	}
}

func derivations(p Page) []string {
	list := []string{
		"VAT category: STANDARD and REDUCED are S, ZERO is Z, EXEMPT is E, REVERSE is AE, INTRA_EU is K, EXPORT is G, OUTSIDE is O.",
		"Electronic addresses are derived from entity_number, company_number and tax numbers where they are not given.",
		"Units are read as people write them; one that is not known is a piece (C62).",
	}
	if p.ByCategory {
		return append(list, "Tax is computed on the sum of each category; the difference to the sum of the lines is the rounding amount.")
	}
	return append(list, "The tax of a category is the sum of its lines while that is within one minor unit per line and below 0.50 of taxable amount times rate; otherwise it is computed on the sum, and the difference is the rounding amount.")
}

// standIn is a company that nothing is known of: at submit the supplier is not
// looked up yet, and what is wrong with it is not the client's affair then.
func (p Page) standIn() *country.Supplier {
	return &country.Supplier{CountryCode: p.Code, LegalName: "-", Address: transaction.Address{CountryCode: p.Code}}
}

// check refuses at once what the official rules would refuse later.
func (p Page) check(c country.Case, base country.Pack) []fault.Fault {
	t := *c.Transaction
	if t.Customer == nil || t.Customer.Type != transaction.Business && p.Filed == nil || len(c.Totals.Lines) != len(t.Items) {
		return nil // nobody is owed one, or there are no amounts yet
	}
	if len(p.untaxed(c, base)) > 0 {
		return nil // what a line without tax is must be said first
	}
	t.Items = base.TypedItems(c)
	in := country.Issue{Transaction: &t, Totals: c.Totals, Supplier: p.standIn(), UniqueNumber: "1", Location: time.UTC}
	if t.Kind != transaction.Invoice {
		in.Original = &country.Original{Transaction: transaction.Transaction{Number: "-", Date: t.Date}}
	}
	offer := issuedBy(p.offered(saleOf(in.Supplier, &t)), &t)
	if len(offer) == 0 {
		return nil
	}
	if found := unsupported(&t); len(found) > 0 {
		return found
	}
	var found []fault.Fault
	for _, profile := range offer {
		made := p.compose(in, profile)
		if found = made.faults(ofBody); len(found) == 0 {
			return nil
		}
	}
	return found
}

// unsupported finds what EN 16931 has no place for.
func unsupported(t *transaction.Transaction) (found []fault.Fault) {
	if n, _ := transaction.CurrencyExponent(strings.ToUpper(t.CurrencyCode)); n > 2 {
		found = append(found, fault.At("currency_code", fault.UnsupportedField, "has more than two decimals, which structured invoices do not take"))
	}
	for i := range t.Items {
		own := 0
		for j, tax := range t.Items[i].Taxes {
			if tax.Withheld() {
				found = append(found, fault.At(place("items", i, "tax_breakdowns", j, "regime"), fault.UnsupportedField, "is withheld, which structured invoices have no place for"))
				continue
			}
			if own++; own == 2 {
				found = append(found, fault.At(place("items", i, "tax_breakdowns", j), fault.UnsupportedField, "is a second tax on the line; a line of a structured invoice has one VAT category"))
			}
		}
	}
	return found
}

// issuedBy puts Peppol's profile of self-billing in place of the ordinary one where
// the buyer issues the document.
func issuedBy(offer []Profile, t *transaction.Transaction) []Profile {
	if !country.SelfBilled(t) {
		return offer
	}
	offer = slices.Clone(offer)
	for i := range offer {
		if offer[i].Peppol {
			offer[i] = PeppolSelfBilling()
		}
	}
	return offer
}

// structured makes the invoice as data.
func (p Page) structured(in country.Issue) (*country.Structured, error) {
	format := in.Supplier.Settings.Text("format")
	sale := saleOf(in.Supplier, in.Transaction)
	var offer []Profile
	switch profile, named := profileNamed(format); {
	case format == FormatNone || in.Transaction.Customer == nil:
		return nil, nil
	case named:
		offer = []Profile{profile}
	case p.Delivered(in.Supplier, in.Transaction, nil):
		offer = travelling(p.Offer(sale))
	default:
		offer = p.Offer(sale)
	}
	if len(offer) == 0 {
		return nil, nil
	}
	offer = issuedBy(offer, in.Transaction)
	found := unsupported(in.Transaction)
	for _, profile := range offer {
		if len(found) > 0 && found[0].Code == fault.UnsupportedField {
			break
		}
		made := p.compose(in, profile)
		if found = made.faults(ofAll); len(found) == 0 {
			return made.structured(), nil
		}
	}
	if !sale.Business {
		return nil, nil // nobody is owed one
	}
	return nil, fault.New(fault.Invalid, "the structured invoice cannot be made").With(found...)
}

func (c Composed) structured() *country.Structured {
	out := &country.Structured{Format: "XML", Name: c.Profile.Code, Content: Write(c.Invoice, c.Profile), Rounding: c.Rounding, TaxedBySum: c.bySum}
	if c.Profile.CII && !c.Profile.German {
		out.Embedded = &country.Embedding{FileName: "factur-x.xml", Level: "EN 16931"}
	}
	return out
}

// checkCompany finds settings that contradict themselves, and what the chosen
// format wants of the company.
func (p Page) checkCompany(s country.Supplier) (found []fault.Fault) {
	if iban := strings.ReplaceAll(s.Settings.Text("iban"), " ", ""); iban != "" && !ValidIBAN(iban) {
		found = append(found, fault.At("settings.iban", fault.FieldNotValid, "has wrong check digits"))
	}
	scheme, id := s.Settings.Text("endpoint_scheme"), s.Settings.Text("endpoint_id")
	switch {
	case (scheme == "") != (id == ""):
		found = append(found, fault.At("settings.endpoint_id", fault.ValidationMatchInvalid, "and settings.endpoint_scheme need each other"))
	case scheme != "" && !among(addressSchemes, scheme):
		found = append(found, fault.At("settings.endpoint_scheme", fault.FieldNotValid, "is not a code of the list of electronic address schemes"))
	case scheme != "" && !ValidIn(scheme, id):
		found = append(found, fault.At("settings.endpoint_id", fault.FieldNotValid, "cannot exist in scheme %s", scheme))
	}
	if format := s.Settings.Text("format"); s.Settings.Text(settingDelivery) == DeliveryPeppol && !travels(format) {
		found = append(found, fault.At("settings.delivery", fault.ValidationMatchInvalid, "and settings.format do not fit: %s does not travel over Peppol", format))
	}
	profile, named := profileNamed(s.Settings.Text("format"))
	if p.Filed != nil {
		profile, named = *p.Filed, true
	}
	if !named || len(found) > 0 {
		return found
	}
	return append(found, p.compose(p.trial(&s), profile).faults(ofCompany)...)
}

// trial is an everyday sale with which a company's settings are tried.
func (p Page) trial(s *country.Supplier) country.Issue {
	t := &transaction.Transaction{Kind: transaction.Invoice, CountryCode: p.Code, CurrencyCode: p.currency(), Number: "1", ID: "1",
		Customer: &transaction.Party{LegalName: "-", Type: transaction.Business, Address: &transaction.Address{CountryCode: p.Code, City: "-", PostalCode: "-", AddressLine1: "-"}},
		Items: []transaction.Item{{Number: 1, Name: "-", Quantity: quantityOne, Type: transaction.Goods, UnitPrice: 100,
			Taxes: []transaction.Tax{{Rate: quantityOne, Regime: transaction.VAT, Mode: transaction.Added, Type: transaction.TaxStandard}}}}}
	totals, _ := transaction.Calculate(t.Items)
	return country.Issue{Transaction: t, Totals: totals, Supplier: s, Location: time.UTC}
}

// advice is how to pay, as the structured invoice says it. A consumer who gets
// none is not given days that nobody agreed on.
func (p Page) advice(in country.Issue) (out country.Advice) {
	t := in.Transaction
	if t.Kind == transaction.Credit || t.Kind == transaction.Cancellation || in.Supplier == nil || len(t.Items) == 0 {
		return out
	}
	c := composer{page: p, in: in, t: t, d: &Invoice{}, profile: Core()}
	c.head()
	c.payment()
	out = country.Advice{Reference: c.d.Payment.Remittance, DueDate: t.DueDate, Terms: c.d.PaymentTerms}
	if t.Customer != nil && t.Customer.Type == transaction.Business {
		out.DueDate = string(c.d.DueDate)
	}
	if t.Payee != nil {
		out.Holder = t.Payee.Name
	}
	for _, m := range c.d.Payment.Means {
		if m.Account.ID != "" {
			out.Account, out.BIC, out.Holder = m.Account.ID, m.Account.BIC, m.Account.Name
		}
	}
	return out
}

// printed are the reasons for which no VAT is charged: the law wants them on
// the document for people as well (Directive 2006/112/EC, article 226).
func (p Page) printed(in country.Issue) (texts []string) {
	c := composer{page: p, in: in, t: in.Transaction}
	for i := range in.Transaction.Items {
		for _, tax := range in.Transaction.Items[i].Taxes {
			if tax.Withheld() {
				continue
			}
			if _, text := c.reason(CategoryOf(tax), tax.Code); text != "" && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return append(texts, p.Legal...)
}

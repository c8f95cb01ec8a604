package en16931

import (
	"cmp"
	"slices"
	"strings"

	"tributary/internal/country/territory"
	"tributary/internal/transaction"
)

func (c *composer) parties() {
	c.seller()
	if c.t.Customer != nil {
		c.buyer(c.t.Customer)
	}
	if to := c.t.Delivery; to != nil {
		c.d.Delivery.Name = to.Name
		if to.Address != nil {
			c.d.Delivery.Address = addressOf(to.Address)
		}
	}
	if p := c.t.Payee; p != nil {
		c.d.Payee = &Party{Name: p.Name}
		if p.ID != "" {
			c.d.Payee.IDs = []Identifier{{ID: p.ID}}
		}
	}
}

func (c *composer) seller() {
	s, p := c.in.Supplier, &c.d.Seller
	p.Name = s.LegalName
	p.Address = addressOf(&s.Address)
	if p.Address.Country == "" {
		p.Address.Country = s.CountryCode
	}
	home := p.Address.Country
	if s.CountryCode != "" {
		home = s.CountryCode // numbers are of the country of registration
	}
	vat, ok := VATID(home, s.TaxNumber)
	if ok {
		p.VATID = vat
	} else {
		p.TaxID = cmp.Or(s.TaxNumber, s.CompanyNumber) // a local number, BT-32; a seller without VAT is known by its register
	}
	number := s.CompanyNumber
	if number == "" && vat == "" {
		number = s.TaxNumber // Norway's is that of the register
	}
	if s.CompanyNumber != "" {
		p.LegalID = LegalForm(home, s.CompanyNumber)
	} else if id := Derive(home, number, vat); id.ID != "" && LegalScheme(home, id.ID) == id.Scheme {
		p.LegalID = id // the VAT number contains the number of the register
	}
	p.Contact = Contact{Name: c.setting("contact_name"), Phone: c.setting("contact_phone"), Email: c.setting("contact_email")}
	p.Electronic = AddressOf(s, home)
	if p.Electronic.ID == "" && c.profile.German && p.Contact.Email != "" {
		p.Electronic = Identifier{ID: p.Contact.Email, Scheme: "EM"}
	}
	if c.page.Seller != nil {
		c.page.Seller(s, p)
	}
	if c.outside() {
		p.VATID = "" // BR-O-02
		if p.LegalID.ID == "" && s.TaxNumber != "" {
			p.IDs = []Identifier{{ID: s.TaxNumber}} // somebody must be recognisable, BR-CO-26
		}
	}
}

// outside reports whether the document is not subject to VAT: no VAT numbers then.
func (c *composer) outside() bool {
	return slices.ContainsFunc(c.t.Items, func(i transaction.Item) bool {
		return slices.ContainsFunc(i.Taxes, func(t transaction.Tax) bool { return t.Type == transaction.TaxOutside && !t.Withheld() })
	})
}

func (c *composer) buyer(b *transaction.Party) {
	p := &c.d.Buyer
	p.Name, p.TradeName = b.LegalName, b.TradeName
	if b.Address != nil {
		p.Address = addressOf(b.Address)
	}
	home := p.Address.Country
	if b.TaxNumber != "" && b.Type != transaction.Individual {
		if vat, ok := VATID(home, b.TaxNumber); ok {
			p.VATID = vat
		}
	}
	if route, _ := routed(c.t); b.EntityNumber != "" && b.EntityNumber != route {
		p.LegalID = LegalForm(home, b.EntityNumber)
		if p.LegalID.Scheme != "" && !ValidIn(p.LegalID.Scheme, p.LegalID.ID) {
			p.LegalID.Scheme = "" // the client's own number, not one of the register
		}
	}
	p.Contact = Contact{Phone: b.Phone, Email: b.Email}
	p.Electronic = c.buyerAddress(b, home)
	if c.outside() {
		p.VATID = ""
	}
	if slices.ContainsFunc(c.t.Items, func(i transaction.Item) bool {
		return slices.ContainsFunc(i.Taxes, func(t transaction.Tax) bool { return t.Type == transaction.TaxIntraEU })
	}) {
		c.d.Delivery.Address = p.Address // BR-IC-12
	}
}

// buyerAddress: the client's own wins, then a routing identifier, then what
// can be derived from the numbers, then mail where the profile takes it.
func (c *composer) buyerAddress(b *transaction.Party, home string) Identifier {
	if e := b.Electronic; e != nil && e.Scheme != transaction.SchemeSDI && e.Scheme != transaction.SchemePEC {
		if e.Scheme == "0225" && len(e.ID) == 14 && digits(e.ID) == e.ID {
			return Identifier{ID: schemeForm(e.Scheme, home, e.ID), Scheme: e.Scheme}
		}
		return Identifier{ID: e.ID, Scheme: e.Scheme}
	}
	if id, _ := routed(c.t); id != "" {
		return Identifier{ID: id, Scheme: "0204"}
	}
	if id := Derive(home, b.EntityNumber, c.d.Buyer.VATID); id.ID != "" {
		return id
	}
	if b.Email != "" && !c.profile.Peppol {
		return Identifier{ID: b.Email, Scheme: "EM"}
	}
	return Identifier{}
}

// addressOf brings an address into the lines that EN 16931 has.
func addressOf(a *transaction.Address) Address {
	street := strings.Join(strings.Fields(strings.Join([]string{a.AddressLine1, a.Prefix, a.Number, a.Suffix}, " ")), " ")
	out := Address{Line1: street, Line2: a.AddressLine2, Line3: cmp.Or(a.Neighbourhood, a.District), City: a.City, PostCode: a.PostalCode,
		Subdivision: cmp.Or(a.Province, a.Region, a.State, a.Canton), Country: territory.Code(strings.ToUpper(a.CountryCode))}
	if out.Country == "EL" {
		out.Country = "GR"
	}
	return out
}

// settledAtOnce: cash, cards and cheques are paid when the document is made.
func settledAtOnce(payment string) bool {
	return payment == "CASH" || payment == "CARD" || payment == "CHECK"
}

// payment says how the rest is paid. The official rules take one code for the
// whole document; where several kinds of payment settled it, there is none
// that says so, and 1 (not defined) stands with their names.
func (c *composer) payment() {
	if c.in.Supplier == nil {
		return
	}
	var kinds []string
	open := len(c.t.Payments) == 0 || c.credit
	for _, p := range c.t.Payments {
		if !settledAtOnce(p.Type) {
			open = true
		} else if !slices.Contains(kinds, p.Type) {
			kinds = append(kinds, p.Type)
		}
	}
	c.d.Payment.Remittance = c.d.Number
	iban := c.setting("iban")
	if c.t.Payee != nil && c.t.Payee.IBAN != "" {
		iban = c.t.Payee.IBAN
	}
	for i := range c.t.Payments {
		p := &c.t.Payments[i]
		if settledAtOnce(p.Type) {
			continue
		}
		if p.Debited() && !c.credit {
			c.debit(p)
			return
		}
		if p.IBAN != "" {
			iban = p.IBAN
		}
		if p.Reference != "" {
			c.d.Payment.Remittance = p.Reference
		}
	}
	if open {
		c.d.Payment.Means = []PaymentMeans{c.transfer(strings.ReplaceAll(iban, " ", ""))}
		return
	}
	m := PaymentMeans{Code: "1", Text: strings.Join(kinds, ", ")}
	if len(kinds) == 1 {
		m.Code = c.page.meansCode(kinds[0])
		if m.Code == "1" {
			m.Text = kinds[0]
		} else {
			m.Text = ""
		}
	}
	c.d.Payment.Means = []PaymentMeans{m}
}

// debit says that the payee collects the money: then there is no account to pay to.
func (c *composer) debit(p *transaction.Payment) {
	m := PaymentMeans{Code: "49", DebitAccount: strings.ReplaceAll(p.IBAN, " ", "")}
	if c.d.Currency == "EUR" {
		m.Code = "59"
	}
	c.d.Payment.Means = []PaymentMeans{m}
	c.d.Payment.Mandate, c.d.Payment.Creditor = p.Mandate.Reference, p.Mandate.CreditorID
	if p.Reference != "" {
		c.d.Payment.Remittance = p.Reference
	}
}

// transfer is a credit transfer to the account that the payment or the settings
// name.
func (c *composer) transfer(iban string) PaymentMeans {
	if iban == "" {
		return PaymentMeans{Code: c.page.meansCode("OTHER")}
	}
	m := PaymentMeans{Code: "30", Account: Account{ID: iban, Name: c.setting("account_name"), BIC: c.setting("bic")}}
	if iban != strings.ReplaceAll(c.setting("iban"), " ", "") {
		m.Account.BIC = "" // it is that of another bank
	}
	if c.t.Payee != nil {
		m.Account.Name, m.Account.BIC = c.t.Payee.Name, ""
	}
	if c.d.Currency == "EUR" && ValidIBAN(iban) {
		m.Code = "58"
	}
	if code, special := c.page.Means["TRANSFER"]; special {
		m.Code = code
	}
	return m
}

// meansCode is the code of UNTDID 4461 for a type of payment. Cards have none
// that could be used everywhere: 48 wants card data in Germany, which a client
// does not send.
func (p Page) meansCode(payment string) string {
	if code, special := p.Means[payment]; special {
		return code
	}
	switch payment {
	case "CASH":
		return "10"
	case "CHECK":
		return "20"
	case "CARD":
		return "48"
	}
	return "1"
}

// UnitCode is the code of UN/ECE Recommendation 20 for a unit as people write
// it; what is not known is a piece (C62), which every receiver understands.
func UnitCode(unit string) string {
	label := strings.ToLower(strings.Trim(unit, " ."))
	if code, known := unitLabels[label]; known {
		return code
	}
	if upper := strings.ToUpper(strings.TrimSpace(unit)); among(units, upper) {
		return upper
	}
	return "C62"
}

// unitLabels are units as people write them in the family's languages.
var unitLabels = map[string]string{
	"": "C62", "pc": "H87", "pcs": "H87", "piece": "H87", "pieces": "H87", "item": "H87", "items": "H87", "unit": "C62", "units": "C62", "ea": "H87", "each": "H87",
	"stk": "H87", "stück": "H87", "stuk": "H87", "stuks": "H87", "st": "H87", "styck": "H87", "kpl": "H87", "pièce": "H87", "pièces": "H87",
	"h": "HUR", "hr": "HUR", "hrs": "HUR", "hour": "HUR", "hours": "HUR", "std": "HUR", "stunde": "HUR", "stunden": "HUR", "uur": "HUR", "time": "HUR", "timer": "HUR", "tim": "HUR", "heure": "HUR", "heures": "HUR",
	"d": "DAY", "day": "DAY", "days": "DAY", "tag": "DAY", "tage": "DAY", "dag": "DAY", "dagen": "DAY", "dage": "DAY", "jour": "DAY", "jours": "DAY",
	"week": "WEE", "weeks": "WEE", "month": "MON", "months": "MON", "monat": "MON", "monate": "MON", "maand": "MON", "year": "ANN", "years": "ANN", "jahr": "ANN", "jahre": "ANN", "jaar": "ANN",
	"min": "MIN", "minute": "MIN", "minutes": "MIN", "night": "DAY", "nights": "DAY",
	"g": "GRM", "kg": "KGM", "t": "TNE", "l": "LTR", "liter": "LTR", "litre": "LTR", "ml": "MLT", "m": "MTR", "meter": "MTR", "km": "KMT", "cm": "CMT", "mm": "MMT",
	"m2": "MTK", "m²": "MTK", "sqm": "MTK", "m3": "MTQ", "m³": "MTQ", "kwh": "KWH", "mwh": "MWH", "set": "SET", "sets": "SET", "pair": "PR", "pairs": "PR", "box": "XBX", "boxes": "XBX", "%": "P1",
}

package en16931

import (
	"regexp"
	"strings"
)

// shared are the rules that Peppol made and XRechnung took over.
func (c *checker) shared() {
	d := c.d
	c.need("PEPPOL-EN16931-R001", "BT-23", d.Process != "")
	c.need("PEPPOL-EN16931-R010", "BT-49", d.Buyer.Electronic.ID != "")
	c.need("PEPPOL-EN16931-R020", "BT-34", d.Seller.Electronic.ID != "")
	if d.TaxCurrency != "" {
		c.must("PEPPOL-EN16931-R005", "BT-6", d.TaxCurrency != d.Currency, "is the currency of the invoice")
		c.must("PEPPOL-EN16931-R055", "BT-111", d.Totals.Tax.Sign()*d.Totals.TaxAccounting.Sign() >= 0, "has another sign than BT-110")
	}
	for i := range d.Allowances {
		c.index = i
		c.percentage(&d.Allowances[i], "BT-92")
	}
	for i := range d.Charges {
		c.index = i
		c.percentage(&d.Charges[i], "BT-99")
	}
	for i := range d.Lines {
		c.index = i
		l := &d.Lines[i]
		for j := range l.Allowances {
			c.percentage(&l.Allowances[j], "BT-136")
		}
		for j := range l.Charges {
			c.percentage(&l.Charges[j], "BT-141")
		}
		c.must("PEPPOL-EN16931-R120", "BT-131", c.lineAdds(l), "is not quantity times price")
		c.must("PEPPOL-EN16931-R121", "BT-149", !l.Price.BaseQuantity.Given() || l.Price.BaseQuantity.Sign() > 0, "is not positive")
		c.must("PEPPOL-EN16931-R130", "BT-150", !l.Price.BaseQuantity.Given() || l.Price.BaseUnit == "" || l.Price.BaseUnit == l.Unit, "is not the unit of the quantity")
		if l.Price.Gross.Given() {
			var net exact
			net.add(l.Price.Gross).sub(l.Price.Discount)
			c.must("PEPPOL-EN16931-R046", "BT-146", net.equals(l.Price.Net), "is not gross price less discount")
		}
		c.must("PEPPOL-EN16931-R110", "BT-134", l.Period.Start == "" || d.Period.Start == "" || l.Period.Start >= d.Period.Start, "is before the invoice's period")
		c.must("PEPPOL-EN16931-R111", "BT-135", l.Period.End == "" || d.Period.End == "" || l.Period.End <= d.Period.End, "is after the invoice's period")
	}
	c.index = -1
	for _, m := range d.Payment.Means {
		if m.Code == "49" || m.Code == "59" {
			c.need("PEPPOL-EN16931-R061", "BT-89", d.Payment.Mandate != "")
		}
	}
}

func (c *checker) percentage(a *AllowanceCharge, term string) {
	c.need("PEPPOL-EN16931-R041", term, !a.Percent.Given() || a.Base.Given())
	c.need("PEPPOL-EN16931-R042", term, !a.Base.Given() || a.Percent.Given())
	c.must("PEPPOL-EN16931-R040", term, percentAdds(a), "is not base times percentage")
}

// peppol are the rules of Peppol BIS Billing alone.
func (c *checker) peppol() {
	d := c.d
	german := d.Seller.Address.Country == "DE" && d.Buyer.Address.Country == "DE"
	c.must("PEPPOL-EN16931-R002", "BT-22", len(d.Notes) <= 1 || german, "occurs more than once")
	c.need("PEPPOL-EN16931-R003", "BT-10", d.BuyerReference != "" || d.OrderReference != "")
	c.must("PEPPOL-EN16931-R004", "BT-24", strings.HasPrefix(d.Specification, c.profile.Specification) && !strings.Contains(d.Specification, "::"), "is not Peppol BIS Billing 3.0")
	c.must("PEPPOL-EN16931-R007", "BT-23", billingProcess(d.Process) || c.profile.SelfBilled && d.Process == processSelfBilled, "is not a process of Peppol billing")
	switch {
	case c.profile.SelfBilled && d.IsCreditNote():
		c.must("PEPPOL-EN16931-P0101", "BT-3", d.TypeCode == "261", notListed)
	case c.profile.SelfBilled:
		c.must("PEPPOL-EN16931-P0100", "BT-3", among(" 389 527 ", d.TypeCode), notListed)
	case d.IsCreditNote():
		c.must("PEPPOL-EN16931-P0101", "BT-3", among(" 381 396 81 83 532 ", d.TypeCode), notListed)
	default:
		c.must("PEPPOL-EN16931-P0100", "BT-3", among(" 71 80 82 84 102 218 219 326 331 380 382 383 384 386 388 393 395 553 575 623 780 817 870 875 876 877 ", d.TypeCode), notListed)
		c.must("PEPPOL-EN16931-P0112", "BT-3", d.TypeCode != "326" && d.TypeCode != "384" || german, "is only for invoices between German parties")
	}
	for i := range d.Breakdown {
		c.index = i
		c.vatex(&d.Breakdown[i])
	}
	c.index = -1
	c.participant("BT-34", d.Seller.Electronic)
	c.participant("BT-49", d.Buyer.Electronic)
	c.identifier("BT-30", d.Seller.LegalID)
	c.identifier("BT-47", d.Buyer.LegalID)
	for _, id := range d.Seller.IDs {
		c.identifier("BT-29", id)
	}
	for _, id := range d.Buyer.IDs {
		c.identifier("BT-46", id)
	}
}

func (c *checker) participant(term string, id Identifier) {
	if id.ID != "" && id.Scheme != "" {
		c.must("PEPPOL-EN16931-CL008", term, among(peppolSchemes, id.Scheme), "has a scheme that Peppol does not know")
		c.identifier(term, id)
	}
}

// billingProcess: urn:fdc:peppol.eu:2017:poacc:billing:NN:1.0.
func billingProcess(process string) bool {
	number, ok := strings.CutPrefix(process, "urn:fdc:peppol.eu:2017:poacc:billing:")
	if !ok {
		return false
	}
	number, ok = strings.CutSuffix(number, ":1.0")
	return ok && len(number) == 2 && digits(number) == number
}

// identifier: check digits of the schemes that Peppol checks.
func (c *checker) identifier(term string, id Identifier) {
	rule := ""
	switch id.Scheme {
	case "0088":
		rule = "PEPPOL-COMMON-R040"
	case "0192":
		rule = "PEPPOL-COMMON-R041"
	case "0184":
		rule = "PEPPOL-COMMON-R042"
	case "0208":
		rule = "PEPPOL-COMMON-R043"
	case "0007":
		rule = "PEPPOL-COMMON-R049"
	case "0151":
		rule = "PEPPOL-COMMON-R050"
	case "0198":
		rule = "PEPPOL-COMMON-R053"
	default:
		return
	}
	c.must(rule, term, ValidIn(id.Scheme, id.ID), "cannot exist in its scheme")
}

// vatex: exemption codes that belong to one category.
func (c *checker) vatex(s *TaxSubtotal) {
	var rule, want string
	switch strings.ToUpper(s.ReasonCode) {
	case "VATEX-EU-G":
		rule, want = "PEPPOL-EN16931-P0104", "G"
	case "VATEX-EU-O":
		rule, want = "PEPPOL-EN16931-P0105", "O"
	case "VATEX-EU-IC":
		rule, want = "PEPPOL-EN16931-P0106", "K"
	case "VATEX-EU-AE":
		rule, want = "PEPPOL-EN16931-P0107", "AE"
	case "VATEX-EU-D":
		rule, want = "PEPPOL-EN16931-P0108", "E"
	case "VATEX-EU-F":
		rule, want = "PEPPOL-EN16931-P0109", "E"
	case "VATEX-EU-I":
		rule, want = "PEPPOL-EN16931-P0110", "E"
	case "VATEX-EU-J":
		rule, want = "PEPPOL-EN16931-P0111", "E"
	default:
		return
	}
	c.must(rule, "BT-121", s.Category == want, "belongs to another category")
}

// nationalRules is what a country asks beyond the European rules.
type nationalRules struct{ c *checker }

// national are the rules of countries inside Peppol's own rule set.
func (n nationalRules) national() {
	switch n.c.d.Seller.Address.Country {
	case "NO":
		if number, norwegian := strings.CutPrefix(n.c.d.Seller.VATID, "NO"); norwegian {
			number, registered := strings.CutSuffix(number, "MVA")
			n.c.must("NO-R-001", "BT-31", registered && ValidIn("0192", number), "is not a Norwegian VAT number")
		}
	case "DK":
		n.danish()
	case "SE":
		n.swedish()
	case "NL":
		n.dutch()
	}
}

func (n nationalRules) danish() {
	d := n.c.d
	domestic := d.Buyer.Address.Country == "DK"
	n.c.need("DK-R-002", "BT-30", d.Seller.LegalID.ID != "")
	n.c.must("DK-R-014", "BT-30", d.Seller.LegalID.ID == "" || d.Seller.LegalID.Scheme == "0184", "is not a CVR number")
	if !domestic {
		return
	}
	if d.IsCreditNote() {
		n.c.must("DK-R-016", "BT-115", d.Totals.Due.Sign() >= 0, "is negative in a credit note")
		return
	}
	for _, m := range d.Payment.Means {
		n.c.must("DK-R-005", "BT-81", among(" 1 10 31 42 48 49 50 58 59 93 97 ", m.Code), "is not a means of payment between Danish parties")
		if m.Code == "31" || m.Code == "42" {
			n.c.need("DK-R-006", "BT-84", m.Account.ID != "" && m.Account.BIC != "")
		}
	}
}

func (n nationalRules) swedish() {
	d := n.c.d
	if id := d.Seller.VATID; id != "" {
		n.c.must("SE-R-001", "BT-31", len(id) == 14, "has not 14 characters")
		n.c.must("SE-R-002", "BT-31", len(id) < 3 || digits(id[2:]) == id[2:], "has letters behind SE")
	}
	if id := d.Seller.LegalID; id.ID != "" {
		n.c.must("SE-R-003", "BT-30", digits(id.ID) == id.ID, "is not a number")
		n.c.must("SE-R-004", "BT-30", len(id.ID) == 10, "has not 10 digits")
		n.c.must("SE-R-013", "BT-30", ValidIn("0007", id.ID), "has wrong check digits")
	}
	if d.Seller.TaxID != "" && d.Seller.LegalID.ID != "" {
		n.c.must("SE-R-005", "BT-32", strings.EqualFold(d.Seller.TaxID, "Godkänd för F-skatt"), "is not the text of F-skatt")
	}
	if d.Seller.VATID == "" {
		return
	}
	allowed := func(category string, rate Decimal) bool {
		return category != "S" || equalValues(rate, Dec(25, 0)) || equalValues(rate, Dec(12, 0)) || equalValues(rate, Dec(6, 0))
	}
	for i := range d.Breakdown {
		n.c.index = i
		n.c.must("SE-R-006", "BT-119", allowed(d.Breakdown[i].Category, d.Breakdown[i].Rate), "is not a Swedish rate")
	}
	n.c.index = -1
}

func (n nationalRules) dutch() {
	d := n.c.d
	domestic := d.Buyer.Address.Country == "NL"
	complete := func(a Address) bool { return a.Line1 != "" && a.City != "" && a.PostCode != "" }
	registered := func(id Identifier) bool { return id.ID != "" && (id.Scheme == "0106" || id.Scheme == "0190") }
	if d.IsCreditNote() {
		n.c.need("NL-R-001", "BT-25", len(d.Preceding) > 0)
	}
	n.c.need("NL-R-002", "BG-5", complete(d.Seller.Address))
	n.c.need("NL-R-003", "BT-30", registered(d.Seller.LegalID))
	if domestic {
		n.c.need("NL-R-004", "BG-8", complete(d.Buyer.Address))
		n.c.must("NL-R-005", "BT-47", d.Buyer.LegalID.ID == "" || registered(d.Buyer.LegalID), "is neither a KvK number nor an OIN")
		for _, m := range d.Payment.Means {
			n.c.must("NL-R-008", "BT-81", among(" 30 48 49 57 58 59 ", m.Code), "is not a means of payment between Dutch parties")
		}
	}
	owed := d.Totals.Due.Sign() > 0
	if d.IsCreditNote() {
		owed = d.Totals.Due.Sign() < 0
	}
	n.c.need("NL-R-007", "BG-16", !owed || len(d.Payment.Means) > 0)
	for i := range d.Lines {
		n.c.index = i
		n.c.need("NL-R-009", "BT-13", d.Lines[i].OrderLine == "" || d.OrderReference != "")
	}
	n.c.index = -1
}

// skonto is one line of payment terms that offers a discount, by XRechnung.
var skonto = regexp.MustCompile(`^#SKONTO#TAGE=[0-9]+#PROZENT=[0-9]+\.[0-9]{2}(#BASISBETRAG=-?[0-9]+\.[0-9]{2})?#$`)

// german are the rules of XRechnung, which Peppol applies between German
// parties under names of its own: BR-DE-15 is DE-R-015 there.
func (n nationalRules) german() {
	name := func(xrechnung, peppol string) string {
		if n.c.profile.German {
			return "BR-DE-" + xrechnung
		}
		return "DE-R-" + peppol
	}
	d := n.c.d
	s := &d.Seller
	n.c.need(name("1", "001"), "BG-16", len(d.Payment.Means) > 0)
	n.c.need(name("2", "002"), "BG-6", s.Contact != Contact{})
	if s.Contact != (Contact{}) {
		n.c.need(name("5", "005"), "BT-41", s.Contact.Name != "")
		n.c.need(name("6", "006"), "BT-42", s.Contact.Phone != "")
		n.c.need(name("7", "007"), "BT-43", s.Contact.Email != "")
	}
	n.c.need(name("3", "003"), "BT-37", s.Address.City != "")
	n.c.need(name("4", "004"), "BT-38", s.Address.PostCode != "")
	n.c.need(name("8", "008"), "BT-52", d.Buyer.Address.City != "")
	n.c.need(name("9", "009"), "BT-53", d.Buyer.Address.PostCode != "")
	if v := &d.Delivery; v.Address != (Address{}) {
		n.c.need(name("10", "010"), "BT-77", v.Address.City != "")
		n.c.need(name("11", "011"), "BT-78", v.Address.PostCode != "")
	}
	n.c.need(name("15", "015"), "BT-10", d.BuyerReference != "")
	for i := range d.Breakdown {
		n.c.index = i
		n.c.need(name("14", "014"), "BT-119", d.Breakdown[i].Rate.Given())
	}
	n.c.index = -1
	taxed := false
	for i := range d.Lines {
		taxed = taxed || among(" S Z E AE K G L M ", d.Lines[i].Category)
	}
	n.c.need(name("16", "016"), "BT-31", !taxed || s.VATID != "" || s.TaxID != "" || d.TaxRepresentative != nil)
	n.c.must(name("18", "018"), "BT-20", skontoValid(d.PaymentTerms), "has a line of discount that is not in the prescribed form")
	names := map[string]bool{}
	for _, doc := range d.Documents {
		n.c.must(name("22", "022"), "BT-125", doc.Filename == "" || !names[doc.Filename], "has a file name that occurs twice")
		names[doc.Filename] = true
	}
	n.germanPayment(name)
}

func (n nationalRules) germanPayment(name func(string, string) string) {
	d := n.c.d
	part := func(rule, peppol string, half int) string {
		if n.c.profile.German {
			return name(rule, "") + []string{"-a", "-b"}[half]
		}
		return name("", peppol) + []string{"-1", "-2"}[half]
	}
	debit := d.Payment.Mandate != ""
	for _, m := range d.Payment.Means {
		switch m.Code {
		case "30", "58":
			n.c.need(part("23", "023", 0), "BG-17", m.Account != Account{})
			n.c.must(part("23", "023", 1), "BT-81", m.Card == Card{} && !debit, "contradicts the data of another means")
		case "48", "54", "55":
			n.c.need(part("24", "024", 0), "BG-18", m.Card != Card{})
			n.c.must(part("24", "024", 1), "BT-81", m.Account == Account{} && !debit, "contradicts the data of another means")
		case "59":
			n.c.need(part("25", "025", 0), "BG-19", debit)
			n.c.must(part("25", "025", 1), "BT-81", m.Account == Account{} && m.Card == Card{}, "contradicts the data of another means")
		}
	}
	if debit {
		n.c.need(name("30", "030"), "BT-90", d.Payment.Creditor != "")
		account := ""
		for _, m := range d.Payment.Means {
			account += m.DebitAccount
		}
		n.c.need(name("31", "031"), "BT-91", account != "")
	}
}

// skontoValid: lines that begin with # have the prescribed form, and the last
// of them ends with a line break.
func skontoValid(terms string) bool {
	found := false
	for _, line := range strings.Split(terms, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			continue
		}
		found = true
		if !skonto.MatchString(line) {
			return false
		}
	}
	if !found {
		return true
	}
	last := strings.LastIndexByte(terms, '#')
	rest := strings.TrimLeft(terms[last+1:], " \t\r")
	return strings.HasPrefix(rest, "\n")
}

package en16931

import (
	"slices"
	"strings"
	"time"
)

// Profile says which rules a document is made by, besides those of EN 16931.
type Profile struct {
	Specification string // BT-24
	Process       string // BT-23
	Peppol        bool   // the rules of Peppol BIS Billing 3.0, national ones included
	German        bool   // the rules of XRechnung 3.0
	Romanian      bool   // the rules of CIUS-RO
	French        bool   // the rules of invoices between French businesses (BR-FR)
	Code          string // as settings.format names it
	CII           bool   // written as CII instead of UBL
	SelfBilled    bool   // Peppol's profile of documents that the buyer issues, which has no national rules
}

const (
	specificationCore = "urn:cen.eu:en16931:2017"
	processBilling    = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0"
	processSelfBilled = "urn:fdc:peppol.eu:2017:poacc:selfbilling:01:1.0"
)

// PeppolBIS is Peppol BIS Billing 3.0.
func PeppolBIS() Profile {
	return Profile{Code: "PEPPOL_UBL", Peppol: true, Process: processBilling,
		Specification: specificationCore + "#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"}
}

// PeppolSelfBilling is Peppol BIS Self-Billing 3.0.
func PeppolSelfBilling() Profile {
	return Profile{Code: "PEPPOL_UBL", Peppol: true, SelfBilled: true, Process: processSelfBilled,
		Specification: specificationCore + "#compliant#urn:fdc:peppol.eu:2017:poacc:selfbilling:3.0"}
}

// XRechnung is XRechnung 3.0, in UBL or in CII.
func XRechnung(cii bool) Profile {
	p := Profile{Code: "XRECHNUNG_UBL", German: true, Process: processBilling, CII: cii,
		Specification: specificationCore + "#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0"}
	if cii {
		p.Code = "XRECHNUNG_CII"
	}
	return p
}

// FacturX is the profile EN 16931 of ZUGFeRD and Factur-X, which is plain EN 16931 in CII.
func FacturX() Profile {
	return Profile{Code: "ZUGFERD", Specification: specificationCore, CII: true}
}

// Finding is one broken rule.
type Finding struct {
	Rule    string // its official name
	Term    string // the BT or BG it is about
	Index   int    // which line, allowance, subtotal or document; -1 for the document's own terms
	Missing bool   // the term is not there
	Text    string // what is wrong, without naming the term
}

// Check finds what the official rules of a profile would refuse. It looks at
// rules that are errors; those that only warn are left out, except where
// another edition of the same rule refuses. The arithmetic follows the
// executable rules, not their prose: where they leave a slack, so does this.
func Check(d *Invoice, p Profile) []Finding {
	c := checker{d: d, profile: p, index: -1}
	c.header()
	c.parties()
	c.payment()
	c.totals()
	c.breakdown()
	c.categories()
	for i := range d.Lines {
		c.index = i
		c.line(&d.Lines[i])
	}
	c.index = -1
	c.allowances()
	c.documents()
	if p.Peppol || p.German {
		c.shared()
	}
	if p.Peppol {
		c.peppol()
	}
	if p.Peppol && !p.SelfBilled {
		nationalRules{&c}.national()
	}
	if p.German || p.Peppol && !p.SelfBilled && d.Seller.Address.Country == "DE" && d.Buyer.Address.Country == "DE" {
		nationalRules{&c}.german()
	}
	if p.Romanian {
		nationalRules{&c}.romanian()
	}
	if p.French {
		c.french()
	}
	if p.CII { // these rules are of the other syntax
		c.found = slices.DeleteFunc(c.found, func(f Finding) bool { return strings.HasPrefix(f.Rule, "UBL-") })
	}
	return c.found
}

type checker struct {
	d       *Invoice
	profile Profile
	index   int
	found   []Finding
	unit    string // the last unit code that was found in the list
}

// need records a missing term.
func (c *checker) need(rule, term string, present bool) {
	if !present {
		c.found = append(c.found, Finding{Rule: rule, Term: term, Index: c.index, Missing: true, Text: "is required"})
	}
}

// must records a term that breaks a rule.
func (c *checker) must(rule, term string, ok bool, text string) {
	if !ok {
		c.found = append(c.found, Finding{Rule: rule, Term: term, Index: c.index, Text: text})
	}
}

const notListed = "is not a code of the list"

func (c *checker) header() {
	d := c.d
	c.need("BR-01", "BT-24", d.Specification != "")
	c.need("BR-02", "BT-1", d.Number != "")
	c.need("BR-03", "BT-2", d.IssueDate != "")
	c.need("BR-04", "BT-3", d.TypeCode != "")
	c.need("BR-05", "BT-5", d.Currency != "")
	c.need("BR-16", "BG-25", len(d.Lines) > 0)
	if d.TypeCode != "" {
		c.must("BR-CL-01", "BT-3", among(invoiceTypes, d.TypeCode) || among(creditNoteTypes, d.TypeCode), notListed)
	}
	if d.Currency != "" {
		c.must("BR-CL-04", "BT-5", among(currencies, d.Currency), notListed)
	}
	if d.TaxCurrency != "" {
		c.must("BR-CL-05", "BT-6", among(currencies, d.TaxCurrency), notListed)
		c.need("BR-53", "BT-111", d.Totals.TaxAccounting.Given() || d.TaxCurrency == d.Currency && d.Totals.Tax.Given())
	}
	if d.TaxPointCode != "" {
		c.must("BR-CO-03", "BT-8", d.TaxPointDate == "", "may not stand beside BT-7")
		c.must("BR-CL-06", "BT-8", among(taxPointCodes, d.TaxPointCode), notListed)
	}
	if d.Object.Scheme != "" {
		c.must("BR-CL-07", "BT-18", among(objectSchemes, d.Object.Scheme), notListed)
	}
	for _, n := range d.Notes {
		if n.Subject != "" {
			c.must("BR-CL-08", "BT-21", among(noteSubjects, n.Subject), notListed)
		}
	}
	for _, p := range d.Preceding {
		c.need("BR-55", "BT-25", p.Number != "")
	}
	c.period("BR-29", "BT-74", d.Period)
	c.day("BT-2", d.IssueDate)
	c.day("BT-7", d.TaxPointDate)
	c.day("BT-9", d.DueDate)
}

func (c *checker) day(term string, date Date) {
	c.must("PEPPOL-EN16931-F001", term, date == "" || date.valid(), "is not a day")
}

func (c *checker) period(rule, term string, p Period) {
	c.must(rule, term, p.Start == "" || p.End == "" || p.End >= p.Start, "is before the beginning of the period")
}

// valid reports whether the text is a day of the calendar.
func (d Date) valid() bool {
	_, err := time.Parse(time.DateOnly, string(d))
	return err == nil
}

func (c *checker) parties() {
	d := c.d
	s, b := &d.Seller, &d.Buyer
	c.need("BR-06", "BT-27", s.Name != "")
	c.need("BR-07", "BT-44", b.Name != "")
	c.need("BR-08", "BG-5", s.Address != Address{})
	c.need("BR-10", "BG-8", b.Address != Address{})
	if s.Address != (Address{}) {
		c.country("BR-09", "BT-40", s.Address.Country)
	}
	if b.Address != (Address{}) {
		c.country("BR-11", "BT-55", b.Address.Country)
	}
	c.need("BR-CO-26", "BT-30", s.VATID != "" || s.LegalID.ID != "" || len(s.IDs) > 0)
	c.electronic("BR-62", "BT-34", s.Electronic)
	c.electronic("BR-63", "BT-49", b.Electronic)
	c.scheme("BR-CL-11", "BT-30", s.LegalID)
	c.scheme("BR-CL-11", "BT-47", b.LegalID)
	for _, id := range s.IDs {
		c.scheme("BR-CL-10", "BT-29", id)
	}
	for _, id := range b.IDs {
		c.scheme("BR-CL-10", "BT-46", id)
	}
	c.vatPrefix("BT-31", s.VATID)
	c.vatPrefix("BT-48", b.VATID)
	if p := d.Payee; p != nil {
		c.need("BR-17", "BT-59", p.Name != "")
	}
	if r := d.TaxRepresentative; r != nil {
		c.need("BR-18", "BT-62", r.Name != "")
		c.need("BR-19", "BG-12", r.Address != Address{})
		c.need("BR-56", "BT-63", r.VATID != "")
		if r.Address != (Address{}) {
			c.country("BR-20", "BT-69", r.Address.Country)
		}
		c.vatPrefix("BT-63", r.VATID)
	}
	v := &d.Delivery
	if v.Address != (Address{}) {
		c.country("BR-57", "BT-80", v.Address.Country)
	}
	c.scheme("BR-CL-26", "BT-71", v.Location)
	c.day("BT-72", v.Date)
}

func (c *checker) country(rule, term, code string) {
	c.need(rule, term, code != "")
	if code != "" {
		c.must("BR-CL-14", term, among(countries, code), notListed)
	}
}

func (c *checker) electronic(rule, term string, id Identifier) {
	if id.ID == "" {
		return
	}
	c.need(rule, term, id.Scheme != "")
	if id.Scheme != "" {
		c.must("BR-CL-25", term, among(addressSchemes, id.Scheme), "has a scheme that is not a code of the list")
	}
}

func (c *checker) scheme(rule, term string, id Identifier) {
	if id.ID != "" && id.Scheme != "" {
		c.must(rule, term, among(identifierSchemes, id.Scheme), "has a scheme that is not a code of the list")
	}
}

func (c *checker) vatPrefix(term, id string) {
	if id != "" {
		prefix := id[:min(2, len(id))]
		c.must("BR-CO-09", term, prefix == "EL" || among(countries, prefix), "does not begin with the code of its country")
	}
}

func (c *checker) payment() {
	code := ""
	cards := 0
	for i, m := range c.d.Payment.Means {
		c.need("BR-49", "BT-81", m.Code != "")
		if m.Code != "" {
			c.must("BR-CL-16", "BT-81", among(paymentMeansCodes, m.Code), notListed)
		}
		if m.Code == "30" || m.Code == "58" {
			c.need("BR-61", "BT-84", m.Account.ID != "")
		}
		if m.Account != (Account{}) {
			c.need("BR-50", "BT-84", m.Account.ID != "")
		}
		if m.Card != (Card{}) {
			cards++
			c.must("BR-51", "BT-87", len(m.Card.Number) <= 10, "shows more than the first six and the last four digits")
		}
		if i == 0 {
			code = m.Code
		}
		c.must("UBL-SR-47", "BT-81", m.Code == code, "differs between the means of payment")
	}
	c.must("UBL-SR-54", "BG-18", cards <= 1, "occurs more than once")
}

func (c *checker) allowances() {
	c.documentLevel(c.d.Allowances, allowanceRules)
	c.documentLevel(c.d.Charges, chargeRules)
	c.index = -1
}

// levelRules are the names of one set of rules about allowances or charges.
type levelRules struct {
	amount, category, reason, decimals, base, list    string
	amountTerm, categoryTerm, reasonTerm, reasonCodes string
}

const (
	allowanceList = "a"
	chargeList    = "c"
)

var (
	allowanceRules = levelRules{"BR-31", "BR-32", "BR-33", "BR-DEC-01", "BR-DEC-02", allowanceList, "BT-92", "BT-95", "BT-97", "BR-CL-19"}
	chargeRules    = levelRules{"BR-36", "BR-37", "BR-38", "BR-DEC-05", "BR-DEC-06", chargeList, "BT-99", "BT-102", "BT-104", "BR-CL-20"}
	lineAllowances = levelRules{"BR-41", "", "BR-42", "BR-DEC-24", "BR-DEC-25", allowanceList, "BT-136", "", "BT-139", "BR-CL-19"}
	lineCharges    = levelRules{"BR-43", "", "BR-44", "BR-DEC-27", "BR-DEC-28", chargeList, "BT-141", "", "BT-144", "BR-CL-20"}
)

func (c *checker) documentLevel(all []AllowanceCharge, r levelRules) {
	for i := range all {
		c.index = i
		c.allowance(&all[i], r)
	}
}

func (c *checker) allowance(a *AllowanceCharge, r levelRules) {
	c.need(r.amount, r.amountTerm, a.Amount.Given())
	c.need(r.reason, r.reasonTerm, a.Reason != "" || a.ReasonCode != "")
	c.cents(r.decimals, r.amountTerm, a.Amount)
	c.cents(r.base, r.amountTerm, a.Base)
	if r.category != "" {
		c.need(r.category, r.categoryTerm, a.Category != "")
		if a.Category != "" {
			c.must("BR-CL-17", r.categoryTerm, among(categories, a.Category), notListed)
		}
	}
	if a.ReasonCode != "" {
		list := allowanceReasons
		if r.list == chargeList {
			list = chargeReasons
		}
		c.must(r.reasonCodes, r.reasonTerm, among(list, a.ReasonCode), notListed)
	}
}

// cents: amounts have two decimals at most.
func (c *checker) cents(rule, term string, amount Decimal) {
	c.must(rule, term, amount.Decimals() <= 2, "has more than two decimals")
}

func (c *checker) documents() {
	for i, d := range c.d.Documents {
		c.index = i
		c.need("BR-52", "BT-122", d.Reference != "")
		if len(d.Content) > 0 {
			c.must("BR-CL-24", "BT-125", attachable(d.MIME), "is of a kind that may not be embedded")
			c.need("UBL-DT-07", "BT-125", d.Filename != "")
		}
	}
	c.index = -1
}

// attachable lists the kinds of files that an invoice may embed.
func attachable(mime string) bool {
	switch mime {
	case "application/pdf", "image/png", "image/jpeg", "text/csv",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.oasis.opendocument.spreadsheet":
		return true
	}
	return false
}

// among reports whether a code stands in one of the lists of codes.go, which
// begin and end with a blank.
func among(list, code string) bool {
	if code == "" || strings.IndexByte(code, ' ') >= 0 {
		return false
	}
	for {
		i := strings.Index(list, code)
		if i < 0 {
			return false
		}
		end := i + len(code)
		if i > 0 && list[i-1] == ' ' && end < len(list) && list[end] == ' ' {
			return true
		}
		list = list[i+1:]
	}
}

package hu

import (
	"regexp"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
)

type checker struct {
	facts country.Facts
	by    *sale.Rules
}

func (c *checker) checks() []country.Check {
	lines := []string{"items.*.tax_breakdowns", "items.*.type", "customer.type", "customer.tax_information.tax_number",
		"customer.address.country_code", "transaction_date"}
	return []country.Check{
		{Reads: []string{"customer.type", "customer.tax_information.tax_number", "customer.address.country_code"}, Find: customer},
		{Reads: []string{"transaction_number"}, Find: number},
		{Reads: []string{"transaction_date", "delivery_date"}, Find: c.days},
		{Reads: lines, Find: c.taxes},
		{Reads: append(lines, "items"), Amounts: true, Find: c.size},
	}
}

func customer(in country.Case) []fault.Fault {
	if flaw := identify(in.Transaction.Customer).flaw; flaw != "" {
		return []fault.Fault{fault.At("customer.tax_information.tax_number", fault.FieldNotValid, "%s", flaw)}
	}
	return nil
}

func number(in country.Case) []fault.Fault {
	sent := in.Transaction.Number
	if sent == "" || words(sent, navwire.NumberMax) == sent || len([]rune(sent)) > navwire.NumberMax {
		return nil // its length is a fact
	}
	return []fault.Fault{fault.At("transaction_number", fault.FieldNotValid,
		"has blanks at its ends, two in a row, or characters that NAV does not take")}
}

// days finds what NAV refuses of the days, or would if it came today.
func (c *checker) days(in country.Case) []fault.Fault {
	t := in.Transaction
	var found []fault.Fault
	if t.Whole() && !in.Now.IsZero() && t.Date.Before(in.Now.AddDate(-1, 0, 0)) {
		found = append(found, fault.At("transaction_date", fault.FieldNotValid,
			"is more than a year ago, which NAV refuses (%s)", navwire.IssueDateLate))
	}
	if issued := t.Date.In(c.by.Zone).Format(time.DateOnly); t.Whole() && !in.Now.IsZero() && len(found) == 0 &&
		issued < in.Now.In(c.by.Zone).AddDate(0, 0, -1).Format(time.DateOnly) {
		found = append(found, fault.Warn("transaction_date", fault.ValidationMatchInvalid,
			"is %s: an invoice is reported at once when it is issued (Act CXXVII of 2007, annex 10), and this one comes late", issued))
	}
	if t.DeliveryDate > t.Date.In(c.by.Zone).AddDate(5, 0, 0).Format(time.DateOnly) {
		found = append(found, fault.At("delivery_date", fault.FieldNotValid,
			"is more than five years after the invoice, which NAV refuses (%s)", navwire.DeliveryDateLate))
	}
	return found
}

// taxes checks that every line has one rate that NAV knows for this buyer.
func (c *checker) taxes(in country.Case) []fault.Fault {
	t := in.Transaction
	if !t.Whole() {
		return nil
	}
	found := sale.OneTax(t.Items, "a line has one lineVatRate")
	if len(found) > 0 || t.Kind == transaction.Adjustment && t.Customer == nil {
		return found // a correction that names no buyer has the original's: see Prepare
	}
	return untaxed(t.Items, classify(c.facts, in), t.Customer, t.Date)
}

// sizedFrom is the number of lines from which a document may be too large.
const sizedFrom = 1000

// size writes a long document once: NAV's request has room for ten megabytes.
func (c *checker) size(in country.Case) []fault.Fault {
	if len(in.Transaction.Items) < sizedFrom || len(in.Totals.Lines) != len(in.Transaction.Items) {
		return nil
	}
	return tooLarge(compose(in.Draft(nil), c.by).write())
}

func tooLarge(report []byte) []fault.Fault {
	if len(report) <= reportBytesMax {
		return nil
	}
	return []fault.Fault{fault.At("items", fault.FieldNotValid, "make a document of %d bytes; NAV takes at most %d",
		len(report), reportBytesMax)}
}

// checkCompany asks for what a call to NAV and every report must have.
func checkCompany(s country.Supplier, c country.Credentials) []fault.Fault {
	var found []fault.Fault
	number, ok := readNumber(s.TaxNumber)
	switch {
	case !ok || number.kind == "":
		found = append(found, fault.At("tax_information.tax_number", fault.FieldNotValid,
			"must be a Hungarian tax number of 11 digits, written as 12345678-2-41"))
	case number.kind == kindGroup:
		if member, ok := readNumber(s.Settings.Text(settingGroupMember)); !ok || member.kind != kindGroupMember {
			found = append(found, fault.At("settings."+settingGroupMember, fault.FieldRequired,
				"must be the tax number of the group's member that sells (ninth digit 4)"))
		}
	}
	for _, must := range [][3]string{
		{"legal_name", s.LegalName, "must not be empty"},
		{"address.city", s.Address.City, "must not be empty (supplierAddress)"},
		{"address.address_line_1", s.Address.AddressLine1, "must not be empty (supplierAddress)"},
	} {
		if words(must[1], navwire.DetailMax) == "" {
			found = append(found, fault.At(must[0], fault.FieldRequired, "%s", must[2]))
		}
	}
	if c.Username != "" && !loginForm.MatchString(c.Username) {
		found = append(found, fault.At("tax_credentials.username", fault.FieldNotValid,
			"must be the technical user's login: 6 to 15 letters and digits"))
	}
	if key := c.Named[secretExchange]; key != "" && len(key) != navwire.ExchangeKeyBytes {
		found = append(found, fault.At("tax_credentials."+secretExchange, fault.FieldNotValid, "must have 16 characters"))
	}
	if key := c.Named[secretSignature]; key != "" && key == c.Secret {
		found = append(found, fault.At("tax_credentials."+secretSignature, fault.FieldNotValid,
			"is the password: they are two secrets"))
	}
	return found
}

var loginForm = regexp.MustCompile(`^[0-9A-Za-z]{6,15}$`)

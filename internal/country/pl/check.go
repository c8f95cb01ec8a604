package pl

import (
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
)

const (
	// priceDigits is what FA(3) has for the whole part of a price (TKwotowy2).
	priceDigits = 100_000_000_000_000
	// sizedFrom is from how many lines on a document is written once to be
	// measured: below it cannot reach KSeF's limit.
	sizedFrom = 350
)

// checker finds what KSeF would refuse and the body already shows.
type checker struct {
	facts country.Facts
	by    *sale.Rules
}

func (c *checker) checks() []country.Check {
	lines := []string{"items.*.tax_breakdowns", "items.*.type", "customer.type", "customer.tax_information.tax_number",
		"customer.address.country_code", "transaction_date"}
	return []country.Check{
		{Reads: []string{"currency_code", "exchange_rate", "items.*.unit_price", "items.*.discount"}, Find: money},
		{Reads: partyReads("customer"), Find: func(in country.Case) []fault.Fault {
			return party("customer", in.Transaction.Customer)
		}},
		{Reads: partyReads("issuer"), Find: func(in country.Case) []fault.Fault { return party("issuer", in.Transaction.Issuer) }},
		{Reads: append(partyReads("customer"),
			append(partyReads("third_parties.*"), "third_parties.*.role", "third_parties.*.share")...),
			Find: func(in country.Case) []fault.Fault {
				return thirdParties(in.Transaction)
			}},
		{Reads: filedTexts(), Find: func(in country.Case) []fault.Fault { return texts(in.Transaction) }},
		{Reads: lines, Find: func(in country.Case) []fault.Fault {
			var found []fault.Fault
			items := classify(c.facts, in)
			for i := range items {
				found = append(found, taxes(i, &items[i])...)
			}
			if t := in.Transaction; t.Kind == transaction.Invoice || t.Kind == transaction.Adjustment && t.Customer != nil {
				found = append(found, zeroes(t.Items, items, t.Customer, t.Date)...)
			}
			return found
		}},
		{Reads: lines, Find: func(in country.Case) []fault.Fault {
			return append(margins(in.Transaction.Items), oneStopShop(in.Transaction)...)
		}},
		{Reads: []string{"exchange_rate_date", "currency_code", "transaction_date", "delivery_date"},
			Find: func(in country.Case) []fault.Fault {
				return rateDay(in.Transaction, c.by.Zone)
			}},
		{Reads: append(append(lines, orderReads()...), "items", "reason", "references", "payments", "payments.*.date"),
			Amounts: true, Find: c.advances},
		{Reads: append(lines, "items"), Amounts: true, Find: nothingSold},
		{Reads: []string{"reason"}, Find: func(in country.Case) []fault.Fault { return checkPeriod(in.Transaction) }},
		{Reads: append(partyReads("customer"), "items", "items.*.classification", "currency_code"), Amounts: true,
			Find: simplified},
		{Reads: append(partyReads("customer"), "customer.address"), Find: func(in country.Case) []fault.Fault {
			return addressed(in.Transaction)
		}},
		{Reads: append(lines, "items", "customer", "issuer", "currency_code", "exchange_rate"), Amounts: true, Find: c.size},
	}
}

// money checks what FA(3) cannot write: prices of sixteen digits.
func money(in country.Case) []fault.Fault {
	t := in.Transaction
	code := strings.ToUpper(t.CurrencyCode)
	decimals, _ := transaction.CurrencyExponent(code)
	var found []fault.Fault
	if t.ExchangeRate != nil && t.ExchangeRate.Value() <= 0 {
		found = append(found, fault.At("exchange_rate", fault.FieldNotValid, "must be greater than 0"))
	}
	if decimals == 0 {
		for i := range t.Items {
			if price := t.Items[i].UnitPrice; price >= priceDigits || price <= -priceDigits {
				found = append(found, fault.At(fmt.Sprintf("items.%d.unit_price", i), fault.FieldNotValid,
					"has more than 14 digits, which FA(3) cannot write"))
			}
			if i < len(in.Totals.Lines) && max(in.Totals.Lines[i].Discount, -in.Totals.Lines[i].Discount) >= priceDigits {
				found = append(found, fault.At(fmt.Sprintf("items.%d.discount", i), fault.FieldNotValid,
					"comes to more than 14 digits, which FA(3) cannot write"))
			}
		}
	}
	return found
}

// writes reports whether FA(3) has a currency: of those with amounts it lacks
// the newest and some withdrawn ones (TKodWaluty), and it has no thousandths.
func writes(code string) bool {
	switch code {
	case "MRO", "SLE", "STD", "VED", "VEF", "XAD", "ZWG":
		return false
	}
	decimals, known := transaction.CurrencyExponent(code)
	return known && decimals <= 2
}

// party checks a customer or an issuer, whichever the name says.
func party(name string, p *transaction.Party) []fault.Fault {
	if p == nil {
		return nil
	}
	var found []fault.Fault
	if flaw := identify(p).flaw; flaw != "" {
		found = append(found, fault.At(name+".tax_information.tax_number", fault.FieldNotValid, "%s", flaw))
	}
	if p.Address != nil && strings.EqualFold(p.Address.CountryCode, transaction.ReferenceCode) {
		found = append(found, fault.At(name+".address.country_code", fault.FieldNotValid, "is not a country that FA(3) knows"))
	}
	return found
}

// addressed wants the address of a person who is named by no number; that of a
// business is among the facts.
func addressed(t *transaction.Transaction) []fault.Fault {
	c := t.Customer
	if !t.Whole() || c == nil || c.Address != nil && addressLine(*c.Address) != "" {
		return nil
	}
	if c.Type != transaction.Individual || identify(c) != (identifier{}) {
		return nil
	}
	return []fault.Fault{fault.At("customer.address", fault.FieldRequired,
		"must say where the buyer lives: a person who is named by no tax number is named by name and address (art. 106e sec. 1 point 3 of the VAT act)")}
}

func partyReads(name string) []string {
	return []string{name + ".type", name + ".tax_information.tax_number", name + ".address.country_code"}
}

// texts checks the characters of everything that is filed as text.
func texts(t *transaction.Transaction) []fault.Fault {
	var found []fault.Fault
	for _, path := range filedTexts() {
		t.EachField(path, func(at transaction.Place, text string) {
			if !ksefwire.Takes(text) {
				found = append(found, fault.At(at.Path(path), fault.FieldNotValid,
					"has characters that KSeF refuses: control characters or such that are none"))
			}
		})
	}
	return found
}

func filedTexts() []string {
	paths := []string{"transaction_number", "items.*.name", "items.*.unit", "items.*.description", "items.*.code",
		"items.*.ean", "payments.*.code"}
	for _, party := range []string{"customer", "issuer", "third_parties.*"} {
		paths = append(paths, party+".legal_name", party+".trade_name", party+".entity_number", party+".tax_information.tax_number")
		for _, member := range []string{"address_line_1", "address_line_2", "city", "postal_code", "number", "prefix",
			"suffix", "district",
			"province", "region", "state", "canton", "neighbourhood"} {
			paths = append(paths, party+".address."+member)
		}
	}
	return paths
}

// taxes checks one line: exactly one VAT entry, of a rate, a type and a code
// that belong together. The rate itself is checked against the country's table.
func taxes(i int, item *transaction.Item) []fault.Fault {
	at := fmt.Sprintf("items.%d.tax_breakdowns", i)
	j := item.OnlyTax()
	if j < 0 {
		return []fault.Fault{fault.At(at, fault.FieldNotValid,
			"must have exactly one entry that is not withheld: a line of FA(3) has one rate (P_12)")}
	}
	tax := item.Taxes[j]
	at = fmt.Sprintf("%s.%d", at, j)
	var found []fault.Fault
	rated := tax.Type == transaction.TaxStandard || tax.Type == transaction.TaxReduced
	if rated == tax.Rate.IsZero() {
		found = append(found, fault.At(at+".type", fault.ValidationMatchInvalid, "does not fit the rate: %s has %s",
			tax.Type, map[bool]string{true: "a rate above 0", false: "the rate 0"}[rated]))
	}
	if tax.Code == "" {
		return found
	}
	meant, known := typeOf(strings.ToUpper(tax.Code))
	switch {
	case !known:
		found = append(found, fault.At(at+".code", fault.FieldNotValid,
			"must be 0KR, 0WDT, 0EX, NP1, POZA, NP2, OO, 135, ZW, 113, 82.3, DIR, 43.1.N, MT, MU, MD or MA"))
	case meant != tax.Type:
		found = append(found, fault.At(at+".code", fault.ValidationMatchInvalid, "means %s, but the entry is %s", meant, tax.Type))
	}
	return found
}

// size writes a long document once: whether KSeF has room for it follows from
// the body but for the supplier, who gets the room of its longest texts.
func (c *checker) size(in country.Case) []fault.Fault {
	if len(in.Transaction.Items) < sizedFrom || len(in.Totals.Lines) != len(in.Transaction.Items) {
		return nil
	}
	const supplierBytes = 4096
	if size := len(compose(in.Draft(nil), c.by).writer().write()) + supplierBytes; size > ksefwire.DocumentBytesMax {
		return []fault.Fault{tooLarge("about ", size)}
	}
	return nil
}

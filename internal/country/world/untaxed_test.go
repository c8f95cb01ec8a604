package world_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func numbered(p *transaction.Party, number string) *transaction.Party {
	p.TaxNumber = number
	return p
}

// abroadFor is a business of another member state than the seller's.
func abroadFor(home string) *transaction.Party {
	if home == "DE" {
		return numbered(sold(home, territory.Entry{Country: "FR", Postal: []string{"75001"}}, "").Transaction.Customer,
			"FR61954506077")
	}
	return numbered(sold(home, territory.Entry{Country: "DE", Postal: []string{"10115"}}, "").Transaction.Customer,
		"DE136695976")
}

func consumer(p *transaction.Party) *transaction.Party {
	p.Type, p.TaxNumber, p.FiscalCode = transaction.Individual, "", "RSSMRA80A01H501U"
	return p
}

// of is a sale of some lines to somebody.
func of(home string, customer *transaction.Party, items ...transaction.Item) country.Case {
	c := sold(home, territory.Entry{Country: home}, "")
	c.Transaction.Customer, c.Transaction.Items = customer, slices.Clone(items)
	for i := range c.Transaction.Items {
		c.Transaction.Items[i].Number = int64(i + 1)
	}
	c.Totals, _ = transaction.Calculate(c.Transaction.Items)
	return c
}

func goodsLine(rate int64, kind string) transaction.Item {
	return transaction.Item{Name: "Chair", Quantity: num.MakeAmount(1, 0), UnitPrice: 100_00, Type: transaction.Goods,
		Taxes: []transaction.Tax{{Rate: num.MakeAmount(rate, 0), Regime: transaction.VAT, Mode: transaction.Added,
			Type: kind}}}
}

func shipping(rate int64, kind string, ancillary bool) transaction.Item {
	i := goodsLine(rate, kind)
	i.Name, i.UnitPrice, i.Type, i.Ancillary = "Shipping", 10_00, transaction.Services, ancillary
	return i
}

// at are the findings about a member.
func at(found []fault.Fault, field string) (texts []string) {
	for _, f := range found {
		if f.Field == field {
			texts = append(texts, string(f.Type)+" "+string(f.Code)+" "+f.Message)
		}
	}
	return texts
}

const typeField = "items.0.tax_breakdowns.0.type"

// A rate of 0 of which nothing says why is refused with the choices, at home and
// to consumers of other member states, where the law has no zero rate. True zero
// rates stand, and countries without an authority or an invoice as data say what
// was assumed.
func TestAZeroThatSaysNothingIsRefusedWithTheChoices(t *testing.T) {
	atlas := wholeWorld(t)
	open := goodsLine(0, "")
	for _, home := range unionPacks {
		pack, _ := atlas.Pack(home)
		own := consumer(sold(home, territory.Entry{Country: home, Postal: []string{"10115"}}, "").Transaction.Customer)
		for who, customer := range map[string]*transaction.Party{"at home": own,
			"a consumer abroad": consumer(abroadFor(home))} {
			told := at(pack.Check(of(home, customer, open)), typeField)
			if home == "IE" {
				if len(told) > 0 {
					t.Errorf("IE has a zero rate: %s %v", who, told)
				}
				continue
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], "validation field_required ") ||
				!strings.Contains(told[0], "EXEMPT") || !strings.Contains(told[0], "OUTSIDE") {
				t.Errorf("%s, %s: %v", home, who, told)
			}
			if told := at(pack.Check(of(home, customer, goodsLine(0, transaction.TaxExempt))), typeField); len(told) > 0 {
				t.Errorf("%s refuses EXEMPT %s: %v", home, who, told)
			}
		}
	}
	for home, want := range map[string]int{"GB": 0, "MX": 0, "XX": 0, "MT": 0, "PT": 1, "CZ": 1, "CH": 0, "US": 0} {
		pack, _ := atlas.Pack(home)
		told := at(pack.Check(of(home, sold(home, territory.Entry{Country: home}, "").Transaction.Customer, open)), typeField)
		if len(told) != want || want == 1 && !strings.HasPrefix(told[0], "warning value_assumed ") {
			t.Errorf("%s: %v", home, told)
		}
	}
}

// Shipping says with ancillary that it shares the treatment of the goods; beside
// goods that leave without tax it is asked for it by name, and it has no rate or
// type of its own.
func TestAncillaryLinesShareTheTreatmentOfTheGoods(t *testing.T) {
	atlas := wholeWorld(t)
	const field = "items.1.ancillary"
	for _, home := range unionPacks {
		pack, _ := atlas.Pack(home)
		american := numbered(sold(home, territory.Entry{Country: "US"}, "").Transaction.Customer, "12-3456789")
		for kind, customer := range map[string]*transaction.Party{transaction.TaxIntraEU: abroadFor(home),
			transaction.TaxExport: american} {
			for _, sent := range []string{"", kind} {
				c := of(home, customer, goodsLine(0, sent), shipping(0, "", true))
				if typed := pack.TypedItems(c); typed[0].Taxes[0].Type != kind || typed[1].Taxes[0].Type != kind {
					t.Errorf("%s: %s and %s, want %s", home, typed[0].Taxes[0].Type, typed[1].Taxes[0].Type, kind)
				}
				if told := pack.Check(c); len(at(told, field))+len(at(told, "items.1.tax_breakdowns.0.type")) > 0 {
					t.Errorf("%s refuses shipping of %s: %v", home, kind, told)
				}
			}
			told := pack.Check(of(home, customer, goodsLine(0, kind), shipping(0, "", false)))
			asked := at(told, field)
			if more := at(told, "items"); len(more) > 0 {
				t.Errorf("%s says more than what to do with shipping of %s: %v", home, kind, more)
			}
			if follows := home == "ES"; follows == (len(asked) == 1) { // Spain reads services beside untaxed goods as theirs
				t.Errorf("%s asks of %s: %v", home, kind, asked)
			}
		}
		for name, c := range map[string]country.Case{
			"alone": of(home, abroadFor(home), shipping(0, transaction.TaxReverse, false),
				shipping(0, transaction.TaxReverse, true)),
			"another rate": of(home, abroadFor(home), goodsLine(0, transaction.TaxIntraEU), shipping(21, "", true)),
			"another type": of(home, abroadFor(home), goodsLine(0, transaction.TaxIntraEU),
				shipping(0, transaction.TaxReverse, true)),
			"a discount": of(home, abroadFor(home), goodsLine(0, transaction.TaxIntraEU), func() transaction.Item {
				i := shipping(0, "", true)
				i.Type = transaction.Discount
				return i
			}()),
		} {
			if told := at(pack.Check(c), field); len(told) != 1 ||
				!strings.HasPrefix(told[0], "validation validation_match_invalid ") {
				t.Errorf("%s, %s: %v", home, name, told)
			}
		}
	}
	for _, home := range []string{"PL", "HU", "IT"} {
		pack, _ := atlas.Pack(home)
		if told := at(pack.Check(of(home, abroadFor(home), goodsLine(0, transaction.TaxIntraEU),
			shipping(0, transaction.TaxIntraEU, false))), "items.1.tax_breakdowns.0.type"); len(told) != 1 ||
			!strings.Contains(told[0], "ancillary: true") {
			t.Errorf("%s: %v", home, told)
		}
	}
}

func TestGoodsThatGoElsewhereThanTheCustomerAreRefused(t *testing.T) {
	t.Parallel()
	atlas := wholeWorld(t)
	for _, home := range []string{"ES", "PL", "HU", "DE"} {
		pack, _ := atlas.Pack(home)
		for _, c := range []struct {
			to      transaction.Address
			kind    string
			refused bool
		}{
			{transaction.Address{CountryCode: home, City: "X", PostalCode: "28001", AddressLine1: "y"}, transaction.Goods,
				false},
			{transaction.Address{CountryCode: "US", City: "X", PostalCode: "10001", AddressLine1: "y"}, transaction.Goods, true},
			{transaction.Address{CountryCode: "FI", City: "Mariehamn", PostalCode: "22100", AddressLine1: "y"},
				transaction.Goods, true},
			{transaction.Address{CountryCode: "US", City: "X", PostalCode: "10001", AddressLine1: "y"}, transaction.Services,
				false},
		} {
			sale := sold(home, territory.Entry{Country: home}, "")
			sale.Transaction.Delivery = &transaction.Delivery{Address: &c.to}
			for i := range sale.Transaction.Items {
				sale.Transaction.Items[i].Type = c.kind
			}
			if told := at(pack.Check(sale), "delivery.address"); (len(told) > 0) != c.refused {
				t.Errorf("%s: %v sent to %s: %v", home, c.kind, c.to.CountryCode, told)
			}
		}
	}
}

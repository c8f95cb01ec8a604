package en16931_test

import (
	"math/rand/v2"
	"strconv"

	"tributary/internal/country/en16931"
)

// dec reads a decimal of a test.
func dec(text string) en16931.Decimal {
	d, err := en16931.ParseDecimal(text)
	if err != nil {
		panic(text + ": " + err.Error())
	}
	return d
}

// sample is a small document that every profile takes: a German seller and a
// public German buyer, two rates, an allowance, a charge and a part paid before.
func sample(p en16931.Profile) *en16931.Invoice {
	d := &en16931.Invoice{
		Number: "R-2026-17", IssueDate: "2026-11-15", TypeCode: "380", Currency: "EUR", DueDate: "2026-12-15",
		BuyerReference: "04011000-12345-03", Specification: p.Specification, Process: p.Process,
		PaymentTerms: "30 days net",
		Notes:        []en16931.Note{{Text: "Thank you"}},
		Seller: en16931.Party{
			Name: "Rot GmbH", TradeName: "Rot", LegalID: en16931.Identifier{ID: "HRB 4711"}, VATID: "DE111111125",
			Electronic: en16931.Identifier{ID: "DE111111125", Scheme: "9930"},
			Address:    en16931.Address{Line1: "Hauptstr. 1", City: "Berlin", PostCode: "10115", Country: "DE"},
			Contact:    en16931.Contact{Name: "Billing", Phone: "+49 30 123456", Email: "billing@example.com"},
		},
		Buyer: en16931.Party{
			Name: "Stadt Beispiel", VATID: "DE129273398",
			Electronic: en16931.Identifier{ID: "04011000-12345-03", Scheme: "0204"},
			Address:    en16931.Address{Line1: "Am Markt 2", City: "Bonn", PostCode: "53111", Country: "DE"},
		},
		Delivery: en16931.Delivery{Date: "2026-11-14"},
		Payment: en16931.Payment{Remittance: "R-2026-17", Means: []en16931.PaymentMeans{{Code: "58",
			Account: en16931.Account{ID: "DE89370400440532013000", Name: "Rot GmbH", BIC: "COBADEFFXXX"}}}},
		Allowances: []en16931.AllowanceCharge{{Amount: dec("5.00"), Base: dec("50.00"), Percent: dec("10"), Category: "S",
			Rate: dec("19"), Reason: "Discount", ReasonCode: "95"}},
		Charges: []en16931.AllowanceCharge{{Amount: dec("3.00"), Category: "S", Rate: dec("7"), Reason: "Freight",
			ReasonCode: "FC"}},
		Lines: []en16931.Line{
			{ID: "1", Quantity: dec("3"), Unit: "C62", Net: dec("190.84"), Price: en16931.Price{Net: dec("63.613")},
				Category: "S", Rate: dec("19"),
				Item: en16931.Item{Name: "Chair", Description: "Oak", SellerID: "C-1",
					StandardID: en16931.Identifier{ID: "4012345000009", Scheme: "0160"}}},
			{ID: "2", Quantity: dec("2.5"), Unit: "KGM", Net: dec("22.50"), Price: en16931.Price{Net: dec("10.00")},
				Category: "S", Rate: dec("7"),
				Allowances: []en16931.AllowanceCharge{{Amount: dec("2.50"), Reason: "Bruised", ReasonCode: "60"}},
				Item:       en16931.Item{Name: "Apples", Origin: "DE"}},
		},
	}
	d.Settle(en16931.Settlement{Decimals: 2, Gross: 24841, Paid: 10000, Taxes: []en16931.CategoryTax{
		{Category: "S", Rate: dec("19"), Amount: 3531, Lines: 2}, {Category: "S", Rate: dec("7"), Amount: 179, Lines: 2}}})
	return d
}

// randomInvoice is a document with that many lines, as a transaction would make
// it: lines rounded one by one, tax included or added, some of them negative.
func randomInvoice(r *rand.Rand, p en16931.Profile, lines int) *en16931.Invoice {
	d := sample(p)
	d.Lines, d.Allowances, d.Charges = nil, nil, nil
	s := en16931.Settlement{Decimals: 2, ByCategory: r.IntN(3) == 0}
	type rated struct {
		category, rate string
		percent        int64 // hundredths of a per cent
	}
	kinds := []rated{{"S", "19", 1900}, {"S", "7", 700}, {"S", "5.5", 550}, {"E", "0", 0}, {"AE", "0", 0}, {"G", "0", 0},
		{"Z", "0", 0}}
	included := r.IntN(2) == 0
	for i := range lines {
		k := kinds[r.IntN(len(kinds))]
		quantity := en16931.Dec(1+r.Int64N(5_000_000), r.IntN(7))
		amount := 1 + r.Int64N(200_000)
		if r.IntN(8) == 0 {
			amount = 1 + r.Int64N(3)
		}
		net, tax := amount, half(amount*k.percent, 10_000)
		if included {
			net = half(amount*10_000, 10_000+k.percent)
			tax = amount - net
		}
		price := en16931.PriceFor(net, quantity, 2)
		if r.IntN(6) == 0 {
			net, tax, quantity = -net, -tax, quantity.Neg()
		}
		s.Gross += net + tax
		at := -1
		for j := range s.Taxes {
			if s.Taxes[j].Category == k.category && s.Taxes[j].Rate.Equal(dec(k.rate)) {
				at = j
			}
		}
		if at < 0 {
			row := en16931.CategoryTax{Category: k.category, Rate: dec(k.rate)}
			if k.category != "S" && k.category != "Z" {
				row.Reason = "exempt"
			}
			s.Taxes = append(s.Taxes, row)
			at = len(s.Taxes) - 1
		}
		s.Taxes[at].Amount += tax
		s.Taxes[at].Lines++
		if r.IntN(10) == 0 && net > 0 && len(d.Lines) > 0 { // as a discount of the document
			s.Gross -= 2 * (net + tax)
			s.Taxes[at].Amount -= 2 * tax
			d.Allowances = append(d.Allowances, en16931.AllowanceCharge{Amount: en16931.Dec(net, 2), Category: k.category,
				Rate: dec(k.rate), Reason: "Discount", ReasonCode: "95"})
			continue
		}
		d.Lines = append(d.Lines, en16931.Line{ID: strconv.Itoa(i + 1), Quantity: quantity, Unit: "C62",
			Net: en16931.Dec(net, 2), Price: price,
			Category: k.category, Rate: dec(k.rate), Item: en16931.Item{Name: "Item " + strconv.Itoa(i+1)}})
	}
	if r.IntN(3) == 0 {
		s.Paid = s.Gross / 2
	}
	d.Settle(s)
	return d
}

// half divides, rounding half away from zero.
func half(n, d int64) int64 { return (n + d/2) / d }

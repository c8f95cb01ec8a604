package en16931_test

import "tributary/internal/country/en16931"

func breakages() []breakage {
	peppol, german, cii, facturX := profiles[0], profiles[1], profiles[2], profiles[3]
	type doc = *en16931.Invoice
	all := []breakage{
		{"BR-01", german, func(d doc) { d.Specification = "" }},
		{"BR-02", peppol, func(d doc) { d.Number = "" }},
		{"BR-02", cii, func(d doc) { d.Number = "" }},
		{"BR-03", peppol, func(d doc) { d.IssueDate = "" }},
		{"BR-04", cii, func(d doc) { d.TypeCode = "" }},
		{"BR-05", cii, func(d doc) { d.Currency = "" }},
		{"BR-06", peppol, func(d doc) { d.Seller.Name = "" }},
		{"BR-07", peppol, func(d doc) { d.Buyer.Name = "" }},
		{"BR-07", cii, func(d doc) { d.Buyer.Name = "" }},
		{"BR-08", facturX, func(d doc) { d.Seller.Address = en16931.Address{} }},
		{"BR-09", peppol, func(d doc) { d.Seller.Address.Country = "" }},
		{"BR-10", peppol, func(d doc) { d.Buyer.Address = en16931.Address{} }},
		{"BR-11", peppol, func(d doc) { d.Buyer.Address.Country = "" }},
		{"BR-12", peppol, func(d doc) { d.Totals.Lines = en16931.Decimal{} }},
		{"BR-13", peppol, func(d doc) { d.Totals.Net = en16931.Decimal{} }},
		{"BR-14", cii, func(d doc) { d.Totals.Gross = en16931.Decimal{} }},
		{"BR-15", peppol, func(d doc) { d.Totals.Due = en16931.Decimal{} }},
		{"BR-16", peppol, func(d doc) { d.Lines = nil }},
		{"BR-17", peppol, func(d doc) { d.Payee = &en16931.Party{LegalID: en16931.Identifier{ID: "1"}} }},
		{"BR-18", peppol, func(d doc) { d.TaxRepresentative = representative(); d.TaxRepresentative.Name = "" }},
		{"BR-19", peppol, func(d doc) {
			d.TaxRepresentative = representative()
			d.TaxRepresentative.Address = en16931.Address{}
		}},
		{"BR-20", peppol, func(d doc) { d.TaxRepresentative = representative(); d.TaxRepresentative.Address.Country = "" }},
		{"BR-56", peppol, func(d doc) { d.TaxRepresentative = representative(); d.TaxRepresentative.VATID = "" }},
		{"BR-21", peppol, func(d doc) { d.Lines[0].ID = "" }},
		{"BR-22", peppol, func(d doc) { d.Lines[0].Quantity = en16931.Decimal{} }},
		{"BR-23", peppol, func(d doc) { d.Lines[0].Unit = "" }},
		{"BR-24", peppol, func(d doc) { d.Lines[0].Net = en16931.Decimal{} }},
		{"BR-25", cii, func(d doc) { d.Lines[0].Item.Name = "" }},
		{"BR-26", peppol, func(d doc) { d.Lines[0].Price.Net = en16931.Decimal{} }},
		{"BR-27", peppol, func(d doc) { d.Lines[0].Price.Net, d.Lines[0].Quantity = dec("-63.613"), dec("-3") }},
		{"BR-28", cii, func(d doc) { d.Lines[0].Price.Gross, d.Lines[0].Price.Discount = dec("-1"), dec("-64.613") }},
		{"BR-29", peppol, func(d doc) { d.Period = en16931.Period{Start: "2026-02-01", End: "2026-01-31"} }},
		{"BR-30", peppol, func(d doc) { d.Lines[0].Period = en16931.Period{Start: "2026-02-01", End: "2026-01-31"} }},
		{"BR-31", peppol, func(d doc) { d.Allowances[0].Amount = en16931.Decimal{} }},
		{"BR-32", peppol, func(d doc) { d.Allowances[0].Category = "" }},
		{"BR-33", peppol, func(d doc) { d.Allowances[0].Reason, d.Allowances[0].ReasonCode = "", "" }},
		{"BR-36", peppol, func(d doc) { d.Charges[0].Amount = en16931.Decimal{} }},
		{"BR-37", peppol, func(d doc) { d.Charges[0].Category = "" }},
		{"BR-38", cii, func(d doc) { d.Charges[0].Reason, d.Charges[0].ReasonCode = "", "" }},
		{"BR-41", peppol, func(d doc) { d.Lines[1].Allowances[0].Amount = en16931.Decimal{} }},
		{"BR-42", peppol, func(d doc) { d.Lines[1].Allowances[0].Reason, d.Lines[1].Allowances[0].ReasonCode = "", "" }},
		{"BR-43", peppol, func(d doc) { charge(d).Amount = en16931.Decimal{} }},
		{"BR-44", peppol, func(d doc) { charge(d).Reason = "" }},
		{"BR-45", peppol, func(d doc) { d.Breakdown[0].Taxable = en16931.Decimal{} }},
		{"BR-46", cii, func(d doc) { d.Breakdown[0].Tax = en16931.Decimal{} }},
		{"BR-47", peppol, func(d doc) { d.Breakdown[0].Category = "" }},
		{"BR-48", peppol, func(d doc) { d.Breakdown[0].Rate = en16931.Decimal{} }},
		{"BR-49", peppol, func(d doc) { d.Payment.Means[0].Code = "" }},
		{"BR-50", cii, func(d doc) { d.Payment.Means[0].Account = en16931.Account{Name: "Rot"} }},
		{"BR-51", facturX, func(d doc) {
			d.Payment.Means[0] = en16931.PaymentMeans{Code: "48", Card: en16931.Card{Number: "12345678901"}}
		}},
		{"BR-52", peppol, func(d doc) { d.Documents = []en16931.Document{{Description: "x"}} }},
		{"BR-53", peppol, func(d doc) { d.TaxCurrency = "SEK" }},
		{"BR-54", peppol, func(d doc) { d.Lines[0].Item.Attributes = []en16931.Attribute{{Name: "Colour"}} }},
		{"BR-55", cii, func(d doc) { d.Preceding = []en16931.Preceding{{Date: "2026-01-01"}} }},
		{"BR-57", peppol, func(d doc) { d.Delivery.Address = en16931.Address{City: "Bonn", PostCode: "53111"} }},
		{"BR-61", peppol, func(d doc) { d.Payment.Means[0].Account.ID = "" }},
		{"BR-62", peppol, func(d doc) { d.Seller.Electronic.Scheme = "" }},
		{"BR-63", peppol, func(d doc) { d.Buyer.Electronic.Scheme = "" }},
		{"BR-64", peppol, func(d doc) { d.Lines[0].Item.StandardID.Scheme = "" }},
		{"BR-65", peppol, func(d doc) { d.Lines[0].Item.Classes = []en16931.Class{{Code: "1"}} }},
		{"BR-CO-03", peppol, func(d doc) { d.TaxPointDate, d.TaxPointCode = "2026-11-15", "3" }},
		{"BR-CO-04", peppol, func(d doc) { d.Lines[0].Category = "" }},
		{"BR-CO-09", peppol, func(d doc) { d.Buyer.VATID = "129273398" }},
		{"BR-CO-10", peppol, func(d doc) { d.Totals.Lines = dec("1.00") }},
		{"BR-CO-10", cii, func(d doc) { d.Totals.Lines = dec("1.00") }},
		{"BR-CO-11", peppol, func(d doc) { d.Totals.Allowances = dec("1.00") }},
		{"BR-CO-12", peppol, func(d doc) { d.Totals.Charges = en16931.Decimal{} }},
		{"BR-CO-13", peppol, func(d doc) { d.Totals.Net = dec("1.00") }},
		{"BR-CO-14", peppol, func(d doc) { d.Totals.Tax = dec("1.00") }},
		{"BR-CO-15", peppol, func(d doc) { d.Totals.Gross = dec("1.00") }},
		{"BR-CO-16", peppol, func(d doc) { d.Totals.Due = dec("1.00") }},
		{"BR-CO-16", facturX, func(d doc) { d.Totals.Rounding = dec("0.01") }},
		{"BR-CO-17", peppol, func(d doc) { d.Breakdown[0].Tax = dec("40.00") }},
		{"BR-CO-17", cii, func(d doc) { d.Breakdown[0].Rate = dec("0.4") }},
		{"BR-CO-18", facturX, func(d doc) { d.Breakdown = nil }},
		{"BR-CO-26", peppol, func(d doc) { d.Seller.VATID, d.Seller.LegalID = "", en16931.Identifier{} }},
		{"BR-DEC-01", peppol, func(d doc) { d.Allowances[0].Amount = dec("5.001") }},
		{"BR-DEC-02", peppol, func(d doc) { d.Allowances[0].Base = dec("50.001") }},
		{"BR-DEC-05", peppol, func(d doc) { d.Charges[0].Amount = dec("3.001") }},
		{"BR-DEC-06", peppol, func(d doc) { d.Charges[0].Base, d.Charges[0].Percent = dec("3.001"), dec("100") }},
		{"BR-DEC-09", peppol, func(d doc) { d.Totals.Lines = dec("1.001") }},
		{"BR-DEC-10", peppol, func(d doc) { d.Totals.Allowances = dec("1.001") }},
		{"BR-DEC-11", peppol, func(d doc) { d.Totals.Charges = dec("1.001") }},
		{"BR-DEC-12", peppol, func(d doc) { d.Totals.Net = dec("1.001") }},
		{"BR-DEC-13", peppol, func(d doc) { d.Totals.Tax = dec("1.001") }},
		{"BR-DEC-14", peppol, func(d doc) { d.Totals.Gross = dec("1.001") }},
		{"BR-DEC-15", peppol, func(d doc) { d.TaxCurrency, d.Totals.TaxAccounting = "SEK", dec("1.001") }},
		{"BR-DEC-16", peppol, func(d doc) { d.Totals.Paid = dec("1.001") }},
		{"BR-DEC-17", peppol, func(d doc) { d.Totals.Rounding = dec("1.001") }},
		{"BR-DEC-18", peppol, func(d doc) { d.Totals.Due = dec("1.001") }},
		{"BR-DEC-19", peppol, func(d doc) { d.Breakdown[0].Taxable = dec("185.841") }},
		{"BR-DEC-20", peppol, func(d doc) { d.Breakdown[0].Tax = dec("35.311") }},
		{"BR-DEC-23", peppol, func(d doc) { d.Lines[0].Net = dec("190.841") }},
		{"BR-DEC-24", peppol, func(d doc) { d.Lines[1].Allowances[0].Amount = dec("2.501") }},
		{"BR-DEC-25", peppol, func(d doc) {
			d.Lines[1].Allowances[0].Base, d.Lines[1].Allowances[0].Percent = dec("2.501"), dec("100")
		}},
		{"BR-DEC-27", peppol, func(d doc) { charge(d).Amount = dec("0.001") }},
		{"BR-DEC-28", peppol, func(d doc) { charge(d).Base, charge(d).Percent = dec("0.001"), dec("0") }},
		{"BR-CL-01", german, func(d doc) { d.TypeCode = "999" }},
		{"BR-CL-04", peppol, func(d doc) { d.Currency = "EUX" }},
		{"BR-CL-05", cii, func(d doc) { d.TaxCurrency, d.Totals.TaxAccounting = "EUX", dec("1.00") }},
		{"BR-CL-06", peppol, func(d doc) { d.TaxPointCode = "4" }},
		{"BR-CL-07", peppol, func(d doc) { d.Object = en16931.Identifier{ID: "1", Scheme: "???"} }},
		{"BR-CL-08", cii, func(d doc) { d.Notes[0].Subject = "???" }},
		{"BR-CL-10", peppol, func(d doc) { d.Seller.IDs = []en16931.Identifier{{ID: "1", Scheme: "9999"}} }},
		{"BR-CL-11", peppol, func(d doc) { d.Buyer.LegalID = en16931.Identifier{ID: "1", Scheme: "9999"} }},
		{"BR-CL-13", peppol, func(d doc) { d.Lines[0].Item.Classes = []en16931.Class{{Code: "1", Scheme: "???"}} }},
		{"BR-CL-14", peppol, func(d doc) { d.Buyer.Address.Country = "QQ" }},
		{"BR-CL-15", peppol, func(d doc) { d.Lines[1].Item.Origin = "QQ" }},
		{"BR-CL-16", peppol, func(d doc) { d.Payment.Means[0].Code = "999" }},
		{"BR-CL-17", peppol, func(d doc) { d.Allowances[0].Category = "Q" }},
		{"BR-CL-18", peppol, func(d doc) { d.Lines[0].Category = "Q" }},
		{"BR-CL-19", peppol, func(d doc) { d.Allowances[0].ReasonCode = "FC" }},
		{"BR-CL-20", peppol, func(d doc) { d.Charges[0].ReasonCode = "95" }},
		{"BR-CL-21", peppol, func(d doc) { d.Lines[0].Item.StandardID.Scheme = "9999" }},
		{"BR-CL-22", peppol, func(d doc) { categorised(d, "E"); d.Breakdown[0].ReasonCode = "VATEX-XX" }},
		{"BR-CL-23", peppol, func(d doc) { d.Lines[0].Unit = "PIECE" }},
		{"BR-CL-24", peppol, func(d doc) {
			d.Documents = []en16931.Document{{Reference: "1", Content: []byte("x"), MIME: "text/plain", Filename: "a.txt"}}
		}},
		{"BR-CL-25", peppol, func(d doc) { d.Seller.Electronic.Scheme = "9999" }},
		{"BR-CL-26", peppol, func(d doc) { d.Delivery.Location = en16931.Identifier{ID: "1", Scheme: "9999"} }},
		{"UBL-SR-47", peppol, func(d doc) {
			d.Payment.Means = append(d.Payment.Means, en16931.PaymentMeans{Code: "30", Account: d.Payment.Means[0].Account})
		}},
		{"UBL-SR-54", peppol, func(d doc) {
			m := en16931.PaymentMeans{Code: "48", Card: en16931.Card{Number: "1234"}}
			d.Payment.Means = []en16931.PaymentMeans{m, m}
		}},
		{"UBL-DT-07", peppol, func(d doc) {
			d.Documents = []en16931.Document{{Reference: "1", Content: []byte("x"), MIME: "text/csv"}}
		}},
		{"BR-B-01", facturX, func(d doc) { categorised(d, "B") }},
		{"BR-B-02", facturX, func(d doc) { d.Lines[0].Category = "B" }},
		{"BR-IC-11", facturX, func(d doc) { categorised(d, "K"); d.Delivery.Date = "" }},
		{"BR-IC-12", peppol, func(d doc) { categorised(d, "K"); d.Delivery.Address = en16931.Address{} }},
		{"BR-O-11", peppol, func(d doc) { categorised(d, "O"); mixed(d) }},
		{"BR-O-12", peppol, func(d doc) { categorised(d, "O"); mixed(d) }},
		{"BR-O-13", peppol, func(d doc) { categorised(d, "O"); mixed(d) }},
		{"BR-O-14", peppol, func(d doc) { categorised(d, "O"); mixed(d) }},
	}
	all = append(all, categoryBreakages(peppol, cii)...)
	return append(all, profileBreakages(peppol, german, cii)...)
}

func representative() *en16931.Party {
	return &en16931.Party{Name: "Tax GmbH", VATID: "DE129273398", Address: en16931.Address{City: "Köln", Country: "DE"}}
}

// charge gives the first line a charge.
func charge(d *en16931.Invoice) *en16931.AllowanceCharge {
	l := &d.Lines[0]
	if len(l.Charges) == 0 {
		l.Charges = []en16931.AllowanceCharge{{Amount: dec("0.01"), Reason: "Handling"}}
	}
	return &l.Charges[0]
}

// mixed puts another category beside one that is not subject to VAT.
func mixed(d *en16931.Invoice) {
	d.Lines[0].Category, d.Lines[0].Rate = "S", dec("19")
	d.Allowances[0].Category, d.Allowances[0].Rate = "S", dec("19")
	d.Charges[0].Category, d.Charges[0].Rate = "S", dec("19")
	d.Breakdown = append(d.Breakdown, en16931.TaxSubtotal{Taxable: dec("0.00"), Tax: dec("0.00"), Category: "S",
		Rate: dec("19")})
}

// categoryBreakages break the ten rules of each category in both syntaxes.
func categoryBreakages(both ...en16931.Profile) (all []breakage) {
	type doc = *en16931.Invoice
	for _, p := range both {
		for code, name := range map[string]string{"S": "S", "Z": "Z", "E": "E", "AE": "AE", "K": "IC", "G": "G", "O": "O",
			"L": "AF", "M": "AG"} {
			add := func(number string, change func(d doc)) {
				all = append(all, breakage{"BR-" + name + "-" + number, p, func(d doc) { categorised(d, code); change(d) }})
			}
			unnumbered := func(d doc) {
				d.Seller.VATID = ""
				if code == "O" {
					d.Seller.VATID = "DE111111125"
				}
			}
			wrong := dec("5")
			if code == "S" {
				wrong = dec("0")
			}
			if code == "L" || code == "M" {
				wrong = dec("-1")
			}
			add("01", func(d doc) {
				d.Breakdown[0].Category, d.Breakdown[0].Reason = "Z", ""
				if code == "Z" {
					d.Breakdown[0].Category, d.Breakdown[0].Reason = "E", "x"
				}
			})
			add("02", unnumbered)
			add("03", unnumbered)
			add("04", unnumbered)
			add("05", func(d doc) { d.Lines[0].Rate = wrong })
			add("06", func(d doc) { d.Allowances[0].Rate = wrong })
			add("07", func(d doc) { d.Charges[0].Rate = wrong })
			add("08", func(d doc) { d.Breakdown[0].Taxable = dec("1.00") })
			add("09", func(d doc) { d.Breakdown[0].Tax = dec("90.00") })
			add("10", func(d doc) {
				if d.Breakdown[0].Reason+d.Breakdown[0].ReasonCode == "" {
					d.Breakdown[0].Reason = "because"
				} else {
					d.Breakdown[0].Reason, d.Breakdown[0].ReasonCode = "", ""
				}
			})
		}
	}
	return all
}

func profileBreakages(peppol, german, cii en16931.Profile) []breakage {
	type doc = *en16931.Invoice
	foreign := func(country string, change func(d doc)) func(d doc) {
		return func(d doc) { settled(d, country); change(d) }
	}
	all := []breakage{
		{"PEPPOL-EN16931-R001", german, func(d doc) { d.Process = "" }},
		{"PEPPOL-EN16931-R002", peppol, foreign("BE", func(d doc) { d.Notes = append(d.Notes, en16931.Note{Text: "more"}) })},
		{"PEPPOL-EN16931-R003", peppol, foreign("BE", func(d doc) { d.BuyerReference = "" })},
		{"PEPPOL-EN16931-R004", peppol, func(d doc) { d.Specification = "urn:cen.eu:en16931:2017" }},
		{"PEPPOL-EN16931-R005", peppol, func(d doc) { d.TaxCurrency, d.Totals.TaxAccounting = "EUR", d.Totals.Tax }},
		{"PEPPOL-EN16931-R007", peppol, func(d doc) { d.Process = "urn:other" }},
		{"PEPPOL-EN16931-R010", peppol, func(d doc) { d.Buyer.Electronic = en16931.Identifier{} }},
		{"PEPPOL-EN16931-R010", cii, func(d doc) { d.Buyer.Electronic = en16931.Identifier{} }},
		{"PEPPOL-EN16931-R020", peppol, func(d doc) { d.Seller.Electronic = en16931.Identifier{} }},
		{"PEPPOL-EN16931-R040", peppol, func(d doc) { d.Allowances[0].Percent = dec("11") }},
		{"PEPPOL-EN16931-R041", peppol, func(d doc) { d.Allowances[0].Base = en16931.Decimal{} }},
		{"PEPPOL-EN16931-R042", peppol, func(d doc) { d.Allowances[0].Percent = en16931.Decimal{} }},
		{"PEPPOL-EN16931-R046", peppol, func(d doc) {
			d.Lines[0].Price.Gross, d.Lines[0].Price.Discount = dec("70"), dec("1")
		}},
		{"PEPPOL-EN16931-R055", peppol, func(d doc) { d.TaxCurrency, d.Totals.TaxAccounting = "SEK", dec("-1.00") }},
		{"PEPPOL-EN16931-R061", peppol, func(d doc) { d.Payment.Means[0] = en16931.PaymentMeans{Code: "59"} }},
		{"PEPPOL-EN16931-R110", peppol, func(d doc) {
			d.Period.Start, d.Lines[0].Period.Start = "2026-02-01", "2026-01-01"
		}},
		{"PEPPOL-EN16931-R111", peppol, func(d doc) {
			d.Period.End, d.Lines[0].Period.End = "2026-02-01", "2026-02-02"
		}},
		{"PEPPOL-EN16931-R120", peppol, func(d doc) { d.Lines[0].Price.Net = dec("63.60") }},
		{"PEPPOL-EN16931-R121", peppol, func(d doc) { d.Lines[0].Price.BaseQuantity = dec("-1") }},
		{"PEPPOL-EN16931-R130", peppol, func(d doc) {
			d.Lines[0].Price.BaseQuantity, d.Lines[0].Price.BaseUnit = dec("1"), "KGM"
		}},
		{"PEPPOL-EN16931-F001", peppol, func(d doc) { d.DueDate = "2026-02-30" }},
		{"PEPPOL-EN16931-CL008", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "a@example.com", Scheme: "EM"}
		}},
		{"PEPPOL-EN16931-P0100", peppol, func(d doc) { d.TypeCode = "389" }},
		{"PEPPOL-EN16931-P0101", peppol, func(d doc) { credited(d); d.TypeCode = "261" }},
		{"PEPPOL-EN16931-P0112", peppol, foreign("BE", func(d doc) { d.TypeCode = "384" })},
		{"PEPPOL-COMMON-R040", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "7300010000002", Scheme: "0088"}
		}},
		{"PEPPOL-COMMON-R041", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "987654321", Scheme: "0192"}
		}},
		{"PEPPOL-COMMON-R042", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "1234567", Scheme: "0184"}
		}},
		{"PEPPOL-COMMON-R043", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "0202239952", Scheme: "0208"}
		}},
		{"PEPPOL-COMMON-R049", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "5567321708", Scheme: "0007"}
		}},
		{"PEPPOL-COMMON-R050", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "51824753557", Scheme: "0151"}
		}},
		{"PEPPOL-COMMON-R053", peppol, func(d doc) {
			d.Buyer.Electronic = en16931.Identifier{ID: "12345674", Scheme: "0198"}
		}},
		{"NO-R-001", peppol, foreign("NO", func(d doc) { d.Seller.VATID = "NO987654325" })},
		{"DK-R-002", peppol, foreign("DK", func(d doc) { d.Seller.LegalID = en16931.Identifier{} })},
		{"DK-R-014", peppol, foreign("DK", func(d doc) { d.Seller.LegalID.Scheme = "" })},
		{"DK-R-016", peppol, foreign("DK", func(d doc) {
			credited(d)
			d.Totals.Rounding, d.Totals.Due = d.Totals.Due.Neg(), dec("-1.00")
		})},
		{"DK-R-005", peppol, foreign("DK", func(d doc) { d.Payment.Means[0].Code = "30" })},
		{"DK-R-006", peppol, foreign("DK", func(d doc) {
			d.Payment.Means[0].Code, d.Payment.Means[0].Account.BIC = "42", ""
		})},
		{"SE-R-001", peppol, foreign("SE", func(d doc) { d.Seller.VATID = "SE5567321707" })},
		{"SE-R-002", peppol, foreign("SE", func(d doc) { d.Seller.VATID = "SE55673217070X" })},
		{"SE-R-003", peppol, foreign("SE", func(d doc) { d.Seller.LegalID = en16931.Identifier{ID: "556732170X"} })},
		{"SE-R-004", peppol, foreign("SE", func(d doc) { d.Seller.LegalID = en16931.Identifier{ID: "55673217"} })},
		{"SE-R-013", peppol, foreign("SE", func(d doc) { d.Seller.LegalID = en16931.Identifier{ID: "5567321708"} })},
		{"SE-R-005", peppol, foreign("SE", func(d doc) { d.Seller.TaxID, d.Seller.LegalID.ID = "F", "5567321707" })},
		{"SE-R-006", peppol, foreign("SE", func(d doc) { d.Breakdown[0].Rate = dec("19") })},
		{"NL-R-001", peppol, foreign("NL", func(d doc) { credited(d); d.Preceding = nil })},
		{"NL-R-002", peppol, foreign("NL", func(d doc) { d.Seller.Address.Line1 = "" })},
		{"NL-R-003", peppol, foreign("NL", func(d doc) { d.Seller.LegalID.Scheme = "" })},
		{"NL-R-004", peppol, foreign("NL", func(d doc) { d.Buyer.Address.Line1 = "" })},
		{"NL-R-005", peppol, foreign("NL", func(d doc) { d.Buyer.LegalID.Scheme = "" })},
		{"NL-R-007", peppol, foreign("NL", func(d doc) { d.Payment = en16931.Payment{} })},
		{"NL-R-008", peppol, foreign("NL", func(d doc) { d.Payment.Means[0].Code = "1" })},
		{"NL-R-009", peppol, foreign("NL", func(d doc) { d.Lines[0].OrderLine = "1" })},
	}
	for code, rule := range map[string]string{"G": "P0104", "O": "P0105", "IC": "P0106", "AE": "P0107", "D": "P0108",
		"F": "P0109", "I": "P0110", "J": "P0111"} {
		all = append(all, breakage{"PEPPOL-EN16931-" + rule, peppol, func(d doc) {
			other := "E"
			if code > "C" && code != "G" && code != "O" && code != "IC" {
				other = "G"
			}
			categorised(d, other)
			d.Breakdown[0].ReasonCode = "VATEX-EU-" + code
		}})
	}
	return append(all, germanBreakages(peppol, german, cii)...)
}

func germanBreakages(peppol, german, cii en16931.Profile) (all []breakage) {
	type doc = *en16931.Invoice
	for _, r := range []struct {
		rule, peppol string
		change       func(d doc)
	}{
		{"1", "001", func(d doc) { d.Payment = en16931.Payment{} }},
		{"2", "002", func(d doc) { d.Seller.Contact = en16931.Contact{} }},
		{"3", "003", func(d doc) { d.Seller.Address.City = "" }},
		{"4", "004", func(d doc) { d.Seller.Address.PostCode = "" }},
		{"5", "005", func(d doc) { d.Seller.Contact.Name = "" }},
		{"6", "006", func(d doc) { d.Seller.Contact.Phone = "" }},
		{"7", "007", func(d doc) { d.Seller.Contact.Email = "" }},
		{"8", "008", func(d doc) { d.Buyer.Address.City = "" }},
		{"9", "009", func(d doc) { d.Buyer.Address.PostCode = "" }},
		{"10", "010", func(d doc) { d.Delivery.Address = en16931.Address{PostCode: "53111", Country: "DE"} }},
		{"11", "011", func(d doc) { d.Delivery.Address = en16931.Address{City: "Bonn", Country: "DE"} }},
		{"14", "014", func(d doc) { d.Breakdown[0].Rate = en16931.Decimal{} }},
		{"15", "015", func(d doc) { d.BuyerReference, d.OrderReference = "", "O-1" }},
		{"16", "016", func(d doc) { d.Seller.VATID = "" }},
		{"18", "018", func(d doc) { d.PaymentTerms = "#SKONTO#TAGE=14#PROZENT=2#\n" }},
		{"22", "022", func(d doc) {
			f := en16931.Document{Reference: "1", Content: []byte("x"), MIME: "text/csv", Filename: "a.csv"}
			d.Documents = []en16931.Document{f, f}
		}},
		{"23-a", "023-1", func(d doc) { d.Payment.Means[0].Account = en16931.Account{} }},
		{"23-b", "023-2", func(d doc) { d.Payment.Means[0].Card.Number = "1234" }},
		{"24-a", "024-1", func(d doc) { d.Payment.Means[0] = en16931.PaymentMeans{Code: "48"} }},
		{"24-b", "024-2", func(d doc) { d.Payment.Means[0].Code, d.Payment.Means[0].Card.Number = "48", "1234" }},
		{"25-a", "025-1", func(d doc) { d.Payment.Means[0] = en16931.PaymentMeans{Code: "59"} }},
		{"25-b", "025-2", func(d doc) {
			d.Payment.Means[0].Code, d.Payment.Mandate, d.Payment.Creditor, d.Payment.Means[0].DebitAccount = "59", "M",
				"DE98ZZZ09999999999", "DE89370400440532013000"
		}},
		{"30", "030", func(d doc) {
			d.Payment = en16931.Payment{Mandate: "M-1",
				Means: []en16931.PaymentMeans{{Code: "59", DebitAccount: "DE89370400440532013000"}}}
		}},
		{"31", "031", func(d doc) {
			d.Payment = en16931.Payment{Mandate: "M-1", Creditor: "DE98ZZZ09999999999",
				Means: []en16931.PaymentMeans{{Code: "59"}}}
		}},
	} {
		all = append(all, breakage{"BR-DE-" + r.rule, german, r.change}, breakage{"DE-R-" + r.peppol, peppol, r.change})
		if r.rule != "10" && r.rule != "11" { // CII has no address without its country's sibling elements
			all = append(all, breakage{"BR-DE-" + r.rule, cii, r.change})
		}
	}
	return all
}

// settled moves both parties of a document to another country.
func settled(d *en16931.Invoice, country string) {
	s, b := &d.Seller, &d.Buyer
	s.Address.Country, b.Address.Country = country, country
	s.LegalID, b.LegalID = en16931.Identifier{}, en16931.Identifier{}
	rates := []string{"19", "7"}
	switch country {
	case "BE":
		s.VATID, b.VATID = "BE0202239951", "BE0403170701"
		s.Electronic, b.Electronic = en16931.Identifier{ID: "0202239951", Scheme: "0208"},
			en16931.Identifier{ID: "0403170701", Scheme: "0208"}
	case "NO":
		s.VATID, b.VATID = "NO987654325MVA", "NO974760673MVA"
		s.Electronic, b.Electronic = en16931.Identifier{ID: "987654325", Scheme: "0192"},
			en16931.Identifier{ID: "974760673", Scheme: "0192"}
	case "DK":
		s.VATID, b.VATID = "DK12345674", "DK88146328"
		s.LegalID = en16931.Identifier{ID: "12345674", Scheme: "0184"}
		s.Electronic, b.Electronic = en16931.Identifier{ID: "12345674", Scheme: "0184"},
			en16931.Identifier{ID: "88146328", Scheme: "0184"}
	case "SE":
		s.VATID, b.VATID = "SE556732170701", "SE556036079301"
		s.Electronic, b.Electronic = en16931.Identifier{ID: "5567321707", Scheme: "0007"},
			en16931.Identifier{ID: "5560360793", Scheme: "0007"}
		rates = []string{"25", "12"}
	case "NL":
		s.VATID, b.VATID = "NL010000446B01", "NL002455799B11"
		s.LegalID, b.LegalID = en16931.Identifier{ID: "12345678", Scheme: "0106"},
			en16931.Identifier{ID: "87654321", Scheme: "0106"}
		s.Electronic, b.Electronic = s.LegalID, b.LegalID
	}
	d.Lines[0].Rate, d.Allowances[0].Rate, d.Breakdown[0].Rate = dec(rates[0]), dec(rates[0]), dec(rates[0])
	d.Lines[1].Rate, d.Charges[0].Rate, d.Breakdown[1].Rate = dec(rates[1]), dec(rates[1]), dec(rates[1])
	resettle(d)
}

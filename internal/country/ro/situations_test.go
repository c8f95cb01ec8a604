package ro_test

import (
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

// situations are what happens every day; docs/countries/ro.md has a line for each.
func situations() []packtest.Situation {
	return slices.Concat(buyers(), taxes(), corrections(), terms())
}

func buyers() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Shop sells to a company in Cluj",
			Draft: invoice("S-1"),
			Files: []string{">RO-CJ<", ">RO14399840<", "InvoiceTypeCode>380<", "CIUS-RO:1.0.1"},
		},
		{Name: "Buyer in Bucharest with the sector in the city",
			Draft: draft("S-2", with2(business(), "", "București, Sector 3"), item("Cafea", 1, 1000, vat("21"))),
			Files: []string{">RO-B<", ">SECTOR3<"},
		},
		{Name: "Buyer in Bucharest with county and sector apart",
			Draft: draft("S-3", with2(business(), "B", "sectorul 6"), item("Cafea", 1, 1000, vat("21"))),
			Files: []string{">RO-B<", ">SECTOR6<"},
		},
		{Name: "Buyer in Bucharest without a sector",
			Draft:  draft("S-4", with2(business(), "București", "București"), item("Cafea", 1, 1000, vat("21"))),
			Refuse: "SECTOR1", Field: "customer.address.city",
		},
		{Name: "County by its code",
			Draft: draft("S-5", with2(business(), "RO-TM", "Timișoara"), item("Cafea", 1, 1000, vat("21"))),
			Files: []string{">RO-TM<"},
		},
		{Name: "County in words",
			Draft: draft("S-6", with2(business(), "județul Timiș", "Timișoara"), item("Cafea", 1, 1000, vat("21"))),
			Files: []string{">RO-TM<"},
		},
		{Name: "County that is none",
			Draft:  draft("S-7", with2(business(), "Banat", "Timișoara"), item("Cafea", 1, 1000, vat("21"))),
			Refuse: "county of Romania", Field: "customer.address.province",
		},
		{Name: "No county",
			Draft:  draft("S-8", with2(business(), "", "Timișoara"), item("Cafea", 1, 1000, vat("21"))),
			Refuse: "county of Romania", Field: "customer.address.province",
		},
		{Name: "Buyer without a street",
			Draft:  with(invoice("S-9"), func(d *country.Draft) { d.Transaction.Customer.Address.AddressLine1 = "" }),
			Refuse: "is required", Field: "customer.address.address_line_1",
		},
		{Name: "Buyer without a city",
			Draft:  draft("S-10", with2(business(), "Cluj", ""), item("Cafea", 1, 1000, vat("21"))),
			Refuse: "is required", Field: "customer.address.city",
		},
		{Name: "Person without a number",
			Draft: draft("S-11", person(), item("Carte", 1, 5000, vat("11"))),
			Files: []string{">0000000000000<", ">RO-IS<"},
		},
		{Name: "Person who gives a personal number",
			Draft: with(draft("S-12", person(), item("Carte", 1, 5000, vat("11"))), func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "1960101123456" }),
			Files: []string{">1960101123456<"},
			Not:   []string{">0000000000000<"},
		},
		{Name: "Buyer not registered for VAT",
			Draft: with(invoice("S-13"), func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "14399840" }),
			Files: []string{">14399840<"},
			Not:   []string{"RO14399840"},
		},
		{Name: "Goods to a business in Germany",
			Draft: euros(draft("S-14", abroad("DE", "DE136695976", transaction.Business), item("Mașină", 1, 99999, typed(transaction.TaxIntraEU)))),
			Files: []string{"VATEX-EU-IC", ">DE136695976<", "Livrare intracomunitară"},
		},
		{Name: "Services to a business in Germany",
			Draft: euros(draft("S-15", abroad("DE", "DE136695976", transaction.Business), service(item("Consultanță", 3, 10000, typed(transaction.TaxReverse))))),
			Files: []string{"VATEX-EU-AE", "HUR"},
		},
		{Name: "Export to Switzerland",
			Draft: euros(draft("S-16", abroad("CH", "CHE123456788", transaction.Business), item("Mașină", 1, 99999, typed(transaction.TaxExport)))),
			Files: []string{"VATEX-EU-G"},
		},
		{Name: "Person abroad",
			Draft: euros(draft("S-17", abroad("DE", "", transaction.Individual), item("Carte", 1, 2500, vat("21")))),
			Files: []string{">0000000000000<", ">DE<"},
		},
	}
}

func taxes() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Price with tax of 21 %",
			Draft: invoice("S-18"),
			Files: []string{"Percent>21<", ">300.00<", ">63.00<"},
		},
		{Name: "Books at 11 %",
			Draft: draft("S-19", business(), item("Carte", 2, 5000, vat("11"))),
			Files: []string{"Percent>11<", ">11.00<"},
		},
		{Name: "Two rates on one invoice",
			Draft: draft("S-20", business(), item("Carte", 1, 5000, vat("11")), item("Masă", 1, 50000, vat("21"))),
			Files: []string{">105.00<", ">5.50<"},
		},
		{Name: "Exempt course",
			Draft: draft("S-21", business(), service(item("Curs", 1, 30000, typed(transaction.TaxExempt)))),
			Files: []string{"Scutit de TVA", ">E<"},
		},
		{Name: "Waste under reverse charge",
			Draft: draft("S-22", business(), item("Deșeuri", 1, 100000, typed(transaction.TaxReverse))),
			Files: []string{"VATEX-EU-AE", "Taxare inversă"},
		},
		{Name: "Seller not registered for VAT",
			Draft: with(draft("S-23", business(), item("Tablou", 1, 30000, typed(transaction.TaxExempt))), func(d *country.Draft) { d.Supplier.Settings = country.Settings{"vat_registered": false} }),
			Files: []string{">18547290<"},
			Not:   []string{">RO18547290<"},
		},
		{Name: "Invoice in euros",
			Draft: euros(draft("S-24", business(), item("Masă", 1, 10000, vat("21")))),
			Files: []string{"DocumentCurrencyCode>EUR<", "TaxCurrencyCode>RON<", "currencyID=\"RON\">106.92<"},
		},
		{Name: "Invoice in euros without a rate",
			Draft:  with(draft("S-25", business(), item("Masă", 1, 10000, vat("21"))), func(d *country.Draft) { d.Transaction.CurrencyCode = "EUR" }),
			Refuse: "is required", Field: "exchange_rate",
		},
	}
}

func corrections() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Whole invoice taken back",
			Draft: correct(transaction.Credit, draft("S-26", business(), invoice("S-1").Transaction.Items...), invoice("S-1")),
			Files: []string{"<CreditNote ", "CreditNoteTypeCode>381<", ">S-1<"},
		},
		{Name: "Credit that leaves the buyer to its original",
			Draft: correct(transaction.Credit, draft("S-27", nil, invoice("S-1").Transaction.Items...), invoice("S-1")),
			Files: []string{">RO14399840<", "CreditNoteTypeCode>381<"},
		},
		{Name: "Later discount",
			Draft: correct(transaction.Adjustment, draft("S-28", business(), item("Reducere", 1, -1000, vat("21"))), invoice("S-1")),
			Files: []string{"InvoiceTypeCode>380<", ">-1<", "InvoiceDocumentReference"},
		},
		{Name: "Number without a digit",
			Draft:  invoice("FACTURA"),
			Refuse: "digit", Field: "transaction_number",
		},
		{Name: "Name of more than 100 characters",
			Draft: with(invoice("S-30"), func(d *country.Draft) { d.Transaction.Items[0].Name = strings.Repeat("Denumire ", 15) + "la sfârșit" }),
			Files: []string{"la sfârșit</cbc:Description>"},
		},
		{Name: "Description that has no room",
			Draft:  with(invoice("S-31"), func(d *country.Draft) { d.Transaction.Items[0].Description = strings.Repeat("lung ", 60) }),
			Refuse: "200", Field: "items.0.description",
		},
		{Name: "Long note",
			Draft: with(invoice("S-32"), func(d *country.Draft) { d.Transaction.Note = strings.Repeat("Observație lungă. ", 40) }),
			Files: []string{"lungă.</cbc:Note><cbc:Note>Observație"},
		},
		{Name: "Note that has no room",
			Draft:  with(invoice("S-33"), func(d *country.Draft) { d.Transaction.Note = strings.Repeat("Observație lungă. ", 400) }),
			Refuse: "20 notes", Field: "note",
		},
		{Name: "Discount on a line",
			Draft: with(draft("S-34", business(), func() transaction.Item {
				i := item("Masă", 1, 50000, vat("21"))
				i.Discount = &transaction.LineDiscount{Amount: 5000}
				return i
			}()), func(*country.Draft) {}),
			Files: []string{">50.00<", ">450.00<"},
		},
		{Name: "Discount of the document",
			Draft: draft("S-35", business(), item("Masă", 1, 50000, vat("21")), func() transaction.Item {
				i := item("Voucher", 1, -5000, vat("21"))
				i.Type = transaction.Discount
				return i
			}()),
			Files: []string{"ChargeIndicator>false<", ">Voucher<"},
		},
		{Name: "Freight as a charge",
			Draft: draft("S-36", business(), item("Masă", 1, 50000, vat("21")), func() transaction.Item {
				i := item("Transport", 1, 2000, vat("21"))
				i.Extra = &transaction.Extra{Charge: true, Amount: 2000, Reason: "Transport"}
				return i
			}()),
			Files: []string{"ChargeIndicator>true<", ">Transport<"},
		},
	}
}

func terms() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Paid by card",
			Draft: with(invoice("S-37"), func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: 36300}} }),
			Files: []string{"PaymentMeansCode>48<", ">363.00</cbc:PrepaidAmount>"},
		},
		{Name: "Paid in cash",
			Draft: with(invoice("S-38"), func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Amount: 36300}} }),
			Files: []string{"PaymentMeansCode>10<", ">0.00</cbc:PayableAmount>"},
		},
		{Name: "Paid to an account",
			Draft: invoice("S-39"),
			Files: []string{"PaymentMeansCode>30<", ">RO49AAAA1B31007593840000<"},
		},
		{Name: "Due on a given day",
			Draft: with(invoice("S-40"), func(d *country.Draft) { d.Transaction.DueDate = "2026-11-15" }),
			Files: []string{"DueDate>2026-11-15<"},
		},
		{Name: "Due by the settings",
			Draft: invoice("S-41"),
			Files: []string{"DueDate>2026-11-06<"},
		},
		{Name: "Order and contract",
			Draft: with(invoice("S-42"), func(d *country.Draft) {
				d.Transaction.References = transaction.References{Order: "PO-1", Contract: "C-2"}
			}),
			Files: []string{">PO-1<", ">C-2<"},
		},
		{Name: "Delivered to another county",
			Draft: with(invoice("S-43"), func(d *country.Draft) {
				d.Transaction.Delivery = &transaction.Delivery{Name: "Depozit", Address: address("Brașov", "Brașov")}
			}),
			Files: []string{">RO-BV<", ">Depozit<"},
		},
		{Name: "Self-billed invoice",
			Draft: with(invoice("S-44"), func(d *country.Draft) { d.Transaction.Issuer = business() }),
			Files: []string{"InvoiceTypeCode>389<"},
		},
		{Name: "Self-billed credit",
			Draft:  with(correct(transaction.Credit, draft("S-45", business(), invoice("S-1").Transaction.Items...), invoice("S-1")), func(d *country.Draft) { d.Transaction.Issuer = business() }),
			Refuse: "credit note itself", Field: "issuer",
		},
		{Name: "Rent of a month",
			Draft: with(invoice("S-46"), func(d *country.Draft) { d.Transaction.Period = &transaction.Span{From: "2026-10-01", To: "2026-10-31"} }),
			Files: []string{"StartDate>2026-10-01<", "EndDate>2026-10-31<"},
		},
		{Name: "Files go with the invoice",
			Draft: with(invoice("S-47"), func(d *country.Draft) {
				d.Transaction.Attachments = []transaction.Attachment{{Name: "ore.csv", Type: "text/csv", Content: []byte("a,b\n")}}
			}),
			Files: []string{"filename=\"ore.csv\""},
		},
		{Name: "Sale after midnight",
			Draft: invoice("S-48"),
			Files: []string{"IssueDate>2026-10-07<"},
		},
		{Name: "Supplied on another day",
			Draft: with(invoice("S-49"), func(d *country.Draft) { d.Transaction.DeliveryDate = "2026-10-01" }),
			Files: []string{"ActualDeliveryDate>2026-10-01<"},
		},
		{Name: "Sold by the kilogram",
			Draft: with(invoice("S-50"), func(d *country.Draft) { d.Transaction.Items[0].Unit = "kg" }),
			Files: []string{"unitCode=\"KGM\""},
		},
		{Name: "Unit that the list has not",
			Draft: with(invoice("S-51"), func(d *country.Draft) { d.Transaction.Items[0].Unit = "palet mare" }),
			Files: []string{"unitCode=\"C62\""},
		},
		{Name: "Goods with a bar code",
			Draft: with(invoice("S-52"), func(d *country.Draft) { d.Transaction.Items[0].EAN = "5941234567899" }),
			Files: []string{"schemeID=\"0160\">5941234567899<"},
		},
		{Name: "CPV code for a public body",
			Draft: with(invoice("S-53"), func(d *country.Draft) {
				d.Transaction.Items[0].Classifications = []transaction.Classification{{Scheme: "CPV", Code: "15861000-1"}}
			}),
			Files: []string{"listID=\"STI\"", ">15861000-1<"},
		},
		{Name: "Second tax on a line",
			Draft:  draft("S-54", business(), item("Masă", 1, 50000, vat("21"), vat("11"))),
			Refuse: "at most 1", Field: "items.0.tax_breakdowns",
		},
		{Name: "Seller in Bucharest",
			Draft: invoice("S-55"),
			Files: []string{">SECTOR1<"},
		},
		{Name: "Buyer's reference",
			Draft: with(invoice("S-56"), func(d *country.Draft) { d.Transaction.References.Buyer = "DEP-7" }),
			Files: []string{"BuyerReference>DEP-7<"},
		},
		{Name: "Name of the buyer that has no room",
			Draft:  with(invoice("S-57"), func(d *country.Draft) { d.Transaction.Customer.LegalName = strings.Repeat("Nume ", 50) }),
			Refuse: "200", Field: "customer.legal_name",
		},
		{Name: "Buyer named by trade name, too",
			Draft: with(invoice("S-58"), func(d *country.Draft) { d.Transaction.Customer.TradeName = "La Colț" }),
			Files: []string{">La Colț<"},
		},
		{Name: "Terms of payment",
			Draft: with(invoice("S-59"), func(d *country.Draft) { d.Transaction.PaymentTerms = "2% la 10 zile" }),
			Files: []string{">2% la 10 zile<"},
		},
		{Name: "Terms that have no room",
			Draft:  with(invoice("S-60"), func(d *country.Draft) { d.Transaction.PaymentTerms = strings.Repeat("termen ", 60) }),
			Refuse: "300", Field: "payment_terms",
		},
	}
}

func TestEverydaySituations(t *testing.T) {
	t.Parallel()
	ch, send := packtest.Beside(t, pack(), packtest.Options{Cases: cases(), Credentials: credentials()})
	packtest.Bench{Pack: pack(), Page: "../../../docs/countries/ro.md", Channel: ch, Send: send}.Try(t, situations())
}

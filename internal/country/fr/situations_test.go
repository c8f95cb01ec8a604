package fr_test

import (
	"slices"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

// situations are what happens every day; docs/countries/fr.md has a line for each.
func situations() []packtest.Situation {
	return slices.Concat(buyers(), regions(), taxes(), corrections(), payments(), terms(), refusals())
}

func coffee(number string, b *transaction.Party) country.Draft {
	return draft(number, b, item("Café", 1, 1000, vat("20")))
}

func buyers() []packtest.Situation {
	noVAT := business()
	noVAT.TaxNumber = ""
	vatOnly := business()
	vatOnly.EntityNumber = ""
	siret := business()
	siret.EntityNumber = "432 109 875 00026"
	siret.EntityNumber, siret.TaxNumber = "43210987400026", ""
	routed := business()
	routed.Electronic = &transaction.ElectronicAddress{Scheme: "0225", ID: "552100554_ACHATS"}
	addressed := business()
	addressed.EntityNumber, addressed.TaxNumber = "", ""
	addressed.Electronic = &transaction.ElectronicAddress{Scheme: "0225", ID: "552100554_55210055400013"}
	monaco := in(business(), "FR", "06320", "Cap-d'Ail")
	return []packtest.Situation{
		{Name: "Shop sells to a company in Lyon", Draft: invoice("S-1"),
			Files: []string{">B1<", ">552100554<", `schemeID="0002"`, ">B2B<", "TypeCode>380<"}},
		{Name: "Buyer with a SIREN and no VAT number", Draft: coffee("S-2", noVAT), Files: []string{">552100554<"}, Not: []string{"FR96552100554"}},
		{Name: "Buyer with a VAT number alone", Draft: coffee("S-3", vatOnly), Files: []string{`schemeID="0002">552100554<`, ">FR96552100554<"}},
		{Name: "Establishment of the buyer (SIRET)", Draft: coffee("S-4", siret), Files: []string{`schemeID="0009">43210987400026<`, `schemeID="0002">432109874<`}},
		{Name: "Routing address of the buyer's department", Draft: coffee("S-5", routed), Files: []string{`schemeID="0225">552100554_ACHATS<`}},
		{Name: "Buyer named by its routing address alone", Draft: coffee("S-6", addressed), Files: []string{`schemeID="0225">552100554_55210055400013<`, `schemeID="0002">552100554<`}},
		{Name: "Address from the directory", Draft: with(coffee("S-7", siret), func(d *country.Draft) { d.Learned = `{"address":"432109874_43210987400026"}` }),
			Files: []string{`schemeID="0225">432109874_43210987400026<`}},
		{Name: "Seller's own establishment (SIRET)", Draft: coffee("S-8", business()), Files: []string{`schemeID="0009">73282932000074<`}},
		{Name: "Seller with its own routing address", Draft: set(set(coffee("S-9", business()), "endpoint_scheme", "0225"), "endpoint_id", "732829320_VENTES"),
			Files: []string{`schemeID="0225">732829320_VENTES<`}},
		{Name: "Trade name of the buyer", Draft: with(coffee("S-10", business()), func(d *country.Draft) { d.Transaction.Customer.TradeName = "Chez Ana" }),
			Files: []string{">Chez Ana<"}},
		{Name: "Buyer beside Monaco", Draft: coffee("S-11", monaco), Files: []string{">06320<"}},
		{Name: "Wholesale of a marketplace", Draft: with(draft("S-12", business(), item("Article", 12, 250, vat("20"))), func(d *country.Draft) {
			d.Transaction.References.Order = "MP-778812"
		}), Files: []string{">MP-778812<"}},
	}
}

func regions() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Shop in Réunion at 8.5 %", Draft: draft("R-1", in(business(), "RE", "97400", "Saint-Denis"), item("Café", 1, 1000, vat("8.5"))),
			Files: []string{">8.5<", ">RE<"}},
		{Name: "Food in Martinique at 2.1 %", Draft: draft("R-2", in(business(), "FR", "97200", "Fort-de-France"), item("Farine", 10, 100, vat("2.1"))),
			Files: []string{">2.1<"}},
		{Name: "Press overseas at 1.05 %", Draft: draft("R-3", in(business(), "GP", "97100", "Basse-Terre"), item("Journal", 100, 200, vat("1.05"))),
			Files: []string{">1.05<", ">GP<"}},
		{Name: "Goods sent from the mainland to Guadeloupe", Draft: draft("R-4", in(business(), "GP", "97100", "Basse-Terre"), item("Machine", 1, 90000, typed(transaction.TaxExport))),
			Files: []string{"VATEX-EU-G", ">G<"}},
		{Name: "Livestock in Corsica at 0.9 %", Draft: draft("R-5", in(business(), "FR", "20000", "Ajaccio"), item("Brebis", 4, 15000, vat("0.9"))),
			Files: []string{">0.9<"}},
		{Name: "Food in Corsica at 2.1 %", Draft: draft("R-6", in(business(), "FR", "20200", "Bastia"), item("Fromage", 5, 1200, vat("2.1"))),
			Files: []string{">2.1<"}},
		{Name: "Hotel in Corsica at 10 %", Draft: draft("R-7", in(business(), "FR", "20200", "Bastia"), service(item("Nuitée", 2, 9000, vat("10")))),
			Files: []string{">10<", ">S1<"}},
		{Name: "Fuel in Corsica at 13 %", Draft: draft("R-8", in(business(), "FR", "20000", "Ajaccio"), item("Gazole", 100, 150, vat("13"))),
			Files: []string{">13<"}},
	}
}

func taxes() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Price with tax of 20 %", Draft: invoice("T-1"), Files: []string{">302.50<", ">60.50<", ">363.00<"}},
		{Name: "Books at 5.5 %", Draft: draft("T-2", business(), item("Livre", 2, 1500, vat("5.5"))), Files: []string{">5.5<", ">1.65<"}},
		{Name: "Restaurant at 10 %", Draft: draft("T-3", business(), service(item("Repas", 4, 2500, vat("10")))), Files: []string{">10<", ">S1<"}},
		{Name: "Medicine at 2.1 %", Draft: draft("T-4", business(), item("Médicament", 1, 10000, vat("2.1"))), Files: []string{">2.10<"}},
		{Name: "Several rates on one invoice", Draft: draft("T-5", business(), item("Livre", 1, 5000, vat("5.5")), item("Lampe", 1, 5000, vat("20"))),
			Files: []string{">2.75<", ">10.00<"}},
		{Name: "Goods with their assembly", Draft: draft("T-6", business(), item("Cuisine", 1, 500000, vat("20")), service(item("Pose", 8, 5000, vat("20")))),
			Files: []string{">M1<"}},
		{Name: "Freelancer in franchise", Draft: set(with(draft("T-7", business(), service(item("Développement", 5, 40000, typed(transaction.TaxExempt)))),
			func(d *country.Draft) { d.Supplier.TaxNumber = "732829320" }), "vat_regime", "franchise"),
			Files: []string{"VATEX-FR-FRANCHISE", "art. 293 B du CGI", `schemeID="FC">732829320<`}, Not: []string{`schemeID="VA">FR44`}},
		{Name: "Franchise with a VAT number", Draft: set(draft("T-8", business(), service(item("Dessin", 1, 40000, typed(transaction.TaxExempt)))), "vat_regime", "franchise"),
			Files: []string{"VATEX-FR-FRANCHISE", ">FR44732829320<"}},
		{Name: "Training that is exempt", Draft: draft("T-9", business(), service(item("Formation", 1, 100000, coded(transaction.TaxExempt, "VATEX-FR-CGI261-4")))),
			Files: []string{"VATEX-FR-CGI261-4", "art. 261 du CGI"}},
		{Name: "Subcontractor in construction", Draft: draft("T-10", business(), service(item("Maçonnerie", 1, 250000, typed(transaction.TaxReverse)))),
			Files: []string{"VATEX-EU-AE", "Autoliquidation"}},
		{Name: "Services on debits", Draft: set(draft("T-11", business(), service(item("Audit", 1, 100000, vat("20")))), "vat_on_debits", true),
			Files: []string{"DueDateTypeCode>5<"}},
		{Name: "Services on payment", Draft: draft("T-12", business(), service(item("Audit", 1, 100000, vat("20")))), Files: []string{"DueDateTypeCode>72<"}},
		{Name: "Outside the scope of VAT", Draft: draft("T-13", business(), service(item("Indemnité", 1, 50000, typed(transaction.TaxOutside)))),
			Files: []string{"VATEX-EU-O", "non soumise"}, Not: []string{"FR44732829320"}},
		{Name: "Three lines of one cent each", Draft: draft("T-14", business(), item("Vis", 1, 99, packtest.VAT("20", transaction.Included)),
			item("Clou", 1, 99, packtest.VAT("20", transaction.Included)), item("Cheville", 1, 99, packtest.VAT("20", transaction.Included))), Files: []string{">2.97<"}},
	}
}

func corrections() []packtest.Situation {
	plain := invoice("S-1") // it is with the double
	return []packtest.Situation{
		{Name: "Whole invoice taken back", Draft: correct(transaction.Credit, draft("C-1", business(), plain.Transaction.Items...), plain),
			Files: []string{"TypeCode>381<", ">S-1<", ">20261007<"}},
		{Name: "Credit that leaves the buyer to its original", Draft: correct(transaction.Credit, draft("C-2", nil, plain.Transaction.Items...), plain),
			Files: []string{"TypeCode>381<", ">552100554<"}},
		{Name: "Later discount", Draft: correct(transaction.Adjustment, draft("C-3", business(), item("Ristourne", 1, -1000, vat("20"))), plain),
			Files: []string{"TypeCode>380<", ">-10.00<", ">S-1<"}},
		{Name: "Forgotten line", Draft: correct(transaction.Adjustment, draft("C-4", business(), item("Supplément", 1, 2000, vat("20"))), plain),
			Files: []string{"TypeCode>380<", ">20.00<", ">S-1<"}},
	}
}

func payments() []packtest.Situation {
	return []packtest.Situation{
		{Name: "Paid by card", Draft: paid(coffee("P-1", business()), "CARD"), Files: []string{">B2<", "TypeCode>48<", "DuePayableAmount>0.00<", ">20261007<"}},
		{Name: "Paid in cash", Draft: paid(coffee("P-2", business()), "CASH"), Files: []string{">B2<", "TypeCode>10<"}},
		{Name: "Service paid on another day", Draft: with(paid(draft("P-3", business(), service(item("Taxi", 1, 5000, vat("10")))), "CARD"), func(d *country.Draft) {
			d.Transaction.Payments[0].Date = "2026-10-05"
		}), Files: []string{">S2<", "DateTimeString format=\"102\">20261005<"}},
		{Name: "Deposit that was paid", Draft: with(draft("P-4", business(), item("Canapé", 1, 100000, vat("20"))), func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: 30000}, {Type: "TRANSFER", Amount: 90000}}
		}), Files: []string{">B1<", "TotalPrepaidAmount>300.00<", "DuePayableAmount>900.00<"}},
		{Name: "To an account", Draft: coffee("P-5", business()), Files: []string{">FR7630006000011234567890189<", "TypeCode>58<"}},
		{Name: "Due on a given day", Draft: with(coffee("P-6", business()), func(d *country.Draft) { d.Transaction.DueDate = "2026-12-31" }), Files: []string{">20261231<"}},
		{Name: "Discount for early payment", Draft: set(coffee("P-7", business()), "early_discount", "Escompte de 1 % à 10 jours."), Files: []string{"Escompte de 1 %"}},
		{Name: "Own words about late payment", Draft: set(set(coffee("P-8", business()), "late_penalties", "Pénalités : 12 % l'an."), "recovery_charges", "Frais : 40 €, plus les frais réels."),
			Files: []string{"12 % l'an", "plus les frais réels"}},
	}
}

func terms() []packtest.Situation {
	half := item("Tissu", 1, 1999, vat("20"))
	half.Quantity, half.Unit = num.MakeAmount(12345, 4), "m"
	discounted := item("Chaise", 4, 5000, vat("20"))
	discounted.Discount = &transaction.LineDiscount{Amount: 2000}
	off := item("Remise", 1, -1000, vat("20"))
	off.Type = transaction.Discount
	bars := item("Thé", 1, 500, vat("5.5"))
	bars.EAN = "3017620422003"
	return []packtest.Situation{
		{Name: "Discount on a line", Draft: draft("M-1", business(), discounted), Files: []string{"ActualAmount>20.00<", ">180.00<"}},
		{Name: "Discount of the document", Draft: draft("M-2", business(), item("Table", 1, 20000, vat("20")), off), Files: []string{"AllowanceTotalAmount>10.00<"}},
		{Name: "Quantity with four decimals", Draft: draft("M-3", business(), half), Files: []string{">1.2345<", "MTR"}},
		{Name: "Bar code", Draft: draft("M-4", business(), bars), Files: []string{">3017620422003<"}},
		{Name: "Note of the seller", Draft: with(coffee("M-5", business()), func(d *country.Draft) { d.Transaction.Note = "Merci de votre confiance." }), Files: []string{"Merci de votre confiance"}},
		{Name: "Order and contract", Draft: with(coffee("M-6", business()), func(d *country.Draft) {
			d.Transaction.References = transaction.References{Order: "BC-77", Contract: "CT-5", Buyer: "SERVICE-3"}
		}), Files: []string{">BC-77<", ">CT-5<", ">SERVICE-3<"}},
		{Name: "Rent of a month", Draft: with(draft("M-7", business(), service(item("Loyer", 1, 150000, vat("20")))), func(d *country.Draft) {
			d.Transaction.Period = &transaction.Span{From: "2026-10-01", To: "2026-10-31"}
		}), Files: []string{">20261031<"}},
		{Name: "Sale after midnight in Paris", Draft: coffee("M-8", business()), Files: []string{"DateTimeString format=\"102\">20261007<"}},
		{Name: "Supplied on another day", Draft: with(coffee("M-9", business()), func(d *country.Draft) { d.Transaction.DeliveryDate = "2026-10-01" }), Files: []string{">20261001<"}},
		{Name: "Invoice in dollars", Draft: dollars(draft("M-10", business(), item("Machine", 1, 99999, vat("20")))), Files: []string{"TaxCurrencyCode>EUR<", ">184.30<"}},
		{Name: "Self-billed invoice", Draft: with(invoice("M-11"), func(d *country.Draft) { d.Transaction.Issuer = business() }), Files: []string{"TypeCode>389<"}},
		{Name: "Number with a slash", Draft: coffee("FA/2026-10+7", business()), Files: []string{">FA/2026-10+7<"}},
		{Name: "UBL by the settings", Draft: set(coffee("M-12", business()), "format", "UBL"), Files: []string{"ProfileID>B1<", "#PMT#", "#BAR#B2B"}},
		{Name: "Credit note in UBL", Draft: set(correct(transaction.Credit, draft("M-13", business(), item("Café", 1, 1000, vat("20"))), invoice("S-1")), "format", "UBL"),
			Files: []string{"CreditNoteTypeCode>381<", ">S-1<"}},
	}
}

func refusals() []packtest.Situation {
	wrong := business()
	wrong.EntityNumber, wrong.TaxNumber = "123456789", ""
	none := business()
	none.EntityNumber, none.TaxNumber = "", ""
	town := business()
	town.EntityNumber, town.TaxNumber = "217500016", ""
	other := business()
	other.TaxNumber = "FR83404833048"
	elsewhere := business()
	elsewhere.Electronic = &transaction.ElectronicAddress{Scheme: "0225", ID: "404833048"}
	fine := item("Fil", 1, 100, vat("20"))
	fine.Quantity = num.MakeAmount(123456, 6)
	return []packtest.Situation{
		{Name: "SIREN with a wrong digit", Draft: coffee("X-1", wrong), Refuse: "right check digit", Field: "customer.entity_number"},
		{Name: "Business without a number", Draft: coffee("X-2", none), Refuse: "is required", Field: "customer.entity_number"},
		{Name: "Town hall", Draft: coffee("X-3", town), Refuse: "Chorus Pro", Field: "customer.entity_number"},
		{Name: "VAT number of another business", Draft: coffee("X-4", other), Refuse: "another business", Field: "customer.tax_information.tax_number"},
		{Name: "Routing address of another business", Draft: coffee("X-5", elsewhere), Refuse: "begin with the SIREN", Field: "customer.electronic_address"},
		{Name: "Rate that France does not have", Draft: draft("X-6", business(), item("Café", 1, 1000, vat("19"))), Refuse: "is not a VAT rate", Field: "items.0.tax_breakdowns.0.rate"},
		{Name: "Quantity with six decimals", Draft: draft("X-7", business(), fine), Refuse: "at most 4 decimals", Field: "items.0.quantity"},
		{Name: "Zero without a reason", Draft: draft("X-8", business(), item("Café", 1, 1000, vat("0"))), Refuse: "must say why there is no tax", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Second tax on a line", Draft: draft("X-9", business(), item("Café", 1, 1000, vat("20"), vat("5.5"))), Refuse: "must have at most 1", Field: "items.0.tax_breakdowns"},
		{Name: "Consumer", Draft: coffee("X-10", person()), Refuse: "told by period", Field: "customer"},
		{Name: "Goods to a business in Germany", Draft: draft("X-11", german(), item("Machine", 1, 1000, typed(transaction.TaxIntraEU))), Refuse: "told by period", Field: "customer.address.country_code"},
		{Name: "Business that no directory has", Draft: with(coffee("X-12", business()), func(d *country.Draft) { d.Learned = `{"unlisted":true}` }), Refuse: "told by period", Field: "customer"},
	}
}

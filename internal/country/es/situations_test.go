package es_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

type situation = packtest.Situation

// channelOf is a channel that prepares and is never sent with.
var channelOf = sync.OnceValue(func() country.Channel {
	ch, err := es.Pack().Connect(country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: http.DefaultClient})
	if err != nil {
		panic(err)
	}
	return ch
})

func typed(kind string) transaction.Tax { return entry("VAT", "0", kind, "") }

func entry(regime, rate, kind, code string) transaction.Tax {
	return transaction.Tax{Rate: percent(rate), Regime: regime, Mode: transaction.Included, Type: kind, Code: code}
}

func goods(price int64, tax transaction.Tax) transaction.Item { return line("Género", price, "", tax) }

func work(price int64, tax transaction.Tax) transaction.Item {
	item := line("Servicio", price, "", tax)
	item.Type = transaction.Services
	return item
}

// onMargin is a line that is taxed on its margin.
func onMargin(price int64, code, margin string) transaction.Item {
	i := goods(price, entry("VAT", "0", "", code))
	i.Classifications = []transaction.Classification{{Scheme: "MARGIN", Code: margin}}
	return i
}

// at is somebody at a place, with a number or without.
func at(kind, code, postal, number string) *transaction.Party {
	return &transaction.Party{LegalName: "Cliente", Type: kind, TaxNumber: number,
		Address: &transaction.Address{CountryCode: code, PostalCode: postal, AddressLine1: "Calle Mayor 1"}}
}

func settled(d country.Draft, change func(*country.Draft)) country.Draft {
	change(&d)
	return d
}

const (
	company = transaction.Business
	private = transaction.Individual
	madrid  = "28001"
)

// shopSituations: simplified or full.
func shopSituations() []situation {
	vat := entry("VAT", "21", "", "")
	low := func(d country.Draft) country.Draft {
		return settled(d, func(d *country.Draft) { d.Supplier.Settings = country.Settings{"simplified_limit": "400"} })
	}
	marked := goods(12100, vat)
	marked.Classifications = []transaction.Classification{{Scheme: "ES", Code: "7273"}}
	costly := goods(300_001, vat)
	costly.Classifications = marked.Classifications
	plain := []string{"TipoFactura>F2<", "title: Factura simplificada"}
	return []situation{
		{Name: "A ticket of a shop", Draft: draft("S-1", nil, goods(12100, vat)), Files: plain,
			Not: []string{"Destinatarios", "Art61d"}},
		{Name: "A ticket of 3,000.00 €", Draft: draft("S-2", nil, goods(300_000, vat)),
			Files: append(plain, "ImporteTotal>3000.00<"), Not: []string{"Art61d"}},
		{Name: "A ticket of 3,000.01 €", Draft: draft("S-3", nil, goods(300_001, vat)), Refuse: "may not exceed 3000.00",
			Field: "customer"},
		{Name: "A consumer with a name and no NIF", Draft: draft("S-4", at(private, "ES", madrid, ""), goods(12100, vat)),
			Files: plain, Not: []string{"Destinatarios", "Art61d"}},
		{Name: "A consumer without NIF buys for 12,100 €",
			Draft: draft("S-5", at(private, "ES", madrid, ""), goods(1_210_000, vat)), Refuse: "names its customer's NIF",
			Field: "customer.tax_information.tax_number"},
		{Name: "A consumer with a NIF buys for 12,100 €",
			Draft: draft("S-6", at(private, "ES", madrid, "12345678Z"), goods(1_210_000, vat)),
			Files: []string{"TipoFactura>F1<", "<sf:NIF>12345678Z<", "title: Factura"}},
		{Name: "A freelancer's ticket of 400.00 €", Draft: low(draft("S-7", nil, work(40_000, vat))), Files: plain},
		{Name: "A freelancer's ticket of 400.01 €", Draft: low(draft("S-8", nil, work(40_001, vat))),
			Refuse: "may not exceed 400.00", Field: "customer"},
		{Name: "A ticket with the customer's NIF", Draft: draft("S-9", at(company, "ES", madrid, "A28015865"), marked),
			Files: []string{"TipoFactura>F1<", "FacturaSimplificadaArt7273>S<", "<sf:NIF>A28015865<",
				"title: Factura simplificada"}},
		{Name: "A ticket with a NIF above 3,000 €", Draft: draft("S-10", at(company, "ES", madrid, "A28015865"), costly),
			Refuse: "3000.00", Field: "items"},
		{Name: "A French tourist in the shop", Draft: draft("S-11", at(private, "FR", "75001", ""), goods(12100, vat)),
			Files: plain, Not: []string{"Art61d"}},
		{Name: "A consumer who shows a passport",
			Draft: draft("S-12", settledParty(at(private, "US", "", "X1234567"), "03"), goods(605_000, vat)),
			Files: []string{"TipoFactura>F1<",
				"<sf:CodigoPais>US</sf:CodigoPais>\n<sf:IDType>03</sf:IDType>\n<sf:ID>X1234567<"}},
		{Name: "A passport shown by somebody who lives in Spain",
			Draft: draft("S-13", settledParty(at(private, "ES", madrid, "X1234567"), "03"), goods(605_000, vat)),
			Files: []string{"<sf:CodigoPais>ES</sf:CodigoPais>\n<sf:IDType>03<"}},
		{Name: "A certificate of residence", Draft: draft("S-14", settledParty(at(private, "MA", "", "R-55"), "05"),
			goods(605_000, vat)), Files: []string{"<sf:IDType>05<"}},
		{Name: "Another document of a foreigner",
			Draft: draft("S-15", settledParty(at(private, "GB", "", "DL-77"), "06"), goods(605_000, vat)),
			Files: []string{"<sf:CodigoPais>GB</sf:CodigoPais>\n<sf:IDType>06<"}},
		{Name: "Another document of a Spaniard",
			Draft:  draft("S-16", settledParty(at(private, "ES", madrid, "DL-77"), "06"), goods(605_000, vat)),
			Refuse: "a passport is 03", Field: "customer.tax_information.tax_number"},
		{Name: "A person whom the census does not have",
			Draft: draft("S-17", settledParty(at(private, "ES", madrid, "12345678Z"), "07"), goods(605_000, vat)),
			Files: []string{"<sf:CodigoPais>ES</sf:CodigoPais>\n<sf:IDType>07</sf:IDType>\n<sf:ID>12345678Z<"}},
		{Name: "A company whom the census does not have",
			Draft:  draft("S-18", settledParty(at(company, "ES", madrid, "A28015865"), "07"), goods(605_000, vat)),
			Refuse: "natural person", Field: "customer.tax_information.tax_number"},
	}
}

func settledParty(p *transaction.Party, regime string) *transaction.Party {
	p.TaxRegime = regime
	return p
}

// placeSituations: territory and zero rates.
func placeSituations() []situation {
	zero := typed("")
	e2, n2 := []string{"ClaveRegimen>02<", "OperacionExenta>E2<"}, "CalificacionOperacion>N2<"
	flagged := []string{"TipoFactura>F2<", "FacturaSinIdentifDestinatarioArt61d>S<", "title: Factura\n"}
	german := at(company, "DE", "10115", "DE111111125")
	irish := at(company, "GB", "BT1 5GS", "XI110305878")
	islander := at(company, "ES", "35001", "A28015865")
	shipping := work(1000, zero)
	shipping.Name = "Portes"
	ancillary := shipping
	ancillary.Ancillary = true
	return []situation{
		{Name: "Goods sent to a business in Las Palmas", Draft: draft("S-30", islander, goods(10000, zero)), Files: e2},
		{Name: "Goods sent to a consumer in Tenerife",
			Draft: draft("S-31", at(private, "IC", "38001", ""), goods(10000, zero)), Files: append(flagged, e2...)},
		{Name: "Goods sent to Melilla", Draft: draft("S-32", at(company, "EA", "52001", "A28015865"), goods(10000, zero)),
			Files: e2},
		{Name: "Services to a business in Las Palmas", Draft: draft("S-33", islander, work(10000, zero)),
			Files: []string{"ClaveRegimen>08<", n2}},
		{Name: "Services to a business in Ceuta, called REVERSE",
			Draft: draft("S-34", at(company, "ES", "51001", "A28015865"), work(10000, typed(transaction.TaxReverse))),
			Files: []string{"ClaveRegimen>08<", n2}},
		{Name: "Services to a consumer in Las Palmas",
			Draft: draft("S-35", at(private, "ES", "35001", ""), work(12100, entry("VAT", "21", "", ""))),
			Files: []string{"ClaveRegimen>01<", "CalificacionOperacion>S1<"}},
		{Name: "Goods exported to the United States",
			Draft: draft("S-36", at(company, "US", "10001", "12-3456789"), goods(10000, zero)),
			Files: append(e2, "<sf:CodigoPais>US</sf:CodigoPais>\n<sf:IDType>04<")},
		{Name: "Goods exported to a business whose number nobody knows",
			Draft: draft("S-37", at(company, "US", "10001", ""), goods(1_210_000, zero)), Files: append(flagged, e2...)},
		{Name: "Goods exported to a consumer for 12,100 €",
			Draft: draft("S-38", at(private, "CH", "8001", ""), goods(1_210_000, zero)), Files: append(flagged, e2...)},
		{Name: "Exported goods and their shipping",
			Draft: draft("S-39", at(company, "US", "10001", "12-3456789"), goods(10000, zero), shipping),
			Files: append(e2, "NoSujeto>110.00<"), Not: []string{"N2"}},
		{Name: "Services to a business in Switzerland",
			Draft: draft("S-40", at(company, "CH", "8001", "CHE-1"), work(10000, zero)),
			Files: []string{"ClaveRegimen>01<", n2}},
		{Name: "Services to a consumer in Switzerland",
			Draft: draft("S-41", at(private, "CH", "8001", ""), work(10000, zero)), Files: append(flagged, n2)},
		{Name: "Services called EXPORT", Draft: draft("S-42", at(company, "CH", "8001", "CHE-1"),
			work(10000, typed(transaction.TaxExport))), Refuse: "OUTSIDE", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Services abroad to nobody", Draft: draft("S-43", nil, work(10000, entry("VAT", "0", "", "N2"))),
			Refuse: "article 4.4", Field: "customer"},
		{Name: "Goods to a business in Germany", Draft: draft("S-44", german, goods(10000, zero)),
			Files: []string{"ClaveRegimen>01<", "OperacionExenta>E5<", "<sf:IDType>02</sf:IDType>\n<sf:ID>DE111111125<"}},
		{Name: "Goods to a business in Germany with their shipping",
			Draft: draft("S-45", german, goods(10000, zero), shipping),
			Files: []string{"OperacionExenta>E5<", "NoSujeto>110.00<"}, Not: []string{"N2"}},
		{Name: "Goods to a business in Germany with shipping that says so",
			Draft: draft("S-45-1", german, goods(10000, typed(transaction.TaxIntraEU)), ancillary),
			Files: []string{"OperacionExenta>E5<", "NoSujeto>110.00<"}, Not: []string{"N2"}},
		{Name: "Shipping with a rate of its own beside goods for Germany",
			Draft: draft("S-45-2", german, goods(10000, zero), func() transaction.Item {
				i := ancillary
				i.Taxes = []transaction.Tax{entry("VAT", "21", "", "")}
				return i
			}()), Refuse: "rate and type of goods", Field: "items.1.ancillary"},
		{Name: "Shipping that says so beside nothing", Draft: draft("S-45-3", german, ancillary), Refuse: "needs goods",
			Field: "items.0.ancillary"},
		{Name: "A rate of 0 in Spain that says nothing",
			Draft:  draft("S-45-4", at(company, "ES", madrid, "A28015865"), work(10000, zero)),
			Refuse: "which zero it is: EXEMPT (E1", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "A lesson that says it is exempt",
			Draft: draft("S-45-5", at(company, "ES", madrid, "A28015865"), work(10000, typed(transaction.TaxExempt))),
			Files: []string{"OperacionExenta>E1<"}},
		{Name: "Goods at 0 to a consumer in France",
			Draft: draft("S-45-6", at(private, "FR", "75001", ""), goods(10000, zero)), Refuse: "one stop shop",
			Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Services at 0 to a consumer in Germany",
			Draft: draft("S-45-7", at(private, "DE", "10115", ""), work(10000, zero)), Refuse: "one stop shop",
			Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Services at 0 to a consumer in Las Palmas",
			Draft: draft("S-45-8", at(private, "ES", "35001", ""), work(10000, zero)), Refuse: "69.Uno.2",
			Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Services to a business in Germany", Draft: draft("S-46", german, work(10000, zero)),
			Files: []string{"ClaveRegimen>01<", n2}},
		{Name: "Services called INTRA_EU", Draft: draft("S-47", german, work(10000, typed(transaction.TaxIntraEU))),
			Refuse: "REVERSE", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "A German address with a Spanish NIF, INTRA_EU",
			Draft:  draft("S-48", at(company, "DE", "10115", "A28015865"), goods(10000, typed(transaction.TaxIntraEU))),
			Refuse: "VAT number", Field: "customer.tax_information.tax_number"},
		{Name: "A German address with a Spanish NIF, taxed",
			Draft: draft("S-49", at(company, "DE", "10115", "ESA28015865"), goods(12100, entry("VAT", "21", "", ""))),
			Files: []string{"<sf:NIF>A28015865<"}, Not: []string{"IDOtro"}},
		{Name: "A person abroad called INTRA_EU",
			Draft:  draft("S-50", at(private, "DE", "10115", "12345"), goods(10000, typed(transaction.TaxIntraEU))),
			Refuse: "VAT number", Field: "customer.tax_information.tax_number"},
		{Name: "Goods to a business in Northern Ireland", Draft: draft("S-51", irish, goods(10000, zero)),
			Files: []string{"OperacionExenta>E5<", "<sf:ID>XI110305878<"}},
		{Name: "Goods to a business in Réunion",
			Draft: draft("S-51-1", at(company, "FR", "97400", "FR61954506077"), goods(10000, zero)), Files: e2,
			Not: []string{"E5"}},
		{Name: "Goods to a business in Réunion, called INTRA_EU",
			Draft:  draft("S-51-2", at(company, "RE", "97400", "FR61954506077"), goods(10000, typed(transaction.TaxIntraEU))),
			Refuse: "VAT does not hold in Réunion", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "Goods to a business in Åland",
			Draft: draft("S-51-3", at(company, "FI", "22100", "FI20774740"), goods(10000, zero)), Files: e2,
			Not: []string{"E5"}},
		{Name: "Goods to a business in Monaco, called INTRA_EU",
			Draft: draft("S-51-4", at(company, "MC", "98000", "FR61954506077"), goods(10000, typed(transaction.TaxIntraEU))),
			Files: []string{"OperacionExenta>E5<", "<sf:IDType>02</sf:IDType>\n<sf:ID>FR61954506077<"}},
		{Name: "Services to a business in Büsingen",
			Draft: draft("S-51-5", at(company, "DE", "78266", "DE111111125"), work(10000, zero)),
			Files: []string{n2, "ClaveRegimen>01<"}},
		{Name: "Building work with reverse charge",
			Draft: draft("S-52", at(company, "ES", madrid, "A28015865"), work(10000, typed(transaction.TaxReverse))),
			Files: []string{"CalificacionOperacion>S2<", "TipoImpositivo>0<", "words: Inversión del sujeto pasivo"}},
		{Name: "Reverse charge to a consumer abroad",
			Draft: draft("S-53", at(private, "DE", "10115", ""), work(10000, typed(transaction.TaxReverse))), Refuse: "OUTSIDE",
			Field: "items.0.tax_breakdowns.0.type"},
		{Name: "A French consumer with French VAT (OSS)",
			Draft: draft("S-54", at(private, "FR", "75001", ""), goods(12000, entry("OSS", "20", "", ""))),
			Files: append(flagged, "ClaveRegimen>17<", n2, "NoSujeto>120.00<", "ImporteTotal>120.00<", "CuotaTotal>0.00<"),
			Not:   []string{"TipoImpositivo", "CuotaRepercutida"}},
		{Name: "OSS to a business", Draft: draft("S-55", german, goods(11900, entry("OSS", "19", "", ""))),
			Refuse: "consumers", Field: "items.0.tax_breakdowns.0.code"},
		{Name: "OSS within Spain", Draft: draft("S-56", at(private, "ES", madrid, ""),
			goods(12000, entry("OSS", "20", "", ""))), Refuse: "another member state", Field: "items.0.tax_breakdowns.0.code"},
	}
}

// islandSituations: suppliers under IGIC and IPSI.
func islandSituations() []situation {
	from := func(postal string, d country.Draft) country.Draft {
		return settled(d, func(d *country.Draft) {
			d.Supplier.Address = transaction.Address{CountryCode: "ES", PostalCode: postal}
			if es.Pack().ZoneOf(d.Supplier.Address) != "" {
				d.Location = time.FixedZone("WEST", 60*60) // what the caller makes of it
			}
		})
	}
	igic, ipsi := entry("IGIC", "7", "", ""), entry("IPSI", "4", "", "")
	night := settled(from("35001", draft("S-60", nil, goods(10700, igic))), func(d *country.Draft) {
		// 23:30 in Las Palmas, half past midnight in Madrid
		d.Transaction.Date = time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC)
	})
	return []situation{
		{Name: "A shop in Las Palmas at 23:30", Draft: night,
			Files: []string{"Impuesto>03<", "TipoImpositivo>7<", "FechaExpedicionFactura>31-03-2026<"}},
		{Name: "A shop in Ceuta", Draft: from("51001", draft("S-61", nil, goods(10400, ipsi))),
			Files: []string{"Impuesto>02<", "ClaveRegimen>01<", "FechaExpedicionFactura>01-04-2026<"}},
		{Name: "A shop in Las Palmas that says VAT",
			Draft: from("35001", draft("S-62", nil, goods(12100, entry("VAT", "21", "", "")))), Refuse: "must be IGIC",
			Field: "items.0.tax_breakdowns.0.regime"},
		{Name: "Goods from Las Palmas to Madrid",
			Draft: from("35001", draft("S-63", at(company, "ES", madrid, "A28015865"),
				goods(10000, entry("IGIC", "0", "", "")))),
			Files: []string{"Impuesto>03<", "ClaveRegimen>02<", "OperacionExenta>E2<"}},
		{Name: "Goods from Las Palmas to Germany",
			Draft: from("35001", draft("S-64", at(company, "DE", "10115", "DE111111125"),
				goods(10000, entry("IGIC", "0", "", "")))), Files: []string{"Impuesto>03<", "OperacionExenta>E2<"}},
		{Name: "IGIC goods called INTRA_EU", Draft: from("35001",
			draft("S-65", at(company, "DE", "10115", "DE111111125"),
				goods(10000, entry("IGIC", "0", transaction.TaxIntraEU, "")))), Refuse: "EXPORT",
			Field: "items.0.tax_breakdowns.0.code"},
		{Name: "Services from Las Palmas to Madrid",
			Draft: from("35001", draft("S-66", at(company, "ES", madrid, "A28015865"),
				work(10000, entry("IGIC", "0", "", "")))),
			Files: []string{"Impuesto>03<", "ClaveRegimen>08<", "CalificacionOperacion>N2<"}},
		{Name: "Goods from Melilla to Madrid",
			Draft: from("52001", draft("S-67", at(company, "ES", madrid, "A28015865"),
				goods(10000, entry("IPSI", "0", "", "")))),
			Files: []string{"Impuesto>02<", "ClaveRegimen>01<", "OperacionExenta>E2<"}},
	}
}

// dateSituations: when it happened.
func dateSituations() []situation {
	acme := at(company, "ES", madrid, "A28015865")
	delivered := func(number, day string, tax transaction.Tax) country.Draft {
		return settled(draft(number, acme, work(12100, tax)), func(d *country.Draft) { d.Transaction.DeliveryDate = day })
	}
	vat := entry("VAT", "21", "", "")
	return []situation{
		{Name: "Delivered the week before", Draft: delivered("S-70", "2026-03-25", vat),
			Files: []string{"FechaExpedicionFactura>01-04-2026<", "FechaOperacion>25-03-2026<"}},
		{Name: "Delivered on the day of the invoice", Draft: delivered("S-71", "2026-04-01", vat),
			Not: []string{"FechaOperacion"}},
		{Name: "To be delivered tomorrow", Draft: delivered("S-72", "2026-04-02", vat), Refuse: "must not be after",
			Field: "delivery_date"},
		{Name: "Electricity of the coming month", Draft: delivered("S-73", "2026-04-30", entry("VAT", "21", "", "15")),
			Files: []string{"ClaveRegimen>15<", "FechaOperacion>30-04-2026<"}},
		{Name: "Food delivered while its rate was 2 %", Draft: delivered("S-75", "2024-11-15", entry("VAT", "2", "", "")),
			Files: []string{"TipoImpositivo>2<", "FechaOperacion>15-11-2024<"}},
		{Name: "A rate of 2 % that holds no more", Draft: draft("S-76", acme, work(12100, entry("VAT", "2", "", ""))),
			Refuse: "is not a VAT rate", Field: "items.0.tax_breakdowns.0.rate"},
		{Name: "A rate of 2 % before it began", Draft: delivered("S-77", "2024-09-30", entry("VAT", "2", "", "")),
			Refuse: "is not a VAT rate", Field: "items.0.tax_breakdowns.0.rate"},
		{Name: "A used car, taxed on its margin", Draft: draft("S-74-1", acme, onMargin(1_000_000, "03", "200000@21")),
			Files: []string{"ClaveRegimen>03<", "CalificacionOperacion>S1<", "TipoImpositivo>21<", "NoSujeto>1652.89<",
				"CuotaRepercutida>347.11<", "CuotaTotal>347.11<", "ImporteTotal>10000.00<",
				"words: Régimen especial de los bienes usados"}},
		{Name: "A journey, taxed on the agency's margin",
			Draft: draft("S-74-2", at(private, "ES", madrid, "12345678Z"), onMargin(150_000, "05", "12100")),
			Files: []string{"ClaveRegimen>05<", "NoSujeto>100.00<", "CuotaRepercutida>21.00<", "ImporteTotal>1500.00<",
				"words: Régimen especial de las agencias de viajes"}},
		{Name: "A used car sold at a loss", Draft: draft("S-74-3", acme, onMargin(500_000, "03", "0")),
			Files: []string{"NoSujeto>0.00<", "CuotaTotal>0.00<", "ImporteTotal>5000.00<"}},
		{Name: "A used car and new tyres", Draft: draft("S-74-4", acme, onMargin(1_000_000, "03", "200000"),
			goods(12100, vat)), Files: []string{"ClaveRegimen>03<", "ClaveRegimen>01<", "CuotaTotal>368.11<",
			"ImporteTotal>10121.00<"}},
		{Name: "A margin that is more than the price", Draft: draft("S-74-5", acme, onMargin(1_000, "03", "200000")),
			Refuse: "not be more than the line", Field: "items.0.tax_breakdowns.0.code"},
		{Name: "A margin with a rate of tax", Draft: draft("S-74-6", acme, func() transaction.Item {
			i := onMargin(1_210, "03", "100")
			i.Taxes[0].Rate = percent("21")
			return i
		}()), Refuse: "shows no tax", Field: "items.0.tax_breakdowns.0.rate"},
		{Name: "Money laid out for the customer (suplido)",
			Draft:  draft("S-74-13", acme, work(12100, vat), work(5000, entry("VAT", "0", transaction.TaxOutside, "SUPLIDO"))),
			Refuse: "78.Tres.3", Field: "items.1.tax_breakdowns.0.code"},
		{Name: "A French business without a VAT number",
			Draft: draft("S-74-14", settledParty(at(company, "FR", "75001", "552100554"), "04"), goods(12100, vat)),
			Files: []string{"TipoFactura>F1<", "<sf:CodigoPais>FR</sf:CodigoPais>\n<sf:IDType>04<",
				"CalificacionOperacion>S1<"}},
		{Name: "A French business without a VAT number, called INTRA_EU",
			Draft: draft("S-74-15", settledParty(at(company, "FR", "75001", "552100554"), "04"),
				goods(10000, typed(transaction.TaxIntraEU))), Refuse: "VAT number", Field: "customer.tax_information.tax_number"},
		{Name: "Reverse charge to a person in Spain",
			Draft:  draft("S-74-7", at(private, "ES", madrid, "12345678Z"), work(10000, typed(transaction.TaxReverse))),
			Refuse: "84.Uno.2", Field: "items.0.tax_breakdowns.0.type"},
		{Name: "A surcharge with a code", Draft: draft("S-74-8", acme,
			line("Género", 12620, "", entry("VAT", "21", "", "S1"), entry("RE", "5.2", "", ""))),
			Files: []string{"ClaveRegimen>18<", "CuotaRecargoEquivalencia>"}},
		{Name: "Margin of used goods", Draft: draft("S-74", acme, goods(12100, entry("VAT", "21", "", "03"))),
			Refuse: "margin", Field: "items.0.tax_breakdowns.0.code"},
	}
}

// filed is an original as it is known after it was filed.
func filed(d country.Draft) country.Draft {
	f, err := channelOf().Prepare(d)
	if err != nil {
		panic(err)
	}
	d.Original = &country.Original{Transaction: d.Transaction, Totals: d.Totals, UniqueNumber: d.UniqueNumber,
		Report: f.Report, AuthorityID1: "A-ABCDEFGHIJKLMN"}
	return d
}

// about is a correction of a draft that was filed.
func about(kind transaction.Kind, reason, number string, of country.Draft, items ...transaction.Item) country.Draft {
	d := correction(kind, number, of, items...)
	d.Transaction.Reason, d.Original = reason, filed(of).Original
	return d
}

// correctionSituations: what corrects, replaces and mends. Their originals are
// situations above, so that AEAT holds them.
func correctionSituations() []situation {
	vat := entry("VAT", "21", "", "")
	acme := at(company, "ES", madrid, "A28015865")
	bill := draft("S-70", acme, work(12100, vat))
	bill.Transaction.DeliveryDate = "2026-03-25"
	ticket := draft("S-1", nil, goods(12100, vat))
	abroad := draft("S-38", at(private, "CH", "8001", ""), goods(1_210_000, typed("")))
	with := func(d country.Draft, change func(*country.Draft)) country.Draft { return settled(d, change) }
	named := func(d *country.Draft) { d.Transaction.Customer = acme }
	full := with(about(transaction.Adjustment, "F3", "S-80", ticket, goods(12100, vat)), named)
	replaced := with(about(transaction.Adjustment, "", "S-81", ticket, goods(-1210, vat)), func(d *country.Draft) {
		f, err := channelOf().Prepare(full)
		if err != nil {
			panic(err)
		}
		d.Original.Corrections = []country.Earlier{{Transaction: full.Transaction, Number: "S-80", Report: f.Report}}
	})
	mended := func(change func(*country.Draft), items ...transaction.Item) country.Draft {
		d := with(about(transaction.Adjustment, "S", "S-70", bill, items...), change)
		d.OperationID += "-mended"
		return d
	}
	return []situation{
		{Name: "A used car comes back", Draft: about(transaction.Credit, "", "S-74-9",
			draft("S-74-1", acme, onMargin(1_000_000, "03", "200000@21")), onMargin(1_000_000, "03", "200000@21")),
			Files: []string{"TipoFactura>R1<", "NoSujeto>-1652.89<", "CuotaTotal>-347.11<", "ImporteTotal>-10000.00<"}},
		{Name: "A margin is replaced", Draft: about(transaction.Adjustment, "R4-S", "S-74-10",
			draft("S-74-1", acme, onMargin(1_000_000, "03", "200000@21")), onMargin(900_000, "03", "100000")),
			Refuse: "corrected by difference", Field: "reason"},
		{Name: "A discount to somebody else than the invoice was for",
			Draft: with(about(transaction.Adjustment, "", "S-74-11", bill, work(-1210, vat)), func(d *country.Draft) {
				d.Transaction.Customer = at(company, "ES", madrid, "B98602642")
			}),
			Refuse: "must be that of the original", Field: "customer.tax_information.tax_number"},
		{Name: "An invoice is replaced by one to somebody else",
			Draft: with(about(transaction.Adjustment, "R4-S", "S-74-12", bill, work(12100, vat)), func(d *country.Draft) {
				d.Transaction.Customer = at(company, "ES", madrid, "B12345674")
			}),
			Files: []string{"TipoRectificativa>S<", "<sf:NIF>B12345674<"}},
		{Name: "A discount after the invoice", Draft: about(transaction.Adjustment, "", "S-82", bill, work(-1210, vat)),
			Files: []string{"TipoFactura>R1<", "TipoRectificativa>I<", "<sf:NumSerieFactura>S-70<", "ImporteTotal>-12.10<",
				"title: Factura rectificativa"}},
		{Name: "An invoice is replaced as a whole",
			Draft: about(transaction.Adjustment, "R4-S", "S-83", bill, work(6050, vat)),
			Files: []string{"TipoFactura>R4<", "TipoRectificativa>S<", "BaseRectificada>100.00<", "CuotaRectificada>21.00<",
				"ImporteTotal>60.50<", "words: Importe de la rectificación: base -50,00 €, cuota -10,50 €"}},
		{Name: "A ticket is returned", Draft: about(transaction.Credit, "", "S-84", ticket, goods(1, vat)),
			Files: []string{"TipoFactura>R5<", "ImporteTotal>-121.00<", "title: Factura simplificada rectificativa"},
			Not:   []string{"Art61d"}},
		{Name: "An export to a consumer is credited", Draft: about(transaction.Credit, "", "S-85", abroad, goods(1, vat)),
			Files: []string{"TipoFactura>R5<", "FacturaSinIdentifDestinatarioArt61d>S<", "title: Factura rectificativa"}},
		{Name: "A customer comes back with the ticket and a NIF", Draft: full,
			Files: []string{"TipoFactura>F3<", "<sf:IDFacturaSustituida>", "<sf:NIF>A28015865<", "title: Factura\n"},
			Not:   []string{"title: Factura rectificativa", "TipoRectificativa"}},
		{Name: "A ticket with a customer's NIF on its adjustment, without F3",
			Draft: with(about(transaction.Adjustment, "", "S-86", ticket, goods(1210, vat)), named),
			Files: []string{"TipoFactura>R5<"}, Not: []string{"Destinatarios"}},
		{Name: "A ticket that an F3 has replaced is corrected", Draft: replaced, Refuse: "S-80",
			Field: "reference_transaction_id"},
		{Name: "A full invoice is replaced by an F3",
			Draft: about(transaction.Adjustment, "F3", "S-87", bill, work(12100, vat)), Refuse: "simplified", Field: "reason"},
		{Name: "The record of an invoice is mended", Draft: mended(func(d *country.Draft) {
			d.Transaction.DeliveryDate = "2026-03-24"
		}, work(12100, vat)),
			Files: []string{"<sf:Subsanacion>S<", "TipoFactura>F1<", "FechaOperacion>24-03-2026<"},
			Not:   []string{"RechazoPrevio", "TipoRectificativa"}},
		{Name: "The census does not have the customer",
			Draft: with(about(transaction.Adjustment, "S", "S-6",
				draft("S-6", at(private, "ES", madrid, "12345678Z"), goods(1_210_000, vat)), goods(1_210_000, vat)),
				func(d *country.Draft) {
					d.Transaction.Customer = settledParty(at(private, "ES", madrid, "12345678Z"), "07")
					d.OperationID += "-mended"
				}), Files: []string{"<sf:Subsanacion>S<", "<sf:IDType>07</sf:IDType>\n<sf:ID>12345678Z<"}},
		{Name: "The record of a credited invoice is mended", Draft: settled(mended(func(d *country.Draft) {
			d.Transaction.DeliveryDate = "2026-03-23"
		}, work(12100, vat)), func(d *country.Draft) {
			d.OperationID += "-again"
			d.Original.Corrections = []country.Earlier{
				{Transaction: transaction.Transaction{Kind: transaction.Credit, Number: "S-71"}, Number: "S-71"}}
		}), Files: []string{"<sf:Subsanacion>S<", "TipoFactura>F1<", "FechaOperacion>23-03-2026<"}},
		{Name: "A mended record with another amount", Draft: mended(func(*country.Draft) {}, work(6050, vat)),
			Refuse: "corrective invoice", Field: "items"},
		{Name: "A mended record with another number", Draft: mended(func(d *country.Draft) {
			d.Transaction.Number = "S-99"
		}, work(12100, vat)), Refuse: "S-70", Field: "transaction_number"},
		{Name: "AEAT refused it, and it is sent again", Draft: refusedBefore(draft("S-88", acme, work(12100, vat))),
			Files: []string{"<sf:Subsanacion>S<", "<sf:RechazoPrevio>X<"}},
		{Name: "AEAT refused it, and it is sent with another number",
			Draft: with(refusedBefore(draft("S-89", acme, work(12100, vat))), func(d *country.Draft) {
				d.Transaction.Number = "S-90"
			}), Not: []string{"Subsanacion", "RechazoPrevio"}},
	}
}

func situations() []situation {
	all := append(shopSituations(), placeSituations()...)
	all = append(all, islandSituations()...)
	all = append(all, dateSituations()...)
	all = append(all, correctionSituations()...)
	return append(all, severalSituations()...)
}

// Each situation is filed and taken by AEAT, or refused before it is filed. The
// table in the country's page has a line for each of them.
func TestEverydaySituations(t *testing.T) {
	o := open(t, patient(0, 100))
	packtest.Bench{
		Pack: es.Pack(), Page: "../../../docs/countries/es.md", Channel: o.channel, Reads: reads, Strict: true,
		Send: func(_ *testing.T, f country.Filing) country.Receipt { return o.send(f)[0] },
	}.Try(t, situations())
}

// reads is what was filed, and the title and words of what is printed.
func reads(s situation, f country.Filing) string {
	printed := es.Pack().Imprint(country.Issue{Transaction: &s.Draft.Transaction, Totals: s.Draft.Totals,
		Original: s.Draft.Original, Shares: s.Draft.Shares, Filing: &f, Language: "ES", Location: s.Draft.Location})
	return string(f.Report) + "title: " + printed.Title + "\nwords: " + strings.Join(printed.Texts, "\nwords: ") + "\n"
}

package es_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// situation is something that happens every day: what is sent, and what the
// filed record says, or why it is refused.
type situation struct {
	name   string
	draft  country.Draft
	files  []string // parts of the record, or of its printed title and words
	not    []string
	refuse string // part of the message of a fault
	field  string // of that fault
}

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

// at is somebody at a place, with a number or without.
func at(kind, code, postal, number string) *transaction.Party {
	return &transaction.Party{LegalName: "Cliente", Type: kind, TaxNumber: number, Address: &transaction.Address{CountryCode: code, PostalCode: postal, AddressLine1: "Calle Mayor 1"}}
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
		{name: "A ticket of a shop", draft: draft("S-1", nil, goods(12100, vat)), files: plain, not: []string{"Destinatarios", "Art61d"}},
		{name: "A ticket of 3,000.00 €", draft: draft("S-2", nil, goods(300_000, vat)), files: append(plain, "ImporteTotal>3000.00<"), not: []string{"Art61d"}},
		{name: "A ticket of 3,000.01 €", draft: draft("S-3", nil, goods(300_001, vat)), refuse: "may not exceed 3000.00", field: "customer"},
		{name: "A consumer with a name and no NIF", draft: draft("S-4", at(private, "ES", madrid, ""), goods(12100, vat)), files: plain, not: []string{"Destinatarios", "Art61d"}},
		{name: "A consumer without NIF buys for 12,100 €", draft: draft("S-5", at(private, "ES", madrid, ""), goods(1_210_000, vat)), refuse: "names its customer's NIF", field: "customer.tax_information.tax_number"},
		{name: "A consumer with a NIF buys for 12,100 €", draft: draft("S-6", at(private, "ES", madrid, "12345678Z"), goods(1_210_000, vat)), files: []string{"TipoFactura>F1<", "<sf:NIF>12345678Z<", "title: Factura"}},
		{name: "A freelancer's ticket of 400.00 €", draft: low(draft("S-7", nil, work(40_000, vat))), files: plain},
		{name: "A freelancer's ticket of 400.01 €", draft: low(draft("S-8", nil, work(40_001, vat))), refuse: "may not exceed 400.00", field: "customer"},
		{name: "A ticket with the customer's NIF", draft: draft("S-9", at(company, "ES", madrid, "A28015865"), marked),
			files: []string{"TipoFactura>F1<", "FacturaSimplificadaArt7273>S<", "<sf:NIF>A28015865<", "title: Factura simplificada"}},
		{name: "A ticket with a NIF above 3,000 €", draft: draft("S-10", at(company, "ES", madrid, "A28015865"), costly), refuse: "3000.00", field: "items"},
		{name: "A French tourist in the shop", draft: draft("S-11", at(private, "FR", "75001", ""), goods(12100, vat)), files: plain, not: []string{"Art61d"}},
		{name: "A consumer who shows a passport", draft: draft("S-12", settledParty(at(private, "US", "", "X1234567"), "03"), goods(605_000, vat)),
			files: []string{"TipoFactura>F1<", "<sf:CodigoPais>US</sf:CodigoPais>\n<sf:IDType>03</sf:IDType>\n<sf:ID>X1234567<"}},
		{name: "A passport shown by somebody who lives in Spain", draft: draft("S-13", settledParty(at(private, "ES", madrid, "X1234567"), "03"), goods(605_000, vat)),
			files: []string{"<sf:CodigoPais>ES</sf:CodigoPais>\n<sf:IDType>03<"}},
		{name: "A certificate of residence", draft: draft("S-14", settledParty(at(private, "MA", "", "R-55"), "05"), goods(605_000, vat)), files: []string{"<sf:IDType>05<"}},
		{name: "Another document of a foreigner", draft: draft("S-15", settledParty(at(private, "GB", "", "DL-77"), "06"), goods(605_000, vat)), files: []string{"<sf:CodigoPais>GB</sf:CodigoPais>\n<sf:IDType>06<"}},
		{name: "Another document of a Spaniard", draft: draft("S-16", settledParty(at(private, "ES", madrid, "DL-77"), "06"), goods(605_000, vat)), refuse: "a passport is 03", field: "customer.tax_information.tax_number"},
		{name: "A person whom the census does not have", draft: draft("S-17", settledParty(at(private, "ES", madrid, "12345678Z"), "07"), goods(605_000, vat)),
			files: []string{"<sf:CodigoPais>ES</sf:CodigoPais>\n<sf:IDType>07</sf:IDType>\n<sf:ID>12345678Z<"}},
		{name: "A company whom the census does not have", draft: draft("S-18", settledParty(at(company, "ES", madrid, "A28015865"), "07"), goods(605_000, vat)), refuse: "natural person", field: "customer.tax_information.tax_number"},
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
	return []situation{
		{name: "Goods sent to a business in Las Palmas", draft: draft("S-30", islander, goods(10000, zero)), files: e2},
		{name: "Goods sent to a consumer in Tenerife", draft: draft("S-31", at(private, "IC", "38001", ""), goods(10000, zero)), files: append(flagged, e2...)},
		{name: "Goods sent to Melilla", draft: draft("S-32", at(company, "EA", "52001", "A28015865"), goods(10000, zero)), files: e2},
		{name: "Services to a business in Las Palmas", draft: draft("S-33", islander, work(10000, zero)), files: []string{"ClaveRegimen>08<", n2}},
		{name: "Services to a business in Ceuta, called REVERSE", draft: draft("S-34", at(company, "ES", "51001", "A28015865"), work(10000, typed(transaction.TaxReverse))), files: []string{"ClaveRegimen>08<", n2}},
		{name: "Services to a consumer in Las Palmas", draft: draft("S-35", at(private, "ES", "35001", ""), work(12100, entry("VAT", "21", "", ""))), files: []string{"ClaveRegimen>01<", "CalificacionOperacion>S1<"}},
		{name: "Goods exported to the United States", draft: draft("S-36", at(company, "US", "10001", "12-3456789"), goods(10000, zero)), files: append(e2, "<sf:CodigoPais>US</sf:CodigoPais>\n<sf:IDType>04<")},
		{name: "Goods exported to a business whose number nobody knows", draft: draft("S-37", at(company, "US", "10001", ""), goods(1_210_000, zero)), files: append(flagged, e2...)},
		{name: "Goods exported to a consumer for 12,100 €", draft: draft("S-38", at(private, "CH", "8001", ""), goods(1_210_000, zero)), files: append(flagged, e2...)},
		{name: "Exported goods and their shipping", draft: draft("S-39", at(company, "US", "10001", "12-3456789"), goods(10000, zero), shipping), files: append(e2, "NoSujeto>110.00<"), not: []string{"N2"}},
		{name: "Services to a business in Switzerland", draft: draft("S-40", at(company, "CH", "8001", "CHE-1"), work(10000, zero)), files: []string{"ClaveRegimen>01<", n2}},
		{name: "Services to a consumer in Switzerland", draft: draft("S-41", at(private, "CH", "8001", ""), work(10000, zero)), files: append(flagged, n2)},
		{name: "Services called EXPORT", draft: draft("S-42", at(company, "CH", "8001", "CHE-1"), work(10000, typed(transaction.TaxExport))), refuse: "OUTSIDE", field: "items.0.tax_breakdowns.0.type"},
		{name: "Services abroad to nobody", draft: draft("S-43", nil, work(10000, entry("VAT", "0", "", "N2"))), refuse: "article 4.4", field: "customer"},
		{name: "Goods to a business in Germany", draft: draft("S-44", german, goods(10000, zero)), files: []string{"ClaveRegimen>01<", "OperacionExenta>E5<", "<sf:IDType>02</sf:IDType>\n<sf:ID>DE111111125<"}},
		{name: "Goods to a business in Germany with their shipping", draft: draft("S-45", german, goods(10000, zero), shipping), files: []string{"OperacionExenta>E5<", "NoSujeto>110.00<"}, not: []string{"N2"}},
		{name: "Services to a business in Germany", draft: draft("S-46", german, work(10000, zero)), files: []string{"ClaveRegimen>01<", n2}},
		{name: "Services called INTRA_EU", draft: draft("S-47", german, work(10000, typed(transaction.TaxIntraEU))), refuse: "REVERSE", field: "items.0.tax_breakdowns.0.type"},
		{name: "A German address with a Spanish NIF, INTRA_EU", draft: draft("S-48", at(company, "DE", "10115", "A28015865"), goods(10000, typed(transaction.TaxIntraEU))), refuse: "VAT number", field: "customer.tax_information.tax_number"},
		{name: "A German address with a Spanish NIF, taxed", draft: draft("S-49", at(company, "DE", "10115", "ESA28015865"), goods(12100, entry("VAT", "21", "", ""))), files: []string{"<sf:NIF>A28015865<"}, not: []string{"IDOtro"}},
		{name: "A person abroad called INTRA_EU", draft: draft("S-50", at(private, "DE", "10115", "12345"), goods(10000, typed(transaction.TaxIntraEU))), refuse: "VAT number", field: "customer.tax_information.tax_number"},
		{name: "Goods to a business in Northern Ireland", draft: draft("S-51", irish, goods(10000, zero)), files: []string{"OperacionExenta>E5<", "<sf:ID>XI110305878<"}},
		{name: "Building work with reverse charge", draft: draft("S-52", at(company, "ES", madrid, "A28015865"), work(10000, typed(transaction.TaxReverse))),
			files: []string{"CalificacionOperacion>S2<", "TipoImpositivo>0<", "words: Inversión del sujeto pasivo"}},
		{name: "Reverse charge to a consumer abroad", draft: draft("S-53", at(private, "DE", "10115", ""), work(10000, typed(transaction.TaxReverse))), refuse: "OUTSIDE", field: "items.0.tax_breakdowns.0.type"},
		{name: "A French consumer with French VAT (OSS)", draft: draft("S-54", at(private, "FR", "75001", ""), goods(12000, entry("OSS", "20", "", ""))),
			files: append(flagged, "ClaveRegimen>17<", n2, "NoSujeto>120.00<", "ImporteTotal>120.00<", "CuotaTotal>0.00<"), not: []string{"TipoImpositivo", "CuotaRepercutida"}},
		{name: "OSS to a business", draft: draft("S-55", german, goods(11900, entry("OSS", "19", "", ""))), refuse: "consumers", field: "items.0.tax_breakdowns.0.code"},
		{name: "OSS within Spain", draft: draft("S-56", at(private, "ES", madrid, ""), goods(12000, entry("OSS", "20", "", ""))), refuse: "another member state", field: "items.0.tax_breakdowns.0.code"},
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
		d.Transaction.Date = time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC) // 23:30 in Las Palmas, half past midnight in Madrid
	})
	return []situation{
		{name: "A shop in Las Palmas at 23:30", draft: night, files: []string{"Impuesto>03<", "TipoImpositivo>7<", "FechaExpedicionFactura>31-03-2026<"}},
		{name: "A shop in Ceuta", draft: from("51001", draft("S-61", nil, goods(10400, ipsi))), files: []string{"Impuesto>02<", "ClaveRegimen>01<", "FechaExpedicionFactura>01-04-2026<"}},
		{name: "A shop in Las Palmas that says VAT", draft: from("35001", draft("S-62", nil, goods(12100, entry("VAT", "21", "", "")))), refuse: "must be IGIC", field: "items.0.tax_breakdowns.0.regime"},
		{name: "Goods from Las Palmas to Madrid", draft: from("35001", draft("S-63", at(company, "ES", madrid, "A28015865"), goods(10000, entry("IGIC", "0", "", "")))), files: []string{"Impuesto>03<", "ClaveRegimen>02<", "OperacionExenta>E2<"}},
		{name: "Goods from Las Palmas to Germany", draft: from("35001", draft("S-64", at(company, "DE", "10115", "DE111111125"), goods(10000, entry("IGIC", "0", "", "")))), files: []string{"Impuesto>03<", "OperacionExenta>E2<"}},
		{name: "IGIC goods called INTRA_EU", draft: from("35001", draft("S-65", at(company, "DE", "10115", "DE111111125"), goods(10000, entry("IGIC", "0", transaction.TaxIntraEU, "")))), refuse: "EXPORT", field: "items.0.tax_breakdowns.0.code"},
		{name: "Services from Las Palmas to Madrid", draft: from("35001", draft("S-66", at(company, "ES", madrid, "A28015865"), work(10000, entry("IGIC", "0", "", "")))), files: []string{"Impuesto>03<", "ClaveRegimen>08<", "CalificacionOperacion>N2<"}},
		{name: "Goods from Melilla to Madrid", draft: from("52001", draft("S-67", at(company, "ES", madrid, "A28015865"), goods(10000, entry("IPSI", "0", "", "")))), files: []string{"Impuesto>02<", "ClaveRegimen>01<", "OperacionExenta>E2<"}},
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
		{name: "Delivered the week before", draft: delivered("S-70", "2026-03-25", vat), files: []string{"FechaExpedicionFactura>01-04-2026<", "FechaOperacion>25-03-2026<"}},
		{name: "Delivered on the day of the invoice", draft: delivered("S-71", "2026-04-01", vat), not: []string{"FechaOperacion"}},
		{name: "To be delivered tomorrow", draft: delivered("S-72", "2026-04-02", vat), refuse: "must not be after", field: "delivery_date"},
		{name: "Electricity of the coming month", draft: delivered("S-73", "2026-04-30", entry("VAT", "21", "", "15")), files: []string{"ClaveRegimen>15<", "FechaOperacion>30-04-2026<"}},
		{name: "Margin of used goods", draft: draft("S-74", acme, goods(12100, entry("VAT", "21", "", "03"))), refuse: "margin", field: "items.0.tax_breakdowns.0.code"},
	}
}

// filed is an original as it is known after it was filed.
func filed(d country.Draft) country.Draft {
	f, err := channelOf().Prepare(d)
	if err != nil {
		panic(err)
	}
	d.Original = &country.Original{Transaction: d.Transaction, Totals: d.Totals, UniqueNumber: d.UniqueNumber, Report: f.Report, AuthorityID1: "A-ABCDEFGHIJKLMN"}
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
		{name: "A discount after the invoice", draft: about(transaction.Adjustment, "", "S-82", bill, work(-1210, vat)),
			files: []string{"TipoFactura>R1<", "TipoRectificativa>I<", "<sf:NumSerieFactura>S-70<", "ImporteTotal>-12.10<", "title: Factura rectificativa"}},
		{name: "An invoice is replaced as a whole", draft: about(transaction.Adjustment, "R4-S", "S-83", bill, work(6050, vat)),
			files: []string{"TipoFactura>R4<", "TipoRectificativa>S<", "BaseRectificada>100.00<", "CuotaRectificada>21.00<", "ImporteTotal>60.50<", "words: Importe de la rectificación: base -50,00 €, cuota -10,50 €"}},
		{name: "A ticket is returned", draft: about(transaction.Credit, "", "S-84", ticket, goods(1, vat)), files: []string{"TipoFactura>R5<", "ImporteTotal>-121.00<", "title: Factura simplificada rectificativa"}, not: []string{"Art61d"}},
		{name: "An export to a consumer is credited", draft: about(transaction.Credit, "", "S-85", abroad, goods(1, vat)), files: []string{"TipoFactura>R5<", "FacturaSinIdentifDestinatarioArt61d>S<", "title: Factura rectificativa"}},
		{name: "A customer comes back with the ticket and a NIF", draft: full, files: []string{"TipoFactura>F3<", "<sf:IDFacturaSustituida>", "<sf:NIF>A28015865<", "title: Factura\n"}, not: []string{"title: Factura rectificativa", "TipoRectificativa"}},
		{name: "A ticket with a customer's NIF on its adjustment, without F3", draft: with(about(transaction.Adjustment, "", "S-86", ticket, goods(1210, vat)), named), files: []string{"TipoFactura>R5<"}, not: []string{"Destinatarios"}},
		{name: "A ticket that an F3 has replaced is corrected", draft: replaced, refuse: "S-80", field: "reference_transaction_id"},
		{name: "A full invoice is replaced by an F3", draft: about(transaction.Adjustment, "F3", "S-87", bill, work(12100, vat)), refuse: "simplified", field: "reason"},
		{name: "The record of an invoice is mended", draft: mended(func(d *country.Draft) { d.Transaction.DeliveryDate = "2026-03-24" }, work(12100, vat)),
			files: []string{"<sf:Subsanacion>S<", "TipoFactura>F1<", "FechaOperacion>24-03-2026<"}, not: []string{"RechazoPrevio", "TipoRectificativa"}},
		{name: "The census does not have the customer", draft: with(about(transaction.Adjustment, "S", "S-6", draft("S-6", at(private, "ES", madrid, "12345678Z"), goods(1_210_000, vat)), goods(1_210_000, vat)), func(d *country.Draft) {
			d.Transaction.Customer = settledParty(at(private, "ES", madrid, "12345678Z"), "07")
			d.OperationID += "-mended"
		}), files: []string{"<sf:Subsanacion>S<", "<sf:IDType>07</sf:IDType>\n<sf:ID>12345678Z<"}},
		{name: "A mended record with another amount", draft: mended(func(*country.Draft) {}, work(6050, vat)), refuse: "corrective invoice", field: "items"},
		{name: "A mended record with another number", draft: mended(func(d *country.Draft) { d.Transaction.Number = "S-99" }, work(12100, vat)), refuse: "S-70", field: "transaction_number"},
		{name: "AEAT refused it, and it is sent again", draft: refusedBefore(draft("S-88", acme, work(12100, vat))), files: []string{"<sf:Subsanacion>S<", "<sf:RechazoPrevio>X<"}},
		{name: "AEAT refused it, and it is sent with another number", draft: with(refusedBefore(draft("S-89", acme, work(12100, vat))), func(d *country.Draft) { d.Transaction.Number = "S-90" }), not: []string{"Subsanacion", "RechazoPrevio"}},
	}
}

func situations() []situation {
	all := append(shopSituations(), placeSituations()...)
	all = append(all, islandSituations()...)
	all = append(all, dateSituations()...)
	return append(all, correctionSituations()...)
}

// Each situation is filed and taken by AEAT, or refused before it is filed. The
// table in the country's page has a line for each of them.
func TestEverydaySituations(t *testing.T) {
	page, err := os.ReadFile("../../../docs/countries/es.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(situations()); n < 40 {
		t.Errorf("only %d situations", n)
	}
	o, pack := open(t, patient(0, 100)), es.Pack()
	var last country.Link
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			if !strings.Contains(string(page), "| "+s.name+" |") {
				t.Errorf("docs/countries/es.md has no line for it")
			}
			faults := pack.Check(country.Case{Transaction: &s.draft.Transaction, Totals: s.draft.Totals, UseCase: country.Both, Now: s.draft.Now})
			s.draft.Previous = last
			f, err := o.channel.Prepare(s.draft)
			if err != nil {
				var told *fault.Error
				if !errors.As(err, &told) {
					t.Fatal(err)
				}
				faults = append(faults, told.Faults...)
			}
			if s.refuse != "" {
				for _, f := range faults {
					if f.Field == s.field && strings.Contains(f.Message, s.refuse) {
						return
					}
				}
				t.Fatalf("not refused for %q at %s: %v", s.refuse, s.field, faults)
			}
			if len(faults) > 0 {
				t.Fatalf("refused: %v", faults)
			}
			last = f.Link
			if r := o.send(f)[0]; r.Outcome != country.Accepted {
				t.Errorf("AEAT: %+v", r.Faults)
			}
			s.reads(t, f)
		})
	}
}

// reads compares what was filed and what is printed with what is expected.
func (s situation) reads(t *testing.T, f country.Filing) {
	t.Helper()
	printed := es.Pack().Imprint(country.Issue{Transaction: &s.draft.Transaction, Totals: s.draft.Totals, Original: s.draft.Original, Filing: &f, Language: "ES", Location: s.draft.Location})
	text := string(f.Report) + "title: " + printed.Title + "\nwords: " + strings.Join(printed.Texts, "\nwords: ") + "\n"
	for _, want := range s.files {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, wrong := range s.not {
		if strings.Contains(text, wrong) {
			t.Errorf("%q is in\n%s", wrong, text)
		}
	}
}

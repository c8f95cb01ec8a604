package es_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/identity"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

const (
	nif      = "89890001K" // AEAT's own example
	supplier = "Talleres Peña & Cía, S.L."
)

var day = time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC) // already April in Madrid

// credentials are made once: an RSA key takes a while.
var credentials = sync.OnceValue(func() country.Credentials {
	file, password, err := identity.Test(nif, supplier, time.Now())
	if err != nil {
		panic(err)
	}
	return country.Credentials{PKCS12: file, Password: password}
})

// line is an item with one tax entry.
func line(name string, price int64, rate string, taxes ...transaction.Tax) transaction.Item {
	item := transaction.Item{Number: 1, Name: name, Quantity: num.MakeAmount(1, 0), UnitPrice: price,
		Type: transaction.Goods}
	if rate != "" {
		item.Taxes = append(item.Taxes, transaction.Tax{Rate: percent(rate), Regime: transaction.VAT,
			Mode: transaction.Included})
	}
	item.Taxes = append(item.Taxes, taxes...)
	return item
}

func percent(text string) num.Amount {
	a, err := num.AmountFromString(text)
	if err != nil {
		panic(err)
	}
	return a
}

func business(name, from, number string) *transaction.Party {
	return &transaction.Party{LegalName: name, Type: transaction.Business, TaxNumber: number,
		Address: &transaction.Address{CountryCode: from, AddressLine1: "Calle Mayor 1"}}
}

// draft is a document of the supplier. Items are numbered and summed up here.
func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	for i := range items {
		items[i].Number = int64(i + 1)
	}
	totals, faults := transaction.Calculate(items)
	if len(faults) > 0 {
		panic(fmt.Sprint(faults))
	}
	return country.Draft{
		OperationID: "018f6b2e-0000-7000-8000-" + number, UniqueNumber: "ES-" + number,
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "ES", LanguageCode: "ES", CurrencyCode: "EUR", Date: day,
			Number: number, ID: "tx-" + number, SupplierID: "s1", Items: items, Customer: customer,
		},
		Totals: totals,
		Supplier: country.Supplier{
			ID: "0123456789abcdef0123456789abcdef", CountryCode: "ES", LegalName: supplier, TaxNumber: nif,
			Settings: country.Settings{},
		},
		Location: time.FixedZone("CEST", 2*60*60),
		Now:      day.Add(time.Minute),
	}
}

// correction is a document of another kind about an original.
func correction(kind transaction.Kind, number string, of country.Draft, items ...transaction.Item) country.Draft {
	d := draft(number, of.Transaction.Customer, items...)
	d.Transaction.Kind, d.Transaction.ReferenceID = kind, of.Transaction.ID
	if kind != transaction.Adjustment {
		d.Transaction.Items, d.Totals = of.Transaction.Items, of.Totals
	}
	d.Original = &country.Original{Transaction: of.Transaction, Totals: of.Totals, UniqueNumber: of.UniqueNumber,
		AuthorityID1: "A-ABCDEFGHIJKLMN"}
	return d
}

// refusedBefore is a draft of which AEAT refused an earlier attempt.
func refusedBefore(d country.Draft) country.Draft {
	extra := fmt.Sprintf(`{"id":{"issuer":%q,"number":%q,"day":%q}}`, nif, d.Transaction.Number,
		d.Transaction.Date.In(d.Location).Format("02-01-2006"))
	d.Refused = []country.Filing{{Number: d.Transaction.Number, Extra: []byte(extra)}}
	return d
}

func (c collection) add(name string, d country.Draft) collection {
	return append(c, packtest.Case{Name: name, Draft: d})
}

type collection []packtest.Case

// cases are in an order in which AEAT accepts them.
func cases() collection {
	acme := business("Acme Ibérica, S.A.", "ES", "A28015865")
	invoice := draft("A-1", acme, line("Café molido <1 kg>", 12100, "21"))
	ticket := draft("T-1", nil, line("Menú del día", 1500, "10"))
	person := &transaction.Party{LegalName: "Íñigo Muñoz Agüero", Type: transaction.Individual}
	named := draft("A-2", person, line("Bicicleta", 45000, "21"))
	abroad := &transaction.Party{LegalName: "Jane Roe", Type: transaction.Individual,
		Address: &transaction.Address{CountryCode: "US"}}
	var list collection
	list = list.add("business", invoice)
	list = list.add("simplified", ticket)
	list = list.add("individual without number", named)
	list = list.add("individual abroad without number", draft("A-4", abroad, line("Guitarra", 1_210_000, "0")))
	list = list.add("several rates", draft("A-3", acme, line("Pan", 104, "4"), line("Agua", 110, "10"),
		line("Vino", 1210, "21"), line("Vino blanco", 605, "21")))
	list = append(list, taxCases(acme)...)
	list = append(list, partyCases(acme)...)
	list = append(list, correctionCases(invoice, ticket, named, acme)...)
	return append(list, edgeCases(acme)...)
}

func taxCases(acme *transaction.Party) (list collection) {
	entry := func(regime, rate, kind, code string) transaction.Tax {
		return transaction.Tax{Rate: percent(rate), Regime: regime, Mode: transaction.Included, Type: kind, Code: code}
	}
	list = list.add("zero rated", draft("A-10", acme,
		line("Donativo", 1000, "", entry("VAT", "0", transaction.TaxZero, ""))))
	list = list.add("exempt", draft("A-11", acme, line("Curso", 1000, "", typed(transaction.TaxExempt))))
	list = list.add("reverse charge", draft("A-12", acme,
		line("Obra", 1000, "", entry("VAT", "0", transaction.TaxReverse, ""))))
	list = list.add("not subject", draft("A-13", acme, line("Suplido", 1000, "", entry("IVA", "0", "", "N1"))))
	list = list.add("igic and ipsi", draft("A-14", acme, line("Plátanos", 10700, "", entry("IGIC", "7", "", "")),
		line("Exenta", 500, "", entry("IGIC", "0", transaction.TaxExempt, "E7")),
		line("Ceuta", 10400, "", entry("IPSI", "4", "", ""))))
	list = list.add("cash accounting", draft("A-15", acme, line("Servicio", 12100, "", entry("VAT", "21", "", "S1-07"))))
	list = list.add("equivalence surcharge",
		draft("A-16", acme, line("Género", 12620, "21", entry("RE", "5.2", "", "")),
			line("Otro", 1114, "10", entry("RE", "1.4", "", ""))))
	list = list.add("withholding", draft("A-17", acme,
		line("Asesoría", 12100, "21", transaction.Tax{Rate: percent("15"), Regime: transaction.Withholding, Type: "IRPF"})))
	discount := line("Descuento", -1210, "21")
	discount.Type = transaction.Discount
	list = list.add("discount", draft("A-18", acme, line("Silla", 12100, "21"), discount))
	added := line("Tornillos", 333, "21")
	added.Quantity, added.Taxes[0].Mode = percent("3.5"), transaction.Added
	list = list.add("tax added", draft("A-19", acme, added))
	dollars := draft("A-20", acme, line("Imported", 12100, "21"))
	rate := percent("0.912345")
	dollars.Transaction.CurrencyCode, dollars.Transaction.ExchangeRate, dollars.Transaction.ExchangeRateDate = "USD",
		&rate, "2026-03-31"
	return list.add("foreign currency", dollars)
}

func partyCases(acme *transaction.Party) (list collection) {
	services := line("Hosting", 10000, "0")
	services.Type = transaction.Services
	list = list.add("union goods", draft("A-30", business("Müller GmbH", "DE", "DE111111125"), line("Aceite", 10000, "0")))
	list = list.add("union services", draft("A-31", business("Ελλάδα Α.Ε.", "GR", "EL094259216"), services))
	list = list.add("export", draft("A-32", business("Widgets Inc.", "US", "12-3456789"), line("Jamón", 10000, "0")))
	individual := business("Marie Dupont", "FR", "0123456789")
	individual.Type = transaction.Individual
	list = list.add("foreign individual", draft("A-33", individual, line("Libro", 1040, "4")))
	market := draft("A-34", acme, line("Zapatos", 6050, "21"))
	market.Transaction.Issuer = business("Mercado Central, S.L.", "ES", "B12345674")
	list = list.add("marketplace", market)
	self := draft("A-35", acme, line("Fruta", 1040, "4"))
	self.Transaction.Issuer = acme
	return list.add("issued by the customer", self)
}

func correctionCases(invoice, ticket, named country.Draft, acme *transaction.Party) (list collection) {
	difference := correction(transaction.Adjustment, "R-1", invoice, line("Café molido <1 kg>", -1210, "21"))
	list = list.add("adjustment by difference", difference)
	substitution := correction(transaction.Adjustment, "R-2", invoice, line("Café molido <1 kg>", 10890, "21"))
	substitution.Transaction.Reason = "R4-S"
	list = list.add("adjustment by substitution", substitution)
	insolvent := correction(transaction.Adjustment, "R-3", invoice, line("Concurso", -121, "21"))
	insolvent.Transaction.Reason = "R2"
	list = list.add("adjustment for insolvency", insolvent)
	bad := correction(transaction.Adjustment, "R-4", invoice, line("Impago", -121, "21"))
	bad.Transaction.Reason = "R3"
	list = list.add("adjustment for bad debt", bad)
	full := correction(transaction.Adjustment, "R-5", ticket, line("Menú del día", 1500, "10"))
	full.Transaction.Customer, full.Transaction.Reason = acme, "F3"
	list = list.add("full invoice for a simplified one", full)
	list = list.add("adjustment of a simplified one",
		correction(transaction.Adjustment, "R-6", ticket, line("Menú", -150, "10")))
	list = list.add("credit", correction(transaction.Credit, "R-7",
		draft("A-3", acme, line("Pan", 104, "4"), line("Agua", 110, "10")), line("x", 1, "21")))
	list = list.add("credit of a simplified one", correction(transaction.Credit, "R-8", named, line("x", 1, "21")))
	unnumbered := correction(transaction.Cancellation, "C-1", invoice, line("x", 1, "21"))
	unnumbered.Transaction.Number = ""
	list = list.add("cancellation", unnumbered)
	elsewhere := correction(transaction.Cancellation, "C-2", draft("OLD-9", acme, line("Antiguo", 12100, "21")),
		line("x", 1, "21"))
	elsewhere.Original.Backfilled, elsewhere.Original.AuthorityID1 = true, ""
	list = list.add("cancellation of what was never filed", elsewhere)
	list = list.add("after a refusal", refusedBefore(draft("A-40", acme, line("Corregida", 12100, "21"))))
	list = list.add("another number after a refusal",
		settled(refusedBefore(draft("A-42", acme, line("Corregida", 12100, "21"))), func(d *country.Draft) {
			d.Transaction.Number = "A-43"
		}))
	late := draft("A-41", acme, line("Tarde", 12100, "21"))
	late.Late = true
	return list.add("late", late)
}

func edgeCases(acme *transaction.Party) (list collection) {
	long := business(strings.Repeat("Ñandú y Compañía ", 7)+"X", "ES", "A28015865")
	items := make([]transaction.Item, 30)
	for i := range items {
		items[i] = line(strings.Repeat("ó", 199)+"€", 121, "21")
	}
	list = list.add("longest texts", draft(strings.Repeat("N", 49)+"/", long, items...))
	list = list.add("largest amount", draft("A-51", acme, line("Buque", 99_999_999_999_999, "21")))
	odd := draft("A&52 ~!#$%()*+,-./:;?@[]^_`{|}", acme, line("Tab\there, \u202eturned, ]]> & \u0001control", 121, "21"))
	odd.Supplier.Settings = country.Settings{"software": map[string]any{
		"name": "Gestoría Norte, S.L.", "tax_number": "B12345674", "system_name": "Norte", "system_id": "N1",
		"version":      "2.1",
		"installation": "000001", "verifactu_only": false, "multiple_taxpayers": true, "serves_many": false,
	}}
	list = list.add("odd characters", odd)
	twelve := make([]transaction.Item, 12)
	for i := range twelve {
		twelve[i] = line("Tipo", 10000, "", transaction.Tax{Rate: num.MakeAmount(int64(i+1), 0), Regime: "IGIC",
			Mode: transaction.Included})
	}
	return list.add("twelve rates", draft("A-53", acme, twelve...))
}

// schema checks reports against AEAT's own schema, and that it refuses a broken copy.
func schema(t *testing.T) packtest.XSD {
	return packtest.XSD{Path: needs.Schemas(t, "es-verifactu", "strict.xsd")}
}

func TestSpainPassesTheSuite(t *testing.T) {
	packtest.Exercise(t, patient(0, 100), packtest.Options{
		Cases: cases(), Credentials: credentials(), Immediate: true,
	})
}

func TestEveryRecordIsValidByTheOfficialSchema(t *testing.T) {
	xsd := schema(t)
	ch := open(t, es.Pack()).channel
	var reports [][]byte
	for _, c := range cases() {
		f, err := ch.Prepare(c.Draft)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		reports = append(reports, f.Report)
	}
	xsd.AllConform(t, reports, func(r []byte) []byte {
		return bytes.Replace(r, []byte("<sf:TipoHuella>01<"), []byte("<sf:TipoHuella>09<"), 1)
	})
}

func TestNoCaseIsRefusedByItsOwnCheck(t *testing.T) {
	pack := es.Pack()
	for _, c := range cases() {
		if !slices.Contains([]transaction.Kind{transaction.Invoice, transaction.Adjustment}, c.Draft.Transaction.Kind) {
			continue
		}
		in := country.Case{Transaction: &c.Draft.Transaction, Totals: c.Draft.Totals, UseCase: country.Both, Now: c.Draft.Now}
		if faults := pack.Check(in); len(faults) > 0 {
			t.Errorf("%s: %v", c.Name, faults)
		}
		if faults := country.CheckRates(pack.Facts, in); len(faults) > 0 {
			t.Errorf("%s: %v", c.Name, faults)
		}
	}
}

// Sales of chance are valid by the official schema.
func TestRandomSalesAreValidByTheOfficialSchema(t *testing.T) {
	reports := packtest.RandomReports(t, es.Pack(), open(t, es.Pack()).channel, func(number string, seed int) country.Draft {
		return draft(number, business("Acme Ibérica, S.A.", "ES", "A28015865"), packtest.RandomItems(seed, "21", "10", "4")...)
	})
	schema(t).AllConform(t, reports, func(r []byte) []byte {
		return bytes.Replace(r, []byte("<sf:TipoHuella>01<"), []byte("<sf:TipoHuella>09<"), 1)
	})
}

package hu_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority/nav"
	"tributary/internal/country"
	"tributary/internal/country/hu"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

const (
	supplierNumber = "12892312-2-42"
	buyerNumber    = "13774721-2-41"
)

// day is late in the evening in Hungary, and the day before in UTC it is not: the
// document's day is the supplier's. NAV refuses what is older than a year, and so
// does its double, by its own clock; documents show the day that is fixed here.
var day = time.Now().UTC().Truncate(24 * time.Hour).Add(-49*time.Hour + 22*time.Hour + 30*time.Minute)

// golden is the day of documents that are compared with files.
var golden = time.Date(2026, 10, 6, 22, 30, 0, 0, time.UTC)

func budapest() *time.Location { return packtest.Zone("Europe/Budapest") }

func pack() country.Pack {
	p := hu.Pack()
	p.Simulator = nav.New
	return p
}

func credentials() country.Credentials {
	return country.Credentials{Username: "lwilsmn0uqdxe6u", Secret: "password",
		Named: map[string]string{"signature_key": nav.SignatureKey, "exchange_key": nav.ExchangeKey}}
}

func supplier() country.Supplier {
	return country.Supplier{
		ID: "s1", CountryCode: "HU", LegalName: "Értékesítő Kft.", TaxNumber: supplierNumber,
		Address: transaction.Address{CountryCode: "HU", AddressLine1: "Hármas utca 1.", PostalCode: "1234",
			City: "Budapest"},
		Settings: country.Settings{"appearance": "ELECTRONIC", "exemption_case": "TAM"},
	}
}

func vat(rate, mode string) transaction.Tax { return packtest.VAT(rate, mode) }

func typed(kind, code string) transaction.Tax {
	t := vat("0", transaction.Added)
	t.Type, t.Code = kind, code
	return t
}

func item(name string, quantity num.Amount, price int64, taxes ...transaction.Tax) transaction.Item {
	return transaction.Item{Name: name, Quantity: quantity, UnitPrice: price, Type: transaction.Goods, Unit: "db",
		Taxes: taxes}
}

func service(i transaction.Item) transaction.Item {
	i.Type, i.Unit = transaction.Services, "óra"
	return i
}

func one() num.Amount { return num.MakeAmount(1, 0) }

func homeBuyer() *transaction.Party {
	return &transaction.Party{LegalName: "Beszerző „Kft.” & Társa", Type: transaction.Business, TaxNumber: buyerNumber,
		Address: &transaction.Address{CountryCode: "HU", AddressLine1: "Északi sugárút 123.", PostalCode: "7600",
			City: "Pécs"}}
}

func person() *transaction.Party {
	return &transaction.Party{LegalName: "Kovács Ágnes", Type: transaction.Individual,
		Address: &transaction.Address{CountryCode: "HU", AddressLine1: "Fő utca 2.", PostalCode: "1011", City: "Budapest"}}
}

func abroad(code, number, kind string) *transaction.Party {
	return &transaction.Party{LegalName: "Buyer Abroad", Type: kind, TaxNumber: number,
		Address: &transaction.Address{CountryCode: code, AddressLine1: "Main Street 1", City: "Somewhere",
			PostalCode: "12345"}}
}

func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	return packtest.Seller{Supplier: supplier(), Currency: "HUF", Day: day, Zone: budapest()}.Draft(number, customer,
		items...)
}

func with(d country.Draft, change func(*country.Draft)) country.Draft {
	change(&d)
	return d
}

// correct turns a draft into a correction of an original, behind earlier ones.
func correct(kind transaction.Kind, d, original country.Draft, earlier ...country.Draft) country.Draft {
	d = packtest.Correct(kind, d, original, "4000000000000001")
	for _, e := range earlier {
		d.Original.Corrections = append(d.Original.Corrections,
			country.Earlier{Transaction: e.Transaction, Totals: e.Totals, Number: e.Transaction.Number})
	}
	return d
}

func invoice(number string) country.Draft {
	return draft(number, homeBuyer(), item("Tea <fekete> & zöld", num.MakeAmount(3, 0), 127000,
		vat("27", transaction.Included)))
}

func euros(d country.Draft) country.Draft {
	rate := num.MakeAmount(39512, 2)
	d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "EUR", &rate, "2026-10-06"
	return d
}

// cases are documents in an order in which NAV takes them.
func cases() []packtest.Case {
	lowered := draft("2026/015", homeBuyer(), func() transaction.Item {
		i := item("Szék", num.MakeAmount(4, 0), 1000000, vat("27", transaction.Included))
		i.Discount, i.Code, i.EAN = &transaction.LineDiscount{Amount: 50000}, "SZ-4", "5991234567890"
		i.Classifications = []transaction.Classification{{Scheme: "VTSZ", Code: "9401 71"}}
		return i
	}())
	plain := invoice("2026/001")
	changed := correct(transaction.Adjustment,
		draft("2026/M1", homeBuyer(), item("Tea, visszatérítés", one(), -12700, vat("27", transaction.Included))), plain)
	again := correct(transaction.Adjustment,
		draft("2026/M2", homeBuyer(), item("Tea, visszatérítés", one(), -6350, vat("27", transaction.Included)),
			item("Szállítás", one(), 1000, vat("27", transaction.Added))), plain, changed)
	whole := draft("2026/002", homeBuyer(), item("Szoftver", num.MakeAmount(25, 1), 400000, vat("27", transaction.Added)),
		service(item("Tanácsadás", num.MakeAmount(15, 1), 200000, vat("18", transaction.Added))))
	return []packtest.Case{
		{Name: "business", Draft: plain},
		{Name: "adjustment", Draft: changed},
		{Name: "second adjustment", Draft: again},
		{Name: "several rates", Draft: whole},
		{Name: "credit", Draft: with(correct(transaction.Credit, draft("2026/S1", homeBuyer(), whole.Transaction.Items...),
			whole), func(d *country.Draft) {
			d.Transaction.Customer = nil
		})},
		{Name: "person", Draft: draft("2026/003", person(), item("Könyv", one(), 500000, vat("5", transaction.Included)))},
		{Name: "nobody named", Draft: draft("2026/004", nil, item("Könyv", one(), 500000, vat("5", transaction.Included)))},
		{Name: "person with own number", Draft: draft("2026/005", with2(person(), "8123456789"),
			item("Könyv", one(), 500000, vat("5", transaction.Included)))},
		{Name: "exempt activity", Draft: draft("2026/006", person(),
			service(item("Oktatás", one(), 1000000, typed(transaction.TaxExempt, ""))))},
		{Name: "exempt company", Draft: with(draft("2026/007", person(),
			item("Kép", one(), 1000000, typed(transaction.TaxExempt, ""))), func(d *country.Draft) {
			d.Supplier.TaxNumber = "12892312-1-42"
		})},
		{Name: "reverse at home", Draft: draft("2026/008", homeBuyer(),
			service(item("Építés", one(), 5000000, typed(transaction.TaxReverse, ""))))},
		{Name: "goods to the Union", Draft: euros(draft("2026/009", abroad("DE", "DE136695976", transaction.Business),
			item("Gép", num.MakeAmount(3, 0), 99999, typed(transaction.TaxIntraEU, ""))))},
		{Name: "services to the Union", Draft: euros(draft("2026/010", abroad("AT", "ATU13585627", transaction.Business),
			service(item("Munka", num.MakeAmount(7, 0), 12345, typed(transaction.TaxReverse, "")))))},
		{Name: "export", Draft: euros(draft("2026/011", abroad("US", "12-3456789", transaction.Business),
			item("Gép", one(), 250000, typed(transaction.TaxExport, ""))))},
		{Name: "services abroad", Draft: euros(draft("2026/012", abroad("CH", "", transaction.Business),
			service(item("Munka", one(), 9900, typed(transaction.TaxOutside, "")))))},
		{Name: "distance sale", Draft: euros(draft("2026/013", abroad("DE", "", transaction.Individual),
			item("Bor", one(), 2500, typed(transaction.TaxOutside, ""))))},
		{Name: "euros at home", Draft: euros(draft("2026/014", homeBuyer(),
			item("Gép", num.MakeAmount(333, 2), 10001, vat("27", transaction.Added))))},
		{Name: "discount", Draft: lowered},
		{Name: "credit of a discount", Draft: correct(transaction.Credit,
			draft("2026/S2", homeBuyer(), lowered.Transaction.Items...), lowered)},
		{Name: "abroad for a buyer at home", Draft: draft("2026/021", homeBuyer(),
			service(item("Szerelés Zürichben", one(), 9900, typed(transaction.TaxOutside, "HO"))))},
		{Name: "paid and due", Draft: with(draft("2026/016", homeBuyer(),
			item("Szék", one(), 1000000, vat("27", transaction.Added))), func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: 1270000}}
			d.Transaction.DueDate, d.Transaction.DeliveryDate = "2099-11-01", "2026-10-01"
			d.Transaction.References = transaction.References{Order: "PO-1", Contract: "C-2", Project: "P-3"}
			d.Supplier.Settings = country.Settings{"cash_accounting": true, "bank_account": "12345678-12345678-12345678",
				"appearance": "PAPER"}
		})},
		{Name: "group", Draft: with(draft("2026/017", homeBuyer(),
			item("Szék", one(), 1000000, vat("27", transaction.Added))), func(d *country.Draft) {
			d.Supplier.TaxNumber, d.Supplier.Settings = "12892312-5-44", country.Settings{"group_member": "13774721-4-41"}
		})},
		{Name: "self-billed", Draft: with(draft("2026/018", homeBuyer(),
			item("Bor", num.MakeAmount(12, 0), 100000, vat("27", transaction.Added))), func(d *country.Draft) {
			d.Transaction.Issuer = homeBuyer()
		})},
		{Name: "own unit", Draft: draft("2026/019", homeBuyer(), func() transaction.Item {
			i := item("Rönk", num.MakeAmount(2, 0), 100000, vat("27", transaction.Added))
			i.Unit = "raklap"
			return i
		}())},
		{Name: "yen", Draft: with(draft("2026/020", abroad("JP", "", transaction.Business),
			item("Gép", one(), 250000, typed(transaction.TaxExport, "EAM"))), func(d *country.Draft) {
			rate := num.MakeAmount(2431, 3)
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "JPY", &rate, "2026-10-06"
		})},
		{Name: "correction of what was reported elsewhere",
			Draft: with(correct(transaction.Adjustment,
				draft("2026/M3", homeBuyer(), item("Javítás", one(), -1000, vat("27", transaction.Added))), invoice("OLD-1")),
				func(d *country.Draft) {
					d.Original.Backfilled, d.Original.AuthorityID1 = true, ""
				})},
	}
}

func with2(p *transaction.Party, number string) *transaction.Party {
	p.TaxNumber = number
	return p
}

// steady takes the days of this test run out of a document.
func steady(report []byte) []byte {
	for _, at := range []time.Time{day.In(budapest())} {
		report = bytes.ReplaceAll(report, []byte(at.Format(time.DateOnly)),
			[]byte(golden.In(budapest()).Format(time.DateOnly)))
	}
	return report
}

// schema holds reports against NAV's own.
func schema(t *testing.T, reports [][]byte) {
	xsd := packtest.XSD{Path: needs.Schemas(t, "hu-nav", "all.xsd"),
		Catalog: needs.Schemas(t, "hu-nav", "nav", "gov", "hu", "OSA", "catalog.xml")}
	xsd.AllConform(t, reports, func(r []byte) []byte {
		return bytes.Replace(r, []byte("<invoiceCategory>"), []byte("<invoiceKind>x</invoiceKind><invoiceCategory>"), 1)
	})
}

func TestEveryScriptOfEveryPack(t *testing.T) {
	packtest.Exercise(t, pack(), packtest.Options{Cases: cases(), Credentials: credentials(), Schema: schema,
		Stable: steady})
}

// What goes with goods is taxed as they are, and stays a service to NAV.
func TestShippingOfGoodsIsReportedAsTheGoodsAre(t *testing.T) {
	shipping := service(item("Szállítás", one(), 20_00, vat("0", transaction.Added)))
	shipping.Ancillary = true
	d := draft("SH-1", abroad("DE", "DE136695976", transaction.Business),
		item("Szék", one(), 100_00, typed(transaction.TaxIntraEU, "")), shipping)
	d.Transaction.CurrencyCode = "HUF"
	ch, err := pack().Connect(country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	f, err := ch.Prepare(d)
	if err != nil {
		t.Fatal(err)
	}
	text := string(f.Report)
	if strings.Count(text, "<case>KBAET</case>") != 3 || strings.Contains(text, "EUFAD37") ||
		!strings.Contains(text, "<lineNatureIndicator>SERVICE<") {
		t.Errorf("both lines and their sum should be KBAET:\n%s", text)
	}
}

// Sales of chance are valid by the official schema.
func TestRandomSalesAreValidByTheOfficialSchema(t *testing.T) {
	schema(t, packtest.RandomReports(t, pack(), open(t).channel, func(number string, seed int) country.Draft {
		return draft(number, homeBuyer(), packtest.RandomItems(seed, "27", "18", "5")...)
	}))
}

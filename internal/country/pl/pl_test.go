package pl_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

const (
	supplierNIP = "5265877635"
	buyerNIP    = "7740001454"
)

// day is late in the evening in Poland, and yesterday in UTC it is not: the
// document's day is the supplier's.
var day = time.Date(2025, 10, 6, 22, 30, 0, 0, time.UTC)

func warsaw() *time.Location { return packtest.Zone("Europe/Warsaw") }

// certificate is made once: keys are slow to make.
var certificate = sync.OnceValue(func() country.Credentials {
	file, password, err := identity.Test(supplierNIP, "Żabka Testowa sp. z o.o.", time.Now())
	if err != nil {
		panic(err)
	}
	return country.Credentials{PKCS12: file, Password: password}
})

// ministryKey is the double's, likewise.
var ministryKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func token() country.Credentials {
	return country.Credentials{Secret: "20251006-EC-0123456789-ABCDEF0123-4A|nip-" + supplierNIP + "|" +
		strings.Repeat("ab", 32)}
}

func supplier() country.Supplier {
	return country.Supplier{
		ID: "s1", CountryCode: "PL", LegalName: "Żabka Testowa sp. z o.o.", TaxNumber: "PL" + supplierNIP,
		CompanyNumber: "0000123456",
		Address: transaction.Address{CountryCode: "PL", AddressLine1: "ul. Świętokrzyska", Number: "12",
			PostalCode: "00-916", City: "Warszawa"},
		Settings: country.Settings{"auth": "token",
			"exemption_basis": "art. 43 ust. 1 pkt 2 ustawy o podatku od towarów i usług"},
	}
}

func vat(rate, mode string) transaction.Tax { return packtest.VAT(rate, mode) }

func item(name string, quantity num.Amount, price int64, taxes ...transaction.Tax) transaction.Item {
	return transaction.Item{Name: name, Quantity: quantity, UnitPrice: price, Type: transaction.Goods, Unit: "szt.",
		Taxes: taxes}
}

func service(i transaction.Item) transaction.Item {
	i.Type, i.Unit = transaction.Services, ""
	return i
}

func coded(t transaction.Tax, kind, code string) transaction.Tax {
	t.Type, t.Code = kind, code
	return t
}

// person is a consumer: named by name and address.
func person() *transaction.Party {
	return &transaction.Party{LegalName: "Łucja Ćwikła", Type: transaction.Individual,
		Address: &transaction.Address{CountryCode: "PL", AddressLine1: "ul. Wiejska 4", PostalCode: "00-902",
			City: "Warszawa"}}
}

func polishBuyer() *transaction.Party {
	return &transaction.Party{
		LegalName: "Spółdzielnia „Łąka” & Synowie", Type: transaction.Business, TaxNumber: buyerNIP, TaxRegime: "VAT",
		EntityNumber: "K-77",
		Address:      &transaction.Address{CountryCode: "PL", AddressLine1: "Rynek 1", PostalCode: "31-042", City: "Kraków"},
	}
}

func foreignBuyer(code, number, kind string) *transaction.Party {
	return &transaction.Party{
		LegalName: "Buyer Abroad", Type: kind, TaxNumber: number,
		Address: &transaction.Address{CountryCode: code, AddressLine1: "Main Street 1", City: "Somewhere",
			PostalCode: "12345"},
	}
}

func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	return packtest.Seller{Supplier: supplier(), Currency: "PLN", Day: day, Zone: warsaw()}.Draft(number, customer,
		items...)
}

// correct turns a draft into a correction of an original.
func correct(kind transaction.Kind, d, original country.Draft) country.Draft {
	return packtest.Correct(kind, d, original, "5265877635-20250826-0100001AF629-AF")
}

func one() num.Amount { return num.MakeAmount(1, 0) }

func invoice(number string) country.Draft {
	return draft(number, polishBuyer(), item("Herbata <czarna> & zielona", num.MakeAmount(3, 0), 7570,
		vat("23", transaction.Included)))
}

func with(d country.Draft, change func(*country.Draft)) country.Draft {
	change(&d)
	return d
}

func cases() []packtest.Case {
	return append(saleCases(), append(specialCases(), correctionCases()...)...)
}

func saleCases() []packtest.Case {
	return []packtest.Case{
		{Name: "B2B", Draft: invoice("FV/1")},
		{Name: "B2C", Draft: draft("FV/2", person(), item("Książka", one(), 4200, vat("5", transaction.Included)))},
		{Name: "several rates", Draft: draft("FV/4", polishBuyer(),
			item("Komputer", num.MakeAmount(2, 0), 10001, vat("23", transaction.Added)),
			service(item("Nocleg", num.MakeAmount(35, 1), 9999, vat("8", transaction.Added))),
			item("Chleb", num.MakeAmount(12345678, 6), 333, vat("5", transaction.Added)),
			item("Kontener", one(), 50000, coded(vat("0", transaction.Added), transaction.TaxZero, "")),
			service(item("Przejazd", one(), 3000, vat("4", transaction.Added))))},
		{Name: "exempt", Draft: draft("FV/5", polishBuyer(),
			service(item("Leczenie", one(), 15000, coded(vat("0", transaction.Included), "", "43.1.18"))),
			item("Używany wózek", one(), 5000, coded(vat("0", transaction.Included), transaction.TaxExempt, "")))},
		{Name: "small taxpayer", Draft: draft("FV/6", polishBuyer(),
			service(item("Korepetycje", one(), 8000, coded(vat("0", transaction.Included), "", "113"))))},
		{Name: "intra-EU goods", Draft: draft("FV/7", foreignBuyer("DE", "DE136695976", transaction.Business),
			item("Meble", num.MakeAmount(4, 0), 25000, vat("0", transaction.Added)))},
		{Name: "export", Draft: draft("FV/8", foreignBuyer("US", "12-3456789", transaction.Business),
			item("Bursztyn", one(), 100000, vat("0", transaction.Added)))},
		{Name: "services to the EU", Draft: draft("FV/9", foreignBuyer("GR", "EL094259216", transaction.Business),
			service(item("Programowanie", num.MakeAmount(8, 0), 20000, vat("0", transaction.Added))))},
		{Name: "services outside the EU", Draft: draft("FV/10", foreignBuyer("CH", "", transaction.Business),
			service(item("Doradztwo", one(), 90000, vat("0", transaction.Added))))},
		{Name: "reverse charge", Draft: draft("FV/11", polishBuyer(),
			item("Gaz", one(), 700000, coded(vat("0", transaction.Added), "", "OO")))},
		{Name: "discount", Draft: draft("FV/12", polishBuyer(),
			item("Rower", one(), 200000, vat("23", transaction.Included)),
			transaction.Item{Name: "Rabat", Quantity: one(), UnitPrice: -20000, Type: transaction.Discount,
				Taxes: []transaction.Tax{vat("23", transaction.Included)}})},
		{Name: "discounts of lines", Draft: draft("FV/112", polishBuyer(),
			lowered(item("Herbata", num.MakeAmount(3, 0), 7570, vat("23", transaction.Included)),
				transaction.LineDiscount{Amount: 2710}),
			lowered(item("Kawa", one(), 10000, vat("8", transaction.Added)),
				transaction.LineDiscount{Rate: num.NewAmount(125, 1)}))},
	}
}

func lowered(item transaction.Item, by transaction.LineDiscount) transaction.Item {
	item.Discount = &by
	return item
}

func specialCases() []packtest.Case {
	rate := num.MakeAmount(426789, 5)
	yen := num.MakeAmount(2543, 5)
	return []packtest.Case{
		{Name: "foreign currency", Draft: with(draft("FV/13", foreignBuyer("FR", "FR39356000000", transaction.Business),
			item("Wino", num.MakeAmount(6, 0), 1199, vat("23", transaction.Included)),
			service(item("Montaż", one(), 10000, vat("8", transaction.Included)))), func(d *country.Draft) {
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "eur", &rate, "2025-10-03"
		})},
		{Name: "currency without decimals", Draft: with(
			draft("FV/14", foreignBuyer("JP", "T1234567890123", transaction.Business),
				item("Ceramika", one(), 50000, vat("23", transaction.Included))), func(d *country.Draft) {
				d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "JPY", &yen, "2025-10-03"
			})},
		{Name: "marketplace", Draft: with(invoice("FV/15"), func(d *country.Draft) {
			d.Transaction.Issuer = &transaction.Party{LegalName: "Targowisko S.A.", Type: transaction.Business,
				TaxNumber: "PL1060000062", Address: &transaction.Address{CountryCode: "PL", City: "Gdańsk"}}
		})},
		{Name: "self-billing", Draft: with(invoice("FV/16"), func(d *country.Draft) {
			d.Transaction.Issuer = polishBuyer()
		})},
		{Name: "split payment", Draft: with(draft("FV/17", polishBuyer(),
			item("Stal", one(), 1600000, vat("23", transaction.Added))), func(d *country.Draft) {
			d.Supplier.Settings = country.Settings{"split_payment": true, "cash_method": true,
				"bank_account": "61 1090 1014 0000 0712 1981 2874"}
			d.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: 1968000}}
		})},
		{Name: "several payments", Draft: with(invoice("FV/18"), func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Amount: 10000},
				{Type: "OTHER", Code: "BLIK", Amount: 12710}}
		})},
		{Name: "withholding", Draft: draft("FV/19", polishBuyer(),
			service(item("Licencja", one(), 100000, vat("23", transaction.Added),
				transaction.Tax{Rate: num.MakeAmount(20, 0), Regime: transaction.Withholding, Type: "CIT"})))},
		{Name: "long texts", Draft: with(draft("ŻÓŁĆ/"+strings.Repeat("9", 45), &transaction.Party{
			LegalName: strings.Repeat("Ż", 450), TradeName: strings.Repeat("ą", 450), Type: transaction.Individual,
			TaxNumber: "44051401359",
			Address: &transaction.Address{CountryCode: "PL", AddressLine1: strings.Repeat("ulica ", 100),
				City: strings.Repeat("Miasto ", 90)},
		}, item(strings.Repeat("ę", 200), num.MakeAmount(999999, 6), transaction.AmountMax/2,
			vat("23", transaction.Included))), func(d *country.Draft) {
			d.Transaction.Items[0].Description = strings.Repeat("ó", 200)
			d.Transaction.Items[0].Code = strings.Repeat("Z", 50)
			d.Transaction.Items[0].EAN = "5901234123457"
			d.Transaction.Items[0].Unit = strings.Repeat("ź", 20)
			d.Transaction.Note = "<p>Dziękujemy &amp; zapraszamy</p><script>alert(1)</script>" + strings.Repeat("ń", 2900)
		})},
	}
}

func correctionCases() []packtest.Case {
	original := invoice("FV/1")
	less := func(number string) country.Draft {
		return draft(number, polishBuyer(), item("Herbata", one(), -7570, vat("23", transaction.Included)))
	}
	return []packtest.Case{
		{Name: "adjustment", Draft: with(correct(transaction.Adjustment, less("KOR/1"), original), func(d *country.Draft) {
			d.Transaction.Note = "<b>Zwrot</b> jednej sztuki"
		})},
		{Name: "adjustment upwards", Draft: correct(transaction.Adjustment,
			draft("KOR/2", polishBuyer(), item("Dopłata", one(), 1000, vat("23", transaction.Added))), original)},
		{Name: "credit", Draft: correct(transaction.Credit, invoice("KOR/3"), original)},
		{Name: "credit of discounts of lines",
			Draft: correct(transaction.Credit, saleCases()[11].Draft, saleCases()[11].Draft)},
		{Name: "credit of a discount", Draft: with(correct(transaction.Credit, saleCases()[10].Draft, saleCases()[10].Draft),
			func(d *country.Draft) {
				d.Transaction.Number, d.Transaction.Items = "", saleCases()[10].Draft.Transaction.Items
			})},
		{Name: "adjustment of an invoice outside KSeF",
			Draft: with(correct(transaction.Adjustment, less("KOR/4"), original), func(d *country.Draft) {
				d.Original.Backfilled, d.Original.AuthorityID1 = true, ""
			})},
		{Name: "adjustment of a backfilled invoice",
			Draft: with(correct(transaction.Adjustment, less("KOR/5"), original), func(d *country.Draft) {
				d.Original.Backfilled, d.Original.AuthorityID1 = true, "5265877635-20250916-0200A0D6723E-C2"
			})},
	}
}

func schema(t testing.TB) packtest.XSD {
	return packtest.XSD{
		Path:    needs.Schemas(t, "pl-ksef", "schemy", "FA", "schemat_FA(3)_v1-0E.xsd"),
		Catalog: needs.Schemas(t, "pl-ksef", "catalog.xml"),
	}
}

// breakIt takes away an element that every invoice must have.
func breakIt(report []byte) []byte {
	return bytes.Replace(report, []byte("<RodzajFaktury>"), []byte("<RodzajFaktura>"), 1)
}

func TestPolandPassesTheSuite(t *testing.T) {
	pack := paired()
	watch(t, &pack)
	packtest.Exercise(t, pack, packtest.Options{Cases: cases(), Credentials: token()})
}

func TestPolandPassesTheSuiteWithACertificate(t *testing.T) {
	all := cases()
	for i := range all {
		all[i].Draft.Supplier.Settings = country.Settings{"auth": "xades"}
	}
	pack := paired()
	watch(t, &pack)
	packtest.Exercise(t, pack, packtest.Options{Name: "xades", Cases: all[:2], Credentials: certificate()})
}

// connect answers a channel that is never called.
func connect(t testing.TB) country.Channel {
	t.Helper()
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{paired()}, Simulators: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	ch, err := atlas.Channel("PL", false)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func TestEveryDocumentIsValidAndItsBrokenCopyIsNot(t *testing.T) {
	xsd, ch := schema(t), connect(t)
	var reports [][]byte
	for _, c := range cases() {
		f, err := ch.Prepare(c.Draft)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		reports = append(reports, f.Report)
	}
	xsd.AllConform(t, reports, breakIt)
}

// Sales of chance are valid by the official schema.
func TestRandomSalesAreValidByTheOfficialSchema(t *testing.T) {
	schema(t).AllConform(t, packtest.RandomReports(t, paired(), connect(t), func(number string, seed int) country.Draft {
		return draft(number, polishBuyer(), packtest.RandomItems(seed, "23", "8", "5")...)
	}), breakIt)
}

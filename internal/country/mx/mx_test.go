package mx_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/invopop/gobl/num"

	"tributary/internal/authority/sat"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/mx"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

// now is the clock of all drafts. The simulator compares it with the real one,
// so it is that of the run; what depends on it is taken out of golden files.
var now = time.Now().UTC().Truncate(time.Second)

// pack is one for all tests: its simulated SAT makes its key once.
var pack = sync.OnceValue(paired)

// paired is the pack with its double, as the list of countries pairs them.
func paired() country.Pack {
	p := mx.Pack()
	p.Simulator = new(sat.Seal).New
	return p
}

const supplierRFC = "EKU9003173C9"

var credentials = sync.OnceValue(func() country.Credentials {
	file, password, err := identity.Test(supplierRFC, "ESCUELA KEMPER URGATE", now)
	if err != nil {
		panic(err)
	}
	return country.Credentials{PKCS12: file, Password: password, Username: "pac@example.com", Secret: "a password"}
})

func supplier(pac string) country.Supplier {
	return country.Supplier{
		ID: "s1", CountryCode: "MX", LegalName: "Escuela Kemper Urgate", TaxNumber: supplierRFC,
		Address: transaction.Address{CountryCode: "MX", PostalCode: "06000"},
		Settings: country.Settings{"fiscal_regime": "601", "place_of_issue": "", "cfdi_use": "G03",
			"product_key": "01010101", "unit_key": "", "pac": pac},
	}
}

func percent(value int64, decimals uint32) num.Amount { return num.MakeAmount(value, decimals) }

func iva(rate int64) transaction.Tax {
	return transaction.Tax{Rate: percent(rate, 0), Regime: transaction.VAT, Mode: transaction.Included}
}

func business() *transaction.Party {
	return &transaction.Party{LegalName: "Universidad Robótica Española", Type: transaction.Business,
		TaxNumber: "URE180429TM6", TaxRegime: "601",
		Address: &transaction.Address{CountryCode: "MX", PostalCode: "86991"}}
}

func items(prices ...int64) []transaction.Item {
	var list []transaction.Item
	for i, price := range prices {
		list = append(list, transaction.Item{Number: int64(i + 1), Name: "Café & <té> nº " + string(rune('A'+i)),
			Quantity: num.MakeAmount(1, 0), UnitPrice: price,
			Type: transaction.Goods, Unit: "H87", Code: "50161509", Taxes: []transaction.Tax{iva(16)}})
	}
	return list
}

// draft is an invoice to a business; edit changes it before it is added up.
func draft(number string, edit func(*country.Draft)) country.Draft {
	d := country.Draft{
		OperationID: "018f6b2e-0000-7000-8000-" + number, UniqueNumber: "MX-" + number,
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "MX", LanguageCode: "ES", CurrencyCode: "MXN", Date: now.Add(-time.Minute),
			Number: number, ID: "tx-" + number,
			SupplierID: "s1", Items: items(116000), Customer: business(),
		},
		Supplier: supplier("soap"), Location: time.UTC, Now: now, Credentials: credentials(),
	}
	if edit != nil {
		edit(&d)
	}
	totals, faults := transaction.Calculate(d.Transaction.Items)
	if len(faults) > 0 {
		panic(faults)
	}
	if d.Transaction.Kind != transaction.Credit && d.Transaction.Kind != transaction.Cancellation {
		d.Totals = totals
	}
	return d
}

// correction is a document of another kind about an original.
func correction(kind transaction.Kind, number string, original country.Draft, edit func(*country.Draft)) country.Draft {
	return draft(number, func(d *country.Draft) {
		d.Transaction.Kind, d.Transaction.ReferenceID = kind, original.Transaction.ID
		d.Transaction.Items, d.Transaction.Customer, d.Totals = original.Transaction.Items, original.Transaction.Customer,
			original.Totals
		d.Original = &country.Original{Transaction: original.Transaction, Totals: original.Totals,
			UniqueNumber: original.UniqueNumber,
			AuthorityID1: "11111111-2222-3333-4444-555555555555"}
		if edit != nil {
			edit(d)
		}
	})
}

var sealPattern = regexp.MustCompile(` Sello="([^"]*)"`)

// folio is the UUID that the simulator gives a filing.
func folio(report []byte) string {
	found := sealPattern.FindSubmatch(report)
	return strings.ToUpper(uuid.NewSHA1(uuid.NameSpaceURL, []byte("cfdi\n"+string(found[1]))).String())
}

func channelTo(t testing.TB, base string) country.Channel {
	t.Helper()
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack()}, Simulators: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(atlas.Close)
	ch, err := atlas.Channel("MX", false)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func tax(rate num.Amount, regime, kind string) transaction.Tax {
	t := transaction.Tax{Rate: rate, Regime: regime, Type: kind}
	if regime != transaction.Withholding {
		t.Mode = transaction.Included
	}
	return t
}

func cases(pac string) []packtest.Case {
	list := append(sales(pac), lines(pac)...)
	return append(list, corrections(pac, list[0].Draft)...)
}

// sale is one case of an invoice.
func sale(pac string) func(name, number string, edit func(*country.Draft)) packtest.Case {
	return func(name, number string, edit func(*country.Draft)) packtest.Case {
		return packtest.Case{Name: name, Draft: draft(number, func(d *country.Draft) {
			d.Supplier = supplier(pac)
			if edit != nil {
				edit(d)
			}
		})}
	}
}

// sales differ in customer, payment and number.
func sales(pac string) []packtest.Case {
	c := sale(pac)
	return []packtest.Case{
		c("invoice", "F-1", nil),
		c("paid at once", "F-2", func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Code: "PUE", Amount: 16000},
				{Type: "CARD", Code: "PUE", Amount: 100000}}
		}),
		c("general public", "F-3", func(d *country.Draft) { d.Transaction.Customer = nil }),
		c("consumer with a name", "F-4", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Óscar Núñez", Type: transaction.Individual,
				Address: &transaction.Address{CountryCode: "MX"}}
		}),
		c("person with an RFC", "F-5", func(d *country.Draft) {
			d.Transaction.Customer = &transaction.Party{LegalName: "Xochilt Casas Chávez", Type: transaction.Individual,
				TaxNumber: "CACX7605101P8", Address: &transaction.Address{CountryCode: "MX", PostalCode: "36257"}}
		}),
		c("foreign customer in dollars", "F-6", func(d *country.Draft) {
			rate := num.MakeAmount(185432, 4)
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "USD", &rate
			d.Transaction.Items[0].Type, d.Transaction.Items[0].Unit = transaction.Services, "E48"
			d.Transaction.Items[0].Taxes = []transaction.Tax{iva(0)}
			d.Transaction.Customer = &transaction.Party{LegalName: "Acme Inc.", Type: transaction.Business,
				TaxNumber: "12-3456789", Address: &transaction.Address{CountryCode: "US", PostalCode: "10001"}}
		}),
		c("longest texts", strings.Repeat("N", 49)+"9", func(d *country.Draft) {
			d.Transaction.Customer.LegalName = strings.Repeat("Ñ", 300)
			d.Transaction.Items[0].Name, d.Transaction.Items[0].Description = strings.Repeat("á", 200), strings.Repeat("&", 200)
			d.Transaction.Items[0].Unit, d.Transaction.Items[0].EAN = strings.Repeat("u", 20), "7501031311309"
		}),
		c("no number", "", nil),
		c("yen", "F-16", func(d *country.Draft) {
			rate := num.MakeAmount(12, 2)
			d.Transaction.CurrencyCode, d.Transaction.ExchangeRate = "JPY", &rate
		}),
	}
}

// lines differ in what is sold and how it is taxed.
func lines(pac string) []packtest.Case {
	c := sale(pac)
	line := func(edit func(*transaction.Item)) func(*country.Draft) {
		return func(d *country.Draft) { edit(&d.Transaction.Items[0]) }
	}
	return []packtest.Case{
		c("several rates", "F-7", func(d *country.Draft) {
			d.Supplier.Settings["place_of_issue"] = "22000" // where 8 % is a rate
			d.Transaction.Items = items(11600, 10800, 5000, 7000, 300)
			d.Transaction.Items[1].Taxes = []transaction.Tax{iva(8)}
			d.Transaction.Items[2].Taxes = []transaction.Tax{iva(0)}
			d.Transaction.Items[3].Taxes = []transaction.Tax{tax(percent(0, 0), transaction.VAT, transaction.TaxExempt)}
			d.Transaction.Items[4].Taxes = nil
		}),
		c("exempt only", "F-8", line(func(i *transaction.Item) {
			i.Taxes = []transaction.Tax{tax(percent(0, 0), "IVA", transaction.TaxExempt)}
		})),
		c("withheld", "F-9", line(func(i *transaction.Item) {
			i.Type, i.Unit, i.Name = transaction.Services, "", "Honorarios"
			i.Taxes = append(i.Taxes, tax(percent(10, 0), transaction.Withholding, "ISR"),
				tax(percent(106667, 4), transaction.Withholding, ""))
		})),
		c("discounts", "F-10", func(d *country.Draft) {
			d.Transaction.Items = items(10000, 20000, 33333, -1234, -777)
			d.Transaction.Items[3].Type = transaction.Discount
		}),
		c("lines with discounts of their own", "F-110", func(d *country.Draft) {
			off := percent(125, 1)
			d.Transaction.Items = items(11600, 20000, 33333, -1234)
			d.Transaction.Items[0].Discount = &transaction.LineDiscount{Amount: 1160}
			d.Transaction.Items[1].Discount = &transaction.LineDiscount{Rate: &off}
			d.Transaction.Items[3].Type = transaction.Discount
		}),
		c("everything given away", "F-11", func(d *country.Draft) {
			d.Transaction.Items = items(10000, 20000, -10000)
			d.Transaction.Items[0].Taxes, d.Transaction.Items[2].Taxes = []transaction.Tax{iva(0)}, []transaction.Tax{iva(0)}
		}),
		c("ieps", "F-12", line(func(i *transaction.Item) {
			i.Taxes = []transaction.Tax{tax(percent(8, 0), "IEPS", ""), iva(0)}
		})),
		c("price without tax and broken quantity", "F-13", line(func(i *transaction.Item) {
			i.Quantity, i.UnitPrice, i.Unit = num.MakeAmount(3333333, 6), 12345, "caja grande"
			i.Taxes[0].Mode = transaction.Added
		})),
	}
}

// corrections are about the first invoice.
func corrections(pac string, invoice country.Draft) []packtest.Case {
	var list []packtest.Case
	add := func(name string, d country.Draft) {
		d.Supplier = supplier(pac)
		list = append(list, packtest.Case{Name: name, Draft: d})
	}
	add("adjustment", correction(transaction.Adjustment, "N-1", invoice, func(d *country.Draft) {
		d.Transaction.Items = items(-11600)
	}))
	add("goods given back", correction(transaction.Adjustment, "N-2", invoice, func(d *country.Draft) {
		d.Transaction.Items = items(-116000)
		d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PUE", Amount: -116000}}
	}))
	add("adjustment with a discount taken back",
		correction(transaction.Adjustment, "N-3", invoice, func(d *country.Draft) {
			d.Transaction.Items = items(-11600, 580)
		}))
	add("replacement", correction(transaction.Adjustment, "N-4", invoice, func(d *country.Draft) {
		d.Transaction.Items, d.Transaction.Reason = items(58000), "04"
	}))
	add("more is owed", correction(transaction.Adjustment, "N-6", invoice, func(d *country.Draft) {
		d.Transaction.Items = items(5800)
	}))
	add("credit to the general public", correction(transaction.Credit, "N-7", draft("F-3", func(d *country.Draft) {
		d.Transaction.Customer = nil
	}), nil))
	add("credit", correction(transaction.Credit, "N-5", invoice, nil))
	owed := country.Share{Amount: 33333, Original: country.Original{Transaction: invoice.Transaction,
		Totals: invoice.Totals, Backfilled: true, AuthorityID1: "11111111-2222-3333-4444-555555555555"}}
	add("payment", payment("N-8", []transaction.Payment{{Type: "TRANSFER", Amount: 33333, Reference: "SPEI 1"}}, nil,
		owed))
	return list
}

// stable takes out what changes from run to run: keys, seals, times, and the UUIDs that follow from them.
func stable(report []byte) []byte {
	for _, name := range []string{"Sello", "Certificado", "NoCertificado", "Fecha", "FechaPago", "Meses", "Año", "UUID"} {
		report = regexp.MustCompile(` `+name+`="[^"]*"`).ReplaceAll(report, []byte(` `+name+`="…"`))
	}
	return report
}

func TestBothProvidersPassTheSuite(t *testing.T) {
	for _, pac := range []string{"soap", "rest"} {
		t.Run(pac, func(t *testing.T) {
			sales := []country.Draft{counter("P-1", "daily", nil), counter("P-2", "daily", nil)}
			for i := range sales {
				sales[i].Supplier.Settings["pac"] = pac
			}
			packtest.Exercise(t, pack(), packtest.Options{Name: pac, Credentials: credentials(), Cases: cases(pac),
				Stable: stable, Immediate: true,
				Abilities: packtest.Abilities{Gathers: sales}})
		})
	}
}

package it_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority/sdi"
	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

const (
	supplierNumber = "12345670785"
	buyerNumber    = "00743110157"
	personCode     = "RSSMRA80A01H501U"
)

// day is late in the evening in Rome: the document's day is the supplier's.
var day = time.Date(2025, 3, 4, 21, 30, 0, 0, time.UTC)

func rome() *time.Location { return packtest.Zone("Europe/Rome") }

func supplier() country.Supplier {
	return country.Supplier{
		ID: "s1", CountryCode: "IT", LegalName: "Venditore & Figli S.r.l.", TaxNumber: supplierNumber,
		Address: transaction.Address{CountryCode: "IT", AddressLine1: "Via Roma", Number: "1/A", PostalCode: "00184",
			City: "Roma", Province: "RM"},
		Settings: country.Settings{"fiscal_regime": "RF01", "stamp_duty": true, "vat_due": "I", "liquidation": "LN"},
	}
}

func amount(text string) num.Amount { return packtest.Amount(text) }

func vat(rate, mode string) transaction.Tax { return packtest.VAT(rate, mode) }

func coded(t transaction.Tax, code string) transaction.Tax {
	t.Code = code
	return t
}

func untaxed(kind, code string) transaction.Tax {
	t := vat("0", transaction.Added)
	t.Type, t.Code = kind, code
	return t
}

func withheld(rate, code string) transaction.Tax {
	return transaction.Tax{Rate: amount(rate), Regime: transaction.Withholding, Code: code}
}

func item(name, quantity string, price int64, taxes ...transaction.Tax) transaction.Item {
	return transaction.Item{Name: name, Quantity: amount(quantity), UnitPrice: price, Type: transaction.Goods, Unit: "pz",
		Taxes: taxes}
}

func service(i transaction.Item) transaction.Item {
	i.Type, i.Unit = transaction.Services, "ore"
	return i
}

func business() *transaction.Party {
	return &transaction.Party{LegalName: "Compratore “Uno” S.p.A.", Type: transaction.Business,
		TaxNumber: "IT" + buyerNumber,
		Address: &transaction.Address{CountryCode: "IT", AddressLine1: "Corso Italia 5", PostalCode: "20121",
			City: "Milano", Province: "mi"},
		Electronic: &transaction.ElectronicAddress{Scheme: transaction.SchemeSDI, ID: "ABC1234"}}
}

func person() *transaction.Party {
	return &transaction.Party{LegalName: "Mario Rossi", Type: transaction.Individual, FiscalCode: personCode,
		Address: &transaction.Address{CountryCode: "IT", AddressLine1: "Piazza Dante 2", PostalCode: "80135", City: "Napoli"}}
}

func abroad(code, number, kind string) *transaction.Party {
	return &transaction.Party{LegalName: "Buyer Abroad", Type: kind, TaxNumber: number,
		Address: &transaction.Address{CountryCode: code, AddressLine1: "Main Street 1", City: "Somewhere",
			PostalCode: "AB1 2CD", Province: "XY"}}
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	return packtest.Seller{Supplier: supplier(), Currency: "EUR", Day: day, Zone: rome()}.Draft(number, customer, items...)
}

func reason(d country.Draft, code string) country.Draft {
	d.Transaction.Reason = code
	return d
}

// correct turns a draft into a correction of an original.
func correct(kind transaction.Kind, d, original country.Draft) country.Draft {
	return packtest.Correct(kind, d, original, "100000001")
}

func sale(number string, items ...transaction.Item) country.Draft {
	if len(items) == 0 {
		items = []transaction.Item{item("Tè <nero> & verde – 100 g", "3", 1220, vat("22", transaction.Included))}
	}
	return draft(number, business(), items...)
}

func lowered() country.Draft {
	return sale("D-1", with(item("Sedia", "4", 10000, vat("22", transaction.Included)), func(i *transaction.Item) {
		i.Discount, i.Code, i.EAN = &transaction.LineDiscount{Amount: 500}, "SED-4", "8001234567890"
		i.Classifications = []transaction.Classification{{Scheme: "CPV", Code: "39112000"}}
	}))
}

// cases are documents in an order in which SdI takes them.
func cases() []packtest.Case {
	plain, whole := sale("2025/001"), sale("2025/002", item("Software", "2.5", 40000, vat("22", transaction.Added)),
		service(item("Consulenza", "1.5", 20000, vat("10", transaction.Added))))
	integrated := reason(draft("A-17", abroad("DE", "DE136695976", transaction.Business),
		service(item("Hosting", "1", 100000, vat("22", transaction.Added)))), "TD17")
	exempt := func(kind, code string) transaction.Item {
		return service(item("Prestazione", "1", 20000, untaxed(kind, code)))
	}
	setting := func(d country.Draft, key string, value any) country.Draft {
		d.Supplier.Settings = with(country.Settings{"fiscal_regime": "RF01", "stamp_duty": true, "vat_due": "I",
			"liquidation": "LN"}, func(s *country.Settings) {
			(*s)[key] = value
		})
		return d
	}
	return []packtest.Case{
		{Name: "business", Draft: plain},
		{Name: "several rates", Draft: whole},
		{Name: "credit", Draft: with(correct(transaction.Credit, sale("NC-1", whole.Transaction.Items...), whole),
			func(d *country.Draft) {
				d.Transaction.Customer = nil
			})},
		{Name: "adjustment down", Draft: correct(transaction.Adjustment,
			sale("NC-2", item("Tè, abbuono", "1", -122, vat("22", transaction.Included))), plain)},
		{Name: "adjustment up", Draft: correct(transaction.Adjustment,
			sale("ND-1", item("Trasporto", "1", 1000, vat("22", transaction.Added))), plain)},
		{Name: "credit under a number of a sale",
			Draft: correct(transaction.Credit, sale("2025/001", plain.Transaction.Items...), plain)},
		{Name: "person", Draft: draft("C-1", person(), item("Libro", "1", 1500, vat("4", transaction.Included)))},
		{Name: "person with the code as number", Draft: draft("C-2", with(person(), func(p **transaction.Party) {
			(*p).TaxNumber, (*p).FiscalCode = personCode, ""
		}), item("Pane", "2", 104, vat("4", transaction.Included)))},
		{Name: "certified mail", Draft: draft("C-3", with(business(), func(p **transaction.Party) {
			(*p).Electronic = &transaction.ElectronicAddress{Scheme: transaction.SchemePEC, ID: "compratore@pec.example.it"}
		}), item("Penna", "7", 99, vat("22", transaction.Included)))},
		{Name: "business without an address", Draft: draft("C-4", with(business(), func(p **transaction.Party) {
			(*p).Electronic = nil
		}), item("Penna", "1", 99, vat("22", transaction.Included)))},
		{Name: "association with a numeric code", Draft: draft("C-5", with(person(), func(p **transaction.Party) {
			(*p).LegalName, (*p).FiscalCode, (*p).TaxNumber = "Associazione", "", "80012345676"
		}), item("Penna", "1", 99, vat("22", transaction.Included)))},
		{Name: "number and another code", Draft: draft("C-6", with(business(), func(p **transaction.Party) {
			(*p).FiscalCode = personCode
		}), item("Penna", "1", 99, vat("22", transaction.Included)))},
		{Name: "exempt with stamp duty", Draft: sale("N-4", exempt(transaction.TaxExempt, ""))},
		{Name: "exempt below the stamp duty",
			Draft: sale("N-4b", with(exempt(transaction.TaxExempt, ""), func(i *transaction.Item) {
				i.UnitPrice = 7747
			}))},
		{Name: "without stamp duty", Draft: setting(sale("N-4c", exempt(transaction.TaxExempt, "")), "stamp_duty", false)},
		{Name: "excluded", Draft: sale("N-1", item("Anticipo di spese", "1", 5000, untaxed(transaction.TaxZero, "")))},
		{Name: "flat rate", Draft: setting(draft("N-22", person(), exempt(transaction.TaxOutside, "N2.2")), "fiscal_regime",
			"RF19")},
		{Name: "reverse at home", Draft: sale("N-67", exempt(transaction.TaxReverse, "N6.7"))},
		{Name: "reverse without a code", Draft: sale("N-69", exempt(transaction.TaxReverse, ""))},
		{Name: "margin", Draft: sale("N-5", item("Quadro usato", "1", 100000, untaxed(transaction.TaxExempt, "N5")))},
		{Name: "declaration of intent", Draft: sale("N-35",
			with(item("Motore", "1", 500000, untaxed(transaction.TaxExport, "N3.5")), func(i *transaction.Item) {
				i.Classifications = []transaction.Classification{{Scheme: "INTENTO", Code: "25010112345678901-000001@2025-01-10"}}
			}))},
		{Name: "goods to the Union", Draft: draft("E-1", abroad("DE", "DE136695976", transaction.Business),
			item("Macchina", "3", 99999, untaxed(transaction.TaxIntraEU, "")))},
		{Name: "services to the Union", Draft: draft("E-2", abroad("AT", "ATU13585627", transaction.Business),
			service(item("Lavoro", "7", 12345, untaxed(transaction.TaxReverse, ""))))},
		{Name: "export", Draft: draft("E-3", abroad("US", "12-3456789", transaction.Business),
			item("Macchina", "1", 250000, untaxed(transaction.TaxExport, "")))},
		{Name: "services outside", Draft: draft("E-4", abroad("CH", "", transaction.Business),
			service(item("Lavoro", "1", 9900, untaxed(transaction.TaxOutside, ""))))},
		{Name: "person abroad", Draft: draft("E-5", abroad("FR", "", transaction.Individual),
			item("Vino", "1", 2440, vat("22", transaction.Included)))},
		{Name: "one stop shop", Draft: draft("E-6", abroad("FR", "", transaction.Individual),
			item("Vino", "1", 2500, untaxed(transaction.TaxOutside, "N7")))},
		{Name: "buyer in Cyrillic", Draft: draft("E-7",
			with(abroad("RS", "", transaction.Business), func(p **transaction.Party) {
				(*p).LegalName, (*p).Address.City = "Београд Трговина д.о.о. €", "Нови Сад"
			}), item("Vite", "1", 250000, untaxed(transaction.TaxExport, "")))},
		{Name: "buyer in Greece", Draft: draft("E-8", abroad("GR", "EL094259216", transaction.Business),
			item("Vite", "1", 250000, untaxed(transaction.TaxIntraEU, "")))},
		{Name: "withholding", Draft: with(sale("R-1",
			service(item("Parcella", "1", 100000, vat("22", transaction.Added), withheld("20", "A")))), func(d *country.Draft) {
			d.Supplier.Type, d.Transaction.Reason = transaction.Individual, "TD06"
		})},
		{Name: "two withholdings", Draft: sale("R-2",
			service(item("Provvigione", "1", 100000, vat("22", transaction.Added), withheld("11.5", "RT02:R"))),
			service(item("Contributo", "1", 100000, vat("22", transaction.Added), withheld("8.5", "RT04:R"))))},
		{Name: "split payment", Draft: with(sale("S-1", item("Carta", "10", 500, coded(vat("22", transaction.Added), "S"))),
			func(d *country.Draft) {
				d.Transaction.DueDate = "2025-04-30"
			})},
		{Name: "tax due on payment", Draft: setting(sale("S-2", item("Carta", "10", 500, vat("22", transaction.Added))),
			"vat_due", "D")},
		{Name: "deferred", Draft: with(reason(sale("DIFF-1"), "TD24"), func(d *country.Draft) {
			d.Transaction.DeliveryDate = "2025-02-28"
		})},
		{Name: "deferred for services", Draft: reason(sale("DIFF-2"), "TD25")},
		{Name: "advance", Draft: reason(sale("ACC-1"), "TD02")},
		{Name: "domestic integration", Draft: reason(draft("A-16", business(),
			service(item("Subappalto", "1", 100000, vat("22", transaction.Added)))), "TD16")},
		{Name: "services from abroad", Draft: integrated},
		{Name: "services from abroad taken back",
			Draft: correct(transaction.Credit, draft("A-17C", integrated.Transaction.Customer, integrated.Transaction.Items...),
				integrated)},
		{Name: "goods from the Union", Draft: setting(
			reason(draft("A-18", abroad("FR", "FR61954506077", transaction.Business),
				item("Vite", "1000", 12, vat("22", transaction.Added))), "TD18"), "recipient_code", "ZZZ9999")},
		{Name: "goods from abroad in Italy", Draft: reason(draft("A-19", abroad("CH", "CHE123456788", transaction.Business),
			item("Vite", "1", 1200, vat("22", transaction.Added))), "TD19")},
		{Name: "missing invoice", Draft: reason(draft("A-20", business(),
			item("Merce", "1", 12000, vat("22", transaction.Added))), "TD20")},
		{Name: "given away", Draft: reason(draft("A-27", nil, item("Omaggio", "5", 2000, vat("22", transaction.Added))),
			"TD27")},
		{Name: "buyer issues", Draft: with(sale("CC-1"), func(d *country.Draft) { d.Transaction.Issuer = business() })},
		{Name: "third party issues", Draft: with(sale("TZ-1"), func(d *country.Draft) {
			d.Transaction.Issuer = &transaction.Party{LegalName: "Mercato Online S.r.l.", Type: transaction.Business,
				TaxNumber: "07643520567"}
		})},
		{Name: "discount", Draft: lowered()},
		{Name: "discount line", Draft: sale("D-2", item("Sedia", "4", 10000, vat("22", transaction.Added)),
			with(item("Sconto", "1", -500, vat("22", transaction.Added)), func(i *transaction.Item) {
				i.Type = transaction.Discount
			}))},
		{Name: "cents apart", Draft: sale("R-9", item("A", "1", 99, vat("22", transaction.Included)),
			item("B", "1", 99, vat("22", transaction.Included)), item("C", "1", 99, vat("22", transaction.Included)),
			item("D", "1", 99, vat("22", transaction.Included)), item("E", "1", 99, vat("22", transaction.Included)))},
		{Name: "eleven for one price", Draft: sale("R-10", item("Kit", "11", 10000, vat("22", transaction.Included)))},
		{Name: "paid and due", Draft: with(sale("P-1", item("Sedia", "1", 100000, vat("22", transaction.Added))),
			func(d *country.Draft) {
				d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Amount: 22000},
					{Type: "TRANSFER", Amount: 100000, IBAN: "IT60 X054 2811 1010 0000 0123 456", Reference: "RF18539007547034"}}
				d.Transaction.DueDate, d.Transaction.Note = "2025-04-04", "<p>Grazie per l’acquisto – a presto…</p>"
				d.Transaction.References = transaction.References{Buyer: "UFF-9", Order: "PO-1",
					Contract: "a contract with a name that is too long", Project: "Commessa 7"}
				d.Transaction.PaymentTerms = "30 giorni"
				d.Supplier.Settings = country.Settings{"fiscal_regime": "RF01", "rea_office": "rm", "rea_number": "123456",
					"share_capital": "10000.00", "sole_shareholder": "SU", "liquidation": "LN", "fiscal_code": personCode}
			})},
		{Name: "by transfer", Draft: setting(sale("P-2"), "iban", "IT60X0542811101000000123456")},
	}
}

func schema(t *testing.T, reports [][]byte) {
	t.Helper()
	xsd := packtest.XSD{Path: needs.Schemas(t, "it-fatturapa", "Schema_VFPR12_v1.2.3.xsd"),
		Catalog: needs.Schemas(t, "it-fatturapa", "catalog.xml")}
	xsd.AllConform(t, reports, func(r []byte) []byte {
		return bytes.Replace(r, []byte("<TipoDocumento>TD"), []byte("<TipoDocumento>T"), 1)
	})
}

// offline is a channel that is not to be called.
func offline(t *testing.T) country.Channel {
	t.Helper()
	ch, err := it.Pack().Connect(country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// Every document of the suite is one that the official schema takes, and no broken copy is.
func TestDocumentsAreFatturaPA(t *testing.T) {
	ch := offline(t)
	var reports [][]byte
	for i, c := range cases() {
		c.Draft.Sequence = int64(i + 1)
		f, err := ch.Prepare(c.Draft)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		reports = append(reports, f.Report)
	}
	schema(t, reports)
}

func pack() country.Pack {
	p := it.Pack()
	p.Simulator = sdi.New
	return p
}

func TestEveryScriptOfEveryPack(t *testing.T) {
	packtest.Exercise(t, pack(), packtest.Options{Cases: cases(), Schema: schema, CallsBack: sdiwire.EndingTwice})
}

// Sales of chance are valid by the official schema.
func TestRandomSalesAreValidByTheOfficialSchema(t *testing.T) {
	schema(t, packtest.RandomReports(t, pack(), offline(t), func(number string, seed int) country.Draft {
		return draft(number, business(), packtest.RandomItems(seed, "22", "10", "5", "4")...)
	}))
}

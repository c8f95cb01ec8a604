package fr_test

import (
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority/pa"
	"tributary/internal/country"
	"tributary/internal/country/fr"
	"tributary/internal/country/packtest"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

// day is half an hour after midnight in Paris, and the day before in UTC.
var day = time.Date(2026, 10, 6, 22, 30, 0, 0, time.UTC)

func pack() country.Pack {
	p := fr.Pack()
	p.Simulator = pa.New
	return p
}

func credentials() country.Credentials {
	return country.Credentials{Named: map[string]string{"client_id": "client", "client_secret": "secret"}}
}

func supplier() country.Supplier {
	return country.Supplier{ID: "s1", CountryCode: "FR", LegalName: "Vendeur & Fils « Été » SARL", TaxNumber: "FR44732829320",
		CompanyNumber: "732 829 320 00074", Address: address("75001", "Paris"), Settings: country.Settings{"iban": "FR7630006000011234567890189"}}
}

func address(postal, city string) transaction.Address {
	return transaction.Address{CountryCode: "FR", City: city, PostalCode: postal, AddressLine1: "1 rue de l'Exemple"}
}

func business() *transaction.Party {
	at := address("69001", "Lyon")
	return &transaction.Party{LegalName: "Acheteur SAS", Type: transaction.Business, EntityNumber: "552100554", TaxNumber: "FR96552100554", Address: &at}
}

func in(b *transaction.Party, country, postal, city string) *transaction.Party {
	b.Address.CountryCode, b.Address.PostalCode, b.Address.City = country, postal, city
	return b
}

func person() *transaction.Party {
	at := address("13001", "Marseille")
	return &transaction.Party{LegalName: "Ana Dupont", Type: transaction.Individual, Address: &at}
}

func vat(rate string) transaction.Tax { return packtest.VAT(rate, transaction.Added) }

func typed(kind string) transaction.Tax {
	t := vat("0")
	t.Type = kind
	return t
}

func coded(kind, code string) transaction.Tax {
	t := typed(kind)
	t.Code = code
	return t
}

func item(name string, quantity, price int64, taxes ...transaction.Tax) transaction.Item {
	return transaction.Item{Name: name, Quantity: num.MakeAmount(quantity, 0), UnitPrice: price, Type: transaction.Goods, Unit: "pièce", Taxes: taxes}
}

func service(i transaction.Item) transaction.Item {
	i.Type, i.Unit = transaction.Services, "heure"
	return i
}

func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	return packtest.Seller{Supplier: supplier(), Currency: "EUR", Day: day, Zone: packtest.Zone("Europe/Paris")}.Draft(number, customer, items...)
}

func with(d country.Draft, change func(*country.Draft)) country.Draft {
	change(&d)
	return d
}

func set(d country.Draft, key string, value any) country.Draft {
	own := country.Settings{key: value}
	for k, v := range d.Supplier.Settings {
		if k != key {
			own[k] = v
		}
	}
	d.Supplier.Settings = own
	return d
}

func correct(kind transaction.Kind, d, original country.Draft) country.Draft {
	return packtest.Correct(kind, d, original, "flow-00000001")
}

func paid(d country.Draft, kind string) country.Draft {
	d.Transaction.Payments = []transaction.Payment{{Type: kind, Amount: d.Totals.Gross}}
	return d
}

func dollars(d country.Draft) country.Draft {
	rate := num.MakeAmount(9215, 4)
	d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "USD", &rate, "2026-10-06"
	return d
}

func invoice(number string) country.Draft {
	return draft(number, business(), item("Café <en grains> & moulu", 3, 12100, packtest.VAT("20", transaction.Included)))
}

// cases are documents in an order in which the platform takes them.
func cases() []packtest.Case {
	plain := invoice("F2026-001")
	return []packtest.Case{
		{Name: "goods", Draft: plain},
		{Name: "credit", Draft: correct(transaction.Credit, draft("F2026-C1", nil, plain.Transaction.Items...), plain)},
		{Name: "adjustment", Draft: correct(transaction.Adjustment, draft("F2026-A1", business(), item("Remise ultérieure", 1, -1000, vat("20"))), plain)},
		{Name: "services", Draft: draft("F2026-002", business(), service(item("Conseil", 3, 9000, vat("20"))))},
		{Name: "both paid", Draft: paid(draft("F2026-003", business(), item("Livre", 1, 5000, vat("5.5")), service(item("Pose", 1, 5000, vat("10")))), "CARD")},
		{Name: "reverse", Draft: draft("F2026-004", business(), service(item("Sous-traitance du bâtiment", 1, 100000, typed(transaction.TaxReverse))))},
		{Name: "franchise", Draft: set(with(draft("F2026-005", business(), service(item("Cours", 1, 30000, typed(transaction.TaxExempt)))),
			func(d *country.Draft) { d.Supplier.TaxNumber = "732829320" }), "vat_regime", "franchise")},
		{Name: "dollars", Draft: dollars(draft("F2026-006", business(), item("Machine", 1, 99999, vat("20"))))},
		{Name: "UBL", Draft: set(invoice("F2026-007"), "format", "UBL")},
		{Name: "UBL credit", Draft: set(correct(transaction.Credit, draft("F2026-C7", business(), plain.Transaction.Items...), plain), "format", "UBL")},
	}
}

func TestEveryScriptOfEveryPack(t *testing.T) {
	packtest.Exercise(t, pack(), packtest.Options{Cases: cases(), Credentials: credentials(),
		Abilities: packtest.Abilities{Mailbox: "-205", MailboxNews: true, Gathers: gathers()}})
}

// gathers are sales of one period that are told by report.
func gathers() []country.Draft {
	return []country.Draft{
		draft("B2C-1", nil, item("Café", 2, 1000, vat("20"))),
		draft("B2C-2", person(), item("Livre", 1, 2000, vat("5.5")), service(item("Repas", 1, 3000, vat("10")))),
		draft("INT-1", german(), item("Machine", 1, 99999, typed(transaction.TaxIntraEU))),
		with(coffee("UNL-1", business()), func(d *country.Draft) { d.Learned = `{"unlisted":true}` }),
	}
}

// german is a business in another member state.
func german() *transaction.Party {
	b := in(business(), "DE", "10115", "Berlin")
	b.EntityNumber, b.TaxNumber = "", "DE136695976"
	return b
}

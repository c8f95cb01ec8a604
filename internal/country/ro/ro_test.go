package ro_test

import (
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority/anaf"
	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/ro"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

// day is half an hour after midnight in Bucharest, and the day before in UTC.
var day = time.Date(2026, 10, 6, 21, 30, 0, 0, time.UTC)

func pack() country.Pack {
	p := ro.Pack()
	p.Simulator = anaf.New
	return p
}

func credentials() country.Credentials {
	return country.Credentials{Named: map[string]string{"refresh_token": "demo-refresh", "access_token": anaf.AccessToken,
		"client_id": "client", "client_secret": "secret"}}
}

func supplier() country.Supplier {
	return country.Supplier{ID: "s1", CountryCode: "RO", LegalName: "Vânzător „Ion” & Fiii SRL", TaxNumber: "RO18547290",
		CompanyNumber: "J40/1234/2020", Address: transaction.Address{CountryCode: "RO", Province: "București", City: "Sector 1",
			PostalCode: "010011", AddressLine1: "Calea Victoriei 1"},
		Settings: country.Settings{"payment_days": int64(30), "iban": "RO49AAAA1B31007593840000"}}
}

func address(county, city string) *transaction.Address {
	return &transaction.Address{CountryCode: "RO", Province: county, City: city, PostalCode: "400001", AddressLine1: "Strada Lungă 2"}
}

func business() *transaction.Party {
	return &transaction.Party{LegalName: "Cumpărător SRL", Type: transaction.Business, TaxNumber: "RO14399840",
		Address: address("Cluj", "Cluj-Napoca")}
}

func person() *transaction.Party {
	return &transaction.Party{LegalName: "Ionescu Ana", Type: transaction.Individual, Address: address("jud. Iași", "Iași")}
}

func abroad(code, number, kind string) *transaction.Party {
	return &transaction.Party{LegalName: "Buyer Abroad", Type: kind, TaxNumber: number,
		Address: &transaction.Address{CountryCode: code, AddressLine1: "Main Street 1", City: "Somewhere", PostalCode: "12345"}}
}

func vat(rate string) transaction.Tax { return packtest.VAT(rate, transaction.Added) }

func typed(kind string) transaction.Tax {
	t := vat("0")
	t.Type = kind
	return t
}

func item(name string, quantity int64, price int64, taxes ...transaction.Tax) transaction.Item {
	return transaction.Item{Name: name, Quantity: num.MakeAmount(quantity, 0), UnitPrice: price, Type: transaction.Goods,
		Unit: "buc", Taxes: taxes}
}

func service(i transaction.Item) transaction.Item {
	i.Type, i.Unit = transaction.Services, "h"
	return i
}

func draft(number string, customer *transaction.Party, items ...transaction.Item) country.Draft {
	return packtest.Seller{Supplier: supplier(), Currency: "RON", Day: day, Zone: packtest.Zone("Europe/Bucharest")}.
		Draft(number, customer, items...)
}

func with(d country.Draft, change func(*country.Draft)) country.Draft {
	change(&d)
	return d
}

func correct(kind transaction.Kind, d, original country.Draft) country.Draft {
	return packtest.Correct(kind, d, original, "5000001")
}

func euros(d country.Draft) country.Draft {
	rate := num.MakeAmount(50912, 4)
	d.Transaction.CurrencyCode, d.Transaction.ExchangeRate, d.Transaction.ExchangeRateDate = "EUR", &rate, "2026-10-06"
	return d
}

func invoice(number string) country.Draft {
	return draft(number, business(), item("Cafea <boabe> & măcinată", 3, 12100, packtest.VAT("21", transaction.Included)))
}

// cases are documents in an order in which ANAF takes them.
func cases() []packtest.Case {
	plain := invoice("RO-2026-001")
	return []packtest.Case{
		{Name: "business", Draft: plain},
		{Name: "credit", Draft: with(correct(transaction.Credit, draft("RO-2026-C1", nil, plain.Transaction.Items...), plain),
			func(d *country.Draft) {})},
		{Name: "adjustment", Draft: correct(transaction.Adjustment, draft("RO-2026-A1", business(),
			item("Reducere ulterioară", 1, -1000, vat("21"))), plain)},
		{Name: "person", Draft: draft("RO-2026-002", person(), item("Carte", 1, 5000, vat("11")))},
		{Name: "Bucharest", Draft: draft("RO-2026-003", with2(business(), "", "București, Sector 3"), item("Masă", 2, 50000, vat("21")))},
		{Name: "reverse at home", Draft: draft("RO-2026-004", business(), item("Deșeuri", 1, 100000, typed(transaction.TaxReverse)))},
		{Name: "goods to the Union", Draft: euros(draft("RO-2026-005", abroad("DE", "DE136695976", transaction.Business),
			item("Mașină", 1, 99999, typed(transaction.TaxIntraEU))))},
		{Name: "long texts", Draft: with(invoice("RO-2026-006"), func(d *country.Draft) {
			d.Transaction.Note = strings.Repeat("Observație lungă. ", 40)
			d.Transaction.Items[0].Name = strings.Repeat("Denumire ", 15) + "la sfârșit"
		})},
		{Name: "exempt company", Draft: with(draft("RO-2026-007", business(), service(item("Curs", 1, 30000, typed(transaction.TaxExempt)))),
			func(d *country.Draft) {
				d.Supplier.TaxNumber = "18547290"
				d.Supplier.Settings = country.Settings{"vat_registered": false}
			})},
		{Name: "self-billed", Draft: with(invoice("RO-2026-008"), func(d *country.Draft) { d.Transaction.Issuer = business() })},
	}
}

func with2(p *transaction.Party, county, city string) *transaction.Party {
	p.Address.Province, p.Address.City = county, city
	return p
}

func TestEveryScriptOfEveryPack(t *testing.T) {
	packtest.Exercise(t, pack(), packtest.Options{Cases: cases(), Credentials: credentials()})
}

// Every document of this package is judged by the official rules, in one run.
func TestTheOfficialRulesTakeEveryDocument(t *testing.T) {
	t.Parallel()
	ch := open(t, country.Endpoint{})
	rules := needs.Schemas(t, "ro-cius", "xslt", "EN16931-CIUS_RO-UBL-validation.xslt")
	reports := packtest.Reports(t, ch, cases(), situations())
	reports = append(reports, packtest.RandomReports(t, pack(), ch, func(number string, seed int) country.Draft {
		return draft(number, business(), packtest.RandomItems(seed, "21", "11")...)
	})...)
	broken := strings.Replace(string(reports[0]), "RO-CJ", "Cluj", 1)
	trials := []packtest.Trial{{Rules: rules, Document: []byte(broken)}}
	bySchema := map[string][][]byte{}
	for _, r := range reports {
		trials = append(trials, packtest.Trial{Rules: rules, Document: r})
		root := "Invoice"
		if strings.Contains(string(r), "<CreditNote ") {
			root = "CreditNote"
		}
		schema := needs.Schemas(t, "ubl21", "maindoc", "UBL-"+root+"-2.1.xsd")
		bySchema[schema] = append(bySchema[schema], r)
	}
	packtest.Takes(t, trials)
	packtest.Conform(t, bySchema)
}

// open is a channel to an endpoint; without one, to nobody.
func open(t testing.TB, at country.Endpoint) country.Channel { return packtest.Open(t, pack(), at) }

package xx_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

func TestMain(m *testing.M) { packtest.Main(m) }

var day = time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC)

// draft is an invoice of 227.10 with 25 % VAT inside, the specification's worked example.
func draft(number string) country.Draft {
	return country.Draft{
		OperationID:  "018f6b2e-0000-7000-8000-" + number,
		UniqueNumber: "U-" + number,
		Transaction: transaction.Transaction{
			Kind: transaction.Invoice, CountryCode: "XX", LanguageCode: "EN", CurrencyCode: "EUR", Date: day,
			Number: number, ID: "tx-" + number, SupplierID: "s1",
			Items: []transaction.Item{{
				Number: 1, Name: "Tea & <biscuits>", Quantity: num.MakeAmount(3, 0), Unit: "pc", UnitPrice: 7570,
				Type: transaction.Goods,
				Taxes: []transaction.Tax{{Rate: num.MakeAmount(25, 0), Regime: transaction.VAT, Mode: transaction.Included,
					Type: transaction.TaxStandard}},
			}},
			Customer: &transaction.Party{LegalName: "Ann Buyer", Type: transaction.Individual,
				Address: &transaction.Address{CountryCode: "XX"}},
		},
		Totals: transaction.Totals{
			Gross: 22710, Net: 18168, Tax: 4542,
			Lines: []transaction.Line{{Gross: 22710, Net: 18168, Taxes: []int64{4542}}},
		},
		Supplier: country.Supplier{ID: "s1", CountryCode: "XX", LegalName: "Shop Ltd", TaxNumber: "XX100",
			Settings: country.Settings{}},
		Location: time.FixedZone("CEST", 2*60*60),
		Now:      day.Add(time.Minute),
	}
}

// correction is a document of another kind about an original.
func correction(kind transaction.Kind, number string, original country.Draft) country.Draft {
	d := draft(number)
	d.Transaction.Kind = kind
	d.Transaction.ReferenceID = original.Transaction.ID
	d.Transaction.Items[0].UnitPrice = -7570
	d.Totals = transaction.Totals{
		Gross: -22710, Net: -18168, Tax: -4542,
		Lines: []transaction.Line{{Gross: -22710, Net: -18168, Taxes: []int64{-4542}}},
	}
	d.Original = &country.Original{Transaction: original.Transaction, Totals: original.Totals,
		UniqueNumber: original.UniqueNumber, AuthorityID1: "XX-000000001"}
	return d
}

func cases() []packtest.Case {
	invoice := draft("A-1")
	elsewhere := correction(transaction.Adjustment, "A-5", draft("OLD-9"))
	elsewhere.Original.Backfilled = true
	elsewhere.Original.AuthorityID1 = ""
	accepted := correction(transaction.Cancellation, "A-6", draft("A-1"))
	accepted.Supplier.Settings = country.Settings{"acceptance": true}
	unnumbered := correction(transaction.Cancellation, "A-4", invoice)
	unnumbered.Transaction.Number = ""
	return []packtest.Case{
		{Name: "invoice", Draft: invoice},
		{Name: "adjustment", Draft: correction(transaction.Adjustment, "A-2", invoice)},
		{Name: "credit", Draft: correction(transaction.Credit, "A-3", invoice)},
		{Name: "cancellation", Draft: unnumbered},
		{Name: "adjustment of a backfill", Draft: elsewhere},
		{Name: "cancellation that needs acceptance", Draft: accepted},
	}
}

// counter are sales of a shop that gathers them by day.
func counter() []country.Draft {
	list := []country.Draft{draft("C-1"), draft("C-2"), draft("C-3")}
	for i := range list {
		list[i].Supplier.Settings["period"] = string(country.Daily)
	}
	return list
}

func TestReferenceAuthorityPassesTheSuite(t *testing.T) {
	packtest.Exercise(t, world.Reference(transaction.ReferenceCode, country.ByNumber), packtest.Options{
		Cases: cases(), CallsBack: xxwire.SuffixCallback,
		Abilities: packtest.Abilities{Mailbox: xxwire.SuffixMailbox, Visitor: visited(), Agree: agree, Gathers: counter()},
	})
}

// visited is a supplier for whom a person must agree.
func visited() *country.Supplier {
	s := draft("A-1").Supplier
	s.Settings = country.Settings{"grant": true}
	return &s
}

// agree is a person's browser: it reads the page, presses a button and is sent back.
func agree(t *testing.T, address string, yes bool) url.Values {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, err := browser.Get(address)
	if err != nil || page.StatusCode != http.StatusOK || page.Body.Close() != nil {
		t.Fatalf("the authority's page: %v", err)
	}
	word := map[bool]string{true: "yes", false: "no"}[yes]
	sent, err := browser.PostForm(address, url.Values{"agree": {word}})
	if err != nil || sent.StatusCode != http.StatusSeeOther || sent.Body.Close() != nil {
		t.Fatalf("%s: %v", word, err)
	}
	browser.CloseIdleConnections()
	back, err := sent.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query()
}

func TestEveryClassPassesTheSuite(t *testing.T) {
	for code, class := range map[string]country.Class{
		"XH": country.ByHash, "XN": country.ByNothing, "XC": country.ByChain, "XY": country.ByKey,
	} {
		t.Run(string(class), func(t *testing.T) {
			packtest.Exercise(t, world.Reference(code, class), packtest.Options{
				Name: "class " + string(class), Cases: cases()[:2], Credentials: country.Credentials{Secret: "a secret of its own"},
				Abilities: packtest.Abilities{Mailbox: xxwire.SuffixMailbox, Gathers: counter()},
			})
		})
	}
}

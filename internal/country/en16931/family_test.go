package en16931_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// relative is a company and a customer of one country, with numbers that can exist.
type relative struct {
	code, currency           string
	vat, legal               string // of the company
	buyerVAT, buyerLegal     string
	standard, reduced        int64 // per cent, tenths
	city, postCode, language string
}

// relatives are the companies and customers of the pages' own examples.
var relatives = readRelatives()

func readRelatives() (list []relative) {
	packs, err := packsOfTheWorld()
	if err != nil {
		panic(err) // every test would fail
	}
	for _, p := range packs {
		if p.Structured == nil || p.Reports() || p.Example == nil || p.Version == en16931.Union(p.Code).Version {
			continue
		}
		var sale struct {
			Currency string `json:"currency_code"`
			Items    []struct {
				Taxes []struct{ Rate float64 } `json:"tax_breakdowns"`
			}
			Customer struct {
				Entity string `json:"entity_number"`
				Tax    struct {
					Number string `json:"tax_number"`
				} `json:"tax_information"`
			}
		}
		if err := json.Unmarshal([]byte(p.Example.Sale), &sale); err != nil {
			panic(err)
		}
		of := p.Example.Company
		r := relative{code: p.Code, currency: sale.Currency, vat: of.TaxNumber, legal: of.CompanyNumber,
			buyerVAT: sale.Customer.Tax.Number, buyerLegal: sale.Customer.Entity,
			standard: int64(10 * sale.Items[0].Taxes[0].Rate), city: of.Address.City, postCode: of.Address.PostalCode,
			language: p.Facts.Languages[0]}
		for _, rate := range p.Facts.Rates {
			if percent, err := strconv.ParseFloat(strings.TrimSuffix(rate.Percent, "%"),
				64); err == nil && r.reduced == 0 && rate.Type == transaction.TaxReduced && rate.Until == "" {
				r.reduced = int64(10 * percent)
			}
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b relative) int { return strings.Compare(a.code, b.code) })
	return list
}

// packsOfTheWorld are made once: nobody here changes one.
var packsOfTheWorld = sync.OnceValues(func() ([]country.Pack, error) { return world.Packs() })

func family(t testing.TB) map[string]country.Pack {
	t.Helper()
	packs, err := packsOfTheWorld()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]country.Pack{}
	for _, p := range packs {
		all[p.Code] = p
	}
	return all
}

func (r relative) supplier(settings country.Settings) *country.Supplier {
	all := country.Settings{"contact_name": "Billing", "contact_phone": "+49 30 123456",
		"contact_email": "billing@example.com",
		"iban":          "DE89370400440532013000", "bic": "COBADEFFXXX", "payment_days": int64(30),
		"format": en16931.FormatAuto}
	for k, v := range settings {
		all[k] = v
	}
	return &country.Supplier{CountryCode: r.code, LanguageCode: r.language, LegalName: "Red " + r.code + " Ltd",
		CompanyNumber: r.legal, TaxNumber: r.vat,
		Address: transaction.Address{CountryCode: r.code, City: r.city, PostalCode: r.postCode, AddressLine1: "Main Street",
			Number: "1"}, Settings: all}
}

func (r relative) customer() *transaction.Party {
	return &transaction.Party{LegalName: "Blue " + r.code + " Ltd", Type: transaction.Business, TaxNumber: r.buyerVAT,
		EntityNumber: r.buyerLegal,
		Address: &transaction.Address{CountryCode: r.code, City: r.city, PostalCode: r.postCode,
			AddressLine1: "Side Street 2"}}
}

func vat(rate num.Amount, kind, mode string) []transaction.Tax {
	return []transaction.Tax{{Rate: rate, Regime: transaction.VAT, Type: kind, Mode: mode}}
}

// sale is an everyday sale of two rates, tax included.
func (r relative) sale() *transaction.Transaction {
	items := []transaction.Item{
		{Number: 1, Name: "Chair", Description: "Oak", Quantity: num.MakeAmount(3, 0), Unit: "pcs", UnitPrice: 7570,
			Type: transaction.Goods, Code: "C-1", EAN: "4012345000009",
			Taxes: vat(num.MakeAmount(r.standard, 1), "", transaction.Included)},
		{Number: 2, Name: "Assembly", Quantity: num.MakeAmount(15, 1), Unit: "h", UnitPrice: 4000, Type: transaction.Services,
			Taxes: vat(num.MakeAmount(r.standard, 1), "", transaction.Included)},
	}
	if r.reduced > 0 {
		items = append(items, transaction.Item{Number: 3, Name: "Book & more", Quantity: num.MakeAmount(7, 0),
			UnitPrice: 1299, Type: transaction.Goods,
			Taxes: vat(num.MakeAmount(r.reduced, 1), "", transaction.Included)})
	}
	return &transaction.Transaction{Kind: transaction.Invoice, CountryCode: r.code, LanguageCode: r.language,
		CurrencyCode: r.currency,
		Date:         time.Date(2026, 11, 15, 22, 30, 0, 0, time.UTC), Number: "R-2026-17", ID: "order-17", Items: items,
		Customer: r.customer(), Note: "<p>Thank <b>you</b></p>"}
}

// issue is a transaction as it comes to be written.
func issue(t testing.TB, p country.Pack, tx *transaction.Transaction, s *country.Supplier) country.Issue {
	t.Helper()
	totals, faults := transaction.Calculate(tx.Items)
	if len(faults) > 0 {
		t.Fatalf("%v", faults)
	}
	own := *tx
	own.Items = p.TypedItems(country.Case{Transaction: tx, Totals: totals, UseCase: country.Invoicing, Now: tx.Date})
	in := country.Issue{Transaction: &own, Totals: totals, Supplier: s, UniqueNumber: "XX-1", Location: time.UTC,
		At: tx.Date}
	if tx.Kind != transaction.Invoice {
		in.Original = &country.Original{Transaction: transaction.Transaction{Number: "R-2026-1",
			Date: tx.Date.AddDate(0, -1, 0)}}
	}
	return in
}

// famous is one document that a pack made.
type famous struct {
	name     string
	document []byte
	format   string
	variant  string // "" of a random one
}

// variants are what each country's sale is changed into.
var variants = []struct {
	name   string
	change func(t *transaction.Transaction)
}{
	{"invoice", func(*transaction.Transaction) {}},
	{"credit", func(t *transaction.Transaction) { t.Kind = transaction.Credit }},
	{"adjustment", func(t *transaction.Transaction) {
		t.Kind = transaction.Adjustment
		t.Items = t.Items[:1]
		t.Items[0].UnitPrice = -t.Items[0].UnitPrice
	}},
	{"discount", func(t *transaction.Transaction) {
		t.Items = append(t.Items, transaction.Item{Number: 9, Name: "Loyalty", Quantity: num.MakeAmount(1, 0),
			UnitPrice: -500, Type: transaction.Discount, Taxes: t.Items[0].Taxes})
	}},
	{"paid", func(t *transaction.Transaction) {
		totals, _ := transaction.Calculate(t.Items)
		t.Payments = []transaction.Payment{{Type: "CARD", Amount: totals.Gross}}
	}},
	{"abroad", func(t *transaction.Transaction) {
		other := relatives[0]
		if t.CountryCode == other.code {
			other = relatives[1]
		}
		t.Customer = other.customer()
		for i := range t.Items {
			t.Items[i].Type = transaction.Goods
			t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxIntraEU, transaction.Added)
		}
	}},
	{"export", func(t *transaction.Transaction) {
		t.Customer = &transaction.Party{LegalName: "Green Inc", Type: transaction.Business,
			Address: &transaction.Address{CountryCode: "US", City: "Boston", PostalCode: "02108", AddressLine1: "State St 1"}}
		for i := range t.Items {
			t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxExport, transaction.Added)
		}
	}},
	{"reverse", func(t *transaction.Transaction) {
		for i := range t.Items {
			t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxReverse, transaction.Added)
		}
	}},
	{"exempt", func(t *transaction.Transaction) {
		for i := range t.Items {
			t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxExempt, transaction.Added)
		}
	}},
	{"outside", func(t *transaction.Transaction) {
		for i := range t.Items {
			t.Items[i].Taxes = vat(num.AmountZero, transaction.TaxOutside, transaction.Added)
		}
	}},
	{"dollars", func(t *transaction.Transaction) {
		rate := num.MakeAmount(923456, 6)
		t.CurrencyCode, t.ExchangeRate, t.ExchangeRateDate = "USD", &rate, "2026-11-14"
	}},
	{"taken back", func(t *transaction.Transaction) {
		t.Items = append(t.Items, transaction.Item{Number: 9, Name: "Old chair", Quantity: num.MakeAmount(1, 0),
			UnitPrice: -1999, Type: transaction.Goods, Taxes: t.Items[0].Taxes})
	}},
	{"less", func(t *transaction.Transaction) {
		rate := num.MakeAmount(125, 1)
		t.Items[0].Discount = &transaction.LineDiscount{Rate: &rate}
		t.Items[1].Discount = &transaction.LineDiscount{Amount: 333}
		t.Items = append(t.Items, t.Items[0])
		last := &t.Items[len(t.Items)-1]
		last.Number, last.UnitPrice = 9, -last.UnitPrice/7
	}},
	{"halves", func(t *transaction.Transaction) {
		totals, _ := transaction.Calculate(t.Items)
		t.Payments = []transaction.Payment{{Type: "CASH", Amount: 1000}, {Type: "CREDIT", Amount: totals.Gross - 1000}}
	}},
	{"cents", func(t *transaction.Transaction) {
		item := t.Items[0]
		item.Quantity, item.UnitPrice, t.Items = num.MakeAmount(1, 0), 99, nil
		for i := range 60 {
			item.Number = int64(i + 1)
			t.Items = append(t.Items, item)
		}
	}},
}

// familyDocuments makes every variant in every country and format.
func familyDocuments(t *testing.T) (all []famous) {
	t.Helper()
	packs := family(t)
	for _, r := range relatives {
		formats := []string{en16931.FormatAuto}
		if r.code == "DE" {
			formats = append(formats, "XRECHNUNG_UBL", "XRECHNUNG_CII", "PEPPOL_UBL")
		}
		if r.code == "AT" {
			formats = append(formats, "ZUGFERD")
		}
		for _, format := range formats {
			for _, v := range variants {
				if v.name == "export" && format != en16931.FormatAuto && format != "ZUGFERD" {
					continue // a buyer overseas has no address on the network
				}
				tx := r.sale()
				v.change(tx)
				s := r.supplier(country.Settings{"format": format})
				made, err := packs[r.code].Structured(issue(t, packs[r.code], tx, s))
				if err != nil || made == nil {
					t.Errorf("%s %s %s: %v %v", r.code, format, v.name, made, explain(err))
					continue
				}
				all = append(all, famous{fmt.Sprintf("%s-%s-%s", strings.ToLower(r.code), strings.ToLower(made.Name), v.name),
					made.Content, made.Name, v.name})
			}
		}
	}
	return all
}

func explain(err error) string {
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		return fmt.Sprint(wrong.Faults)
	}
	return fmt.Sprint(err)
}

// profileOf finds the profile again by its name.
func profileOf(format string) en16931.Profile {
	for _, p := range append(profiles, en16931.Core()) {
		if p.Code == format {
			return p
		}
	}
	panic(format)
}

var dueAmount = regexp.MustCompile(`(PayableAmount[^>]*>|DuePayableAmount>)[-0-9.]+<`)

// randomSales are transactions that our checks accept; how many are refused by
// them is told, so that the test cannot become empty.
func randomSales(t *testing.T, packs map[string]country.Pack, count int) (all []famous) {
	t.Helper()
	refused := 0
	for seed := 0; len(all) < count; seed++ {
		random := rand.New(rand.NewPCG(uint64(seed), 42))
		r := relatives[len(all)%len(relatives)] // as many of each country
		tx := randomSale(random, r)
		pack := packs[r.code]
		settings := country.Settings{}
		if r.code == "DE" {
			settings["format"] = []string{en16931.FormatAuto, "XRECHNUNG_UBL", "XRECHNUNG_CII", "PEPPOL_UBL"}[random.IntN(4)]
		}
		in := issue(t, pack, tx, r.supplier(settings))
		if found := errorsOf(pack.Check(country.Case{Transaction: tx, Totals: in.Totals, UseCase: country.Invoicing,
			Now: tx.Date})); len(found) > 0 {
			if refused++; refused > 3*count {
				t.Fatalf("our own checks refuse nearly everything: %v", found)
			}
			continue
		}
		made, err := pack.Structured(in)
		if err != nil {
			refused++ // what the chosen format wants beyond what a submit can see
			continue
		}
		if made == nil {
			continue
		}
		all = append(all, famous{fmt.Sprintf("random %d %s %s", seed, r.code, made.Name), made.Content, made.Name, ""})
	}
	t.Logf("%d random sales made, %d refused by our own checks", len(all), refused)
	return all
}

func errorsOf(faults []fault.Fault) (found []fault.Fault) {
	for _, f := range faults {
		if f.Type != fault.Warning {
			found = append(found, f)
		}
	}
	return found
}

func randomSale(random *rand.Rand, r relative) *transaction.Transaction {
	tx := r.sale()
	tx.Items = nil
	kinds := []string{"", "", "", transaction.TaxZero, transaction.TaxExempt, transaction.TaxReverse,
		transaction.TaxExport, transaction.TaxIntraEU}
	if random.IntN(8) == 0 {
		kinds = []string{transaction.TaxOutside}
	}
	mode := []string{transaction.Included, transaction.Added}[random.IntN(2)]
	for i := range 1 + random.IntN(20) {
		kind := kinds[random.IntN(len(kinds))]
		rate := num.MakeAmount(0, 0)
		if kind == "" {
			rate = num.MakeAmount([]int64{r.standard, max(r.reduced, 10)}[random.IntN(2)], 1)
		}
		item := transaction.Item{Number: int64(i + 1), Name: "Item " + strconv.Itoa(i),
			Quantity: num.MakeAmount(1+random.Int64N(900_000), uint32(random.IntN(7))), UnitPrice: 1 + random.Int64N(50_000),
			Type: []string{transaction.Goods, transaction.Services, transaction.Discount}[random.IntN(3)],
			Unit: []string{"", "h", "kg", "Palette", "pcs"}[random.IntN(5)], Taxes: vat(rate, kind, mode)}
		if random.IntN(4) == 0 && item.Type != transaction.Discount {
			rate := num.MakeAmount(random.Int64N(1_000_001), 4)
			item.Discount = &transaction.LineDiscount{Rate: &rate}
		}
		if item.Type == transaction.Discount || random.IntN(9) == 0 {
			item.UnitPrice = -item.UnitPrice
		}
		tx.Items = append(tx.Items, item)
	}
	switch random.IntN(6) {
	case 0:
		tx.Kind = transaction.Adjustment
	case 1:
		tx.Kind = transaction.Credit
	case 2:
		tx.Customer = relatives[random.IntN(len(relatives))].customer()
	case 3:
		tx.Customer.Address.City, tx.Customer.TaxNumber = "", ""
	}
	if totals, _ := transaction.Calculate(tx.Items); random.IntN(3) == 0 && tx.Kind == transaction.Invoice {
		cash := totals.Gross / int64(1+random.IntN(3))
		tx.Payments = []transaction.Payment{{Type: []string{"CASH", "CARD", "CHECK", "OTHER"}[random.IntN(4)], Amount: cash},
			{Type: "TRANSFER", Amount: totals.Gross - cash}}
	}
	return tx
}

// familyTrials: what the packs make of transactions is accepted, and a copy
// with a wrong sum is refused.
func familyTrials(t *testing.T, court *court) {
	t.Helper()
	documents := familyDocuments(t)
	perSyntax := map[bool]int{}
	for _, d := range documents {
		perSyntax[profileOf(d.format).CII]++
	}
	if perSyntax[false] < 40 || perSyntax[true] < 40 {
		t.Errorf("only %d documents in UBL and %d in CII", perSyntax[false], perSyntax[true])
	}
	tried := map[string]bool{}
	for _, d := range documents {
		kind := d.format + " " + d.variant
		if tried[kind] {
			continue // of another country
		}
		tried[kind] = true
		broken := dueAmount.ReplaceAll(d.document, []byte("${1}1234567.89<"))
		court.try(rulesOf(t, profileOf(d.format))[0], broken, func(v packtest.Verdict) {
			if len(v.Errors) == 0 {
				t.Errorf("%s: the copy with a wrong sum is accepted", d.name)
			}
		})
	}
	documents = append(documents, randomSales(t, family(t), randomTrials())...)
	for _, d := range documents {
		for _, rules := range rulesOf(t, profileOf(d.format)) {
			court.try(rules, d.document, func(v packtest.Verdict) {
				if v.Fired == 0 || len(v.Errors) > 0 {
					t.Errorf("%s: refused: %s\n%s", d.name, strings.Join(v.Texts, "\n"), d.document)
				}
			})
		}
	}
	validDocuments(t, documents)
}

// validDocuments asks the schemas about them all, and reads them back.
func validDocuments(t *testing.T, documents []famous) {
	t.Helper()
	bySchema := map[string][][]byte{}
	names := map[string][]string{}
	for _, d := range documents {
		read, unknown, err := en16931.Read(d.document)
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: cannot be read: %v %v", d.name, err, unknown)
			continue
		}
		if p := profileOf(d.format); !bytes.Equal(en16931.Write(read, p), d.document) {
			t.Errorf("%s: reading and writing gives other bytes", d.name)
		}
		path := schemaOf(t, profileOf(d.format), read)
		bySchema[path] = append(bySchema[path], d.document)
		names[path] = append(names[path], d.name)
	}
	for path, members := range bySchema {
		for i, err := range (packtest.XSD{Path: path}).CheckAll(t, members) {
			if err != nil {
				t.Errorf("%s: %v", names[path][i], err)
			}
		}
	}
}

// An invoice and a credit note of each country and format are kept, so that a
// change of their bytes is seen.
func TestDocumentsOfTheFamilyAreWhatTheyWere(t *testing.T) {
	for _, d := range familyDocuments(t) {
		if !strings.HasSuffix(d.name, "-invoice") && !strings.HasSuffix(d.name, "-credit") {
			continue
		}
		path := filepath.Join("testdata", "golden", d.name+".xml")
		text := bytes.ReplaceAll(d.document, []byte("><"), []byte(">\n<")) // a line for each element
		if updating() {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, text) {
			t.Errorf("%s is not what it was: go test -run TestDocumentsOfTheFamily -update", path)
		}
	}
}

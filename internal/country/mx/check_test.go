package mx_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"
	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// found is what a draft is refused for.
func found(d country.Draft) []fault.Fault {
	return slices.DeleteFunc(examined(d), func(f fault.Fault) bool { return f.Type == fault.Warning })
}

// examined is what is said of a draft, warnings included.
func examined(d country.Draft) []fault.Fault {
	in := country.Case{Transaction: &d.Transaction, Totals: d.Totals, UseCase: country.Both, Now: now}
	return append(country.CheckRates(pack().Facts, in), pack().Check(in)...)
}

func TestWhatSATWouldRefuseIsRefusedAtOnce(t *testing.T) {
	line := func(edit func(*transaction.Item)) func(*country.Draft) {
		return func(d *country.Draft) { edit(&d.Transaction.Items[0]) }
	}
	for _, c := range []struct {
		name, field string
		code        fault.Code
		edit        func(*country.Draft)
	}{
		{"date in the future", "transaction_date", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Date = now.Add(5*time.Minute + time.Second)
		}},
		{"date past 72 hours", "transaction_date", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Date = now.Add(-72*time.Hour - time.Second)
		}},
		{"bar in a name", "items.0.name", fault.FieldNotValid, line(func(i *transaction.Item) { i.Name = "a|b" })},
		{"bar in the customer", "customer.legal_name", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.LegalName = "a|b"
		}},
		{"bar in the number", "transaction_number", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Number = "1|2"
		}},
		{"business without RFC", "customer.tax_information.tax_number", fault.FieldRequired, func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = ""
		}},
		{"no RFC at all", "customer.tax_information.tax_number", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.TaxNumber = "URE181329TM6"
		}},
		{"no postal code", "customer.address.postal_code", fault.FieldRequired, func(d *country.Draft) {
			d.Transaction.Customer.Address.PostalCode = ""
		}},
		{"short postal code", "customer.address.postal_code", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.Address.PostalCode = "8699"
		}},
		{"unknown regime", "customer.tax_information.regime", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.TaxRegime = "699"
		}},
		{"regime of people for a company", "customer.tax_information.regime", fault.ValidationMatchInvalid,
			func(d *country.Draft) {
				d.Transaction.Customer.TaxRegime = "612"
			}},
		{"unknown use", "customer.tax_information.use", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.TaxUse = "G09"
		}},
		{"use of people for a company, in its own member", "customer.tax_information.use", fault.ValidationMatchInvalid,
			func(d *country.Draft) {
				d.Transaction.Customer.TaxUse = "D01"
			}},
		{"use of people for a company", "customer.tax_information.regime", fault.ValidationMatchInvalid,
			func(d *country.Draft) {
				d.Transaction.Customer.TaxRegime = "601/D01"
			}},
		{"name too long", "customer.legal_name", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Customer.LegalName = strings.Repeat("Ñ", 301)
		}},
		{"dollars without a rate", "exchange_rate", fault.FieldRequired, func(d *country.Draft) {
			d.Transaction.CurrencyCode = "USD"
		}},
		{"currency that SAT lacks", "currency_code", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.CurrencyCode = "BYN"
		}},
		{"unknown product", "items.0.code", fault.FieldNotValid, line(func(i *transaction.Item) { i.Code = "12345678" })},
		{"product in another form", "items.0.code", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Code = "SKU-1"
		})},
		{"free line", "items.0.unit_price", fault.FieldNotValid, line(func(i *transaction.Item) { i.UnitPrice = 0 })},
		{"rate of another country", "items.0.tax_breakdowns.0.rate", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Taxes[0].Rate = percent(21, 0)
		})},
		{"exempt with a rate", "items.0.tax_breakdowns.0.rate", fault.ValidationMatchInvalid, line(func(i *transaction.Item) {
			i.Taxes[0].Type = transaction.TaxExempt
		})},
		{"reverse charge", "items.0.tax_breakdowns.0.type", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Taxes[0] = tax(percent(0, 0), transaction.VAT, transaction.TaxReverse)
		})},
		{"two IVA", "items.0.tax_breakdowns", fault.ValidationMatchInvalid, line(func(i *transaction.Item) {
			i.Taxes = []transaction.Tax{iva(16), iva(8)}
		})},
		{"no account of a land tax", "items.0.classification.0.code", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Classifications = []transaction.Classification{{Scheme: "PREDIAL", Code: "1-2"}}
		})},
		{"no customs document", "items.0.classification.0.code", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Classifications = []transaction.Classification{{Scheme: "PEDIMENTO", Code: "15 48 3009 00012"}}
		})},
		{"two ISH", "items.0.tax_breakdowns", fault.ValidationMatchInvalid, line(func(i *transaction.Item) {
			i.Taxes = []transaction.Tax{tax(percent(3, 0), "ISH", ""), tax(percent(3, 0), "ISH", "")}
		})},
		{"withheld at an odd rate", "items.0.tax_breakdowns.1.type", fault.FieldRequired, line(func(i *transaction.Item) {
			i.Taxes = append(i.Taxes, tax(percent(7, 0), transaction.Withholding, ""))
		})},
		{"too much ISR withheld", "items.0.tax_breakdowns.1.rate", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Taxes = append(i.Taxes, tax(percent(36, 0), transaction.Withholding, "ISR"))
		})},
		{"too much IVA withheld", "items.0.tax_breakdowns.1.rate", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Taxes = append(i.Taxes, tax(percent(17, 0), transaction.Withholding, "IVA"))
		})},
		{"another tax withheld", "items.0.tax_breakdowns.1.type", fault.FieldNotValid, line(func(i *transaction.Item) {
			i.Taxes = append(i.Taxes, tax(percent(10, 0), transaction.Withholding, "IRPF"))
		})},
		{"negative invoice", "items", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Items = items(100, -200) }},
		{"discount larger than its lines", "items.1.unit_price", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Items = items(10000, -200, 500)
			d.Transaction.Items[1].Taxes, d.Transaction.Items[2].Taxes = []transaction.Tax{iva(0)}, []transaction.Tax{iva(8)}
		}},
		{"PUE beside PPD", "payments", fault.ValidationMatchInvalid, func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PUE", Amount: 1},
				{Type: "OTHER", Code: "PPD", Amount: 1}}
		}},
		{"unknown method", "payments.0.code", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "ABC"}}
		}},
		{"unknown form", "payments.0.code", fault.FieldNotValid, func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PUE:07"}}
		}},
		{"PPD with a form", "payments.0.code", fault.ValidationMatchInvalid, func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PPD:03"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			faults := found(draft("C-1", c.edit))
			for _, f := range faults {
				if f.Field == c.field && f.Code == c.code {
					return
				}
			}
			t.Errorf("found %+v", faults)
		})
	}
}

// What the voucher must say and the client did not is assumed, and named as such.
func TestWhatIsAssumedIsWarnedOf(t *testing.T) {
	for field, edit := range map[string]func(*country.Draft){
		"payments": func(d *country.Draft) {
			d.Transaction.Customer, d.Transaction.Payments = nil, nil
		},
		"customer.tax_information.regime": func(d *country.Draft) { d.Transaction.Customer.TaxRegime = "" },
	} {
		said := examined(draft("C-3", edit))
		if !slices.ContainsFunc(said, func(f fault.Fault) bool {
			return f.Field == field && f.Code == fault.ValueAssumed && f.Type == fault.Warning
		}) {
			t.Errorf("%s: %+v", field, said)
		}
	}
}

func TestWhatSATTakesIsNotRefused(t *testing.T) {
	for name, edit := range map[string]func(*country.Draft){
		"72 hours ago":        func(d *country.Draft) { d.Transaction.Date = now.Add(-72 * time.Hour) },
		"five minutes ahead":  func(d *country.Draft) { d.Transaction.Date = now.Add(5 * time.Minute) },
		"300 letters":         func(d *country.Draft) { d.Transaction.Customer.LegalName = strings.Repeat("Ñ", 300) },
		"ampersand in an RFC": func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "H&E951128469" },
		"RFC with a prefix":   func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "MX ure-180429-tm6" },
		"a form of its own": func(d *country.Draft) {
			d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Code: "PUE:28"}}
		},
		"everything discounted": func(d *country.Draft) { d.Transaction.Items = items(100, -100) },
	} {
		if faults := found(draft("C-2", edit)); len(faults) > 0 {
			t.Errorf("%s: %+v", name, faults)
		}
	}
}

func TestSupplierIsChecked(t *testing.T) {
	for field, edit := range map[string]func(*country.Supplier){
		"tax_information.tax_number": func(s *country.Supplier) { s.TaxNumber = "XAXX010101000" },
		"settings.fiscal_regime":     func(s *country.Supplier) { s.Settings["fiscal_regime"] = "612" },
		"address.postal_code":        func(s *country.Supplier) { s.Address.PostalCode = "" },
		"settings.product_key":       func(s *country.Supplier) { s.Settings["product_key"] = "99999999" },
		"settings.unit_key":          func(s *country.Supplier) { s.Settings["unit_key"] = "ZZY" },
		"legal_name":                 func(s *country.Supplier) { s.LegalName = "Escuela Kemper Urgate, S.A.P.I. de C.V." },
	} {
		s := supplier("soap")
		edit(&s)
		faults := pack().CheckCompany(s, credentials())
		if len(faults) != 1 || faults[0].Field != field {
			t.Errorf("%s: %+v", field, faults)
		}
	}
	if faults := pack().CheckCompany(supplier("rest"), credentials()); len(faults) > 0 {
		t.Errorf("a good one: %+v", faults)
	}
}

// An e.firma signs for a person; SAT numbers it like a CSD and names no branch.
func TestAnElectronicSignatureIsNoSeal(t *testing.T) {
	for name, c := range map[string]struct {
		template x509.Certificate
		refused  bool
	}{
		"e.firma": {x509.Certificate{SerialNumber: new(big.Int).SetBytes([]byte("30001000000400002434"))}, true},
		"CSD": {x509.Certificate{SerialNumber: new(big.Int).SetBytes([]byte("30001000000400002434")),
			Subject: pkix.Name{OrganizationalUnit: []string{"Sucursal 1"}}}, false},
		"e.firma by usage": {x509.Certificate{SerialNumber: big.NewInt(7),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection, x509.ExtKeyUsageClientAuth}}, true},
		"of a test": {x509.Certificate{SerialNumber: big.NewInt(7)}, false},
	} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		c.template.Subject.SerialNumber, c.template.NotBefore, c.template.NotAfter = supplierRFC, now.Add(-time.Hour),
			now.Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, &c.template, &c.template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		file, err := pkcs12.Modern2023.Encode(key, leaf, nil, "x")
		if err != nil {
			t.Fatal(err)
		}
		faults := pack().CheckCompany(supplier("soap"), country.Credentials{PKCS12: file, Password: "x"})
		if refused := len(faults) == 1 && faults[0].Code == fault.CredentialsInvalid &&
			faults[0].Field == "tax_credentials.certificate_base64"; refused != c.refused {
			t.Errorf("%s: %+v", name, faults)
		}
	}
}

// Whatever the lines and discounts are: the voucher's total is what is owed,
// and the strict double, which knows SAT's limits, finds nothing wrong.
func TestDiscountsNeverChangeWhatIsOwed(t *testing.T) {
	b := open(t)
	ch := b.channel
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]string{transaction.Included, transaction.Added}).Draw(rt, "mode")
		rate := rapid.SampledFrom([]int64{16, 8, 0}).Draw(rt, "rate")
		withheld := rapid.Bool().Draw(rt, "withheld")
		var list []transaction.Item
		for i := range rapid.IntRange(1, 6).Draw(rt, "lines") {
			list = append(list, transaction.Item{Number: int64(i + 1), Name: "x", Type: transaction.Goods,
				Quantity: num.MakeAmount(rapid.Int64Range(1, 5000).Draw(rt, "quantity"),
					rapid.Uint32Range(0, 3).Draw(rt, "decimals")), UnitPrice: rapid.Int64Range(100, 500000).Draw(rt, "price")})
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "discounts") {
			list = append(list, transaction.Item{Number: int64(i + 10), Name: "y", Type: transaction.Discount,
				Quantity: num.MakeAmount(1, 0), UnitPrice: -rapid.Int64Range(1, 900).Draw(rt, "off")})
		}
		for i := range list {
			if most := rapid.SampledFrom([]int64{0, 0, 30, 100}).Draw(rt, "most of it"); most > 0 {
				off := percent(rapid.Int64Range(0, most*100).Draw(rt, "own discount"), 2)
				list[i].Discount = &transaction.LineDiscount{Rate: &off}
			}
			list[i].Taxes = []transaction.Tax{{Rate: percent(rate, 0), Regime: transaction.VAT, Mode: mode}}
			if withheld {
				list[i].Taxes = append(list[i].Taxes, tax(percent(106667, 4), transaction.Withholding, "IVA"))
			}
		}
		d := issuedAt("22000", draft("P-1", func(d *country.Draft) { d.Transaction.Items = list }))
		if d.Totals.Gross < 0 || len(found(d)) > 0 {
			rt.Skip("more taken off than there is")
		}
		f, err := ch.Prepare(d)
		if err != nil {
			rt.Fatal(err)
		}
		if want := mx.Money(d.Totals.Payable(), 2); mx.Attribute(f.Report, "Total") != want {
			rt.Fatalf("total %s, owed %s\n%s", mx.Attribute(f.Report, "Total"), want, f.Report)
		}
		if r := b.send(t, f); r.Outcome != country.Accepted {
			rt.Fatalf("%+v\n%s", r.Faults, f.Report)
		}
	})
}

// A number that SAT's schema would change is refused when it is submitted: the
// voucher would bear another one.
func TestNumbersWithOddBlanksAreRefused(t *testing.T) {
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack()}, Simulators: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer atlas.Close()
	long := strings.Repeat("A", 4) + " " + strings.Repeat("B", 40)
	for number, fine := range map[string]bool{
		"A-1": true, "A 1": true, "FOLIO 2026 7": true, "Ñandú/7": true, "AAAA" + strings.Repeat("B", 40): true,
		"AAA A" + strings.Repeat("B", 40): true,
		"A  1":                            false, "A\u00a01": false, "A\u20091": false, "A\u200b1": false, "A\u30001": false,
		"A|1": false, "A\ufeff1": false,
		long: false, "AAAA" + " " + strings.Repeat("B", 39): false,
	} {
		body := map[string]any{"country_code": "MX", "currency_code": "MXN", "transaction_id": "t",
			"transaction_number": number, "transaction_date": now.Add(-time.Minute).Format(time.RFC3339),
			"supplier": map[string]any{"id": "s1"}, "payments": []any{map[string]any{"type": "CASH", "amount": 11600}},
			"items": []any{map[string]any{"number": 1, "name": "Té", "quantity": 1, "unit_price": 11600,
				"tax_breakdowns": []any{map[string]any{"rate": 16, "regime": "VAT"}}}}}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		_, err = country.Examine(transaction.Invoice, text,
			country.Terms{Atlas: atlas, Now: now, UseCase: func(string) (country.UseCase, bool) {
				return country.Both, true
			}})
		var told *fault.Error
		refused := errors.As(err, &told) && slices.ContainsFunc(told.Faults, func(f fault.Fault) bool {
			return f.Field == "transaction_number" && f.Code == fault.FieldNotValid
		})
		if refused == fine || fine && err != nil {
			t.Errorf("%q: %v", number, err)
		}
	}
}

package mx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

func found(d country.Draft) []fault.Fault {
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
		{"date in the future", "transaction_date", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Date = now.Add(5*time.Minute + time.Second) }},
		{"date past 72 hours", "transaction_date", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Date = now.Add(-72*time.Hour - time.Second) }},
		{"bar in a name", "items.0.name", fault.FieldNotValid, line(func(i *transaction.Item) { i.Name = "a|b" })},
		{"bar in the customer", "customer.legal_name", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.LegalName = "a|b" }},
		{"bar in the number", "transaction_number", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Number = "1|2" }},
		{"business without RFC", "customer.tax_information.tax_number", fault.FieldRequired, func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "" }},
		{"no RFC at all", "customer.tax_information.tax_number", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "URE181329TM6" }},
		{"no postal code", "customer.address.postal_code", fault.FieldRequired, func(d *country.Draft) { d.Transaction.Customer.Address.PostalCode = "" }},
		{"short postal code", "customer.address.postal_code", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.Address.PostalCode = "8699" }},
		{"unknown regime", "customer.tax_information.regime", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.TaxRegime = "699" }},
		{"regime of people for a company", "customer.tax_information.regime", fault.ValidationMatchInvalid, func(d *country.Draft) { d.Transaction.Customer.TaxRegime = "612" }},
		{"unknown use", "customer.tax_information.use", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.TaxUse = "G09" }},
		{"use of people for a company, in its own member", "customer.tax_information.use", fault.ValidationMatchInvalid, func(d *country.Draft) { d.Transaction.Customer.TaxUse = "D01" }},
		{"use of people for a company", "customer.tax_information.regime", fault.ValidationMatchInvalid, func(d *country.Draft) { d.Transaction.Customer.TaxRegime = "601/D01" }},
		{"name too long", "customer.legal_name", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Customer.LegalName = strings.Repeat("Ñ", 301) }},
		{"dollars without a rate", "exchange_rate", fault.FieldRequired, func(d *country.Draft) { d.Transaction.CurrencyCode = "USD" }},
		{"currency that SAT lacks", "currency_code", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.CurrencyCode = "BYN" }},
		{"unknown product", "items.0.code", fault.FieldNotValid, line(func(i *transaction.Item) { i.Code = "12345678" })},
		{"product in another form", "items.0.code", fault.FieldNotValid, line(func(i *transaction.Item) { i.Code = "SKU-1" })},
		{"free line", "items.0.unit_price", fault.FieldNotValid, line(func(i *transaction.Item) { i.UnitPrice = 0 })},
		{"rate of another country", "items.0.tax_breakdowns.0.rate", fault.FieldNotValid, line(func(i *transaction.Item) { i.Taxes[0].Rate = percent(21, 0) })},
		{"exempt with a rate", "items.0.tax_breakdowns.0.rate", fault.ValidationMatchInvalid, line(func(i *transaction.Item) { i.Taxes[0].Type = transaction.TaxExempt })},
		{"reverse charge", "items.0.tax_breakdowns.0.type", fault.FieldNotValid, line(func(i *transaction.Item) { i.Taxes[0] = tax(percent(0, 0), transaction.VAT, transaction.TaxReverse) })},
		{"two IVA", "items.0.tax_breakdowns", fault.ValidationMatchInvalid, line(func(i *transaction.Item) { i.Taxes = []transaction.Tax{iva(16), iva(8)} })},
		{"IVA beside IEPS", "items.0.tax_breakdowns", fault.ValidationMatchInvalid, line(func(i *transaction.Item) { i.Taxes = []transaction.Tax{iva(16), tax(percent(8, 0), "IEPS", "")} })},
		{"withheld at an odd rate", "items.0.tax_breakdowns.1.type", fault.FieldRequired, line(func(i *transaction.Item) { i.Taxes = append(i.Taxes, tax(percent(7, 0), transaction.Withholding, "")) })},
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
			d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PUE", Amount: 1}, {Type: "OTHER", Code: "PPD", Amount: 1}}
		}},
		{"unknown method", "payments.0.code", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "ABC"}} }},
		{"unknown form", "payments.0.code", fault.FieldNotValid, func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PUE:07"}} }},
		{"PPD with a form", "payments.0.code", fault.ValidationMatchInvalid, func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CASH", Code: "PPD:03"}} }},
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

func TestWhatSATTakesIsNotRefused(t *testing.T) {
	for name, edit := range map[string]func(*country.Draft){
		"72 hours ago":          func(d *country.Draft) { d.Transaction.Date = now.Add(-72 * time.Hour) },
		"five minutes ahead":    func(d *country.Draft) { d.Transaction.Date = now.Add(5 * time.Minute) },
		"300 letters":           func(d *country.Draft) { d.Transaction.Customer.LegalName = strings.Repeat("Ñ", 300) },
		"ampersand in an RFC":   func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "H&E951128469" },
		"RFC with a prefix":     func(d *country.Draft) { d.Transaction.Customer.TaxNumber = "MX ure-180429-tm6" },
		"a form of its own":     func(d *country.Draft) { d.Transaction.Payments = []transaction.Payment{{Type: "CARD", Code: "PUE:28"}} },
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
		"legal_name":                 func(s *country.Supplier) { s.LegalName = "a|b" },
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
				Quantity: num.MakeAmount(rapid.Int64Range(1, 5000).Draw(rt, "quantity"), rapid.Uint32Range(0, 3).Draw(rt, "decimals")), UnitPrice: rapid.Int64Range(100, 500000).Draw(rt, "price")})
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "discounts") {
			list = append(list, transaction.Item{Number: int64(i + 10), Name: "y", Type: transaction.Discount, Quantity: num.MakeAmount(1, 0), UnitPrice: -rapid.Int64Range(1, 900).Draw(rt, "off")})
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
		d := draft("P-1", func(d *country.Draft) { d.Transaction.Items = list })
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

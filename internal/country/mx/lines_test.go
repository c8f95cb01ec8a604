package mx_test

import (
	"testing"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/transaction"
)

// Whatever is sold with whatever taxes, to a company or over the counter: the
// voucher comes to what is owed, and the strict double stamps it.
func TestTaxesOnTaxesAndCondensedSalesComeToWhatIsOwed(t *testing.T) {
	b := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]string{transaction.Included, transaction.Added}).Draw(rt, "mode")
		entry := func(rate num.Amount, regime string) transaction.Tax {
			return transaction.Tax{Rate: rate, Regime: regime, Mode: mode}
		}
		kinds := [][]transaction.Tax{
			{entry(percent(265, 1), "IEPS"), entry(percent(16, 0), "VAT")},
			{entry(percent(8, 0), "IEPS"), entry(percent(0, 0), "VAT")},
			{entry(percent(16, 0), "VAT"), entry(percent(3, 0), "IEPS")}, {entry(percent(16, 0), "VAT")},
			{entry(percent(16, 0), "IVA"), entry(percent(35, 1), "ISH")},
			{entry(percent(53, 0), "IEPS"), entry(percent(8, 0), "IVA")}, nil,
		}
		var list []transaction.Item
		for i := range rapid.IntRange(1, 8).Draw(rt, "lines") {
			item := transaction.Item{Number: int64(i + 1), Name: "x", Type: transaction.Goods,
				UnitPrice: rapid.Int64Range(20, 300000).Draw(rt, "price"),
				Quantity: num.MakeAmount(rapid.Int64Range(1, 3000).Draw(rt, "quantity"),
					rapid.Uint32Range(0, 2).Draw(rt, "decimals")), Taxes: rapid.SampledFrom(kinds).Draw(rt, "taxes")}
			if rapid.Bool().Draw(rt, "discounted") {
				off := percent(rapid.Int64Range(0, 9900).Draw(rt, "discount"), 2)
				item.Discount = &transaction.LineDiscount{Rate: &off}
			}
			list = append(list, item)
		}
		d := draft("L-1", func(d *country.Draft) {
			d.Supplier.Settings["place_of_issue"] = "22000"
			d.Transaction.Items = list
			if rapid.Bool().Draw(rt, "over the counter") {
				d.Transaction.Customer = nil
			}
		})
		if d.Totals.Gross == 0 || len(found(d)) > 0 {
			rt.Skip("nothing to sell")
		}
		f, err := b.channel.Prepare(d)
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

// What a company says of those it sells for is checked when it is onboarded.
func TestThirdPartiesOfACompanyAreChecked(t *testing.T) {
	good := map[string]any{"name": "Xochilt Casas Chávez", "regime": "612", "postal_code": "36257"}
	for name, c := range map[string]struct {
		rfc    string
		member string
		value  string
		faults int
	}{
		"good": {"CACX7605101P8", "", "", 0}, "no RFC": {"CACX76", "", "", 1}, "no name": {"CACX7605101P8", "name", "", 1},
		"a company's regime": {"CACX7605101P8", "regime", "601", 1},
		"no postal code":     {"CACX7605101P8", "postal_code", "3625", 1},
	} {
		one := map[string]any{}
		for k, v := range good {
			one[k] = v
		}
		if c.member != "" {
			one[c.member] = c.value
		}
		s := supplier("soap")
		s.Settings["third_parties"] = map[string]any{c.rfc: one}
		if faults := pack().CheckCompany(s, credentials()); len(faults) != c.faults {
			t.Errorf("%s: %+v", name, faults)
		}
	}
}

// A name is refused only for an end that says how capital is held, and the hint
// is the name as it was written.
func TestNamesThatEndInAFormOfCapital(t *testing.T) {
	for name, hint := range map[string]string{
		"Comercial Azteca, S.A. de C.V.": "COMERCIAL AZTECA", "Comercial Azteca SA de CV": "COMERCIAL AZTECA",
		"J. P. Ruiz, S. A. DE C. V.": "J. P. RUIZ",
		"Taller S de RL de CV":       "TALLER", "Taller, S. de R. L.": "TALLER", "Fondo S.A.P.I. de C.V.": "FONDO",
		"Crédito SA de CV SOFOM ENR":                "CRÉDITO",
		"Casa Sociedad Anónima de Capital Variable": "CASA", "Vecinos, A.C.": "VECINOS", "Notarios S.C.": "NOTARIOS",
		"Grupo Uno SA": "GRUPO UNO",
		"Grupo AC":     "", "Vasa": "", "La Casa de CV": "", "SA de CV": "", "Grupo SAB": "", "Asociación Civil": "",
		"Universidad Robótica Española": "",
	} {
		got := mx.Capital(name)
		if got != hint {
			t.Errorf("%s: %q instead of %q", name, got, hint)
		}
	}
}

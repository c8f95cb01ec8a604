package sale_test

import (
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/transaction"
)

var late = time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC)

func rules() *sale.Rules {
	f := country.Facts{Rates: []country.Rate{{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "20"}}}
	return &sale.Rules{Home: "PL", Money: "PLN", Zone: sale.Zone("Europe/Warsaw"),
		Typed: func(c country.Case) []transaction.Item {
			return country.ClassifyTaxes(f, c)
		}}
}

func draft(kind transaction.Kind, rates ...string) *country.Draft {
	t := transaction.Transaction{Kind: kind, CountryCode: "PL", CurrencyCode: "eur", Date: late}
	for _, rate := range rates {
		percent, _ := num.AmountFromString(rate)
		t.Items = append(t.Items, transaction.Item{Type: transaction.Goods, UnitPrice: 12000, Quantity: num.MakeAmount(1, 0),
			Taxes: []transaction.Tax{{Regime: transaction.VAT, Rate: percent, Mode: transaction.Included},
				{Regime: transaction.Withholding, Rate: num.MakeAmount(10, 0)}}})
	}
	totals, _ := transaction.Calculate(t.Items)
	return &country.Draft{Transaction: t, Totals: totals, UniqueNumber: "U-1"}
}

func TestACorrectionHasTheBuyerTheSignAndTheOriginalOfWhatItCorrects(t *testing.T) {
	original := draft(transaction.Invoice, "20").Transaction
	original.Number, original.Customer = "F-1", &transaction.Party{LegalName: "Buyer", TaxNumber: "PL5265877635"}
	in := draft(transaction.Credit, "20")
	in.Original = &country.Original{Transaction: original, Report: []byte("<Invoice><Day>2026-03-30</Day></Invoice>")}
	d := rules().Of(in)
	if d.Customer != original.Customer || in.Transaction.Customer != nil {
		t.Errorf("the buyer is %v, the draft's %v", d.Customer, in.Transaction.Customer)
	}
	if l := d.Lines[0]; l.Net != -10000 || l.Tax != -2000 || l.Gross != -12000 || l.Withheld != -1000 || l.At != 0 ||
		l.Item.Taxes[0].Type != transaction.TaxStandard {
		t.Errorf("the line is %+v", l)
	}
	if o := d.Originals[0]; len(d.Originals) != 1 || o.Number != "F-1" || o.Path != "reference_transaction_id" ||
		o.Amount != in.Totals.Gross || o.Filed.Value("Day") != "2026-03-30" {
		t.Errorf("the original is %+v", o)
	}
	if d.Number() != "U-1" || d.Day(d.Date) != "2026-04-01" || !d.Foreign() || d.Decimals != 2 || !d.Correction() {
		t.Errorf("number %s, day %s", d.Number(), d.Day(d.Date))
	}
	in.Shares = []country.Share{{Original: *in.Original, Amount: 5},
		{Original: country.Original{UniqueNumber: "U-0"}, Amount: 7}}
	if list := rules().Of(in).Originals; len(list) != 2 || list[1].Path != "references.1.transaction_id" ||
		list[1].Number != "U-0" || list[1].Filed != nil {
		t.Errorf("the originals are %+v", list)
	}
}

func TestLinesWithoutTaxAreVisitedWithWhatTheClientLeftOpen(t *testing.T) {
	in := draft(transaction.Invoice, "20", "0", "0")
	in.Transaction.Items[2].Taxes[0].Type = transaction.TaxExempt
	var seen []int
	for e := range sale.Untaxed(in.Transaction.Items, rules().Of(in).Items) {
		seen = append(seen, e.Item)
		if e.Open != (e.Item == 1) || e.Type == "" ||
			e.Fault("code", "x", "is wrong").Field != sale.TaxPath(e.Item, 0, "code") {
			t.Errorf("%+v", e)
		}
	}
	if len(seen) != 2 || seen[0] != 1 || seen[1] != 2 {
		t.Errorf("visited %v", seen)
	}
	in.Transaction.Items[0].Taxes = nil
	if found := sale.OneTax(in.Transaction.Items, "a line has one"); len(found) != 1 ||
		found[0].Field != "items.0.tax_breakdowns" {
		t.Errorf("%v", found)
	}
	in.Totals.Lines = nil
	if lines := rules().Of(in).Lines; lines != nil {
		t.Errorf("lines without amounts: %v", lines)
	}
}

package hu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/country/hu"
	"tributary/internal/country/packtest"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// agrees compares an invoice with its data, read in another way.
func agrees(t *testing.T, name string, file []byte, d *incoming.Document) {
	t.Helper()
	s := packtest.Say(t, name, file)
	decimals, _ := transaction.CurrencyExponent(d.Currency)
	packtest.Equal(s, "number", d.Number, s.Text("//invoiceNumber"))
	packtest.Equal(s, "net", d.Net, s.Sum("//summaryNormal/invoiceNetAmount", decimals))
	packtest.Equal(s, "tax", d.Tax, s.Sum("//summaryNormal/invoiceVatAmount", decimals))
	if s.Text("//invoiceGrossAmount") != "" {
		packtest.Equal(s, "gross", d.Gross, s.Sum("//invoiceGrossAmount", decimals))
	}
	packtest.Equal(s, "lines", len(d.Lines), len(s.Texts("//invoiceLines/line")))
	var lines int64
	for i := range d.Lines {
		lines += d.Lines[i].Net
	}
	packtest.Equal(s, "sum of the lines", lines, s.Sum("//line/lineAmountsNormal/lineNetAmountData/lineNetAmount", decimals)+
		s.Sum("//line/lineAmountsSimplified/lineGrossAmountSimplified", decimals))
	packtest.Equal(s, "supplier", d.Sender.LegalName, s.Text("//supplierName"))
	packtest.Equal(s, "customer", d.Receiver.LegalName, s.Text("//customerName"))
	packtest.Equal(s, "supplier's number", d.Sender.TaxNumber[:8], s.Text("//supplierTaxNumber/taxpayerId"))
	base, tax := packtest.SumOf(d.Taxes, transaction.VAT)
	packtest.Equal(s, "bases", base, s.Sum("//vatRateNetData/vatRateNetAmount", decimals)+s.Sum("//vatContentGrossAmount", decimals))
	packtest.Equal(s, "taxes", tax, s.Sum("//vatRateVatData/vatRateVatAmount", decimals))
	if (s.Text("//originalInvoiceNumber") != "") != (d.Kind == transaction.Adjustment) {
		t.Errorf("%s: is %s", name, d.Kind)
	}
}

func TestWhatWeFileIsReadBack(t *testing.T) {
	t.Parallel()
	for name, file := range packtest.Filed(t, "testdata") {
		d, err := hu.Read(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		agrees(t, name, file, d)
	}
}

func TestSamplesAreRead(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(needs.Schemas(t, "hu-nav", "sample", "Data sample"), "*.xml"))
	if err != nil || len(paths) < 25 {
		t.Fatalf("%d samples: %v", len(paths), err)
	}
	several := 0
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := hu.ReadAll(file)
		switch {
		case err != nil:
			t.Errorf("%s: %v", filepath.Base(path), err)
		case len(all) == 1:
			agrees(t, filepath.Base(path), file, all[0])
		default:
			several++
			s := packtest.Say(t, filepath.Base(path), file)
			packtest.Equal(s, "invoices", len(all), len(s.Texts("//batchInvoice")))
			for i, original := range s.Texts("//originalInvoiceNumber") {
				packtest.Equal(s, "original", all[i].Earlier[0].Number, original)
			}
		}
	}
	if several == 0 {
		t.Error("no modification of several invoices was read")
	}
}

func TestManyInvoicesInOneAreBounded(t *testing.T) {
	t.Parallel()
	file := string(packtest.Filed(t, "testdata")["business"])
	from, to := strings.Index(file, "<invoice>"), strings.Index(file, "</invoice>")+len("</invoice>")
	for count, fine := range map[int]bool{1: true, 1000: true, 1001: false, 0: false} {
		batch := strings.Repeat("<batchInvoice><invoice><invoiceHead><invoiceDetail><currencyCode>HUF</currencyCode></invoiceDetail></invoiceHead></invoice></batchInvoice>", count)
		if all, err := hu.ReadAll([]byte(file[:from] + batch + file[to:])); (err == nil) != fine || fine && len(all) != count {
			t.Errorf("%d invoices: %d, %v", count, len(all), err)
		}
	}
}

func FuzzReadAll(f *testing.F) {
	f.Add(packtest.Filed(f, "testdata")["several-rates"])
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		if all, err := hu.ReadAll(file); (len(all) == 0) != (err != nil) {
			t.Errorf("%d and %v", len(all), err)
		}
	})
}

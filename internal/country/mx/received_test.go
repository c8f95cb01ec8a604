package mx_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/country/mx"
	"tributary/internal/country/packtest"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// agrees compares a voucher with its file, read in another way.
func agrees(t *testing.T, name string, file []byte, d *incoming.Document) {
	t.Helper()
	s := packtest.Say(t, name, file)
	decimals, _ := transaction.CurrencyExponent(d.Currency)
	packtest.Equal(s, "number", d.Number, s.Text("/Comprobante/@Serie")+s.Text("/Comprobante/@Folio"))
	packtest.Equal(s, "issuer", d.Sender.TaxNumber, s.Text("/Comprobante/Emisor/@Rfc"))
	packtest.Equal(s, "receiver", d.Receiver.TaxNumber, s.Text("/Comprobante/Receptor/@Rfc"))
	packtest.Equal(s, "receiver's name", d.Receiver.LegalName, s.Text("/Comprobante/Receptor/@Nombre"))
	packtest.Equal(s, "id", d.AuthorityID, s.Text("//TimbreFiscalDigital/@UUID"))
	if d.TypeCode == "P" {
		var paid int64
		for i := range d.Payments {
			paid += d.Payments[i].Amount
		}
		packtest.Equal(s, "payments", paid, s.Sum("//Pago/@Monto", decimals))
		packtest.Equal(s, "documents", len(d.Earlier), len(s.Texts("//DoctoRelacionado/@IdDocumento"))+len(s.Texts("//CfdiRelacionado/@UUID")))
		return
	}
	packtest.Equal(s, "payable", d.Payable, s.Sum("/Comprobante/@Total", decimals))
	packtest.Equal(s, "net", d.Net, s.Sum("/Comprobante/@SubTotal", decimals)-s.Sum("/Comprobante/@Descuento", decimals))
	packtest.Equal(s, "tax", d.Tax, s.Sum("/Comprobante/Impuestos/@TotalImpuestosTrasladados", decimals)+s.Sum("//ImpuestosLocales/@TotaldeTraslados", decimals))
	packtest.Equal(s, "withheld", d.Withheld,
		s.Sum("/Comprobante/Impuestos/@TotalImpuestosRetenidos", decimals)+s.Sum("//ImpuestosLocales/@TotaldeRetenciones", decimals))
	packtest.Equal(s, "gross", d.Gross, d.Net+d.Tax)
	packtest.Equal(s, "lines", len(d.Lines), len(s.Texts("//Conceptos/Concepto/@Importe")))
	_, held := packtest.SumOf(d.Taxes, transaction.Withholding)
	packtest.Equal(s, "withheld by kind", held, d.Withheld)
	_, vat := packtest.SumOf(d.Taxes, transaction.VAT)
	packtest.Equal(s, "IVA", vat, s.Sum("/Comprobante/Impuestos/Traslados/Traslado[@Impuesto='002']/@Importe", decimals))
}

// dated puts a day where the golden has none.
func dated(file []byte) []byte {
	return []byte(strings.NewReplacer(`Fecha="…"`, `Fecha="2026-01-02T03:04:05"`, `FechaPago="…"`, `FechaPago="2026-01-02T12:00:00"`).Replace(string(file)))
}

func TestWhatWeFileIsReadBack(t *testing.T) {
	t.Parallel()
	for name, file := range packtest.Filed(t, "testdata") {
		d, err := mx.Read(dated(file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		agrees(t, name, dated(file), d)
	}
}

func TestSamplesAreRead(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(needs.Schemas(t, "mx-cfdi", "examples"), "*.xml"))
	if err != nil || len(paths) < 4 {
		t.Fatalf("%d samples: %v", len(paths), err)
	}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := mx.Read(file)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
			continue
		}
		agrees(t, filepath.Base(path), file, d)
	}
}

func TestVouchersThatAreNoInvoicesAreRefused(t *testing.T) {
	t.Parallel()
	plain := string(dated(packtest.Filed(t, "testdata")["rest-invoice"]))
	for _, kind := range []string{"T", "N", ""} {
		if d, err := mx.Read([]byte(strings.Replace(plain, `TipoDeComprobante="I"`, `TipoDeComprobante="`+kind+`"`, 1))); d != nil || !errors.Is(err, incoming.ErrInvalid) {
			t.Errorf("type %q: %v", kind, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"rest-withheld", "rest-payment"} {
		f.Add(dated(packtest.Filed(f, "testdata")[name]))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		if d, err := mx.Read(file); (d == nil) != (err != nil) {
			t.Errorf("%v and %v", d, err)
		}
	})
}

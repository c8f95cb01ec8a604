package world_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tributary/internal/country/world"
	"tributary/internal/incoming"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// Documents that public libraries write are read: the same sale by each of them, in each of their formats.
func TestDocumentsOfPublicLibrariesAreRead(t *testing.T) {
	t.Parallel()
	folder, out := needs.Npm(t, "invoice-writers"), t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if text, err := exec.CommandContext(ctx, "node", "testdata/writers/write.mjs", folder, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := formats(t)
	for name, want := range map[string]string{"e-invoice-eu.ubl.xml": incoming.UBL, "e-invoice-eu.cii.xml": incoming.CII, "e-invoice-eu.pdf": incoming.CII,
		"factur-x.xrechnung.xml": incoming.CII, "factur-x.extended.xml": incoming.CII, "factur-x.pdf": incoming.CII,
		"fattura-elettronica.xml": incoming.FatturaPA} {
		file, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		list, err := world.Read(all, file)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d documents, %v", name, len(list), err)
			continue
		}
		d := list[0]
		seller, buyer, number, tax := "Verkäufer & Söhne GmbH", "Käufer AG", "DE123456789", int64(28_500)
		if want == incoming.FatturaPA {
			seller, buyer, number, tax = "Venditore & Figli s.r.l.", "Compratore s.p.a.", "IT01234567890", 33_000
		}
		if d.Format != want || d.Kind != transaction.Invoice || d.Number != "W-1" || d.Day != "2026-11-02" || d.Currency != "EUR" ||
			d.Net != 150_000 || d.Tax != tax || d.Gross != 150_000+tax || d.Sender.LegalName != seller || d.Sender.TaxNumber != number ||
			d.Receiver.LegalName != buyer || len(d.Lines) != 1 || d.Lines[0].Net != 150_000 || len(d.Taxes) != 1 || d.Taxes[0].Amount != tax {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

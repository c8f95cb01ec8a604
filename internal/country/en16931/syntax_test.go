package en16931_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/en16931"
	"tributary/internal/mutate"
	"tributary/internal/needs"
)

// examples visits every official example document.
func examples(t *testing.T, visit func(name string, document []byte)) {
	t.Helper()
	seen := 0
	for _, folder := range []string{"en16931/ubl/examples", "en16931/cii/examples", "xrechnung/testsuite",
		"peppol-bis3/examples",
		"peppol-bis3/examples-2026.5", "peppol-bis3/national-examples", "factur-x/examples", "en16931-worked"} {
		root := filepath.Join(needs.Schemas(t), filepath.FromSlash(folder))
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.EqualFold(filepath.Ext(path), ".xml") {
				return err
			}
			document, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen++
			rel, err := filepath.Rel(needs.Schemas(t), path)
			visit(filepath.ToSlash(rel), document)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 120 {
		t.Errorf("only %d examples were found", seen)
	}
}

// notUnderstood is everything in the official examples that the model has no
// term for, and why.
var notUnderstood = map[string]string{
	"Invoice/InvoiceLine/SubInvoiceLine": "XRechnung's extension: lines below lines",
	"Invoice/PrepaidPayment":             "XRechnung's extension: payments of third parties",
	"CrossIndustryInvoice/SupplyChainTradeTransaction/IncludedSupplyChainTradeLineItem/SpecifiedLineTradeSettlement/ApplicableTradeTax/ExemptionReason": "no term of a line; the breakdown has it",
}

func TestExamplesAreReadWithoutLoss(t *testing.T) {
	seen := map[string]bool{}
	index := regexp.MustCompile(`\[[0-9]+\]`)
	examples(t, func(name string, document []byte) {
		d, unknown, err := en16931.Read(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, u := range unknown {
			path := index.ReplaceAllString(u, "")
			if seen[path] = true; notUnderstood[path] == "" {
				t.Errorf("%s: %s", name, u)
			}
		}
		for _, cii := range []bool{false, true} {
			written := en16931.Write(d, en16931.Profile{CII: cii})
			again, unknown, err := en16931.Read(written)
			if err != nil || len(unknown) > 0 {
				t.Errorf("%s (CII %v): what was written cannot be read: %v %v", name, cii, err, unknown)
				continue
			}
			if !reflect.DeepEqual(d, again) {
				t.Errorf("%s (CII %v): reading what was written gives another document\n%+v\n%+v", name, cii, d, again)
			}
		}
	})
	for path, why := range notUnderstood {
		if !seen[path] {
			t.Errorf("%s (%s) is understood now: strike it out", path, why)
		}
	}
}

func TestWhatIsWrittenDependsOnNothingElse(t *testing.T) {
	for _, p := range profiles {
		d := sample(p)
		everything(d, p)
		before := fmt.Sprintf("%+v", *d)
		first := en16931.Write(d, p)
		if !bytes.Equal(first, en16931.Write(d, p)) {
			t.Errorf("%s: equal documents give different bytes", p.Code)
		}
		if fmt.Sprintf("%+v", *d) != before {
			t.Errorf("%s: writing changed the document", p.Code)
		}
		again, unknown, err := en16931.Read(first)
		if err != nil || len(unknown) > 0 || !reflect.DeepEqual(d, again) {
			t.Errorf("%s: %v %v\n%+v\n%+v", p.Code, err, unknown, d, again)
		}
	}
}

// The creditor's identifier has no place of its own in UBL.
func TestCreditorOfADebitSurvives(t *testing.T) {
	for _, payee := range []*en16931.Party{nil, {Name: "Factor AG"}} {
		d := sample(en16931.PeppolBIS())
		d.Payee = payee
		d.Payment = en16931.Payment{Mandate: "M", Creditor: "DE98ZZZ09999999999",
			Means: []en16931.PaymentMeans{{Code: "59", DebitAccount: "DE1"}}}
		for _, write := range []func(*en16931.Invoice) []byte{en16931.WriteUBL, en16931.WriteCII} {
			if again, _, err := en16931.Read(write(d)); err != nil || !reflect.DeepEqual(again, d) {
				t.Errorf("%v\n%+v\n%+v", err, d, again)
			}
		}
	}
}

func TestReaderIsStrictAndBounded(t *testing.T) {
	ubl := string(en16931.WriteUBL(sample(en16931.PeppolBIS())))
	cii := string(en16931.WriteCII(sample(en16931.FacturX())))
	for name, c := range map[string]struct{ document, want string }{
		"nothing":      {"", "reading"},
		"no XML":       {"%PDF-1.7", "reading"},
		"other root":   {"<Order xmlns='urn:oasis:names:specification:ubl:schema:xsd:Order-2'/>", "neither UBL nor CII"},
		"no namespace": {"<Invoice/>", "neither UBL nor CII"},
		"document type": {strings.Replace(ubl, "<Invoice", "<!DOCTYPE Invoice [<!ENTITY a 'b'>]><Invoice", 1),
			"document type"},
		"cut off":    {ubl[:len(ubl)/2], "reading"},
		"amount":     {strings.Replace(ubl, ">190.84<", ">1e2<", 1), "Invoice/InvoiceLine[1]/LineExtensionAmount"},
		"day":        {strings.Replace(ubl, "2026-11-15", "2026-02-30", 1), "Invoice/IssueDate"},
		"day in CII": {strings.Replace(cii, ">20261115<", ">20260230<", 1), "not a day"},
		"file": {strings.Replace(ubl, "<cac:AccountingSupplierParty>",
			"<cac:AdditionalDocumentReference><cbc:ID>1</cbc:ID><cac:Attachment><cbc:EmbeddedDocumentBinaryObject>?</cbc:EmbeddedDocumentBinaryObject></cac:Attachment></cac:AdditionalDocumentReference><cac:AccountingSupplierParty>", 1), "base 64"},
		"too deep": {strings.Replace(ubl, "</Invoice>", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)+"</Invoice>",
			1), "deep"},
		"too large": {strings.Replace(ubl, "Thank you", strings.Repeat("x", 32<<20), 1), "bytes"},
	} {
		if d, _, err := en16931.Read([]byte(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v", name, d != nil, err)
		}
	}
}

func TestWhatIsNotUnderstoodIsNamed(t *testing.T) {
	text := string(en16931.WriteUBL(sample(en16931.PeppolBIS())))
	text = strings.Replace(text, `currencyID="EUR">190.84`, `currencyID="USD">190.84`, 1)
	text = strings.Replace(text, "<cac:PaymentTerms>",
		"<cac:DeliveryTerms><cbc:ID>EXW</cbc:ID></cac:DeliveryTerms><cac:PaymentTerms>", 1)
	d, unknown, err := en16931.Read([]byte(text))
	want := []string{"Invoice/InvoiceLine[1]/LineExtensionAmount/@currencyID", "Invoice/DeliveryTerms"}
	if err != nil || !slices.Equal(unknown, want) || d.Number != "R-2026-17" {
		t.Errorf("%v %q", err, unknown)
	}
}

func FuzzRead(f *testing.F) {
	for _, p := range profiles {
		f.Add(en16931.Write(sample(p), p))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		d, _, err := en16931.Read(document)
		if err != nil {
			return
		}
		for _, p := range profiles {
			en16931.Check(d, p)
		}
		// What was read can be written, and then stands still.
		once, _, err := en16931.Read(en16931.WriteUBL(d))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		first := en16931.WriteUBL(once)
		twice, _, err := en16931.Read(first)
		if err != nil || !bytes.Equal(first, en16931.WriteUBL(twice)) {
			t.Fatalf("writing does not come to rest: %v", err)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, lines := range []int{10, 1000} {
		for _, p := range []en16931.Profile{en16931.PeppolBIS(), en16931.FacturX()} {
			d := randomInvoice(rand.New(rand.NewPCG(1, 1)), p, lines)
			b.Run(fmt.Sprintf("%s/%d", p.Code, lines), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					en16931.Write(d, p)
				}
			})
			b.Run(fmt.Sprintf("check/%s/%d", p.Code, lines), func(b *testing.B) {
				for b.Loop() {
					en16931.Check(d, p)
				}
			})
			text := en16931.Write(d, p)
			b.Run(fmt.Sprintf("read/%s/%d", p.Code, lines), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if _, _, err := en16931.Read(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

package it_test

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/it"
	"tributary/internal/country/packtest"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// agrees compares an invoice with its file, read in another way.
func agrees(t *testing.T, name string, file []byte, d *incoming.Document) {
	t.Helper()
	s := packtest.Say(t, name, file)
	if strings.Contains(string(file[:300]), "FSM10") {
		packtest.Equal(s, "gross", d.Gross, s.Sum("//DatiBeniServizi/Importo", 2))
		packtest.Equal(s, "seller", d.Sender.LegalName, s.Text("//CedentePrestatore/Denominazione"))
		return
	}
	packtest.Equal(s, "number", d.Number, s.Text("//DatiGeneraliDocumento/Numero"))
	packtest.Equal(s, "kind", d.TypeCode, s.Text("//TipoDocumento"))
	packtest.Equal(s, "day", d.Day, s.Text("//DatiGeneraliDocumento/Data"))
	packtest.Equal(s, "net", d.Net, s.Sum("//DatiRiepilogo/ImponibileImporto", 2))
	packtest.Equal(s, "tax", d.Tax, s.Sum("//DatiRiepilogo/Imposta", 2))
	if s.Text("//ImportoTotaleDocumento") != "" {
		packtest.Equal(s, "gross", d.Gross, s.Sum("//ImportoTotaleDocumento", 2))
	}
	packtest.Equal(s, "withheld", d.Withheld, s.Sum("//DatiRitenuta/ImportoRitenuta", 2))
	packtest.Equal(s, "lines", len(d.Lines), len(s.Texts("//DettaglioLinee")))
	for i := range d.Lines {
		packtest.Equal(s, "a line", d.Lines[i].Net, s.Sum(fmt.Sprintf("//DettaglioLinee[%d]/PrezzoTotale", i+1), 2))
	}
	if amounts := s.Texts("//ImportoPagamento"); len(amounts) > 0 {
		packtest.Equal(s, "payable", d.Payable, s.Sum("//ImportoPagamento", 2))
	}
	for _, p := range []struct {
		of   transaction.Party
		path string
	}{{d.Sender, "//CedentePrestatore/DatiAnagrafici"}, {d.Receiver, "//CessionarioCommittente/DatiAnagrafici"}} {
		packtest.Equal(s, "number of a party", p.of.TaxNumber, s.Text(p.path+"/IdFiscaleIVA/IdPaese")+s.Text(p.path+"/IdFiscaleIVA/IdCodice"))
		packtest.Equal(s, "codice fiscale", p.of.FiscalCode, s.Text(p.path+"/CodiceFiscale"))
		if name := s.Text(p.path + "/Anagrafica/Denominazione"); name != "" {
			packtest.Equal(s, "name", p.of.LegalName, name)
		}
	}
	base, tax := packtest.SumOf(d.Taxes, transaction.VAT)
	packtest.Equal(s, "the rates' bases", base, d.Net)
	packtest.Equal(s, "the rates' taxes", tax, d.Tax)
	_, held := packtest.SumOf(d.Taxes, transaction.Withholding)
	packtest.Equal(s, "what is withheld by kind", held, d.Withheld)
}

func TestWhatWeFileIsReadBack(t *testing.T) {
	t.Parallel()
	for name, file := range packtest.Filed(t, "testdata") {
		d, err := it.Read(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		agrees(t, name, file, d)
		for _, path := range d.NotRead {
			if !slices.ContainsFunc([]string{"DatiDDT", "AltriDatiGestionali", "SoggettoEmittente", "ImponibileCassa", "StatoLiquidazione",
				"CapitaleSociale", "SocioUnico"}, func(known string) bool { return strings.Contains(path, known) }) {
				t.Errorf("%s: not read: %s", name, path)
			}
		}
	}
}

// samples are the files of the official and public collections, without those of
// other messages and those that are made to be no invoices.
func samples(t *testing.T) (paths []string) {
	for _, folder := range [][]string{{"examples"}, {"tests", "samples", "invoices"}} {
		found, err := filepath.Glob(filepath.Join(needs.Schemas(t, append([]string{"it-fatturapa"}, folder...)...), "*.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if name := filepath.Base(path); !strings.Contains(name, "_EC_") && !strings.HasPrefix(name, "invalid") &&
				!strings.HasPrefix(name, "from") && !strings.HasPrefix(name, "missing") {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) < 20 {
		t.Errorf("only %d samples", len(paths))
	}
	return paths
}

func TestSamplesAreRead(t *testing.T) {
	t.Parallel()
	for _, path := range samples(t) {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all, err := it.ReadAll(file)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
			continue
		}
		if len(all) == 1 {
			agrees(t, filepath.Base(path), file, all[0])
			continue
		}
		s := packtest.Say(t, filepath.Base(path), file)
		packtest.Equal(s, "invoices", len(all), len(s.Texts("//FatturaElettronicaBody")))
		var net int64
		for _, d := range all {
			net += d.Net
		}
		packtest.Equal(s, "net of all", net, s.Sum("//DatiRiepilogo/ImponibileImporto", 2))
	}
}

// der writes an element of DER, ber one whose length is not said.
func der(tag byte, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	switch n := len(body); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, body...)
	case n < 1<<16:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, body...)
	default:
		return append([]byte{tag, 0x84, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
	}
}

func ber(tag byte, parts ...[]byte) []byte {
	return append(append([]byte{tag, 0x80}, bytes.Join(parts, nil)...), 0, 0)
}

func oid(t testing.TB, numbers ...int) []byte {
	id, err := asn1.Marshal(asn1.ObjectIdentifier(numbers))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// signed puts a file into SignedData; who signed does not matter.
func signed(t testing.TB, element func(byte, ...[]byte) []byte, content []byte) []byte {
	return element(0x30, oid(t, 1, 2, 840, 113549, 1, 7, 2), element(0xa0, element(0x30, der(2, []byte{1}),
		element(0x31, der(0x30, oid(t, 2, 16, 840, 1, 101, 3, 4, 2, 1))),
		element(0x30, oid(t, 1, 2, 840, 113549, 1, 7, 1), element(0xa0, content)), element(0x31))))
}

func wrapped(t testing.TB, file []byte) map[string][]byte {
	inDER := signed(t, der, der(4, file))
	pieces := ber(0x24, der(4, file[:100]), der(4, file[100:1000]), der(0x24, der(4, file[1000:])))
	return map[string][]byte{"DER": inDER, "BER": signed(t, ber, pieces), "twice": signed(t, der, der(4, inDER)),
		"base 64": []byte(base64.StdEncoding.EncodeToString(inDER)),
		"PEM":     pem.EncodeToMemory(&pem.Block{Type: "PKCS7", Bytes: inDER})}
}

func TestSignedInvoicesAreOpenedAndNotTrusted(t *testing.T) {
	t.Parallel()
	file := packtest.Filed(t, "testdata")["business"]
	plain, err := it.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, envelope := range wrapped(t, file) {
		d, err := it.Read(envelope)
		if err != nil || d.Number != plain.Number || d.Gross != plain.Gross || !it.IsSigned(envelope) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.ContainsFunc(d.NotRead, func(s string) bool { return strings.Contains(s, "not verified") }) {
			t.Errorf("%s: nobody says that the signature was not verified: %v", name, d.NotRead)
		}
		for cut := 0; cut < len(envelope); cut += 7 {
			if _, err := it.Read(envelope[:cut]); err == nil && cut < len(envelope)-60 {
				t.Errorf("%s: %d bytes of it are read", name, cut)
			}
		}
	}
	envelope := file
	for range 5 {
		envelope = signed(t, der, der(4, envelope))
	}
	if _, err := it.Read(envelope); !errors.Is(err, incoming.ErrInvalid) {
		t.Errorf("five envelopes: %v", err)
	}
	deep := bytes.Repeat([]byte{0x24, 0x80}, 1<<20)
	if _, err := it.Read(signed(t, ber, deep)); !errors.Is(err, incoming.ErrInvalid) {
		t.Errorf("a million pieces in each other: %v", err)
	}
}

func TestWhatAnItalianInvoiceSaysBesideItsLines(t *testing.T) {
	t.Parallel()
	file := string(packtest.Filed(t, "testdata")["business"])
	put := func(before, what string) {
		file = strings.Replace(file, before, what+before, 1)
	}
	put("<ImportoTotaleDocumento>", `<DatiRitenuta><TipoRitenuta>RT02</TipoRitenuta><ImportoRitenuta>6.00</ImportoRitenuta>`+
		`<AliquotaRitenuta>20.00</AliquotaRitenuta><CausalePagamento>A</CausalePagamento></DatiRitenuta>`+
		`<DatiBollo><BolloVirtuale>SI</BolloVirtuale><ImportoBollo>2.00</ImportoBollo></DatiBollo>`+
		`<DatiCassaPrevidenziale><TipoCassa>TC04</TipoCassa><AlCassa>4.00</AlCassa><ImportoContributoCassa>1.20</ImportoContributoCassa>`+
		`<AliquotaIVA>0.00</AliquotaIVA><Natura>N4</Natura></DatiCassaPrevidenziale>`+
		`<ScontoMaggiorazione><Tipo>SC</Tipo><Percentuale>5.00</Percentuale><Importo>1.50</Importo></ScontoMaggiorazione>`)
	put("<PrezzoTotale>", `<ScontoMaggiorazione><Tipo>MG</Tipo><Importo>0.125</Importo></ScontoMaggiorazione>`)
	body := file[strings.Index(file, "<FatturaElettronicaBody>") : strings.Index(file, "</FatturaElettronicaBody>")+len("</FatturaElettronicaBody>")]
	all, err := it.ReadAll([]byte(strings.Replace(file, body, body+strings.Replace(body, "<Numero>2025/001<", "<Numero>2025/999<", 1), 1)))
	if err != nil || len(all) != 2 || all[0].Number != "2025/001" || all[1].Number != "2025/999" || all[1].Sender.TaxNumber != all[0].Sender.TaxNumber {
		t.Fatalf("%d %v", len(all), err)
	}
	d := all[1]
	if d.Withheld != 600 || len(d.Charges) != 1 || d.Charges[0].Amount != 120 || d.Charges[0].Code != "TC04" ||
		d.Charges[0].Taxes[0].Type != transaction.TaxExempt || len(d.Allowances) != 1 || d.Allowances[0].Amount != 150 ||
		d.Lines[0].Charges[0].Unit.String() != "0.125" {
		t.Errorf("%+v", d)
	}
	if _, stamp := packtest.SumOf(d.Taxes, "BOLLO"); stamp != 200 {
		t.Errorf("%+v", d.Taxes)
	}
	if _, err := it.Read([]byte(strings.Replace(file, body, body+body, 1))); !errors.Is(err, incoming.ErrInvalid) {
		t.Errorf("two invoices where one is expected: %v", err)
	}
	if _, err := it.ReadAll([]byte(strings.Replace(file, body, strings.Repeat("<FatturaElettronicaBody/>", 1001), 1))); !errors.Is(err, incoming.ErrInvalid) {
		t.Errorf("1,001 invoices: %v", err)
	}
	typed := strings.Replace(file, "?>", "?><!DOCTYPE a [<!ENTITY b \"c\">]>", 1)
	if _, err := it.Read([]byte(typed)); !errors.Is(err, xmltree.ErrDoctype) {
		t.Errorf("a document type: %v", err)
	}
}

func FuzzReadAll(f *testing.F) {
	for _, name := range []string{"business", "withholding"} {
		f.Add(packtest.Filed(f, "testdata")[name])
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := it.ReadAll(file)
		if (err == nil) != (len(all) > 0) {
			t.Errorf("%d invoices and %v", len(all), err)
		}
	})
}

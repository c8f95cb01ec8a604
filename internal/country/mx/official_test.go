package mx_test

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/mx"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
	"tributary/internal/official/satwire"
)

// written puts documents into files, so that one run of a tool reads them all:
// SAT's catalogues take it a tenth of a second each time.
func written(t *testing.T, documents [][]byte) []string {
	t.Helper()
	dir := t.TempDir()
	paths := make([]string, len(documents))
	for i, raw := range documents {
		paths[i] = filepath.Join(dir, fmt.Sprintf("%03d.xml", i))
		if err := os.WriteFile(paths[i], raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// sameOriginal compares our original strings with the official sheet's.
func sameOriginal(t *testing.T, documents ...[]byte) {
	t.Helper()
	sheet := needs.Schemas(t, "mx-cfdi", "www.sat.gob.mx", "sitio_internet", "cfd", "4", "cadenaoriginal_4_0",
		"cadenaoriginal_4_0.xslt")
	needs.Tool(t, "xsltproc", "xsltproc")
	cmd := exec.Command("xsltproc", append([]string{"--nonet", sheet}, written(t, documents)...)...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	want, err := cmd.Output()
	if err != nil {
		t.Fatalf("xsltproc: %v %s", err, problems.Bytes())
	}
	for _, raw := range documents {
		got, err := mx.Original(raw)
		if err != nil {
			t.Fatal(err)
		}
		rest, same := bytes.CutPrefix(bytes.TrimPrefix(want, []byte("\n")), got)
		if !same {
			t.Fatalf("the original string differs\nours  %s\nSAT's %s", got, want[:min(len(want), len(got)+200)])
		}
		want = rest
	}
	if len(bytes.TrimSpace(want)) > 0 {
		t.Errorf("SAT's have more: %s", want)
	}
}

// Every case, before and after the stamp, is valid by the official schema, a
// broken copy of each is not, and SAT's sheet makes our original string of it.
func TestEveryCaseIsValidByTheOfficialSchema(t *testing.T) {
	schema := needs.Schemas(t, "mx-cfdi", "cfdi40-all.xsd")
	b := open(t)
	var good, broken [][]byte
	attributes := []string{"UsoCFDI", "Moneda", "Rfc", "Importe", "Impuesto", "ClaveUnidad", "ClaveProdServ", "Fecha",
		"TipoDeComprobante", "ObjetoImp", "LugarExpedicion", "SubTotal"}
	for i, c := range cases("soap") {
		f := b.prepare(t, c.Draft)
		r := b.send(t, f)
		if r.Outcome != "accepted" {
			t.Fatalf("%s: %+v", c.Name, r)
		}
		good = append(good, f.Report, r.Document)
		for _, raw := range [][]byte{f.Report, r.Document} {
			name := []byte(" " + attributes[i%len(attributes)] + `="`)
			if !bytes.Contains(raw, name) {
				name = []byte(` UsoCFDI="`)
			}
			broken = append(broken, bytes.Replace(raw, name, append(name, '-'), 1))
		}
	}
	sameOriginal(t, good...)
	xmllint := needs.Tool(t, "xmllint", "libxml2-utils")
	run := func(documents [][]byte) (string, error) {
		out, err := exec.Command(xmllint, append([]string{"--noout", "--nonet", "--schema", schema},
			written(t, documents)...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(good); err != nil || strings.Count(out, " validates\n") != len(good) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(broken); err == nil || strings.Count(out, " fails to validate\n") != len(broken) {
		t.Errorf("broken copies pass: %v\n%s", err, out)
	}
}

// No schema of the complement Impuestos Locales is at hand: SAT's own sheet reads
// every situation that has one, and finds what is written, attribute by attribute.
func TestLocalTaxesAreReadByTheOfficialSheet(t *testing.T) {
	b := open(t)
	var documents [][]byte
	for _, s := range situations() {
		if s.Refuse != "" || !strings.Contains(strings.Join(s.Files, ""), "implocal:") {
			continue
		}
		report := b.prepare(t, s.Draft).Report
		got, err := mx.Original(report)
		if err != nil {
			t.Fatal(err)
		}
		_, complement, _ := strings.Cut(string(report), "<implocal:ImpuestosLocales ")
		var want []string
		for _, part := range regexp.MustCompile(`[A-Za-z]+="([^"]*)"`).FindAllStringSubmatch(
			complement[:strings.Index(complement, "</implocal:ImpuestosLocales>")], -1) {
			want = append(want, part[1])
		}
		if text := "|" + strings.Join(want, "|") + "||"; !strings.Contains(string(got), text) {
			t.Errorf("%s: %s is not at the end of %s", s.Name, text, got)
		}
		documents = append(documents, report)
	}
	if len(documents) < 2 {
		t.Fatalf("only %d situations with local taxes", len(documents))
	}
	sameOriginal(t, documents...)
}

func samples(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(needs.Schemas(t, "mx-cfdi", "examples"), "*.xml"))
	if err != nil || len(list) < 4 {
		t.Fatalf("%d samples, %v", len(list), err)
	}
	return list
}

func value(t *testing.T, raw []byte, name string) string {
	t.Helper()
	found := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("no %s", name)
	}
	return string(found[1])
}

// keyIn is the key of a voucher's certificate, read by openssl where Go's
// parser is too strict for it.
func keyIn(t *testing.T, raw []byte) *rsa.PublicKey {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(value(t, raw, "Certificado"))
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err := x509.ParseCertificate(der); err == nil {
		return leaf.PublicKey.(*rsa.PublicKey)
	}
	cmd := exec.Command(needs.Tool(t, "openssl", "openssl"), "x509", "-inform", "DER", "-pubkey", "-noout")
	cmd.Stdin = bytes.NewReader(der)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	text := strings.Join(strings.Split(string(out), "\n")[1:], "")
	spki, err := base64.StdEncoding.DecodeString(strings.Split(text, "-----END")[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PublicKey)
}

func verifies(t *testing.T, key *rsa.PublicKey, text []byte, seal string) error {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(seal)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw)
}

func TestOfficialSamplesHaveOurOriginalString(t *testing.T) {
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sameOriginal(t, raw)
			text, err := mx.Original(raw)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifies(t, keyIn(t, raw), text, value(t, raw, "Sello")); err != nil {
				t.Errorf("the sample's seal is not of our original string: %v", err)
			}
			if verifies(t, keyIn(t, raw), append(text, '|'), value(t, raw, "Sello")) == nil {
				t.Error("the seal covers anything")
			}
		})
	}
}

func TestStampOfTheSampleHasOurOriginalString(t *testing.T) {
	path := needs.Schemas(t, "mx-cfdi", "examples", "h_e951128469_ingreso_iva16_stamped.xml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mx.OriginalOfStamp(raw)
	if err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`(?s)<tfd:TimbreFiscalDigital[^>]*/>`).Find(raw)
	alone := filepath.Join(t.TempDir(), "stamp.xml")
	if err := os.WriteFile(alone, bytes.Replace(stamp, []byte(" Version"),
		[]byte(` xmlns:tfd="http://www.sat.gob.mx/TimbreFiscalDigital" Version`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command(needs.Tool(t, "xsltproc", "xsltproc"), "--nonet",
		needs.Schemas(t, "mx-cfdi", "www.sat.gob.mx", "sitio_internet", "cfd", "TimbreFiscalDigital",
			"cadenaoriginal_TFD_1_1.xslt"), alone).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, bytes.TrimSpace(want)) {
		t.Errorf("ours  %s\nSAT's %s", got, want)
	}
	if err := verifies(t, keyIn(t, raw), got, value(t, raw, "SelloSAT")); err != nil {
		t.Errorf("SelloSAT: %v", err)
	}
}

func enumeration(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(needs.Schemas(t, "mx-cfdi", "www.sat.gob.mx", "sitio_internet", "cfd", "catalogos",
		"catCFDI.xsd"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(raw, []byte(`<xs:simpleType name="`+name+`">`))
	if !found {
		t.Fatalf("no %s", name)
	}
	body, _, _ := bytes.Cut(rest, []byte("</xs:simpleType>"))
	var list []string
	for i, part := range strings.Split(string(body), `enumeration value="`) {
		if i > 0 {
			key, _, _ := strings.Cut(part, `"`)
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

func TestEmbeddedCataloguesAreTheOfficialOnes(t *testing.T) {
	var products []string
	for _, key := range mx.Products() {
		products = append(products, fmt.Sprintf("%08d", key))
	}
	if want := enumeration(t, "c_ClaveProdServ"); !slices.Equal(products, want) {
		t.Errorf("%d products, the catalogue has %d", len(products), len(want))
	}
	units := enumeration(t, "c_ClaveUnidad")
	for _, unit := range units {
		if !mx.Units()[unit] {
			t.Errorf("unit %s is missing", unit)
		}
	}
	if len(units) != len(mx.Units()) {
		t.Errorf("%d units, the catalogue has %d", len(mx.Units()), len(units))
	}
	if want := enumeration(t, "c_RegimenFiscal"); !slices.Equal(satwire.Regimes(), want) {
		t.Errorf("regimes %v, the catalogue has %v", satwire.Regimes(), want)
	}
	official := enumeration(t, "c_UsoCFDI")
	for _, use := range satwire.Uses() {
		if !slices.Contains(official, use) {
			t.Errorf("use %s", use)
		}
	}
	if len(satwire.Uses()) != len(official)-2 { // without payroll and payments
		t.Errorf("%d uses of %d", len(satwire.Uses()), len(official))
	}
	for _, form := range enumeration(t, "c_FormaPago") {
		if !mx.Form(form) {
			t.Errorf("form of payment %s is missing", form)
		}
	}
	money := enumeration(t, "c_Moneda")
	for _, code := range []string{"MXN", "USD", "EUR", "JPY", "KWD", "BYN", "SLE", "XCG", "ZWG", "MRU"} {
		if mx.Currency(code) != slices.Contains(money, code) {
			t.Errorf("currency %s", code)
		}
	}
}

// Sales of chance are valid by the official schema, and SAT's sheet makes our
// original strings of them.
func TestRandomSalesAreValidByTheOfficialSchema(t *testing.T) {
	b := open(t)
	reports := packtest.RandomReports(t, pack(), b.channel, func(number string, seed int) country.Draft {
		return draft(number, func(d *country.Draft) { d.Transaction.Items = packtest.RandomItems(seed, "16") })
	})
	sameOriginal(t, reports...)
	(packtest.XSD{Path: needs.Schemas(t, "mx-cfdi", "cfdi40-all.xsd")}).AllConform(t, reports, func(r []byte) []byte {
		return bytes.Replace(r, []byte(" Version=\"4.0\""), []byte(" Version=\"3.3\""), 1)
	})
}

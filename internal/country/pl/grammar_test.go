package pl_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/invopop/gobl/num"
	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/country/pl/wire"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestDoubleTakesTheOfficialExamples(t *testing.T) {
	dir := needs.Schemas(t, "pl-ksef", "examples")
	for _, name := range []string{"invoice-template-fa-3.xml", "invoice-template-fa-3-with-custom-Subject2.xml"} {
		document, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema(t).CheckAll(t, [][]byte{document})[0]; err != nil {
			t.Logf("%s does not pass its own schema: %v", name, err)
			continue
		}
		if flaw := conforms(bytes.TrimPrefix(document, []byte("\xEF\xBB\xBF"))); flaw != "" {
			t.Errorf("%s: %s", name, flaw)
		}
	}
	upo, err := os.ReadFile(needs.Schemas(t, "pl-ksef", "upo", "przyklady", "v4-3", "kontekst-nip",
		"upo-faktura-kontekst-id-nip.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.CheckUPO(upo); err != nil {
		t.Errorf("the official UPO: %v", err)
	}
}

var (
	leafPattern    = regexp.MustCompile(`<(\w+)>([^<]*)</(\w+)>`)
	elementPattern = regexp.MustCompile(`<\w+>[^<]*</\w+>`)
)

// mutated changes one thing in a document at random.
func mutated(rt *rapid.T, document string) string {
	leaves := leafPattern.FindAllStringSubmatchIndex(document, -1)
	at := leaves[rapid.IntRange(0, len(leaves)-1).Draw(rt, "leaf")]
	start, end, from, to := at[0], at[1], at[4], at[5]
	switch rapid.SampledFrom([]string{"remove", "double", "value", "rename", "swap"}).Draw(rt, "change") {
	case "remove":
		return document[:start] + document[end:]
	case "double":
		return document[:end] + document[start:]
	case "value":
		value := rapid.SampledFrom([]string{"", "0", "1", "2", "3", "-1", "1.5", "1.234", "00", "x", " ", "2025-10-07",
			"2025-13-07", "2055-01-01", "PL", "XX", "23",
			"9999999999", "12345678901234567", strings.Repeat("x", 256), strings.Repeat("ż", 257), strings.Repeat("x", 513),
			"FV  1", "oo"}).Draw(rt, "value")
		return document[:from] + value + document[to:]
	case "rename":
		name := document[at[2]:at[3]]
		return document[:start] + strings.ReplaceAll(document[start:end], name, name+"X") + document[end:]
	}
	next := elementPattern.FindStringIndex(document[end:])
	if next == nil || next[0] != 0 {
		return document[:start] + document[end:]
	}
	return document[:start] + document[end:end+next[1]] + document[start:end] + document[end+next[1]:]
}

// TestDoubleAgreesWithTheOfficialSchema compares the double's own reading of
// FA(3) with libxml2 and the Ministry's schema, on documents with one change.
func TestDoubleAgreesWithTheOfficialSchema(t *testing.T) {
	xsd, ch := schema(t), connect(t)
	var documents []string
	for _, c := range cases() {
		f, err := ch.Prepare(c.Draft)
		if err != nil {
			t.Fatal(err)
		}
		if flaw := conforms(f.Report); flaw != "" {
			t.Fatalf("%s: %s", c.Name, flaw)
		}
		documents = append(documents, string(f.Report))
	}
	var changed [][]byte
	rapid.Check(t, func(rt *rapid.T) {
		changed = append(changed, []byte(mutated(rt, rapid.SampledFrom(documents).Draw(rt, "document"))))
	})
	refused := 0
	for i, err := range xsd.CheckAll(t, changed) {
		flaw := conforms(changed[i])
		if (flaw == "") != (err == nil) {
			t.Errorf("the double says %q, the schema %v\n%s", flaw, err, changed[i])
		}
		if flaw != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: the comparison proves nothing")
	}
}

func TestWatchSeesABrokenCall(t *testing.T) {
	pack := paired()
	described := watch(t, &pack)
	for body, valid := range map[string]bool{
		`{"subjectType":"Subject1","dateRange":{"dateType":"Issue","from":"2025-10-07T00:00:00Z"}}`: true,
		`{"subjectType":"Nobody","dateRange":{"dateType":"Issue","from":"2025-10-07T00:00:00Z"}}`:   false,
		`{"subjectType":"Subject1"}`: false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v2/invoices/query/metadata?pageSize=10", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if err := described.Request(r); (err == nil) != valid {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestSumsOfADocumentAreThoseOfTheTransaction holds for any lines: what the
// columns say adds up to the totals, in credits with the sign turned. At 4 % of a
// price with tax both net and tax can end in half a grosz: then the tax, which the
// law takes directly, is a grosz more than in the totals.
func TestSumsOfADocumentAreThoseOfTheTransaction(t *testing.T) {
	ch := connect(t)
	rapid.Check(t, func(rt *rapid.T) {
		var items []transaction.Item
		for range rapid.IntRange(1, 8).Draw(rt, "lines") {
			mode := rapid.SampledFrom([]string{transaction.Included, transaction.Added}).Draw(rt, "mode")
			tax := vat(rapid.SampledFrom([]string{"23", "8", "5", "4", "0"}).Draw(rt, "rate"), mode)
			if tax.Rate.IsZero() {
				tax.Code = rapid.SampledFrom([]string{"", "0KR", "0WDT", "0EX", "ZW", "113", "NP1", "NP2", "OO"}).Draw(rt, "code")
			}
			quantity := num.MakeAmount(rapid.Int64Range(1, 5_000_000).Draw(rt, "quantity"),
				uint32(rapid.IntRange(0, 6).Draw(rt, "decimals")))
			items = append(items, item("x", quantity, rapid.Int64Range(-100_000, 1_000_000).Draw(rt, "price"), tax))
		}
		d := draft("FV/1", polishBuyer(), items...)
		sign := int64(1)
		if rapid.Bool().Draw(rt, "credit") {
			d, sign = correct(transaction.Credit, d, d), -1
		}
		f, err := ch.Prepare(d)
		if err != nil {
			rt.Fatal(err)
		}
		if flaw := conforms(f.Report); flaw != "" {
			rt.Fatal(flaw)
		}
		var net, tax, lineTax int64
		for _, m := range leafPattern.FindAllStringSubmatch(string(f.Report), -1) {
			amount := func() int64 {
				a, err := num.AmountFromString(m[2])
				if err != nil {
					rt.Fatal(err)
				}
				return a.Rescale(2).Value()
			}
			switch {
			case strings.HasPrefix(m[1], "P_13_"):
				net += amount()
			case strings.HasPrefix(m[1], "P_14_"):
				tax += amount()
			case m[1] == "P_11Vat":
				lineTax += amount()
			case m[1] == "P_15" && amount() != sign*d.Totals.Gross:
				rt.Fatalf("P_15 is %s, the total %d", m[2], d.Totals.Gross)
			}
		}
		var halves int64
		for i := range d.Transaction.Items {
			entry := d.Transaction.Items[i].Taxes[0]
			if gross := d.Totals.Lines[i].Gross; entry.Rate.String() == "4" && entry.Mode != transaction.Added &&
				gross%26 != 0 && gross%13 == 0 {
				halves += gross / max(gross, -gross)
			}
		}
		if net != sign*(d.Totals.Net-halves) || tax != sign*(d.Totals.Tax+halves) || lineTax != tax {
			rt.Fatalf("net %d, tax %d and %d by lines; totals %+v\n%s", net, tax, lineTax, d.Totals, f.Report)
		}
	})
}

func FuzzAnyTextMakesAValidDocument(f *testing.F) {
	f.Add("Kowalski & Synowie", "ul. <b>Długa</b> 1", "<p>note</p>]]>", "FV/1")
	f.Add("\x00\x01", "\uFDD0\uFFFE", "\r\n\t", " x  y ")
	f.Add(strings.Repeat("ż", 2000), "\xff\xfe", "<script>", "")
	ch := connect(f)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, name, street, note, number string) {
		d := invoice("FV/1")
		d.Transaction.Customer.LegalName, d.Transaction.Customer.Address.AddressLine1 = name, street
		d.Transaction.Note, d.Transaction.Items[0].Name, d.Transaction.Number = note, "x"+name, number
		d.Transaction.Customer.EntityNumber, d.Transaction.Items[0].Description = street, note
		filing, err := ch.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		if flaw := conforms(filing.Report); flaw != "" {
			t.Errorf("%s\n%s", flaw, filing.Report)
		}
		dec := xml.NewDecoder(bytes.NewReader(filing.Report))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzAnswersOfKSeF(f *testing.F) {
	f.Add(400, "application/problem+json", []byte(`{"title":"x","errors":[{"code":1,"description":"y","details":["z"]}]}`))
	f.Add(429, "application/json", []byte(`{"status":{"code":429,"description":"x","details":[]}}`))
	f.Add(400, "application/json", []byte(`{"exception":{"exceptionDetailList":[{"exceptionCode":21405}]}}`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		no, ok := wire.ReadRefusal(country.Reply{Status: status,
			Header: http.Header{"Content-Type": {media}, "Retry-After": {string(body)}}, Body: body})
		if ok && (status < 400 || status > 499) {
			t.Errorf("status %d is read as a refusal", status)
		}
		if ok && (no.Wait < 0 || no.Wait > 24*time.Hour) {
			t.Errorf("a wait of %s", no.Wait)
		}
		if wire.CheckUPO(body) == nil && !bytes.Contains(body, []byte("Potwierdzenie")) {
			t.Error("a UPO without its root")
		}
	})
}

func BenchmarkPrepare(b *testing.B) {
	ch, d := connect(b), invoice("FV/1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ch.Prepare(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPrepare1000Lines(b *testing.B) {
	items := make([]transaction.Item, 1000)
	for i := range items {
		items[i] = item("Herbata czarna liściasta", num.MakeAmount(3, 0), 7570, vat("23", transaction.Included))
	}
	ch, d := connect(b), draft("FV/1", polishBuyer(), items...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ch.Prepare(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSecondCode(b *testing.B) {
	sum, id := sha256.Sum256([]byte("x")), opened(b)
	for b.Loop() {
		if _, err := wire.CodeTwo(qrTest, supplierNIP, sum, id); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSend files through the whole protocol: encrypted, judged, confirmed.
func BenchmarkSend(b *testing.B) {
	pack := paired()
	simulators, err := country.NewSimulators(b.TempDir(), pack)
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(simulators)
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack}, Simulators: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		atlas.Close()
		server.Close()
		if err := simulators.Close(); err != nil {
			b.Error(err)
		}
	})
	ch, err := atlas.Channel("PL", false)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	b.SetParallelism(4)
	b.RunParallel(func(run *testing.PB) {
		for run.Next() {
			f, err := ch.Prepare(invoice(fmt.Sprintf("FV/%d", next.Add(1))))
			if err != nil {
				b.Error(err)
				return
			}
			r, err := ch.Send(b.Context(), []country.Filing{f}, token())
			if err != nil || r[0].Outcome != country.Accepted {
				b.Errorf("%+v %v", r, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "invoices/s")
}

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/internal/client"
)

// sale is a transaction as a client writes it.
func sale(supplier, id, number string) string {
	return `{"country_code":"XX","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"` +
		number + `","transaction_id":"` + id +
		`","supplier":{"id":"` + supplier +
		`"},"items":[{"number":1,"name":"Tea","quantity":3,"unit_price":7570,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}`
}

// flagOf is the value of a flag in a command line.
func flagOf(args []string, name string) string {
	for i, a := range args {
		if a == name {
			return args[i+1]
		}
	}
	return ""
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// registered counts what the authority holds, by number.
func registered(t *testing.T, sims string) map[string]int {
	t.Helper()
	var book struct {
		Registrations []struct{ Number string }
	}
	get(t, sims+"/_control/xx/registrations", &book)
	times := map[string]int{}
	for _, r := range book.Registrations {
		times[r.Number]++
	}
	return times
}

func TestSubmitReadsEveryFormAndReportsEveryResult(t *testing.T) {
	t.Parallel()
	demo := commonDemo(t)
	url, sims, supplier := demo.url, demo.sims, demo.supplier
	dir := t.TempDir()
	folder := filepath.Join(dir, "sales")
	if err := os.MkdirAll(filepath.Join(folder, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "a.json"),
		"["+sale(supplier, "a-1", "A-1")+",\n"+sale(supplier, "a-2", "A-2-REJECT")+"]")
	write(t, filepath.Join(folder, "deep", "b.jsonl"),
		sale(supplier, "b-1", "B-1")+"\n\n"+sale(supplier, "b-2", "B-2")+"\n"+sale(supplier, "b-1", "B-1")+"\n")
	template := strings.ReplaceAll(string(client.CSVTemplate()), "SUPPLIER_ID", supplier)
	write(t, filepath.Join(folder, "c.csv"), "\xef\xbb\xbf"+template)
	write(t, filepath.Join(folder, "readme.txt"), "not a transaction")
	write(t, filepath.Join(folder, ".hidden.json"), "not a transaction")
	bad := write(t, filepath.Join(dir, "bad.json"), `{"transaction_id":"=bad","country_code":"XX"}`)

	report := filepath.Join(dir, "report.csv")
	code, out, errs := call(t, "submit", folder, bad, "--url", url, "--api-key", testKey, "--wait", "--report", report)
	if code != exitFailed {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range rows[1:] {
		got[r[1]] = r[3]
	}
	want := map[string]string{"a-1": "SUCCESS", "a-2": "FAILURE", "b-1": "SUCCESS", "b-2": "SUCCESS",
		"order-1001": "SUCCESS", "'=bad": "REFUSED"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("report %v, want %v\n%s", got, want, text)
	}
	for _, says := range []string{"authority_rejected", "field_required", "227.10 EUR",
		"6 transactions: 4 SUCCESS, 1 FAILURE, 1 REFUSED"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
	held := registered(t, sims)
	for number, times := range map[string]int{"A-1": 1, "A-2": 0, "A-2-REJECT": 0, "B-1": 1, "B-2": 1, "INV-1001": 1} {
		if held[number] != times {
			t.Errorf("%s is registered %d times", number, held[number])
		}
	}

	// What failed is mended under another number; nothing else is sent again.
	write(t, filepath.Join(folder, "a.json"), "["+sale(supplier, "a-1", "A-1")+",\n"+sale(supplier, "a-2", "A-2")+"]")
	code, out, errs = call(t, "submit", folder, "--url", url, "--api-key", testKey, "--wait", "--json")
	if code != 0 || !strings.Contains(errs, "4 of 5 already accepted") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	var listed []client.Row
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != 5 {
		t.Fatalf("%v: %s", err, out)
	}
	held = registered(t, sims)
	for _, number := range []string{"A-1", "A-2", "B-1", "B-2", "INV-1001"} {
		if held[number] != 1 {
			t.Errorf("%s is registered %d times", number, held[number])
		}
	}
	submitCorrections(t, url, "a-1")
}

// submitCorrections: an operation has an address and a state file of its own.
func submitCorrections(t *testing.T, url, original string) {
	t.Helper()
	dir := t.TempDir()
	credit := write(t, filepath.Join(dir, "credit.csv"),
		"transaction_id;country_code;transaction_date;transaction_number;reference_transaction_id;note\ncred-1;XX;2026-04-01T10:00:00Z;C-1;"+original+";sent back\n")
	if code, out, errs := call(t, "submit", credit, "--operation", "credit", "--url", url, "--api-key", testKey,
		"--wait"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	payment := write(t, filepath.Join(dir, "payment.json"),
		`[{"country_code":"XX","transaction_id":"pay-1","transaction_date":"2026-04-02T10:00:00Z","reference_transaction_id":"`+original+`","payments":[{"type":"CASH","amount":1}]}]`)
	if code, out, errs := call(t, "submit", payment, "--operation", "payment", "--url", url, "--api-key",
		testKey); code == 0 || !strings.Contains(out+errs, "has no operation PAYMENT") {
		t.Errorf("a payment where there is no document for it: exit code %d\n%s%s", code, out, errs)
	}
	code, _, errs := call(t, "submit", credit, "--url", url, "--api-key", testKey)
	if code != exitUsage || !strings.Contains(errs, "--operation credit") {
		t.Errorf("a state file of another operation: exit code %d\n%s", code, errs)
	}
}

// manySales is a file of sales kill-0000, kill-0001 and so on.
func manySales(t *testing.T, supplier string, n int) string {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		id := fmt.Sprintf("kill-%04d", i)
		lines.WriteString(sale(supplier, id, strings.ToUpper(id)) + "\n")
	}
	return write(t, filepath.Join(t.TempDir(), "sales.jsonl"), lines.String())
}

func transactionID(body []byte) string {
	var sale struct {
		ID string `json:"transaction_id"`
	}
	_ = json.Unmarshal(body, &sale) // the service says what is wrong with it
	return sale.ID
}

// TestSubmitKilledInTheMiddleForgetsNothingAndFilesNothingTwice kills the
// process while it submits, loses an answer besides, and runs it again.
func TestSubmitKilledInTheMiddleForgetsNothingAndFilesNothingTwice(t *testing.T) {
	t.Parallel()
	const sales, killAt = 120, 50
	demo := commonDemo(t)
	target, err := url.Parse(demo.url)
	if err != nil {
		t.Fatal(err)
	}
	var posts atomic.Int64
	var posted sync.Map // transaction ids since the kill
	reached := make(chan struct{})
	hold := make(chan struct{})
	forward := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			switch n := posts.Add(1); {
			case n == killAt:
				// Accepted by the service, but the answer never arrives.
				lost := httptest.NewRecorder()
				forward.ServeHTTP(lost, r)
				close(reached)
				<-hold
				return
			case n > killAt:
				select {
				case <-hold: // the second run
				case <-r.Context().Done():
					return
				}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // of the process that was killed
				}
				posted.Store(transactionID(body), true)
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
		}
		forward.ServeHTTP(w, r)
	}))
	defer front.Close()
	file := manySales(t, demo.supplier, sales)
	args := []string{"submit", file, "--url", front.URL, "--api-key", testKey, "--wait", "--concurrency", "4"}
	first := spawn(t, args...)
	<-reached
	first.kill()
	close(hold)

	text, err := os.ReadFile(file + ".submitted")
	if err != nil {
		t.Fatal(err)
	}
	recorded := bytes.Count(text, []byte("\n")) - 1
	if recorded < 1 || recorded >= killAt {
		t.Fatalf("%d entries were recorded before the kill", recorded)
	}
	code, out, errs := call(t, args...)
	if code != 0 || !strings.Contains(out, fmt.Sprintf("%d transactions: %d SUCCESS", sales, sales)) {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for i := range sales {
		id := fmt.Sprintf("kill-%04d", i)
		if _, again := posted.Load(id); again == bytes.Contains(text, []byte(`"`+id+`"`)) {
			t.Errorf("%s: submitted by the second run %v", id, again)
		}
	}
	held := registered(t, demo.sims)
	for i := range sales {
		if n := held[fmt.Sprintf("KILL-%04d", i)]; n != 1 {
			t.Errorf("KILL-%04d is registered %d times", i, n)
		}
	}
	before := posts.Load()
	if code, out, errs = call(t, args...); code != 0 || posts.Load() != before {
		t.Errorf("a third run: exit code %d, %d requests\n%s%s", code, posts.Load()-before, out, errs)
	}
}

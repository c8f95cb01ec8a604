package main

import (
	"bytes"
	"context"
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
	"time"

	"pgregory.net/rapid"
)

// sale is a transaction as a client writes it.
func sale(supplier, id, number string) string {
	return `{"country_code":"XX","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"` + number + `","transaction_id":"` + id +
		`","supplier":{"id":"` + supplier + `"},"items":[{"number":1,"name":"Tea","quantity":3,"unit_price":7570,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}`
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

// demo starts the program with simulated authorities.
func demo(t *testing.T) (url, sims, supplier string) {
	t.Helper()
	args := demoArgs(t, t.TempDir(), "--authority-retry-base", "50ms")
	url = start(t, args...).waitReady()
	var company struct{ ID string }
	get(t, url+"/onboarding/v2/companies/demo-XX?external-id=true", &company)
	return url, "http://" + flagOf(args, "--simulators"), company.ID
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
	url, sims, supplier := demo(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "sales")
	if err := os.MkdirAll(filepath.Join(folder, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "a.json"), "["+sale(supplier, "a-1", "A-1")+",\n"+sale(supplier, "a-2", "A-2-REJECT")+"]")
	write(t, filepath.Join(folder, "deep", "b.jsonl"), sale(supplier, "b-1", "B-1")+"\n\n"+sale(supplier, "b-2", "B-2")+"\n"+sale(supplier, "b-1", "B-1")+"\n")
	template := strings.ReplaceAll(string(csvTemplate()), "SUPPLIER_ID", supplier)
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
	want := map[string]string{"a-1": "SUCCESS", "a-2": "FAILURE", "b-1": "SUCCESS", "b-2": "SUCCESS", "order-1001": "SUCCESS", "'=bad": "REFUSED"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("report %v, want %v\n%s", got, want, text)
	}
	for _, says := range []string{"authority_rejected", "field_required", "22710 EUR", "6 transactions: 4 SUCCESS, 1 FAILURE, 1 REFUSED"} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
	for number, times := range registered(t, sims) {
		if times != 1 || strings.HasSuffix(number, "-REJECT") {
			t.Errorf("%s is registered %d times", number, times)
		}
	}

	// What failed is mended under another number; nothing else is sent again.
	write(t, filepath.Join(folder, "a.json"), "["+sale(supplier, "a-1", "A-1")+",\n"+sale(supplier, "a-2", "A-2")+"]")
	code, out, errs = call(t, "submit", folder, "--url", url, "--api-key", testKey, "--wait", "--json")
	if code != 0 || !strings.Contains(errs, "4 of 5 were accepted before") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	var listed []reportRow
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != 5 {
		t.Fatalf("%v: %s", err, out)
	}
	if n := registered(t, sims); n["A-2"] != 1 || len(n) != 5 {
		t.Errorf("registered %v", n)
	}
	submitCorrections(t, url, "a-1")
}

// submitCorrections: an operation has an address and a state file of its own.
func submitCorrections(t *testing.T, url, original string) {
	t.Helper()
	dir := t.TempDir()
	credit := write(t, filepath.Join(dir, "credit.csv"),
		"transaction_id;country_code;transaction_date;transaction_number;reference_transaction_id;note\ncred-1;XX;2026-04-01T10:00:00Z;C-1;"+original+";sent back\n")
	if code, out, errs := call(t, "submit", credit, "--operation", "credit", "--url", url, "--api-key", testKey, "--wait"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
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

// TestSubmitKilledInTheMiddleForgetsNothingAndFilesNothingTwice kills the
// process while it submits, loses an answer besides, and runs it again.
func TestSubmitKilledInTheMiddleForgetsNothingAndFilesNothingTwice(t *testing.T) {
	const sales, killAt = 120, 50
	base, sims, supplier := demo(t)
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var posts atomic.Int64
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
			}
		}
		forward.ServeHTTP(w, r)
	}))
	defer front.Close()
	file := manySales(t, supplier, sales)
	args := []string{"submit", file, "--url", front.URL, "--api-key", testKey, "--wait", "--concurrency", "4"}
	first := start(t, args...)
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
	before := posts.Load()
	code, out, errs := call(t, args...)
	if code != 0 || !strings.Contains(out, fmt.Sprintf("%d transactions: %d SUCCESS", sales, sales)) {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if sent := posts.Load() - before; sent != int64(sales-recorded) {
		t.Errorf("the second run submitted %d, %d were open", sent, sales-recorded)
	}
	held := registered(t, sims)
	for i := range sales {
		if n := held[fmt.Sprintf("KILL-%04d", i)]; n != 1 {
			t.Errorf("KILL-%04d is registered %d times", i, n)
		}
	}
	before = posts.Load()
	if code, out, errs = call(t, args...); code != 0 || posts.Load() != before {
		t.Errorf("a third run: exit code %d, %d requests\n%s%s", code, posts.Load()-before, out, errs)
	}
}

// scripted answers submits by a script and counts them.
type scripted struct {
	mu    sync.Mutex
	times []time.Time
	do    func(n int, w http.ResponseWriter)
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) //nolint:errcheck // only to be read
	s.mu.Lock()
	s.times = append(s.times, time.Now())
	n := len(s.times)
	s.mu.Unlock()
	s.do(n, w)
}

func accept(w http.ResponseWriter, n int) {
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"operation_id":"op-%d"}`, n)
}

func TestSubmitComesBackAfterBusyAndLostAnswers(t *testing.T) {
	s := &scripted{do: func(n int, w http.ResponseWriter) {
		switch n {
		case 1:
			panic(http.ErrAbortHandler) // the connection ends without an answer
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			accept(w, n)
		}
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale("s", "one", "1"))
	code, out, errs := call(t, "submit", file, "--url", srv.URL, "--api-key", testKey)
	if code != 0 || len(s.times) != 4 || !strings.Contains(out, "1 ACCEPTED") {
		t.Fatalf("exit code %d after %d requests\n%s%s", code, len(s.times), out, errs)
	}
	if wait := s.times[2].Sub(s.times[1]); wait < time.Second {
		t.Errorf("came back %s after Retry-After: 1", wait)
	}
}

func TestSubmitGivesUpWhenTheTimeForRetriesIsOver(t *testing.T) {
	s := &scripted{do: func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale("s", "one", "1"))
	code, out, errs := call(t, "submit", file, "--url", srv.URL, "--api-key", testKey, "--retry-for", "0s")
	if code != exitFailed || len(s.times) != 1 || !strings.Contains(out, "NOT_SUBMITTED") || !strings.Contains(out, "status 503") {
		t.Fatalf("exit code %d after %d requests\n%s%s", code, len(s.times), out, errs)
	}
}

// TestSubmitDoesNotSitOutAPauseLongerThanItsPatience: one entry hears of it,
// the others need not ask.
func TestSubmitDoesNotSitOutAPauseLongerThanItsPatience(t *testing.T) {
	s := &scripted{do: func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := manySales(t, "s", 20)
	code, out, errs := call(t, "submit", file, "--url", srv.URL, "--api-key", testKey, "--concurrency", "1")
	if code != exitFailed || len(s.times) != 1 || !strings.Contains(out, "run again later") || !strings.Contains(out, "20 NOT_SUBMITTED") {
		t.Errorf("exit code %d after %d requests\n%s%s", code, len(s.times), out, errs)
	}
}

func TestSubmitEndsAtOnceWhenNoEntryCouldSucceed(t *testing.T) {
	for status, says := range map[int]string{401: "--api-key", 403: "--api-key", 404: "--url", 405: "--url", 307: "--url"} {
		s := &scripted{do: func(_ int, w http.ResponseWriter) { w.WriteHeader(status) }}
		srv := httptest.NewServer(s)
		var lines strings.Builder
		for i := range 100 {
			lines.WriteString(sale("s", fmt.Sprint("many-", i), "1") + "\n")
		}
		file := write(t, filepath.Join(t.TempDir(), "many.jsonl"), lines.String())
		code, _, errs := call(t, "submit", file, "--url", srv.URL, "--api-key", testKey, "--concurrency", "2")
		if code != exitFailed || len(s.times) > 4 || !strings.Contains(errs, says) {
			t.Errorf("status %d: exit code %d after %d requests\n%s", status, code, len(s.times), errs)
		}
		srv.Close()
	}
}

func TestSubmitInterruptedSaysHowToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &scripted{}
	s.do = func(n int, w http.ResponseWriter) {
		if n == 10 {
			cancel() // as Ctrl-C does
		}
		accept(w, n)
	}
	srv := httptest.NewServer(s)
	defer srv.Close()
	var lines strings.Builder
	for i := range 200 {
		lines.WriteString(sale("s", fmt.Sprint("int-", i), "1") + "\n")
	}
	file := write(t, filepath.Join(t.TempDir(), "many.jsonl"), lines.String())
	var out, errs bytes.Buffer
	code := run(ctx, []string{"submit", file, "--url", srv.URL, "--api-key", testKey, "--concurrency", "2"}, streams{&out, &errs, strings.NewReader("")})
	if code != exitFailed || !strings.Contains(errs.String(), "run the same command again") {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	// Requests that were under way had their answers and are recorded.
	text, err := os.ReadFile(file + ".submitted")
	if err != nil {
		t.Fatal(err)
	}
	if recorded := bytes.Count(text, []byte("op-")); recorded != len(s.times) || recorded >= 200 {
		t.Errorf("%d recorded, %d answered", recorded, len(s.times))
	}
}

func TestSubmitRefusesInputBeforeSendingAnything(t *testing.T) {
	s := &scripted{do: func(n int, w http.ResponseWriter) { accept(w, n) }}
	srv := httptest.NewServer(s)
	defer srv.Close()
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "good.json"), sale("s", "good", "1"))
	for name, c := range map[string]struct{ file, says string }{
		"not JSON":       {write(t, filepath.Join(dir, "1.json"), `{"transaction_id":`), "is not JSON"},
		"no id":          {write(t, filepath.Join(dir, "2.json"), `[{"country_code":"XX"}]`), "2.json#1 has no transaction_id"},
		"a text":         {write(t, filepath.Join(dir, "3.jsonl"), "{\"transaction_id\":\"x\"}\n\"x\"\n"), "3.jsonl:2 is not a transaction"},
		"same id":        {write(t, filepath.Join(dir, "4.json"), sale("s", "good", "2")), "other content"},
		"unknown column": {write(t, filepath.Join(dir, "5.csv"), "transaction_id,colour\nx,red\n"), `"colour" is not known`},
		"no id column":   {write(t, filepath.Join(dir, "6.csv"), "country_code\nXX\n"), "no column transaction_id"},
		"contradiction":  {write(t, filepath.Join(dir, "7.csv"), "transaction_id,country_code,item_name\nx,XX,a\nx,YY,b\n"), "7.csv:3 column country_code"},
		"not a number":   {write(t, filepath.Join(dir, "8.csv"), "transaction_id,item_quantity\nx,\"1,5\"\n"), `"1,5" is not a number`},
		"short row":      {write(t, filepath.Join(dir, "9.csv"), "transaction_id,item_name\nx\n"), "has 1 cells, the header has 2"},
		"twice a column": {write(t, filepath.Join(dir, "10.csv"), "transaction_id,note,note\nx,a,b\n"), "there twice"},
		"empty":          {write(t, filepath.Join(dir, "11.csv"), ""), "is empty"},
		"other kind":     {write(t, filepath.Join(dir, "12.txt"), "x"), ".jsonl"},
		"missing":        {filepath.Join(dir, "none.json"), "no such file"},
		"bad report":     {good, "--report"},
		"concurrency":    {good, "--concurrency"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"submit", good, c.file, "--url", srv.URL, "--api-key", testKey}
			switch name {
			case "bad report":
				args = append(args, "--report", "out.xls")
			case "concurrency":
				args = append(args, "--concurrency", fmt.Sprint(concurrencyMax+1))
			}
			code, out, errs := call(t, args...)
			if code != exitUsage || !strings.Contains(errs, c.says) || len(s.times) > 0 {
				t.Errorf("exit code %d, %d requests, want %q in\n%s%s", code, len(s.times), c.says, errs, out)
			}
		})
	}
	if code, _, errs := call(t, "submit", good, "--url", srv.URL, "--api-key", testKey, "--concurrency", fmt.Sprint(concurrencyMax)); code != 0 {
		t.Errorf("at the limit: exit code %d\n%s", code, errs)
	}
}

func TestRowsOfOneTransactionBecomeItsItems(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "x.csv"), `transaction_id;supplier_id;customer_legal_name;customer_address_city;item_name;item_quantity;item_unit_price;tax_rate;tax_regime;tax_2_rate;tax_2_regime;payment_type;payment_amount
t-1;s-9;Ana; Madrid ;Tea;1.50;7570;21;IVA;15;RET;CARD;100
t-2;s-9;;;Cup;1;5;;;;;;

t-1;;;;Pot;2;-300;21;IVA;;;CASH;50
`)
	entries, err := readEntries([]string{file})
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v %v", entries, err)
	}
	want := `{"customer":{"address":{"city":"Madrid"},"legal_name":"Ana"},"items":[{"name":"Tea","number":1,"quantity":1.50,"tax_breakdowns":[{"rate":21,"regime":"IVA"},{"rate":15,"regime":"RET"}],"unit_price":7570},` +
		`{"name":"Pot","number":2,"quantity":2,"tax_breakdowns":[{"rate":21,"regime":"IVA"}],"unit_price":-300}],"payments":[{"amount":100,"type":"CARD"},{"amount":50,"type":"CASH"}],"supplier":{"id":"s-9"},"transaction_id":"t-1"}`
	if string(entries[0].body) != want {
		t.Errorf("body\n%s\nwant\n%s", entries[0].body, want)
	}
}

func TestStateFileSurvivesATornLineAndRefusesDamage(t *testing.T) {
	head := stateHead{Version: stateVersion, URL: "https://a", Operation: "transaction"}
	path := filepath.Join(t.TempDir(), "state")
	s, err := openState(path, head)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := s.add(stateRecord{ID: fmt.Sprint("t-", i), Digest: "d", OperationID: "o"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := openState(path, head); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run on the same file: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if cut > 200 && cut < len(whole)-200 {
			continue // lines are alike: the first and the last few will do
		}
		write(t, path, string(whole[:cut]))
		again, err := openState(path, head)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if lines := bytes.Count(whole[:cut], []byte("\n")); len(again.known) != max(0, lines-1) {
			t.Errorf("cut at %d: %d records known, %d lines whole", cut, len(again.known), lines)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, strings.Replace(string(whole), `"transaction_id":"t-`, `"transaction_id":"`+"\x00", 1))
	if _, err := openState(path, head); err == nil {
		t.Error("a damaged line in the middle was believed")
	}
	write(t, path, string(whole))
	if _, err := openState(path, stateHead{Version: stateVersion, URL: "https://b", Operation: "transaction"}); err == nil {
		t.Error("a state file of another service was believed")
	}
}

func TestNoCellOfAReportIsAFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[=+\-@\t\r a-z"',;]{0,12}`)
		total := rapid.Int64().Draw(t, "total")
		rows := []reportRow{{Source: text.Draw(t, "source"), TransactionID: text.Draw(t, "id"), Number: text.Draw(t, "number"), AuthorityID: text.Draw(t, "authority"),
			UniqueNumber: text.Draw(t, "unique"), Message: text.Draw(t, "message"), Total: &total, Status: rowSuccess}}
		var out bytes.Buffer
		if err := writeCSVReport(&out, rows); err != nil {
			t.Fatal(err)
		}
		read := csv.NewReader(&out)
		all, err := read.ReadAll()
		if err != nil || len(all) != 2 {
			t.Fatalf("%v %v", all, err)
		}
		for i, cell := range all[1] {
			if all[0][i] != "total_amount" && cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				t.Fatalf("column %s begins like a formula: %q", all[0][i], cell)
			}
		}
	})
}

func FuzzEntries(f *testing.F) {
	f.Add(".json", []byte(`[{"transaction_id":"x"}]`))
	f.Add(".jsonl", []byte("{\"transaction_id\":\"x\"}\n"))
	f.Add(".csv", csvTemplate())
	f.Add(".csv", []byte("transaction_id;item_quantity\nx;1\n\"\n"))
	f.Fuzz(func(t *testing.T, extension string, text []byte) {
		if extension != ".json" && extension != ".jsonl" {
			extension = ".csv"
		}
		in := &input{byID: map[string]int{}}
		if err := readerOf("x"+extension)(in, "x", bytes.NewReader(text)); err != nil {
			return
		}
		for _, e := range in.entries {
			if e.id == "" || !json.Valid(e.body) {
				t.Fatalf("%q became %s", text, e.body)
			}
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte("{\"tributary_submit\":1,\"url\":\"u\",\"operation\":\"transaction\"}\n{\"transaction_id\":\"x\",\"digest\":\"d\",\"operation_id\":\"o\"}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &stateFile{known: map[string]stateRecord{}}
		if err := s.parse("x", text, stateHead{Version: stateVersion, URL: "u", Operation: "transaction"}); err != nil {
			return
		}
		for id, r := range s.known {
			if id == "" || r.OperationID == "" {
				t.Fatalf("%q was believed", text)
			}
		}
	})
}

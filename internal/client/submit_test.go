package client_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/client"
	"tributary/internal/fault"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const testKey = "trb_test_clitest_0123456789012345678901234567890123456789012"

// sale is a transaction as a client writes it.
func sale(supplier, id, number string) string {
	return `{"country_code":"XX","transaction_number":"` + number + `","transaction_id":"` + id + `","supplier":{"id":"` +
		supplier + `"}}`
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manySales is a file of sales many-0, many-1 and so on.
func manySales(t *testing.T, n int) string {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		lines.WriteString(sale("s", fmt.Sprint("many-", i), "1") + "\n")
	}
	return write(t, filepath.Join(t.TempDir(), "many.jsonl"), lines.String())
}

// submit runs a submission; what it leaves open has the command line's defaults.
func submit(t *testing.T, s client.Submission) (out, errs string, err error) {
	t.Helper()
	s.APIKey, s.Operation = testKey, "transaction"
	if s.Concurrency == 0 {
		s.Concurrency = 8
	}
	if s.RetryFor == 0 {
		s.RetryFor = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	err = s.Run(ctx, client.Streams{Out: &stdout, Err: &stderr})
	return stdout.String(), stderr.String(), err
}

// scripted answers submits by a script and counts them.
type scripted struct {
	mu    sync.Mutex
	times []time.Time
	do    func(n int, w http.ResponseWriter)
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only to be read
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
	t.Parallel()
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
	out, errs, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL})
	if err != nil || len(s.times) != 4 || !strings.Contains(out, "1 ACCEPTED") {
		t.Fatalf("%v after %d requests\n%s%s", err, len(s.times), out, errs)
	}
	if wait := s.times[2].Sub(s.times[1]); wait < time.Second {
		t.Errorf("came back %s after Retry-After: 1", wait)
	}
}

func TestSubmitGivesUpWhenTheTimeForRetriesIsOver(t *testing.T) {
	t.Parallel()
	s := &scripted{do: func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := write(t, filepath.Join(t.TempDir(), "one.json"), sale("s", "one", "1"))
	out, errs, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL, RetryFor: time.Nanosecond})
	if err == nil || len(s.times) != 1 || !strings.Contains(out, "NOT_SUBMITTED") || !strings.Contains(out, "status 503") {
		t.Fatalf("%v after %d requests\n%s%s", err, len(s.times), out, errs)
	}
}

// TestSubmitDoesNotSitOutAPauseLongerThanItsPatience: one entry hears of it,
// the others need not ask.
func TestSubmitDoesNotSitOutAPauseLongerThanItsPatience(t *testing.T) {
	t.Parallel()
	s := &scripted{do: func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := manySales(t, 20)
	out, errs, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL, Concurrency: 1})
	if err == nil || len(s.times) != 1 || !strings.Contains(out, "run again later") ||
		!strings.Contains(out, "20 NOT_SUBMITTED") {
		t.Errorf("%v after %d requests\n%s%s", err, len(s.times), out, errs)
	}
}

func TestSubmitEndsAtOnceWhenNoEntryCouldSucceed(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{401: "--api-key", 403: "--api-key", 404: "--url", 405: "--url",
		307: "--url"} {
		s := &scripted{do: func(_ int, w http.ResponseWriter) { w.WriteHeader(status) }}
		srv := httptest.NewServer(s)
		file := manySales(t, 100)
		_, _, err := submit(t, client.Submission{Paths: []string{file}, URL: srv.URL, Concurrency: 2})
		if err == nil || len(s.times) > 4 || !strings.Contains(err.Error(), says) {
			t.Errorf("status %d: %v after %d requests", status, err, len(s.times))
		}
		srv.Close()
	}
}

func TestSubmitInterruptedSaysHowToGoOn(t *testing.T) {
	t.Parallel()
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
	file := manySales(t, 200)
	var out, errs bytes.Buffer
	err := client.Submission{Paths: []string{file}, URL: srv.URL, APIKey: testKey, Operation: "transaction",
		Concurrency: 2, RetryFor: time.Minute}.Run(ctx, client.Streams{Out: &out, Err: &errs})
	if err == nil || !strings.Contains(err.Error(), "run the same command again") {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
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
	t.Parallel()
	s := &scripted{do: func(n int, w http.ResponseWriter) { accept(w, n) }}
	srv := httptest.NewServer(s)
	defer srv.Close()
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "good.json"), sale("s", "good", "1"))
	for name, c := range map[string]struct{ file, says string }{
		"not JSON": {write(t, filepath.Join(dir, "1.json"), `{"transaction_id":`), "is not JSON"},
		"no id": {write(t, filepath.Join(dir, "2.json"), `[{"country_code":"XX"}]`),
			"2.json#1 has no transaction_id"},
		"a text": {write(t, filepath.Join(dir, "3.jsonl"), "{\"transaction_id\":\"x\"}\n\"x\"\n"),
			"3.jsonl:2 is not a transaction"},
		"same id": {write(t, filepath.Join(dir, "4.json"), sale("s", "good", "2")), "different content"},
		"two ids": {write(t, filepath.Join(dir, "11.json"), `{"transaction_id":"x","transaction_id":"y"}`),
			"11.json#1 is not a transaction: the body is not acceptable JSON; line 1, column 23"},
		"id of a number": {write(t, filepath.Join(dir, "12.json"), `{"transaction_id":7}`),
			"transaction_id must be a string"},
		"unknown column": {write(t, filepath.Join(dir, "5.csv"), "transaction_id,colour\nx,red\n"),
			`unknown column "colour"`},
		"no id column": {write(t, filepath.Join(dir, "6.csv"), "country_code\nXX\n"), "column transaction_id is missing"},
		"contradiction": {write(t, filepath.Join(dir, "7.csv"), "transaction_id,country_code,item_name\nx,XX,a\nx,YY,b\n"),
			"7.csv:3 column country_code"},
		"not a number": {write(t, filepath.Join(dir, "8.csv"), "transaction_id,item_quantity\nx,\"1,5\"\n"),
			`"1,5" is not a number`},
		"short row": {write(t, filepath.Join(dir, "9.csv"), "transaction_id,item_name\nx\n"),
			"has 1 cells, the header has 2"},
		"twice a column": {write(t, filepath.Join(dir, "10.csv"), "transaction_id,note,note\nx,a,b\n"), "appears twice"},
		"empty":          {write(t, filepath.Join(dir, "11.csv"), ""), "is empty"},
		"other kind":     {write(t, filepath.Join(dir, "12.txt"), "x"), ".jsonl"},
		"missing":        {filepath.Join(dir, "none.json"), "no such file"},
		"bad report":     {good, "--report"},
		"concurrency":    {good, "--concurrency"},
	} {
		t.Run(name, func(t *testing.T) {
			s.times = nil
			in := client.Submission{Paths: []string{good, c.file}, URL: srv.URL}
			switch name {
			case "bad report":
				in.Report = "out.xls"
			case "concurrency":
				in.Concurrency = client.ConcurrencyMax + 1
			}
			out, errs, err := submit(t, in)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), c.says) || len(s.times) > 0 {
				t.Errorf("%v, %d requests, want %q in\n%s%s", err, len(s.times), c.says, errs, out)
			}
		})
	}
	if _, errs, err := submit(t, client.Submission{Paths: []string{good}, URL: srv.URL,
		Concurrency: client.ConcurrencyMax}); err != nil {
		t.Errorf("at the limit: %v\n%s", err, errs)
	}
}

func TestRowsOfOneTransactionBecomeItsItems(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "x.csv"), `transaction_id;supplier_id;customer_legal_name;customer_address_city;item_name;item_quantity;item_unit_price;item_discount_rate;tax_rate;tax_regime;tax_2_rate;tax_2_regime;payment_type;payment_amount
t-1;s-9;Ana; Madrid ;Tea;1.50;7570;12.5;21;IVA;15;RET;CARD;100
t-2;s-9;;;Cup;1;5;;;;;;;

t-1;;;;Pot;2;-300;;21;IVA;;;CASH;50
`)
	bodies, err := client.Bodies(file)
	if err != nil || len(bodies) != 2 {
		t.Fatalf("%v %v", bodies, err)
	}
	want := `{"customer":{"address":{"city":"Madrid"},"legal_name":"Ana"},"items":[{"discount":{"rate":12.5},"name":"Tea","number":1,"quantity":1.50,"tax_breakdowns":[{"rate":21,"regime":"IVA"},{"rate":15,"regime":"RET"}],"unit_price":7570},` +
		`{"name":"Pot","number":2,"quantity":2,"tax_breakdowns":[{"rate":21,"regime":"IVA"}],"unit_price":-300}],"payments":[{"amount":100,"type":"CARD"},{"amount":50,"type":"CASH"}],"supplier":{"id":"s-9"},"transaction_id":"t-1"}`
	if bodies[0] != want {
		t.Errorf("body\n%s\nwant\n%s", bodies[0], want)
	}
}

func TestStateFileSurvivesATornLineAndRefusesDamage(t *testing.T) {
	t.Parallel()
	head := client.StateHead{Version: client.StateVersion, URL: "https://a", Operation: "transaction"}
	path := filepath.Join(t.TempDir(), "state")
	s, err := client.OpenState(path, head)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := s.Add(client.StateRecord{ID: fmt.Sprint("t-", i), Digest: "d", OperationID: "o"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := client.OpenState(path, head); err == nil || !strings.Contains(err.Error(), "another run") {
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
		again, err := client.OpenState(path, head)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if lines := bytes.Count(whole[:cut], []byte("\n")); len(again.Known()) != max(0, lines-1) {
			t.Errorf("cut at %d: %d records known, %d lines whole", cut, len(again.Known()), lines)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, strings.Replace(string(whole), `"transaction_id":"t-`, `"transaction_id":"`+"\x00", 1))
	if _, err := client.OpenState(path, head); err == nil {
		t.Error("a damaged line in the middle was believed")
	}
	write(t, path, string(whole))
	if _, err := client.OpenState(path, client.StateHead{Version: client.StateVersion, URL: "https://b",
		Operation: "transaction"}); err == nil {
		t.Error("a state file of another service was believed")
	}
}

func TestNoCellOfAReportIsAFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[=+\-@＝＋－＠\t\r a-z"',;]{0,12}`)
		total := rapid.Int64().Draw(t, "total")
		rows := []client.Row{{Source: text.Draw(t, "source"), TransactionID: text.Draw(t, "id"),
			Number: text.Draw(t, "number"), AuthorityID: text.Draw(t, "authority"),
			UniqueNumber: text.Draw(t, "unique"), Message: text.Draw(t, "message"), Total: &total, Status: client.Succeeded}}
		var out bytes.Buffer
		if err := client.WriteCSVReport(&out, rows); err != nil {
			t.Fatal(err)
		}
		read := csv.NewReader(&out)
		all, err := read.ReadAll()
		if err != nil || len(all) != 2 {
			t.Fatalf("%v %v", all, err)
		}
		for i, cell := range all[1] {
			if all[0][i] != "total_amount" && cell != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(cell)[0]) {
				t.Fatalf("column %s begins like a formula: %q", all[0][i], cell)
			}
		}
	})
}

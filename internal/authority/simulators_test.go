package authority_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/authority"
	"tributary/internal/mutate"
)

// counter is the smallest authority: a document is its number, POSTed.
func counter(d *authority.Desk) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /file", func(w http.ResponseWriter, r *http.Request) {
		number, _ := io.ReadAll(r.Body)
		turn := d.Turn(authority.Arrival{Supplier: "S", Number: string(number)})
		if !turn.Begin(w, nil) {
			return
		}
		err := d.Write(func(b *authority.Book) {
			if _, taken := b.Find("S", string(number)); !taken && turn.Steps[0].Outcome == authority.Accept {
				b.Register(authority.Registration{Supplier: "S", Number: string(number), SHA256: "00", AuthorityID: "id"})
			}
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if turn.End(w, r) {
			fmt.Fprint(w, turn.Steps[0].Outcome)
		}
	})
	mux.HandleFunc("GET /ask", func(w http.ResponseWriter, r *http.Request) {
		turn := d.QueryTurn()
		if turn.Begin(w, nil) && turn.End(w, r) {
			fmt.Fprint(w, "answer")
		}
	})
	return mux
}

// doubles is the counter as the authority of a made-up country.
func doubles() map[string]authority.Double { return map[string]authority.Double{"XA": counter} }

// serve opens simulators in dir behind a real server.
func serve(t *testing.T, dir string) (*httptest.Server, *authority.Simulators) {
	t.Helper()
	simulators, err := authority.NewSimulators(dir, doubles())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(simulators)
	t.Cleanup(func() {
		server.Close()
		if err := simulators.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return server, simulators
}

func call(t *testing.T, method, url, body string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func registered(t *testing.T, server *httptest.Server) []string {
	t.Helper()
	status, text, err := call(t, http.MethodGet, server.URL+"/_control/xa/registrations", "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	var body struct {
		Count         int
		Registrations []authority.Registration
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || body.Count != len(body.Registrations) {
		t.Fatalf("%s: %v", text, err)
	}
	numbers := []string{}
	for _, r := range body.Registrations {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

func script(t *testing.T, server *httptest.Server, steps string) {
	t.Helper()
	if status, text, err := call(t, http.MethodPut, server.URL+"/_control/xa/script",
		`{"steps":`+steps+`}`); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
}

func TestRegistrationsHaveTheShapeOfTheContract(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	if _, text, _ := call(t, http.MethodGet, server.URL+"/_control/XA/registrations",
		""); text != `{"count":0,"registrations":[]}`+"\n" {
		t.Errorf("an empty book: %s", text)
	}
	if status, text, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); err != nil || status != 200 ||
		text != "accept" {
		t.Fatalf("%d %s %v", status, text, err)
	}
	_, text, _ := call(t, http.MethodGet, server.URL+"/_control/xa/registrations", "")
	var body struct {
		Registrations []map[string]any `json:"registrations"`
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	got := body.Registrations[0]
	at, err := time.Parse("2006-01-02T15:04:05Z", fmt.Sprint(got["at"]))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("at %v: %v", got["at"], err)
	}
	delete(got, "at")
	if want := map[string]any{"supplier": "S", "number": "A-1", "sha256": "00",
		"authority_id": "id"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v instead of %v", got, want)
	}
}

func TestBadControlInputIsRefusedClearly(t *testing.T) {
	server, simulators := serve(t, t.TempDir())
	desk, _ := simulators.Desk("XA")
	for body, want := range map[string]string{
		``:                               "not acceptable JSON",
		`{`:                              "not acceptable JSON",
		`{}`:                             "steps is required",
		`[]`:                             "not acceptable JSON",
		`{"steps":[]} x`:                 "something follows the end",
		`{"steps":[{"outcom":"slow"}]}`:  "steps.0.outcom is not known",
		`{"Steps":[]}`:                   "Steps is not known",
		`{"steps":[],"steps":[]}`:        "stands twice",
		`{"steps":[{"outcome":"sulk"}]}`: "steps.0.outcome must be",
		`{"steps":[{}]}`:                 "steps.0.outcome must be",
		`{"steps":[{"outcome":"accept"},{"outcome":"slow","times":-1}]}`:                        "steps.1.times must be",
		`{"steps":[{"outcome":"slow","times":0}]}`:                                              "steps.0.times must be",
		`{"steps":[{"outcome":"slow","times":1000001}]}`:                                        "steps.0.times must be",
		`{"steps":[{"outcome":"slow","times":1.5}]}`:                                            "steps.0.times must be an integer",
		`{"steps":[{"outcome":"slow","delay":"soon"}]}`:                                         "steps.0.delay must be a duration",
		`{"steps":[{"outcome":"slow","delay":"-2s"}]}`:                                          "steps.0.delay must be",
		`{"steps":[{"outcome":"accept","wait":"25h"}]}`:                                         "steps.0.wait must be",
		`{"steps":[{"outcome":"reject","on":"query"}]}`:                                         "steps.0.on can be",
		`{"steps":[{"outcome":"slow","on":"sundays"}]}`:                                         "steps.0.on must be",
		`{"steps":[{"outcome":"accept","of":"ours"}]}`:                                          "steps.0.of must be",
		`{"steps":[` + strings.Repeat(`{"outcome":"accept"},`, 1000) + `{"outcome":"accept"}]}`: "steps must be at most 1000",
		`{"steps":[{"outcome":"` + strings.Repeat("x", 1<<20) +
			`"}]}`: "the script cannot be read: http: request body too large",
	} {
		status, text, err := call(t, http.MethodPut, server.URL+"/_control/xa/script", body)
		if err != nil || status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%.60s: %d %s %v", body, status, text, err)
		}
	}
	if left := desk.Script(); len(left) != 0 {
		t.Errorf("a refused script left %v", left)
	}
	thousand := `{"steps":[` + strings.Repeat(`{"outcome":"accept"},`, 999) +
		`{"outcome":"accept","times":1000000,"wait":"24h"}]}`
	if status, text, _ := call(t, http.MethodPut, server.URL+"/_control/xa/script", thousand); status != http.StatusOK {
		t.Errorf("a script at its limits: %d %s", status, text)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/_control/zz/registrations", 404},
		{http.MethodGet, "/_control/ie/registrations", 404}, // no authority there
		{http.MethodPost, "/_control/xa/script", 405},
		{http.MethodDelete, "/_control/xa/registrations", 405},
	} {
		if status, text, _ := call(t, c.method, server.URL+c.path, ""); status != c.want ||
			!strings.Contains(text, `"message"`) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
}

func TestTheRestOfAScriptIsShownAndCleared(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	script(t, server, `[{"outcome":"reject","times":3},{"outcome":"slow","delay":"2s","wait":"60s"}]`)
	if _, text, _ := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); text != "reject" {
		t.Errorf("first call: %s", text)
	}
	_, text, _ := call(t, http.MethodGet, server.URL+"/_control/xa/script", "")
	if want := `{"steps":[{"outcome":"reject","times":2},{"outcome":"slow","times":1,"delay":"2s","wait":"1m0s"}]}` +
		"\n"; text != want {
		t.Errorf("%s instead of %s", text, want)
	}
	if status, _, _ := call(t, http.MethodDelete, server.URL+"/_control/xa/script", ""); status != http.StatusNoContent {
		t.Errorf("clearing: %d", status)
	}
	if _, text, _ := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); text != "accept" {
		t.Errorf("after clearing: %s", text)
	}
}

func TestScriptedCallsMisbehaveAsTold(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	script(t, server, `[{"outcome":"unavailable"},{"outcome":"garbage"},{"outcome":"drop_answer"},{"outcome":"unavailable","on":"query"}]`)
	if status, _, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); err != nil || status != 503 {
		t.Errorf("unavailable: %d %v", status, err)
	}
	if status, text, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); err != nil || status != 200 ||
		!strings.Contains(text, "<html>") {
		t.Errorf("garbage: %d %s %v", status, text, err)
	}
	if got := registered(t, server); len(got) != 0 {
		t.Errorf("registered %v before anything was taken", got)
	}
	if status, text, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1"); err == nil {
		t.Errorf("a dropped answer came: %d %s", status, text)
	}
	if got := registered(t, server); len(got) != 1 {
		t.Errorf("registered %v after a dropped answer", got)
	}
	if status, _, _ := call(t, http.MethodGet, server.URL+"/xa/ask", ""); status != 503 {
		t.Errorf("a query under its own step: %d", status)
	}
	if status, text, _ := call(t, http.MethodGet, server.URL+"/xa/ask", ""); status != 200 || text != "answer" {
		t.Errorf("a query after the script: %d %s", status, text)
	}
}

func TestMagicNumbersAskForTheirOutcome(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	if _, text, _ := call(t, http.MethodPost, server.URL+"/xa/file", "A-1-REJECT"); text != "reject" {
		t.Errorf("-REJECT: %s", text)
	}
	for i, want := range []int{503, 503, 503, 200, 200} {
		if status, _, _ := call(t, http.MethodPost, server.URL+"/xa/file", "A-1-OUTAGE"); status != want {
			t.Errorf("-OUTAGE, call %d: %d instead of %d", i+1, status, want)
		}
	}
	if status, _, _ := call(t, http.MethodPost, server.URL+"/xa/file", "A-2-OUTAGE"); status != 503 {
		t.Errorf("-OUTAGE of another number: %d", status)
	}
	if status, _, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1-LOST"); err == nil {
		t.Errorf("-LOST was answered with %d", status)
	}
	if status, _, err := call(t, http.MethodPost, server.URL+"/xa/file", "A-1-LOST"); err != nil || status != 200 {
		t.Errorf("-LOST, second call: %d %v", status, err)
	}
	if got := registered(t, server); fmt.Sprint(got) != "[A-1-OUTAGE A-1-LOST]" {
		t.Errorf("registered %v", got)
	}
}

func TestSlowAnswersComeAfterTheirTimeAndAreRegisteredBefore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		desk, err := authority.OpenDesk(dir, "XA")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = desk.Close() }()
		if err := desk.SetScript([]authority.Step{{Outcome: authority.Slow, Delay: 7 * time.Second},
			{Outcome: authority.Slow}}); err != nil {
			t.Fatal(err)
		}
		handler := counter(desk)
		for _, c := range []struct {
			number string
			want   time.Duration
		}{{"A-1", 7 * time.Second}, {"A-2", 5 * time.Second}, {"A-3-SLOW", 5 * time.Second}, {"A-4", 0}} {
			begun := time.Now()
			done := make(chan string, 1)
			go func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/file", strings.NewReader(c.number)))
				done <- w.Body.String()
			}()
			if text := <-done; text != "accept" || time.Since(begun) != c.want {
				t.Errorf("%s: %q after %s instead of %s", c.number, text, time.Since(begun), c.want)
			}
		}
		if all, err := desk.Registrations(); err != nil || len(all) != 4 {
			t.Errorf("%d registrations, %v", len(all), err)
		}
	})
}

func TestABatchTakesSingleStepsAndLeavesWholeCallsForTheNext(t *testing.T) {
	desk := openDesk(t, t.TempDir())
	if err := desk.SetScript([]authority.Step{{Outcome: authority.Reject},
		{Outcome: authority.Suspend, Wait: time.Minute}, {Outcome: authority.DropAnswer}}); err != nil {
		t.Fatal(err)
	}
	docs := []authority.Arrival{{Supplier: "S", Number: "1"}, {Supplier: "S", Number: "2"}, {Supplier: "S", Number: "3"},
		{Supplier: "S", Number: "4-OUTAGE"}}
	turn := desk.TurnEach(docs...)
	var got []authority.Behaviour
	for _, s := range turn.Steps {
		got = append(got, s.Outcome)
	}
	if fmt.Sprint(got) != "[reject pending accept unavailable]" || turn.Wait != time.Minute {
		t.Errorf("%v, wait %s", got, turn.Wait)
	}
	if left := desk.Script(); len(left) != 1 || left[0].Outcome != authority.DropAnswer {
		t.Errorf("left %v", left)
	}
	if w := httptest.NewRecorder(); desk.Turn(authority.Arrival{Number: "5-OUTAGE"}).Begin(w, nil) || w.Code != 503 {
		t.Error("an authority that answers a call as a whole is unavailable for the whole call")
	}
}

func openDesk(t testing.TB, dir string) *authority.Desk {
	t.Helper()
	desk, err := authority.OpenDesk(dir, "XA")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = desk.Close() })
	return desk
}

// The book equals a plain model, after any writes and any restarts.
func TestABookForgetsNothingOverRestarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "desk")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		desk, err := authority.OpenDesk(dir, "XA")
		if err != nil {
			t.Fatal(err)
		}
		var model []authority.Registration
		values := map[string]string{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				r := authority.Registration{Supplier: rapid.String().Draw(t, "supplier"), Number: rapid.String().Draw(t, "number"),
					Key: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key"), Note: rapid.String().Draw(t, "note")}
				err = desk.Write(func(b *authority.Book) { model = append(model, b.Register(r)) })
			case 1:
				key, value := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
					rapid.SampledFrom([]string{"", "1", "\n"}).Draw(t, "value")
				if values[key] = value; value == "" {
					delete(values, key)
				}
				err = desk.Write(func(b *authority.Book) { b.Put(key, value) })
			case 2:
				if err = desk.Close(); err == nil {
					desk, err = authority.OpenDesk(dir, "XA")
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := desk.Registrations()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("%v instead of %v: %v", got, model, err)
		}
		desk.Read(func(b *authority.Book) {
			for _, key := range []string{"a", "b"} {
				if v, ok := b.Get(key); v != values[key] || ok != (values[key] != "") {
					t.Fatalf("value of %s: %q", key, v)
				}
			}
			for _, r := range model {
				if _, ok := b.Find(r.Supplier, r.Number); !ok {
					t.Fatalf("%q is not found", r.Number)
				}
			}
		})
		if err := desk.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestATornLastLineIsCutOffAndOtherDamageStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	desk := openDesk(t, dir)
	if err := desk.Write(func(b *authority.Book) {
		b.Register(authority.Registration{Supplier: "S", Number: "1"})
	}); err != nil {
		t.Fatal(err)
	}
	if err := desk.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "XA.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, append(append([]byte{}, whole...), whole[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := authority.OpenDesk(dir, "XA")
		if err != nil {
			t.Fatalf("torn after %d bytes: %v", cut, err)
		}
		if err := again.Write(func(b *authority.Book) {
			b.Register(authority.Registration{Supplier: "S", Number: "2"})
		}); err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
		third := openDesk(t, dir)
		if all, _ := third.Registrations(); len(all) != 2 || all[1].Number != "2" {
			t.Fatalf("torn after %d bytes: %v", cut, all)
		}
		_ = third.Close()
	}
	if err := os.WriteFile(path, append([]byte("{broken\n"), whole...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.OpenDesk(dir, "XA"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken first line: %v", err)
	}
}

func TestAWriteAfterCloseIsRefused(t *testing.T) {
	desk := openDesk(t, t.TempDir())
	if err := desk.Close(); err != nil {
		t.Fatal(err)
	}
	ran := false
	if err := desk.Write(func(*authority.Book) { ran = true }); err == nil || ran {
		t.Errorf("err %v, ran %t", err, ran)
	}
}

// What a writer was told is in the file at that moment, also under load.
func TestAConfirmedRegistrationIsInTheFile(t *testing.T) {
	dir := t.TempDir()
	desk := openDesk(t, dir)
	var wg sync.WaitGroup
	problems := make(chan error, 64)
	for i := range 64 {
		wg.Go(func() {
			number := fmt.Sprintf("N-%d-", i)
			if err := desk.Write(func(b *authority.Book) {
				b.Register(authority.Registration{Supplier: "S", Number: number})
			}); err != nil {
				problems <- err
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, "XA.jsonl"))
			if err != nil || !bytes.Contains(text, []byte(number)) {
				problems <- errors.Join(fmt.Errorf("%s is not in the file", number), err)
			}
		})
	}
	wg.Wait()
	close(problems)
	for err := range problems {
		t.Error(err)
	}
}

func FuzzScript(f *testing.F) {
	f.Add(`{"steps":[{"outcome":"slow","times":2,"delay":"2s","wait":"60s"}]}`)
	f.Add(`{"steps":[{"outcome":"duplicate","of":"ours"},{"outcome":"garbage","on":"any"}]}`)
	dir := f.TempDir()
	simulators, err := authority.NewSimulators(dir, doubles())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = simulators.Close() })
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		simulators.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/_control/xa/script", strings.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %s", w.Body)
		}
	})
}

func BenchmarkRegisterInParallel(b *testing.B) {
	desk := openDesk(b, b.TempDir())
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := desk.Write(func(book *authority.Book) {
				book.Register(authority.Registration{Supplier: "S", Number: fmt.Sprint(book.Count())})
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "registrations/s")
}

package lookup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/authority/vies"
	"tributary/internal/lookup"
	"tributary/internal/mutate"
)

const (
	germany = "136695976"
	italy   = "00743110157"
)

func TestRegisteredNumberIsFound(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 27, 10, 0, 0, 0, time.UTC)
	r := newRegister(t, vies.Config{Now: func() time.Time { return at }},
		lookup.VIESConfig{RequesterState: "IT", RequesterNumber: italy})
	got, err := r.vies.Check(context.Background(), "IT", italy)
	want := lookup.Answer{Registered: true, Name: "Simulated Business IT" + italy,
		Address: "1 Register Street, 10000 Sampletown, IT", RequestID: "WAPI000000000001", AnsweredAt: at}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
}

func TestHiddenNamesAreEmpty(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	got, err := r.vies.Check(context.Background(), "DE", germany)
	if err != nil || !got.Registered || got.Name != "" || got.Address != "" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAnswersAreCachedWithTheirTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 27, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	r := newRegister(t, vies.Config{Now: clock},
		lookup.VIESConfig{Now: clock, CacheFor: time.Hour, CacheAbsentFor: time.Minute})
	check := func(number string) lookup.Answer {
		t.Helper()
		a, err := r.vies.Check(context.Background(), "IT", number)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const absent = "99200000000"
	check(italy)
	check(absent)
	first := now
	now = now.Add(time.Minute - time.Nanosecond)
	if a := check(italy); !a.Cached || a.AnsweredAt != first {
		t.Errorf("found, within its time: %+v", a)
	}
	if a := check(absent); !a.Cached || a.Registered {
		t.Errorf("absent, within its time: %+v", a)
	}
	now = now.Add(time.Nanosecond)
	if a := check(absent); a.Cached || a.AnsweredAt == first {
		t.Errorf("absent, past its time: %+v", a)
	}
	now = first.Add(time.Hour)
	if a := check(italy); a.Cached || a.AnsweredAt != now {
		t.Errorf("found, past its time: %+v", a)
	}
	if n := r.asked().Count; n != 4 {
		t.Errorf("asked %d times", n)
	}
}

func TestCacheForgetsTheAnswerUsedLongestAgo(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{CacheEntries: 2})
	cached := func(state, number string) bool {
		t.Helper()
		a, err := r.vies.Check(context.Background(), state, number)
		if err != nil {
			t.Fatal(err)
		}
		return a.Cached
	}
	cached("IT", italy)
	cached("DE", germany)
	if !cached("IT", italy) { // DE is now the older one
		t.Error("two of two answers are not kept")
	}
	cached("AT", "U13585627")
	if !cached("IT", italy) || !cached("AT", "U13585627") || cached("DE", germany) {
		t.Error("the third answer pushed out the wrong one")
	}
}

func TestPassingErrorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"MS_UNAVAILABLE", "TIMEOUT", "SERVICE_UNAVAILABLE", "SERVER_BUSY",
		"MS_MAX_CONCURRENT_REQ", "MS_MAX_CONCURRENT_REQ_TIME",
		"GLOBAL_MAX_CONCURRENT_REQ", "GLOBAL_MAX_CONCURRENT_REQ_TIME", "garbage", "drop_answer", "unavailable"} {
		t.Run(code, func(t *testing.T) {
			r := newRegister(t, vies.Config{}, lookup.VIESConfig{Tries: 3})
			r.script(fmt.Sprintf(`{"steps":[{"outcome":%q,"times":2}]}`, code))
			a, err := r.vies.Check(context.Background(), "IT", italy)
			if err != nil || !a.Registered {
				t.Errorf("%+v %v", a, err)
			}
			if n := r.asked().Count; n != 3 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestLastingErrorsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"INVALID_INPUT", "INVALID_REQUESTER_INFO", "VAT_BLOCKED", "IP_BLOCKED"} {
		t.Run(code, func(t *testing.T) {
			r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
			r.script(fmt.Sprintf(`{"steps":[{"outcome":%q}]}`, code))
			_, err := r.vies.Check(context.Background(), "IT", italy)
			if e := viesError(t, err); e.Code != code || e.HTTPStatus != http.StatusOK {
				t.Errorf("%v", err)
			}
			if n := r.asked().Count; n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func viesError(t *testing.T, err error) *lookup.VIESError {
	t.Helper()
	var e *lookup.VIESError
	if !errors.As(err, &e) {
		t.Fatalf("not an error of VIES: %v", err)
	}
	return e
}

func TestAMemberStateThatIsOutDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRegister(t, vies.Config{},
		lookup.VIESConfig{Tries: 2, OutageFor: time.Minute, Now: func() time.Time { return now }})
	r.script(`{"outages":["IT"]}`)
	ctx := context.Background()
	if _, err := r.vies.Check(ctx, "IT", italy); viesError(t, err).Code != "MS_UNAVAILABLE" ||
		viesError(t, err).Remembered {
		t.Error(err)
	}
	// A second number of the state is answered from memory, another state is asked.
	if _, err := r.vies.Check(ctx, "IT", "99100000001"); viesError(t, err).Code != "MS_UNAVAILABLE" ||
		!viesError(t, err).Remembered {
		t.Error(err)
	}
	if a, err := r.vies.Check(ctx, "DE", germany); err != nil || !a.Registered {
		t.Error(err)
	}
	if n := r.asked().Count; n != 3 {
		t.Errorf("asked %d times", n)
	}
	r.script(`{}`)
	now = now.Add(time.Minute - time.Nanosecond)
	if _, err := r.vies.Check(ctx, "IT", italy); !viesError(t, err).Remembered {
		t.Error("forgotten too early")
	}
	now = now.Add(time.Nanosecond)
	if a, err := r.vies.Check(ctx, "IT", italy); err != nil || !a.Registered || a.Cached {
		t.Errorf("back again: %+v %v", a, err)
	}
}

func TestABlockedAddressFallsSilentForEveryone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{OutageFor: time.Second, Now: func() time.Time { return now }})
	r.script(`{"steps":[{"outcome":"IP_BLOCKED"}]}`)
	ctx := context.Background()
	if _, err := r.vies.Check(ctx, "IT", italy); viesError(t, err).Code != "IP_BLOCKED" {
		t.Error(err)
	}
	now = now.Add(10*time.Second - time.Nanosecond)
	if _, err := r.vies.Check(ctx, "DE", germany); viesError(t, err).Code != "IP_BLOCKED" {
		t.Error(err)
	}
	now = now.Add(time.Nanosecond)
	if _, err := r.vies.Check(ctx, "DE", germany); err != nil {
		t.Error(err)
	}
	if n := r.asked().Count; n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestAnAnswerWithoutSenseSpeaksForItsNumberOnly(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{Tries: 2})
	ctx := context.Background()
	if _, err := r.vies.Check(ctx, "IT", "99901000002"); viesError(t, err).Code != lookup.CodeUnavailable {
		t.Error(err)
	}
	if _, err := r.vies.Check(ctx, "IT", italy); err != nil {
		t.Error(err)
	}
}

func TestEqualQuestionsAreAskedOnce(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{Latency: 30 * time.Millisecond}, lookup.VIESConfig{})
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if a, err := r.vies.Check(context.Background(), "IT", italy); err != nil || !a.Registered {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
	callers.Wait()
	if n := r.asked().Count; n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// serve stands up a register of the test's own and returns its address.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

// bubble stands up a register in virtual time and returns a client of it.
func bubble(t *testing.T, config lookup.VIESConfig, handle http.HandlerFunc) *lookup.VIES {
	t.Helper()
	listener := make(pipes)
	server := &http.Server{Handler: handle}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	config.BaseURL = "http://vies"
	config.HTTP = &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
	return newVIES(t, config)
}

func TestACallerWhoLeavesDoesNotTakeTheAnswerAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		calls := 0
		vies := bubble(t, lookup.VIESConfig{}, func(w http.ResponseWriter, r *http.Request) {
			calls++
			select {
			case <-answer:
				io.WriteString(w, `{"valid":true}`)
			case <-r.Context().Done():
			}
		})
		first, leave := context.WithCancel(context.Background())
		leaves, stays := make(chan error, 1), make(chan error, 1)
		go func() { _, err := vies.Check(first, "IT", italy); leaves <- err }()
		synctest.Wait()
		go func() { _, err := vies.Check(context.Background(), "IT", italy); stays <- err }()
		synctest.Wait()
		leave()
		if err := <-leaves; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		synctest.Wait()
		close(answer)
		if err := <-stays; err != nil || calls != 1 {
			t.Errorf("the one who stayed: %v after %d calls", err, calls)
		}
	})
}

func TestTheLastCallerToLeaveEndsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		vies := bubble(t, lookup.VIESConfig{}, func(_ http.ResponseWriter, r *http.Request) {
			// The server notices that the client is gone only once the body is read.
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			close(gone)
		})
		start := time.Now()
		ctx, leave := context.WithCancel(context.Background())
		go func() { synctest.Wait(); leave() }()
		if _, err := vies.Check(ctx, "IT", italy); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		<-gone
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the call went on for %v", waited)
		}
	})
}

// A member state that fails for one caller and answers another is not out.
func TestAnAnswerEndsAnOutage(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]string{"state": "MS_UNAVAILABLE", "service": "SERVICE_UNAVAILABLE"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				vies := bubble(t, lookup.VIESConfig{Tries: 1}, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if bytes.Contains(body, []byte("99301000008")) {
						fmt.Fprintf(w, `{"actionSucceed":false,"errorWrappers":[{"error":%q}]}`, failure)
						return
					}
					<-answer
					io.WriteString(w, `{"valid":true}`)
				})
				slow := make(chan error, 1)
				go func() { _, err := vies.Check(context.Background(), "IT", italy); slow <- err }()
				synctest.Wait()
				ctx := context.Background()
				if _, err := vies.Check(ctx, "IT", "99301000008"); viesError(t, err).Code != failure {
					t.Error(err)
				}
				if _, err := vies.Check(ctx, "IT", "99100000001"); !viesError(t, err).Remembered {
					t.Error("the outage was not remembered")
				}
				close(answer)
				if err := <-slow; err != nil {
					t.Error(err)
				}
				if _, err := vies.Check(ctx, "IT", "99100000001"); err != nil {
					t.Errorf("after an answer: %v", err)
				}
			})
		})
	}
}

func TestConcurrencyStaysWithinBothLimits(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{Latency: 2 * time.Millisecond, Parallel: 3, ParallelPerState: 2},
		lookup.VIESConfig{Parallel: 3, ParallelPerState: 2})
	var callers sync.WaitGroup
	for i := range 60 {
		state, number := "IT", fmt.Sprintf("9910000%04d", i)
		if i%2 == 0 {
			state, number = "DE", fmt.Sprintf("9910%05d", i)
		}
		callers.Go(func() {
			if _, err := r.vies.Check(context.Background(), state, number); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	a := r.asked()
	if a.Count != 60 || a.Peak.Global > 3 || a.Peak.States["IT"] > 2 || a.Peak.States["DE"] > 2 {
		t.Errorf("%+v", a)
	}
	if a.Peak.Global < 2 {
		t.Error("nothing ever ran side by side")
	}
}

func TestABusyStateIsOutwaited(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{Latency: time.Millisecond, Parallel: 50, ParallelPerState: 1},
		lookup.VIESConfig{Parallel: 50, ParallelPerState: 4, Tries: 40})
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			if _, err := r.vies.Check(context.Background(), "IT", fmt.Sprintf("9910000%04d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if a := r.asked(); a.Outcomes["found"] != 20 {
		t.Errorf("%+v", a.Outcomes)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	exact := `{"valid":true,"name":"y"}`
	exact += strings.Repeat(" ", 64<<10-len(exact))
	for name, c := range map[string]struct {
		status int
		body   string
		code   string // empty: an answer
	}{
		"no valid":          {200, `{"countryCode":"IT","vatNumber":"` + italy + `"}`, lookup.CodeUnavailable},
		"valid is null":     {200, `{"valid":null}`, lookup.CodeUnavailable},
		"valid is a word":   {200, `{"valid":"yes"}`, lookup.CodeUnavailable},
		"another number":    {200, `{"countryCode":"IT","vatNumber":"1","valid":false}`, lookup.CodeUnavailable},
		"another state":     {200, `{"countryCode":"DE","vatNumber":"` + italy + `","valid":false}`, lookup.CodeUnavailable},
		"empty":             {200, ``, lookup.CodeUnavailable},
		"a list":            {200, `[]`, lookup.CodeUnavailable},
		"too long":          {200, exact + " ", lookup.CodeUnavailable},
		"as long as may be": {200, exact, ""},
		"server error":      {503, `{"valid":true}`, lookup.CodeUnavailable},
		"redirect":          {302, `{"valid":true}`, lookup.CodeUnavailable},
		"failed, no code":   {200, `{"actionSucceed":false,"errorWrappers":[]}`, lookup.CodeUnavailable},
		"failed, odd code":  {200, `{"actionSucceed":false,"errorWrappers":[{"error":"<script>"}]}`, lookup.CodeUnavailable},
		"failed with 400":   {400, `{"actionSucceed":false,"errorWrappers":[{"error":"VOW-ERR-2600"}]}`, "VOW-ERR-2600"},
		"failed with 500":   {500, `{"actionSucceed":false,"errorWrappers":[{"error":"VOW-ERR-1"}]}`, "VOW-ERR-1"},
	} {
		t.Run(name, func(t *testing.T) {
			var elsewhere atomic.Bool
			vies := newVIES(t, lookup.VIESConfig{Tries: 1, BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere.Store(true)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})})
			a, err := vies.Check(context.Background(), "IT", italy)
			if c.code == "" {
				if err != nil || !a.Registered {
					t.Errorf("%+v %v", a, err)
				}
				return
			}
			if viesError(t, err).Code != c.code || a.Registered {
				t.Errorf("%+v %v", a, err)
			}
			if elsewhere.Load() {
				t.Error("a redirect was followed")
			}
		})
	}
}

func TestDatesOfAnswers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-05-27T10:00:00.123Z":  time.Date(2026, 5, 27, 10, 0, 0, 123e6, time.UTC),
		"2026-05-27T10:00:00+02:00": time.Date(2026, 5, 27, 8, 0, 0, 0, time.UTC),
		"2026-05-27+02:00":          time.Date(2026, 5, 26, 22, 0, 0, 0, time.UTC),
		"yesterday":                 now,
		"":                          now,
	} {
		vies := newVIES(t, lookup.VIESConfig{Now: func() time.Time {
			return now
		}, BaseURL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"valid":true,"requestDate":%q}`, text)
		})})
		if a, err := vies.Check(context.Background(), "IT", italy); err != nil || !a.AnsweredAt.Equal(want) {
			t.Errorf("%q: %v %v", text, a.AnsweredAt, err)
		}
	}
}

func TestStatusNamesTheStatesThatAreOut(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	r.script(`{"outages":["EL","XI"]}`)
	all, err := r.vies.Status(context.Background())
	if err != nil || len(all) != 28 {
		t.Fatalf("%d states, %v", len(all), err)
	}
	for _, a := range all {
		if a.Available == (a.State == "EL" || a.State == "XI") {
			t.Errorf("%+v", a)
		}
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, c := range []lookup.VIESConfig{{}, {BaseURL: "ec.europa.eu"}, {BaseURL: "ftp://x"}, {BaseURL: "http://"},
		{BaseURL: "http://x", RequesterState: "DE"}, {BaseURL: "http://x", RequesterNumber: germany}} {
		if _, err := lookup.NewVIES(c); err == nil {
			t.Errorf("accepted: %+v", c)
		}
	}
	vies := newVIES(t, lookup.VIESConfig{BaseURL: "http://127.0.0.1:1"})
	if _, err := vies.Check(context.Background(), "GB", "1"); !errors.Is(err, lookup.ErrNotServed) {
		t.Error(err)
	}
}

// pipes is a listener whose connections live in memory, so that a server and
// its clients can stand in one bubble of virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

func TestWaitsDoubleAndHonourRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		vies := bubble(t, lookup.VIESConfig{Tries: 6, RetryBase: time.Second, RetryMax: 10 * time.Second},
			func(w http.ResponseWriter, _ *http.Request) {
				at = append(at, time.Since(start))
				if len(at) == 3 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			})
		if _, err := vies.Check(context.Background(), "IT", italy); viesError(t, err).HTTPStatus != 503 {
			t.Error(err)
		}
		if len(at) != 6 {
			t.Fatalf("tried %d times", len(at))
		}
		for i, bounds := range [][2]time.Duration{{800, 1200}, {1600, 2400}, {7000, 7000}, {6400, 9600}, {8000, 10000}} {
			wait := at[i+1] - at[i]
			if wait < bounds[0]*time.Millisecond || wait > bounds[1]*time.Millisecond {
				t.Errorf("wait %d was %v", i+1, wait)
			}
		}
	})
}

func TestASlowCallEndsAndSpeaksForItsStateOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vies := bubble(t, lookup.VIESConfig{Tries: 1, CallTimeout: 20 * time.Second},
			func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Contains(body, []byte(`"IT"`)) {
					<-r.Context().Done()
					return
				}
				io.WriteString(w, `{"valid":true}`)
			})
		start := time.Now()
		if _, err := vies.Check(context.Background(), "IT", italy); viesError(t, err).Code != lookup.CodeUnavailable {
			t.Error(err)
		}
		if waited := time.Since(start); waited != 20*time.Second {
			t.Errorf("waited %v", waited)
		}
		if _, err := vies.Check(context.Background(), "IT", "99100000001"); !viesError(t, err).Remembered {
			t.Error(err)
		}
		if _, err := vies.Check(context.Background(), "DE", germany); err != nil {
			t.Error(err)
		}
	})
}

// canned is a transport that always gives the same bytes.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c.body)),
		Request: r}, nil
}

func FuzzVIESAnswer(f *testing.F) {
	f.Add(200, []byte(`{"countryCode":"IT","vatNumber":"00743110157","requestDate":"2026-05-27T10:00:00.000Z","valid":true,"name":"A\nB","address":"---"}`))
	f.Add(200, []byte(`{"actionSucceed":false,"errorWrappers":[{"error":"MS_UNAVAILABLE"}]}`))
	f.Add(500, []byte(`<html>`))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		vies := newVIES(t, lookup.VIESConfig{BaseURL: "http://vies", Tries: 1,
			HTTP: &http.Client{Transport: canned{status, body}}})
		a, err := vies.Check(context.Background(), "IT", italy)
		if err != nil {
			if a != (lookup.Answer{}) {
				t.Fatalf("an answer beside an error: %+v", a)
			}
			_ = viesError(t, err)
			return
		}
		if status != 200 || !bytes.Contains(bytes.ToLower(body), []byte("valid")) {
			t.Fatalf("an answer from status %d and %q", status, body)
		}
		if strings.ContainsAny(a.Name+a.Address, "\n\r\x00") || len([]rune(a.Name)) > 450 || len([]rune(a.Address)) > 1000 {
			t.Fatalf("%+v", a)
		}
		if !a.Registered && a.Name != "" {
			t.Fatalf("a name without a registration: %+v", a)
		}
	})
}

package country_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// wire is a channel that only knows where it leads.
type wire struct {
	country.Channel
	at country.Endpoint
}

// goodPack is a consistent pack; an authority comes with codes that begin with X or with LIVE countries.
func goodPack(code string) country.Pack {
	p := country.Pack{
		Code: code, Name: "Somewhere", Version: "1",
		Facts: country.Facts{Currency: "EUR", Languages: []string{"EN"}, TimeZone: "UTC",
			UseCases: []country.UseCase{country.Invoicing}},
	}
	if code != "IE" {
		p.Sources = []string{"https://example.org/law"}
		p.Facts.Authority = &country.Authority{Name: "Office"}
		p.Connect = func(at country.Endpoint) (country.Channel, error) { return &wire{at: at}, nil }
		p.Simulator = func(*authority.Desk) http.Handler { return http.NotFoundHandler() }
	}
	return p
}

func atlas(t *testing.T, cfg country.AtlasConfig) *country.Atlas {
	t.Helper()
	a, err := country.NewAtlas(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func TestKeysReachOnlyTheirOwnEnvironment(t *testing.T) {
	a := atlas(t, country.AtlasConfig{
		Packs: []country.Pack{goodPack("XX"), goodPack("ES"), goodPack("PL"), goodPack("MX"), goodPack("IE")},
		Addresses: map[string]country.Addresses{"es": {Live: "https://live.example/es/", Test: "https://test.example/es"},
			"PL": {Live: "https://live.example/pl"}},
		Simulators: "http://127.0.0.1:8090/",
	})
	for _, c := range []struct {
		code string
		live country.Live
		want string
		err  error
	}{
		{"es", true, "https://live.example/es", nil},
		{"ES", false, "https://test.example/es", nil},
		{"PL", true, "https://live.example/pl", nil},
		{"PL", false, "http://127.0.0.1:8090/pl", nil},
		{"MX", true, "", country.ErrNoAddress}, // never the simulators
		{"MX", false, "http://127.0.0.1:8090/mx", nil},
		{"XX", false, "http://127.0.0.1:8090/xx", nil},
		{"XX", true, "", country.ErrTestOnly},
		{"IE", false, "", country.ErrNoAuthority},
		{"ZZ", false, "", country.ErrCountryUnknown},
	} {
		at, err := a.Endpoint(c.code, c.live)
		if at.BaseURL != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s live=%t: %q %v", c.code, c.live, at.BaseURL, err)
		}
		ch, err := a.Channel(c.code, c.live)
		if !errors.Is(err, c.err) {
			t.Errorf("channel of %s live=%t: %v", c.code, c.live, err)
		}
		if c.err == nil && (ch.(*wire).at.BaseURL != c.want || ch.(*wire).at.Live != c.live || ch.(*wire).at.HTTP == nil) {
			t.Errorf("channel of %s live=%t leads to %+v", c.code, c.live, ch.(*wire).at)
		}
	}
	if codes := strings.Join(a.Codes(), " "); codes != "ES IE MX PL XX" {
		t.Errorf("codes %s", codes)
	}
	if p, ok := a.Pack("es"); !ok || p.Code != "ES" {
		t.Error("a code is read in either case")
	}
}

// A simulated authority is shown secrets of its own where the operator has set none;
// a real one never.
func TestASimulatedAuthorityNeedsNoSecrets(t *testing.T) {
	pack := goodPack("ES")
	pack.Identity = &country.IdentityRule{Secrets: []country.SecretRule{{Name: "client_id", Description: "An id.", Simulated: "simulated"}, {Name: "other", Description: "Another."}}}
	a := atlas(t, country.AtlasConfig{Packs: []country.Pack{pack}, Simulators: "http://127.0.0.1:8090/"})
	shown := func() string {
		t.Helper()
		at, err := a.Endpoint("ES", false)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(at.Identity.Secrets)
	}
	if got := shown(); got != "map[client_id:simulated]" {
		t.Errorf("where nothing is set: %s", got)
	}
	set := country.Setup{Version: 1, Identity: country.Identity{Secrets: map[string]string{"client_id": "ours", "other": "x"}}}
	a.Configure(map[country.Environment]country.Setup{{Code: "ES"}: set})
	if got := shown(); got != "map[client_id:ours other:x]" {
		t.Errorf("what is set: %s", got)
	}
	a.Configure(map[country.Environment]country.Setup{{Code: "ES"}: {Version: 2, URL: "https://test.example"}})
	if got := shown(); got != "map[]" {
		t.Errorf("shown to an authority that is none of ours: %s", got)
	}
}

func TestFactsHaveListsAndNoNulls(t *testing.T) {
	p, _ := atlas(t, country.AtlasConfig{Packs: []country.Pack{goodPack("IE")}}).Pack("IE")
	text, err := json.Marshal(p.Facts)
	if err != nil || strings.Contains(strings.Replace(string(text), `"authority":null`, "", 1), "null") {
		t.Errorf("%s %v", text, err)
	}
}

func TestALocalGatewayMayBeLiveOverPlainHTTP(t *testing.T) {
	for address, ok := range map[string]bool{
		"http://127.0.0.1:9000/es": true, "http://[::1]:9000": true, "http://localhost:9000": false,
		"http://10.0.0.1": false, "ftp://127.0.0.1": false,
	} {
		_, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{goodPack("ES")},
			Addresses: map[string]country.Addresses{"ES": {Live: address}}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWithoutSimulatorsATestKeyNeedsATestAddress(t *testing.T) {
	a := atlas(t, country.AtlasConfig{Packs: []country.Pack{goodPack("XX")}})
	if _, err := a.Channel("XX", false); !errors.Is(err, country.ErrNoAddress) {
		t.Errorf("%v", err)
	}
}

func TestAChannelIsConnectedOnce(t *testing.T) {
	var connected atomic.Int32
	p := goodPack("ES")
	p.Connect = func(at country.Endpoint) (country.Channel, error) {
		connected.Add(1)
		return &wire{at: at}, nil
	}
	a := atlas(t, country.AtlasConfig{Packs: []country.Pack{p}, Simulators: "http://127.0.0.1:1"})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			code := "ES"
			if i%2 == 0 {
				code = "es"
			}
			if _, err := a.Channel(code, false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := connected.Load(); n != 1 {
		t.Errorf("connected %d times", n)
	}
}

func TestAPackThatContradictsItselfDiesAtTheStart(t *testing.T) {
	for want, spoil := range map[string]func(*country.Pack){
		"two upper-case letters": func(p *country.Pack) { p.Code = "e1" },
		"name and version":       func(p *country.Pack) { p.Version = "" },
		"needs legal sources":    func(p *country.Pack) { p.Sources = nil },
		"is not a web address":   func(p *country.Pack) { p.Sources = []string{"the law"} },
		"belong together":        func(p *country.Pack) { p.Facts.Authority = nil },
		"only the use case INVOICING": func(p *country.Pack) {
			p.Connect, p.Simulator, p.Facts.Authority = nil, nil, nil
			p.Facts.UseCases = []country.UseCase{country.Reporting}
		},
		"simulator without a channel": func(p *country.Pack) { p.Connect, p.Facts.Authority = nil, nil },
		"currency":                    func(p *country.Pack) { p.Facts.Currency = "eur" },
		"languages":                   func(p *country.Pack) { p.Facts.Languages = nil },
		"time_zone":                   func(p *country.Pack) { p.Facts.TimeZone = "" },
		"use_cases":                   func(p *country.Pack) { p.Facts.UseCases = []country.UseCase{"SOME"} },
		`names "customer.shoe_size"`: func(p *country.Pack) {
			p.Facts.Required = []country.FieldRule{{Field: "customer.shoe_size"}}
		},
		`names "items.0.name"`: func(p *country.Pack) {
			p.Facts.Forbidden = []country.FieldRule{{Field: "items.0.name"}}
		},
		"nothing can meet": func(p *country.Pack) {
			p.Facts.Required = []country.FieldRule{{Field: "note", BusinessModel: "B2X"}}
		},
		"allowed_values of note: none": func(p *country.Pack) { p.Facts.Allowed = []country.ValueRule{{Field: "note"}} },
		"max_lengths of note: 0":       func(p *country.Pack) { p.Facts.MaxLengths = []country.LengthRule{{Field: "note"}} },
		"is no integer": func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "integer", Default: "1"}}
		},
		"is no boolean": func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "boolean", Default: 1}}
		},
		`type "float"`: func(p *country.Pack) { p.Facts.Settings = []country.Setting{{Key: "k", Type: "float"}} },
		"is none of": func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "string", Default: "c", Values: []string{"a"}}}
		},
		"does not match": func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "string", Default: "c", Pattern: "^a$"}}
		},
		"missing closing": func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "string", Pattern: "("}}
		},
		`setting "k": empty or twice`: func(p *country.Pack) {
			p.Facts.Settings = []country.Setting{{Key: "k", Type: "string"}, {Key: "k", Type: "string"}}
		},
		"shortest form": func(p *country.Pack) {
			p.Facts.Rates = []country.Rate{{Regime: "VAT", Type: "STANDARD", Percent: "20.0"}}
		},
		"is not a day": func(p *country.Pack) {
			p.Facts.Rates = []country.Rate{{Regime: "VAT", Type: "STANDARD", Percent: "20", Since: "2020"}}
		},
		"before it begins": func(p *country.Pack) {
			p.Facts.Rates = []country.Rate{{Regime: "VAT", Type: "STANDARD", Percent: "20", Since: "2020-01-02",
				Until: "2020-01-01"}}
		},
		`kind "INVOICE"`: func(p *country.Pack) { p.Facts.Corrections = []country.Correction{{Kind: transaction.Invoice}} },
		"required reason without": func(p *country.Pack) {
			p.Facts.Corrections = []country.Correction{{Kind: transaction.Credit, ReasonRequired: true}}
		},
	} {
		p := goodPack("ES")
		spoil(&p)
		if _, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{p}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAWrongAddressDiesAtTheStart(t *testing.T) {
	for want, cfg := range map[string]country.AtlasConfig{
		"two of them": {Packs: []country.Pack{goodPack("ES"), goodPack("ES")}},
		"must be an address with": {Packs: []country.Pack{goodPack("ES")},
			Addresses: map[string]country.Addresses{"ES": {Live: "http://plain.example"}}},
		"without user": {Packs: []country.Pack{goodPack("ES")},
			Addresses: map[string]country.Addresses{"ES": {Test: "https://u:p@test.example"}}},
		"no pack": {Packs: []country.Pack{goodPack("ES")}, Addresses: map[string]country.Addresses{"QQ": {}}},
		"documents only": {Packs: []country.Pack{goodPack("IE")},
			Addresses: map[string]country.Addresses{"IE": {Live: "https://live.example"}}},
		"not offered with live": {Packs: []country.Pack{goodPack("XX")},
			Addresses: map[string]country.Addresses{"XX": {Live: "https://live.example"}}},
		"simulators": {Simulators: "ftp://x"},
	} {
		if _, err := country.NewAtlas(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// client answers the HTTP client that channels get.
func client(t *testing.T) *http.Client {
	t.Helper()
	a := atlas(t, country.AtlasConfig{Packs: []country.Pack{goodPack("XX")}, Simulators: "http://127.0.0.1:1"})
	at, err := a.Endpoint("XX", false)
	if err != nil {
		t.Fatal(err)
	}
	return at.HTTP
}

func exchange(t *testing.T, url string, bytesMax int64) (country.Reply, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("filing"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("X-Idempotency-Key", "k")
	return country.Exchange(client(t), r, bytesMax)
}

func TestRedirectsAreAnswersAndNoHeaderInvitesAResend(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != "" {
			t.Error("an idempotency header left the house")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	reply, err := exchange(t, server.URL, 100)
	if err != nil || reply.Status != http.StatusTemporaryRedirect || calls.Load() != 1 {
		t.Errorf("%d after %d calls, %v", reply.Status, calls.Load(), err)
	}
}

func TestAnAnswerIsReadToItsLimitAndNotPastIt(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if chunked {
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
		}))
		if reply, err := exchange(t, server.URL, 100); err != nil || len(reply.Body) != 100 {
			t.Errorf("chunked=%t at the limit: %d bytes, %v", chunked, len(reply.Body), err)
		}
		if _, err := exchange(t, server.URL, 99); !errors.Is(err, country.ErrBodyTooLarge) ||
			errors.Is(err, country.ErrNotTaken) {
			t.Errorf("chunked=%t past the limit: %v", chunked, err)
		}
		server.Close()
	}
}

func TestOnlyACallThatNeverConnectedIsCertainlyNotTaken(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler) // taken, and no answer
	}))
	if _, err := exchange(t, server.URL, 100); err == nil || errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a lost answer: %v", err)
	}
	truncated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "50")
		_, _ = io.WriteString(w, "short")
	}))
	defer truncated.Close()
	if _, err := exchange(t, truncated.URL, 100); err == nil || errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a truncated answer: %v", err)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	secure.Config.ErrorLog = nil
	defer secure.Close()
	if _, err := exchange(t, secure.URL, 100); !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a certificate nobody trusts: %v", err)
	}
	server.Close()
	if _, err := exchange(t, server.URL, 100); !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a refused connection: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, truncated.URL, nil)
	if _, err := country.Exchange(client(t), r, 100); !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("a call that never began: %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}

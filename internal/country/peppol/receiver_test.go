package peppol_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/guard"
	"tributary/internal/transaction"
)

// wired is a channel to a simulated network over real HTTP and DNS.
type wired struct {
	code    string
	sims    *authority.Simulators
	server  *httptest.Server
	channel country.Channel
}

func wire(t *testing.T, further func(url string) country.AtlasConfig) *wired {
	t.Helper()
	return wireTo(t, packOf(t, "BE"), further)
}

func wireTo(t *testing.T, pack country.Pack, further func(url string) country.AtlasConfig) *wired {
	t.Helper()
	sims, err := country.NewSimulators(t.TempDir(), pack)
	if err != nil {
		t.Fatal(err)
	}
	w := &wired{code: pack.Code, sims: sims, server: httptest.NewServer(sims)}
	cfg := country.AtlasConfig{Simulators: w.server.URL}
	if further != nil {
		cfg = further(w.server.URL)
	}
	cfg.Packs = []country.Pack{pack}
	atlas, err := country.NewAtlas(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		atlas.Close()
		w.server.Close()
		if err := sims.Close(); err != nil {
			t.Error(err)
		}
	})
	if further != nil {
		atlas.Configure(map[country.Environment]country.Setup{{Code: "BE"}: {Version: 1,
			Identity: country.Identity{Secrets: w.network(t)}}})
	}
	if w.channel, err = atlas.Channel(pack.Code, false); err != nil {
		t.Fatal(err)
	}
	return w
}

// network is what the simulated network tells whoever is to be configured with it.
func (w *wired) network(t *testing.T) map[string]string {
	t.Helper()
	resp, err := w.server.Client().Get(w.server.URL + "/be/network")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said map[string]string
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	return said
}

func (w *wired) send(t *testing.T, ctx context.Context) (country.Filing, country.Receipt, error) {
	t.Helper()
	f, err := w.channel.Prepare(draft(t, "BE", "R-1", nil))
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.channel.Send(ctx, []country.Filing{f}, token)
	if err != nil {
		return f, country.Receipt{}, err
	}
	return f, all[0], nil
}

func (w *wired) held(t *testing.T) int {
	t.Helper()
	desk, _ := w.sims.Desk(w.code)
	all, err := desk.Registrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// nobody is an address at which nobody listens any more.
func nobody(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(nil)
	s.Close()
	return s.URL
}

const buyer, buyerVAT = "0208:0403170701", "9925:be0403170701"

func TestReceiverIsLookedUpBeforeAnythingIsSent(t *testing.T) {
	gone := `{"unregistered":true}`
	for name, c := range map[string]struct {
		habits  map[string]string
		outcome country.Outcome
		reason  fault.Code
		says    string
	}{
		"registered":           {nil, country.Accepted, "", ""},
		"under its VAT number": {map[string]string{buyer: gone}, country.Accepted, "", ""},
		"nowhere": {map[string]string{buyer: gone, buyerVAT: gone}, country.Rejected, fault.AuthorityRejected,
			"the receiver is not registered on Peppol (" + buyer},
		"takes credits alone": {map[string]string{buyer: `{"documents":["CreditNote"]}`, buyerVAT: gone}, country.Rejected,
			fault.AuthorityRejected, "does not take this type"},
		"out of service": {map[string]string{buyer: `{"expired":true}`, buyerVAT: gone}, country.Rejected,
			fault.AuthorityRejected, "at present"},
		"wrong signature": {map[string]string{buyer: `{"signature":"wrong"}`}, country.NotTaken, fault.AuthorityError,
			"not made with its certificate's key"},
		"changed answer": {map[string]string{buyer: `{"signature":"changed"}`}, country.NotTaken, fault.AuthorityError,
			"not what was signed"},
		"broken register": {map[string]string{buyer: `{"gone":true}`}, country.NotTaken, fault.AuthorityError, "answers 500"},
		"led in circles": {map[string]string{buyer: `{"redirected":true}`}, country.NotTaken, fault.AuthorityError,
			"from one address to another"},
		"private address": {map[string]string{buyer: `{"elsewhere":"https://10.1.2.3/smp"}`}, country.NotTaken,
			fault.AuthorityError, "refused"},
		"nobody there": {map[string]string{buyer: `{"elsewhere":"` + nobody(t) + `/smp"}`}, country.NotTaken,
			fault.AuthorityUnreachable, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := wire(t, nil)
			for who, habits := range c.habits {
				put(t, w.server.URL+"/be/participants/"+who, habits)
			}
			f, r, err := w.send(t, t.Context())
			if err != nil || r.Outcome != c.outcome {
				t.Fatalf("%+v %v", r, err)
			}
			if c.outcome == country.Accepted {
				if w.held(t) != 1 || r.AuthorityID1 != f.DedupeKey || r.AuthorityID2 == "" || len(r.Document) == 0 {
					t.Errorf("%d held, %+v", w.held(t), r)
				}
				return
			}
			if w.held(t) != 0 || len(r.Faults) != 1 || r.Faults[0].Code != c.reason ||
				!strings.Contains(r.Faults[0].Message, c.says) {
				t.Errorf("%d held, %+v", w.held(t), r.Faults)
			}
		})
	}
}

// What was not there is asked for again: nothing remembers it.
func TestReceiverThatRegistersIsFoundAtOnce(t *testing.T) {
	w := wire(t, nil)
	for _, who := range []string{buyer, buyerVAT} {
		put(t, w.server.URL+"/be/participants/"+who, `{"unregistered":true}`)
	}
	if _, r, err := w.send(t, t.Context()); err != nil || r.Outcome != country.Rejected {
		t.Fatalf("%+v %v", r, err)
	}
	put(t, w.server.URL+"/be/participants/"+buyer, `{}`)
	if _, r, err := w.send(t, t.Context()); err != nil || r.Outcome != country.Accepted {
		t.Fatalf("%+v %v", r, err)
	}
}

// A name server that does not answer for one receiver says nothing of the others:
// the document waits alone, and says for whom.
func TestNameServerInTroublePutsOffOneReceiver(t *testing.T) {
	for habits, reason := range map[string]fault.Code{`{"silent":true}`: fault.AuthorityUnreachable,
		`{"failing":true}`: fault.AuthorityError} {
		t.Run(habits, func(t *testing.T) {
			w := wire(t, nil)
			put(t, w.server.URL+"/be/participants/"+buyer, habits)
			ctx := t.Context()
			if reason == fault.AuthorityUnreachable {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond) // nobody answers, however long it takes
				defer cancel()
			}
			_, r, err := w.send(t, ctx)
			if err != nil || r.Outcome != country.NotTaken || w.held(t) != 0 || len(r.Faults) != 1 {
				t.Fatalf("%d held, %+v %v", w.held(t), r, err)
			}
			if f := r.Faults[0]; f.Code != reason || f.Type != fault.Warning || f.Field != "customer.electronic_address" ||
				!strings.Contains(f.Message, buyer) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// The operator's own access point may stand anywhere; a register that the network
// names may not: it is vetted when it is dialled.
func TestRegistersAreDialledThroughTheGuard(t *testing.T) {
	demo, err := guard.New(guard.Config{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	at := func(d guard.Dialer) func(string) country.AtlasConfig {
		return func(url string) country.AtlasConfig {
			return country.AtlasConfig{Addresses: map[string]country.Addresses{"BE": {Test: url + "/be"}}, Abroad: d}
		}
	}
	strict := wire(t, at(guard.Dialer{}))
	if _, r, err := strict.send(t, t.Context()); err != nil || r.Outcome != country.NotTaken || strict.held(t) != 0 {
		t.Errorf("a register on this machine: %+v %v", r, err)
	}
	open := wire(t, at(guard.Dialer{Guard: demo}))
	if _, r, err := open.send(t, t.Context()); err != nil || r.Outcome != country.Accepted || open.held(t) != 1 {
		t.Errorf("where the operator opened it: %+v %v", r, err)
	}
}

// The registers of the real network sign under OpenPeppol's certificates, and
// under no others unless the operator says so.
func TestCertificatesOfOthersAreNotBelieved(t *testing.T) {
	demo, err := guard.New(guard.Config{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	pack := packOf(t, "BE")
	sims := wire(t, nil)
	said := sims.network(t)
	delete(said, "smp_ca")
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack},
		Addresses: map[string]country.Addresses{"BE": {Test: sims.server.URL + "/be"}}, Abroad: guard.Dialer{Guard: demo}})
	if err != nil {
		t.Fatal(err)
	}
	defer atlas.Close()
	atlas.Configure(map[country.Environment]country.Setup{{Code: "BE"}: {Version: 1,
		Identity: country.Identity{Secrets: said}}})
	if sims.channel, err = atlas.Channel("BE", false); err != nil {
		t.Fatal(err)
	}
	_, r, err := sims.send(t, t.Context())
	if err != nil || r.Outcome != country.NotTaken || !strings.Contains(r.Faults[0].Message, "not one of a register") ||
		sims.held(t) != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestBuyerWithoutAnElectronicAddressIsToldAtOnce(t *testing.T) {
	w := wire(t, nil)
	for name, d := range map[string]country.Draft{
		"customer.electronic_address": draft(t, "BE", "R-1", func(tx *transaction.Transaction) {
			tx.Customer.EntityNumber, tx.Customer.TaxNumber, tx.Customer.Address.CountryCode = "", "", "US"
		}),
		"settings.format": func() country.Draft {
			d := draft(t, "BE", "R-1", nil)
			d.Supplier.Settings["format"] = "NONE"
			return d
		}(),
	} {
		_, err := w.channel.Prepare(d)
		var wrong *fault.Error
		if !errors.As(err, &wrong) || wrong.Kind != fault.Invalid || len(wrong.Faults) == 0 || wrong.Faults[0].Field != name {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// What the operator set and cannot be so is told when it is used, before anything is sent.
func TestIdentityThatCannotBeSo(t *testing.T) {
	for name, value := range map[string]string{"driver": "carrier pigeon", "dns_server": "9.9.9.9",
		"smp_ca": "no certificate"} {
		pack := packOf(t, "BE")
		if _, err := pack.Connect(country.Endpoint{BaseURL: "https://ap.example",
			Identity: country.Identity{Secrets: map[string]string{name: value}}}); err == nil {
			t.Errorf("%s %q is taken", name, value)
		}
	}
}

// Without an access point nothing is sent, and whoever asks is told why.
func TestWithoutAnAccessPointNothingIsSent(t *testing.T) {
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{packOf(t, "BE")}})
	if err != nil {
		t.Fatal(err)
	}
	defer atlas.Close()
	w := wire(t, nil)
	if w.channel, err = atlas.Channel("BE", true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.send(t, t.Context()); !errors.Is(err, country.ErrNotTaken) || !errors.Is(err, country.ErrNoAddress) {
		t.Errorf("%v", err)
	}
}

// An access point's answers that are none of its own are never taken for a word
// on the document.
func TestAnswersThatSayNothing(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"page":             {200, "<!DOCTYPE html><p>maintenance</p>"},
		"another's report": {200, `{"sbdhInstanceIdentifier":"x","overallSuccess":true}`},
		"success that says otherwise": {200,
			`{"sbdhInstanceIdentifier":"ce339a26-47b3-5819-9619-40a367e02284","overallSuccess":false}`},
		"gateway":          {502, ""},
		"422 of a gateway": {422, "<html>"},
		"too long":         {200, strings.Repeat(" ", 2<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			sims := wire(t, nil)
			said := sims.network(t)
			said["api_token"] = "t"
			calls := 0
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				calls++
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer front.Close()
			demo, _ := guard.New(guard.Config{Demo: true})
			atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{packOf(t, "BE")},
				Addresses: map[string]country.Addresses{"BE": {Test: front.URL}}, Abroad: guard.Dialer{Guard: demo}})
			if err != nil {
				t.Fatal(err)
			}
			defer atlas.Close()
			atlas.Configure(map[country.Environment]country.Setup{{Code: "BE"}: {Version: 1,
				Identity: country.Identity{Secrets: said}}})
			if sims.channel, err = atlas.Channel("BE", false); err != nil {
				t.Fatal(err)
			}
			_, r, err := sims.send(t, t.Context())
			if err == nil || errors.Is(err, country.ErrNotTaken) || calls != 1 {
				t.Errorf("%+v %v after %d calls", r, err, calls)
			}
		})
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAReceiverOfOneEventLeavesTheCommonOneAlone: what waits for the common
// receiver is not closed because another event gets one of its own, and the
// demo's client can be changed although its address is one of the demo's.
func TestAReceiverOfOneEventLeavesTheCommonOneAlone(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	var common, own atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/common", func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			http.Error(w, "not today", http.StatusInternalServerError)
			return
		}
		common.Add(1)
	})
	mux.HandleFunc("/own", func(http.ResponseWriter, *http.Request) { own.Add(1) })
	hook := httptest.NewServer(mux)
	t.Cleanup(hook.Close)
	o := &observatory{t: t, root: t, dir: t.TempDir()}
	s := o.demo("demo", []string{"--webhook-url", hook.URL + "/common", "--webhook-retry-base", "50ms"}, nil, nil)
	s.event(func(tries int, _ string) bool { return tries > 0 })

	configure := func(flags ...string) string {
		t.Helper()
		return o.must(append([]string{"client", "configure", "demo", "--data", s.dir, "--json"}, flags...)...)
	}
	shown := configure("--webhook", "lookup.single_validation_completed="+hook.URL+"/own", "--demo")
	for _, address := range []string{hook.URL + "/common", hook.URL + "/own"} {
		if !strings.Contains(shown, address) {
			t.Errorf("%s is not in\n%s", address, shown)
		}
	}
	configure("--name", "Without the demo's rules") // its addresses are stored, and no business of this change
	if code, _, errs := call(t, "client", "configure", "demo", "--data", s.dir, "--webhook-url",
		hook.URL+"/new"); code != exitUsage || !strings.Contains(errs, "webhooks.all") {
		t.Errorf("a new address of the kind: %d %s", code, errs)
	}
	var job struct{ ID string }
	s.json(http.MethodPost, "/lookup/v2/single-validations",
		`{"country_iso_code":"IE","tax_identification_number":"IE6388047V"}`, &job)
	o.eventually("the event with a receiver of its own arrives there", func() bool { return own.Load() > 0 })
	broken.Store(false)
	if e := s.event(delivered); e.Status != "delivered" || common.Load() == 0 {
		t.Errorf("what waited for the common receiver: %+v", e)
	}

	configure("--webhook", "transactions.transaction_completed=none")
	n := 0
	o.eventually("the service notices that an event is turned off", func() bool {
		before := common.Load()
		n++
		s.sell(fmt.Sprint("not-told-", n))
		e := s.event(func(_ int, status string) bool { return status != "pending" })
		return e.Status == "unsubscribed" && common.Load() == before
	})
	if code, _, errs := call(t, "client", "configure", "demo", "--data", s.dir, "--webhook-url", "none", "--webhook",
		"transactions.transaction_completed=all"); code != exitUsage || !strings.Contains(errs, "no URL for all") {
		t.Errorf("an event sent to an address that is not there: %d %s", code, errs)
	}
}

func TestTimesAreWholeSecondsInWhatScriptsRead(t *testing.T) {
	t.Parallel()
	flags := book(t, migrated(t))
	o := &observatory{t: t, root: t}
	made := o.must(append([]string{"client", "create", "acme", "--name", "Acme"}, flags...)...)
	texts := []string{made, o.must(append([]string{"client", "show", "acme"}, flags...)...),
		o.must(append([]string{"client", "list"}, flags...)...),
		o.must(append([]string{"client", "audit", "acme"}, flags...)...),
		o.must(append([]string{"key", "rotate", "acme"}, flags...)...),
		o.must(append([]string{"operator", "create", "ana"}, flags...)...),
		o.must(append([]string{"operator", "list"}, flags...)...), o.must(append([]string{"operator", "audit"}, flags...)...)}
	stamps := regexp.MustCompile(`"(?:\w+_)?at": "([^"]*)"`)
	for _, text := range texts {
		found := stamps.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("no time in\n%s", text)
		}
		for _, stamp := range found {
			if !regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`).MatchString(stamp[1]) {
				t.Errorf("%s in\n%s", stamp[0], text)
			}
		}
	}
}

func TestACountryIsNamedOnceOnTheCommandLine(t *testing.T) {
	t.Parallel()
	flags := book(t, migrated(t))
	for args, says := range map[string]string{
		"client create acme --name Acme --country es=BOTH;ES=REPORTING":                           "ES is given twice",
		"reconcile --supplier x --day 2026-01-31 --authority es.live=https://a;ES.live=https://b": "ES.live is given twice",
		"reconcile --supplier x --day 2026-01-31 --authority ES.prod=https://a":                   "ES.prod",
	} {
		for range 8 { // the order of a map is another each time
			if code, _, errs := call(t, append(strings.Fields(args), flags...)...); code != exitUsage ||
				!strings.Contains(errs, says) {
				t.Errorf("%s: %d %s", args, code, errs)
			}
		}
	}
}

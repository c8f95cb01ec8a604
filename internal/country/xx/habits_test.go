package xx_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/country/xx"
	"tributary/internal/official/xxwire"
)

// post leaves a notice at the double, as a buyer or a platform would.
func post(t *testing.T, address string, said xxwire.Said) int {
	t.Helper()
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post(address+xxwire.PathNotices, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

func say(t *testing.T, address string, f country.Filing) {
	t.Helper()
	for key, severity := range map[string]string{"m1": "INFO", "m2": "PROBLEM"} {
		notice := xxwire.Notice{Key: key, At: "2026-04-01T08:00:00Z", Code: "205", Name: "Approved", Source: "BUYER",
			Severity: severity}
		if got := post(t, address, xxwire.Said{Supplier: f.Supplier, Number: f.Number, Notice: notice}); got !=
			http.StatusNoContent {
			t.Fatalf("the double answers a notice with %d", got)
		}
	}
}

// Every habit that XX by itself does not show passes the suite under a code of its own.
func TestEveryHabitPassesTheSuite(t *testing.T) {
	for code, c := range map[string]struct {
		class  country.Class
		habits xx.Habits
	}{
		"XL": {country.ByNumber, xx.Habits{Listen: country.Listening{First: time.Second, Most: time.Minute, For: time.Hour}}},
		"XS": {country.ByNumber, xx.Habits{Sequence: true}},
		"XI": {country.ByNumber, xx.Habits{Numbered: true}},
		"XT": {country.ByChain, xx.Habits{Refusal: country.StopsChain}},
		"XO": {country.ByChain, xx.Habits{AnyOrder: true}},
	} {
		t.Run(code, func(t *testing.T) {
			packtest.Exercise(t, world.ReferenceWith(code, c.class, c.habits), packtest.Options{
				Name: "habit " + code, Cases: cases()[:2],
				Abilities: packtest.Abilities{Say: say, Mailbox: xxwire.SuffixMailbox, Gathers: counter()},
			})
		})
	}
}

func TestTheDoubleTakesNoticesOfWhatItHoldsOnly(t *testing.T) {
	ch, _, atlas := open(t, world.ReferenceWith("XL", country.ByNumber, xx.Habits{}))
	at, err := atlas.Endpoint("XL", false)
	if err != nil {
		t.Fatal(err)
	}
	f := prepare(t, ch, draft("A-1"))
	said := xxwire.Said{Supplier: f.Supplier, Number: f.Number,
		Notice: xxwire.Notice{Key: "k", Code: "1", Source: "BUYER", Severity: "INFO"}}
	if got := post(t, at.BaseURL, said); got != http.StatusNotFound {
		t.Errorf("about nothing: %d", got)
	}
	send(t, ch, f)
	for n := range 51 {
		want := http.StatusNoContent
		if n == 50 {
			want = http.StatusConflict
		}
		said.Notice.Key = string(rune('A' + n))
		if got := post(t, at.BaseURL, said); got != want {
			t.Errorf("notice %d: %d instead of %d", n+1, got, want)
		}
	}
	said.Notice.Code = ""
	if got := post(t, at.BaseURL, said); got != http.StatusBadRequest {
		t.Errorf("without a code: %d", got)
	}
}

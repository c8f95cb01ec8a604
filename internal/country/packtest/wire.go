package packtest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// Explain is an error with its faults, one on a line each.
func Explain(err error) string {
	var told *fault.Error
	if !errors.As(err, &told) {
		return err.Error()
	}
	text := told.Error()
	for _, f := range told.Faults {
		text += "\n" + f.Field + ": " + f.Message
	}
	return text
}

// Open connects a pack to an endpoint; without an address, to nobody.
func Open(t testing.TB, pack country.Pack, at country.Endpoint) country.Channel {
	t.Helper()
	if at.BaseURL == "" {
		at = country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: &http.Client{}}
	}
	ch, err := pack.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// Prepared is the filing of a draft.
func Prepared(t testing.TB, ch country.Channel, d country.Draft) country.Filing {
	t.Helper()
	f, err := ch.Prepare(d)
	if err != nil {
		t.Fatalf("%s: %s", d.Transaction.Number, Explain(err))
	}
	return f
}

// Fronted is where a pack's double is, behind what front makes of it.
func Fronted(t *testing.T, pack country.Pack, front func(http.Handler) http.Handler) country.Endpoint {
	t.Helper()
	doubles, err := country.NewSimulators(t.TempDir(), pack)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(front(doubles))
	t.Cleanup(func() { server.Close(); _ = doubles.Close() })
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return country.Endpoint{BaseURL: server.URL + "/" + strings.ToLower(pack.Code), HTTP: client, Simulated: true}
}

// Reports are the documents of cases, and of situations that are not refused.
func Reports(t testing.TB, ch country.Channel, cases []Case, situations []Situation) (reports [][]byte) {
	t.Helper()
	for _, c := range cases {
		reports = append(reports, Prepared(t, ch, c.Draft).Report)
	}
	for _, s := range situations {
		if s.Refuse == "" {
			reports = append(reports, Prepared(t, ch, s.Draft).Report)
		}
	}
	return reports
}

// Takes judges documents by official rules: all are taken but the first, which was
// broken on purpose.
func Takes(t *testing.T, trials []Trial) {
	t.Helper()
	for i, v := range Judge(t, trials) {
		switch {
		case i == 0 && len(v.Errors) == 0:
			t.Error("the broken document is taken")
		case i > 0 && (v.Fired == 0 || len(v.Errors) > 0):
			t.Errorf("refused: %s\n%s", strings.Join(v.Texts, "\n"), trials[i].Document)
		}
	}
}

// Conform checks documents against the schemas in whose files they are listed.
func Conform(t *testing.T, bySchema map[string][][]byte) {
	t.Helper()
	for path, list := range bySchema {
		for i, err := range (XSD{Path: path}).CheckAll(t, list) {
			if err != nil {
				t.Errorf("%v\n%s", err, list[i])
			}
		}
	}
}

package lookup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/vies"
	"tributary/internal/leaks"
	"tributary/internal/lookup"
	"tributary/internal/needs"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		workUntilKilled()
		return
	}
	leaks.Main(m)
}

// manyFactor divides the sizes of the heaviest tests: the last thousands take long
// and teach little.
func manyFactor() int {
	if needs.IsLong() {
		return 1
	}
	return 10
}

// register is a simulated VIES on a real port with a client that never waits long.
type register struct {
	t      *testing.T
	server *httptest.Server
	vies   *lookup.VIES
}

func newRegister(t *testing.T, sim vies.Config, client lookup.VIESConfig) *register {
	t.Helper()
	server := httptest.NewServer(vies.New(sim))
	t.Cleanup(server.Close)
	client.BaseURL = server.URL + vies.Path
	return &register{t: t, server: server, vies: newVIES(t, client)}
}

// newVIES returns a client with short waits, unless the test sets its own.
func newVIES(t testing.TB, config lookup.VIESConfig) *lookup.VIES {
	t.Helper()
	if config.RetryBase == 0 {
		config.RetryBase = time.Millisecond
	}
	if config.RetryMax == 0 {
		config.RetryMax = 20 * time.Millisecond
	}
	vies, err := lookup.NewVIES(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vies.Close)
	return vies
}

func (r *register) do(method, path, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := r.server.Client().Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

func (r *register) script(body string) {
	r.t.Helper()
	if status, text := r.do(http.MethodPut, "/_control/vies/script", body); status != http.StatusNoContent {
		r.t.Fatalf("script: %d %s", status, text)
	}
}

// asked is the control plane's view of the questions so far.
type asked struct {
	Count    int            `json:"count"`
	Outcomes map[string]int `json:"outcomes"`
	Peak     struct {
		Global int            `json:"global"`
		States map[string]int `json:"states"`
	} `json:"peak"`
	Requests []struct {
		CountryCode string `json:"country_code"`
		VATNumber   string `json:"vat_number"`
		Outcome     string `json:"outcome"`
	} `json:"requests"`
}

func (r *register) asked() asked {
	r.t.Helper()
	_, body := r.do(http.MethodGet, "/_control/vies/requests", "")
	var a asked
	if err := json.NewDecoder(bytes.NewReader([]byte(body))).Decode(&a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

// magicRow is one line of the documented table of magic numbers.
type magicRow struct {
	outcome string
	numbers map[string]string // by country
}

// magicTable reads docs/countries/vies.md, so that the document cannot be wrong.
func magicTable(t *testing.T) []magicRow {
	t.Helper()
	text, err := os.ReadFile("../../docs/countries/vies.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []magicRow
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case strings.HasPrefix(line, "| XX |"):
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|---"):
			outcome := strings.Split(cells[1], "`")[1]
			row := magicRow{outcome, map[string]string{}}
			for i, country := range map[int]string{0: "XX", 2: "DE", 3: "IT", 4: "AT"} {
				row.numbers[country] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, row)
		}
	}
	if len(rows) != 16 {
		t.Fatalf("%d rows in the table of magic numbers", len(rows))
	}
	return rows
}

// put hands a script straight to a simulator.
func put(sim *vies.Register, script string) int {
	w := httptest.NewRecorder()
	sim.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/_control/vies/script", strings.NewReader(script)))
	return w.Code
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"tributary/internal/country/identity"
	"tributary/internal/needs"
)

// What the hostile run is: tenants who take what they can get, within the memory
// of a small container.
const (
	hostileTenants = 10
	hostileHands   = 2         // requests of one of them at the same time
	hostileMemory  = 512 << 20 // bytes resident at most
	politeEvery    = 40 * time.Millisecond
)

// TestTenHostileTenants lets ten tenants submit sales of 5,000 lines, list them,
// onboard with pictures of four megapixels and with certificates that are dear to
// open, and validate ten thousand numbers at a time, all at once. The program has
// 512 MiB and must stay below; whatever another tenant asks meanwhile is served.
// make long does it for a moment. TRIBUTARY_HOSTILE (make hostile: one minute) also judges how long that takes:
// at most twice the 99th percentile at half load.
func TestTenHostileTenants(t *testing.T) {
	lasts, judged := 10*time.Second, false
	if text := os.Getenv("TRIBUTARY_HOSTILE"); text == "" {
		needs.Long(t, "tenants who take what they can get; make hostile judges more")
	} else {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		judged = true
	}
	t.Setenv("GOMEMLIMIT", strconv.Itoa(hostileMemory/5*4)) // as withinMemory sets it in a container of that size
	s := newStage(t, fastBinary(t), 1, false)
	s.nodes[0].process.waitReady()
	land := crashCountryOf(t, "XX")
	supplier := s.onboard(land)
	polite := &visitor{stage: s, land: land, supplier: supplier}
	if judged {
		polite.loaded(lasts)
	}
	atHalf := polite.p99()
	polite.took, polite.name = nil, "polite-then"

	stop := make(chan struct{})
	var wg sync.WaitGroup
	var seen statuses
	for i := range hostileTenants {
		h := newHostile(s, fmt.Sprintf("hostile-%d", i), &seen)
		for hand := range hostileHands {
			wg.Go(func() { h.rage(hand, stop) })
		}
	}
	polite.visits(lasts)
	close(stop)
	wg.Wait()

	peak := residentPeak(t, s.nodes[0].process.cmd.Process.Pid)
	t.Logf("%d answers to hostile tenants: %s", seen.total.Load(), seen.String())
	t.Logf("another tenant: %d sales, p99 %s; at half load %s; %d MiB resident at most", len(polite.took),
		polite.p99().Round(time.Millisecond), atHalf.Round(time.Millisecond), peak>>20)
	if peak > hostileMemory {
		t.Errorf("%d MiB were resident, %d are there", peak>>20, hostileMemory>>20)
	}
	if seen.of(http.StatusAccepted) == 0 || seen.of(http.StatusOK) == 0 {
		t.Errorf("the hostile tenants did nothing: %s", seen.String())
	}
	if judged && polite.p99() > 2*atHalf {
		t.Errorf("the 99th percentile is %s, at half load it is %s", polite.p99(), atHalf)
	}
	if s.nodes[0].process.gone() {
		t.Errorf("the program ended\n%s", s.lastWords())
	}
}

// visitor is a tenant who submits a sale now and then and notes how long it takes.
type visitor struct {
	*stage
	land     crashCountry
	supplier string
	name     string
	next     atomic.Int64
	took     []time.Duration
}

func (v *visitor) one() {
	id := fmt.Sprintf("%s-%06d", v.name, v.next.Add(1))
	status, answer, err := v.post(v.nodes[0].base, "/v1/transactions", v.land.body(id, id, v.supplier, time.Now()))
	if err != nil || status != http.StatusAccepted {
		v.t.Errorf("%s: %d %s %v", id, status, answer, err)
	}
}

// visits submits at an even pace.
func (v *visitor) visits(lasts time.Duration) {
	tick := time.NewTicker(politeEvery)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		began := time.Now()
		v.one()
		v.took = append(v.took, time.Since(began))
	}
}

// loaded is visits while others ask for half of what the program settles.
func (v *visitor) loaded(lasts time.Duration) {
	v.name = "half"
	every := 2 * v.pace(v.one, &v.next)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		slots := make(chan struct{}, 64)
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				slots <- struct{}{}
				wg.Go(func() { v.one(); <-slots })
			}
		}
	})
	v.visits(lasts)
	close(stop)
	wg.Wait()
}

func (v *visitor) p99() time.Duration {
	if len(v.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v.took))
	return sorted[len(sorted)*99/100]
}

// statuses counts answers.
type statuses struct {
	total atomic.Int64
	by    [600]atomic.Int64
}

func (s *statuses) of(status int) int64 { return s.by[status].Load() }

func (s *statuses) String() string {
	var out strings.Builder
	for status := range s.by {
		if n := s.by[status].Load(); n > 0 {
			fmt.Fprintf(&out, "%d×%d ", n, status)
		}
	}
	return out.String()
}

// hostile is a tenant that takes what it can get.
type hostile struct {
	*stage
	name, key   string
	seen        *statuses
	next        atomic.Int64
	logo, dear  string
	lines, many string
}

func newHostile(s *stage, name string, seen *statuses) *hostile {
	s.t.Helper()
	h := &hostile{stage: s, name: name, seen: seen, logo: hostileLogo(), dear: dearCertificate(), key: s.newClient(name)}
	var numbers []map[string]any
	for i := range 10_000 {
		numbers = append(numbers, map[string]any{"country_iso_code": "XX", "tax_identification_number": strconv.Itoa(i)})
	}
	h.lines, h.many = hostileLines(), string(rawJSON(numbers))
	return h
}

// newClient makes a client and answers its key.
func (s *stage) newClient(name string, more ...string) string {
	s.t.Helper()
	code, out, errs := call(s.t, append([]string{"client", "create", name, "--database", s.database, "--master-key",
		s.masterKey(), "--name", name, "--country", "*=BOTH", "--json"}, more...)...)
	var made struct {
		Key string `json:"api_key"`
	}
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil {
		s.t.Fatalf("create %s: %d %s %v", name, code, errs, err)
	}
	return made.Key
}

// hostileLines are as many as a sale may have.
var hostileLines = sync.OnceValue(func() string {
	var lines []map[string]any
	for i := range 5000 {
		lines = append(lines, map[string]any{"number": i + 1, "name": fmt.Sprint("Thing ", i), "quantity": 1,
			"unit_price": 100, "tax_breakdowns": []any{map[string]any{"rate": 25, "regime": "VAT"}}})
	}
	return string(rawJSON(lines))
})

func rawJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was made here
	}
	return text
}

// hostileLogo is small as a file and takes 32 MiB to look at.
var hostileLogo = sync.OnceValue(func() string {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewNRGBA64(image.Rect(0, 0, 2048, 2048))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(file.Bytes())
})

// dearCertificate is a PKCS#12 that is as dear to open as is allowed.
var dearCertificate = sync.OnceValue(func() string {
	file, password, err := identity.Test("12345678A", "Dear", time.Now())
	if err != nil {
		panic(err)
	}
	key, leaf, err := pkcs12.Decode(file, password)
	if err != nil {
		panic(err)
	}
	again, err := pkcs12.Modern2023.WithIterations(identity.IterationsMax).Encode(key, leaf, nil, "p")
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(again)
})

// rage asks for one dear thing after another until it is stopped.
func (h *hostile) rage(hand int, stop <-chan struct{}) {
	acts := []func(id string){h.submitLarge, h.listAll, h.onboardPicture, h.submitLarge, h.onboardDear, h.validateMany,
		h.listAll, h.sendGarbage}
	for i := hand * 3; ; i++ {
		select {
		case <-stop:
			return
		default:
			acts[i%len(acts)](fmt.Sprintf("%s-%d", h.name, h.next.Add(1)))
		}
	}
}

func (h *hostile) ask(method, path, body string) {
	req, err := http.NewRequest(method, h.nodes[0].base+path, strings.NewReader(body))
	if err != nil {
		h.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	status, _, err := h.read(req)
	h.seen.total.Add(1)
	if err == nil {
		h.seen.by[status].Add(1)
	}
}

func (h *hostile) submitLarge(id string) {
	h.ask("POST", "/v1/transactions", largeSale(id, "s"))
}

// largeSale is a sale with all the lines that there may be.
func largeSale(id, supplier string) string {
	return fmt.Sprintf(`{"country_code":"XX","currency_code":"EUR","transaction_date":%q,"transaction_id":%q,"transaction_number":%q,
		"supplier":{"id":%q},"customer":{"legal_name":"Jane","type":"INDIVIDUAL"},"items":`, time.Now().UTC().Format(time.RFC3339),
		id, id, supplier) + hostileLines() + "}"
}

func (h *hostile) listAll(string) { h.ask("GET", "/v1/transactions?limit=100", "") }

func (h *hostile) company(id string, more map[string]any) {
	body := map[string]any{"meta": map[string]any{"country_code": "IE", "external_id": id}, "legal_name": "Hostile",
		"address":         map[string]any{"country_code": "IE", "city": "Dublin", "postal_code": "D1", "address_line_1": "1"},
		"tax_information": map[string]any{"tax_number": id}}
	for name, v := range more {
		body[name] = v
	}
	h.ask("POST", "/onboarding/v2/companies", string(rawJSON(body)))
}

func (h *hostile) onboardPicture(id string) {
	h.company(id, map[string]any{"branding": map[string]any{"logo_base64": h.logo}})
}

func (h *hostile) onboardDear(id string) {
	h.company(id, map[string]any{"tax_credentials": map[string]any{"certificate_base64": h.dear,
		"certificate_password": "p"}})
}

func (h *hostile) validateMany(string) {
	h.ask("POST", "/lookup/v2/batch-validations", `{"validations":`+h.many+"}")
}

func (h *hostile) sendGarbage(string) {
	h.ask("POST", "/v1/transactions",
		`{"items":`+strings.Repeat("[", 20)+strings.Repeat("0,", 400_000)+"0"+strings.Repeat("]", 20)+"}")
}

// residentPeak is the most memory that a process has had.
func residentPeak(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the peak of a process is read on Linux: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the process has no peak")
	return 0
}

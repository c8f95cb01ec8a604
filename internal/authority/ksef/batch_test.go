package ksef_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/ksef"
	"tributary/internal/needs"
	"tributary/internal/official/ksefwire"
)

// parcel is a package in the hands of a test: what is declared and what is brought.
type parcel struct {
	request map[string]any
	parts   [][]byte
}

func (c *caller) parcel(partMax int, documents ...string) parcel {
	c.t.Helper()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for i, d := range documents {
		w, err := z.Create(fmt.Sprintf("f%d.xml", i+1))
		if err == nil {
			_, err = w.Write([]byte(d))
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		c.t.Fatal(err)
	}
	return c.parcelOf(file.Bytes(), partMax)
}

func (c *caller) parcelOf(file []byte, partMax int) (p parcel) {
	sum := sha256.Sum256(file)
	size := len(file)
	var declared []any
	for ordinal := 1; len(file) > 0; ordinal++ {
		n := min(len(file), partMax)
		part := sealed(file[:n], c.key, c.iv)
		hash := sha256.Sum256(part)
		p.parts = append(p.parts, part)
		declared = append(declared, map[string]any{"ordinalNumber": ordinal, "fileSize": len(part), "fileHash": hash[:]})
		file = file[n:]
	}
	p.request = map[string]any{
		"formCode":   map[string]any{"systemCode": "FA (3)", "schemaVersion": "1-0E", "value": "FA"},
		"batchFile":  map[string]any{"fileSize": size, "fileHash": sum[:], "fileParts": declared},
		"encryption": map[string]any{"encryptedSymmetricKey": c.encrypted(string(c.key)), "initializationVector": c.iv},
	}
	return p
}

// bring opens a session for a package and brings its parts.
func (c *caller) bring(p parcel) (session string, statuses []int) {
	c.t.Helper()
	got := c.call(http.MethodPost, "/sessions/batch", p.request)
	if got.status != http.StatusCreated {
		c.t.Fatalf("%+v", got)
	}
	for i, u := range got.body["partUploadRequests"].([]any) {
		if i < len(p.parts) {
			statuses = append(statuses, c.put(u.(map[string]any), p.parts[i]).status)
		}
	}
	return got.at("referenceNumber"), statuses
}

func (c *caller) put(u map[string]any, part []byte, header ...string) said {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), u["method"].(string), u["url"].(string), bytes.NewReader(part))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range u["headers"].(map[string]any) {
		r.Header.Set(name, value.(string))
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.do(r)
}

func (c *caller) closeBatch(session string) said {
	c.t.Helper()
	return c.call(http.MethodPost, "/sessions/batch/"+session+"/close", nil)
}

// A package in parts is opened once it is closed: its good invoices have numbers,
// the others reasons, and the session comes to its end.
func TestPackageIsTakenWhenItsSessionIsClosed(t *testing.T) {
	c := newCaller(t)
	session, brought := c.bring(c.parcel(500, foreignInvoice("P/1"), foreignInvoice("P/2"), "<Faktura/>",
		foreignInvoice("P/1")))
	if len(brought) < 3 || slices.ContainsFunc(brought, func(status int) bool { return status != http.StatusCreated }) {
		t.Fatalf("%v", brought)
	}
	state := func() said { return c.call(http.MethodGet, "/sessions/"+session, nil) }
	if got := state(); got.at("status", "code") != "100" {
		t.Errorf("before: %+v", got)
	}
	if held, err := c.desk.Registrations(); err != nil || len(held) != 0 {
		t.Errorf("taken before it was closed: %v %v", held, err)
	}
	if got := c.closeBatch(session); got.status != http.StatusNoContent {
		t.Fatalf("%+v", got)
	}
	if got := state(); got.at("status", "code") != "200" || got.at("successfulInvoiceCount") != "2" ||
		got.at("failedInvoiceCount") != "2" || got.body["upo"] == nil {
		t.Errorf("after: %+v", got)
	}
	var codes []string
	for _, i := range c.call(http.MethodGet, "/sessions/"+session+"/invoices", nil).body["invoices"].([]any) {
		one := i.(map[string]any)
		codes = append(codes, fmt.Sprintf("%v %v", one["invoiceFileName"], one["status"].(map[string]any)["code"]))
	}
	if got := strings.Join(codes, ", "); got != "f1.xml 200, f2.xml 200, f3.xml 450, f4.xml 440" {
		t.Error(got)
	}
	if got := c.closeBatch(session); got.code != ksefwire.CodeSessionState {
		t.Errorf("closed twice: %+v", got)
	}
	if got := c.call(http.MethodPost, "/sessions/online/"+session+"/close", nil); got.code != ksefwire.CodeSessionUnknown {
		t.Errorf("closed as an interactive one: %+v", got)
	}
}

// A package that is declared wrongly is refused at once.
func TestPackageIsDeclaredRightly(t *testing.T) {
	c := newCaller(t)
	for name, w := range map[string]struct {
		change func(file, part map[string]any)
		code   int
	}{
		"a part of no block":    {func(_, part map[string]any) { part["fileSize"] = 17 }, ksefwire.CodePartSize},
		"a part over the limit": {func(_, part map[string]any) { part["fileSize"] = 100_000_032 }, ksefwire.CodePartSize},
		"parts of another sum":  {func(file, _ map[string]any) { file["fileSize"] = 1 }, ksefwire.CodePartSize},
		"a part's number":       {func(_, part map[string]any) { part["ordinalNumber"] = 2 }, ksefwire.CodeInput},
		"another archive":       {func(file, _ map[string]any) { file["compressionType"] = "TarGz" }, ksefwire.CodeInput},
		"a hash that is too short": {func(file, _ map[string]any) {
			file["fileHash"] = []byte("short")
		}, ksefwire.CodeInput},
		"a package without parts": {func(file, _ map[string]any) { file["fileParts"] = []any{} }, ksefwire.CodeInput},
		"fifty-one parts": {func(file, part map[string]any) {
			file["fileParts"] = slices.Repeat([]any{part}, 51)
		}, ksefwire.CodePartCount},
		"a package over five gigas": {func(file, _ map[string]any) { file["fileSize"] = 5_000_000_001 }, ksefwire.CodeInput},
	} {
		p := c.parcel(1<<20, foreignInvoice("W/1"))
		file := p.request["batchFile"].(map[string]any)
		w.change(file, file["fileParts"].([]any)[0].(map[string]any))
		if got := c.raw("/sessions/batch", p.request); got.status != http.StatusBadRequest || got.code != w.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// raw calls the double without KSeF's description between, which would refuse
// first what the double must refuse itself.
func (c *caller) raw(path string, in any) said {
	c.t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/v2"+path, bytes.NewReader(text))
	r.Header = http.Header{"Authorization": {"Bearer " + c.access}, "Content-Type": {"application/json"},
		"X-Error-Format": {"problem-details"}}
	w := httptest.NewRecorder()
	ksef.New(c.desk).ServeHTTP(w, r)
	out := said{status: w.Code, text: w.Body.String()}
	if json.Unmarshal(w.Body.Bytes(), &out.body) == nil {
		if all, ok := out.body["errors"].([]any); ok && len(all) > 0 {
			out.code = int(all[0].(map[string]any)["code"].(float64))
		}
	}
	return out
}

// What was brought must be what was declared, under the key that was sent.
func TestPackageIsWhatItWasDeclaredToBe(t *testing.T) {
	c := newCaller(t)
	p := c.parcel(1<<20, foreignInvoice("X/1"))
	spoiled := slices.Clone(p.parts[0])
	spoiled[len(spoiled)-1] ^= 1
	if session, _ := c.bring(parcel{p.request, [][]byte{p.parts[0][:32]}}); c.closeBatch(session).code !=
		ksefwire.CodePartSize {
		t.Error("a part of another size is taken")
	}
	if session, _ := c.bring(parcel{p.request, nil}); c.closeBatch(session).code != ksefwire.CodePackageEmpty {
		t.Error("a part that never came is not missed")
	}
	ends := func(p parcel) string {
		session, _ := c.bring(p)
		if got := c.closeBatch(session); got.status != http.StatusNoContent {
			t.Fatalf("%+v", got)
		}
		return c.call(http.MethodGet, "/sessions/"+session, nil).at("status", "code")
	}
	if got := ends(parcel{p.request, [][]byte{spoiled}}); got != "405" {
		t.Errorf("a part of another hash: %s", got)
	}
	otherKey := c.parcel(1<<20, foreignInvoice("X/2"))
	otherKey.request["encryption"].(map[string]any)["encryptedSymmetricKey"] = c.encrypted(strings.Repeat("x", 32))
	if got := ends(otherKey); got != "435" {
		t.Errorf("another key: %s", got)
	}
	if got := ends(c.parcelOf(bytes.Repeat([]byte("no archive "), 20), 1<<20)); got != "430" {
		t.Errorf("no archive: %s", got)
	}
	if got := ends(c.parcel(1 << 20)); got != "440" {
		t.Errorf("an empty archive: %s", got)
	}
	if got := ends(c.parcel(1<<20, "<Faktura/>")); got != "445" {
		t.Errorf("none good: %s", got)
	}
	if held, err := c.desk.Registrations(); err != nil || len(held) != 0 {
		t.Errorf("%v %v", held, err)
	}
}

// The place of a part takes it without a token, as it was declared, by its own
// address alone, and for as long as the session is open.
func TestPartsAreBroughtWithoutAToken(t *testing.T) {
	c := newCaller(t)
	p := c.parcel(1<<20, foreignInvoice("Y/1"))
	got := c.call(http.MethodPost, "/sessions/batch", p.request)
	u := got.body["partUploadRequests"].([]any)[0].(map[string]any)
	forged := maps.Clone(u)
	forged["url"] = strings.Replace(u["url"].(string), "sig=", "sig=00", 1)
	if s := c.put(u, p.parts[0], "Authorization", "Bearer "+c.access).status; s != http.StatusBadRequest {
		t.Errorf("with a token: %d", s)
	}
	if s := c.put(u, p.parts[0], "x-ms-blob-type", "").status; s != http.StatusBadRequest {
		t.Errorf("without its header: %d", s)
	}
	if s := c.put(forged, p.parts[0]).status; s != http.StatusForbidden {
		t.Errorf("forged: %d", s)
	}
	if s := c.put(u, p.parts[0]).status; s != http.StatusCreated {
		t.Errorf("right: %d", s)
	}
	if got := c.closeBatch(got.at("referenceNumber")); got.status != http.StatusNoContent {
		t.Fatalf("%+v", got)
	}
	if s := c.put(u, p.parts[0]).status; s != http.StatusForbidden {
		t.Errorf("after it was closed: %d", s)
	}
}

// Calls beyond KSeF's limits are refused with the time after which they are taken.
func TestLimitsOfCallsAreKeptAndTold(t *testing.T) {
	c := newCaller(t)
	now := time.Now()
	strict := ksef.Habits{Now: func() time.Time { return now }, Rates: ksefwire.ProductionRates()}.New(c.desk)
	call := func() (int, int) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/rate-limits", nil)
		r.Header.Set("Authorization", "Bearer "+c.access)
		w := httptest.NewRecorder()
		strict.ServeHTTP(w, r)
		seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
		return w.Code, seconds
	}
	for i := range 10 {
		if status, _ := call(); status != http.StatusOK {
			t.Fatalf("call %d of a second: %d", i+1, status)
		}
	}
	if status, wait := call(); status != http.StatusTooManyRequests || wait != 1 {
		t.Fatalf("the eleventh of a second: %d, %d", status, wait)
	}
	for range 2 {
		now = now.Add(time.Second)
		for range 10 {
			call()
		}
	}
	now = now.Add(time.Second)
	if status, wait := call(); status != http.StatusTooManyRequests || wait != 57 {
		t.Fatalf("the thirty-first of a minute: %d, %d", status, wait)
	}
	now = now.Add(57 * time.Second)
	if status, _ := call(); status != http.StatusOK {
		t.Errorf("after the wait: %d", status)
	}
}

// A public client sends a package in parts, waits for it and reads what became
// of its invoices; each of its calls, and each answer, is one of KSeF's description.
func TestPublicClientSendsAPackage(t *testing.T) {
	folder := needs.Npm(t, "ksef-clients")
	o := newOffice(t)
	dir := t.TempDir()
	args := []string{"testdata/clients/batch.mjs", folder, o.URL + "/pl", nip,
		"20251006-EC-0123456789-ABCDEF0123-4A|nip-" + nip + "|" + strings.Repeat("ab", 32)}
	for i := range 3 {
		file := filepath.Join(dir, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(file, []byte(foreignInvoice(fmt.Sprintf("PACZKA/%d", i))), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "node", args...)
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, told.String())
	}
	var got struct {
		Parts, Status, Good, Failed int
		Listed                      []string
		UPO                         string
		Sessions                    bool
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Parts < 2 || got.Status != 200 || got.Good != 3 || got.Failed != 0 || !got.Sessions ||
		!strings.Contains(got.UPO, "PACZKA/2") ||
		strings.Join(got.Listed, ", ") != "invoice-1.xml 200, invoice-2.xml 200, invoice-3.xml 200" {
		t.Errorf("%+v", got)
	}
	for _, operation := range []string{"POST /sessions/batch", "POST /sessions/batch/{referenceNumber}/close"} {
		if !o.described.Seen()[operation] {
			t.Errorf("it did not call %s", operation)
		}
	}
}

package files_test

import (
	"context"
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/mutate"
	"tributary/internal/secret"
)

var addressForm = regexp.MustCompile(
	`^https://docs\.example/invoicing/v1/invoices/([0-9a-f]{32})/(pdf|xml|json)\?exp=([0-9]+)&kid=([0-9a-f]{8})&sig=([A-Za-z0-9_-]{43})$`)

// ask takes an address apart as the router does.
func ask(t testing.TB, address string) files.Request {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	parts := strings.Split(u.Path, "/")
	return files.Request{ResourceID: parts[len(parts)-2], Format: parts[len(parts)-1], Query: u.Query()}
}

func TestAnAddressOpensItsDocumentUntilItExpires(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := openShop(t, d)
		a := s.issue("client", "op", []byte("%PDF-1.7"))
		address := s.URL(a)
		m := addressForm.FindStringSubmatch(address)
		if m == nil || m[1] != a.ResourceID || m[2] != "pdf" {
			t.Fatalf("address %s", address)
		}
		exp, err := strconv.ParseInt(m[3], 10, 64)
		must(t, err)
		if want := s.clock.now().Add(15 * time.Minute).Unix(); exp != want {
			t.Errorf("expires at %d, want %d", exp, want)
		}
		req := ask(t, address)
		s.clock.set(time.Unix(exp, 0)) // at the limit
		if _, err := s.Open(context.Background(), req); err != nil {
			t.Errorf("refused at the last instant: %v", err)
		}
		s.clock.pass(time.Microsecond) // past it
		_, err = s.Open(context.Background(), req)
		wantKind(t, err, fault.Expired)
		if _, err := s.Open(context.Background(), ask(t, s.URL(a))); err != nil {
			t.Errorf("a fresh address is refused: %v", err)
		}
		req.ClientID = "client" // with the owner's key an expired address works, too
		if _, err := s.Open(context.Background(), req); err != nil {
			t.Errorf("refused with the owner's key: %v", err)
		}
	})
}

func TestAnAddressLivesAtLeastItsTTL(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.TTL = time.Second })
	a := s.issue("client", "op", []byte("x"))
	s.clock.pass(999 * time.Millisecond)
	req := ask(t, s.URL(a))
	s.clock.pass(time.Second)
	if _, err := s.Open(context.Background(), req); err != nil {
		t.Errorf("refused within its time: %v", err)
	}
	s.clock.pass(2 * time.Millisecond)
	_, err := s.Open(context.Background(), req)
	wantKind(t, err, fault.Expired)
}

func TestEveryCallGivesAnAddressOfItsOwnTime(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	a := s.issue("client", "op", []byte("x"))
	before := s.URL(a)
	s.clock.pass(time.Second)
	if s.URL(a) == before {
		t.Error("the address is not fresh")
	}
}

func TestAddressesOutliveARotationOfTheKey(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	old, fresh := secret.FromText(strings.Repeat("k", 32)), secret.FromText(strings.Repeat("n", 32))
	a := s.issue("client", "op", []byte("x"))
	req := ask(t, s.URL(a))
	rotated := s.open(func(c *files.Config) { c.SigningKey, c.PreviousKey = fresh, old })
	if _, err := rotated.Open(context.Background(), req); err != nil {
		t.Errorf("refused after a rotation: %v", err)
	}
	next := ask(t, rotated.URL(a))
	if next.Query.Get("kid") == req.Query.Get("kid") {
		t.Error("both keys have one kid")
	}
	dropped := s.open(func(c *files.Config) { c.SigningKey = fresh })
	_, err := dropped.Open(context.Background(), req)
	wantKind(t, err, fault.Forbidden)
	if _, err := dropped.Open(context.Background(), next); err != nil {
		t.Errorf("the new key's address is refused: %v", err)
	}
	// One key's signature under the other's name.
	next.Query.Set("kid", req.Query.Get("kid"))
	_, err = rotated.Open(context.Background(), next)
	wantKind(t, err, fault.Forbidden)
}

// What an address names cannot be exchanged for anything else that exists.
func TestAnAddressOpensNothingButItsOwnDocument(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	mine, other := s.issue("a", "1", []byte("mine")), s.issue("b", "2", []byte("other"))
	report := files.NewFile([]byte("<r/>"))
	s.records["1REPORT"] = report.Bytes
	must(t, s.attach(files.Attachment{ClientID: "a", OperationID: "1", Kind: "REPORT", Type: "XML", Place: files.InRecord,
		SHA256: report.SHA256, Size: report.Size}))
	own, foreign, xml := ask(t, s.URL(mine)), ask(t, s.URL(other)), ask(t, s.URL(s.of("a", "1")[1]))
	for name, req := range map[string]files.Request{
		"another resource":  {ResourceID: foreign.ResourceID, Format: "pdf", Query: own.Query},
		"own other file":    {ResourceID: xml.ResourceID, Format: "xml", Query: own.Query},
		"another format":    {ResourceID: own.ResourceID, Format: "xml", Query: own.Query},
		"no format":         {ResourceID: own.ResourceID, Query: own.Query},
		"unknown resource":  {ResourceID: strings.Repeat("0", 32), Format: "pdf", Query: own.Query},
		"upper case":        {ResourceID: strings.ToUpper(own.ResourceID), Format: "pdf", Query: own.Query},
		"upper case format": {ResourceID: own.ResourceID, Format: "PDF", Query: own.Query},
		"empty resource":    {Format: "pdf", Query: own.Query},
		"no query":          {ResourceID: own.ResourceID, Format: "pdf"},
	} {
		_, err := s.Open(context.Background(), req)
		if fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A signature for other bytes, or another owner, of the same resource.
	for _, change := range []func(*files.Attachment){
		func(a *files.Attachment) { a.SHA256 = other.SHA256 },
		func(a *files.Attachment) { a.ClientID = "b" },
	} {
		lie := mine
		change(&lie)
		_, err := s.Open(context.Background(), ask(t, s.URL(lie)))
		wantKind(t, err, fault.Forbidden)
	}
}

func TestAnotherSpellingOfTheSignatureIsForbidden(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	req := ask(t, s.URL(s.issue("a", "1", []byte("x"))))
	sig := req.Query.Get("sig")
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	must(t, err)
	refused := 0
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		spelling := sig[:42] + string(last)
		if again, err := base64.RawURLEncoding.DecodeString(spelling); err != nil || string(again) != string(raw) ||
			spelling == sig {
			continue // only those that decode alike
		}
		req.Query.Set("sig", spelling)
		_, err := s.Open(context.Background(), req)
		wantKind(t, err, fault.Forbidden)
		refused++
	}
	if refused != 3 {
		t.Errorf("tried %d spellings, want 3", refused)
	}
}

// A client's name may hold anything; no two lists of parts are signed alike.
func TestPartsOfTheSignatureCannotFlowIntoEachOther(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	a := files.Attachment{ClientID: "a", ResourceID: "b" + strings.Repeat("0", 31), SHA256: "c", Type: "PDF"}
	b := files.Attachment{ClientID: "ab", ResourceID: strings.Repeat("0", 31), SHA256: "c", Type: "PDF"}
	if ask(t, s.URL(a)).Query.Get("sig") == ask(t, s.URL(b)).Query.Get("sig") {
		t.Error("two lists of parts have one signature")
	}
}

// twisted changes one thing of a request.
func twisted(t *rapid.T, req files.Request) files.Request {
	q := url.Values{}
	for name, values := range req.Query {
		q[name] = append([]string(nil), values...)
	}
	req.Query = q
	name := rapid.SampledFrom([]string{"exp", "kid", "sig"}).Draw(t, "parameter")
	switch rapid.IntRange(0, 6).Draw(t, "mutation") {
	case 0:
		q.Set(name, alter(t, q.Get(name)))
	case 1:
		q.Del(name)
	case 2:
		q.Add(name, rapid.SampledFrom([]string{q.Get(name), "", "0"}).Draw(t, "second"))
	case 3:
		q.Set(rapid.StringMatching(`[a-z]{1,4}`).Filter(func(s string) bool { return !q.Has(s) }).Draw(t, "extra"), "1")
	case 4:
		req.ResourceID = alter(t, req.ResourceID)
	case 5:
		req.Format = alter(t, req.Format)
	case 6:
		q.Set(name, rapid.String().Filter(func(s string) bool { return s != q.Get(name) }).Draw(t, "anything"))
	}
	return req
}

// alter changes, adds or removes one byte of a text.
func alter(t *rapid.T, text string) string {
	at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
	switch rapid.IntRange(0, 2).Draw(t, "change") {
	case 0:
		return text[:at] + text[at+1:]
	case 1:
		return text[:at] + string(rapid.Byte().Draw(t, "byte")) + text[at:]
	}
	b := []byte(text)
	b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	return string(b)
}

func TestAnyMutationOfAnAddressIsForbidden(t *testing.T) {
	t.Parallel()
	s := openShop(t, dbtest.SQLite(t))
	genuine := ask(t, s.URL(s.issue("client", "op", []byte("x"))))
	rapid.Check(t, func(t *rapid.T) {
		req := twisted(t, genuine)
		if _, err := s.Open(context.Background(), req); err == nil || fault.KindOf(err) != fault.Forbidden {
			t.Fatalf("%+v: %v", req, err)
		}
	})
	if _, err := s.Open(context.Background(), genuine); err != nil {
		t.Errorf("the genuine one: %v", err)
	}
}

// FuzzAddress throws any path and query at the door: it opens for the genuine
// address only, and never breaks.
func FuzzAddress(f *testing.F) {
	s := openShop(f, dbtest.SQLite(f))
	a := s.issue("client", "op", []byte("x"))
	genuine := ask(f, s.URL(a))
	query := genuine.Query.Encode()
	for _, q := range []string{query, query + "&exp=1", "exp=0&kid=&sig=", "",
		strings.Replace(query, "exp=", "exp=%2b", 1), "exp=99999999999999999999&kid=x&sig=y", "%zz;&&=", query + "&%zz"} {
		f.Add(a.ResourceID, "pdf", q)
	}
	f.Add("../../etc/passwd", "pdf", query)
	f.Add(strings.ToUpper(a.ResourceID), "PDF", query)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, id, format, raw string) {
		q, _ := url.ParseQuery(raw) // as net/http does: what cannot be read is left out
		_, err := s.Open(context.Background(), files.Request{ResourceID: id, Format: format, Query: q})
		if id == genuine.ResourceID && format == "pdf" && q.Encode() == query {
			if err != nil {
				t.Fatalf("the genuine address is refused: %v", err)
			}
			return
		}
		if err == nil || fault.KindOf(err) != fault.Forbidden {
			t.Fatalf("%q %q %q: %v", id, format, raw, err)
		}
	})
}

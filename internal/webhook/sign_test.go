package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"tributary/internal/guard"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/secret"
	"tributary/internal/webhook"
)

func TestBodyIsTheSpecifiedOneByteForByte(t *testing.T) {
	t.Parallel()
	n := notification(time.Date(2026, 3, 1, 23, 4, 5, 999_999_999, time.FixedZone("east", 2*3600)))
	n.ResourceURL += "?a=1&b=<2>"
	p := must(webhook.Pack(n, webhook.Keys{Current: key("k1")}))(t)
	want := `{"event_type":"transactions.transaction_completed","delivered_at":"2026-03-01T21:04:05Z",` +
		`"resource_id":"0197f0a0-0000-7000-8000-000000000001",` +
		`"resource_url":"https://api.example/v1/transactions/0197f0a0-0000-7000-8000-000000000001?a=1&b=<2>",` +
		`"webhook_id":"0123456789abcdef0123456789abcdef01234567"}`
	if string(p.Body) != want {
		t.Errorf("body\n%s\nwant\n%s", p.Body, want)
	}
	if p.KeyID != "k1" || p.SignatureNext != "" {
		t.Errorf("key %q, next %q", p.KeyID, p.SignatureNext)
	}
}

// The vectors were made with: printf %s BODY | openssl dgst -sha256 -hmac KEY
func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ key, body, want string }{
		{"key", "The quick brown fox jumps over the lazy dog",
			"f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"},
		// RFC 4231, case 2
		{"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		// RFC 4231, case 1
		{strings.Repeat("\x0b", 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		// case 6
		{strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	} {
		_, err := webhook.Verify([]byte(v.body), v.want, secret.FromText(v.key), webhook.Freshness{})
		if !errors.Is(err, webhook.ErrBody) { // believed, though it is no notification
			t.Errorf("%q with %s: %v", v.body, v.want, err)
		}
		_, err = webhook.Verify([]byte(v.body), "0"+v.want[1:], secret.FromText(v.key), webhook.Freshness{})
		if v.want[0] != '0' && !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%q with a changed digit: %v", v.body, err)
		}
	}
}

func TestVerifyBelievesOnlyTheSignedBytesInTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := must(webhook.Pack(notification(at), webhook.Keys{Current: key("k1")}))(t)
	within := func(d time.Duration) webhook.Freshness {
		return webhook.Freshness{Now: at.Add(d), Max: 5 * time.Minute}
	}
	signed := func(body string) string { return sign(t, []byte(body)) }
	body := string(p.Body)
	late := strings.Replace(body, "12:00:00Z", "12:00:00.0Z", 1)
	noID := strings.Replace(body, "0123456789abcdef01", "0123456789ABCDEF01", 1)
	for _, c := range []struct {
		name, body, signature string
		key                   secret.Secret
		fresh                 webhook.Freshness
		want                  error
	}{
		{"as sent", body, p.Signature, keyText("k1"), within(0), nil},
		{"blanks around the header", body, " " + p.Signature + "\t", keyText("k1"), within(0), nil},
		{"upper-case hex", body, strings.ToUpper(p.Signature), keyText("k1"), within(0), nil},
		{"exactly as old as allowed", body, p.Signature, keyText("k1"), within(5 * time.Minute), nil},
		{"a second older", body, p.Signature, keyText("k1"), within(5*time.Minute + time.Second), webhook.ErrStale},
		{"from the future, allowed", body, p.Signature, keyText("k1"), within(-5 * time.Minute), nil},
		{"from the future, too far", body, p.Signature, keyText("k1"), within(-5*time.Minute - time.Second),
			webhook.ErrStale},
		{"age not asked", body, p.Signature, keyText("k1"), webhook.Freshness{}, nil},
		{"another key", body, p.Signature, keyText("k2"), within(0), webhook.ErrSignature},
		{"no key", body, emptyKeySignature(body), secret.Secret{}, within(0), webhook.ErrSignature},
		{"no signature", body, "", keyText("k1"), within(0), webhook.ErrSignature},
		{"half a signature", body, p.Signature[:32], keyText("k1"), within(0), webhook.ErrSignature},
		{"not hex", body, "z" + p.Signature[1:], keyText("k1"), within(0), webhook.ErrSignature},
		{"a byte appended", body + "\n", p.Signature, keyText("k1"), within(0), webhook.ErrSignature},
		{"a byte changed", strings.Replace(body, "_completed", "_Completed", 1), p.Signature, keyText("k1"), within(0),
			webhook.ErrSignature},
		{"stale and forged is forged", body, p.Signature, keyText("k2"), within(time.Hour), webhook.ErrSignature},
		{"signed but no JSON", "hello", signed("hello"), keyText("k1"), within(0), webhook.ErrBody},
		{"signed but loose time", late, signed(late), keyText("k1"), within(0), webhook.ErrBody},
		{"signed but odd id", noID, signed(noID), keyText("k1"), within(0), webhook.ErrBody},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := webhook.Verify([]byte(c.body), c.signature, c.key, c.fresh)
			if !errors.Is(err, c.want) {
				t.Fatalf("Verify: %v, want %v", err, c.want)
			}
			if err == nil && n != notification(at) {
				t.Errorf("notification %+v", n)
			}
		})
	}
}

func TestReceiverWithEitherKeyIsServedThroughARotation(t *testing.T) {
	t.Parallel()
	older, newer := key("k1"), key("k2")
	for _, stage := range []struct {
		name         string
		keys         webhook.Keys
		older, newer bool
	}{
		{"before rotate", webhook.Keys{Current: older}, true, false},
		{"rotated", webhook.Keys{Current: older, Next: newer}, true, true},
		{"promoted", webhook.Keys{Current: newer, Next: older}, true, true},
		{"older revoked", webhook.Keys{Current: newer}, false, true},
	} {
		p := must(webhook.Pack(notification(time.Now()), stage.keys))(t)
		h := http.Header{}
		h.Set(webhook.HeaderSignature, p.Signature)
		if p.SignatureNext != "" {
			h.Set(webhook.HeaderSignatureNext, p.SignatureNext)
		}
		for _, r := range []struct {
			key  webhook.Key
			want bool
		}{{older, stage.older}, {newer, stage.newer}, {key("k3"), false}} {
			if _, err := webhook.VerifyHeaders(p.Body, webhook.Signed{Header: h}, r.key.Text,
				webhook.Freshness{}); (err == nil) != r.want {
				t.Errorf("%s: receiver with %s: %v", stage.name, r.key.ID, err)
			}
		}
		if p.KeyID != stage.keys.Current.ID {
			t.Errorf("%s: recorded key %s", stage.name, p.KeyID)
		}
	}
}

func TestPackRefusesWhatNoReceiverCouldUse(t *testing.T) {
	t.Parallel()
	good := notification(time.Now())
	for name, change := range map[string]func(*webhook.Notification, *webhook.Keys){
		"short id":      func(n *webhook.Notification, _ *webhook.Keys) { n.WebhookID = n.WebhookID[1:] },
		"long id":       func(n *webhook.Notification, _ *webhook.Keys) { n.WebhookID += "0" },
		"upper-case id": func(n *webhook.Notification, _ *webhook.Keys) { n.WebhookID = strings.ToUpper(n.WebhookID) },
		"no event":      func(n *webhook.Notification, _ *webhook.Keys) { n.EventType = "" },
		"no resource":   func(n *webhook.Notification, _ *webhook.Keys) { n.ResourceID = "" },
		"no url":        func(n *webhook.Notification, _ *webhook.Keys) { n.ResourceURL = "" },
		"no time":       func(n *webhook.Notification, _ *webhook.Keys) { n.DeliveredAt = time.Time{} },
		"year 10000": func(n *webhook.Notification, _ *webhook.Keys) {
			n.DeliveredAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"no key": func(_ *webhook.Notification, k *webhook.Keys) { k.Current = webhook.Key{ID: "k1"} },
	} {
		n, k := good, webhook.Keys{Current: key("k1")}
		change(&n, &k)
		if p, err := webhook.Pack(n, k); err == nil {
			t.Errorf("%s was packed: %s", name, p.Body)
		}
	}
}

func TestDeliveredAtNeverGoesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		previous := time.Unix(0, 0)
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, ms := range rapid.SliceOfN(rapid.Int64Range(-3_600_000, 3_600_000), 1, 21).Draw(t, "clock") {
			now := base.Add(time.Duration(ms) * time.Millisecond)
			at := webhook.DeliveredAt(now, previous)
			if at.Before(previous) || at.Nanosecond() != 0 || at.Location() != time.UTC {
				t.Fatalf("%s after %s", at, previous)
			}
			if now.Sub(previous) >= time.Second && now.Sub(at) >= time.Second {
				t.Fatalf("%s at %s", at, now)
			}
			previous = at
		}
	})
}

func TestIDsAreFortyHexAndDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := webhook.NewID()
		if !webhook.ValidID(id) || len(id) != 40 || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

func FuzzVerify(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	p, err := webhook.Pack(notification(time.Unix(1_800_000_000, 0)), webhook.Keys{Current: key("k1")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p.Body, p.Signature)
	f.Add([]byte("{}"), "")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		if _, err := webhook.Verify(body, signature, keyText("k1"),
			webhook.Freshness{}); err == nil && !strings.EqualFold(strings.TrimSpace(signature), sign(t, body)) {
			t.Fatalf("believed %q with %q", body, signature)
		}
		// A body that is signed and accepted comes back the same when packed again.
		n, err := webhook.Verify(body, sign(t, body), keyText("k1"), webhook.Freshness{})
		if err != nil {
			return
		}
		again, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var back webhook.Notification
		if err := json.Unmarshal(again, &back); err != nil || back != n {
			t.Fatalf("%+v became %+v: %v", n, back, err)
		}
	})
}

func sign(t testing.TB, body []byte) string {
	t.Helper()
	return must(secret.HMACHex(keyText("k1"), body))(t)
}

// emptyKeySignature is what anybody could forge if an empty key were accepted.
func emptyKeySignature(body string) string {
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// TestStandardWebhooksAreVerifiedByTheirOwnLibrary: whoever has one of the
// secrets is served, with the library that the standard's authors publish.
func TestStandardWebhooksAreVerifiedByTheirOwnLibrary(t *testing.T) {
	t.Parallel()
	ca := must(newAuthority())(t)
	got := make(chan *http.Request, 1)
	bodies := make(chan []byte, 1)
	server := serveTLS(t, ca, "127.0.0.1:0", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r
		bodies <- body
	}), "127.0.0.1")
	s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}), Roots: roots(t, ca)})
	older, newer, stranger := secret.NewWebhookSecret(), secret.NewWebhookSecret(), secret.NewWebhookSecret()
	keys := webhook.Keys{Current: key("k1"), Next: key("k2"), Header: "Acme-Signature",
		Standard: []secret.WebhookSecret{older, newer}}
	note := notification(time.Now())
	if try := s.Send(t.Context(), server.URL, must(webhook.Pack(note, keys))(t)); !try.Delivered() {
		t.Fatalf("%+v", try)
	}
	r, body := <-got, <-bodies
	for name, c := range map[string]struct {
		secret secret.WebhookSecret
		body   string
		ok     bool
	}{
		"older": {older, string(body), true}, "newer": {newer, string(body), true},
		"a stranger's": {stranger, string(body), false}, "changed": {newer, string(body) + " ", false},
	} {
		verifier := must(standardwebhooks.NewWebhook(c.secret.Text().RevealText()))(t)
		if err := verifier.Verify([]byte(c.body), r.Header); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.Header.Get("webhook-id") != note.WebhookID ||
		r.Header.Get("webhook-timestamp") != strconv.FormatInt(note.DeliveredAt.Unix(), 10) {
		t.Errorf("headers %v", r.Header)
	}
	// The client's own name for the signature of its API key, and its partner.
	for _, k := range []webhook.Key{keys.Current, keys.Next} {
		if _, err := webhook.VerifyHeaders(body, webhook.Signed{Header: r.Header, Name: "Acme-Signature"}, k.Text,
			webhook.Freshness{}); err != nil {
			t.Errorf("%s: %v", k.ID, err)
		}
	}
	if r.Header.Get("Acme-Signature-Next") == "" || r.Header.Get(webhook.HeaderSignature) != "" ||
		r.Header.Get(webhook.HeaderSignatureNext) != "" {
		t.Errorf("headers %v", r.Header)
	}
	// Without a secret of its own a client's notifications do not look like Standard Webhooks.
	if try := s.Send(t.Context(), server.URL, parcel(t)); !try.Delivered() {
		t.Fatalf("%+v", try)
	}
	r, _ = <-got, <-bodies
	for _, name := range []string{webhook.HeaderStandardID, webhook.HeaderStandardTimestamp,
		webhook.HeaderStandardSignature} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s is %q", name, r.Header.Get(name))
		}
	}
}

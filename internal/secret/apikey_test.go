package secret_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/mutate"
	"tributary/internal/secret"
)

// The form as the specification writes it, used as the oracle of the parser.
var keyForm = regexp.MustCompile(`\Atrb_(test|live)_([a-z0-9]{1,16})_([A-Za-z0-9-]{43,128})\z`)

func TestNewKeysHaveTheFormAndAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	letters := map[rune]int{}
	for i := range 2000 {
		key := secret.NewAPIKey(i%2 == 0)
		text := key.Text().RevealText()
		m := keyForm.FindStringSubmatch(text)
		if m == nil || (m[1] == "live") != key.Live() || m[2] != key.Kid() || len(m[3]) != 43 {
			t.Fatalf("key %d has not the form", i)
		}
		if seen[m[2]] || seen[m[3]] {
			t.Fatal("a kid or secret came twice")
		}
		seen[m[2]], seen[m[3]] = true, true
		for _, r := range m[3] {
			letters[r]++
		}
		again, err := secret.ParseAPIKey(text)
		if err != nil || again.Kid() != key.Kid() || again.Live() != key.Live() || again.Digest() != key.Digest() {
			t.Fatalf("a new key does not parse back: %v", err)
		}
	}
	// 86,000 letters over 62: mean 1387, standard deviation 37. A remainder
	// instead of rejection would put the first letters a quarter above.
	if len(letters) != 62 {
		t.Errorf("%d letters are used, want 62", len(letters))
	}
	for r, n := range letters {
		if n < 1387-7*37 || n > 1387+7*37 {
			t.Errorf("letter %q came %d times", r, n)
		}
	}
}

func TestParseAtAndPastEveryLimit(t *testing.T) {
	s := func(n int) string { return strings.Repeat("Z", n) }
	good := []string{
		"trb_test_a_" + s(43), "trb_live_a_" + s(43), "trb_test_" + strings.Repeat("k", 16) + "_" + s(128),
		"trb_test_0_" + s(42) + "-", "trb_live_z9_" + "-" + s(42), "trb_test_demo_" + strings.Repeat("aZ9-", 11),
	}
	for _, text := range good {
		if key, err := secret.ParseAPIKey(text); err != nil || key.Text().RevealText() != text {
			t.Errorf("refused %s: %v", text, err)
		}
	}
	bad := map[string]string{
		"empty": "", "secret of 42": "trb_test_a_" + s(42), "secret of 129": "trb_test_a_" + s(129),
		"no kid": "trb_test__" + s(43), "no kid, long secret": "trb_test__" + s(60),
		"kid of 17": "trb_test_" + strings.Repeat("k", 17) + "_" + s(43),
		"no secret": "trb_test_" + strings.Repeat("a", 60), "upper-case kid": "trb_test_A_" + s(43),
		"kid with dash": "trb_test_a-b_" + s(43), "underscore in secret": "trb_test_a_" + s(30) + "_" + s(30),
		"other environment": "trb_prod_a_" + s(43), "upper-case prefix": "TRB_test_a_" + s(43),
		"leading space": " trb_test_a_" + s(43), "trailing space": "trb_test_a_" + s(43) + " ",
		"line break": "trb_test_a_" + s(43) + "\n", "NUL": "trb_test_a_" + s(43) + "\x00",
		"two-byte letter": "trb_test_a_" + s(43) + "é", "plus": "trb_test_a_" + s(43) + "+",
		"slash": "trb_test_a_/" + s(43), "at sign (before A)": "trb_test_a_@" + s(43),
		"bracket (after Z)": "trb_test_a_[" + s(43), "backtick (before a)": "trb_test_`_" + s(43),
		"brace (after z)": "trb_test_{_" + s(43), "colon (after 9)": "trb_test_:_" + s(43),
		"prefix only": "trb_test_", "a megabyte": "trb_test_a_" + s(1<<20),
	}
	for name, text := range bad {
		key, err := secret.ParseAPIKey(text)
		if !errors.Is(err, secret.ErrKeyMalformed) || err.Error() != secret.ErrKeyMalformed.Error() {
			t.Errorf("%s: %v", name, err)
		}
		if key.Kid() != "" || !key.Text().IsZero() || key.Live() {
			t.Errorf("%s: a refused key has parts", name)
		}
	}
}

func TestDigestIsTheHashOfTheSecretPartAlone(t *testing.T) {
	part := strings.Repeat("aB3-", 11)
	want := sha256.Sum256([]byte(part))
	for _, text := range []string{"trb_test_one_" + part, "trb_live_two_" + part} {
		key, err := secret.ParseAPIKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if key.Digest() != want || !key.Matches(want[:]) {
			t.Error("the digest is not the SHA-256 of the secret part")
		}
		for i := range want {
			other := want
			other[i] ^= 1
			if key.Matches(other[:]) {
				t.Fatalf("byte %d of the digest is not compared", i)
			}
		}
		for _, wrong := range [][]byte{nil, {}, want[:31], append(want[:], 0)} {
			if key.Matches(wrong) {
				t.Errorf("matches a digest of %d bytes", len(wrong))
			}
		}
	}
}

func TestAZeroOrWipedKeyMatchesNothing(t *testing.T) {
	empty, zero := sha256.Sum256(nil), [32]byte{}
	wiped := secret.NewAPIKey(true)
	digest := wiped.Digest()
	wiped.Text().Wipe()
	for _, key := range []secret.APIKey{{}, wiped} {
		if key.Matches(empty[:]) || key.Matches(zero[:]) || key.Matches(digest[:]) || key.Matches(nil) {
			t.Error("an empty key matches")
		}
	}
}

func TestAPIKeyPrintsItsKidOnly(t *testing.T) {
	key, err := secret.ParseAPIKey("trb_live_k1_" + strings.Repeat("S3cret-", 7))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != `{"key":"trb_live_k1_[redacted]"}` {
		t.Errorf("JSON: %s", out)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(format, key); got != "trb_live_k1_[redacted]" {
			t.Errorf("%s: %s", format, got)
		}
		mustNotShow(t, format, fmt.Sprintf(format, struct{ k secret.APIKey }{key}), "S3cret-")
	}
}

func TestParserAgreesWithTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`trb_(test|live)_[a-z0-9]{1,16}_[A-Za-z0-9-]{43,128}`),
			rapid.StringMatching(`trb_(test|live|demo)_[a-zA-Z0-9_-]{0,18}_[A-Za-z0-9_+-]{41,131}`),
			rapid.String(),
		).Draw(t, "text")
		agree(t, text)
	})
}

type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

func agree(t reporter, text string) {
	t.Helper()
	key, err := secret.ParseAPIKey(text)
	m := keyForm.FindStringSubmatch(text)
	if (m != nil) != (err == nil) {
		t.Fatalf("form says %t, parser says %v", m != nil, err)
	}
	if m == nil {
		return
	}
	if key.Kid() != m[2] || key.Live() != (m[1] == "live") || key.Text().RevealText() != text ||
		key.Digest() != sha256.Sum256([]byte(m[3])) {
		t.Fatalf("the parts of a valid key are wrong")
	}
}

func FuzzParseAPIKey(f *testing.F) {
	f.Add("")
	f.Add("trb_test_a_" + strings.Repeat("Z", 43))
	f.Add("trb_live_" + strings.Repeat("0", 16) + "_" + strings.Repeat("-", 128))
	f.Add("trb_live_" + strings.Repeat("0", 17) + "_" + strings.Repeat("-", 129))
	f.Add("trb_test_é_" + strings.Repeat("Z", 43))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) { agree(t, text) })
}

func BenchmarkAuthenticate(b *testing.B) {
	key := secret.NewAPIKey(true)
	text, digest := key.Text().RevealText(), key.Digest()
	b.ReportAllocs()
	for b.Loop() {
		k, err := secret.ParseAPIKey(text)
		if err != nil || !k.Matches(digest[:]) {
			b.Fatal("does not match")
		}
	}
}

func BenchmarkHMACHex(b *testing.B) {
	key, body := secret.NewAPIKey(true).Text(), make([]byte, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := secret.HMACHex(key, body); err != nil {
			b.Fatal(err)
		}
	}
}

package secret_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/secret"
)

// The example that the specification of Standard Webhooks and its libraries share.
func TestWebhookSecretSignsTheKnownExample(t *testing.T) {
	s, err := secret.ParseWebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if _, err := (secret.WebhookSecret{}).Sign("a", "b", "c"); err == nil {
		t.Error("no secret signs")
	}
}

func TestWebhookSecretsAreReadStrictlyAndNeverShown(t *testing.T) {
	text := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for given, ok := range map[string]bool{
		text(24): true, text(64): true, text(23): false, text(65): false, "": false, "whsec_": false, text(32)[6:]: false,
		"WHSEC_" + text(32)[6:]: false, text(32) + "\n": false, text(32) + " ": false,
		strings.TrimRight(text(32), "="): false, "trb_test_" + strings.Repeat("a", 50): false,
	} {
		s, err := secret.ParseWebhookSecret(given)
		if (err == nil) != ok || ok && s.Text().RevealText() != given {
			t.Errorf("%q: %v", given, err)
		}
		if err != nil && len(given) > 10 && strings.Contains(err.Error(), given[6:]) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
	one, other := secret.NewWebhookSecret(), secret.NewWebhookSecret()
	if one.Text().Equal(other.Text()) || one.Digest() == other.Digest() {
		t.Error("two secrets are alike")
	}
	if again, err := secret.ParseWebhookSecret(one.Text().RevealText()); err != nil || again.Digest() != one.Digest() {
		t.Errorf("a made secret does not read: %v", err)
	}
	for _, shown := range []string{fmt.Sprint(one), fmt.Sprintf("%v %+v %#v %s", one, one, one, one)} {
		if strings.Contains(shown, one.Text().RevealText()[6:]) {
			t.Errorf("shown as %s", shown)
		}
	}
}

func FuzzParseWebhookSecret(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Add("whsec_====")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := secret.ParseWebhookSecret(text)
		if err != nil {
			return
		}
		again, err := secret.ParseWebhookSecret(s.Text().RevealText())
		if err != nil || s.Text().RevealText() != text || again.Digest() != s.Digest() {
			t.Fatalf("%q reads differently the second time: %v", text, err)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(key) < 24 || len(key) > 64 {
			t.Fatalf("%q is no secret: %d bytes, %v", text, len(key), err)
		}
	})
}

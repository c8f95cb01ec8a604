package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// The form of a secret of Standard Webhooks (specification 1.0, "Signature
// scheme"): the prefix, then 24 to 64 bytes in base64.
const (
	webhookSecretPrefix   = "whsec_"
	webhookSecretBytes    = 32
	webhookSecretBytesMin = 24
	webhookSecretBytesMax = 64
)

// WebhookSecret signs notifications as Standard Webhooks and can do nothing else.
type WebhookSecret struct {
	text Secret
	key  Secret
}

// NewWebhookSecret makes a random one.
func NewWebhookSecret() WebhookSecret {
	var b [webhookSecretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the program instead
	return WebhookSecret{FromText(webhookSecretPrefix + base64.StdEncoding.EncodeToString(b[:])), New(b[:])}
}

// ParseWebhookSecret reads the text of one. The error does not repeat it.
func ParseWebhookSecret(text string) (WebhookSecret, error) {
	rest, ok := strings.CutPrefix(text, webhookSecretPrefix)
	if !ok {
		return WebhookSecret{}, fmt.Errorf("read a webhook secret: it does not begin with %s", webhookSecretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil || strings.ContainsAny(rest, "\r\n") { // which the decoder skips
		return WebhookSecret{}, fmt.Errorf("read a webhook secret: what follows %s is not base64", webhookSecretPrefix)
	}
	if len(key) < webhookSecretBytesMin || len(key) > webhookSecretBytesMax {
		return WebhookSecret{}, fmt.Errorf("read a webhook secret: it has %d bytes, %d to %d are allowed", len(key),
			webhookSecretBytesMin, webhookSecretBytesMax)
	}
	return WebhookSecret{FromText(text), New(key)}, nil
}

// Text is what the receiver is given.
func (s WebhookSecret) Text() Secret { return s.text }

// Digest identifies the secret without giving it away.
func (s WebhookSecret) Digest() [sha256.Size]byte { return sha256.Sum256(s.text.Reveal()) }

// Sign is the signature over the parts, joined by dots, as one entry of the
// header webhook-signature.
func (s WebhookSecret) Sign(parts ...string) (string, error) {
	if s.key.IsZero() {
		return "", fmt.Errorf("sign a notification: %w", ErrEmpty)
	}
	mac := hmac.New(sha256.New, s.key.Reveal())
	_, _ = mac.Write([]byte(strings.Join(parts, "."))) // a hash never fails
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// String and GoString keep it out of logs.
func (s WebhookSecret) String() string   { return redacted }
func (s WebhookSecret) GoString() string { return redacted }

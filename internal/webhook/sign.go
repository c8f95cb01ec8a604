package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/ids"
	"tributary/internal/secret"
)

// The headers of a notification. The second one is present only during a key
// rotation and carries the signature of the other key: the newer one before
// promote, the older one after it.
const (
	HeaderSignature     = "X-Service-Hmac-SHA256"
	HeaderSignatureNext = "X-Service-Hmac-SHA256-Next"
)

// The events of the service.
const (
	EventTransactionCompleted      = "transactions.transaction_completed"
	EventBatchValidationCompleted  = "lookup.batch_validation_completed"
	EventSingleValidationCompleted = "lookup.single_validation_completed"
	EventTransactionUpdated        = "transactions.transaction_updated"
	EventTransactionReceived       = "transactions.transaction_received"
)

// Headers of Standard Webhooks (specification 1.0), for clients with a secret of their own.
const (
	HeaderStandardID        = "webhook-id"
	HeaderStandardTimestamp = "webhook-timestamp"
	HeaderStandardSignature = "webhook-signature"
)

// nextSuffix makes the name of a rotation's second header from that of the first.
const nextSuffix = "-Next"

const (
	timeLayout = "2006-01-02T15:04:05Z"
	idBytes    = 20
	// bodyBytesMax bounds what Verify parses; a real notification is far smaller.
	bodyBytesMax = 64 << 10
)

// Why a received notification is not to be believed.
var (
	ErrSignature = errors.New("the signature does not match this body and key")
	ErrStale     = errors.New("delivered_at is too far from now")
	ErrBody      = errors.New("the body is not a webhook")
)

// Notification is the body of a webhook. The order of its members is part of the
// product: golden files and receivers' logs rely on it.
type Notification struct {
	EventType   string
	DeliveredAt time.Time
	ResourceID  string
	ResourceURL string
	WebhookID   string // opaque, the same on every try of one event
}

// wire is Notification as it is written, with the time in its strict form.
type wire struct {
	EventType   string `json:"event_type"`
	DeliveredAt string `json:"delivered_at"`
	ResourceID  string `json:"resource_id"`
	ResourceURL string `json:"resource_url"`
	WebhookID   string `json:"webhook_id"`
}

// MarshalJSON writes the members in their fixed order.
func (n Notification) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a resource_url with & in it stays readable
	err := enc.Encode(wire{n.EventType, n.DeliveredAt.UTC().Format(timeLayout), n.ResourceID, n.ResourceURL, n.WebhookID})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON accepts only the strict time form.
func (n *Notification) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	at, err := time.Parse(timeLayout, w.DeliveredAt)
	if err != nil || at.Format(timeLayout) != w.DeliveredAt {
		return fmt.Errorf("delivered_at %q is not of the form YYYY-MM-DDTHH:mm:ssZ", w.DeliveredAt)
	}
	*n = Notification{w.EventType, at, w.ResourceID, w.ResourceURL, w.WebhookID}
	return nil
}

// NewID returns a fresh webhook_id: 160 random bits as 40 lower-case hex characters.
func NewID() string {
	var b [idBytes]byte
	rand.Read(b[:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}

// ValidID reports whether id has the form of a webhook_id.
func ValidID(id string) bool {
	return ids.Hex(id, 2*idBytes)
}

// DeliveredAt is the time a try says it was made: now, but never earlier than the
// try before it said, even when the wall clock was set back in between.
func DeliveredAt(now, previous time.Time) time.Time {
	if now.Before(previous) {
		now = previous
	}
	return now.UTC().Truncate(time.Second)
}

// Key is one API key of a client. Its whole text is the HMAC secret.
type Key struct {
	ID   string // the kid, kept in the record of a try
	Text secret.Secret
}

// Keys are the keys valid at the instant of a try. Next is the other key of a
// rotation, the newer one before promote and the older one after it, and the zero
// Key outside of one.
type Keys struct {
	Current Key
	Next    Key
	// Header is the name of the signature header, its partner NAME-Next; empty:
	// HeaderSignature.
	Header string
	// Standard are secrets for the headers of Standard Webhooks, oldest first; none:
	// no such headers. Several sign side by side, so that the receiver can switch.
	Standard []secret.WebhookSecret
}

// Parcel is one notification ready to be sent: the bytes and what was made from them.
type Parcel struct {
	Body          []byte
	Signature     string
	SignatureNext string // empty outside a rotation
	KeyID         string
	headers       [][2]string // names and values, all that were made from the body
}

// Headers lists the headers that carry the signatures.
func (p Parcel) Headers() [][2]string { return p.headers }

// Pack serialises a notification once and signs those very bytes.
func Pack(n Notification, keys Keys) (Parcel, error) {
	switch {
	case !ValidID(n.WebhookID):
		return Parcel{}, fmt.Errorf("encoding webhook: webhook_id %q is not 40 lower-case hex characters", n.WebhookID)
	case n.EventType == "" || n.ResourceID == "" || n.ResourceURL == "":
		return Parcel{}, fmt.Errorf("encoding webhook %s: event_type, resource_id and resource_url are needed", n.WebhookID)
	case n.DeliveredAt.UTC().Year() < 1970 || n.DeliveredAt.UTC().Year() > 9999:
		return Parcel{}, fmt.Errorf("encoding webhook %s: delivered_at is not set", n.WebhookID)
	}
	body, err := n.MarshalJSON()
	if err != nil {
		return Parcel{}, fmt.Errorf("encoding webhook %s: %w", n.WebhookID, err)
	}
	p := Parcel{Body: body, KeyID: keys.Current.ID}
	if err := p.sign(n, keys); err != nil {
		return Parcel{}, fmt.Errorf("encoding webhook %s: %w", n.WebhookID, err)
	}
	return p, nil
}

func (p *Parcel) sign(n Notification, keys Keys) (err error) {
	name := keys.Header
	if name == "" {
		name = HeaderSignature
	}
	if p.Signature, err = secret.HMACHex(keys.Current.Text, p.Body); err != nil {
		return err
	}
	p.headers = append(p.headers, [2]string{name, p.Signature})
	if !keys.Next.Text.IsZero() {
		if p.SignatureNext, err = secret.HMACHex(keys.Next.Text, p.Body); err != nil {
			return err
		}
		p.headers = append(p.headers, [2]string{name + nextSuffix, p.SignatureNext})
	}
	if len(keys.Standard) == 0 {
		return nil
	}
	at := strconv.FormatInt(n.DeliveredAt.Unix(), 10)
	signatures := make([]string, len(keys.Standard))
	for i, s := range keys.Standard {
		if signatures[i], err = s.Sign(n.WebhookID, at, string(p.Body)); err != nil {
			return err
		}
	}
	p.headers = append(p.headers, [2]string{HeaderStandardID, n.WebhookID}, [2]string{HeaderStandardTimestamp, at},
		[2]string{HeaderStandardSignature, strings.Join(signatures, " ")})
	return nil
}

// Freshness bounds how far delivered_at may be from Now, in either direction.
// A Max of zero does not look at the time.
type Freshness struct {
	Now time.Time
	Max time.Duration
}

// Verify is the receiver's side: it compares the signature in constant time before
// it looks into the body, then reads the notification and its age. The errors are
// [ErrSignature], [ErrBody] and [ErrStale].
func Verify(body []byte, signature string, key secret.Secret, fresh Freshness) (Notification, error) {
	want, err := secret.HMACHex(key, body)
	given := strings.ToLower(strings.TrimSpace(signature))
	if err != nil || !hmac.Equal([]byte(given), []byte(want)) {
		return Notification{}, ErrSignature
	}
	return read(body, fresh)
}

// VerifyHeaders accepts either of the two signature headers, so that a receiver
// which knows one key is served without a gap through a whole rotation.
func VerifyHeaders(body []byte, h Signed, key secret.Secret, fresh Freshness) (Notification, error) {
	name := h.Name
	if name == "" {
		name = HeaderSignature
	}
	n, err := Verify(body, h.Header.Get(name), key, fresh)
	if errors.Is(err, ErrSignature) && h.Header.Get(name+nextSuffix) != "" {
		return Verify(body, h.Header.Get(name+nextSuffix), key, fresh)
	}
	return n, err
}

// Signed are the headers of a received notification.
type Signed struct {
	Header http.Header
	Name   string // of the signature header; empty: HeaderSignature
}

func read(body []byte, fresh Freshness) (Notification, error) {
	if len(body) > bodyBytesMax {
		return Notification{}, fmt.Errorf("%w: %d bytes", ErrBody, len(body))
	}
	var n Notification
	if err := json.Unmarshal(body, &n); err != nil {
		return Notification{}, fmt.Errorf("%w: %w", ErrBody, err)
	}
	if !ValidID(n.WebhookID) {
		return Notification{}, fmt.Errorf("%w: webhook_id %q", ErrBody, n.WebhookID)
	}
	if age := fresh.Now.Sub(n.DeliveredAt); fresh.Max > 0 && (age > fresh.Max || age < -fresh.Max) {
		return n, fmt.Errorf("%w: %s old, %s allowed", ErrStale, age.Truncate(time.Second), fresh.Max)
	}
	return n, nil
}

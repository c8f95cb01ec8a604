// Command verify checks one webhook notification. It reads the raw body from
// standard input, the signature headers from its arguments and the API key from
// the environment:
//
//	API_KEY=trb_… verify SIGNATURE [SIGNATURE_NEXT] < body.json
//
// Copy Verify into your receiver; it needs nothing but the standard library.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Notification is the body of a webhook.
type Notification struct {
	EventType   string `json:"event_type"`
	DeliveredAt string `json:"delivered_at"`
	ResourceID  string `json:"resource_id"`
	ResourceURL string `json:"resource_url"`
	WebhookID   string `json:"webhook_id"`
}

// Verify checks the raw body against the values of X-Service-Hmac-SHA256 and
// X-Service-Hmac-SHA256-Next. Call it before anything parses the body.
func Verify(body []byte, signatures []string, apiKey string, maxAge time.Duration) (Notification, error) {
	mac := hmac.New(sha256.New, []byte(apiKey))
	mac.Write(body)
	want := mac.Sum(nil)
	known := false
	for _, s := range signatures {
		given, err := hex.DecodeString(strings.TrimSpace(s))
		known = known || err == nil && hmac.Equal(given, want) // compares in constant time
	}
	var n Notification
	if apiKey == "" || !known {
		return n, errors.New("the signature does not belong to this body and key")
	}
	if err := json.Unmarshal(body, &n); err != nil {
		return n, fmt.Errorf("reading the notification: %w", err)
	}
	at, err := time.Parse("2006-01-02T15:04:05Z", n.DeliveredAt)
	if err != nil {
		return n, fmt.Errorf("reading delivered_at: %w", err)
	}
	if age := time.Since(at).Abs(); age > maxAge {
		return n, fmt.Errorf("delivered_at is %s away from now", age.Truncate(time.Second))
	}
	return n, nil
}

func main() {
	body, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	if err == nil {
		var n Notification
		if n, err = Verify(body, os.Args[1:], os.Getenv("API_KEY"), 5*time.Minute); err == nil {
			fmt.Println("ok", n.WebhookID)
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

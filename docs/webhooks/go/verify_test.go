package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"tributary/internal/mutate"
)

// The recipe believes only what was signed with the key, and only where it is fresh.
func FuzzVerify(f *testing.F) {
	const key = "trb_test_recipe"
	sign := func(body []byte) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		return hex.EncodeToString(mac.Sum(nil))
	}
	body := []byte(`{"event_type":"e","delivered_at":"` + time.Now().UTC().Format("2006-01-02T15:04:05Z") +
		`","resource_id":"r","resource_url":"u","webhook_id":"w"}`)
	f.Add(body, sign(body))
	f.Add([]byte(`{"delivered_at":"2006-01-02T15:04:05Z"}`), "")
	f.Add([]byte(`{}`), strings.Repeat("0", 64))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		_, err := Verify(body, []string{signature}, key, time.Minute)
		if err == nil && !strings.EqualFold(strings.TrimSpace(signature), sign(body)) {
			t.Fatalf("%q is believed with %q", body, signature)
		}
		n, err := Verify(body, []string{signature, sign(body)}, key, time.Minute)
		if at, wrong := time.Parse("2006-01-02T15:04:05Z",
			n.DeliveredAt); err == nil && (wrong != nil || time.Since(at).Abs() > time.Minute) {
			t.Fatalf("%q is believed at %q", body, n.DeliveredAt)
		}
		if _, err := Verify(body, []string{sign(body)}, "", time.Minute); err == nil {
			t.Fatal("an empty key verifies")
		}
	})
}

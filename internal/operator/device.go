package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"tributary/internal/db"
	"tributary/internal/secret"
)

// DeviceFor is how long a browser is remembered after a sign-in.
const DeviceFor = 90 * 24 * time.Hour

// Remember makes what a browser brings along at later sign-ins of an operator: a
// proof that this operator has signed in with it. It opens nothing; it only
// keeps other people's guesses from slowing its owner down. Empty: nothing is
// remembered here, or the operator has no password.
//
// Nothing is stored. The proof is bound to the stored hash of the password, so
// whoever changes the password forgets all browsers.
func (o *Operators) Remember(ctx context.Context, name string) (proof string, until time.Time, err error) {
	name = settle(name)
	hash, enabled, err := o.storedHash(ctx, name)
	if err != nil || o.device == nil || hash == "" || !enabled {
		return "", time.Time{}, err
	}
	key, err := o.device(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	var id [12]byte
	rand.Read(id[:]) // never fails: the runtime ends the program instead
	until = o.db.Now().Add(DeviceFor)
	head := strconv.FormatInt(until.Unix(), 36) + "." + base64.RawURLEncoding.EncodeToString(id[:])
	return head + "." + deviceMAC(key, head, name, hash), until, nil
}

// remembers reports whether a proof is ours, of this operator and password, and not over.
func (o *Operators) remembers(ctx context.Context, proof, name, hash string) bool {
	head, mac, ok := cutLast(proof, ".")
	if !ok || o.device == nil || hash == "" {
		return false
	}
	key, err := o.device(ctx)
	if err != nil {
		o.log.Warn("read the key of remembered browsers", "error", err)
		return false
	}
	seconds, _, _ := strings.Cut(head, ".")
	until, err := strconv.ParseInt(seconds, 36, 64)
	return err == nil && db.Micros(o.db.Now())/1_000_000 < until &&
		hmac.Equal([]byte(mac), []byte(deviceMAC(key, head, name, hash)))
}

func cutLast(text, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(text, sep)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(sep):], true
}

func deviceMAC(key secret.Secret, head, name, hash string) string {
	mac := hmac.New(sha256.New, key.Reveal())
	for _, part := range []string{"operator device v1", head, name, hash} {
		mac.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

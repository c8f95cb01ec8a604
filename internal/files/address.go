package files

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tributary/internal/secret"
)

// addressPath is where documents are served, before the resource's id.
const addressPath = "/invoicing/v1/invoices/"

// addressKey signs addresses.
type addressKey struct {
	kid string
	mac []byte
}

// newAddressKey derives the key, so that it differs from every other even when
// an operator uses one secret for two purposes.
func newAddressKey(from secret.Secret) addressKey {
	derived, err := hkdf.Key(sha256.New, from.Reveal(), nil, "tributary document address v1", sha256.Size+4)
	if err != nil {
		panic(err) // only for more than 255 blocks
	}
	return addressKey{kid: hex.EncodeToString(derived[sha256.Size:]), mac: derived[:sha256.Size]}
}

// sign covers everything an address stands for: whose, which, what bytes, in
// what form, until when. Each part carries its length, so that no two lists of
// parts are signed alike.
func (k addressKey) sign(a Attachment, format, exp string) string {
	mac := hmac.New(sha256.New, k.mac)
	var size [8]byte
	for _, part := range []string{a.ClientID, a.ResourceID, a.SHA256, format, exp, k.kid} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// URL returns a fresh address of an attachment. It works without an API key,
// for this one resource, through the last instant of its expiry.
func (s *Store) URL(a Attachment) string {
	until := s.now().Add(s.cfg.TTL)
	seconds := until.Unix()
	if until.Nanosecond() > 0 {
		seconds++ // at least the whole TTL
	}
	format, exp, key := strings.ToLower(a.Type), strconv.FormatInt(seconds, 10), (*s.keys.Load())[0]
	return s.cfg.BaseURL + addressPath + a.ResourceID + "/" + format + "?exp=" + exp + "&kid=" + key.kid + "&sig=" +
		key.sign(a, format, exp)
}

// signature is what the query of an address says.
type signature struct{ exp, kid, sig string }

// parseSignature reads a query of exactly exp, kid and sig, each once.
func parseSignature(q url.Values) (signature, bool) {
	if len(q) != 3 || len(q["exp"]) != 1 || len(q["kid"]) != 1 || len(q["sig"]) != 1 {
		return signature{}, false
	}
	return signature{exp: q["exp"][0], kid: q["kid"][0], sig: q["sig"][0]}, true
}

// genuine reports whether we signed this for a. It compares the texts, not what
// they decode to: base64 has several spellings of one value.
func (s *Store) genuine(sig signature, a Attachment, format string) bool {
	good := 0
	for _, key := range *s.keys.Load() {
		same := subtle.ConstantTimeCompare([]byte(key.kid), []byte(sig.kid))
		good |= same & subtle.ConstantTimeCompare([]byte(key.sign(a, format, sig.exp)), []byte(sig.sig))
	}
	return good == 1
}

// expired judges a genuine signature.
func (sig signature) expired(now time.Time) bool {
	seconds, err := strconv.ParseInt(sig.exp, 10, 64)
	return err != nil || now.After(time.Unix(seconds, 0))
}

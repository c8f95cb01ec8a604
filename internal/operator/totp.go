package operator

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // RFC 6238 as every authenticator app speaks it
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Codes of an authenticator app: RFC 6238 with the parameters that all apps
// know. Others exist on paper, and apps silently ignore them.
const (
	totpStep     = 30 * time.Second
	totpDigits   = 6
	totpKeyBytes = 20 // RFC 4226, section 4, R6: 160 bits are recommended
	totpDrift    = 1  // steps a phone's clock may be off, either way (RFC 6238, section 5.2)
	issuerName   = "Tributary"
)

func newTOTPKey() []byte {
	key := make([]byte, totpKeyBytes)
	rand.Read(key) // never fails: the runtime ends the program instead
	return key
}

// totpText is a key as a person types it.
func totpText(key []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(key)
}

// totpAddress is a key as a picture carries it to an app.
func totpAddress(name string, key []byte) string {
	q := url.Values{"secret": {totpText(key)}, "issuer": {issuerName}, "algorithm": {"SHA1"}, "digits": {fmt.Sprint(totpDigits)}, "period": {fmt.Sprint(int(totpStep.Seconds()))}}
	return "otpauth://totp/" + url.PathEscape(issuerName+":"+name) + "?" + q.Encode()
}

func stepOf(at time.Time) int64 { return at.Unix() / int64(totpStep.Seconds()) }

// totpCode is the code of one step: RFC 4226, section 5.3.
func totpCode(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	return fmt.Sprintf("%0*d", totpDigits, (binary.BigEndian.Uint32(sum[at:at+4])&0x7fffffff)%1_000_000)
}

// totpMatch finds the step a code belongs to. One at or before the last step
// that was taken is a replay and never matches (RFC 6238, section 5.2).
func totpMatch(key []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	for s := stepOf(now) - totpDrift; s <= stepOf(now)+totpDrift; s++ {
		if subtle.ConstantTimeCompare([]byte(totpCode(key, s)), []byte(code)) == 1 && s > last {
			step, ok = s, true
		}
	}
	return step, ok
}

// digitsOf is a code without the blanks that people read into it.
func digitsOf(text string) (string, bool) {
	text = strings.Join(strings.Fields(text), "")
	if len(text) != totpDigits || strings.Trim(text, "0123456789") != "" {
		return "", false
	}
	return text, true
}

package operator

import (
	"encoding/base32"
	"strings"
	"time"

	"github.com/pquerna/otp/hotp"
)

// Codes of an authenticator app: RFC 6238 by pquerna/otp, with the parameters
// that all apps know. Others exist on paper, and apps silently ignore them.
const (
	totpStep     = 30 * time.Second
	totpDigits   = 6
	totpKeyBytes = 20 // RFC 4226, section 4, R6: 160 bits are recommended
	totpDrift    = 1  // steps a phone's clock may be off, either way (RFC 6238, section 5.2)
	issuerName   = "Tributary"
)

// totpText is a key as a person types it.
func totpText(key []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(key)
}

// totpMatch finds the step a code belongs to, which pquerna/otp does not tell.
// One at or before the last step that was taken is a replay and never matches
// (RFC 6238, section 5.2).
func totpMatch(key []byte, code string, now time.Time, last int64) (step int64, ok bool) {
	at := now.Unix() / int64(totpStep.Seconds())
	for s := at - totpDrift; s <= at+totpDrift; s++ {
		if hotp.Validate(code, uint64(s), totpText(key)) && s > last {
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

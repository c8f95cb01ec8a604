package operator

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"tributary/internal/db"
)

// Recovery codes are for the day on which a phone is lost.
const (
	RecoveryCodes  = 10
	recoveryLetter = "abcdefghijkmnpqrstuvwxyz23456789" // 32, none of them mistaken for another
	recoveryLength = 16                                 // 80 bits: no guess finds one, so a plain digest keeps them
)

// spoken returns letters of 5 random bits each, in groups that can be read aloud.
func spoken(letters, group int) string {
	b := make([]byte, letters)
	rand.Read(b) // never fails: the runtime ends the program instead
	var text strings.Builder
	for i, c := range b {
		if i > 0 && i%group == 0 {
			text.WriteByte('-')
		}
		text.WriteByte(recoveryLetter[c%32])
	}
	return text.String()
}

// recoveryDigest is what is stored of a code, however it was typed; false: it
// has not the form of one.
func recoveryDigest(name, typed string) (digest []byte, ok bool) {
	text := strings.ToLower(strings.NewReplacer("-", "", " ", "", "\t", "").Replace(strings.TrimSpace(typed)))
	if len(text) != recoveryLength || strings.Trim(text, recoveryLetter) != "" {
		return nil, false
	}
	sum := sha256.Sum256([]byte("tributary recovery code v1\x00" + name + "\x00" + text))
	return sum[:], true
}

// renewRecovery replaces all codes of an operator and answers the new ones.
func renewRecovery(tx *db.Tx, name string) ([]string, error) {
	if err := tx.Exec(dropRecoverySQL, name); err != nil {
		return nil, err
	}
	codes := make([]string, RecoveryCodes)
	for i := range codes {
		codes[i] = spoken(recoveryLength, 4)
		digest, _ := recoveryDigest(name, codes[i])
		if err := tx.Exec(addRecoverySQL, name, digest); err != nil {
			return nil, err
		}
	}
	return codes, nil
}

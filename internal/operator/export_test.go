package operator

import (
	"encoding/base32"
	"time"

	"github.com/pquerna/otp/totp"

	"tributary/internal/audit"
	"tributary/internal/db"
)

// HashCost reads the cost in a stored hash.
func HashCost(text string) (Cost, error) {
	c, _, _, err := parseHash(text)
	return c, err
}

// CostDefault is what production uses.
func CostDefault() Cost { return costDefault() }

// MomentPassed lets a provider that was away be looked for again at once.
func MomentPassed(x *OIDC) { x.again = time.Time{} }

// TextOf is a key of an authenticator app as it is typed, KeyOf the other way.
func TextOf(key []byte) string { return totpText(key) }

// KeyOf reads what TextOf wrote.
func KeyOf(text string) []byte {
	key, _ := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text) // of our own making
	return key
}

// CodeAt is what an app with a key shows.
func CodeAt(text string, at time.Time) string {
	code, _ := totp.GenerateCode(text, at) // of a key of our own making
	return code
}

// PasskeyHolds reports whether a text is accepted as a new passkey or as one that is known.
func PasskeyHolds(text, origin string, challenge, id, public []byte) bool {
	o := &Operators{second: Second{AdminURL: origin}}
	_, fresh := o.register("ana", text, challenge)
	_, _, known := o.assert("ana", text, challenge, []Passkey{{id: id, public: public}})
	return fresh == nil || known == nil
}

// Rehash is what whoever owns the database can do: make a changed log a whole
// chain again, head and all.
func Rehash(tx *db.Tx) error {
	all, err := db.Collect(tx, scanEntry, auditSQL+" ORDER BY seq")
	if err != nil {
		return err
	}
	var last audit.Digest
	for i := range all {
		e := &all[i]
		e.Prev = last
		e.Own = e.compute()
		last = e.Own
		if err := tx.Exec("UPDATE operator_audit SET prev_hash = $1, hash = $2 WHERE seq = $3", e.Prev[:], e.Own[:],
			e.Seq); err != nil {
			return err
		}
	}
	return tx.Exec("UPDATE operator_audit_head SET seq = $1, hash = $2", int64(len(all)), last[:])
}

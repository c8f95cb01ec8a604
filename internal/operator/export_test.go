package operator

import (
	"encoding/base32"
	"time"

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
func CodeAt(text string, at time.Time) string { return totpCode(KeyOf(text), stepOf(at)) }

// PasskeyHolds reports whether a text is accepted as a new passkey or as one that is known.
func PasskeyHolds(text, origin string, challenge []byte) bool {
	o := &Operators{second: Second{AdminURL: origin}}
	var m made
	var s shownKey
	if readPasskey(text, &m) == nil {
		if _, err := o.relying().register(m, challenge); err == nil {
			return true
		}
	}
	if readPasskey(text, &s) == nil {
		if _, err := o.relying().assert(s, m.PublicKey, challenge, 0); err == nil {
			return true
		}
	}
	return false
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
		if err := tx.Exec("UPDATE operator_audit SET prev_hash = $1, hash = $2 WHERE seq = $3", e.Prev[:], e.Own[:], e.Seq); err != nil {
			return err
		}
	}
	return tx.Exec("UPDATE operator_audit_head SET seq = $1, hash = $2", int64(len(all)), last[:])
}

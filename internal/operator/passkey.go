package operator

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Passkeys: Web Authentication, Level 3, sections 7.1 and 7.2, with the
// attestation "none": which make of key somebody uses is nobody's business here,
// so there is no statement to verify. The browser hands over the public key in
// DER and the authenticator's data as bytes (section 5.2.1.1), so that no CBOR
// has to be read.

// PasskeyAlgorithms are the signatures that are asked for, by their COSE number,
// best first.
func PasskeyAlgorithms() []int { return []int{algEdDSA, algES256, algRS256} }

const (
	algES256 = -7
	algEdDSA = -8
	algRS256 = -257

	passkeyBytesMax    = 16 << 10 // of what a browser hands over
	credentialBytesMax = 1023     // section 5.8.3
	rsaBitsMin         = 2048
	rsaBitsMax         = 8192

	authUserPresent  = 0x01
	authBackupable   = 0x08
	authBackedUp     = 0x10
	authHasKey       = 0x40
	authDataBytesMin = 37
	authKeyBytesMin  = authDataBytesMin + 18
)

// bytes64 is how a browser hands bytes over.
type bytes64 []byte

// UnmarshalJSON reads base64url without padding.
func (b *bytes64) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	*b = raw
	return err
}

// made is a new passkey as a browser hands it over.
type made struct {
	ID         bytes64 `json:"id"`
	ClientData bytes64 `json:"client_data"`
	AuthData   bytes64 `json:"authenticator_data"`
	PublicKey  bytes64 `json:"public_key"`
	Algorithm  int     `json:"algorithm"`
}

// shownKey is the use of a passkey as a browser hands it over.
type shownKey struct {
	ID         bytes64 `json:"id"`
	ClientData bytes64 `json:"client_data"`
	AuthData   bytes64 `json:"authenticator_data"`
	Signature  bytes64 `json:"signature"`
}

var errPasskey = errors.New("the passkey's answer is not valid")

func wrongKey(why string) error { return fmt.Errorf("%w: %s", errPasskey, why) }

func readPasskey(text string, into any) error {
	if len(text) > passkeyBytesMax {
		return wrongKey("it is too large")
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return wrongKey("it is not JSON of the expected form")
	}
	return nil
}

// relying is who asks for a passkey.
type relying struct{ domain, origin string }

// authData is what an authenticator says.
type authData struct {
	flags byte
	count uint32
	id    []byte // of a new credential
}

// checkClient holds what the browser says it did against what was asked.
func (p relying) checkClient(raw []byte, kind string, challenge []byte) error {
	var c struct {
		Type        string
		Challenge   bytes64
		Origin      string
		CrossOrigin bool
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return wrongKey("the browser's data is not readable")
	}
	switch {
	case c.Type != kind:
		return wrongKey("it was created for another purpose")
	case subtle.ConstantTimeCompare(c.Challenge, challenge) != 1:
		return wrongKey("it answers another challenge")
	case c.Origin != p.origin || c.CrossOrigin:
		return wrongKey("it was created on another site")
	}
	return nil
}

func (p relying) readAuthData(raw []byte) (a authData, err error) {
	if len(raw) < authDataBytesMin {
		return a, wrongKey("the authenticator's data is truncated")
	}
	domain := sha256.Sum256([]byte(p.domain))
	a.flags, a.count = raw[32], binary.BigEndian.Uint32(raw[33:37])
	switch {
	case !bytes.Equal(raw[:32], domain[:]):
		return a, wrongKey("it belongs to another domain")
	case a.flags&authUserPresent == 0:
		return a, wrongKey("user presence is missing")
	case a.flags&authBackedUp != 0 && a.flags&authBackupable == 0:
		return a, wrongKey("its backup flags contradict each other")
	case a.flags&authHasKey == 0:
		return a, nil
	case len(raw) < authKeyBytesMin:
		return a, wrongKey("the credential is truncated")
	}
	size := int(binary.BigEndian.Uint16(raw[53:55]))
	if size == 0 || size > credentialBytesMax || len(raw) < authKeyBytesMin+size {
		return a, wrongKey("the credential is truncated")
	}
	a.id = raw[authKeyBytesMin : authKeyBytesMin+size]
	return a, nil
}

// register checks a new passkey: section 7.1.
func (p relying) register(m made, challenge []byte) (authData, error) {
	if err := p.checkClient(m.ClientData, "webauthn.create", challenge); err != nil {
		return authData{}, err
	}
	a, err := p.readAuthData(m.AuthData)
	if err != nil {
		return a, err
	}
	if a.id == nil || !bytes.Equal(a.id, m.ID) {
		return a, wrongKey("the credential id does not match the authenticator")
	}
	key, alg, err := parsePasskey(m.PublicKey)
	if err != nil || key == nil || alg != m.Algorithm {
		return a, wrongKey("its key type was not requested")
	}
	return a, nil
}

// parsePasskey reads a public key and answers the algorithm that it is used with.
func parsePasskey(der []byte) (key crypto.PublicKey, alg int, err error) {
	if key, err = x509.ParsePKIXPublicKey(der); err != nil {
		return nil, 0, err
	}
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return k, algES256, nil
		}
	case ed25519.PublicKey:
		return k, algEdDSA, nil
	case *rsa.PublicKey:
		if k.N.BitLen() >= rsaBitsMin && k.N.BitLen() <= rsaBitsMax {
			return k, algRS256, nil
		}
	}
	return nil, 0, errors.New("unsupported key type")
}

// assert checks the use of a passkey: section 7.2. It answers the new count.
func (p relying) assert(s shownKey, public, challenge []byte, before uint32) (uint32, error) {
	if err := p.checkClient(s.ClientData, "webauthn.get", challenge); err != nil {
		return 0, err
	}
	a, err := p.readAuthData(s.AuthData)
	if err != nil {
		return 0, err
	}
	key, _, err := parsePasskey(public)
	if err != nil {
		return 0, fmt.Errorf("read the stored passkey: %w", err)
	}
	sum := sha256.Sum256(s.ClientData)
	signed := append(append([]byte{}, s.AuthData...), sum[:]...)
	if !verifySignature(key, signed, s.Signature) {
		return 0, wrongKey("its signature is not valid")
	}
	// An authenticator that counts never counts backwards; one that does was
	// copied. One that does not count says 0 for ever.
	if (a.count != 0 || before != 0) && a.count <= before {
		return 0, wrongKey("its counter went backwards: it may have been cloned")
	}
	return a.count, nil
}

func verifySignature(key crypto.PublicKey, signed, signature []byte) bool {
	sum := sha256.Sum256(signed)
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(k, signed, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], signature) == nil
	}
	return false
}

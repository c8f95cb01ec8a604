package operator_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/mutate"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

const origin = "https://console.example.test"

// authenticator is a passkey in software, which can be told to lie.
type authenticator struct {
	t         testing.TB
	key       crypto.Signer
	alg       int
	id        []byte
	count     uint32
	origin    string
	domain    string
	flags     byte
	challenge []byte // in place of the one asked for
	kind      string
	foreign   bool // in a frame of another site
}

func newAuthenticator(t testing.TB, alg int) *authenticator {
	t.Helper()
	a := &authenticator{t: t, alg: alg, id: make([]byte, 32), origin: origin, domain: "console.example.test", flags: 0x01,
		count: 1}
	rand.Read(a.id)
	var err error
	switch alg {
	case -7:
		a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case -8:
		_, a.key, err = ed25519.GenerateKey(rand.Reader)
	default:
		a.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	must(t, err)
	return a
}

func (a *authenticator) clientData(kind string, challenge []byte) []byte {
	if a.challenge != nil {
		challenge = a.challenge
	}
	if a.kind != "" {
		kind = a.kind
	}
	text, err := json.Marshal(map[string]any{"type": kind, "challenge": b64(challenge), "origin": a.origin,
		"crossOrigin": a.foreign, "new_field": "of another edition"})
	must(a.t, err)
	return text
}

func (a *authenticator) data(more byte) []byte {
	sum := sha256.Sum256([]byte(a.domain))
	return binary.BigEndian.AppendUint32(append(sum[:], a.flags|more), a.count)
}

// public is the authenticator's key in COSE (RFC 9053).
func (a *authenticator) public() []byte {
	kind := func(kty webauthncose.COSEKeyType) webauthncose.PublicKeyData {
		return webauthncose.PublicKeyData{KeyType: int64(kty), Algorithm: int64(a.alg)}
	}
	var key any
	switch k := a.key.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		must(a.t, err)
		key = webauthncose.EC2PublicKeyData{PublicKeyData: kind(webauthncose.EllipticKey), Curve: int64(webauthncose.P256),
			XCoord: point[1:33], YCoord: point[33:]}
	case ed25519.PublicKey:
		key = webauthncose.OKPPublicKeyData{PublicKeyData: kind(webauthncose.OctetKey), Curve: int64(webauthncose.Ed25519),
			XCoord: k}
	case *rsa.PublicKey:
		key = webauthncose.RSAPublicKeyData{PublicKeyData: kind(webauthncose.RSAKey), Modulus: k.N.Bytes(),
			Exponent: []byte{1, 0, 1}}
	}
	text, err := webauthncbor.Marshal(key)
	must(a.t, err)
	return text
}

func (a *authenticator) register(challenge []byte) string {
	data := append(a.data(0x40), make([]byte, 16)...)
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(a.id))), a.id...)
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{},
		"authData": append(data, a.public()...)})
	must(a.t, err)
	return a.answer(map[string]any{"clientDataJSON": b64(a.clientData("webauthn.create", challenge)),
		"attestationObject": b64(object)})
}

// answer is what a browser hands over.
func (a *authenticator) answer(response map[string]any) string {
	text, err := json.Marshal(map[string]any{"id": b64(a.id), "rawId": b64(a.id), "type": "public-key",
		"response": response})
	must(a.t, err)
	return string(text)
}

func (a *authenticator) assert(challenge []byte) string {
	client, data := a.clientData("webauthn.get", challenge), a.data(0)
	sum := sha256.Sum256(client)
	signed := append(append([]byte{}, data...), sum[:]...)
	digest, opts := sha256.Sum256(signed), crypto.SignerOpts(crypto.SHA256)
	message := digest[:]
	if a.alg == -8 {
		message, opts = signed, crypto.Hash(0)
	}
	signature, err := a.key.Sign(rand.Reader, message, opts)
	must(a.t, err)
	return a.answer(map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data),
		"signature": b64(signature)})
}

// enrolsPasskey enrols at the first sign-in.
func (b *book) enrolsPasskey(name string, password secret.Secret, a *authenticator) error {
	b.t.Helper()
	token := b.knocks(name, password).Token.RevealText()
	w, err := b.Waiting(b.t.Context(), token)
	must(b.t, err)
	_, _, _, err = b.FinishEnrolment(b.t.Context(), token,
		operator.Enrolment{Passkey: a.register(w.Challenge), Label: "laptop"}, attempt("", secret.Secret{}))
	return err
}

// touches signs in with password and passkey.
func (b *book) touches(name string, password secret.Secret, a *authenticator) error {
	b.t.Helper()
	token := b.knocks(name, password).Token.RevealText()
	w, err := b.Waiting(b.t.Context(), token)
	must(b.t, err)
	a.count++
	_, _, err = b.Finish(b.t.Context(), token, operator.Proof{Passkey: a.assert(w.Challenge)},
		attempt("", secret.Secret{}))
	return err
}

func TestPasskeysOfEveryKindSignIn(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, true))
	for name, alg := range map[string]int{"es256": -7, "eddsa": -8, "rs256": -257} {
		password, a := b.hire(name, operator.Viewer), newAuthenticator(t, alg)
		must(t, b.enrolsPasskey(name, password, a))
		must(t, b.touches(name, password, a))
		must(t, b.touches(name, password, a))
		a.count-- // then it counts on to where it was
		kind(t, name+" that counts backwards", b.touches(name, password, a), fault.Unauthenticated)
	}
}

func TestAPasskeyThatLiesIsRefused(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, true))
	lies := map[string]func(*authenticator){
		"another site":           func(a *authenticator) { a.origin = "https://console.example.test.evil.example" },
		"plain http":             func(a *authenticator) { a.origin = "http://console.example.test" },
		"another domain":         func(a *authenticator) { a.domain = "example.test" },
		"nobody touched it":      func(a *authenticator) { a.flags = 0 },
		"backed up, not able to": func(a *authenticator) { a.flags = 0x11 },
		"an old challenge":       func(a *authenticator) { a.challenge = make([]byte, 32) },
		"another ceremony":       func(a *authenticator) { a.kind = "payment.get" },
		"a frame":                func(a *authenticator) { a.foreign = true },
	}
	for what, lie := range lies {
		name := strings.NewReplacer(" ", "-", ",", "").Replace(what)
		password := b.hire(name, operator.Viewer)
		liar := newAuthenticator(t, -7)
		lie(liar)
		kind(t, "enrol: "+what, b.enrolsPasskey(name, password, liar), fault.Invalid)
		honest := newAuthenticator(t, -7)
		must(t, b.enrolsPasskey(name, password, honest))
		lie(honest)
		kind(t, "sign in: "+what, b.touches(name, password, honest), fault.Unauthenticated)
	}
	password, theirs := b.hire("ana", operator.Viewer), newAuthenticator(t, -7)
	must(t, b.enrolsPasskey("ana", password, theirs))
	stolen := *theirs
	stolen.key = newAuthenticator(t, -7).key
	kind(t, "a key of another under the same id", b.touches("ana", password, &stolen), fault.Unauthenticated)
	kind(t, "an unknown one", b.touches("ana", password, newAuthenticator(t, -7)), fault.Unauthenticated)
	other := b.hire("bea", operator.Viewer)
	kind(t, "one that is somebody's already", b.enrolsPasskey("bea", other, theirs), fault.Conflict)
}

func TestPasskeysAtAndPastTheLimit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	b := open(t, d, withSecond(t, d, false))
	_, s := b.enter("ana", b.hire("ana", operator.Viewer))
	enrol := func() error {
		_, err := b.Enrol(t.Context(), s, operator.Enrolment{Passkey: newAuthenticator(t, -7).register(s.Challenge())})
		return err
	}
	for range 10 {
		must(t, enrol())
	}
	kind(t, "an eleventh passkey", enrol(), fault.Conflict)
}

func TestThereAreNoPasskeysWithoutADomain(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for address, want := range map[string]string{"https://console.example.test:8443": "console.example.test",
		"http://localhost:8081": "localhost", "http://127.0.0.1:8081": "", "http://[::1]:8081": "", "": ""} {
		b := open(t, d, func(c *operator.Config) { c.Second.AdminURL = address })
		if got := b.PasskeyDomain(); got != want {
			t.Errorf("%q: %q", address, got)
		}
	}
}

// FuzzPasskey states that nothing a browser hands over is more than refused.
func FuzzPasskey(f *testing.F) {
	a := newAuthenticator(f, -7)
	f.Add(a.register(make([]byte, 32)))
	f.Add(a.assert(make([]byte, 32)))
	f.Add(`{"id":"AA"}`)
	public := a.public()
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		if operator.PasskeyHolds(text, origin, make([]byte, 31), a.id, public) {
			t.Errorf("accepted for a challenge that was never made: %q", text)
		}
	})
}

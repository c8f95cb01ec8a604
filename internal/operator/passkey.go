package operator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
)

// Passkeys are Web Authentication, Level 3, judged by go-webauthn. The
// attestation is "none": which make of key somebody uses is nobody's business
// here. Public keys are stored as authenticators hand them out (COSE).

const passkeyBytesMax = 16 << 10 // of what a browser hands over

// PasskeyAlgorithms are the signatures that are asked for, by their COSE number,
// best first.
func PasskeyAlgorithms() []int {
	return []int{int(webauthncose.AlgEdDSA), int(webauthncose.AlgES256), int(webauthncose.AlgRS256)}
}

// keyHolder is an operator as go-webauthn asks for one.
type keyHolder struct {
	name string
	keys []webauthn.Credential
}

func (h keyHolder) WebAuthnID() []byte                         { return Handle(h.name) }
func (h keyHolder) WebAuthnName() string                       { return h.name }
func (h keyHolder) WebAuthnDisplayName() string                { return h.name }
func (h keyHolder) WebAuthnCredentials() []webauthn.Credential { return h.keys }

// relying is who asks browsers for passkeys. Without a domain nobody does, and it
// is nil: an address of numbers is none (Web Authentication, section 5.1.3).
func (o *Operators) relying() *webauthn.WebAuthn {
	u, err := url.Parse(o.second.AdminURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	origin := u.Scheme + "://" + u.Host
	w, err := webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: issuerName, RPOrigins: []string{origin}})
	if err != nil {
		return nil
	}
	return w
}

// PasskeyDomain is the domain of passkeys; "": there are none here.
func (o *Operators) PasskeyDomain() string {
	if w := o.relying(); w != nil {
		return w.Config.RPID
	}
	return ""
}

var errPasskey = errors.New("the passkey's answer is not valid")

func wrongKey(err error) error {
	var told *protocol.Error
	if errors.As(err, &told) && told.DevInfo != "" {
		return fmt.Errorf("%w: %w (%s)", errPasskey, err, told.DevInfo)
	}
	return fmt.Errorf("%w: %w", errPasskey, err)
}

// asked is what was asked of an operator's browser.
func asked(name string, challenge []byte) webauthn.SessionData {
	s := webauthn.SessionData{Challenge: base64.RawURLEncoding.EncodeToString(challenge), UserID: Handle(name)}
	for _, alg := range PasskeyAlgorithms() {
		s.CredParams = append(s.CredParams, protocol.CredentialParameter{
			Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.COSEAlgorithmIdentifier(alg)})
	}
	return s
}

// register checks a new passkey: section 7.1.
func (o *Operators) register(name, text string, challenge []byte) (*webauthn.Credential, error) {
	w := o.relying()
	if w == nil || len(text) > passkeyBytesMax {
		return nil, errPasskey
	}
	said, err := protocol.ParseCredentialCreationResponseBytes([]byte(text))
	if err != nil {
		return nil, wrongKey(err)
	}
	key, err := w.CreateCredential(keyHolder{name: name}, asked(name, challenge), said)
	if err != nil {
		return nil, wrongKey(err)
	}
	return key, nil
}

// assert checks the use of one of an operator's passkeys: section 7.2. It answers
// which one it was, and the new count.
func (o *Operators) assert(name, text string, challenge []byte, known []Passkey) (used Passkey, count uint32, _ error) {
	w := o.relying()
	if w == nil || len(text) > passkeyBytesMax {
		return used, 0, errPasskey
	}
	said, err := protocol.ParseCredentialRequestResponseBytes([]byte(text))
	if err != nil {
		return used, 0, wrongKey(err)
	}
	who := keyHolder{name: name}
	for _, k := range known {
		if string(k.id) == string(said.RawID) {
			used = k
		}
		// Whether a passkey can be copied to other devices decides nothing here, and
		// is not stored: what it says of itself holds.
		flags := webauthn.NewCredentialFlags(said.Response.AuthenticatorData.Flags)
		who.keys = append(who.keys, webauthn.Credential{ID: k.id, PublicKey: k.public, Flags: flags,
			Authenticator: webauthn.Authenticator{SignCount: uint32(k.count)}})
	}
	key, err := w.ValidateLogin(who, asked(name, challenge), said)
	if err != nil {
		return used, 0, wrongKey(err)
	}
	if key.Authenticator.CloneWarning {
		return used, 0, fmt.Errorf("%w: it counts backwards: somebody may have copied it", errPasskey)
	}
	return used, key.Authenticator.SignCount, nil
}

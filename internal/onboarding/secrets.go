package onboarding

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// The members of tax_credentials.
const (
	memberCertificate = "certificate_base64"
	memberPassword    = "certificate_password"
	memberUsername    = "username"
	memberSecret      = "password"

	memberNamed = "" // every one of the country's own names; null for tax_credentials takes them all back
)

// secrets is what a request says of credentials: a member that is not there
// was not sent, an empty one says "none from now on". It never leaves this
// package but sealed.
type secrets struct {
	members map[string]secret.Secret
}

func (s *secrets) set(name, value string) {
	if s.members == nil {
		s.members = map[string]secret.Secret{}
	}
	s.members[name] = secret.FromText(value)
}

func (s *secrets) sent() bool { return len(s.members) > 0 }

func clearAll() secrets {
	var s secrets
	for _, name := range []string{memberCertificate, memberPassword, memberUsername, memberSecret, memberNamed} {
		s.set(name, "")
	}
	return s
}

// over returns the credentials that are left when s is laid over the old ones.
func (s *secrets) over(old country.Credentials) country.Credentials {
	if v, sent := s.members[memberCertificate]; sent {
		old.PKCS12 = slices.Clone(v.Reveal())
	}
	for name, into := range map[string]*string{memberPassword: &old.Password, memberUsername: &old.Username,
		memberSecret: &old.Secret} {
		if v, sent := s.members[name]; sent {
			*into = v.RevealText()
		}
	}
	if _, all := s.members[memberNamed]; all {
		old.Named = nil
	}
	named := maps.Clone(old.Named)
	for name, v := range s.members {
		switch name {
		case memberCertificate, memberPassword, memberUsername, memberSecret, memberNamed:
			continue
		}
		if named == nil {
			named = map[string]string{}
		}
		if named[name] = v.RevealText(); named[name] == "" {
			delete(named, name)
		}
	}
	old.Named = named
	return old
}

// seal is the sealed form of a request's credentials, while its job waits.
func (s *secrets) seal(with *secret.Sealer, at secret.Context) ([]byte, error) {
	plain := make(map[string][]byte, len(s.members))
	for name, value := range s.members {
		plain[name] = value.Reveal()
	}
	return sealJSON(with, plain, at)
}

func openSecrets(with *secret.Sealer, sealed []byte, at secret.Context) (s secrets, err error) {
	var plain map[string][]byte
	if err := openJSON(with, sealed, at, &plain); err != nil {
		return s, err
	}
	for name, value := range plain {
		s.set(name, string(value))
		clear(value)
	}
	return s, nil
}

// missing lists the members a country asks for that are not there.
func missing(c country.Credentials, facts country.Facts) []fault.Fault {
	var faults []fault.Fault
	for _, r := range facts.Secrets {
		if r.Required && c.Named[r.Name] == "" {
			faults = append(faults, fault.At(fieldCredentials+"."+r.Name, fault.FieldRequired, "must not be empty"))
		}
	}
	for _, name := range facts.Credentials {
		there := map[string]bool{
			memberCertificate: len(c.PKCS12) > 0, memberPassword: c.Password != "",
			memberUsername: c.Username != "", memberSecret: c.Secret != "",
		}[name]
		if !there {
			faults = append(faults, fault.At(fieldCredentials+"."+name, fault.FieldRequired, "must not be empty"))
		}
	}
	return faults
}

func empty(c country.Credentials) bool {
	return len(c.PKCS12) == 0 && c.Password == "" && c.Username == "" && c.Secret == "" && len(c.Named) == 0
}

// Purposes that sealed bytes are bound to, with client and company, so that no
// row opens in the place of another.
const (
	purposeCredentials = "tax_credentials"
	purposeRequested   = "tax_credentials_requested" // held by a job that has not ended
	purposeDigest      = "tax_credentials_digest"
	sealedVersion      = 1
)

func bound(clientID, companyID, purpose string) secret.Context {
	return secret.Context{Client: clientID, Kid: companyID, Purpose: purpose, Version: sealedVersion}
}

// held is the sealed form of credentials.
type held struct {
	PKCS12   []byte `json:"pkcs12,omitempty"`
	Password string `json:"password,omitempty"`
	Username string `json:"username,omitempty"`
	Secret   string `json:"secret,omitempty"`

	Named map[string]string `json:"named,omitempty"`
}

func sealCredentials(s *secret.Sealer, c country.Credentials, at secret.Context) ([]byte, error) {
	return sealJSON(s, held(c), at)
}

func openCredentials(s *secret.Sealer, sealed []byte, at secret.Context) (country.Credentials, error) {
	var h held
	err := openJSON(s, sealed, at, &h)
	return country.Credentials(h), err
}

func sealJSON(s *secret.Sealer, v any, at secret.Context) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", at.Purpose, err)
	}
	hidden := secret.New(plain)
	defer hidden.Wipe()
	clear(plain)
	return s.Seal(hidden, at)
}

func openJSON(s *secret.Sealer, sealed []byte, at secret.Context, into any) error {
	plain, err := s.Open(sealed, at)
	if err != nil {
		return err
	}
	defer plain.Wipe()
	if json.Unmarshal(plain.Reveal(), into) != nil {
		return fmt.Errorf("decode %s: not in the form that was sealed", at.Purpose) // the decoder's words could hold a part of it
	}
	return nil
}

package xx

import (
	"net/http"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/official/xxwire"
)

// secretPlatform is the operator's key at the authority.
const secretPlatform = "platform_key"

func platformRule(required bool) *country.IdentityRule {
	return &country.IdentityRule{
		Secrets: []country.SecretRule{{
			Name: secretPlatform, Required: required,
			Description: "The platform's key at the authority, in whose name suppliers file.",
		}},
		Certificate: true, CertificateRequired: required,
	}
}

// Platform is the reference authority under a code that lets only known platforms
// in: the operator's certificate and key, or a supplier's own, are needed.
func Platform(code string) country.Pack {
	p := Variant(code, country.ByNumber)
	p.Identity = platformRule(true)
	p.Connect = func(at country.Endpoint) (country.Channel, error) { return connectPlatform(at) }
	p.Enrol = enrolThrough(connectPlatform)
	return p
}

func connectPlatform(at country.Endpoint) (*channel, error) {
	ch, err := connect(at, country.ByNumber)
	if err == nil {
		ch.platform.required = true
	}
	return ch, err
}

// platform is who calls in whose name. The zero value shows what the operator
// has set, if anything.
type platform struct {
	required bool
	callers  country.Callers

	mu     sync.Mutex
	keeper *identity.Keeper
}

// identify puts the platform's proof on a signed call and answers the client
// that shows its certificate.
func (ch *channel) identify(r *http.Request, path string, c country.Credentials) (*http.Client, error) {
	client := ch.at.HTTP
	if token := c.Named[secretGrant]; token != "" {
		r.Header.Set(xxwire.HeaderGrant, token)
	}
	if path == xxwire.PathDocuments && ch.at.Callback != "" {
		r.Header.Set(xxwire.HeaderCallback, ch.at.Callback+pathReceipts)
	}
	if ch.platform.required || len(ch.at.Identity.Certificate.File) > 0 {
		file, err := ch.at.Certificate(c)
		if err != nil {
			return nil, err
		}
		if client, err = ch.platform.client(ch.at, file); err != nil {
			return nil, err
		}
	}
	key, err := ch.at.Secret(c, secretPlatform)
	switch {
	case err == nil:
		r.Header.Set(xxwire.HeaderPlatform, xxwire.PlatformMAC(key, xxwire.SignedText(r, path)))
	case ch.platform.required:
		return nil, err
	}
	return client, nil
}

func (p *platform) client(at country.Endpoint, file identity.PKCS12) (*http.Client, error) {
	p.mu.Lock()
	if p.keeper == nil {
		p.keeper = identity.NewKeeper()
	}
	keeper := p.keeper
	p.mu.Unlock()
	id, err := keeper.Open(file, time.Now())
	if err != nil {
		return nil, country.Unidentified(err)
	}
	return p.callers.Client(at, id.TLS()), nil
}

package xx

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/official/xxwire"
)

// secretPlatform is the operator's key at the authority.
const secretPlatform = "platform_key"

// platformsMax bounds the connections that are kept by certificate.
const platformsMax = 64

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
	keeper   *identity.Keeper

	mu      sync.Mutex
	clients map[[sha256.Size]byte]*http.Client // by certificate
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
	defer p.mu.Unlock()
	if p.keeper == nil {
		p.keeper, p.clients = identity.NewKeeper(), map[[sha256.Size]byte]*http.Client{}
	}
	id, err := p.keeper.Open(file, time.Now())
	if err != nil {
		return nil, country.Unidentified(err)
	}
	key := sha256.Sum256(id.Leaf.Raw)
	if known, ok := p.clients[key]; ok {
		return known, nil
	}
	for old, client := range p.clients {
		if len(p.clients) < platformsMax {
			break
		}
		if strings.HasPrefix(at.BaseURL, "https://") {
			client.CloseIdleConnections() // over plain http connections are everybody's
		}
		delete(p.clients, old)
	}
	made := country.MutualTLS(at, id.TLS())
	p.clients[key] = made
	return made, nil
}

package country

import (
	"crypto/sha256"
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
)

const (
	callersMax  = 1000   // clients with a connection of their own that are kept at an authority
	sessionsMax = 10_000 // callers whose TLS session can be taken up again
)

// Callers are the HTTP clients with which many suppliers call one authority,
// each with a certificate of its own. The zero value has none yet; it is safe
// for concurrent use.
//
// Ten thousand suppliers that file in turns would leave ten thousand connections
// open, or shake hands anew each time. So at most callersMax of them keep a
// client, with one idle connection, and many more keep what their last TLS
// session left, with which the next handshake is a short one. Sessions are
// never shared: a session says who somebody is, too.
type Callers struct {
	mu       sync.Mutex
	clients  map[[sha256.Size]byte]*http.Client // by certificate
	sessions map[[sha256.Size]byte]tls.ClientSessionCache
}

// Client returns the client that shows a certificate.
func (c *Callers) Client(at Endpoint, cert tls.Certificate) *http.Client {
	key := sha256.Sum256(cert.Certificate[0])
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.clients[key]; ok {
		return known
	}
	if c.clients == nil {
		c.clients, c.sessions = map[[sha256.Size]byte]*http.Client{}, map[[sha256.Size]byte]tls.ClientSessionCache{}
	}
	for old, client := range c.clients { // an arbitrary one, see identity.Keeper
		if len(c.clients) < callersMax {
			break
		}
		if strings.HasPrefix(at.BaseURL, "https://") {
			client.CloseIdleConnections() // over plain http connections are everybody's
		}
		delete(c.clients, old)
	}
	made := mutualTLS(at, cert, c.session(key))
	c.clients[key] = made
	return made
}

// session is what the TLS sessions of one certificate left.
func (c *Callers) session(key [sha256.Size]byte) tls.ClientSessionCache {
	if known, ok := c.sessions[key]; ok {
		return known
	}
	for old := range c.sessions {
		if len(c.sessions) < sessionsMax {
			break
		}
		delete(c.sessions, old)
	}
	made := tls.NewLRUClientSessionCache(1)
	c.sessions[key] = made
	return made
}

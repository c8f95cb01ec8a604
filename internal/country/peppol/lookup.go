package peppol

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	_ "embed" // the certificates of OpenPeppol
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// OpenPeppol's own registry of participants, since 2026-03-19; the zones of the
// European Commission before it are going away.
const (
	zoneLive = "participant.sml.prod.tech.peppol.org"
	zoneTest = "participant.sml.test.tech.peppol.org"
)

// The certification authorities of registers, generation G3, valid until 2035.
// SHA-256 of the live one: D9E17467C69E51FC4F5C5263542FC68D2ABBA5DFAAE62E87FBD6829F1DE621C4,
// of the test one: EB78DABB622BBC701592F085BC27AB817FE1C0D4753AE829682E8127B3B00CE7.
var (
	//go:embed smp-ca-g3.pem
	trustedLive []byte
	//go:embed smp-test-ca-g3.pem
	trustedTest []byte
)

const (
	metadataMax  = 1 << 20 // bytes of a register's answer
	redirectsMax = 1       // as the specification of registers has it
)

// unwilling says that a receiver does not take a document: a firm answer.
type unwilling struct{ why string }

func (e *unwilling) Error() string { return e.why }

// unseen says that one receiver cannot be looked up now: its own register, or the
// name servers that know where that is, are of no use. Others may be found.
type unseen struct {
	who   participant
	where string // that fails, for the client
	err   error
}

func (e *unseen) Error() string { return fmt.Sprintf("%s: %s: %s", e.who.value(), e.where, e.err) }

func (e *unseen) Unwrap() error { return e.err }

// reason is the published name of the trouble.
func (e *unseen) reason() fault.Code {
	var line net.Error // also of a call by HTTP
	if errors.As(e.err, &line) || errors.Is(e.err, context.DeadlineExceeded) {
		return fault.AuthorityUnreachable
	}
	return fault.AuthorityError
}

// registry is where participants are looked up, and whose word counts.
type registry struct {
	zone     string
	resolver resolver
	trusted  *x509.CertPool
}

// lookup finds out who takes a document. It remembers nothing of receivers: who
// was not registered a minute ago may be now.
type lookup struct {
	at country.Endpoint

	mu    sync.Mutex
	known *registry
}

func newLookup(at country.Endpoint) (*lookup, error) {
	l := &lookup{at: at}
	if at.Simulated {
		return l, nil // it says itself where its registry is
	}
	var err error
	said := at.Identity.Secrets
	l.known, err = newRegistry(at.Live, said[secretZone], said[secretDNS], []byte(said[secretTrusted]))
	return l, err
}

func newRegistry(live country.Live, zone, server string, trusted []byte) (*registry, error) {
	r := &registry{zone: zoneTest, resolver: resolver{systemServers}, trusted: x509.NewCertPool()}
	certificates := trustedTest
	if live {
		r.zone, certificates = zoneLive, trustedLive
	}
	if zone != "" {
		r.zone = strings.Trim(zone, ".")
	}
	if _, _, err := net.SplitHostPort(server); server != "" && err != nil {
		return nil, fmt.Errorf("the name server %q is not of the form host:port", server)
	}
	if server != "" {
		r.resolver.servers = func() ([]string, error) { return []string{server}, nil }
	}
	if len(trusted) > 0 {
		certificates = trusted
	}
	if !r.trusted.AppendCertsFromPEM(certificates) {
		return nil, errors.New("the certificates under which registers sign cannot be read as PEM")
	}
	return r, nil
}

// network is what a simulated access point says of the simulated network around it.
type network struct {
	Zone    string `json:"sml_zone"`
	Server  string `json:"dns_server"`
	Trusted string `json:"smp_ca"`
}

// where answers the registry; a simulated one is asked for it once.
func (l *lookup) where(ctx context.Context) (*registry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known != nil {
		return l.known, nil
	}
	reply, err := country.Request{Method: http.MethodGet, URL: l.at.BaseURL + "/network", BytesMax: metadataMax}.Do(ctx,
		l.at.HTTP)
	if err != nil {
		return nil, err
	}
	var n network
	if err := json.Unmarshal(reply.Body, &n); err != nil || reply.Status != http.StatusOK {
		return nil, fmt.Errorf("the simulated network answers %d instead of where its registry is", reply.Status)
	}
	l.known, err = newRegistry(l.at.Live, n.Zone, n.Server, []byte(n.Trusted))
	return l.known, err
}

// receiver answers the first of an envelope's receivers that takes its document.
// An [*unwilling] error: none does. An [*unseen] error: one might.
func (l *lookup) receiver(ctx context.Context, e envelope) (to participant, err error) {
	defer func() {
		if err != nil && l.at.Simulated { // it may have started again, elsewhere
			l.mu.Lock()
			defer l.mu.Unlock()
			l.known = nil
		}
	}()
	return l.find(ctx, e)
}

func (l *lookup) find(ctx context.Context, e envelope) (participant, error) {
	in, err := l.where(ctx)
	if err != nil {
		return participant{}, err
	}
	why := ""
	for _, to := range e.Receivers {
		address, err := in.register(ctx, to)
		if errors.Is(err, errNoName) {
			if why == "" {
				why = "the receiver is not registered on Peppol (" + to.value() + ")"
			}
			continue
		}
		if err != nil {
			return participant{}, &unseen{to, "the registry's name servers", err}
		}
		err = l.takes(ctx, in, address, to, e)
		var no *unwilling
		switch {
		case err == nil:
			return to, nil
		case errors.As(err, &no):
			why = no.why // it is registered, which says more
		default:
			return participant{}, &unseen{to, "its register " + address, err}
		}
	}
	return participant{}, &unwilling{why}
}

// label is the name of a participant in the registry (Peppol policy for use of
// identifiers; SML 1.3, NAPTR).
func label(p participant) string {
	sum := sha256.Sum256([]byte(p.value()))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// register answers the address of a participant's register.
func (r *registry) register(ctx context.Context, p participant) (string, error) {
	records, err := r.resolver.lookupNAPTR(ctx, label(p)+"."+schemeParticipant+"."+r.zone)
	if err != nil {
		return "", err
	}
	for _, record := range records {
		if uri := record.uri(); uri != "" {
			return strings.TrimSuffix(uri, "/"), nil
		}
	}
	return "", errNoName
}

// takes asks a register whether the participant takes the document. Nil: it does.
func (l *lookup) takes(ctx context.Context, in *registry, address string, to participant, e envelope) error {
	address += "/" + url.PathEscape(to.String()) + "/services/" + url.PathEscape(schemeDocument+"::"+e.Document)
	for range redirectsMax + 1 {
		body, err := l.get(ctx, address)
		if err != nil {
			return err
		}
		if body == nil {
			return &unwilling{fmt.Sprintf("%s is on the Peppol network and does not take this type of document", to.value())}
		}
		signed, err := verifySigned(body, in.trusted, time.Now())
		if err != nil {
			return err
		}
		if address = signed.redirect(); address == "" {
			return signed.takes(to, e, time.Now())
		}
	}
	return errors.New("it leads from one address to another")
}

// get calls an address that a stranger named; nil where nothing is there.
func (l *lookup) get(ctx context.Context, address string) ([]byte, error) {
	vetted, err := l.at.Vet(address)
	if err != nil {
		return nil, err
	}
	reply, err := country.Request{Method: http.MethodGet, URL: vetted.String(), BytesMax: metadataMax}.Do(ctx, l.at.Abroad)
	if err != nil {
		return nil, err
	}
	switch {
	case reply.Status == http.StatusNotFound:
		return nil, nil
	case reply.Status == http.StatusOK && len(reply.Body) > 0:
		return reply.Body, nil
	}
	return nil, fmt.Errorf("it answers %d with %d bytes", reply.Status, len(reply.Body))
}

package pl

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
)

// What the tests beside this package look at.

func KSeFNumber(nip, day, technical string) string { return ksefNumber(nip, day, technical) }

func ValidKSeF(text string) bool { return validKSeF(text) }

func CodeOne(nip string, issued time.Time, sum [sha256.Size]byte) string {
	return codeOne(qrTest, nip, issued, sum)
}

func CodeTwo(nip string, sum [sha256.Size]byte, id *identity.Identity) (string, error) {
	return codeTwo(qrTest, nip, sum, id)
}

func QRBase(at country.Endpoint) string { return qrBase(at) }

func SignedRequest(challenge, nip string, id *identity.Identity, now time.Time) ([]byte, error) {
	return signedRequest(challenge, nip, id, now)
}

// VerifySigned answers challenge and NIP of a signed request, or the code with
// which the double refuses it.
func VerifySigned(body []byte) (challenge, nip string, code int) {
	s, flaw := verifySigned(body)
	if flaw != nil {
		return "", "", flaw.Code
	}
	return s.challenge, s.nip, 0
}

func Seal(text, key, iv []byte) []byte { return sealed(text, key, iv) }

func Unseal(content, key, iv []byte) ([]byte, bool) { return unsealed(content, key, iv) }

func CheckUPO(body []byte) error { return checkUPO(body) }

func ReadRefusal(status int, header http.Header, body []byte) (text string, wait time.Duration, ok bool) {
	no, ok := readRefusal(country.Reply{Status: status, Header: header, Body: body})
	if !ok {
		return "", 0, false
	}
	return no.Error(), no.wait, true
}

var readGrammar = sync.OnceValues(newGrammar)

// Conforms answers what the double finds wrong with the structure of a document.
func Conforms(document []byte) string {
	g, err := readGrammar()
	if err != nil {
		return err.Error()
	}
	root, err := parse(document)
	if err != nil {
		return err.Error()
	}
	return g.check(root)
}

// Double is the simulated KSeF with its clock in a test's hands.
type Double struct{ *authority }

func NewDouble(d *country.Desk, now func() time.Time) Double {
	g, err := readGrammar()
	if err != nil {
		panic(err)
	}
	k := newDouble(d, g)
	k.now = now
	return Double{k}
}

func (d Double) Handler() http.Handler { return d.routes() }

// Seed gives a double a key that was made before: making one takes longer than a test.
func Seed(d *country.Desk, key *rsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return d.Write(func(b *country.Book) {
		if _, there := b.Get("key"); !there {
			b.Put("key", base64.StdEncoding.EncodeToString(der))
			b.Put("secret", randomHex(64))
		}
	})
}

// RotateKey makes the Ministry's key another one.
func (d Double) RotateKey() error {
	d.mu.Lock()
	d.key = nil
	d.mu.Unlock()
	if err := d.desk.Write(func(b *country.Book) { b.Put("key", "") }); err != nil {
		return err
	}
	return d.prepareKeys()
}

func SetClock(ch country.Channel, now func() time.Time) { ch.(*channel).now = now }

// FillSession makes a session of the channel's only account full.
func FillSession(ch country.Channel) {
	for _, a := range ch.(*channel).accounts {
		a.session.sent = sessionInvoicesMax
	}
}

const DocumentBytesMax = documentBytesMax

// Names reads a document and lists the names of its elements in their order, and
// how deep the deepest one is.
func Names(document []byte) (names []xml.Name, depth int, err error) {
	root, err := parse(document)
	if err != nil {
		return nil, 0, err
	}
	var visit func(n *node, at int)
	visit = func(n *node, at int) {
		names, depth = append(names, xml.Name{Space: n.space, Local: n.name}), max(depth, at)
		for _, c := range n.children {
			visit(c, at+1)
		}
	}
	visit(root, 1)
	return names, depth, nil
}

const (
	DepthMax = depthMax
	PagesMax = pagesMax
)

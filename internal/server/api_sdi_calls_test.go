package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	decimal "github.com/invopop/gobl/num"

	"tributary/internal/audit"
	"tributary/internal/authority/sdi"
	"tributary/internal/country"
	"tributary/internal/country/it"
	"tributary/internal/country/packtest"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	messages "tributary/internal/inbox"
	"tributary/internal/server"
	"tributary/internal/transaction"
)

// issuer is a CA that hands out certificates, as SdI's does to itself and to
// every transmitter.
type issuer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, cert: &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "CA Agenzia delle Entrate"}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	i.cert = i.sign(t, i.cert, &key.PublicKey)
	return i
}

func (i *issuer) sign(t *testing.T, template *x509.Certificate, key any) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, key, i.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// client is a certificate for a client, until a time.
func (i *issuer) client(t *testing.T, name string, until time.Time) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := i.sign(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, &key.PublicKey)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// sdiCall is a call that a simulated SdI makes about a file that this program
// never sent, with the message inside as base64.
func sdiCall(t *testing.T) (header http.Header, body []byte) {
	t.Helper()
	pack := it.Pack()
	pack.Simulator = sdi.New
	rate := decimal.MakeAmount(22, 0)
	items := []transaction.Item{{Number: 1, Name: "Penna", Quantity: decimal.MakeAmount(1, 0), UnitPrice: 100,
		Type: transaction.Goods, Taxes: []transaction.Tax{{Rate: rate, Regime: transaction.VAT, Mode: transaction.Added}}}}
	totals, faults := transaction.Calculate(items)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	at := transaction.Address{CountryCode: "IT", AddressLine1: "Via Roma 1", PostalCode: "00184", City: "Roma"}
	draft := country.Draft{OperationID: "op", UniqueNumber: "IT-1", Totals: totals, Now: time.Now(),
		Supplier: country.Supplier{ID: "s", CountryCode: "IT", LegalName: "Altro S.r.l.", TaxNumber: "00743110157",
			Address: at},
		Transaction: transaction.Transaction{Kind: transaction.Invoice, CountryCode: "IT", CurrencyCode: "EUR",
			Date: time.Now().Add(-time.Hour), Items: items,
			Customer: &transaction.Party{LegalName: "Compratore", Type: transaction.Business, TaxNumber: "12345670785",
				Address: &at}}}
	var drafts []country.Draft
	for n := range 2 { // every second call is in parts
		draft.Sequence, draft.Transaction.Number = int64(n)+1, fmt.Sprint("A-", n)
		drafts = append(drafts, draft)
	}
	for _, c := range packtest.Callbacks(t, pack, drafts...) {
		if strings.HasPrefix(c.Header.Get("Content-Type"), "text/xml") {
			return http.Header{"Content-Type": c.Header["Content-Type"], "Soapaction": c.Header["Soapaction"]}, c.Body
		}
	}
	t.Fatal("every call is in parts")
	return nil, nil
}

var fileIn = regexp.MustCompile(`<File>([^<]+)</File>`)

// resigned changes the message inside a call.
func resigned(t *testing.T, body []byte, change func(string) string) []byte {
	t.Helper()
	inside := fileIn.FindSubmatch(body)
	text, err := base64.StdEncoding.DecodeString(string(inside[1]))
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(text))
	if changed == string(text) {
		t.Fatal("nothing is changed")
	}
	return bytes.Replace(body, inside[1], []byte(base64.StdEncoding.EncodeToString([]byte(changed))), 1)
}

// padded is a call with blanks behind it, of some bytes in all.
func padded(body []byte, size int) []byte {
	return append(bytes.Clone(body), bytes.Repeat([]byte(" "), size-len(body))...)
}

// At the address of SdI only SdI is heard, in its own words: strangers, other
// transmitters of its CA, and messages that it did not sign, or whose form it does
// not have, are refused and leave nothing. What it says of a file that nobody
// knows is kept and shown.
func TestAtTheAddressOfSdIOnlySdIIsHeard(t *testing.T) {
	t.Parallel()
	p := demoAt(t, "", func(c *server.Config) { c.Callbacks = "127.0.0.1:0" })
	e, _ := p.besides(t, "sqlite:"+p.dir+"/tributary.db")
	ours, _, root := issued(t, "in.example.com")
	ca, elsewhere, host := newIssuer(t), newIssuer(t), "in.example.com"
	if _, err := e.Set(t.Context(), audit.Actor{Name: "test"}, country.Environment{Code: "IT"},
		endpoint.Change{Certificate: ours, Host: &host,
			CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})}); err != nil {
		t.Fatal(err)
	}
	header, body := sdiCall(t)
	l := listener{p: p, host: host, trust: x509.NewCertPool(), header: header}
	l.trust.AppendCertsFromPEM(root)
	const name, path, most = "SistemaInterscambioFatturaPATest", "/authorities/it/test/TrasmissioneFatture", 4 << 20
	soon := time.Now().Add(time.Hour)
	exchange := ca.client(t, name, soon)
	l.await(t, path, exchange)

	action := func(text string) http.Header {
		h := header.Clone()
		h.Set("SOAPAction", text)
		return h
	}
	for _, c := range []struct {
		what   string
		path   string
		show   *tls.Certificate
		header http.Header
		body   []byte
		want   int
	}{
		{"no certificate", path, nil, header, body, http.StatusUnauthorized},
		{"a certificate of another CA", path, elsewhere.client(t, name, soon), header, body, http.StatusForbidden},
		{"another transmitter of the CA", path, ca.client(t, "Trasmittente S.r.l.", soon), header, body,
			http.StatusForbidden},
		{"a certificate that has ended", path, ca.client(t, name, time.Now().Add(-time.Minute)), header, body,
			http.StatusForbidden},
		{"not signed", path, exchange, header, resigned(t, body, func(s string) string {
			return regexp.MustCompile(`(?s)<ds:Signature .*</ds:Signature>`).ReplaceAllString(s, "")
		}), http.StatusBadRequest},
		{"signed, then changed", path, exchange, header, resigned(t, body, func(s string) string {
			return strings.Replace(s, "00743110157_", "12345670785_", 1)
		}), http.StatusForbidden},
		{"signed by somebody else", path, exchange, header, resigned(t, body, func(s string) string {
			return regexp.MustCompile(`<ds:X509Certificate>[^<]+<`).ReplaceAllString(s,
				"<ds:X509Certificate>"+base64.StdEncoding.EncodeToString(ca.cert.Raw)+"<")
		}), http.StatusForbidden},
		{"no SOAPAction", path, exchange, action(""), body, http.StatusBadRequest},
		{"the SOAPAction of another message", path, exchange,
			action(`"http://www.fatturapa.it/TrasmissioneFatture/NotificaScarto"`), body, http.StatusBadRequest},
		{"the SOAPAction of another service", path, exchange,
			action(`"http://www.fatturapa.it/RicezioneFatture/RicevutaConsegna"`), body, http.StatusBadRequest},
		{"another namespace", path, exchange, header,
			bytes.ReplaceAll(body, []byte("/sdi/ws/trasmissione/v1.0/types"), []byte("/sdi/ws/ricezione/v1.0/types")),
			http.StatusBadRequest},
		{"no XML", path, exchange, header, []byte("{}"), http.StatusBadRequest},
		{"another path", path + "/x", exchange, header, body, http.StatusNotFound},
		{"past the bytes of a message", path, exchange, header, padded(body, most+1), http.StatusBadRequest},
		{"past the bytes of a call", path, exchange, header, padded(body, messages.LargeBodyBytesMax+1),
			http.StatusRequestEntityTooLarge},
	} {
		if status, err := l.post(t, c.path, c.show, c.header, c.body); err != nil || status != c.want {
			t.Errorf("%s: %d, want %d; %v", c.what, status, c.want, err)
		}
	}
	p.settles(t, "SELECT count(*) FROM inbox_messages", 0)

	for _, size := range []int{most, len(body)} { // at the limit; and once more, which is nothing
		if status, err := l.post(t, path, exchange, header, padded(body, size)); err != nil || status != http.StatusOK {
			t.Errorf("a message of %d bytes: %d %v", size, status, err)
		}
	}
	p.settles(t, "SELECT count(*) FROM inbox_messages", 1)
	p.settles(t, "SELECT count(*) FROM inbox_messages WHERE tries > 0 AND taken_at IS NULL", 1)
	if err := p.DB().Read(t.Context(), func(r db.Reader) error {
		list, err := messages.Unknown(r, 10)
		if len(list) != 1 || !strings.HasPrefix(list[0].Handle, "IT00743110157_") || list[0].At.String() != "IT.test" {
			t.Errorf("of a file that nobody knows is shown: %+v", list)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// listener calls the running program's address for authorities.
type listener struct {
	p      *program
	host   string
	trust  *x509.CertPool
	header http.Header
}

func (l listener) post(t *testing.T, path string, show *tls.Certificate, header http.Header, body []byte) (int, error) {
	t.Helper()
	if show == nil {
		show = &tls.Certificate{}
	}
	client := &http.Client{Timeout: patience,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: l.host, RootCAs: l.trust,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return show, nil }}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		strings.Replace(l.p.CallbacksURL(), "http://", "https://", 1)+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// await waits until the running program has seen what was set beside it: then a
// call of SdI's is read, and this one has nothing in it.
func (l listener) await(t *testing.T, path string, show *tls.Certificate) {
	t.Helper()
	for late := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		status, err := l.post(t, path, show, l.header, nil)
		if err == nil && status == http.StatusBadRequest {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d %v", status, err)
		}
	}
}

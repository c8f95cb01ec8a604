// Package ksef is a strict double of KSeF 2.0, Poland's national system of
// e-invoices: its REST interface, its rules, its codes and texts, on a desk that
// keeps its book and plays scripts.
//
// It judges invoices by the Ministry's own schema (official.FA3), signed
// requests by official.KSeFAuth and by signatures that it verifies itself
// (signature.go), and by rules written here from ksef-docs (registrar.go). It
// knows nothing of the pack whose filings it judges; both stand on
// official/ksefwire.
//
// It is stricter than the test system: its UPO has the Ministry's name, as the
// schema wants. Where public clients need it, it is as lenient: a day without a
// time is midnight in Warsaw, and an enveloping signature may sign the request
// itself. SHA-1, SHA-3, transforms by XPath and canonical forms with comments are
// not verified. A closed session is processed at once; 170 is shown only while an
// invoice is undecided. By itself it takes a thousand times as many calls as KSeF
// and says so at /rate-limits, because demonstrations are impatient; tests set
// KSeF's own limits.
package ksef

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
	"tributary/internal/strictjson"
	"tributary/internal/xmltree"
)

// How long what the double hands out is valid, as KSeF has it.
const (
	challengeFor = 10 * time.Minute
	accessFor    = 15 * time.Minute
	refreshFor   = 7 * 24 * time.Hour
	sessionFor   = 12 * time.Hour
)

// callBytesMax is how much is read of a call.
const callBytesMax = 4 << 20

// double is a strict double of KSeF, on a desk that keeps its book and its script. Keys of the book: "key" the
// Ministry's private key, "secret" that of its tokens, "session/" a session, "sessions/" those of a taxpayer, "tally/"
// the counts of a session, "sent/" the reference of a session's invoice by its ordinal, "part/" a part of a package
// until its session is closed, "invoice/" what was sent, by reference, "xml/" its content, "number/" the reference of a
// KSeF number, "token/" a KSeF token, "tokens/" those of a taxpayer.
//
// What it keeps in memory only are challenges, which authentications are active, and
// packages that were asked for: a caller whose challenge or package got lost asks for
// another, and tokens carry what they say.
type double struct {
	desk    *authority.Desk
	zone    *time.Location
	now     func() time.Time
	session time.Duration

	keys    *keyRing
	access  *access
	limits  *limits
	listing *listing
	exports *exports
}

// keyRing is the double's own keys: tokens and addresses are signed with them.
type keyRing struct {
	desk *authority.Desk
	now  func() time.Time

	mu     sync.Mutex
	key    *rsa.PrivateKey
	secret []byte
}

// limits counts the calls of each taxpayer.
type limits struct {
	access *access
	now    func() time.Time

	mu    sync.Mutex
	rates ksefwire.Rates
	made  map[string]*calls // by taxpayer and group
}

// access is who may call: challenges, tokens and what became of them.
type access struct {
	desk  *authority.Desk
	keys  *keyRing
	zone  *time.Location
	now   func() time.Time
	lasts time.Duration // an access token

	mu         sync.Mutex
	challenges map[string]time.Time
	redeemed   map[string]bool
	active     map[string]claims // authentications whose tokens were redeemed, by reference
	revoked    map[string]bool
}

// listing answers questions about accepted invoices.
type listing struct {
	desk   *authority.Desk
	access *access
	zone   *time.Location
	now    func() time.Time
}

// Habits are what differs between doubles.
type Habits struct {
	Now     func() time.Time // time.Now unless it is set
	Access  time.Duration    // how long access tokens are valid, 15 minutes unless it is set
	Session time.Duration    // how long sessions are open, 12 hours unless it is set
	Rates   ksefwire.Rates   // how many calls are taken; many more than KSeF's unless it is set
}

// New returns the authority on a desk, with the habits of the real one.
func New(d *authority.Desk) http.Handler { return Habits{}.New(d) }

// New returns the authority on a desk with these habits.
func (h Habits) New(d *authority.Desk) http.Handler {
	now, zone := h.Now, warsaw()
	if now == nil {
		now = time.Now
	}
	keys := &keyRing{desk: d, now: now}
	a := &access{desk: d, keys: keys, zone: zone, now: now, lasts: h.Access,
		challenges: map[string]time.Time{}, redeemed: map[string]bool{}, active: map[string]claims{}, revoked: map[string]bool{}}
	if a.lasts <= 0 {
		a.lasts = accessFor
	}
	l := &limits{access: a, now: now, rates: h.Rates, made: map[string]*calls{}}
	if l.rates == (ksefwire.Rates{}) {
		l.rates = generous()
	}
	k := &double{desk: d, zone: zone, now: now, session: h.Session, keys: keys, access: a, limits: l,
		listing: &listing{desk: d, access: a, zone: zone, now: now}, exports: &exports{}}
	if k.session <= 0 {
		k.session = sessionFor
	}
	return k.routes()
}

// warsaw is KSeF's own time zone: days are compared and numbers dated in it.
func warsaw() *time.Location {
	zone, err := time.LoadLocation("Europe/Warsaw")
	if err != nil {
		return time.FixedZone("CET", 60*60) // a machine without time zones: an hour off in summer
	}
	return zone
}

func (k *double) routes() http.Handler {
	mux := http.NewServeMux()
	at := func(method, path string, serve http.HandlerFunc) {
		mux.HandleFunc(method+" "+ksefwire.Version+path, serve)
	}
	at("POST", ksefwire.PathChallenge, k.access.challenge)
	at("POST", ksefwire.PathToken, k.access.byToken)
	at("POST", ksefwire.PathXAdES, k.access.bySignature)
	at("GET", "/auth/{reference}", k.access.authentication)
	at("POST", ksefwire.PathRedeem, k.access.redeem)
	at("POST", ksefwire.PathRefresh, k.access.refresh)
	at("GET", "/auth/sessions", k.access.authentications)
	at("DELETE", "/auth/sessions/current", k.access.revokeCurrent)
	at("DELETE", "/auth/sessions/{reference}", k.access.revokeOther)
	at("GET", ksefwire.PathKeys, k.keys.publicKeys)
	limited := func(method, path string, by group, serve http.HandlerFunc) {
		at(method, path, k.limits.limited(by, serve))
	}
	limited("POST", ksefwire.PathOnline, onlineSession, k.openSession)
	limited("POST", ksefwire.PathOnline+"/{session}/invoices", invoiceSend, k.takeInvoice)
	limited("POST", ksefwire.PathOnline+"/{session}/close", onlineSession, k.closeSession)
	limited("POST", ksefwire.PathBatch, batchSession, k.openBatch)
	limited("POST", ksefwire.PathBatch+"/{session}/close", batchSession, k.closeBatch)
	limited("GET", ksefwire.PathSessions, sessionList, k.listSessions)
	limited("GET", ksefwire.PathSessions+"/{session}", sessionMisc, k.sessionStatus)
	limited("GET", ksefwire.PathSessions+"/{session}/invoices", sessionInvoiceList, k.sessionInvoices)
	limited("GET", ksefwire.PathSessions+"/{session}/invoices/failed", sessionInvoiceList, k.failedInvoices)
	limited("GET", ksefwire.PathSessions+"/{session}/invoices/{invoice}", invoiceStatus, k.invoiceStatus)
	limited("GET", ksefwire.PathSessions+"/{session}/invoices/{invoice}/upo", sessionMisc, k.upo)
	limited("GET", ksefwire.PathSessions+"/{session}/invoices/ksef/{number}/upo", sessionMisc, k.upoByNumber)
	limited("GET", ksefwire.PathSessions+"/{session}/upo/{upo}", sessionMisc, k.sessionUPO)
	limited("POST", ksefwire.PathMetadata, invoiceMetadata, k.listing.query)
	limited("GET", "/invoices/ksef/{number}", invoiceDownload, k.invoiceByNumber)
	limited("POST", ksefwire.PathExports, invoiceExport, k.startExport)
	limited("GET", ksefwire.PathExports+"/{reference}", invoiceExportStatus, k.exportStatus)
	at("POST", ksefwire.PathTokens, k.access.makeToken)
	at("GET", ksefwire.PathTokens, k.access.listTokens)
	at("GET", ksefwire.PathTokens+"/{reference}", k.access.tokenStatus)
	at("DELETE", ksefwire.PathTokens+"/{reference}", k.access.revokeToken)
	limited("GET", "/limits/context", other, k.limits.contextLimits)
	limited("GET", "/limits/subject", other, k.limits.subjectLimits)
	limited("GET", ksefwire.PathRates, other, k.limits.rateLimits)
	mux.HandleFunc("GET "+pathStorage+"/{session}/{document}", k.download)
	mux.HandleFunc("PUT "+pathStorage+"/{session}/{document}", k.takePart)
	return mux
}

// refuse answers a refused call: in the form that the caller asked for, and
// where only one exists in that.
func refuse(w http.ResponseWriter, r *http.Request, status int, faults ...ksefwire.ProblemError) {
	asked := r.Header.Get(ksefwire.HeaderErrorFormat) == ksefwire.ProblemDetails
	if status == http.StatusBadRequest && !asked {
		refuseOld(w, faults)
		return
	}
	detail := ""
	if len(faults) > 0 {
		detail = faults[0].Description
	}
	p := ksefwire.Problem{
		Title: http.StatusText(status), Status: status, Instance: r.URL.Path, Detail: detail, Timestamp: time.Now().UTC(),
		TraceID: randomHex(32),
	}
	switch status {
	case http.StatusBadRequest:
		p.Errors = faults
	case http.StatusForbidden:
		p.ReasonCode = "insufficient-resource-access"
	}
	writeJSON(w, status, ksefwire.TypeProblem, p)
}

func refuseOld(w http.ResponseWriter, faults []ksefwire.ProblemError) {
	type detail struct {
		Code        int      `json:"exceptionCode"`
		Description string   `json:"exceptionDescription"`
		Details     []string `json:"details,omitempty"`
	}
	type exception struct {
		List        []detail  `json:"exceptionDetailList"`
		ServiceCode string    `json:"serviceCode"`
		Timestamp   time.Time `json:"timestamp"`
	}
	body := exception{ServiceCode: randomHex(32), Timestamp: time.Now().UTC()}
	for _, f := range faults {
		body.List = append(body.List, detail(f))
	}
	writeJSON(w, http.StatusBadRequest, ksefwire.TypeJSON, map[string]exception{"exception": body})
}

func writeJSON(w http.ResponseWriter, status int, media string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("writing an answer: %v", err)) // plain data always encodes
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(text) // a caller that left will ask again
}

// broken answers when the book cannot be written: what was done is not known.
func broken(w http.ResponseWriter) {
	http.Error(w, "the book cannot be written", http.StatusInternalServerError)
}

// readJSON reads the body of a call: strictly, and with KSeF's word where it
// cannot be read.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	text, err := readAll(w, r)
	if err == nil {
		err = strictjson.Unmarshal(text, callBytesMax, "the call", into)
	}
	if err == nil {
		return true
	}
	refuse(w, r, http.StatusBadRequest, invalidInput(flawsOf(err)...))
	return false
}

// flawsOf says what is wrong with a body, one line for each flaw.
func flawsOf(err error) []string {
	var told *fault.Error
	if !errors.As(err, &told) || len(told.Faults) == 0 {
		return []string{err.Error()}
	}
	var texts []string
	for _, f := range told.Faults {
		texts = append(texts, f.Message)
	}
	return texts
}

func invalidInput(details ...string) ksefwire.ProblemError {
	return ksefwire.ProblemError{Code: ksefwire.CodeInput, Description: "Błąd walidacji danych wejściowych.", Details: details}
}

// readStrictly reads a document as KSeF wants it (ksef-docs,
// weryfikacja-faktury.md, "Weryfikacja XML"): XML 1.0 in UTF-8 without byte
// order mark, document type, processing instructions and discouraged characters.
func readStrictly(document []byte, bytesMax int) (*xmltree.Document, error) {
	doc, err := xmltree.Limits{Bytes: bytesMax, Depth: depthMax}.Read(document)
	switch {
	case err != nil:
		return nil, err
	case doc.ByteOrderMark:
		return nil, errors.New("the file begins with a byte order mark")
	case !ksefwire.Takes(string(document)):
		return nil, errors.New("the file has characters that are discouraged")
	}
	return doc, nil
}

const depthMax = 32

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, callBytesMax))
}

func randomHex(length int) string {
	raw := make([]byte, (length+1)/2)
	rand.Read(raw) // never fails: the runtime ends the program instead
	return strings.ToUpper(hex.EncodeToString(raw))[:length]
}

// newReference is a reference number: day, kind, twenty random digits, checksum.
func (a *access) newReference(kind string) string {
	data := a.now().In(a.zone).Format("20060102") + "-" + kind + "-" + randomHex(10) + "-" + randomHex(10)
	return data + "-" + ksefwire.Checksum(data)
}

// prepareKeys reads the private keys from the book, or makes them once.
func (k *keyRing) prepareKeys() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return nil
	}
	var key, secret string
	k.desk.Read(func(b *authority.Book) {
		key, _ = b.Get("key")
		secret, _ = b.Get("secret")
	})
	if key == "" {
		made, err := rsa.GenerateKey(rand.Reader, ksefwire.KeyBitsMin)
		if err != nil {
			return fmt.Errorf("making the Ministry's key: %w", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(made)
		if err != nil {
			return fmt.Errorf("making the Ministry's key: %w", err)
		}
		key, secret = base64.StdEncoding.EncodeToString(der), randomHex(64)
		if err := k.desk.Write(func(b *authority.Book) {
			b.Put("key", key)
			b.Put("secret", secret)
		}); err != nil {
			return err
		}
	}
	der, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("reading the Ministry's key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return fmt.Errorf("reading the Ministry's key: %w", err)
	}
	k.key, k.secret = parsed.(*rsa.PrivateKey), []byte(secret)
	return nil
}

// publicKeys serves GET /security/public-key-certificates: one key, certified
// for each use.
func (k *keyRing) publicKeys(w http.ResponseWriter, _ *http.Request) {
	if err := k.prepareKeys(); err != nil {
		broken(w)
		return
	}
	var list []ksefwire.PublicKey
	for i, usage := range []string{ksefwire.UsageToken, ksefwire.UsageSession} {
		made, err := k.certify(int64(i + 1))
		if err != nil {
			broken(w)
			return
		}
		made.Usage = []string{usage}
		list = append(list, made)
	}
	writeJSON(w, http.StatusOK, ksefwire.TypeJSON, list)
}

func (k *keyRing) certify(number int64) (ksefwire.PublicKey, error) {
	now := k.now().UTC().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "Ministerstwo Finansów", Country: []string{"PL"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(2 * 365 * 24 * time.Hour), KeyUsage: x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.key.PublicKey, k.key)
	if err != nil {
		return ksefwire.PublicKey{}, fmt.Errorf("certifying the Ministry's key: %w", err)
	}
	sum := sha256.Sum256(der)
	return ksefwire.PublicKey{
		Certificate: der, CertificateID: base64.StdEncoding.EncodeToString(sum[:]), PublicKeyID: k.keyID(),
		ValidFrom: template.NotBefore, ValidTo: template.NotAfter,
	}, nil
}

// keyID is the hash of the public key, by which callers say which they used.
func (k *keyRing) keyID() string {
	der, err := x509.MarshalPKIXPublicKey(&k.key.PublicKey)
	if err != nil {
		panic(fmt.Sprintf("writing a public key: %v", err)) // an RSA key always encodes
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// claims are the content of the double's tokens. They are signed and carry all
// that is known of an authentication, so a restart forgets nobody.
type claims struct {
	Kind      string `json:"typ"` // "authentication", "access" or "refresh"
	NIP       string `json:"nip"`
	Reference string `json:"ref"`
	Method    string `json:"met"`
	Document  string `json:"doc"` // hash of what authenticated
	Code      int    `json:"code"`
	Text      string `json:"text,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Started   int64  `json:"iat"`
	Expires   int64  `json:"exp"`
}

const jwtHeader = `{"alg":"HS256","typ":"JWT"}`

// sign makes a JSON Web Token.
func (k *keyRing) sign(c claims) ksefwire.TimedToken {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("writing a token: %v", err)) // plain data always encodes
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(jwtHeader)) + "." + base64.RawURLEncoding.EncodeToString(text)
	return ksefwire.TimedToken{Token: signed + "." + base64.RawURLEncoding.EncodeToString(k.mac(signed)),
		ValidUntil: time.Unix(c.Expires, 0).UTC()}
}

func (k *keyRing) mac(text string) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// claimsOf reads the token of a call; false without a valid one of the kind.
func (a *access) claimsOf(r *http.Request, kind string) (c claims, ok bool) {
	if a.keys.prepareKeys() != nil {
		return c, false
	}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	last := strings.LastIndexByte(text, '.')
	if !ok || last <= 0 {
		return c, false
	}
	given, err := base64.RawURLEncoding.DecodeString(text[last+1:])
	_, payload, _ := strings.Cut(text[:last], ".")
	body, err2 := base64.RawURLEncoding.DecodeString(payload)
	ok = err == nil && err2 == nil && hmac.Equal(given, a.keys.mac(text[:last])) && json.Unmarshal(body, &c) == nil &&
		c.Kind == kind && a.now().Unix() < c.Expires && !a.isRevoked(c.Reference)
	return c, ok
}

// caller reads the token of a call. Without a valid one of the right kind the
// call is answered with 401.
func (a *access) caller(w http.ResponseWriter, r *http.Request, kind string) (claims, bool) {
	if err := a.keys.prepareKeys(); err != nil {
		broken(w)
		return claims{}, false
	}
	c, ok := a.claimsOf(r, kind)
	if !ok {
		refuse(w, r, http.StatusUnauthorized, ksefwire.ProblemError{Description: "Brak lub nieprawidłowy token dostępu."})
	}
	return c, ok
}

// challenge serves POST /auth/challenge.
func (a *access) challenge(w http.ResponseWriter, r *http.Request) {
	now := a.now()
	made := a.newReference("CR")
	a.mu.Lock()
	for old, at := range a.challenges {
		if now.Sub(at) > challengeFor {
			delete(a.challenges, old)
		}
	}
	a.challenges[made] = now
	a.mu.Unlock()
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = "127.0.0.1"
	}
	writeJSON(w, http.StatusOK, ksefwire.TypeJSON,
		ksefwire.Challenge{Challenge: made, Timestamp: now.UTC(), TimestampMs: now.UnixMilli(), ClientIP: host})
}

// meet takes a challenge out of the list. It is used once.
func (a *access) meet(challenge string) (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok = a.challenges[challenge]
	delete(a.challenges, challenge)
	return at, ok && a.now().Sub(at) <= challengeFor
}

func parseMillis(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return value
}

// fa3 is the form of every invoice that the double takes.
func fa3() ksefwire.FormCode {
	return ksefwire.FormCode{SystemCode: ksefwire.SystemCode, SchemaVersion: ksefwire.SchemaVersion, Value: ksefwire.FormValue}
}

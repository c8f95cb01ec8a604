// Package nav is a strict double of NAV's Online Számla 3.0.
//
// It judges what a sender reports without knowing the pack that made it: calls by
// the official structure, signatures and tokens by its own arithmetic, invoices
// by the structure and the rules of the specification's chapter 3.3. Processing
// is asynchronous and can be slow, lists can lag, and a call can fail although
// what it brought was taken, as NAV does.
//
// Numbers that end in -OPFAILED are taken and answered with OPERATION_FAILED
// once; those that end in -LAG are not shown by lists and queries three times;
// -WARN is taken with a warning. The double has no register of users: it takes
// one signing key and one exchange key, and any password but "wrong".
package nav

import (
	"bytes"
	"crypto/aes"
	"crypto/rand"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/taxid"
	"tributary/internal/official"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// Secrets that the double takes for every user: it has no register of them.
const (
	SignatureKey = "ce-8f5e-215119fa7dd621DLMRHRLH2S"
	ExchangeKey  = "7893DEMO21DLMR45"
)

// requestIDsMax bounds what is remembered of calls: NAV never forgets one.
const requestIDsMax = 100_000

type double struct {
	desk *authority.Desk
	now  func() time.Time

	mu     sync.Mutex
	used   map[string]bool      // taxpayer and request id
	tokens map[string]time.Time // taxpayer and token → until
	lagged map[string]int       // number → how often it was not shown
	failed map[string]bool      // number → OPERATION_FAILED was answered
}

// New is NAV behind a desk.
func New(desk *authority.Desk) http.Handler {
	a := &double{desk: desk, now: time.Now, used: map[string]bool{}, tokens: map[string]time.Time{},
		lagged: map[string]int{}, failed: map[string]bool{}}
	mux := http.NewServeMux()
	for operation, serve := range map[string]func(*call){
		navwire.TokenExchange: a.tokenExchange, navwire.ManageInvoice: a.manageInvoice, navwire.ManageAnnulment: a.manageAnnulment,
		navwire.QueryTransactionStatus: a.status, navwire.QueryTransactionList: a.list,
		navwire.QueryInvoiceData: a.invoiceData, navwire.QueryInvoiceCheck: a.invoiceCheck, navwire.QueryInvoiceDigest: a.digest,
	} {
		mux.HandleFunc(navwire.Path+operation, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, operation, serve) })
	}
	return mux
}

// call is one request that has passed its authentication.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	operation string
	root      *xmltree.Element
	id        string
	taxpayer  string
	login     string
	software  *xmltree.Element
}

func (a *double) serve(w http.ResponseWriter, r *http.Request, operation string, serve func(*call)) {
	c := &call{w: w, r: r, operation: operation, id: "UNKNOWN"}
	if r.Method != http.MethodPost {
		c.refuse(http.StatusInternalServerError, navwire.NotAllowed, "A művelet nem engedélyezett!")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, navwire.BodyBytesMax))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "Request Entity Too Large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // the caller left
	}
	doc, err := xmltree.Limits{Bytes: navwire.BodyBytesMax}.Read(body)
	root := strings.ToUpper(operation[:1]) + operation[1:] + "Request"
	if err != nil || doc.Root.Space != navwire.SpaceAPI || doc.Root.Local != root {
		c.exception()
		return
	}
	c.root, c.software = doc.Root, doc.Root.At("software")
	c.id = doc.Root.Value("header", "requestId")
	if flaw := official.NAV.Schema().First(doc.Root); flaw != nil {
		c.violates(flaw.Error())
		return
	}
	if a.authentic(c) {
		serve(c)
	}
}

// authentic checks a call in NAV's order: versions, time, user, signature, and that
// its id is new.
func (a *double) authentic(c *call) bool {
	header, user := c.root.At("header"), c.root.At("user")
	c.login, c.taxpayer = user.Value("login"), user.Value("taxNumber")
	password, signature := user.At("passwordHash"), user.At("requestSignature")
	stamp, err := time.Parse(time.RFC3339, header.Value("timestamp"))
	bad := http.StatusBadRequest
	switch {
	case header.Value("requestVersion") != navwire.RequestVersion:
		return c.refuse(bad, navwire.InvalidVersion, "Érvénytelen kérés verzió!")
	case header.At("headerVersion") != nil && header.Value("headerVersion") != navwire.HeaderVersion:
		return c.refuse(bad, navwire.InvalidHeaderVersion, "Érvénytelen fejléc verzió!")
	case password.Attr("cryptoType") != navwire.PasswordHash:
		return c.refuse(bad, navwire.InvalidPasswordHash, "Érvénytelen jelszó hash algoritmus!")
	case signature.Attr("cryptoType") != navwire.SignatureHash:
		return c.refuse(bad, navwire.InvalidSignatureHash, "Érvénytelen aláírás hash algoritmus!")
	case err != nil || stamp.Before(a.now().Add(-navwire.TimestampSkew)) || stamp.After(a.now().Add(navwire.TimestampSkew)):
		return c.refuse(bad, navwire.InvalidTimestamp, "Érvénytelen időbélyeg!")
	case password.Text == passwordHash("wrong") || len(password.Text) != sha512.Size*2 ||
		password.Text != strings.ToUpper(password.Text):
		return c.refuse(http.StatusUnauthorized, navwire.InvalidUser, "Helytelen authentikációs adatok!")
	case !taxid.Check("HU", c.taxpayer).Valid:
		return c.refuse(http.StatusInternalServerError, navwire.NotRegistered, "Az adózó nem regisztrált!")
	case subtle.ConstantTimeCompare([]byte(signature.Text), []byte(a.signature(c, stamp))) != 1:
		return c.refuse(bad, navwire.InvalidSignature, "Érvénytelen kérés aláírás!")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := c.taxpayer + "/" + c.id
	if a.used[key] {
		return c.refuse(bad, navwire.RequestIDNotUnique, "A kérés azonosító nem egyedi!")
	}
	if len(a.used) >= requestIDsMax {
		clear(a.used)
	}
	a.used[key] = true
	return true
}

func passwordHash(password string) string {
	sum := sha512.Sum512([]byte(password))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func upper3(text string) string {
	sum := sha3.Sum512([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// signature is what requestSignature must be.
func (a *double) signature(c *call, stamp time.Time) string {
	var text strings.Builder
	text.WriteString(c.id + stamp.UTC().Format(navwire.StampLayout) + SignatureKey)
	for _, op := range c.root.At("invoiceOperations").All("invoiceOperation") {
		text.WriteString(upper3(op.Value("invoiceOperation") + op.Value("invoiceData")))
	}
	for _, op := range c.root.At("annulmentOperations").All("annulmentOperation") {
		text.WriteString(upper3(op.Value("annulmentOperation") + op.Value("invoiceAnnulment")))
	}
	return upper3(text.String())
}

// tokenExchange gives a token for one report, sealed with the exchange key.
func (a *double) tokenExchange(c *call) {
	token := strings.ToLower(rand.Text()) + rand.Text() // 52 letters and digits
	token = token[:48]
	from := a.now().UTC()
	until := from.Add(navwire.TokenLifetime)
	a.mu.Lock()
	for t, end := range a.tokens {
		if end.Before(from) {
			delete(a.tokens, t)
		}
	}
	a.tokens[c.taxpayer+"/"+token] = until
	a.mu.Unlock()
	c.answer(func(w *xmltree.Writer) {
		w.Leaf("encodedExchangeToken", base64.StdEncoding.EncodeToString(sealed(token)))
		w.Leaf("tokenValidityFrom", from.Format(navwire.TimeLayout))
		w.Leaf("tokenValidityTo", until.Format(navwire.TimeLayout))
	})
}

// sealed encrypts with AES-128-ECB and PKCS#5 padding.
func sealed(token string) []byte {
	fill := aes.BlockSize - len(token)%aes.BlockSize
	text := append([]byte(token), bytes.Repeat([]byte{byte(fill)}, fill)...)
	block, err := aes.NewCipher([]byte(ExchangeKey))
	if err != nil {
		panic(err) // the key is a constant of the right length
	}
	for at := 0; at < len(text); at += aes.BlockSize {
		block.Encrypt(text[at:at+aes.BlockSize], text[at:at+aes.BlockSize])
	}
	return text
}

func (a *double) takeToken(c *call) bool {
	key := c.taxpayer + "/" + c.root.Value("exchangeToken")
	a.mu.Lock()
	defer a.mu.Unlock()
	until, known := a.tokens[key]
	delete(a.tokens, key)
	return known && !a.now().After(until)
}

// answer writes NAV's answer to a call.
func (c *call) answer(body func(*xmltree.Writer)) {
	w := xmltree.NewWriter(1024)
	w.Declare()
	name := strings.ToUpper(c.operation[:1]) + c.operation[1:] + "Response"
	w.Start(name, "xmlns", navwire.SpaceAPI, "xmlns:common", navwire.SpaceCommon, "xmlns:base", navwire.SpaceBase)
	c.head(w, navwire.OK, "", "")
	if body != nil {
		body(w)
	}
	w.End()
	c.write(http.StatusOK, w.Bytes())
}

func (c *call) head(w *xmltree.Writer, result, code, text string) {
	w.Start("common:header")
	w.Leaf("common:requestId", c.id)
	w.Leaf("common:timestamp", time.Now().UTC().Format(navwire.TimeLayout))
	w.Leaf("common:requestVersion", navwire.RequestVersion)
	w.Leaf("common:headerVersion", navwire.HeaderVersion)
	w.End()
	w.Start("common:result")
	w.Leaf("common:funcCode", result)
	w.Maybe("common:errorCode", code)
	w.Maybe("common:message", text)
	w.End()
	if c.software == nil {
		return
	}
	w.Start("software")
	for _, n := range c.software.Children {
		w.Leaf(n.Local, n.Text)
	}
	w.End()
}

func (c *call) write(status int, body []byte) {
	c.w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // a caller that left is nobody to tell
}

// refuse answers GeneralErrorResponse. It is false, for who wants to go on.
func (c *call) refuse(status int, code, text string) bool {
	c.general(status, code, text, nil)
	return false
}

func (c *call) general(status int, code, text string, body func(*xmltree.Writer)) {
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("GeneralErrorResponse", "xmlns", navwire.SpaceAPI, "xmlns:common", navwire.SpaceCommon)
	c.head(w, navwire.Error, code, text)
	if body != nil {
		body(w)
	}
	w.End()
	c.write(status, w.Bytes())
}

// violates answers a call that does not have the official structure.
func (c *call) violates(flaw string) {
	c.general(http.StatusBadRequest, navwire.InvalidRequest, "Helytelen kérés!", func(w *xmltree.Writer) {
		w.Start("technicalValidationMessages")
		w.Leaf("common:validationResultCode", navwire.Error)
		w.Leaf("common:validationErrorCode", navwire.SchemaViolation)
		w.Leaf("common:message", clipped(flaw, 1024))
		w.End()
	})
}

// exception answers what cannot be read at all.
func (c *call) exception() {
	w := xmltree.NewWriter(256)
	w.Declare()
	w.Start("GeneralExceptionResponse", "xmlns", navwire.SpaceCommon)
	w.Leaf("funcCode", navwire.Error)
	w.Leaf("errorCode", navwire.InvalidRequest)
	w.Leaf("message", "Helytelen kérés!")
	w.End()
	c.write(http.StatusBadRequest, w.Bytes())
}

// busy is maintenance, as the border in front of NAV passes it on.
func (c *call) busy(http.ResponseWriter) {
	c.refuse(http.StatusServiceUnavailable, navwire.Maintenance, "Karbantartás!")
}

func clipped(text string, max int) string {
	if runes := []rune(text); len(runes) > max {
		return string(runes[:max])
	}
	return text
}

func itoa(n int) string { return strconv.Itoa(n) }

package hu

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/rand"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// What NAV is told about the program that calls.
const (
	softwareID      = "TRIBUTARY-00000001" // 18 characters
	softwareName    = "Tributary"
	softwareVersion = "3.0"
	softwareDev     = "Tributary"
	softwareContact = "the operator of this installation"
)

// Sizes of what is read of NAV: a status with a hundred original requests is as
// large as the call that brought them.
const (
	shortBytesMax    = 256 << 10 // a token, a transaction's id, or why there is none
	answerBytesMax   = 4 << 20
	originalBytesMax = 16 << 20
)

// user is a technical user of a taxpayer on its way to NAV.
type user struct {
	ch        *channel
	taxpayer  string
	login     string
	password  string
	signature string
	exchange  string
}

// user finds who calls. Every secret is needed; one that is missing is not asked
// of NAV.
func (ch *channel) user(taxpayer string, c country.Credentials) (user, error) {
	u := user{ch: ch, taxpayer: taxpayer, login: c.Username, password: c.Secret, signature: c.Named[secretSignature],
		exchange: c.Named[secretExchange]}
	if u.login == "" || u.password == "" || u.signature == "" || u.exchange == "" {
		return u, fmt.Errorf("%w: %w: username, password, %s and %s are needed", country.ErrNotTaken, country.ErrCredentials,
			secretSignature, secretExchange)
	}
	return u, nil
}

// requestID is one that nobody used before: NAV refuses a second use.
func requestID() string { return "TRB" + rand.Text() }

// sign is requestSignature: of the id, the second of the call and the key, and
// of a report also what is in it.
func sign(id string, at time.Time, key string, batch []entry) string {
	text := id + at.UTC().Format(navwire.StampLayout) + key
	for _, e := range batch {
		text += hash3(e.operation + e.data)
	}
	return hash3(text)
}

func hash3(text string) string {
	sum := sha3.Sum512([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// request writes a call: header, user, program, then what body adds.
func (u user) request(operation string, batch []entry, body func(*xmltree.Writer)) []byte {
	id, now := requestID(), u.ch.now().UTC()
	password := sha512.Sum512([]byte(u.password))
	size := 2048
	for _, e := range batch {
		size += len(e.data) + 256
	}
	w := xmltree.NewWriter(size)
	w.Declare()
	w.Start(strings.ToUpper(operation[:1])+operation[1:]+"Request", "xmlns", navwire.SpaceAPI, "xmlns:common",
		navwire.SpaceCommon)
	w.Group("common:header", "common:requestId", id, "common:timestamp", now.Format(navwire.TimeLayout),
		"common:requestVersion", navwire.RequestVersion, "common:headerVersion", navwire.HeaderVersion)
	w.Start("common:user")
	w.Leaf("common:login", u.login)
	w.Leaf("common:passwordHash", strings.ToUpper(hex.EncodeToString(password[:])), "cryptoType", navwire.PasswordHash)
	w.Leaf("common:taxNumber", u.taxpayer)
	w.Leaf("common:requestSignature", sign(id, now, u.signature, batch), "cryptoType", navwire.SignatureHash)
	w.End()
	w.Group("software", "softwareId", softwareID, "softwareName", softwareName, "softwareOperation", "ONLINE_SERVICE",
		"softwareMainVersion", softwareVersion, "softwareDevName", softwareDev, "softwareDevContact", softwareContact)
	if body != nil {
		body(w)
	}
	w.End()
	return w.Bytes()
}

// call makes one call and reads its answer. Whatever is not NAV's own word, a page
// of a border or an empty body with any status, is an error that says nothing
// about what was asked for.
func (u user) call(ctx context.Context, operation string, body []byte, bytesMax int64) (*xmltree.Element, []byte, error) {
	reply, err := country.Request{URL: u.ch.base + "/" + operation,
		Header: []string{"Content-Type", "application/xml", "Accept", "application/xml"},
		Body:   body, BytesMax: bytesMax}.Do(ctx, u.ch.at.HTTP)
	if err != nil {
		return nil, nil, fmt.Errorf("calling %s: %w", operation, err)
	}
	doc, err := xmltree.Limits{Bytes: int(bytesMax)}.Read(reply.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("calling %s: status %d without NAV's answer: %w", operation, reply.Status, err)
	}
	root := doc.Root
	code := root.Value("result", "funcCode")
	if root.Local == "GeneralExceptionResponse" {
		code = root.Value("funcCode")
	}
	switch {
	case code == navwire.OK && strings.EqualFold(root.Local, operation+"Response") && reply.Status == http.StatusOK:
		return root, reply.Body, nil
	case code == navwire.Error:
		return nil, nil, readRefusal(operation, reply.Status, root)
	}
	return nil, nil, fmt.Errorf("calling %s: status %d with %s, which is no answer to it", operation, reply.Status, root.Local)
}

// refusal is NAV's own word that a call was not done.
type refusal struct {
	operation string
	status    int
	code      string
	text      string
}

func (no *refusal) Error() string {
	return fmt.Sprintf("NAV refused %s with status %d: %s %s", no.operation, no.status, no.code, no.text)
}

// field is what the client must look at, where NAV tells it apart.
func (no *refusal) field() string {
	switch no.code {
	case navwire.InvalidSignature:
		return "tax_credentials." + secretSignature
	case navwire.NotRegistered, navwire.InvalidCustomer:
		return "tax_information.tax_number"
	}
	return "tax_credentials.username"
}

func readRefusal(operation string, status int, root *xmltree.Element) error {
	result := root.At("result")
	if root.Local == "GeneralExceptionResponse" {
		result = root
	}
	no := &refusal{operation: operation, status: status, code: result.Value("errorCode"), text: result.Value("message")}
	for _, m := range root.All("technicalValidationMessages") {
		no.text = strings.TrimSpace(no.text + " " + m.Value("validationErrorCode") + " " + m.Value("message"))
	}
	switch no.code {
	case navwire.InvalidUser, navwire.InvalidSignature, navwire.NotRegistered, navwire.InvalidCustomer,
		navwire.InvalidRelation, navwire.Forbidden:
		return fmt.Errorf("%w: %w: %w", country.ErrNotTaken, country.ErrCredentials, no)
	case navwire.Maintenance:
		return fmt.Errorf("%w: %w", country.ErrNotTaken, no)
	case navwire.OperationFailed:
		return no // invoices were taken nevertheless
	}
	if status == http.StatusBadRequest {
		return fmt.Errorf("%w: %w", country.ErrNotTaken, no)
	}
	return no
}

var errExchangeKey = errors.New("the exchange key does not open NAV's token")

// token is the permission for one report, opened with the exchange key.
func (u user) token(ctx context.Context) (string, error) {
	root, _, err := u.call(ctx, navwire.TokenExchange, u.request(navwire.TokenExchange, nil, nil), shortBytesMax)
	if err != nil {
		return "", err
	}
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(root.Value("encodedExchangeToken")))
	if err != nil {
		return "", fmt.Errorf("reading NAV's token: %w", err)
	}
	token, ok := opened(sealed, u.exchange)
	if !ok {
		return "", fmt.Errorf("%w: %w", country.ErrCredentials, errExchangeKey)
	}
	return token, nil
}

// opened decrypts AES-128-ECB with PKCS#5 padding. NAV's tokens are printable.
func opened(sealed []byte, key string) (string, bool) {
	block, err := aes.NewCipher([]byte(key))
	if err != nil || len(key) != navwire.ExchangeKeyBytes || len(sealed) == 0 || len(sealed)%aes.BlockSize != 0 {
		return "", false
	}
	text := make([]byte, len(sealed))
	for at := 0; at < len(sealed); at += aes.BlockSize {
		block.Decrypt(text[at:at+aes.BlockSize], sealed[at:at+aes.BlockSize])
	}
	fill := int(text[len(text)-1])
	if fill < 1 || fill > aes.BlockSize || !bytes.Equal(text[len(text)-fill:], bytes.Repeat([]byte{byte(fill)}, fill)) {
		return "", false
	}
	text = text[:len(text)-fill]
	for _, b := range text {
		if b < ' ' || b > '~' {
			return "", false
		}
	}
	return string(text), len(text) > 0
}

// report sends invoices, or annulments of them, and answers the transaction's id.
// With a token that NAV no longer takes the same goes once more with a new one.
func (u user) report(ctx context.Context, operation string, batch []entry) (id string, reply []byte, err error) {
	id, reply, err = u.reportOnce(ctx, operation, batch)
	var no *refusal
	if errors.As(err, &no) && no.code == navwire.InvalidToken {
		return u.reportOnce(ctx, operation, batch)
	}
	return id, reply, err
}

// reportOnce makes one call. Without a token nothing was sent.
func (u user) reportOnce(ctx context.Context, operation string, batch []entry) (id string, reply []byte, err error) {
	token, err := u.token(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("%w: asking for a token: %w", country.ErrNotTaken, err)
	}
	root, reply, err := u.call(ctx, operation, u.request(operation, batch, func(w *xmltree.Writer) {
		w.Leaf("exchangeToken", token)
		one, data := "invoiceOperation", "invoiceData"
		if operation == navwire.ManageAnnulment {
			one, data = "annulmentOperation", "invoiceAnnulment"
		}
		w.Start(one + "s")
		if operation == navwire.ManageInvoice {
			w.Leaf("compressedContent", "false")
		}
		for i, e := range batch {
			w.Group(one, "index", strconv.Itoa(i+1), one, e.operation, data, e.data)
		}
		w.End()
	}), shortBytesMax)
	if err != nil {
		return "", nil, err
	}
	if id = root.Value("transactionId"); id == "" {
		return "", nil, errors.New("NAV answered a report without the transaction's id")
	}
	return id, reply, nil
}

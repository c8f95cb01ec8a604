// Package xxwire is the protocol of the reference authority as data: paths,
// headers, limits, outcomes, and how calls and receipts are signed.
// docs/countries/xx.md describes it.
//
// The sender (country/xx) and the authority (authority/reference) both stand on
// it and on nothing else of each other's.
package xxwire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// The protocol's limits.
const (
	BatchMax       = 200
	BatchBytesMax  = 8 << 20
	AnswerBytesMax = 4 << 20
	SkewMax        = 5 * time.Minute
)

const (
	PathDocuments = "/v1/documents"
	PathStatus    = "/v1/documents/status"
	PathList      = "/v1/documents/list"
	PathChain     = "/v1/chain"
	PathSuppliers = "/v1/suppliers"
	PathNotices   = "/v1/notices"

	HeaderSupplier  = "XX-Supplier"
	HeaderDate      = "XX-Date"
	HeaderDigest    = "XX-Digest"
	HeaderSignature = "XX-Signature"
	HeaderWait      = "XX-Wait"
	HeaderNext      = "XX-Next"

	TypeLines = "application/x-ndjson"
)

// Outcomes of a Receipt.
const (
	OutcomeAccepted  = "accepted"
	OutcomeRejected  = "rejected"
	OutcomePending   = "pending"
	OutcomeNotTaken  = "not_taken"
	OutcomeDuplicate = "duplicate" // the authority holds a document under this name; sha256 says which
	OutcomeAbsent    = "absent"
)

// Names of refusals: of a document (in its Receipt) and of a call (status 4xx or 503).
const (
	CodeStructure     = "structure"
	CodeSums          = "sums"
	CodeReference     = "reference_unknown"
	CodeChain         = "chain_broken"
	CodeRefused       = "refused"
	CodeSequence      = "sequence_used"
	CodeIndex         = "index"
	CodeKeyUnknown    = "key_unknown"
	CodeSignature     = "signature"
	CodeClock         = "clock"
	CodeCall          = "call"
	CodeUnavailable   = "unavailable"
	CodeKeyEnrolled   = "key_enrolled"
	CodeInternalError = "internal"
)

// Flavours of chains, said in each link.
const (
	RefusalStops = "stops"
	AnyOrder     = "any"
)

// Receipt is the authority's word on one document.
type Receipt struct {
	Number      string `json:"number"`
	Outcome     string `json:"outcome"`
	AuthorityID string `json:"authority_id,omitempty"`
	SHA256      string `json:"sha256,omitempty"`
	At          string `json:"at,omitempty"`
	Awaiting    string `json:"awaiting,omitempty"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`

	// Lists only.
	Cancelled bool   `json:"cancelled,omitempty"`
	Kind      string `json:"kind,omitempty"` // as transaction.Kind
	Reference string `json:"reference,omitempty"`
	Currency  string `json:"currency,omitempty"`
	Gross     *int64 `json:"gross,omitempty"`

	Sales []string `json:"sales,omitempty"` // numbers in the document of a period

	Position int64 `json:"position,omitempty"` // the head of a chain only

	News []Notice `json:"news,omitempty"` // status of a registered document only
}

// Notice is what somebody said about a registered document.
type Notice struct {
	Key      string `json:"key"` // chosen by who says it; the same words again have the same key
	At       string `json:"at"`
	Code     string `json:"code"`
	Name     string `json:"name"`
	Source   string `json:"source"`   // AUTHORITY, PLATFORM, ACCESS_POINT or BUYER
	Severity string `json:"severity"` // INFO, WARNING or PROBLEM
	Message  string `json:"message,omitempty"`
}

// Said is the body of a call that leaves a notice.
type Said struct {
	Supplier string `json:"supplier"`
	Number   string `json:"number"`
	Notice   Notice `json:"notice"`
}

// Problem is the body of a refused call. Taken false is the authority's
// promise that it holds nothing of the call.
type Problem struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Taken   *bool  `json:"taken"`
}

// A signed Receipt is {"mac":"…64 hex…","receipt":{…}}, written exactly so:
// the MAC covers the bytes of the inner object, which need no second reading.
const (
	macStart     = `{"mac":"`
	receiptStart = `","receipt":`
	macLength    = 2 * sha256.Size
)

var ErrUnsigned = errors.New("the Receipt is not signed by the authority")

func SignReceipt(out, key []byte, r Receipt) []byte { return sign(out, key, r) }

// SignMessage puts a message of a mailbox into the frame of receipts.
func SignMessage(out, key []byte, m Callback) []byte { return sign(out, key, m) }

func sign(out, key []byte, said any) []byte {
	inner, err := json.Marshal(said)
	if err != nil {
		panic(fmt.Sprintf("encoding a Receipt: %v", err)) // strings only: cannot happen
	}
	out = append(out, macStart...)
	out = hex.AppendEncode(out, MAC(key, inner))
	out = append(out, receiptStart...)
	out = append(out, inner...)
	return append(out, '}')
}

func OpenReceipt(line, key []byte) (r Receipt, err error) { return r, open(line, key, &r) }

// OpenMessage reads what [SignMessage] wrote.
func OpenMessage(line, key []byte) (m Callback, err error) { return m, open(line, key, &m) }

func open(line, key []byte, into any) error {
	const head = len(macStart) + macLength
	if len(line) < head+len(receiptStart)+3 || string(line[:len(macStart)]) != macStart ||
		string(line[head:head+len(receiptStart)]) != receiptStart || line[len(line)-1] != '}' {
		return ErrUnsigned
	}
	inner := line[head+len(receiptStart) : len(line)-1]
	given := make([]byte, sha256.Size)
	if _, err := hex.Decode(given, line[len(macStart):head]); err != nil || !hmac.Equal(given, MAC(key, inner)) {
		return ErrUnsigned
	}
	if err := json.Unmarshal(inner, into); err != nil {
		return fmt.Errorf("reading a Receipt: %w", err)
	}
	return nil
}

func MAC(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// SigningKey derives the key that a supplier shares with the authority from
// the secret of its credentials. Without one the key is derived from the name
// alone: good enough for a demo, and worth nothing as a secret.
func SigningKey(supplier, secret string) []byte {
	return MAC([]byte(secret), []byte("reference authority\n"+supplier))
}

// Signer is a supplier with the key that it shares with the authority.
type Signer struct {
	Supplier string
	Key      []byte
}

// SignCall puts the four headers on a request: who, when, the body's hash, and
// the MAC over method, path, query and those three.
func SignCall(r *http.Request, path string, by Signer, body []byte) {
	digest := sha256.Sum256(body)
	r.Header.Set(HeaderSupplier, url.QueryEscape(by.Supplier))
	r.Header.Set(HeaderDate, time.Now().UTC().Format(time.RFC3339))
	r.Header.Set(HeaderDigest, hex.EncodeToString(digest[:]))
	r.Header.Set(HeaderSignature, hex.EncodeToString(MAC(by.Key, SignedText(r, path))))
}

func SignedText(r *http.Request, path string) []byte {
	text := make([]byte, 0, 256)
	for _, part := range []string{
		r.Method, path, r.URL.RawQuery, r.Header.Get(HeaderSupplier), r.Header.Get(HeaderDate), r.Header.Get(HeaderDigest),
	} {
		text = append(append(text, part...), '\n')
	}
	return text
}

// Enrolment is the body that makes a supplier's key known.
type Enrolment struct {
	Supplier string `json:"supplier"`
	Key      string `json:"key"` // base64
	Replace  bool   `json:"replace"`
}

package xx

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

	"tributary/internal/transaction"
)

// The protocol's limits.
const (
	batchMax       = 200
	batchBytesMax  = 8 << 20
	answerBytesMax = 4 << 20
	skewMax        = 5 * time.Minute
)

const (
	pathDocuments = "/v1/documents"
	pathStatus    = "/v1/documents/status"
	pathList      = "/v1/documents/list"
	pathChain     = "/v1/chain"
	pathSuppliers = "/v1/suppliers"

	headerSupplier  = "XX-Supplier"
	headerDate      = "XX-Date"
	headerDigest    = "XX-Digest"
	headerSignature = "XX-Signature"
	headerWait      = "XX-Wait"
	headerNext      = "XX-Next"

	typeLines = "application/x-ndjson"
)

// Outcomes of a receipt.
const (
	outcomeAccepted  = "accepted"
	outcomeRejected  = "rejected"
	outcomePending   = "pending"
	outcomeNotTaken  = "not_taken"
	outcomeDuplicate = "duplicate" // the authority holds a document under this name; sha256 says which
	outcomeAbsent    = "absent"
)

// Names of refusals: of a document (in its receipt) and of a call (status 4xx or 503).
const (
	codeStructure     = "structure"
	codeSums          = "sums"
	codeReference     = "reference_unknown"
	codeChain         = "chain_broken"
	codeRefused       = "refused"
	codeKeyUnknown    = "key_unknown"
	codeSignature     = "signature"
	codeClock         = "clock"
	codeCall          = "call"
	codeUnavailable   = "unavailable"
	codeKeyEnrolled   = "key_enrolled"
	codeInternalError = "internal"
)

// receipt is the authority's word on one document.
type receipt struct {
	Number      string `json:"number"`
	Outcome     string `json:"outcome"`
	AuthorityID string `json:"authority_id,omitempty"`
	SHA256      string `json:"sha256,omitempty"`
	At          string `json:"at,omitempty"`
	Awaiting    string `json:"awaiting,omitempty"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message,omitempty"`

	// Lists only.
	Cancelled bool             `json:"cancelled,omitempty"`
	Kind      transaction.Kind `json:"kind,omitempty"`
	Reference string           `json:"reference,omitempty"`
	Currency  string           `json:"currency,omitempty"`
	Gross     *int64           `json:"gross,omitempty"`

	Position int64 `json:"position,omitempty"` // the head of a chain only
}

// problem is the body of a refused call. Taken false is the authority's
// promise that it holds nothing of the call.
type problem struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Taken   *bool  `json:"taken"`
}

// A signed receipt is {"mac":"…64 hex…","receipt":{…}}, written exactly so:
// the MAC covers the bytes of the inner object, which need no second reading.
const (
	macStart     = `{"mac":"`
	receiptStart = `","receipt":`
	macLength    = 2 * sha256.Size
)

var errUnsigned = errors.New("the receipt is not signed by the authority")

func signReceipt(out, key []byte, r receipt) []byte {
	inner, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encoding a receipt: %v", err)) // strings only: cannot happen
	}
	out = append(out, macStart...)
	out = hex.AppendEncode(out, mac(key, inner))
	out = append(out, receiptStart...)
	out = append(out, inner...)
	return append(out, '}')
}

func openReceipt(line, key []byte) (receipt, error) {
	const head = len(macStart) + macLength
	var r receipt
	if len(line) < head+len(receiptStart)+3 || string(line[:len(macStart)]) != macStart ||
		string(line[head:head+len(receiptStart)]) != receiptStart || line[len(line)-1] != '}' {
		return r, errUnsigned
	}
	inner := line[head+len(receiptStart) : len(line)-1]
	given := make([]byte, sha256.Size)
	if _, err := hex.Decode(given, line[len(macStart):head]); err != nil || !hmac.Equal(given, mac(key, inner)) {
		return r, errUnsigned
	}
	if err := json.Unmarshal(inner, &r); err != nil {
		return r, fmt.Errorf("reading a receipt: %w", err)
	}
	return r, nil
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// signingKey derives the key that a supplier shares with the authority from
// the secret of its credentials. Without one the key is derived from the name
// alone: good enough for a demo, and worth nothing as a secret.
func signingKey(supplier, secret string) []byte {
	return mac([]byte(secret), []byte("reference authority\n"+supplier))
}

// signCall puts the four headers on a request: who, when, the body's hash, and
// the MAC over method, path, query and those three.
func signCall(r *http.Request, path, supplier string, key, body []byte) {
	digest := sha256.Sum256(body)
	r.Header.Set(headerSupplier, url.QueryEscape(supplier))
	r.Header.Set(headerDate, time.Now().UTC().Format(time.RFC3339))
	r.Header.Set(headerDigest, hex.EncodeToString(digest[:]))
	r.Header.Set(headerSignature, hex.EncodeToString(mac(key, signedText(r, path))))
}

func signedText(r *http.Request, path string) []byte {
	text := make([]byte, 0, 256)
	for _, part := range []string{
		r.Method, path, r.URL.RawQuery, r.Header.Get(headerSupplier), r.Header.Get(headerDate), r.Header.Get(headerDigest),
	} {
		text = append(append(text, part...), '\n')
	}
	return text
}

package pl

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
)

// Paths of the KSeF API 2.6.0 below its version.
const (
	apiVersion    = "/v2"
	pathChallenge = "/auth/challenge"
	pathToken     = "/auth/ksef-token"
	pathXAdES     = "/auth/xades-signature"
	pathRedeem    = "/auth/token/redeem"
	pathRefresh   = "/auth/token/refresh"
	pathKeys      = "/security/public-key-certificates"
	pathOnline    = "/sessions/online"
	pathSessions  = "/sessions"
	pathMetadata  = "/invoices/query/metadata"
)

// Sizes of what is read of KSeF, and of what the double reads of a caller.
const (
	answerBytesMax = 4 << 20
	upoBytesMax    = 1 << 20
	callBytesMax   = 4 << 20
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeXML     = "application/xml"

	headerErrorFormat = "X-Error-Format"
	problemDetails    = "problem-details"
	headerHash        = "x-ms-meta-hash"
)

// Uses of the Ministry's public keys.
const (
	usageToken   = "KsefTokenEncryption"
	usageSession = "SymmetricKeyEncryption"
)

// Codes of refused calls, as the OpenAPI document lists them.
const (
	errUnreadable       = 21001
	errChallenge        = 21111
	errCertificate      = 21115
	errContext          = 21117
	errSessionFull      = 21155
	errSessionUnknown   = 21173
	errReceiptUnknown   = 21178
	errSessionState     = 21180
	errNotAuthorised    = 21301
	errNotAuthenticated = 21304
	errSchema           = 21401
	errSize             = 21402
	errHash             = 21403
	errInput            = 21405
	errSignatureType    = 21406
	errKey              = 21470
	errDocument         = 9101
	errSignatureMissing = 9102
	errSignatures       = 9103
	errSignature        = 9105
)

// Statuses of an authentication and of an invoice.
const (
	statusProcessing  = 150
	statusSuccess     = 200
	statusSession     = 405
	statusPermission  = 410
	statusAttachment  = 415
	statusFile        = 430
	statusDecryption  = 435
	statusDuplicate   = 440
	statusSemantics   = 450
	statusCertificate = 460
	statusUnknown     = 500
	statusCancelled   = 550

	extensionNumber  = "originalKsefNumber"
	extensionSession = "originalSessionReferenceNumber"
)

type challengeResponse struct {
	Challenge   string    `json:"challenge"`
	Timestamp   time.Time `json:"timestamp"`
	TimestampMs int64     `json:"timestampMs"`
	ClientIP    string    `json:"clientIp"`
}

type contextIdentifier struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type tokenRequest struct {
	Challenge      string            `json:"challenge"`
	Context        contextIdentifier `json:"contextIdentifier"`
	EncryptedToken string            `json:"encryptedToken"`
	PublicKeyID    string            `json:"publicKeyId,omitempty"`
}

type timedToken struct {
	Token      string    `json:"token"`
	ValidUntil time.Time `json:"validUntil"`
}

type authResponse struct {
	ReferenceNumber string     `json:"referenceNumber"`
	Authentication  timedToken `json:"authenticationToken"`
}

type statusInfo struct {
	Code        int               `json:"code"`
	Description string            `json:"description"`
	Details     []string          `json:"details,omitempty"`
	Extensions  map[string]string `json:"extensions,omitempty"`
}

// text is a status in one line, as the client sees it.
func (s statusInfo) text() string {
	text := strconv.Itoa(s.Code) + " " + s.Description
	if len(s.Details) > 0 {
		text += ": " + strings.Join(s.Details, "; ")
	}
	return text
}

type methodInfo struct {
	Category    string `json:"category"`
	Code        string `json:"code"`
	DisplayName string `json:"displayName"`
}

type authStatus struct {
	StartDate  time.Time  `json:"startDate"`
	Method     string     `json:"authenticationMethod"`
	MethodInfo methodInfo `json:"authenticationMethodInfo"`
	Status     statusInfo `json:"status"`
	Redeemed   *bool      `json:"isTokenRedeemed,omitempty"`
}

type tokensResponse struct {
	Access  timedToken  `json:"accessToken"`
	Refresh *timedToken `json:"refreshToken,omitempty"`
}

type publicKey struct {
	Certificate   []byte    `json:"certificate"`
	CertificateID string    `json:"certificateId"`
	PublicKeyID   string    `json:"publicKeyId"`
	ValidFrom     time.Time `json:"validFrom"`
	ValidTo       time.Time `json:"validTo"`
	Usage         []string  `json:"usage"`
}

type formCodeInfo struct {
	SystemCode    string `json:"systemCode"`
	SchemaVersion string `json:"schemaVersion"`
	Value         string `json:"value"`
}

type encryptionInfo struct {
	Key         []byte `json:"encryptedSymmetricKey"`
	IV          []byte `json:"initializationVector"`
	PublicKeyID string `json:"publicKeyId,omitempty"`
}

type sessionRequest struct {
	FormCode   formCodeInfo   `json:"formCode"`
	Encryption encryptionInfo `json:"encryption"`
}

type sessionResponse struct {
	ReferenceNumber string    `json:"referenceNumber"`
	ValidUntil      time.Time `json:"validUntil"`
}

type invoiceRequest struct {
	Hash          []byte `json:"invoiceHash"`
	Size          int64  `json:"invoiceSize"`
	EncryptedHash []byte `json:"encryptedInvoiceHash"`
	EncryptedSize int64  `json:"encryptedInvoiceSize"`
	Content       []byte `json:"encryptedInvoiceContent"`
	Offline       bool   `json:"offlineMode"`
}

type invoiceResponse struct {
	ReferenceNumber string `json:"referenceNumber"`
}

type invoiceStatus struct {
	Ordinal         int        `json:"ordinalNumber"`
	InvoiceNumber   string     `json:"invoiceNumber,omitempty"`
	KSeFNumber      string     `json:"ksefNumber,omitempty"`
	ReferenceNumber string     `json:"referenceNumber"`
	Hash            []byte     `json:"invoiceHash"`
	AcquisitionDate *time.Time `json:"acquisitionDate,omitempty"`
	InvoicingDate   time.Time  `json:"invoicingDate"`
	StorageDate     *time.Time `json:"permanentStorageDate,omitempty"`
	InvoicingMode   string     `json:"invoicingMode,omitempty"`
	Status          statusInfo `json:"status"`
}

type dateRange struct {
	DateType string `json:"dateType"`
	From     string `json:"from"`
	To       string `json:"to,omitempty"`
}

type metadataRequest struct {
	SubjectType   string    `json:"subjectType"`
	DateRange     dateRange `json:"dateRange"`
	KSeFNumber    string    `json:"ksefNumber,omitempty"`
	InvoiceNumber string    `json:"invoiceNumber,omitempty"`
	SellerNIP     string    `json:"sellerNip,omitempty"`
	FormType      string    `json:"formType,omitempty"`
	InvoiceTypes  []string  `json:"invoiceTypes,omitempty"`
}

type partyInfo struct {
	NIP        string             `json:"nip,omitempty"`
	Identifier *contextIdentifier `json:"identifier,omitempty"`
	Name       string             `json:"name,omitempty"`
}

type metadata struct {
	KSeFNumber      string       `json:"ksefNumber"`
	InvoiceNumber   string       `json:"invoiceNumber"`
	IssueDate       string       `json:"issueDate"`
	InvoicingDate   time.Time    `json:"invoicingDate"`
	AcquisitionDate time.Time    `json:"acquisitionDate"`
	StorageDate     time.Time    `json:"permanentStorageDate"`
	Seller          partyInfo    `json:"seller"`
	Buyer           partyInfo    `json:"buyer"`
	Net             json.Number  `json:"netAmount"`
	Gross           json.Number  `json:"grossAmount"`
	VAT             json.Number  `json:"vatAmount"`
	Currency        string       `json:"currency"`
	InvoicingMode   string       `json:"invoicingMode"`
	InvoiceType     string       `json:"invoiceType"`
	FormCode        formCodeInfo `json:"formCode"`
	SelfInvoicing   bool         `json:"isSelfInvoicing"`
	Attachment      bool         `json:"hasAttachment"`
	Hash            []byte       `json:"invoiceHash"`
}

type metadataResponse struct {
	HasMore   bool       `json:"hasMore"`
	Truncated bool       `json:"isTruncated"`
	Invoices  []metadata `json:"invoices"`
}

type sessionItem struct {
	ReferenceNumber string     `json:"referenceNumber"`
	Status          statusInfo `json:"status"`
	DateCreated     time.Time  `json:"dateCreated"`
	DateUpdated     time.Time  `json:"dateUpdated"`
	ValidUntil      *time.Time `json:"validUntil,omitempty"`
	Total           int        `json:"totalInvoiceCount"`
	Successful      int        `json:"successfulInvoiceCount"`
	Failed          int        `json:"failedInvoiceCount"`
}

type sessionsResponse struct {
	Next     string        `json:"continuationToken,omitempty"`
	Sessions []sessionItem `json:"sessions"`
}

// problem is the body of a refused call in the form that X-Error-Format asks for.
type problem struct {
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Instance   string         `json:"instance"`
	Detail     string         `json:"detail"`
	ReasonCode string         `json:"reasonCode,omitempty"`
	Errors     []problemError `json:"errors,omitempty"`
	Timestamp  time.Time      `json:"timestamp"`
	TraceID    string         `json:"traceId"`
}

type problemError struct {
	Code        int      `json:"code"`
	Description string   `json:"description"`
	Details     []string `json:"details,omitempty"`
}

// refusal is KSeF's own word that it did not do what a call asked for.
type refusal struct {
	status int
	codes  []int
	reason string // of a 403
	text   string
	wait   time.Duration // of a 429
}

func (no *refusal) Error() string {
	return fmt.Sprintf("KSeF refused the call with status %d: %s", no.status, no.text)
}

func (no *refusal) has(codes ...int) bool {
	for _, have := range no.codes {
		for _, code := range codes {
			if have == code {
				return true
			}
		}
	}
	return false
}

const (
	waitDefault = 30 * time.Second
	waitMax     = time.Hour
)

// readRefusal reads a refused call. A page of a proxy with the same status is
// no word of KSeF: it is false then.
func readRefusal(reply country.Reply) (*refusal, bool) {
	if reply.Status < 400 || reply.Status >= 500 || !strings.Contains(reply.Header.Get("Content-Type"), "json") {
		return nil, false
	}
	var p problem
	if json.Unmarshal(reply.Body, &p) != nil {
		return nil, false
	}
	no := &refusal{status: reply.Status, reason: p.ReasonCode, text: strings.TrimSpace(p.Title + " " + p.Detail)}
	for _, e := range p.Errors {
		no.codes = append(no.codes, e.Code)
		no.text += fmt.Sprintf("; %d %s", e.Code, e.Description)
		if len(e.Details) > 0 {
			no.text += ": " + strings.Join(e.Details, ", ")
		}
	}
	if p.Title == "" && !readLegacy(reply, no) {
		return nil, false
	}
	if reply.Status == http.StatusTooManyRequests {
		no.wait = retryAfter(reply.Header)
	}
	return no, true
}

// readLegacy reads the older form of a refusal, which KSeF still uses for
// calls whose header got lost on the way.
func readLegacy(reply country.Reply, no *refusal) bool {
	var old struct {
		Exception *struct {
			List []struct {
				Code        int      `json:"exceptionCode"`
				Description string   `json:"exceptionDescription"`
				Details     []string `json:"details"`
			} `json:"exceptionDetailList"`
		} `json:"exception"`
		Status *statusInfo `json:"status"`
	}
	if json.Unmarshal(reply.Body, &old) != nil || old.Exception == nil && old.Status == nil {
		return false
	}
	if old.Status != nil {
		no.text = old.Status.text()
		return true
	}
	var texts []string
	for _, e := range old.Exception.List {
		no.codes = append(no.codes, e.Code)
		texts = append(texts, fmt.Sprintf("%d %s %s", e.Code, e.Description, strings.Join(e.Details, ", ")))
	}
	no.text = strings.Join(texts, "; ")
	return true
}

func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return waitDefault
	}
	return min(time.Duration(seconds)*time.Second, waitMax)
}

package ksefwire

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Paths of the KSeF API 2.6.0 below its version.
const (
	Version       = "/v2"
	PathChallenge = "/auth/challenge"
	PathToken     = "/auth/ksef-token"
	PathXAdES     = "/auth/xades-signature"
	PathRedeem    = "/auth/token/redeem"
	PathRefresh   = "/auth/token/refresh"
	PathKeys      = "/security/public-key-certificates"
	PathOnline    = "/sessions/online"
	PathSessions  = "/sessions"
	PathMetadata  = "/invoices/query/metadata"
	PathInvoice   = "/invoices/ksef"
	PathTokens    = "/tokens"
	PathRates     = "/rate-limits"
)

// What an invoice is filed as: the structure FA(3).
const (
	SpaceFA3      = "http://crd.gov.pl/wzor/2025/06/25/13775/"
	SystemCode    = "FA (3)"
	SchemaVersion = "1-0E"
	FormValue     = "FA"
)

// Limits of the interface (ksef-docs, limity.md and podpis-xades.md).
const (
	DocumentBytesMax   = 1_000_000 // of an invoice without attachments
	SessionInvoicesMax = 10_000
	KeyBitsMin         = 2048 // of an RSA key
)

// Names of XML signatures and of what they sign.
const (
	SpaceAuth      = "http://ksef.mf.gov.pl/auth/token/2.1"
	SpaceAuthOld   = "http://ksef.mf.gov.pl/auth/token/2.0"
	SpaceSignature = "http://www.w3.org/2000/09/xmldsig#"
	SpaceXAdES     = "http://uri.etsi.org/01903/v1.3.2#"

	Enveloped   = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
	SHA256      = "http://www.w3.org/2001/04/xmlenc#sha256"
	RSASHA256   = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	ECDSASHA256 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"

	TypeSignedProperties = "http://uri.etsi.org/01903#SignedProperties"
	SubjectType          = "certificateSubject"
)

const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
	TypeXML     = "application/xml"

	HeaderErrorFormat = "X-Error-Format"
	ProblemDetails    = "problem-details"
	HeaderHash        = "x-ms-meta-hash"

	HeaderContinuation = "x-continuation-token"
)

// Uses of the Ministry's public keys.
const (
	UsageToken   = "KsefTokenEncryption"
	UsageSession = "SymmetricKeyEncryption"
)

// Codes of refused calls, as the OpenAPI document lists them.
const (
	CodeUnreadable       = 21001
	CodeChallenge        = 21111
	CodeCertificate      = 21115
	CodeContext          = 21117
	CodeSessionFull      = 21155
	CodeInvoiceUnknown   = 21164
	CodeInvoiceLater     = 21165
	CodeSessionUnknown   = 21173
	CodeReceiptUnknown   = 21178
	CodeSessionState     = 21180
	CodeNotAuthorised    = 21301
	CodeNotAuthenticated = 21304
	CodeSchema           = 21401
	CodeSize             = 21402
	CodeHash             = 21403
	CodeInput            = 21405
	CodeSignatureType    = 21406
	CodeContinuation     = 21418
	CodeKey              = 21470
	CodeDocument         = 9101
	CodeSignatureMissing = 9102
	CodeSignatures       = 9103
	CodeSignature        = 9105
)

// Statuses of an authentication and of an invoice.
const (
	StatusProcessing  = 150
	StatusSuccess     = 200
	StatusSession     = 405
	StatusPermission  = 410
	StatusAttachment  = 415
	StatusFile        = 430
	StatusDecryption  = 435
	StatusDuplicate   = 440
	StatusSemantics   = 450
	StatusCertificate = 460
	StatusUnknown     = 500
	StatusCancelled   = 550

	ExtensionNumber  = "originalKsefNumber"
	ExtensionSession = "originalSessionReferenceNumber"
)

type Challenge struct {
	Challenge   string    `json:"challenge"`
	Timestamp   time.Time `json:"timestamp"`
	TimestampMs int64     `json:"timestampMs"`
	ClientIP    string    `json:"clientIp"`
}

type Identifier struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type TokenRequest struct {
	Challenge      string     `json:"challenge"`
	Context        Identifier `json:"contextIdentifier"`
	EncryptedToken string     `json:"encryptedToken"`
	PublicKeyID    string     `json:"publicKeyId,omitempty"`
}

type TimedToken struct {
	Token      string    `json:"token"`
	ValidUntil time.Time `json:"validUntil"`
}

type AuthResponse struct {
	ReferenceNumber string     `json:"referenceNumber"`
	Authentication  TimedToken `json:"authenticationToken"`
}

type Status struct {
	Code        int               `json:"code"`
	Description string            `json:"description"`
	Details     []string          `json:"details,omitempty"`
	Extensions  map[string]string `json:"extensions,omitempty"`
}

// Text is a status in one line, as the client sees it.
func (s Status) Text() string {
	text := strconv.Itoa(s.Code) + " " + s.Description
	if len(s.Details) > 0 {
		text += ": " + strings.Join(s.Details, "; ")
	}
	return text
}

type MethodInfo struct {
	Category    string `json:"category"`
	Code        string `json:"code"`
	DisplayName string `json:"displayName"`
}

type AuthStatus struct {
	StartDate  time.Time  `json:"startDate"`
	Method     string     `json:"authenticationMethod"`
	MethodInfo MethodInfo `json:"authenticationMethodInfo"`
	Status     Status     `json:"status"`
	Redeemed   *bool      `json:"isTokenRedeemed,omitempty"`
}

type Tokens struct {
	Access  TimedToken  `json:"accessToken"`
	Refresh *TimedToken `json:"refreshToken,omitempty"`
}

type PublicKey struct {
	Certificate   []byte    `json:"certificate"`
	CertificateID string    `json:"certificateId"`
	PublicKeyID   string    `json:"publicKeyId"`
	ValidFrom     time.Time `json:"validFrom"`
	ValidTo       time.Time `json:"validTo"`
	Usage         []string  `json:"usage"`
}

type FormCode struct {
	SystemCode    string `json:"systemCode"`
	SchemaVersion string `json:"schemaVersion"`
	Value         string `json:"value"`
}

type Encryption struct {
	Key         []byte `json:"encryptedSymmetricKey"`
	IV          []byte `json:"initializationVector"`
	PublicKeyID string `json:"publicKeyId,omitempty"`
}

type SessionRequest struct {
	FormCode   FormCode   `json:"formCode"`
	Encryption Encryption `json:"encryption"`
}

type SessionResponse struct {
	ReferenceNumber string    `json:"referenceNumber"`
	ValidUntil      time.Time `json:"validUntil"`
}

type InvoiceRequest struct {
	Hash          []byte `json:"invoiceHash"`
	Size          int64  `json:"invoiceSize"`
	EncryptedHash []byte `json:"encryptedInvoiceHash"`
	EncryptedSize int64  `json:"encryptedInvoiceSize"`
	Content       []byte `json:"encryptedInvoiceContent"`
	Offline       bool   `json:"offlineMode"`
}

type InvoiceResponse struct {
	ReferenceNumber string `json:"referenceNumber"`
}

type InvoiceStatus struct {
	Ordinal         int        `json:"ordinalNumber"`
	InvoiceNumber   string     `json:"invoiceNumber,omitempty"`
	KSeFNumber      string     `json:"ksefNumber,omitempty"`
	ReferenceNumber string     `json:"referenceNumber"`
	Hash            []byte     `json:"invoiceHash"`
	FileName        string     `json:"invoiceFileName,omitempty"` // of batch sessions
	AcquisitionDate *time.Time `json:"acquisitionDate,omitempty"`
	InvoicingDate   time.Time  `json:"invoicingDate"`
	StorageDate     *time.Time `json:"permanentStorageDate,omitempty"`
	InvoicingMode   string     `json:"invoicingMode,omitempty"`
	Status          Status     `json:"status"`

	UPODownloadURL   string     `json:"upoDownloadUrl,omitempty"`
	UPODownloadUntil *time.Time `json:"upoDownloadUrlExpirationDate,omitempty"`
}

type DateRange struct {
	DateType string `json:"dateType"`
	From     string `json:"from"`
	To       string `json:"to,omitempty"`
	Restrict bool   `json:"restrictToPermanentStorageHwmDate,omitempty"` // to what is complete
}

type MetadataRequest struct {
	SubjectType   string    `json:"subjectType"`
	DateRange     DateRange `json:"dateRange"`
	KSeFNumber    string    `json:"ksefNumber,omitempty"`
	InvoiceNumber string    `json:"invoiceNumber,omitempty"`
	SellerNIP     string    `json:"sellerNip,omitempty"`
	FormType      string    `json:"formType,omitempty"`
	InvoiceTypes  []string  `json:"invoiceTypes,omitempty"`
}

type PartyInfo struct {
	NIP        string      `json:"nip,omitempty"`
	Identifier *Identifier `json:"identifier,omitempty"`
	Name       string      `json:"name,omitempty"`
}

type Metadata struct {
	KSeFNumber      string      `json:"ksefNumber"`
	InvoiceNumber   string      `json:"invoiceNumber"`
	IssueDate       string      `json:"issueDate"`
	InvoicingDate   time.Time   `json:"invoicingDate"`
	AcquisitionDate time.Time   `json:"acquisitionDate"`
	StorageDate     time.Time   `json:"permanentStorageDate"`
	Seller          PartyInfo   `json:"seller"`
	Buyer           PartyInfo   `json:"buyer"`
	Net             json.Number `json:"netAmount"`
	Gross           json.Number `json:"grossAmount"`
	VAT             json.Number `json:"vatAmount"`
	Currency        string      `json:"currency"`
	InvoicingMode   string      `json:"invoicingMode"`
	InvoiceType     string      `json:"invoiceType"`
	FormCode        FormCode    `json:"formCode"`
	SelfInvoicing   bool        `json:"isSelfInvoicing"`
	Attachment      bool        `json:"hasAttachment"`
	Hash            []byte      `json:"invoiceHash"`
}

type MetadataResponse struct {
	HasMore   bool       `json:"hasMore"`
	Truncated bool       `json:"isTruncated"`
	HighWater *time.Time `json:"permanentStorageHwmDate,omitempty"`
	Invoices  []Metadata `json:"invoices"`
}

type SessionItem struct {
	ReferenceNumber string     `json:"referenceNumber"`
	Status          Status     `json:"status"`
	DateCreated     time.Time  `json:"dateCreated"`
	DateUpdated     time.Time  `json:"dateUpdated"`
	ValidUntil      *time.Time `json:"validUntil,omitempty"`
	Total           int        `json:"totalInvoiceCount"`
	Successful      int        `json:"successfulInvoiceCount"`
	Failed          int        `json:"failedInvoiceCount"`
}

type SessionsResponse struct {
	Next     string        `json:"continuationToken,omitempty"`
	Sessions []SessionItem `json:"sessions"`
}

// Problem is the body of a refused call in the form that X-Error-Format asks for.
type Problem struct {
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Instance   string         `json:"instance"`
	Detail     string         `json:"detail"`
	ReasonCode string         `json:"reasonCode,omitempty"`
	Errors     []ProblemError `json:"errors,omitempty"`
	Timestamp  time.Time      `json:"timestamp"`
	TraceID    string         `json:"traceId"`
}

type ProblemError struct {
	Code        int      `json:"code"`
	Description string   `json:"description"`
	Details     []string `json:"details,omitempty"`
}

package ksefwire

import "time"

// SessionStatus is what KSeF tells of a session.
type SessionStatus struct {
	Status      Status     `json:"status"`
	DateCreated time.Time  `json:"dateCreated"`
	DateUpdated time.Time  `json:"dateUpdated"`
	ValidUntil  *time.Time `json:"validUntil,omitempty"`
	UPO         *UPO       `json:"upo,omitempty"`
	Total       int        `json:"invoiceCount"`
	Successful  int        `json:"successfulInvoiceCount"`
	Failed      int        `json:"failedInvoiceCount"`
}

// UPO is where the confirmation of a whole session can be fetched.
type UPO struct {
	Pages []UPOPage `json:"pages"`
}

// UPOPage is one of its documents.
type UPOPage struct {
	ReferenceNumber string    `json:"referenceNumber"`
	DownloadURL     string    `json:"downloadUrl"`
	DownloadUntil   time.Time `json:"downloadUrlExpirationDate"`
}

// SessionInvoices lists invoices of a session.
type SessionInvoices struct {
	Next     string          `json:"continuationToken,omitempty"`
	Invoices []InvoiceStatus `json:"invoices"`
}

// GenerateToken asks for a KSeF token.
type GenerateToken struct {
	Permissions []string `json:"permissions"`
	Description string   `json:"description"`
}

// GeneratedToken is the answer, which shows the token once.
type GeneratedToken struct {
	ReferenceNumber string `json:"referenceNumber"`
	Token           string `json:"token"`
}

// TokenStatus is what KSeF tells of a token.
type TokenStatus struct {
	ReferenceNumber string     `json:"referenceNumber"`
	Author          Identifier `json:"authorIdentifier"`
	Context         Identifier `json:"contextIdentifier"`
	Description     string     `json:"description"`
	Permissions     []string   `json:"requestedPermissions"`
	DateCreated     time.Time  `json:"dateCreated"`
	Status          string     `json:"status"`
}

// TokensList is a page of them.
type TokensList struct {
	Next   string        `json:"continuationToken,omitempty"`
	Tokens []TokenStatus `json:"tokens"`
}

// AuthItem is an authentication in a list.
type AuthItem struct {
	AuthStatus
	ReferenceNumber string `json:"referenceNumber"`
	Current         bool   `json:"isCurrent"`
}

// AuthList is a page of them.
type AuthList struct {
	Next  string     `json:"continuationToken,omitempty"`
	Items []AuthItem `json:"items"`
}

// SessionLimits are the sizes that a session may have.
type SessionLimits struct {
	InvoiceMB  int `json:"maxInvoiceSizeInMB"`
	AttachedMB int `json:"maxInvoiceWithAttachmentSizeInMB"`
	Invoices   int `json:"maxInvoices"`
}

// ContextLimits are those of a taxpayer.
type ContextLimits struct {
	Online SessionLimits `json:"onlineSession"`
	Batch  SessionLimits `json:"batchSession"`
}

// SubjectLimits are those of who authenticates.
type SubjectLimits struct {
	Enrollment struct {
		Max int `json:"maxEnrollments"`
	} `json:"enrollment"`
	Certificate struct {
		Max int `json:"maxCertificates"`
	} `json:"certificate"`
}

// Rate is how many calls of a kind a taxpayer may make from one address.
type Rate struct {
	Second int `json:"perSecond"`
	Minute int `json:"perMinute"`
	Hour   int `json:"perHour"`
}

// Rates are all of them.
type Rates struct {
	OnlineSession       Rate `json:"onlineSession"`
	BatchSession        Rate `json:"batchSession"`
	InvoiceSend         Rate `json:"invoiceSend"`
	InvoiceStatus       Rate `json:"invoiceStatus"`
	SessionList         Rate `json:"sessionList"`
	SessionInvoiceList  Rate `json:"sessionInvoiceList"`
	SessionMisc         Rate `json:"sessionMisc"`
	InvoiceMetadata     Rate `json:"invoiceMetadata"`
	InvoiceExport       Rate `json:"invoiceExport"`
	InvoiceExportStatus Rate `json:"invoiceExportStatus"`
	InvoiceDownload     Rate `json:"invoiceDownload"`
	Other               Rate `json:"other"`
}

// Times is a rate of more calls.
func (r Rate) Times(n int) Rate { return Rate{r.Second * n, r.Minute * n, r.Hour * n} }

// ProductionRates are those of the production environment, as the OpenAPI
// document states them beside each operation (ksef-docs, limity-api.md).
func ProductionRates() Rates {
	return Rates{
		OnlineSession: Rate{10, 30, 120}, BatchSession: Rate{10, 20, 60}, InvoiceSend: Rate{10, 30, 180},
		InvoiceStatus: Rate{30, 120, 1200},
		SessionList:   Rate{5, 10, 60}, SessionInvoiceList: Rate{10, 20, 200}, SessionMisc: Rate{10, 120, 1200},
		InvoiceMetadata: Rate{8, 16, 20},
		InvoiceExport:   Rate{8, 16, 20}, InvoiceExportStatus: Rate{10, 60, 600}, InvoiceDownload: Rate{8, 16, 64},
		Other: Rate{10, 30, 120},
	}
}

package ksefwire

import "time"

// PathExports is where packages of invoices are asked for.
const PathExports = "/invoices/exports"

// Limits of a package that is asked for (ExportInvoices of the OpenAPI document).
const (
	ExportInvoicesMax  = 10_000
	ExportPartBytesMax = 50_000_000 // before it is encrypted
	ExportsAtOnce      = 10         // of one taxpayer
	ExportMetadata     = "_metadata.json"
	QueryMonthsMax     = 3 // of the range of a query or an export
)

// Codes of refused exports, and statuses beyond those of an invoice.
const (
	CodeExport        = 21181
	CodeExports       = 21182
	CodeExportUnknown = 21175

	ExportWorking = 100
	ExportGone    = 210
	ExportRange   = 420
)

// ExportRequest asks for a package.
type ExportRequest struct {
	Encryption   Encryption      `json:"encryption"`
	OnlyMetadata bool            `json:"onlyMetadata,omitempty"`
	Filters      MetadataRequest `json:"filters"`
	Compression  string          `json:"compressionType,omitempty"`
}

// ExportResponse names it.
type ExportResponse struct {
	ReferenceNumber string `json:"referenceNumber"`
}

// ExportStatus is how far it is.
type ExportStatus struct {
	Status    Status     `json:"status"`
	Completed *time.Time `json:"completedDate,omitempty"`
	Expires   *time.Time `json:"packageExpirationDate,omitempty"`
	Package   *Package   `json:"package,omitempty"`
}

// Package is one that is ready: a ZIP of invoices, each named after its KSeF number,
// and of their metadata, cut into parts that are encrypted one by one.
type Package struct {
	Count       int64         `json:"invoiceCount"`
	Size        int64         `json:"size"`
	Parts       []PackagePart `json:"parts"`
	Truncated   bool          `json:"isTruncated"`
	LastStorage *time.Time    `json:"lastPermanentStorageDate,omitempty"` // where it is truncated
	// HighWater is until when the package is complete, whatever is asked later.
	HighWater *time.Time `json:"permanentStorageHwmDate,omitempty"`
}

// PackagePart is a part, and where it is got without an access token.
type PackagePart struct {
	Ordinal       int       `json:"ordinalNumber"`
	Name          string    `json:"partName"`
	Method        string    `json:"method"`
	URL           string    `json:"url"`
	Size          int64     `json:"partSize"`
	Hash          []byte    `json:"partHash"`
	EncryptedSize int64     `json:"encryptedPartSize"`
	EncryptedHash []byte    `json:"encryptedPartHash"`
	Expires       time.Time `json:"expirationDate"`
}

// PackageMetadata is the file of metadata in a package.
type PackageMetadata struct {
	Invoices []Metadata `json:"invoices"`
}

package ksefwire

// PathBatch is where batch sessions are opened and closed.
const PathBatch = "/sessions/batch"

// Limits of a package of invoices (ksef-docs, sesja-wsadowa.md; BatchFileInfo of
// the OpenAPI document).
const (
	PackageBytesMax = 5_000_000_000
	PartBytesMax    = 100_000_000 // before it is encrypted
	PartsMax        = 50
	PartMinutes     = 20 // for each part, times the number of parts
)

// Codes of refused calls that only batch sessions have.
const (
	CodePartSize     = 21157
	CodePartCount    = 21161
	CodePackageEmpty = 21205
	CodeUploadTime   = 21208
)

// Statuses of a batch session beyond those of an invoice.
const (
	SessionOpen       = 100
	SessionParts      = 405
	SessionKey        = 415
	SessionTooMany    = 420
	SessionArchive    = 430
	SessionDecryption = 435
	SessionCancelled  = 440
	SessionNoneGood   = 445
)

// BatchRequest opens a batch session.
type BatchRequest struct {
	FormCode   FormCode   `json:"formCode"`
	File       BatchFile  `json:"batchFile"`
	Encryption Encryption `json:"encryption"`
	Offline    bool       `json:"offlineMode"`
}

// BatchFile is a package: a ZIP, cut into parts that are encrypted one by one.
type BatchFile struct {
	Size        int64       `json:"fileSize"`
	Hash        []byte      `json:"fileHash"`
	Compression string      `json:"compressionType,omitempty"`
	Parts       []BatchPart `json:"fileParts"`
}

// BatchPart is a part of a package as it is sent: encrypted.
type BatchPart struct {
	Ordinal int    `json:"ordinalNumber"`
	Size    int64  `json:"fileSize"`
	Hash    []byte `json:"fileHash"`
}

// BatchResponse says where the parts go.
type BatchResponse struct {
	ReferenceNumber string       `json:"referenceNumber"`
	Uploads         []PartUpload `json:"partUploadRequests"`
}

// PartUpload is how one part is sent: without an access token.
type PartUpload struct {
	Ordinal int               `json:"ordinalNumber"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

package onboarding

import (
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// The statuses of a job.
const (
	Pending    = "pending"
	Processing = "processing"
	Success    = "success"
	Failed     = "failed"
)

// The statuses of a company: one that is not onboarded does not exist.
const (
	statusActive = "active"
	statusClosed = "closed" // nothing more is issued in its name
)

// Envelope is the answer to everything that has to do with a job. All its
// members are always there.
type Envelope struct {
	Status  string        `json:"status"`
	Data    *Reference    `json:"data"`
	Message *string       `json:"message"`
	Errors  []fault.Fault `json:"errors"`
}

// Reference points to the job while it runs, and to the company once there is one.
type Reference struct {
	JobID             string `json:"job_id,omitempty"`
	JobStatusLocation string `json:"job_status_location,omitempty"`
	ID                string `json:"id,omitempty"`
	Location          string `json:"location,omitempty"`
	Visit             *Visit `json:"visit,omitempty"` // what a person must do before the job can end
}

// Company is an onboarded company as a client reads it: its own request
// without the credentials, and what we know about it. Absent texts are null;
// the address has the members that were sent.
type Company struct {
	ID             string              `json:"id"`
	Status         string              `json:"status"`
	Meta           Meta                `json:"meta"`
	LegalName      string              `json:"legal_name"`
	Type           string              `json:"type"`
	CompanyNumber  *string             `json:"company_number"`
	Address        transaction.Address `json:"address"`
	TaxInformation TaxInformation      `json:"tax_information"`
	Branding       *account.Appearance `json:"branding,omitempty"`
	Settings       country.Settings    `json:"settings"`
	Credentials    []Credential        `json:"credentials"`
	Visit          *Visit              `json:"visit,omitempty"` // what a person must do before a change can end
	CreatedAt      Timestamp           `json:"created_at"`
	UpdatedAt      Timestamp           `json:"updated_at"`
}

// Meta says who the company is to the client. Codes stand as submitted.
type Meta struct {
	CountryCode  string  `json:"country_code"`
	LanguageCode *string `json:"language_code"`
	ExternalID   string  `json:"external_id"`
}

// TaxInformation is how the company is known to its tax authority.
type TaxInformation struct {
	TaxNumber string  `json:"tax_number"`
	Regime    *string `json:"regime"`
}

// The kinds of credentials.
const (
	CertificateCredential = "certificate" // a PKCS#12
	LoginCredential       = "login"       // user name, password or token
)

// Credential says that there is one, never what it is.
type Credential struct {
	Kind        string     `json:"kind"`
	Subject     *string    `json:"subject"`     // of the certificate
	Fingerprint *string    `json:"fingerprint"` // SHA-256 of the certificate, lower-case hex
	ExpiresAt   *Timestamp `json:"expires_at"`
}

// Timestamp prints as every timestamp of the API.
type Timestamp time.Time

// MarshalText prints YYYY-MM-DDTHH:mm:ssZ.
func (t Timestamp) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, "2006-01-02T15:04:05Z"), nil
}

// UnmarshalText reads what MarshalText prints.
func (t *Timestamp) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	*t = Timestamp(at)
	return err
}

// orNull is nil for an absent text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

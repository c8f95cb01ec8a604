// Package lookup answers who stands behind a tax number.
//
// It owns the validation of numbers: format and check digits by
// internal/country/taxid, existence by VIES, the European register of VAT
// numbers, with its client, its cache and a simulated register; and clients'
// requests for it, with what was learnt ([Lookups]). It refuses to own the
// arithmetic of numbers and anything about onboarded companies.
//
// The law of [Validator.Validate]: knowledge and ignorance never mix. A number
// is refused only by its own text or by the register's plain "not valid"; a
// register that is down, busy, slow or unintelligible leaves the answer
// unknown, with a code that says why.
//
// A batch that was canceled has no event: whoever canceled it knows. Results go
// ninety days after their end; the law's evidence of a consultation is the client's
// to keep.
package lookup

import (
	"time"

	"tributary/internal/fault"
)

// Format says whether the text of a number can be one.
type Format string

// The formats of docs/specification.md, section 10.
const (
	FormatValid   Format = "valid"
	FormatInvalid Format = "invalid"
)

// Status is how far an entry has come and what was learnt.
type Status string

// The statuses of an entry. The first and the last are for entries nobody has
// looked at; a [Validator] gives the others.
const (
	StatusPending       Status = "pending"        // accepted, not yet worked on
	StatusRegistered    Status = "registered"     // the register knows the number as valid today
	StatusNotRegistered Status = "not_registered" // the register answered: not valid
	StatusInvalid       Status = "invalid"        // format, check digits or country are wrong; nobody was asked
	StatusNotChecked    Status = "not_checked"    // the format is right and no register serves the country
	StatusUnknown       Status = "unknown"        // the register could not say; ErrorCode says why
	StatusCanceled      Status = "canceled"       // the batch was canceled before its turn
)

// Business says whether a number belongs to a business.
type Business string

// The answers of docs/specification.md, section 10.
const (
	BusinessYes     Business = "yes"
	BusinessNo      Business = "no"
	BusinessUnknown Business = "unknown"
)

// Error codes of entries. Codes in lower case are ours and have the meaning
// fault publishes; a code in upper case is the register's own word, unchanged.
const (
	CodeFormat      = string(fault.FieldNotValid)        // the number is not one of the country
	CodeCountry     = string(fault.UnsupportedCountry)   // the country code is no country
	CodeUnavailable = string(fault.AuthorityUnavailable) // no answer, or none that could be understood
)

// Entry is one number to validate, as the client sent it.
type Entry struct {
	Country string // country_iso_code; EL and XI are understood
	Number  string // tax_identification_number
}

// Result is what was learnt about an entry. Empty texts are null on the wire.
type Result struct {
	Format          Format
	Status          Status
	IsBusiness      Business
	BusinessName    string
	BusinessAddress string
	ErrorCode       string
	// when the register gave the answer, possibly some time ago; zero when it was not asked or gave none
	AnsweredAt time.Time
	RequestID  string // the register's consultation number, where a requester is configured
}

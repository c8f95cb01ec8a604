package country

import (
	"time"

	"tributary/internal/country/workday"
	"tributary/internal/transaction"
)

// UseCase is what a client wants of a country.
type UseCase string

// The use cases.
const (
	Reporting UseCase = "REPORTING" // files with the authority, makes no visual document
	Invoicing UseCase = "INVOICING" // makes the document, and files where the country obliges
	Both      UseCase = "BOTH"
)

// Facts are a country as data. /v1/countries serves them and validation reads
// them, so the two cannot disagree.
type Facts struct {
	Currency       string        `json:"currency"`
	Languages      []string      `json:"languages"` // upper case; the first is the default
	TimeZone       string        `json:"time_zone"` // IANA
	UseCases       []UseCase     `json:"use_cases"`
	Obliged        bool          `json:"filing_obligatory"` // Invoicing files as well: filled in from [Pack].Files
	NumberOptional bool          `json:"transaction_number_optional"`
	Required       []FieldRule   `json:"required_fields"`
	Forbidden      []FieldRule   `json:"forbidden_fields"`
	Allowed        []ValueRule   `json:"allowed_values"`
	MaxLengths     []LengthRule  `json:"max_lengths"`
	Patterns       []PatternRule `json:"patterns"`
	Dates          *DateRule     `json:"transaction_dates,omitempty"`  // nil: any
	TaxesPerLine   int           `json:"taxes_per_line_max,omitempty"` // entries that are not withheld; 0: any number
	Regimes        []string      `json:"tax_regimes"`
	ReasonCodes    []Meaning     `json:"tax_codes"`
	Rates          []Rate        `json:"tax_rates"`
	StrictRates    bool          `json:"tax_rates_enforced"` // the authority refuses others: an error instead of a warning
	StrictNumbers  bool          `json:"tax_numbers_enforced"`
	Corrections    []Correction  `json:"corrections"`
	Settings       []Setting     `json:"settings"`
	Credentials    []string      `json:"credentials"` // tax_credentials members that onboarding needs
	Secrets        []SecretRule  `json:"secrets"`     // further members of tax_credentials, the country's own
	// "RSA" or "EC": the only kind of key that certificates may have; empty: either
	CertificateKey string `json:"certificate_key,omitempty"`
	// by which everybody there knows a business's tax number; empty: by the language's words
	TaxNumberName string     `json:"tax_number_name"`
	Formats       []string   `json:"formats"`
	Authority     *Authority `json:"authority"`
	Derivations   []string   `json:"derivation_rules"`
	DeadlineDays  int        `json:"reporting_deadline_days,omitempty"`
	// the days of the deadline are working days by these holidays; nil: days of the calendar
	WorkingDays *workday.Calendar `json:"working_days,omitempty"`
	// another currency needs exchange_rate: filled in from Required
	OwnCurrency     bool   `json:"exchange_rate_required"`
	NumberExample   string `json:"tax_number_example,omitempty"` // an invented one that the country's rules accept
	NumberedCredits bool   `json:"credit_number_required"`       // a credit needs a number, its own or that of a series
	// the last day on which the authority takes user names, passwords or tokens; "": no end is known
	LoginUntil  string       `json:"login_until,omitempty"`
	Penalties   []Penalty    `json:"penalties,omitempty"` // for who does not file, or files wrongly
	Obligations []Obligation `json:"obligations"`         // since when who must file; empty: it is no matter of days
	// order_items makes an invoice one of money that came before the supply
	Advances bool      `json:"advance_invoices"`
	Quotas   []string  `json:"quota_regimes,omitempty"` // regimes of taxes that may have a quota in place of a rate
	Roles    []Meaning `json:"third_party_roles"`       // of third_parties; empty: the country's document names none
	// what a company may answer to a document that it received; nil: the country has no place for answers
	Responses *Responses `json:"responses,omitempty"`
	// what a sale may give as its reason: kinds of documents; empty: none
	Reasons []Meaning `json:"sale_reasons"`
	// of a document that names no customer, in minor units of the currency; 0: none
	SimplifiedMax int64 `json:"simplified_max,omitempty"`
}

// Responses says what may be answered to a received document.
type Responses struct {
	Statuses []string `json:"statuses"` // of ACCEPTED, REJECTED, DISPUTED and PAID
	Once     bool     `json:"once"`     // one answer to a document is all that is taken
	Rule     string   `json:"rule"`     // which documents, in words
}

// FieldRule asks for, or forbids, a member of the body. Field is a dotted path
// with "*" for any index. The conditions are joined; empty ones always hold.
type FieldRule struct {
	Field         string           `json:"field"`
	UseCase       UseCase          `json:"use_case,omitempty"`
	BusinessModel string           `json:"business_model,omitempty"`
	Kind          transaction.Kind `json:"kind,omitempty"`
	When          []Condition      `json:"when,omitempty"`
	Reason        string           `json:"reason"`
}

// ValueRule narrows a member to some values.
type ValueRule struct {
	Field  string   `json:"field"`
	Values []string `json:"values"`
	Reason string   `json:"reason"`

	UseCase UseCase `json:"use_case,omitempty"`
}

// LengthRule narrows a member's length, counted in characters.
type LengthRule struct {
	Field  string `json:"field"`
	Max    int    `json:"max"`
	Reason string `json:"reason"`

	UseCase UseCase `json:"use_case,omitempty"`
}

// Meaning is a code with what it stands for.
type Meaning struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
}

// Rate is one rate of a country's table, with the days between which it holds.
type Rate struct {
	Regime  string `json:"regime"`
	Type    string `json:"type"`
	Percent string `json:"percent"`
	Beside  string `json:"beside,omitempty"` // the rate of the main tax that this one is added to; it never stands alone
	Since   string `json:"since,omitempty"`  // YYYY-MM-DD
	Until   string `json:"until,omitempty"`  // exclusive

	// Typed says that an entry of this rate must carry a type, or a code of the
	// country, at least to some customers: the rate alone could mean several things.
	Typed bool `json:"type_required,omitempty"`
}

// Correction is an operation the country knows, and until when.
type Correction struct {
	Kind           transaction.Kind `json:"kind"`
	Deadline       string           `json:"deadline,omitempty"`      // in words, for people
	Days           int              `json:"deadline_days,omitempty"` // after the original's date; 0: no deadline
	Reasons        []Meaning        `json:"reasons,omitempty"`
	ReasonRequired bool             `json:"reason_required,omitempty"`
	// how a reason is written where the code alone does not say enough
	ReasonPattern string `json:"reason_pattern,omitempty"`
	// reasons whose references are deducted in the document's own lines, not corrected by it
	Deducting []string `json:"deducting_reasons,omitempty"`
	Several   bool     `json:"several_originals,omitempty"` // one document may correct several: references
}

// Setting is one of the country's own keys in a company's settings.
type Setting struct {
	Key         string   `json:"key"`
	Type        string   `json:"type"` // "string", "boolean", "integer", "object"
	Default     any      `json:"default"`
	Values      []string `json:"values,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	Required    bool     `json:"required"`
	Description string   `json:"description"`
}

// Obligation is a day from which somebody must file.
type Obligation struct {
	Since  string `json:"since"` // YYYY-MM-DD
	Whom   string `json:"whom"`
	Source string `json:"source"`
}

// Penalty is what the law sets on not filing, or on filing wrongly.
type Penalty struct {
	Since   string `json:"since"` // YYYY-MM-DD
	What    string `json:"what"`
	Penalty string `json:"penalty"`
	Source  string `json:"source"`
}

// LoginEnd is the instant after which the authority takes no user names,
// passwords or tokens; zero where no end is known.
func (p Pack) LoginEnd() time.Time {
	day, err := time.Parse(time.DateOnly, p.Facts.LoginUntil)
	if err != nil {
		return time.Time{}
	}
	zone := p.zone
	if zone == nil {
		zone = time.UTC
	}
	return time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone)
}

// LatestBy is until when the law wants a document of an instant filed; zero
// where it names no day. A day of the calendar has the hour of the document, a
// working day lasts until it ends where the country is.
func (p Pack) LatestBy(issued time.Time) time.Time {
	days, zone := p.Facts.DeadlineDays, p.zone
	switch {
	case days == 0 || issued.IsZero():
		return time.Time{}
	case p.Facts.WorkingDays == nil:
		return issued.AddDate(0, 0, days)
	case zone == nil:
		zone = zoneOf(p.Facts.TimeZone)
	}
	last := p.Facts.WorkingDays.After(issued.In(zone), days)
	return time.Date(last.Year(), last.Month(), last.Day(), 23, 59, 59, 0, zone)
}

// Authority names who receives filings.
type Authority struct {
	Name     string `json:"name"`
	System   string `json:"system"`
	Protocol string `json:"protocol"`
}

// Correction returns what the country knows of a kind of correction.
func (f Facts) Correction(k transaction.Kind) (Correction, bool) {
	for _, c := range f.Corrections {
		if c.Kind == k {
			return c, true
		}
	}
	return Correction{}, false
}

// Package country is the contract of a country: what a pack is, what a channel
// to an authority promises, and the atlas of packs a program has.
//
// It owns the facts and checks of countries ([Examine]), and the wire to
// authorities. The business document and its arithmetic are
// the package transaction's. It does not own storage, retries, idempotency or clients: those
// who call it do. Law: outcome is data, error is ignorance (see [Channel]).
package country

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/incoming"
	"tributary/internal/transaction"
)

// RetentionYearsDefault is the longest of the countries that were looked up: a
// country whose statute is not cited keeps records for that long.
const RetentionYearsDefault = 10

// Pack is one country as a value. Optional abilities are nil fields.
type Pack struct {
	Code    string   // ISO 3166 alpha-2, upper case
	Name    string   // English short name
	Version string   // stored with every operation
	Sources []string // the law, as URLs
	Facts   Facts    // everything about the country that is data

	// Codes say what the authority's own codes mean, see [Pack.Explain]. Nil: it has none.
	Codes []AuthorityCode

	// Checks find what Facts cannot say, from the Case alone.
	Checks []Check

	// Classify derives the type of every tax entry the client left open, by
	// the rules shown in Facts.Derivations. It changes nothing but Tax.Type
	// and Tax.Code of the copy it returns. Nil: see [ClassifyTaxes].
	Classify func(Case) []transaction.Item

	// Connect returns the channel to the authority behind an endpoint. Nil: documents only.
	Connect func(Endpoint) (Channel, error)

	// Files says what of the country goes through the channel, and who decides it.
	Files Filed

	// Enrol does what the authority asks of a new supplier. Nil: nothing to do.
	Enrol func(ctx context.Context, in Enrolment) Enrolled

	// Grant renews what a person has granted. Nil: nothing of the kind.
	Grant *Grant

	// Identity says what the operator must show to the authority. Nil: nothing.
	Identity *IdentityRule

	// Callbacks understands what the authority sends us. Nil: it never calls.
	Callbacks *Callbacks

	// Fetch asks for what waits for a company. Nil: nothing ever does.
	Fetch *Fetch

	// Receive brings documents that others send to companies. Nil: clients upload them.
	Receive *Receive

	// Periods gathers sales by period. Nil: each is filed by itself.
	Periods *Periods

	// Sequence says that every draft needs a number of its own that was never
	// used before at this endpoint, see [Draft].Sequence.
	Sequence bool

	// RetentionYears is how long the law wants records kept, in full years from the
	// end of the calendar year. Zero: [RetentionYearsDefault].
	RetentionYears int

	// Example shows the pack at work. Nil: it is not part of the demo.
	Example *Example

	// CheckCompany finds what is wrong with an onboarding, beyond required fields. Nil: nothing more.
	CheckCompany func(Supplier, Credentials) []fault.Fault

	// CheckSale finds what the company behind a sale decides, after everything else
	// was found right at submit. Nil: nothing, or it is found when the document is made.
	CheckSale func(Case, Supplier) []fault.Fault

	// ZoneOf is the IANA time zone of an address in the country, where it is not
	// Facts.TimeZone; "": it is. Nil: the country has one.
	ZoneOf func(transaction.Address) string

	// Imprint says what the document for people must carry by the country's
	// law. Nil: see [PlainImprint].
	Imprint func(Issue) Imprint

	// Structured makes the invoice as data where nothing is filed. It is pure:
	// equal issues give equal bytes. Nil without an error: this transaction gets
	// none. A fault.Error of kind Invalid ends the attempt in FAILURE. A nil
	// function: the country has no such form.
	Structured func(Issue) (*Structured, error)

	// Formats are those of the country's own in which others write documents to its
	// companies, with their readers. None: it has no format of its own.
	Formats []Format

	// CanAnswer finds why a company cannot answer a received document so, where
	// Facts.Responses says that some can. Nil: nothing hinders.
	CanAnswer func(Supplier, transaction.Answer) []fault.Fault

	// Simulator is a strict double of the authority. Nil: no authority.
	Simulator authority.Double

	zone *time.Location // of Facts.TimeZone, found once by the atlas
}

// Format is a format of documents that others write, as they are recognised and read:
// XML by its root, anything else by how it begins.
type Format struct {
	Name        string // of those of the package incoming
	Space, Root string
	Begins      func(document []byte) bool
	// Read reads all documents of a file.
	Read func(document []byte) ([]*incoming.Document, error)
}

// Answerable finds why a company cannot answer a received document so; nothing: it can.
func (p Pack) Answerable(s Supplier, a transaction.Answer) []fault.Fault {
	if p.CanAnswer == nil {
		return nil
	}
	return p.CanAnswer(s, a)
}

// Unanswerable is a document that the country has no way to answer.
func Unanswerable(field, format string, a ...any) []fault.Fault {
	return []fault.Fault{{Code: fault.UnsupportedOperation, Type: fault.Validation, Field: field, Message: fmt.Sprintf(format, a...)}}
}

// KeptYears is how long the law wants records kept.
func (p Pack) KeptYears() int {
	if p.RetentionYears == 0 {
		return RetentionYearsDefault
	}
	return p.RetentionYears
}

// Case is what a check may look at: the body and the client's configuration, no stored state.
type Case struct {
	Transaction *transaction.Transaction
	Totals      transaction.Totals
	UseCase     UseCase
	Now         time.Time
}

// Live tells real filing from testing. It is decided by the API key and never crosses over.
type Live bool

// Endpoint is one authority's address for one environment.
type Endpoint struct {
	BaseURL string
	Live    Live
	HTTP    *http.Client // never follows redirects; the caller sets time-outs

	// Abroad calls addresses that strangers name, each vetted when it is dialled;
	// Vet says of a text whether it may be called at all.
	Abroad *http.Client
	Vet    func(address string) (*url.URL, error)

	// Simulated says that a simulated authority stands behind BaseURL.
	Simulated bool

	Meter Meter // counts calls against quotas, see [Endpoint.Spend]
	Names Names // for channels with [Limits].Named; nil: nothing is known

	Identity Identity // the operator's, where the pack's [IdentityRule] asks for one
	Callback string   // the address below which the authority reaches us; empty: it cannot
}

// Names are those that an authority gave to our documents.
type Names interface {
	// Others answers which of them are those of other filings of ours than this one.
	Others(ctx context.Context, operationID string, names []string) (others map[string]bool, err error)

	// Belongs keeps that a name is that of the filing with these bytes, where the company
	// of this one has such a filing whose answer was lost: it is another's from then on,
	// and nobody looks behind it again, also after a restart.
	Belongs(ctx context.Context, operationID, name, sha256 string) error
}

// Credentials are a supplier's secrets, opened for one signing or one call.
// Failure policy: nothing of this type is logged, stored or returned.
type Credentials struct {
	PKCS12   []byte
	Password string // of the PKCS#12
	Username string // of the authority or its provider
	Secret   string // password or token of the authority or its provider

	Named map[string]string // those of [Facts].Secrets
}

// Certificate is the key with its certificates, as [identity.Keeper] opens it.
func (c Credentials) Certificate() identity.PKCS12 {
	return identity.PKCS12{File: c.PKCS12, Password: c.Password}
}

// Supplier is the onboarded company in whose name a transaction is issued.
type Supplier struct {
	ID            string
	ExternalID    string
	CountryCode   string // upper case
	LanguageCode  string
	LegalName     string
	Type          string // transaction.Business or Individual; empty is Business
	CompanyNumber string
	Address       transaction.Address
	TaxNumber     string
	TaxRegime     string
	Settings      Settings // the country's own keys, defaults filled in
	Branding      Branding // how its documents look; what is empty is the client's
	Closed        bool     // nothing more is issued in its name
}

// Branding is a company's own look of documents.
type Branding struct {
	LogoSHA256 string // whoever keeps the companies has its bytes
	Placement  string
	Accent     string // #RRGGBB
	Ink        string // #RRGGBB
	Font       string
	Template   string
	Footer     string
}

// Settings are a company's values for the keys that a pack's Facts list.
type Settings map[string]any

// Text returns a setting as text, or "" when it is absent or of another type.
func (s Settings) Text(key string) string {
	text, _ := s[key].(string)
	return text
}

// Draft is everything Prepare may use. It must leave it untouched.
type Draft struct {
	OperationID  string
	UniqueNumber string // service-wide number of this transaction
	Transaction  transaction.Transaction
	Totals       transaction.Totals
	Supplier     Supplier
	Original     *Original      // corrections: the document that is corrected
	Shares       []Share        // payment reports, and corrections of several originals: each of them, Original the first
	Period       *Period        // documents of a period: what is in it
	Previous     Link           // chains: the link before this one; zero at the beginning
	Location     *time.Location // of the supplier's address; decides the day on the document
	Now          time.Time
	Live         Live
	Late         bool // the authority could not be reached for a while; some filings must say so
	// of earlier attempts of this transaction, which the authority refused, without their reports; some filings must say so
	Refused     []Filing
	Credentials Credentials

	Sequence int64 // with [Pack].Sequence: drawn for this draft, never before and never again

	Learned string // with a [Learner]: what it learned for this draft
}

// Original is what is known of a corrected document.
type Original struct {
	Transaction  transaction.Transaction
	Totals       transaction.Totals
	UniqueNumber string
	AuthorityID1 string
	AuthorityID2 string
	Report       []byte // its filing, where it was filed here
	Backfilled   bool
	Gathered     *InPeriod // it was gathered by period; nil: it was filed by itself

	// Corrections are those that succeeded before, payments for it among them, in
	// the order in which they were filed. With [Limits].InSuccession there is no other on its way.
	Corrections []Earlier
}

// Share is an earlier document and how much of a payment or of a correction is for it.
type Share struct {
	Original
	Amount int64
}

// Earlier is a correction that was filed before another of the same original.
type Earlier struct {
	Transaction  transaction.Transaction
	Totals       transaction.Totals
	Number       string // under which the authority knows it
	AuthorityID1 string
	AuthorityID2 string
	Report       []byte
	Cancelled    bool // it was itself withdrawn since
}

// Link is a chain position as plain data that the caller stores.
type Link struct {
	Position int64  `json:"position,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Extra    string `json:"extra,omitempty"` // the pack's own, e.g. number and date of the record

	// Name is the chain's at the authority, where settings of the company decide
	// it; "" otherwise. A link of another name does not follow.
	Name string `json:"name,omitempty"`
}

// Filing is a document ready to send: exact bytes, fixed for ever.
type Filing struct {
	OperationID string
	Number      string // under which the authority knows it
	Supplier    string // tax number of the supplier at the authority
	Kind        transaction.Kind
	Report      []byte // this transaction's own document, the REPORT attachment
	Format      string // "XML" or "JSON"
	SHA256      string // of Report, lower-case hex; what Find compares
	DedupeKey   string // the client-chosen handle, where the authority has one
	// further names by which [Message].Handle may speak of it
	Aliases     []string `json:",omitempty"`
	Link        Link     // the chain's new head; zero without a chain
	AuthorityID string   // an id known before sending (e.g. an own hash); becomes tax_authority_id_2
	QRCode      string   // known before sending
	Extra       []byte   // what the pack needs at Send beyond Report; opaque to the caller
	PreparedAt  time.Time
	Late        bool
	// LostAt is set for Find alone, by this process's clock: what a channel began to read of
	// the authority before does not tell whether it has the filing. Zero: it is read anew.
	LostAt time.Time `json:"-"`

	Effect *Effect `json:",omitempty"` // corrections: what it takes from its original; nil: what it amounts to
	// corrections of several originals: what it takes from each, in the order of Draft.Shares; none: its shares
	Effects []Effect `json:",omitempty"`
	Leaves  bool     `json:",omitempty"` // it takes the sale that it corrects out of its period; the caller's own
	// it mends what the authority holds of a document that stands: nothing is printed anew
	Unprinted bool `json:",omitempty"`
}

// Effect is what a correction takes from its original, where that is not what
// the correction itself amounts to. Amounts are minor units of its currency.
type Effect struct {
	Amount int64 // with its sign: −6050 where 121.00 became 60.50
	Rest   int64 // what of it stays after the correction was itself credited
	Exact  bool  // it must leave nothing of the original
	Alone  bool  // no other correction of the original may count
}

// Outcome is the authority's decision.
type Outcome string

// The outcomes. The zero value is no outcome: see [Channel].
const (
	Accepted Outcome = "accepted"
	Rejected Outcome = "rejected"
	Pending  Outcome = "pending"   // received; the decision comes later: Poll
	NotTaken Outcome = "not_taken" // the authority says it took nothing of this filing; the same bytes go again
	Absent   Outcome = "absent"    // Find only: the authority does not know the number
)

// Receipt is what the authority said about one filing.
type Receipt struct {
	Outcome      Outcome
	AuthorityID1 string
	AuthorityID2 string
	QRCode       string
	At           time.Time // the authority's own time; zero if it gave none
	SHA256       string    // Find and duplicates: hash of what the authority holds; "" when it cannot say
	Handle       string    // Pending: what Poll needs
	Document     []byte    // what the authority gave back, the RECEIPT attachment
	Format       string    // "XML", "JSON" or "ZIP"
	Raw          []byte    // the exchange as received, for the operator
	Faults       []fault.Fault
	Wait         time.Duration // flow control: nothing more for this supplier before that
	Awaiting     bool          // Pending: somebody else must agree first (awaiting_acceptance)
	Duplicate    bool          // "already received": compare SHA256 before believing it; of a refusal without one: the echo, if it was sent before

	// ChainBroken says that the link does not follow the last one that the
	// authority holds, whatever the document is worth. With Rejected nothing was
	// registered, and no later link can be: the caller stops the chain instead of
	// ending the attempt. With Accepted the link is held all the same and the
	// chain goes on behind it; somebody is told.
	ChainBroken bool `json:",omitempty"`

	// News is what was said beside or after the outcome; each becomes an entry of
	// the transaction's life cycle, once.
	News []News `json:",omitempty"`
}

// Untaken is a receipt that says why the authority did not take the filing, for a
// reason of its own: everybody is told authority_error, with these words.
func (r Receipt) Untaken(format string, args ...any) Receipt {
	r.Outcome, r.Faults = NotTaken, []fault.Fault{fault.Warn("", fault.AuthorityError, format, args...)}
	return r
}

// Channel is the wire to one authority. It has several true implementations
// and one conformance suite, packtest.Exercise.
//
// Outcome is data, error is ignorance: a Receipt carries what the authority
// decided; an error means only "not known". A 503, an HTML page with status
// 200, a SOAP fault "busy" or a truncated body are never rejections. An error
// that wraps [ErrNotTaken] says that the authority certainly took nothing of
// the call (connection refused, or an answer documented so): the same bytes go
// again without asking. One that wraps [ErrCredentials] pauses the supplier.
type Channel interface {
	// Prepare is pure: equal drafts give equal bytes, random signature values
	// excepted. A fault.Error of kind Invalid ends the attempt in FAILURE.
	Prepare(in Draft) (Filing, error)
	// Send files up to Limits().Batch filings and answers one receipt each, in order.
	Send(ctx context.Context, filings []Filing, c Credentials) ([]Receipt, error)
	// Poll asks for the decision on a pending filing.
	// Where [Limits].Listen says so it is also asked after SUCCESS, for News alone.
	Poll(ctx context.Context, f Filing, last Receipt, c Credentials) (Receipt, error)
	// Find asks "did you get this?" after a lost answer. Accepted, Rejected or
	// Pending when the authority holds a document under the number, with its
	// hash where it can say; Absent when it holds none. An error that wraps
	// [ErrNotAskable] leaves the filing to a person.
	Find(ctx context.Context, f Filing, c Credentials) (Receipt, error)
	// Limits says how the authority wants to be treated.
	Limits() Limits
}

// Class is how an authority recognises what it already has.
type Class string

// The classes of authorities.
const (
	ByNumber  Class = "Q" // query by number
	ByHash    Class = "H" // echoes the hash or UUID: resend the same bytes
	ByKey     Class = "K" // a key chosen by the client: resend the same key
	ByChain   Class = "C" // a chain: resend the same record, never rebuild the link
	ByNothing Class = "N" // none: at most once, then a person decides
)

// Limits are an authority's habits.
type Limits struct {
	Batch        int           // filings per call, at least 1
	Parallel     int           // calls at a time per supplier, at least 1; more than 1 gives up order
	Wait         time.Duration // between two calls of one supplier
	Chain        bool          // filings of a supplier are linked; implies Parallel 1
	Refusal      Refusal       // with Chain: what a refused link means to those behind it
	AnyOrder     bool          // with Chain: links may arrive in any order, so a later one goes while an earlier one is unclear
	Class        Class
	VisibleAfter time.Duration // when "not found" can be believed
	PollEvery    time.Duration // pending: first poll after, doubling up to 5 min
	PendingMax   time.Duration // pending: the pack's own deadline; 0 means none
	CallTimeout  time.Duration
	Listen       Listening // what may be said after SUCCESS, and is asked for
	// pending: the authority tells its decision by itself (see Callbacks) and cannot be asked; Poll is never called
	Tells  bool
	Quotas []Quota // calls that it grants; the channel takes each from them, see [Endpoint.Spend]
	Named  bool    // Find goes through a list of handles: those of pending filings are kept for [Endpoint].Names

	InSuccession bool // corrections of one original are filed one after another, each knowing all before it
}

// Listening is how long, and how often, Poll is asked for news of a document
// after SUCCESS. The zero value: nobody asks.
type Listening struct {
	First time.Duration // after SUCCESS; then the pause doubles
	Most  time.Duration // up to this
	For   time.Duration // after SUCCESS nobody listens any more
}

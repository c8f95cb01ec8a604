package country

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/fault"
)

// SecretRule names a secret that a pack asks for: of a supplier (a member of
// tax_credentials, see [Facts].Secrets) or of the operator (see [IdentityRule]).
type SecretRule struct {
	Name        string `json:"name"` // lower-case letters, digits and underscores
	Description string `json:"description"`
	Required    bool   `json:"required"`

	// Simulated is what a simulated authority is shown where the operator has set nothing.
	Simulated string `json:"-"`
}

// IdentityRule says what the operator shows to an authority in the name of the
// whole installation: a transmitter's certificate, a platform's OAuth client, an
// access point's token. A supplier's own credentials win where both exist.
type IdentityRule struct {
	Secrets             []SecretRule `json:"secrets"`
	Certificate         bool         `json:"certificate"`          // a PKCS#12 is taken
	CertificateRequired bool         `json:"certificate_required"` // and needed, unless every supplier brings its own
}

// Identity is what an [IdentityRule] asked for, opened for one call.
// Failure policy: nothing of this type is logged, stored or returned.
type Identity struct {
	Secrets     map[string]string
	Certificate identity.PKCS12
}

// Enrolment is what an authority is told about a new supplier.
type Enrolment struct {
	At          Endpoint
	Supplier    Supplier
	Credentials Credentials

	// State is single-use and stands in every address that a person is sent to.
	State string
	// Grant is what a browser brought back from such an address; nil the first time.
	Grant url.Values
}

// Enrolled is what came of it.
type Enrolled struct {
	Faults   []fault.Fault
	Keep     map[string]string // named secrets to keep with the supplier's, see [Facts].Secrets
	Settings Settings          // to keep with the supplier's
	// an address that a person must visit; then Enrol is called again with what the browser brings back
	Visit string
}

// Grant is the optional ability of a pack whose authority gives tokens that are
// renewed while they are used, and that die by it: only one at a time may renew
// them, and what came is stored before it is used.
//
// What an enrolment brings of Secrets is kept apart from a company's own
// credentials, shared by companies, and stands among [Credentials].Named of every
// call. A grant that the authority does not take any more is forgotten: without
// it a channel answers [ErrCredentials], and a person has to come again.
type Grant struct {
	Secrets []string // of [Facts].Secrets
	Person  string   // setting of a company that names who granted it; companies with the same one share it

	// Renew exchanges what is in the credentials for what comes next. An error that
	// wraps [ErrCredentials] says that the grant is dead; every other one says nothing.
	Renew func(ctx context.Context, at Endpoint, c Credentials) (map[string]string, error)
	// Ends reads until when it can be used without renewal, and when a person has to
	// come again; zero where it does not say.
	Ends func(kept map[string]string, now time.Time) (use, grant time.Time)
}

// Among reports whether any of a grant's secrets is among those kept.
func (g *Grant) Among(kept map[string]string) bool {
	return g != nil && slices.ContainsFunc(g.Secrets, func(name string) bool { return kept[name] != "" })
}

// Call is one request that an authority, or a browser, made to our callback
// address. The path is what follows /authorities/{cc}/{live|test}.
type Call struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte
	Client *x509.Certificate // verified against the endpoint's CA; nil: none was shown
	At     time.Time
}

// CallReply is what the caller is answered once the messages are on disk.
type CallReply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Message is one thing an authority told us: about a filing, or news of a
// document that was registered long ago.
type Message struct {
	Key     string  // the authority's own name of the message, one for the whole endpoint; it is taken once
	Handle  string  // [Receipt].Handle, [Filing].DedupeKey or one of its Aliases: the operation it speaks of
	Receipt Receipt // the decision, where it has one; otherwise News alone
	Raw     []byte  // as it came

	// Document is what somebody sent to a company of ours. Handle, Receipt and Raw are empty
	// then: its bytes are kept in their place.
	Document *Document
}

// Callbacks is the optional ability of a pack whose authority calls us.
type Callbacks struct {
	// Read understands a call and says what to answer. It is pure. A fault.Error
	// of kind Unauthenticated or Forbidden refuses a stranger, of kind Invalid
	// what cannot be read; in both cases nothing is kept. Otherwise every message
	// is stored and synced before the reply leaves.
	Read func(at Endpoint, c Call) ([]Message, CallReply, error)
}

// Source says who speaks in a life cycle.
type Source string

// The sources of news.
const (
	FromAuthority   Source = "AUTHORITY"
	FromPlatform    Source = "PLATFORM"
	FromAccessPoint Source = "ACCESS_POINT"
	FromBuyer       Source = "BUYER"
	FromService     Source = "SERVICE" // this one; never a pack
)

// Severity says how much a piece of news matters.
type Severity string

// The severities of news. A problem also raises an alert.
const (
	Info    Severity = "INFO"
	Caution Severity = "WARNING"
	Problem Severity = "PROBLEM"
)

// News is one entry of a transaction's life cycle: what somebody said about a
// document after its outcome, which it never changes.
type News struct {
	Key      string    `json:"-"` // of the source; an entry is made once
	At       time.Time `json:"at"`
	Code     string    `json:"code"`
	Name     string    `json:"name"`
	Source   Source    `json:"source"`
	Severity Severity  `json:"severity"`
	Message  string    `json:"message"`

	// Refuses, of a period's document with [Periods].Replaces: the authority does not
	// take what a platform had accepted. It is made anew as a whole.
	Refuses bool `json:"refuses,omitempty"`
}

// Refusal is what a refused link means to those behind it in a chain.
type Refusal string

// The flavours of chains.
const (
	KeepsPlace Refusal = ""      // it stays a link; the next one follows it
	StopsChain Refusal = "stops" // nothing may follow it until a person has decided
)

// Annuller is the optional ability of a [Channel] whose authority can be asked to
// forget a report that was wrong, of a document that is right and stands. What
// clients correct are documents, so it is an operator's command and nothing else;
// our own records keep their SUCCESS.
type Annuller interface {
	// Annul asks for it. An error means that it is not known whether the authority
	// took the request; asking again does no harm.
	Annul(ctx context.Context, f Filing, a Annulment, c Credentials) (Annulled, error)
}

// Learner is the optional ability of a [Channel] whose documents depend on what
// somebody else knows: a directory of buyers. It is asked before a draft is gathered
// or prepared, and again where the program ended before that was stored.
type Learner interface {
	// Learn asks. An error means "not known": the lane rests, and nothing is made.
	Learn(ctx context.Context, in Draft, c Credentials) (Learned, error)
}

// Learned is what came of it.
type Learned struct {
	Text     string        // [Draft].Learned, the pack's own words
	Warnings []fault.Fault // of the result
}

// Annulment says why.
type Annulment struct {
	Code   string `json:"code"`   // of the authority's list; "" is its most general one
	Reason string `json:"reason"` // in words
}

// Annulled is what the authority said to it.
type Annulled struct {
	ID     string        `json:"authority_id"` // of the request
	State  string        `json:"state"`        // in the authority's words
	Faults []fault.Fault `json:"errors,omitempty"`
}

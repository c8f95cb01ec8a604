package filingtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/transaction"
)

// OfficeCode is the country of an [Office].
const OfficeCode = "XA"

// ErrLine is a call of which nobody knows what became.
var ErrLine = errors.New("the line is dead")

// Office is a small authority in memory, for what no script can say and for
// virtual time. Its behaviour is replaced verb by verb.
type Office struct {
	Habits  country.Limits // what Limits answers
	Version string
	Skew    time.Duration // of the times that it states

	mu         sync.Mutex
	calls      int
	last       int // filings in the last call
	registered map[string]authority.Registration
	order      []string // numbers as they were registered
	prepared   int

	OnPrepare func(o *Office, in country.Draft) (country.Filing, error)
	OnSend    func(o *Office, f country.Filing) (country.Receipt, error) // per filing; the first error is the call's
	OnPoll    func(o *Office, f country.Filing, last country.Receipt) (country.Receipt, error)
	OnFind    func(o *Office, f country.Filing) (country.Receipt, error)
}

// NewOffice makes one that takes everything.
func NewOffice(class country.Class) *Office {
	return &Office{
		Version: "office-1", registered: map[string]authority.Registration{},
		Habits: country.Limits{Batch: 100, Parallel: 1, Class: class, Chain: class == country.ByChain, CallTimeout: time.Minute},
	}
}

// Pack is its country.
func (o *Office) Pack() country.Pack {
	return country.Pack{
		Code: OfficeCode, Name: "Office", Version: o.Version, Sources: []string{"https://example.test/law"},
		Facts: country.Facts{
			Currency: "EUR", Languages: []string{"EN"}, TimeZone: "UTC", UseCases: []country.UseCase{country.Both},
			Authority:   &country.Authority{Name: "Office"},
			Corrections: []country.Correction{{Kind: transaction.Adjustment, Days: 36500, Several: true}, {Kind: transaction.Credit, Days: 1}, {Kind: transaction.Cancellation}, {Kind: transaction.PaymentReport}, {Kind: transaction.Backfill}},
		},
		Connect: func(country.Endpoint) (country.Channel, error) { return o, nil },
	}
}

// Setup is a node beside it.
func (o *Office) Setup() Setup {
	p := o.Pack()
	p.Simulator = func(*authority.Desk) http.Handler { return http.NotFoundHandler() } // so that a test key finds an address; nobody calls it
	return Setup{Packs: []country.Pack{p}, Simulators: "http://127.0.0.1:1"}
}

// Limits answers Habits.
func (o *Office) Limits() country.Limits { return o.Habits }

// Prepare asks OnPrepare, or makes a Draft.
func (o *Office) Prepare(in country.Draft) (country.Filing, error) {
	o.mu.Lock()
	o.prepared++
	o.mu.Unlock()
	if o.OnPrepare != nil {
		return o.OnPrepare(o, in)
	}
	return o.Draft(in)
}

// Draft writes a document: version, number, amount and the link before it.
func (o *Office) Draft(in country.Draft) (country.Filing, error) {
	number := in.Transaction.Number
	if number == "" {
		number = in.UniqueNumber
	}
	report, err := json.Marshal([]any{o.Version, number, in.Totals.Gross, in.Previous, in.Credentials.Secret})
	if err != nil {
		return country.Filing{}, err
	}
	sum := sha256.Sum256(report)
	f := country.Filing{Number: number, Supplier: in.Supplier.TaxNumber, Kind: in.Transaction.Kind, Report: report, Format: "JSON", SHA256: hex.EncodeToString(sum[:])}
	if o.Habits.Chain {
		f.Link = country.Link{Position: in.Previous.Position + 1, Hash: f.SHA256}
	}
	return f, nil
}

// Send asks OnSend about each filing, or takes them.
func (o *Office) Send(_ context.Context, filings []country.Filing, _ country.Credentials) ([]country.Receipt, error) {
	o.mu.Lock()
	o.calls++
	o.last = len(filings)
	o.mu.Unlock()
	receipts := make([]country.Receipt, len(filings))
	for i, f := range filings {
		if o.OnSend == nil {
			receipts[i] = o.Take(f)
			continue
		}
		var err error
		if receipts[i], err = o.OnSend(o, f); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// Poll asks OnPoll, or stays undecided.
func (o *Office) Poll(_ context.Context, f country.Filing, last country.Receipt, _ country.Credentials) (country.Receipt, error) {
	if o.OnPoll != nil {
		return o.OnPoll(o, f, last)
	}
	return country.Receipt{Outcome: country.Pending, Awaiting: last.Awaiting}, nil
}

// Find asks OnFind, or tells what is held.
func (o *Office) Find(_ context.Context, f country.Filing, _ country.Credentials) (country.Receipt, error) {
	if o.OnFind != nil {
		return o.OnFind(o, f)
	}
	return o.Held(f), nil
}

// Calls counts the calls of Send.
func (o *Office) Calls() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// Prepared counts the documents that were made.
func (o *Office) Prepared() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.prepared
}

// LastCall is how many filings were in the last one.
func (o *Office) LastCall() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// Registered lists numbers in order.
func (o *Office) Registered() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.order...)
}

// Take registers a filing, once.
func (o *Office) Take(f country.Filing) country.Receipt {
	o.mu.Lock()
	if _, ok := o.registered[f.Number]; !ok {
		o.order = append(o.order, f.Number)
		o.registered[f.Number] = authority.Registration{Number: f.Number, SHA256: f.SHA256, AuthorityID: fmt.Sprintf("A-%d", len(o.order)), At: time.Now().Add(o.Skew)}
	}
	o.mu.Unlock()
	return o.Held(f)
}

// Held is what Find says about a filing.
func (o *Office) Held(f country.Filing) country.Receipt {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.registered[f.Number]
	if !ok {
		return country.Receipt{Outcome: country.Absent}
	}
	return country.Receipt{Outcome: country.Accepted, AuthorityID1: r.AuthorityID, SHA256: r.SHA256, At: r.At}
}

package filing_test

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

	"tributary/internal/transaction"

	"tributary/internal/country"
)

const officeCode = "XA"

// errLine is a call of which nobody knows what became.
var errLine = errors.New("the line is dead")

// office is a small authority in memory, for what no script can say and for
// virtual time. Its behaviour is replaced verb by verb.
type office struct {
	limits  country.Limits
	version string
	skew    time.Duration

	mu       sync.Mutex
	calls    int
	last     int // filings in the last call
	book     map[string]country.Registration
	order    []string // numbers as they were registered
	prepared int

	prepare func(o *office, in country.Draft) (country.Filing, error)
	send    func(o *office, f country.Filing) (country.Receipt, error) // per filing; the first error is the call's
	poll    func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error)
	find    func(o *office, f country.Filing) (country.Receipt, error)
}

func newOffice(class country.Class) *office {
	return &office{
		version: "office-1", book: map[string]country.Registration{},
		limits: country.Limits{Batch: 100, Parallel: 1, Class: class, Chain: class == country.ByChain, CallTimeout: time.Minute},
	}
}

func (o *office) pack() country.Pack {
	return country.Pack{
		Code: officeCode, Name: "Office", Version: o.version, Sources: []string{"https://example.test/law"},
		Facts: country.Facts{
			Currency: "EUR", Languages: []string{"EN"}, TimeZone: "UTC", UseCases: []country.UseCase{country.Both}, Obliged: true,
			Authority:   &country.Authority{Name: "Office"},
			Corrections: []country.Correction{{Kind: transaction.Adjustment, Days: 36500}, {Kind: transaction.Credit, Days: 1}, {Kind: transaction.Cancellation}, {Kind: transaction.Backfill}},
		},
		Connect: func(country.Endpoint) (country.Channel, error) { return o, nil },
	}
}

func (o *office) setup() setup {
	p := o.pack()
	p.Simulator = func(*country.Desk) http.Handler { return http.NotFoundHandler() } // so that a test key finds an address; nobody calls it
	return setup{packs: []country.Pack{p}, simulators: "http://127.0.0.1:1"}
}

func (o *office) Limits() country.Limits { return o.limits }

func (o *office) Prepare(in country.Draft) (country.Filing, error) {
	o.mu.Lock()
	o.prepared++
	o.mu.Unlock()
	if o.prepare != nil {
		return o.prepare(o, in)
	}
	return o.draft(in)
}

// draft writes a document: version, number, amount and the link before it.
func (o *office) draft(in country.Draft) (country.Filing, error) {
	number := in.Transaction.Number
	if number == "" {
		number = in.UniqueNumber
	}
	report, err := json.Marshal([]any{o.version, number, in.Totals.Gross, in.Previous, in.Credentials.Secret})
	if err != nil {
		return country.Filing{}, err
	}
	sum := sha256.Sum256(report)
	f := country.Filing{Number: number, Supplier: in.Supplier.TaxNumber, Kind: in.Transaction.Kind, Report: report, Format: "JSON", SHA256: hex.EncodeToString(sum[:])}
	if o.limits.Chain {
		f.Link = country.Link{Position: in.Previous.Position + 1, Hash: f.SHA256}
	}
	return f, nil
}

func (o *office) Send(_ context.Context, filings []country.Filing, _ country.Credentials) ([]country.Receipt, error) {
	o.mu.Lock()
	o.calls++
	o.last = len(filings)
	o.mu.Unlock()
	receipts := make([]country.Receipt, len(filings))
	for i, f := range filings {
		if o.send == nil {
			receipts[i] = o.take(f)
			continue
		}
		var err error
		if receipts[i], err = o.send(o, f); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

func (o *office) Poll(_ context.Context, f country.Filing, last country.Receipt, _ country.Credentials) (country.Receipt, error) {
	if o.poll != nil {
		return o.poll(o, f, last)
	}
	return country.Receipt{Outcome: country.Pending, Awaiting: last.Awaiting}, nil
}

func (o *office) Find(_ context.Context, f country.Filing, _ country.Credentials) (country.Receipt, error) {
	if o.find != nil {
		return o.find(o, f)
	}
	return o.held(f), nil
}

func (o *office) sent() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

func (o *office) lastCall() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// registered lists numbers in order.
func (o *office) registered() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.order...)
}

// take registers a filing, once.
func (o *office) take(f country.Filing) country.Receipt {
	o.mu.Lock()
	if _, ok := o.book[f.Number]; !ok {
		o.order = append(o.order, f.Number)
		o.book[f.Number] = country.Registration{Number: f.Number, SHA256: f.SHA256, AuthorityID: fmt.Sprintf("A-%d", len(o.order)), At: time.Now().Add(o.skew)}
	}
	o.mu.Unlock()
	return o.held(f)
}

func (o *office) held(f country.Filing) country.Receipt {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.book[f.Number]
	if !ok {
		return country.Receipt{Outcome: country.Absent}
	}
	return country.Receipt{Outcome: country.Accepted, AuthorityID1: r.AuthorityID, SHA256: r.SHA256, At: r.At}
}

package packtest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/packtest"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Ruritania is a made-up country: all that a channel pack needs and nothing more.
// docs/countries/writing-a-pack.md walks through it, so that the page is proven.

func TestMain(m *testing.M) { packtest.Main(m) }

// ---- The pack: facts, and how drafts become documents.

func ruritania() country.Pack {
	facts := country.Facts{
		Currency: "EUR", Languages: []string{"EN"}, TimeZone: "Europe/Budapest", Formats: []string{"PDF", "XML"},
		UseCases: []country.UseCase{country.Reporting, country.Invoicing, country.Both},
		Required: country.InOwnCurrency("EUR", "the tax is stated in euros"),
		Regimes:  []string{transaction.VAT}, TaxesPerLine: 1,
		Rates: []country.Rate{
			{Regime: transaction.VAT, Type: transaction.TaxStandard, Percent: "20"},
			{Regime: transaction.VAT, Type: transaction.TaxExempt, Percent: "0"},
		},
		Corrections: []country.Correction{{Kind: transaction.Credit}, {Kind: transaction.Backfill}},
		Authority:   &country.Authority{Name: "Treasury of Ruritania", System: "Ledger", Protocol: "XML by POST"},
		Derivations: country.DerivationRules(),
	}
	by := &sale.Rules{Home: "ZZ", Money: "EUR", Zone: sale.Zone(facts.TimeZone),
		Typed: func(c country.Case) []transaction.Item { return country.ClassifyTaxes(facts, c) }}
	return country.Pack{
		Code: "ZZ", Name: "Ruritania", Version: "zz-1", Sources: []string{"https://law.example/vat"}, Facts: facts,
		Checks: []country.Check{{Reads: []string{"items.*.tax_breakdowns"}, Find: func(c country.Case) []fault.Fault {
			return sale.OneTax(c.Transaction.Items, "a line of the ledger has one rate")
		}}},
		Connect: func(at country.Endpoint) (country.Channel, error) {
			base, err := at.Base("/ledger")
			return &channel{at, base, by}, err
		},
		Simulator: func(d *authority.Desk) http.Handler { return &treasury{d} },
	}
}

type channel struct {
	at   country.Endpoint
	base string
	by   *sale.Rules
}

func (ch *channel) Limits() country.Limits {
	return country.Limits{Batch: 1, Parallel: 1, Class: country.ByNumber, CallTimeout: 10 * time.Second,
		PollEvery: time.Second}
}

// Prepare is pure: the resolved draft in, exact bytes out.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	if err := country.Preparable(&in, func() []fault.Fault {
		return nil
	}, "the ledger has no entry for the operation", "use a credit"); err != nil {
		return country.Filing{}, err
	}
	d := ch.by.Of(&in)
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("Entry")
	w.Leaves("Number", d.Number(), "Day", d.Day(d.Date), "Seller", in.Supplier.TaxNumber)
	for _, o := range d.Originals {
		w.Leaf("Corrects", o.Number)
	}
	for _, l := range d.Lines {
		w.Group("Line", "Name", l.Item.Name, "?Type", l.Item.Taxes[l.At].Type, "Net", amount.Text(l.Net, d.Decimals), "Tax",
			amount.Text(l.Tax, d.Decimals))
	}
	w.End()
	return in.Filing(w.Bytes(), d.Number(), in.Supplier.TaxNumber, nil)
}

// ---- The wire. Outcome is data, error is ignorance.

func (ch *channel) Send(ctx context.Context, filings []country.Filing,
	_ country.Credentials) (receipts []country.Receipt, err error) {
	for _, f := range filings {
		r, err := ch.ask(ctx, http.MethodPost, f, f.Report)
		if err != nil {
			return nil, fmt.Errorf("filing %s: %w", f.Number, err)
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

func (ch *channel) Poll(ctx context.Context, f country.Filing, _ country.Receipt,
	_ country.Credentials) (country.Receipt, error) {
	return ch.ask(ctx, http.MethodGet, f, nil)
}

func (ch *channel) Find(ctx context.Context, f country.Filing, _ country.Credentials) (country.Receipt, error) {
	return ch.ask(ctx, http.MethodGet, f, nil)
}

// ask makes a call. Only an answer about this very number counts; what the ledger
// holds under it says by its hash whether it is ours.
func (ch *channel) ask(ctx context.Context, method string, f country.Filing,
	body []byte) (r country.Receipt, err error) {
	query := url.Values{"seller": {f.Supplier}, "number": {f.Number}}
	call, err := http.NewRequestWithContext(ctx, method, ch.base+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return r, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
	}
	reply, err := country.Exchange(ch.at.HTTP, call, 1<<16)
	if err != nil {
		return r, err
	}
	doc, err := xmltree.Limits{Bytes: 1 << 16, Depth: 4}.Read(reply.Body)
	if err != nil {
		return r, fmt.Errorf("the ledger answered with status %d and no answer of its own: %w", reply.Status, err)
	}
	said := doc.Root
	if reply.Status != http.StatusOK || said.Local != "Answer" || said.Value("Number") != f.Number {
		return r, fmt.Errorf("the ledger answered with status %d about something else", reply.Status)
	}
	r = country.Receipt{AuthorityID1: said.Value("Id"), SHA256: said.Value("Hash"), Handle: f.Number,
		Document: reply.Body, Format: "XML", Raw: reply.Body}
	switch said.Value("State") {
	case "entered":
		r.Outcome, r.Duplicate = country.Accepted, r.SHA256 != f.SHA256
	case "waiting":
		r.Outcome = country.Pending
	case "refused":
		r.Outcome = country.Rejected
		r.Faults = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: said.Value("Why")}}
	case "unknown":
		r.Outcome = country.Absent
	default:
		return r, fmt.Errorf("the ledger has a state %q that is not known here", said.Value("State"))
	}
	return r, nil
}

// ---- The double: it judges filings without knowing the pack that made them.

type treasury struct{ desk *authority.Desk }

func (a *treasury) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is cut is no entry
	seller, number := r.URL.Query().Get("seller"), r.URL.Query().Get("number")
	turn := a.desk.QueryTurn()
	if r.Method == http.MethodPost {
		turn = a.desk.Turn(authority.Arrival{Supplier: seller, Number: number})
	}
	if !turn.Begin(w, nil) {
		return
	}
	var answer string
	err := a.desk.Write(func(b *authority.Book) {
		if r.Method == http.MethodPost {
			answer = enter(b, authority.Registration{Supplier: seller, Number: number, SHA256: country.SHA256(body)},
				turn.Steps[0])
		} else {
			answer = a.state(b, seller, number)
		}
	})
	if err != nil {
		http.Error(w, "the book cannot be written", http.StatusInternalServerError)
		return
	}
	if turn.End(w, r) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, "<Answer><Number>"+number+"</Number>"+answer+"</Answer>")
	}
}

// enter takes an entry as the script says.
func enter(b *authority.Book, r authority.Registration, step authority.Step) string {
	if held, taken := b.Find(r.Supplier, r.Number); taken {
		return entered(held)
	}
	r.AuthorityID = fmt.Sprint("Z-", b.Count()+1)
	switch step.Outcome {
	case authority.Reject:
		return "<State>refused</State><Why>E1: the script says so</Why>"
	case authority.Suspend:
		b.Put(r.Supplier+"/"+r.Number, r.SHA256)
		return "<State>waiting</State><Hash>" + r.SHA256 + "</Hash>"
	case authority.Duplicate:
		if step.Of != authority.OfOurs {
			r.SHA256 = strings.Repeat("0", 64)
		}
	}
	return entered(b.Register(r))
}

func entered(r authority.Registration) string {
	return "<State>entered</State><Id>" + r.AuthorityID + "</Id><Hash>" + r.SHA256 + "</Hash>"
}

// state is what the ledger says of a number; what waits is decided when it is asked for.
func (a *treasury) state(b *authority.Book, seller, number string) string {
	if held, taken := b.Find(seller, number); taken {
		return entered(held)
	}
	hash, waiting := b.Get(seller + "/" + number)
	if !waiting {
		return "<State>unknown</State>"
	}
	step := a.desk.Decide()
	if step.Outcome == authority.Suspend {
		return "<State>waiting</State><Hash>" + hash + "</Hash>"
	}
	b.Put(seller+"/"+number, "")
	return enter(b, authority.Registration{Supplier: seller, Number: number, SHA256: hash}, step)
}

// ---- The suite.

func TestAMadeUpCountryPassesTheSuite(t *testing.T) {
	day := time.Date(2026, 5, 4, 22, 30, 0, 0, time.UTC)
	seller := packtest.Seller{Supplier: country.Supplier{ID: "s1", CountryCode: "ZZ", LegalName: "Strelsau Trading",
		TaxNumber: "ZZ1"}, Currency: "EUR", Day: day, Zone: packtest.Zone("Europe/Budapest")}
	tea := func() transaction.Item {
		return transaction.Item{Name: "Tea", Quantity: num.MakeAmount(2, 0), UnitPrice: 600, Type: transaction.Goods,
			Taxes: []transaction.Tax{packtest.VAT("20", transaction.Included)}}
	}
	invoice := seller.Draft("1", nil, tea())
	packtest.Exercise(t, ruritania(), packtest.Options{Cases: []packtest.Case{
		{Name: "invoice", Draft: invoice},
		{Name: "credit", Draft: packtest.Correct(transaction.Credit, seller.Draft("2", nil, tea()), invoice, "Z-1")},
	}})
}

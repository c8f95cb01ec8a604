package hu

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
)

// reportBytesMax is what one invoice may have: base64 makes four bytes of three,
// and the rest of the request needs room as well.
const reportBytesMax = (navwire.BodyBytesMax - 64<<10) / 4 * 3

// channel is the sender's side of NAV.
type channel struct {
	at    country.Endpoint
	base  string
	facts country.Facts
	by    *sale.Rules
	now   func() time.Time
	seen  country.Memory[string, []string] // hashes of what was in a transaction, in the order of indexes: it never changes

	bounds bounds
}

func connect(at country.Endpoint) (*channel, error) {
	base, err := at.Base(strings.TrimSuffix(navwire.Path, "/"))
	if err != nil {
		return nil, err
	}
	f := facts()
	return &channel{at: at, base: base, facts: f, by: reading(f), now: time.Now, bounds: usualBounds()}, nil
}

// visibleAfter is how long NAV's lists may lack what it took: its own procedure
// says five minutes, and the border holds a call for one.
const visibleAfter = 6 * time.Minute

// Limits are NAV's: a hundred invoices a call, decided later. Calls last up to a
// minute at the border before they are cut, and the data lives on.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{
		Batch: navwire.InvoicesMax, Parallel: 1, Class: country.ByNumber, CallTimeout: 65 * time.Second,
		PollEvery: 2 * time.Second, InSuccession: true,
	}
	if ch.at.Real() {
		l.PollEvery, l.VisibleAfter = 5*time.Second, visibleAfter // NAV itself; a double shows at once what it took
	}
	return l
}

// extra is what a filing carries beyond its document. It is stored with the
// filing, so names once used keep their meaning.
type extra struct {
	Operation string `json:"operation"`
}

// Prepare writes InvoiceData.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	if err := country.Preparable(&in, func() []fault.Fault {
		return corrects(&in, ch.facts)
	}, "NAV has no document for the operation",
		"an invoice that was issued cannot be cancelled, only invalidated by another: use a credit"); err != nil {
		return country.Filing{}, err
	}
	d := compose(&in, ch.by)
	if len(d.flaws) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the document cannot be written").With(d.flaws...)
	}
	report := d.write()
	if flaws := tooLarge(report); len(flaws) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "the document is too large for NAV").With(flaws...)
	}
	return in.Filing(report, d.Number(), d.supplier.payer, extra{Operation: d.operation()})
}

// corrects finds what a correction may not do: invalidate a whole that was
// changed before, of which its own amounts say too much, and lines without tax
// that do not fit the original's buyer.
func corrects(in *country.Draft, f country.Facts) []fault.Fault {
	t := &in.Transaction
	if t.Kind == transaction.Credit {
		for _, earlier := range in.Original.Corrections {
			switch {
			case earlier.Cancelled:
			case earlier.Transaction.Kind == transaction.Credit:
				return []fault.Fault{fault.At("reference_transaction_id", fault.ReferenceAlreadyCorrected,
					"was already credited: a STORNO invalidates an invoice once")}
			default:
				return []fault.Fault{fault.At("reference_transaction_id", fault.ValidationMatchInvalid,
					"names an invoice that was adjusted before: a STORNO says what the whole chain comes to; adjust the rest instead")}
			}
		}
		return nil
	}
	if t.Customer != nil {
		return nil // checked at submit
	}
	items := classify(f, country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
	return untaxed(t.Items, items, in.Original.Transaction.Customer, t.Date)
}

// Send reports up to a hundred invoices in one call. What has no room in its ten
// megabytes is not taken and goes with the next.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	u, err := ch.user(filings[0].Supplier, c)
	if err != nil {
		return nil, err
	}
	batch, err := gather(filings)
	if err != nil {
		return nil, err
	}
	id, reply, err := u.report(ctx, navwire.ManageInvoice, batch)
	if err != nil {
		return nil, fmt.Errorf("reporting %s: %w", fault.Count(len(batch), "invoice"), err)
	}
	receipts := make([]country.Receipt, len(filings))
	for i := range filings {
		if i >= len(batch) {
			receipts[i] = country.Receipt{Outcome: country.NotTaken}
			continue
		}
		receipts[i] = country.Receipt{Outcome: country.Pending, AuthorityID1: id, AuthorityID2: strconv.Itoa(i + 1),
			Handle: handle(id, i+1), Raw: reply}
	}
	return receipts, nil
}

// entry is one invoice of a call.
type entry struct {
	operation string
	data      string // base64
}

// gather takes as many filings as have room in one call, at least one.
func gather(filings []country.Filing) ([]entry, error) {
	var batch []entry
	room := reportBytesMax / 3 * 4
	for _, f := range filings {
		var x extra
		if err := f.Carried(&x); err != nil {
			return nil, fmt.Errorf("%w: %w", country.ErrNotTaken, err)
		}
		size := base64.StdEncoding.EncodedLen(len(f.Report))
		if len(batch) == navwire.InvoicesMax || len(batch) > 0 && size > room {
			break
		}
		room -= size
		batch = append(batch, entry{x.Operation, base64.StdEncoding.EncodeToString(f.Report)})
	}
	return batch, nil
}

// handle names an invoice in a transaction of NAV's.
func handle(id string, index int) string { return id + "/" + strconv.Itoa(index) }

func readHandle(text string) (id string, index int, ok bool) {
	id, number, found := strings.Cut(text, "/")
	if !found {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(number, "%d", &index); err != nil || index < 1 || id == "" {
		return "", 0, false
	}
	return id, index, true
}

// Poll asks what became of an invoice that NAV has.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	u, err := ch.user(f.Supplier, c)
	if err != nil {
		return country.Receipt{}, err
	}
	id, index, ok := readHandle(last.Handle)
	if !ok {
		return country.Receipt{}, fmt.Errorf("polling %s: %q names no transaction of NAV's", f.Number, last.Handle)
	}
	t, err := u.transaction(ctx, id, false)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	p, found := t.at(index)
	if !found {
		return country.Receipt{}, fmt.Errorf("polling %s: NAV does not show transaction %s yet", f.Number, id)
	}
	return u.decided(ctx, f, t, p)
}

// decided is what a state of an invoice means.
func (u user) decided(ctx context.Context, f country.Filing, t *processed, p processing) (country.Receipt, error) {
	r := country.Receipt{AuthorityID1: t.id, AuthorityID2: strconv.Itoa(p.index), Handle: handle(t.id, p.index), Raw: t.raw}
	switch p.status {
	case navwire.Received, navwire.Processing, navwire.Saved:
		r.Outcome, r.SHA256 = country.Pending, f.SHA256 // known by its handle, or found by its bytes
	case navwire.Done:
		r.Outcome, r.SHA256 = country.Accepted, f.SHA256
		r.Document, r.Format, r.Faults = t.raw, "XML", p.warnings()
	case navwire.Aborted:
		if p.has(navwire.NumberNotUnique) {
			return u.echo(ctx, f, r, p)
		}
		r.Outcome, r.Faults = country.Rejected, p.refusals()
		r.Document, r.Format = t.raw, "XML"
	default:
		return r, fmt.Errorf("NAV has a state %q of %s that is not known here", p.status, f.Number)
	}
	return r, nil
}

// echo looks whose invoice has the number that NAV refused as taken: ours from a
// call whose answer was lost, or another.
func (u user) echo(ctx context.Context, f country.Filing, r country.Receipt, p processing) (country.Receipt, error) {
	held, found, err := u.held(ctx, f.Number)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("asking whose invoice is %s: %w", f.Number, err)
	}
	if !found {
		return country.Receipt{}, fmt.Errorf("NAV refuses %s as taken and does not show it yet", f.Number)
	}
	if held.SHA256 == f.SHA256 {
		return held, nil
	}
	r.Outcome, r.Duplicate, r.SHA256 = country.Rejected, true, held.SHA256
	r.Faults = []fault.Fault{{Code: fault.AuthorityNumberUsed, Type: fault.TaxAuthority, Field: "transaction_number",
		Message: navwire.NumberNotUnique + ": " + p.text(navwire.NumberNotUnique)}}
	return r, nil
}

// Find follows NAV's own procedure after a lost answer (specification 1.9.2): the
// list of what came since, each transaction with what was in it. That NAV shows
// an invoice under the number is believed; that it shows none proves nothing,
// because it may still be reading.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	u, err := ch.user(f.Supplier, c)
	if err != nil {
		return country.Receipt{}, err
	}
	if held, found, err := u.held(ctx, f.Number); err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	} else if found {
		return held, nil
	}
	t, p, err := u.search(ctx, f)
	switch {
	case err != nil:
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	case t == nil:
		return country.Receipt{Outcome: country.Absent}, nil
	}
	return u.decided(ctx, f, t, p)
}

// enrol tries the credentials once, so that a mistyped key is told at onboarding
// and not with the first invoice. When NAV cannot be reached the company is
// onboarded all the same.
func enrol(ctx context.Context, in country.Enrolment) (done country.Enrolled) {
	ch, err := connect(in.At)
	if err != nil {
		return done
	}
	n, _ := readNumber(in.Supplier.TaxNumber)
	u, err := ch.user(n.payer, in.Credentials)
	if err == nil {
		_, err = u.token(ctx)
	}
	if !errors.Is(err, country.ErrCredentials) {
		return done
	}
	field, cause := "tax_credentials.username", "the credentials do not work"
	var no *refusal
	switch {
	case errors.Is(err, errExchangeKey):
		field, cause = "tax_credentials."+secretExchange, "the token it gave cannot be opened with it"
	case errors.As(err, &no):
		field, cause = no.field(), no.code+" "+no.text
	}
	done.Faults = []fault.Fault{{Code: fault.CredentialsInvalid, Type: fault.Validation, Field: field,
		Message: field + " is refused by NAV: " + strings.TrimSpace(cause)}}
	return done
}

package wire

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

const (
	pageSize   = 250 // the largest that the query takes
	sessionAge = 13 * time.Hour
)

// PagesMax is how many pages of a query are read: 10,000 invoices, the most that
// one shows.
const PagesMax = 40

// duplicate looks at the invoice that KSeF holds in place of ours: KSeF matches
// seller, type and number, never content, so hashes decide.
func (a visit) duplicate(ctx context.Context, f country.Filing, r country.Receipt,
	s ksefwire.Status) (country.Receipt, error) {
	number := s.Extensions[ksefwire.ExtensionNumber]
	if !ksefwire.LooksLikeNumber(number) {
		return country.Receipt{}, fmt.Errorf("KSeF calls the invoice a duplicate and does not say of which: %q", number)
	}
	held, ok, err := a.byKSeFNumber(ctx, number)
	if err != nil {
		return country.Receipt{}, err
	}
	if !ok {
		return country.Receipt{}, fmt.Errorf("KSeF does not show the original %s yet", number)
	}
	r.Outcome, r.Duplicate, r.Handle = country.Accepted, true, ""
	r.AuthorityID1, r.SHA256, r.At = number, hex.EncodeToString(held.Hash), held.AcquisitionDate
	if r.SHA256 != f.SHA256 {
		return r, nil
	}
	return a.confirmed(ctx, r, held, s.Extensions[ksefwire.ExtensionSession])
}

// confirmed adds the UPO to a registered invoice. Where its session is not
// known, the open one is asked, then all in which it can have come. Only
// KSeF's own word that none has it leaves the UPO out.
func (a visit) confirmed(ctx context.Context, r country.Receipt, held ksefwire.Metadata,
	reference string) (country.Receipt, error) {
	sessions := []string{reference}
	if reference == "" {
		sessions = []string{a.current()}
	}
	for listed := reference != ""; ; listed = true {
		for _, s := range sessions {
			upo, err := a.upoOf(ctx, s, held.KSeFNumber)
			if err != nil {
				return country.Receipt{}, err
			}
			if upo == nil {
				continue
			}
			r.Document, r.Format = upo, "XML"
			if r.AuthorityID2 == "" {
				r.AuthorityID2 = s
			}
			return r, nil
		}
		if listed {
			return r, nil
		}
		var err error
		if sessions, err = a.sessionsAround(ctx, held.InvoicingDate); err != nil {
			return country.Receipt{}, err
		}
	}
}

// upoOf fetches the UPO of a KSeF number from a session; nil without an error
// when the session does not have it.
func (a visit) upoOf(ctx context.Context, reference, number string) ([]byte, error) {
	if reference == "" {
		return nil, nil
	}
	upo, err := a.upo(ctx, ksefwire.PathSessions+"/"+url.PathEscape(reference)+"/invoices/ksef/"+url.PathEscape(number)+"/upo")
	var no *Refusal
	if errors.As(err, &no) && (no.has(ksefwire.CodeReceiptUnknown, ksefwire.CodeSessionUnknown, ksefwire.CodeInput) ||
		no.status == http.StatusForbidden) {
		return nil, nil
	}
	return upo, err
}

// sessionsAround lists the sessions in which an invoice of an instant can have
// come: an interactive session lives for twelve hours, and a batch session gives
// its invoices the instant in which it was opened.
func (a visit) sessionsAround(ctx context.Context, at time.Time) ([]string, error) {
	interactive, err := a.sessions(ctx, "Online", at.Add(-sessionAge), at.Add(time.Minute))
	if err != nil {
		return nil, err
	}
	together, err := a.sessions(ctx, "Batch", at.Add(-time.Minute), at.Add(time.Minute))
	return append(interactive, together...), err
}

// sessions lists the sessions of a type that were opened in a span.
func (a visit) sessions(ctx context.Context, kind string, from, to time.Time) ([]string, error) {
	var references []string
	next := ""
	for range listPagesMax {
		query := url.Values{
			"sessionType":     {kind},
			"pageSize":        {strconv.Itoa(listPageSize)},
			"dateCreatedFrom": {from.UTC().Format(time.RFC3339)},
			"dateCreatedTo":   {to.UTC().Format(time.RFC3339)},
		}
		req := request{method: http.MethodGet, path: ksefwire.PathSessions, query: query.Encode(), want: http.StatusOK,
			header: []string{ksefwire.HeaderContinuation, next}}
		var out ksefwire.SessionsResponse
		if _, err := a.authorised(ctx, req, nil, &out); err != nil {
			return nil, fmt.Errorf("listing sessions: %w", err)
		}
		for _, s := range out.Sessions {
			references = append(references, s.ReferenceNumber)
		}
		if next = out.Next; next == "" {
			return references, nil
		}
	}
	return nil, fmt.Errorf("listing sessions: there is more after %d pages", listPagesMax)
}

// Find asks KSeF for an invoice by seller, number and type on its day. An
// invoice that is still in work is not shown: sent again it becomes either the
// first or a duplicate of itself, never a second one.
func (ch *Client) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	x, a, err := ch.open(f, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	r, err := a.find(ctx, f, x)
	return x.noted(r), err
}

func (a visit) find(ctx context.Context, f country.Filing, x Extra) (country.Receipt, error) {
	if r, there, err := a.inBatches(ctx, f); err != nil || there && r.Outcome != country.NotTaken {
		if err != nil {
			err = fmt.Errorf("finding %s: %w", f.Number, classified(err))
		}
		return r, err
	}
	day, err := time.ParseInLocation(time.DateOnly, x.Issued, a.account.ch.zone)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	held, err := a.under(ctx, f, x, day)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, classified(err))
	}
	for _, m := range held {
		if m.InvoiceNumber != f.Number || m.InvoiceType != invoiceType(x.Type) {
			continue
		}
		r := country.Receipt{Outcome: country.Accepted, AuthorityID1: m.KSeFNumber, SHA256: hex.EncodeToString(m.Hash),
			At: m.AcquisitionDate}
		if r.SHA256 != f.SHA256 {
			return r, nil
		}
		return a.confirmed(ctx, r, m, "")
	}
	return country.Receipt{Outcome: country.Absent}, nil
}

const (
	// asksAlone is how many invoices in a minute are asked for by number; for
	// more of them the list of their day is read once, because KSeF takes 16
	// questions a minute and 20 an hour.
	asksAlone = 5
	dayFresh  = time.Minute
)

// days are the invoices of the day that was asked for last, as KSeF listed them.
type days struct {
	mu   sync.Mutex
	asks window
	day  string
	at   time.Time
	list []ksefwire.Metadata
}

// forget makes the next question read the list again.
func (d *days) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = time.Time{}
}

// under lists what KSeF may hold under an invoice's number.
func (a visit) under(ctx context.Context, f country.Filing, x Extra, day time.Time) ([]ksefwire.Metadata, error) {
	alone := ksefwire.MetadataRequest{
		SubjectType: "Subject1", DateRange: dayRange("Issue", day), InvoiceNumber: f.Number, SellerNIP: f.Supplier,
		FormType: ksefwire.FormValue, InvoiceTypes: []string{invoiceType(x.Type)},
	}
	now := a.account.ch.Now()
	a.account.days.mu.Lock()
	defer a.account.days.mu.Unlock()
	if a.account.days.asks.within(time.Minute, now) < asksAlone {
		a.account.days.asks.note(now, 1)
		return a.list(ctx, alone)
	}
	if a.account.days.day == x.Issued && now.Sub(a.account.days.at) < dayFresh {
		return a.account.days.list, nil
	}
	list, err := a.list(ctx, ksefwire.MetadataRequest{SubjectType: "Subject1", DateRange: dayRange("Issue", day),
		SellerNIP: f.Supplier})
	if err == nil {
		a.account.days.day, a.account.days.at, a.account.days.list = x.Issued, now, list
	}
	return list, err
}

// Registered lists what KSeF holds of a supplier by day of issue.
func (ch *Client) Registered(ctx context.Context, s country.Supplier, day country.Day,
	c country.Credentials) ([]country.Entry, error) {
	nip := NIP(&s)
	a, err := ch.visit(nip, s.Settings.Text(SettingAuth), c)
	if err != nil {
		return nil, fmt.Errorf("listing the invoices of %s: %w", nip, err)
	}
	start := time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, ch.zone)
	held, err := a.list(ctx, ksefwire.MetadataRequest{SubjectType: "Subject1", DateRange: dayRange("Issue", start),
		SellerNIP: nip})
	if err != nil {
		return nil, fmt.Errorf("listing the invoices of %s on %s: %w", nip, day, classified(err))
	}
	entries := make([]country.Entry, 0, len(held))
	for _, m := range held {
		entries = append(entries, entryOf(m))
	}
	return entries, nil
}

// entryOf is what the list says of an invoice. A correction's sums are a matter of
// how it was written, and the tax of other currencies is in zloty: they say nothing here.
func entryOf(m ksefwire.Metadata) country.Entry {
	e := country.Entry{Number: m.InvoiceNumber, AuthorityID1: m.KSeFNumber, At: m.AcquisitionDate}
	if buyer := m.Buyer.Identifier; buyer != nil && buyer.Type == "Nip" {
		e.Customer = buyer.Value
	}
	if m.InvoiceType == "Vat" && m.Currency == "PLN" {
		e.Kind, e.Gross, e.Net, e.Tax = transaction.Invoice, minor(m.Gross), minor(m.Net), minor(m.VAT)
	}
	return e
}

// downloads are KSeF's limits of invoices that are downloaded, of a supplier
// (ksef-docs, limity-api.md).
func downloads() []country.Quota {
	r := ksefwire.ProductionRates().InvoiceDownload
	return []country.Quota{{Name: "invoiceDownload/minute", Per: time.Minute, Most: int64(r.Minute), Alone: true},
		{Name: "invoiceDownload/hour", Per: time.Hour, Most: int64(r.Hour), Alone: true}}
}

// Invoice downloads an invoice by its KSeF number.
func (ch *Client) Invoice(ctx context.Context, s country.Supplier, number string, c country.Credentials) ([]byte, error) {
	nip := NIP(&s)
	a, err := ch.visit(nip, s.Settings.Text(SettingAuth), c)
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", number, err)
	}
	for _, q := range downloads() {
		if err := ch.at.Spend(ctx, q, nip); err != nil {
			return nil, err
		}
	}
	reply, err := a.authorised(ctx, request{method: http.MethodGet, path: ksefwire.PathInvoice + "/" + url.PathEscape(number),
		want: http.StatusOK, limit: invoiceBytesMax}, nil, nil)
	if r, ok := pause(err); ok { // its windows slide
		err = fmt.Errorf("%w: %w", &country.Exhausted{Quota: "invoiceDownload", Subject: nip, Until: ch.Now().Add(r.Wait), Alone: true}, err)
	}
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", number, classified(err))
	}
	return reply.Body, nil
}

// minor reads a sum of the list in hundredths; nil: it has none that can be read.
func minor(text json.Number) *int64 {
	whole, part, _ := strings.Cut(text.String(), ".")
	if len(part) > 2 {
		return nil
	}
	n, err := strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// byKSeFNumber asks for one invoice. The query wants a range of days, and a
// KSeF number carries the day on which it was given, which is the next one for what
// came before midnight: a day on either side is asked for.
func (a visit) byKSeFNumber(ctx context.Context, number string) (ksefwire.Metadata, bool, error) {
	day, err := time.ParseInLocation("20060102", number[11:19], a.account.ch.zone)
	if err != nil {
		return ksefwire.Metadata{}, false, fmt.Errorf("reading the day of %s: %w", number, err)
	}
	held, err := a.list(ctx, ksefwire.MetadataRequest{SubjectType: "Subject1", DateRange: around("Invoicing", day),
		KSeFNumber: number})
	if err != nil {
		return ksefwire.Metadata{}, false, err
	}
	for _, m := range held {
		if m.KSeFNumber == number {
			return m, true, nil
		}
	}
	return ksefwire.Metadata{}, false, nil
}

// dayRange is one day of KSeF's time zone.
func dayRange(kind string, day time.Time) ksefwire.DateRange {
	return ksefwire.DateRange{DateType: kind, From: day.Format(time.RFC3339),
		To: day.AddDate(0, 0, 1).Add(-time.Second).Format(time.RFC3339)}
}

// around is a day of KSeF's time zone with the one before and the one after.
func around(kind string, day time.Time) ksefwire.DateRange {
	return ksefwire.DateRange{DateType: kind, From: day.AddDate(0, 0, -1).Format(time.RFC3339),
		To: day.AddDate(0, 0, 2).Add(-time.Second).Format(time.RFC3339)}
}

// invoiceType is RodzajFaktury as the query spells it: KOR_ZAL is KorZal.
func invoiceType(kind string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(cmp.Or(kind, "VAT"), "_") {
		b.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return b.String()
}

// list reads all pages of a query. KSeF shows at most 10,000 invoices of one
// query; a list that is cut there is not known.
func (a visit) list(ctx context.Context, in ksefwire.MetadataRequest) ([]ksefwire.Metadata, error) {
	var all []ksefwire.Metadata
	for page := range PagesMax {
		query := url.Values{"pageOffset": {strconv.Itoa(page)}, "pageSize": {strconv.Itoa(pageSize)}, "sortOrder": {"Asc"}}
		var out ksefwire.MetadataResponse
		req := request{method: http.MethodPost, path: ksefwire.PathMetadata, query: query.Encode(), want: http.StatusOK}
		if _, err := a.authorised(ctx, req, in, &out); err != nil {
			return nil, fmt.Errorf("querying invoices: %w", err)
		}
		all = append(all, out.Invoices...)
		switch {
		case !out.HasMore:
			return all, nil
		case out.Truncated || len(out.Invoices) == 0:
			return nil, fmt.Errorf("querying invoices: there are more than KSeF shows (%d)", len(all))
		}
	}
	return nil, fmt.Errorf("querying invoices: there is more after %d pages", PagesMax)
}

// CheckUPO looks whether an answer is a confirmation at all: XML without a
// document type whose root is Potwierdzenie.
func CheckUPO(body []byte) error {
	doc, err := xmltree.Limits{Bytes: upoBytesMax}.Read(body)
	if err != nil {
		return fmt.Errorf("it is no XML: %w", err)
	}
	if doc.Root.Local != "Potwierdzenie" {
		return fmt.Errorf("it is no UPO: its root is %q", doc.Root.Local)
	}
	return nil
}

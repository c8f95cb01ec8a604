package fr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// channel is the sender's side of a platform.
type channel struct {
	at        country.Endpoint
	base      string
	directory string
	now       func() time.Time

	tokens   country.Memory[string, held]
	statuses country.Memory[string, *status] // by flow: what it says never changes
	named    country.Memory[string, string]  // the flow of each message: an answer that comes again is told by it
	lines    country.Memory[string, listed]  // what the directory says of a SIREN, for a while
}

func connect(at country.Endpoint) (*channel, error) {
	base, err := at.Base("")
	if err != nil {
		return nil, err
	}
	ch := &channel{at: at, base: base, directory: at.Identity.Secrets[secretDirectory], now: time.Now}
	if ch.directory == "" {
		ch.directory = base
	}
	return ch, nil
}

const (
	callTimeout  = 90 * time.Second
	visibleAfter = 2 * time.Minute
)

// Limits: a platform takes one file a call, knows it by our tracking id, and
// decides later.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{Batch: 1, Parallel: 4, Class: country.ByNumber, CallTimeout: callTimeout, PollEvery: time.Second}
	if ch.at.Real() {
		l.PollEvery, l.VisibleAfter = 15*time.Second, visibleAfter
	}
	return l
}

func isCredentials(err error) bool { return errors.Is(err, country.ErrCredentials) }

// Send hands one invoice over: what comes back is a flow to ask about.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) != 1 {
		return nil, fmt.Errorf("%w: %d documents: the platform takes one a call", country.ErrNotTaken, len(filings))
	}
	f := filings[0]
	got, raw, err := ch.submit(ctx, f, c)
	var no *refusal
	switch {
	case errors.As(err, &no) && no.limited():
		return []country.Receipt{country.Receipt{Wait: no.wait, Raw: raw}.Untaken("the platform takes no more for now: %s", no.text)}, nil
	case errors.As(err, &no) && no.about():
		return []country.Receipt{{Outcome: country.Rejected, Raw: raw, Document: raw, Format: "JSON", Faults: []fault.Fault{{Code: fault.AuthorityRejected,
			Type: fault.TaxAuthority, Message: no.code + ": " + no.text}}}}, nil
	case err != nil:
		return nil, fmt.Errorf("handing over %s: %w", f.Number, err)
	}
	return []country.Receipt{{Outcome: country.Pending, AuthorityID1: got.ID, Handle: got.ID, Raw: raw}}, nil
}

// Poll asks what became of a flow: the acknowledgement first, then the status of
// the invoice.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt, c country.Credentials) (country.Receipt, error) {
	r, err := ch.decided(ctx, f, last.Handle, c)
	var no *refusal
	if errors.As(err, &no) && no.limited() {
		return country.Receipt{Outcome: country.Pending, AuthorityID1: last.Handle, Handle: last.Handle, Wait: no.wait}, nil
	}
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	return r, nil
}

// decided is what a flow has come to.
func (ch *channel) decided(ctx context.Context, f country.Filing, id string, c country.Credentials) (country.Receipt, error) {
	r := country.Receipt{Outcome: country.Pending, AuthorityID1: id, Handle: id}
	got, raw, err := ch.metadata(ctx, f, id, c)
	if err != nil {
		return r, err
	}
	r.Raw = raw
	switch got.Ack.Status {
	case ackPending:
		return r, nil
	case ackOk:
		var x extra
		if err := f.Carried(&x); err != nil {
			return r, err
		}
		if x.Syntax == syntaxReport || x.Syntax == syntaxStatus { // what is said of it comes later, if anything is
			r.Outcome, r.SHA256, r.Document, r.Format = country.Accepted, f.SHA256, raw, "JSON"
			return r, nil
		}
		return ch.outcome(ctx, f, got, c)
	case ackError:
		if got.because(reasonExisting) {
			return ch.earlier(ctx, f, got, c)
		}
		r.Outcome, r.Document, r.Format = country.Rejected, raw, "JSON"
		r.Faults = acknowledged(got.Ack.Details)
		return r, nil
	}
	return r, fmt.Errorf("the platform has an acknowledgement %q of %s that is not known here", got.Ack.Status, id)
}

// acknowledged are the reasons of an acknowledgement that refuses.
func acknowledged(details []detail) (list []fault.Fault) {
	for _, d := range details {
		list = append(list, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: d.Code + ": " + d.Message})
	}
	if list == nil {
		list = []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: "OtherTechnicalError: the platform does not say why"}}
	}
	return list
}

// outcome looks for the statuses of an invoice whose flow is in order.
func (ch *channel) outcome(ctx context.Context, f country.Filing, of flow, c country.Credentials) (country.Receipt, error) {
	r := country.Receipt{Outcome: country.Pending, AuthorityID1: of.ID, Handle: of.ID}
	after := of.Submitted // by the platform's own clock: what was said before speaks of another document
	for range pagesMax {
		page, err := ch.search(ctx, f.Supplier, condition{After: &after, Type: []string{flowStatus}, Direction: []string{directionIn}}, c)
		if err != nil {
			return r, err
		}
		for i := range page {
			s, err := ch.status(ctx, f.Supplier, page[i].ID, c)
			if err != nil {
				return r, err
			}
			if s == nil || !slices.Contains(f.Aliases, s.handle) {
				continue
			}
			said := s.receipt()
			r.News = append(r.News, said.News...)
			switch {
			case said.Outcome == "":
			case r.Outcome == country.Accepted && said.Outcome == country.Rejected && s.duplicate():
				return r, fmt.Errorf("the platform has deposited %s and calls it a duplicate: one of the two is another's", f.Number)
			case r.Outcome == country.Pending:
				r.Outcome, r.At, r.Document, r.Format, r.Faults, r.Raw = said.Outcome, said.At, said.Document, said.Format, said.Faults, said.Raw
			}
		}
		if len(page) < pageMost || r.Outcome != country.Pending {
			break // what was said later the mailbox brings
		}
		after = page[len(page)-1].Updated
	}
	if r.Outcome == country.Accepted {
		r.SHA256 = f.SHA256
	}
	return r, nil
}

// status reads a message, each once. One that another flow brought already is an
// answer to another question.
func (ch *channel) status(ctx context.Context, siren, id string, c country.Credentials) (*status, error) {
	if s, known := ch.statuses.Get(id); known {
		return s, nil
	}
	text, err := ch.original(ctx, siren, id, c)
	if err != nil {
		return nil, err
	}
	s, err := readStatus(text)
	if err != nil {
		return nil, err
	}
	if first, known := ch.named.Get(s.id); known && first != id {
		return nil, fmt.Errorf("the flow %s brings the status of the flow %s", id, first)
	}
	ch.named.Put(s.id, id)
	ch.statuses.Put(id, s)
	return s, nil
}

// Find looks a flow up by our tracking id. Its file must be ours, byte for byte.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	r, err := ch.find(ctx, f, "", c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	return r, nil
}

// earlier follows a flow that the platform says it has already.
func (ch *channel) earlier(ctx context.Context, f country.Filing, refused flow, c country.Credentials) (country.Receipt, error) {
	r, err := ch.find(ctx, f, refused.ID, c)
	if err == nil && r.Outcome == country.Absent {
		return r, fmt.Errorf("the platform says that it has %s, and does not show it", f.DedupeKey)
	}
	return r, err
}

// find looks through the flows of our tracking id, but one.
func (ch *channel) find(ctx context.Context, f country.Filing, but string, c country.Credentials) (country.Receipt, error) {
	all, err := ch.search(ctx, f.Supplier, condition{Tracking: f.DedupeKey}, c)
	if err != nil {
		return country.Receipt{}, err
	}
	all = slices.DeleteFunc(all, func(one flow) bool { return one.ID == but || one.because(reasonExisting) })
	if len(all) == 0 {
		return country.Receipt{Outcome: country.Absent}, nil
	}
	one := all[0]
	content, err := ch.original(ctx, f.Supplier, one.ID, c)
	if err != nil {
		return country.Receipt{}, err
	}
	if country.SHA256(content) != f.SHA256 {
		return country.Receipt{}, fmt.Errorf("the flow %s of our tracking id holds another file", one.ID)
	}
	return ch.decided(ctx, f, one.ID, c)
}

// Registered is what a platform is not asked for: its flows say neither day nor
// amounts.
func (ch *channel) Registered(context.Context, country.Supplier, country.Day, country.Credentials) ([]country.Entry, error) {
	return nil, fmt.Errorf("listing what the platform holds: %w", country.ErrNoList)
}

package peppol

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
)

const (
	callTimeout = 90 * time.Second // an access point sends while we wait
	lookupMost  = 20 * time.Second // of these for finding the receiver
	answerMax   = 1 << 20          // bytes of an access point's answer
	textMost    = 500              // of an access point's words in a fault
	parallel    = 4                // documents of one supplier on their way at a time
	pollEvery   = 30 * time.Second // of a document that the access point tries again by itself
	listenFirst = time.Minute
	listenMost  = 12 * time.Hour
	listenFor   = 7 * 24 * time.Hour // a message level status comes within minutes, or the network's own limits have passed
)

// fieldReceiver is where a client says who receives an invoice.
const fieldReceiver = "customer.electronic_address"

// driver speaks to one kind of access point.
type driver interface {
	// submit hands a document over. The same law holds as for [country.Channel].Send.
	submit(ctx context.Context, m message) (country.Receipt, error)
	// find asks what became of a document; Absent: it was never handed over.
	find(ctx context.Context, m message) (country.Receipt, error)
	// class is how the access point recognises what it has.
	class() country.Class
}

// message is a document on its way.
type message struct {
	envelope
	to     participant
	report []byte
	sha256 string
	token  string
}

// channel sends invoices of one country through one access point.
type channel struct {
	at     country.Endpoint
	pack   country.Pack
	make   func(country.Issue) (*country.Structured, error)
	driver driver
	lookup *lookup
}

func connect(at country.Endpoint, pack country.Pack,
	invoice func(country.Issue) (*country.Structured, error)) (country.Channel, error) {
	ch := &channel{at: at, pack: pack, make: invoice}
	switch kind := at.Identity.Secrets[secretDriver]; kind {
	case "", "phoss":
		ch.driver = phoss{at}
	case "plain":
		ch.driver = plain{at}
	default:
		return nil, fmt.Errorf("there is no driver %q for access points: it is phoss or plain", kind)
	}
	var err error
	ch.lookup, err = newLookup(at)
	return ch, err
}

// Limits: one call hands over one document. What is said afterwards is asked for.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{Batch: 1, Parallel: parallel, Class: ch.driver.class(), PollEvery: pollEvery, CallTimeout: callTimeout,
		Listen: country.Listening{First: listenFirst, Most: listenMost, For: listenFor}}
	if ch.at.Simulated {
		l.PollEvery, l.Listen.First = time.Second, time.Second
	}
	if l.Class == country.ByNothing {
		l.Listen = country.Listening{} // there is nobody to ask
	}
	return l
}

// Prepare makes the invoice and reads from it where it goes.
func (ch *channel) Prepare(d country.Draft) (country.Filing, error) {
	if d.Transaction.Answer != nil {
		return answer(&d)
	}
	made, err := ch.make(typed(ch.pack, &d))
	if err != nil {
		return country.Filing{}, err
	}
	if made == nil {
		return country.Filing{}, fault.New(fault.Invalid, "the invoice cannot be sent over Peppol").
			With(fault.At("settings.format", fault.ValidationMatchInvalid,
				"makes no structured invoice of this transaction, and settings.delivery wants one sent"))
	}
	e, invoice, err := seal(&d, made)
	if err != nil {
		return country.Filing{}, err
	}
	return filed(&d, e, invoice, made)
}

// errUnset says that there is no access point.
var errUnset = fmt.Errorf("%w: %w: no access point is configured", country.ErrNotTaken, country.ErrNoAddress)

// open is a filing as a message, to whoever the envelope names first.
func (ch *channel) open(f country.Filing, c country.Credentials) (message, error) {
	e, err := opened(f)
	if err != nil {
		return message{}, err
	}
	m := message{envelope: e, to: e.Receivers[0], report: f.Report, sha256: f.SHA256}
	m.token, err = ch.at.Secret(c, secretToken)
	switch {
	case ch.at.BaseURL == "":
		return m, errUnset
	case err != nil && ch.at.Simulated:
		m.token = "simulated" // it takes any
		return m, nil
	case err != nil && ch.driver.class() == country.ByNothing:
		return m, nil // an address alone may be all the protection there is
	}
	return m, err
}

// Send looks up who takes the document, then hands it over.
//
// Failure policy: whatever goes wrong before the access point is called leaves
// nothing there, and says so. A receiver that is not registered, or does not
// take the document, ends the attempt: it may be registered tomorrow, so
// nothing remembers the answer. A register or a name server that does not
// answer, or whose answer cannot be trusted, puts off this document alone, and
// says which receiver is meant: other buyers are found elsewhere. Only what the
// access point itself says, or that it cannot be reached, holds the lane.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) != 1 {
		return nil, fmt.Errorf("%w: an access point takes one document at a time, not %d", country.ErrNotTaken, len(filings))
	}
	m, err := ch.open(filings[0], c)
	if err != nil {
		return nil, err
	}
	finding, cancel := context.WithTimeout(ctx, lookupMost)
	m.to, err = ch.lookup.receiver(finding, m.envelope)
	cancel()
	var no *unwilling
	var broken *unseen
	switch {
	case errors.As(err, &no):
		return []country.Receipt{{Outcome: country.Rejected, Raw: []byte(no.Error()),
			Faults: []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Field: fieldReceiver,
				Message: fieldReceiver + ": " + no.Error()}}}}, nil
	case errors.As(err, &broken):
		return []country.Receipt{{Outcome: country.NotTaken, Raw: []byte(broken.Error()),
			Faults: []fault.Fault{fault.Warn(fieldReceiver, broken.reason(), "cannot be looked up: %s", broken.Error())}}}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: looking up the receiver: %w", country.ErrNotTaken, err)
	}
	receipt, err := ch.driver.submit(ctx, m)
	if err != nil {
		return nil, err
	}
	return []country.Receipt{receipt}, nil
}

// Poll asks what became of a document that the access point tries by itself, and
// after SUCCESS what the receiver's side said of it.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	m, err := ch.open(f, c)
	if err != nil {
		return country.Receipt{}, err
	}
	r, err := ch.driver.find(ctx, m)
	if err == nil && r.Outcome == country.Absent {
		// An access point forgets what it has archived, never what it is working on.
		if last.Outcome == country.Accepted {
			return country.Receipt{}, nil
		}
		return country.Receipt{}, fmt.Errorf("the access point does not know %s any more, which it had taken", m.Instance)
	}
	if last.Outcome == country.Accepted {
		return country.Receipt{News: r.News, Raw: r.Raw}, err
	}
	return r, err
}

// Find asks whether a document was handed over.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	m, err := ch.open(f, c)
	if err != nil {
		return country.Receipt{}, err
	}
	return ch.driver.find(ctx, m)
}

package it

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/sale"
	"tributary/internal/country/taxid"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

// channel is the transmitter's side of SdICoop.
type channel struct {
	at      country.Endpoint
	facts   country.Facts
	by      *sale.Rules
	callers country.Callers
	keeper  *identity.Keeper
	now     func() time.Time

	// given are the ids that SdI gave lately. An answer names no file: one that
	// comes again, from a cache or whoever stands between, would be taken for that
	// of a file which SdI never got.
	given country.Memory[string, bool]

	invented func() (identity.PKCS12, error) // who calls a simulated SdI where nobody set an identity
}

func connect(at country.Endpoint) (*channel, error) {
	if _, err := at.Base(""); err != nil {
		return nil, err
	}
	f := facts()
	return &channel{at: at, facts: f, by: reading(f), keeper: identity.NewKeeper(), now: time.Now,
		invented: sync.OnceValues(invent)}, nil
}

// invent makes a transmitter's certificate that is worth something at a simulated SdI only.
func invent() (identity.PKCS12, error) {
	file, password, err := identity.Test("", "Tributary, simulated transmitter", time.Now())
	return identity.PKCS12{File: file, Password: password}, err
}

const (
	parallel    = 4
	callTimeout = time.Minute // SdI takes up to half of it

	// pendingMax is a day more than the five in which SdI promises its decision.
	pendingMax = 6 * 24 * time.Hour

	// quietFor is how long a message about a file may take before its name is
	// tried again: within it SdI has said something about nearly every file.
	quietFor          = time.Hour
	quietForSimulated = 2 * time.Second
)

// Limits: one file a call. SdI knows a file by its name and cannot be asked: after
// a lost answer the same bytes go again under the same name, once SdI had the
// time to call. What it decides it tells by itself.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{
		Batch: 1, Parallel: parallel, Class: country.ByKey, VisibleAfter: quietFor, CallTimeout: callTimeout,
		PollEvery: pendingMax, PendingMax: pendingMax, Tells: true,
	}
	if ch.at.Simulated {
		l.VisibleAfter = quietForSimulated
	}
	return l
}

// extra is what a filing carries beyond its document. It is stored with the
// filing, so names once used keep their meaning.
type extra struct {
	SdI      string `json:"sdi,omitempty"` // of an answer: IdentificativoSdI of the invoice
	Rounding int64  `json:"rounding,omitempty"`
	BySum    bool   `json:"by_sum,omitempty"`
}

// Prepare writes the file and gives it its name, which is never another's.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	if in.Transaction.Answer != nil {
		return answer(&in)
	}
	if err := country.Preparable(&in, func() []fault.Fault {
		return unfit(&in, ch.facts)
	}, "SdI has no document for the operation",
		"an invoice that SdI has taken cannot be withdrawn: use a credit (TD04)"); err != nil {
		return country.Filing{}, err
	}
	d := compose(&in, ch.by)
	name, err := ch.name(&in, d)
	if err != nil {
		return country.Filing{}, err
	}
	flaws := append(d.flaws, d.judged(todayInRome(in.Now))...)
	report := d.write()
	if len(report) > sdiwire.FileBytesMax {
		flaws = append(flaws, tooLarge(len(report), d.Transaction))
	}
	if len(flaws) > 0 {
		return country.Filing{}, fault.New(fault.Invalid, "SdI would refuse the document").With(flaws...)
	}
	f, err := in.Filing(report, d.Number(), d.numbered(), extra{Rounding: d.Sign * d.rounding, BySum: d.bySum})
	f.DedupeKey = name
	return f, err
}

// numbered is in whose series the number is: the seller's, or the buyer's where
// it issues the document itself.
func (d *invoice) numbered() string {
	who := d.seller
	if d.issuer == "CC" {
		who = d.buyer
	}
	if who.id == "" {
		return who.code
	}
	return who.country + who.id
}

// name takes a place in the sequence for the file: five characters, 36⁵ of them.
func (ch *channel) name(in *country.Draft, d *invoice) (string, error) {
	if in.Sequence <= 0 || in.Sequence >= sdiwire.SequenceMax {
		return "", fmt.Errorf("naming the file of %s: %d is none of the %d names of a transmitter", in.Transaction.ID,
			in.Sequence, sdiwire.SequenceMax)
	}
	d.transmitter = [2]string{home, d.seller.id}
	if d.kind.side == buying {
		d.transmitter[1] = d.buyer.id
	}
	if own := taxid.Bare(ch.at.Identity.Secrets[secretTransmitter]); len(own) > 2 {
		d.transmitter = [2]string{own[:2], own[2:]}
	}
	d.progressive = strings.ToUpper(strconv.FormatInt(in.Sequence, 36))
	d.progressive = strings.Repeat("0", sdiwire.ProgressiveMax-len(d.progressive)) + d.progressive
	name := sdiwire.Name{Country: d.transmitter[0], ID: d.transmitter[1], Progressive: d.progressive}.String()
	if _, ok := sdiwire.ParseName(name); !ok {
		return "", country.Unidentified(fmt.Errorf("%q is no name of a file: see the secret %s", name, secretTransmitter))
	}
	return name, nil
}

// unfit finds what an adjustment says that does not fit its original: another
// type, or lines without tax that are not of its buyer.
func unfit(in *country.Draft, f country.Facts) []fault.Fault {
	t := &in.Transaction
	found := mistyped(in)
	if t.Kind != transaction.Adjustment || t.Customer != nil || len(found) > 0 {
		return found // the rest was checked at submit
	}
	items := classify(f, country.Case{Transaction: t, Totals: in.Totals, Now: in.Now})
	kind, _ := typed(in)
	return exemptions(t.Items, items, supply{buyer: identify(in.Original.Transaction.Customer), day: t.Date,
		bought: kind.side != selling})
}

// Send hands over files, each in a call of its own.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	if len(filings) == 0 {
		return nil, nil
	}
	first, err := ch.give(ctx, filings[0], c)
	if err != nil {
		return nil, fmt.Errorf("handing over %s: %w", filings[0].DedupeKey, err)
	}
	receipts := []country.Receipt{first}
	for range filings[1:] {
		receipts = append(receipts, country.Receipt{Outcome: country.NotTaken}) // Limits: one a call
	}
	return receipts, nil
}

// give hands over an invoice, or an answer to one.
func (ch *channel) give(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	if f.Kind == transaction.Response {
		return ch.respond(ctx, f, c)
	}
	return ch.hand(ctx, f, c)
}

// Find shows SdI the same file again: it knows no question. Either it takes it
// now, or it says that it knows the name (00002), and what it decides on the
// first comes by itself.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	r, err := ch.give(ctx, f, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.DedupeKey, err)
	}
	return r, nil
}

// Poll asks nobody: SdI calls.
func (ch *channel) Poll(_ context.Context, f country.Filing, last country.Receipt,
	_ country.Credentials) (country.Receipt, error) {
	if last.Handle == "" {
		last.Handle = f.DedupeKey
	}
	last.Outcome = country.Pending
	return last, nil
}

// Registered is what SdI cannot list: what it holds is what came back.
func (ch *channel) Registered(context.Context, country.Supplier, country.Day, country.Credentials) ([]country.Entry, error) {
	return nil, fmt.Errorf("listing what SdI holds: %w", errors.Join(country.ErrNoList, errNoQuestion))
}

var errNoQuestion = errors.New("SdI tells by itself and answers no questions")

// structured is what paper shows of a file that was made.
func structured(in country.Issue) (*country.Structured, error) {
	if in.Filing == nil {
		return nil, nil
	}
	var x extra
	if err := in.Filing.Carried(&x); err != nil {
		return nil, err
	}
	return &country.Structured{Format: in.Filing.Format, Content: in.Filing.Report, Name: "FatturaPA",
		Rounding: x.Rounding, TaxedBySum: x.BySum}, nil
}

// Names of the operator's secrets.
const (
	secretTransmitter = "transmitter"
	secretCaller      = "sdi_name"
	secretSigner      = "sdi_certificate"
)

func identityRule() *country.IdentityRule {
	return &country.IdentityRule{
		Secrets: []country.SecretRule{
			{Name: secretTransmitter,
				Description: "Country and codice fiscale of the accredited transmitter, IT01234567890. Without it each company transmits for itself."},
			{Name: secretCaller,
				Description: "Common name of the certificate with which SdI calls, where it is not one that begins with SistemaInterscambioFatturaPA."},
			{Name: secretSigner,
				Description: "Certificates (PEM) under which SdI signs its messages. Without them signatures are not verified."},
		},
		Certificate: true, // needed by SdI itself, not by a simulated one: see hand
	}
}

package mx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// channel is the sender's side: it makes sealed vouchers and signed requests,
// and brings them to a provider.
type channel struct {
	at   country.Endpoint
	base string
	cat  *catalog
	keys *identity.Keeper

	mu           sync.Mutex
	certificates map[string]*certificate // SAT's, by number
	tokens       map[string]token        // of REST providers, by user
}

func connect(at country.Endpoint, cat *catalog, keys *identity.Keeper) (*channel, error) {
	if at.BaseURL == "" || at.HTTP == nil {
		return nil, country.ErrNoAddress
	}
	return &channel{
		at: at, base: strings.TrimSuffix(at.BaseURL, "/"), cat: cat, keys: keys,
		certificates: map[string]*certificate{}, tokens: map[string]token{},
	}, nil
}

// simulated reports whether the address is a simulator's: only those are plain http.
func (ch *channel) simulated() bool { return strings.HasPrefix(ch.base, "http://") }

// acceptanceMax is how long a receiver may take: three working days (RMF
// 2.7.1.34), which a weekend and a holiday stretch to a week.
const acceptanceMax = 7 * 24 * time.Hour

// Limits are those of a provider. It stamps one voucher a call and as many
// calls at a time as one likes; order does not matter to it.
func (ch *channel) Limits() country.Limits {
	l := country.Limits{
		Batch: 1, Parallel: 4, Class: country.ByHash, CallTimeout: 40 * time.Second,
		PollEvery: time.Minute, PendingMax: acceptanceMax, VisibleAfter: 15 * time.Second,
	}
	if ch.simulated() {
		l.PollEvery, l.VisibleAfter = time.Second, 0
	}
	return l
}

// Prepare makes the sealed voucher or the signed request of a draft. RSA seals
// of the first kind (PKCS #1 v1.5) have no random part: equal drafts give equal bytes.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	with, err := ch.keys.Open(in.Credentials.Certificate(), in.Now)
	if err != nil {
		return country.Filing{}, fmt.Errorf("preparing %s: %w", in.OperationID, err)
	}
	rfc := rfcOf(in.Supplier.TaxNumber)
	if !identity.Names(with.Leaf, "MX", rfc) {
		return country.Filing{}, fmt.Errorf("preparing %s: the certificate is not of %s: %w", in.OperationID, rfc, country.ErrCredentials)
	}
	if in.Transaction.Kind == transaction.Cancellation {
		return ch.cancellation(&in, with)
	}
	p, voucher, err := voucherOf(ch.cat, &in)
	if err != nil {
		return country.Filing{}, err
	}
	if err := seal(voucher, with); err != nil {
		return country.Filing{}, err
	}
	report := document(voucher)
	f := country.Filing{
		OperationID: in.OperationID, Number: p.serie + p.folio, Supplier: rfc, Kind: in.Transaction.Kind, Report: report, Format: "XML",
		SHA256: hashOf(report), DedupeKey: in.UniqueNumber, PreparedAt: in.Now, Late: in.Late,
		Extra: errand{PAC: in.Supplier.Settings.Text(settingPAC)}.encoded(),
	}
	if nominative(&in) {
		f.Effect = &country.Effect{Amount: -in.Totals.Gross, Exact: true}
	}
	return f, nil
}

// voucherOf makes the voucher of a sale, a correction, a payment or a period.
func voucherOf(cat *catalog, in *country.Draft) (*plan, *xmltree.Element, error) {
	if in.Transaction.Kind == transaction.PaymentReport {
		return receipt(cat, in)
	}
	plan := planOf
	if in.Period != nil {
		plan = globalPlan
	}
	p, err := plan(cat, in)
	if err != nil {
		return nil, nil, err
	}
	return p, p.voucher(), nil
}

func (e errand) encoded() []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("encoding an errand: %v", err)) // strings only: cannot happen
	}
	return text
}

func errandFor(f country.Filing) (errand, error) {
	var e errand
	if err := json.Unmarshal(f.Extra, &e); err != nil {
		return e, fmt.Errorf("reading what belongs to filing %s: %w", f.Number, err)
	}
	return e, nil
}

// errAwkward is an answer that says neither yes nor no.
var errAwkward = errors.New("the provider's answer does not say what became of it")

// Send brings one filing to the provider.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	receipts := make([]country.Receipt, 0, len(filings))
	for _, f := range filings {
		e, err := errandFor(f)
		if err != nil {
			return nil, err
		}
		send := ch.stamp
		if f.Kind == transaction.Cancellation {
			send = ch.cancel
		}
		r, err := send(ctx, f, e, c)
		if err != nil {
			return nil, fmt.Errorf("filing %s: %w", f.Number, err)
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

// answer is what a provider said of a stamping, in either protocol.
type answer struct {
	document []byte // the stamped voucher; empty when there is none
	code     string // "" when stamped just now
	message  string
	raw      []byte
}

func (ch *channel) stamp(ctx context.Context, f country.Filing, e errand, c country.Credentials) (country.Receipt, error) {
	var said answer
	var err error
	if e.PAC == pacREST {
		said, err = ch.stampREST(ctx, f, c)
	} else {
		said, err = ch.stampSOAP(ctx, "stamp", f, c)
	}
	if err != nil {
		return country.Receipt{}, err
	}
	if said.code == satwire.CodeStampedBefore && len(said.document) == 0 && e.PAC != pacREST {
		// "Al llamar a stamp dos veces … puede no regresar los datos": then they are asked for.
		if said, err = ch.stampSOAP(ctx, "stamped", f, c); err != nil {
			return country.Receipt{}, fmt.Errorf("%w: %s", errAwkward, err) // it is stamped: never "not taken"
		}
		if said.code != satwire.CodeNotStamped {
			said.code = satwire.CodeStampedBefore
		}
	}
	return ch.judge(ctx, f, said)
}

// judge turns an answer into a receipt.
func (ch *channel) judge(ctx context.Context, f country.Filing, said answer) (country.Receipt, error) {
	again := said.code == satwire.CodeStampedBefore || said.code == satwire.CodeCustomUsed
	switch {
	case said.code == satwire.CodeNoSAT:
		return country.Receipt{Outcome: country.NotTaken, Raw: said.raw}, nil
	case said.code == satwire.CodeNoAccess, said.code == satwire.CodeRevoked:
		return country.Receipt{}, fmt.Errorf("%w: %w: %s: %s", country.ErrNotTaken, country.ErrCredentials, said.code, said.message)
	case said.code == satwire.CodeNotStamped:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", errAwkward, said.code, said.message)
	case said.code != "" && !again:
		return country.Receipt{Outcome: country.Rejected, Raw: said.raw, Faults: refusals(said)}, nil
	case len(said.document) == 0:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", errAwkward, said.code, said.message)
	}
	return ch.adopt(ctx, f, said, again)
}

// refusals are the provider's code and words.
func refusals(said answer) []fault.Fault {
	return []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: said.code + ": " + said.message}}
}

// adopt believes a stamp after checking it. A stamp of another voucher under
// our number or key is told by its hash, which differs from ours.
func (ch *channel) adopt(ctx context.Context, f country.Filing, said answer, again bool) (country.Receipt, error) {
	got, err := readStamped(said.document)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("reading the stamp: %w", err)
	}
	sat, err := ch.certificateOf(ctx, got.number())
	if err != nil {
		return country.Receipt{}, err
	}
	if err := got.believe(sat); err != nil {
		return country.Receipt{}, fmt.Errorf("checking the stamp: %w", err)
	}
	ours, err := readXML(f.Report)
	if err != nil {
		return country.Receipt{}, err
	}
	r := country.Receipt{
		Outcome: country.Accepted, AuthorityID1: got.uuid(), AuthorityID2: got.number(), QRCode: got.address(), At: got.at(ch.cat),
		SHA256: f.SHA256, Document: got.raw, Format: "XML", Raw: said.raw, Duplicate: again,
	}
	if got.voucher.Attr("Sello") != ours.Attr("Sello") {
		if !again {
			return country.Receipt{}, errors.New("checking the stamp: it is of another voucher")
		}
		r.SHA256 = hashOf(got.raw)
	}
	return r, nil
}

// Poll asks SAT what became of a cancellation. A stamp is never pending.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt, c country.Credentials) (country.Receipt, error) {
	e, err := errandFor(f)
	if err != nil {
		return country.Receipt{}, err
	}
	if f.Kind != transaction.Cancellation {
		return country.Receipt{}, fmt.Errorf("polling %s: a stamp is given at once", f.Number)
	}
	state, err := ch.stateOf(ctx, f, e, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	r, decided := state.receipt(f, e, last.Handle)
	if !decided {
		// The request was taken; SAT shows it late.
		r = country.Receipt{Outcome: country.Pending, Handle: last.Handle, Raw: state.raw, SHA256: f.SHA256}
	}
	return r, nil
}

// Find asks whether the provider has a filing. SOAP has a question for it
// (stamped); REST knows no question but the same bytes.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	e, err := errandFor(f)
	if err != nil {
		return country.Receipt{}, err
	}
	r, err := ch.find(ctx, f, e, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	return r, nil
}

func (ch *channel) find(ctx context.Context, f country.Filing, e errand, c country.Credentials) (country.Receipt, error) {
	if f.Kind == transaction.Cancellation {
		state, err := ch.stateOf(ctx, f, e, c)
		if err != nil {
			return country.Receipt{}, err
		}
		if r, decided := state.receipt(f, e, ""); decided {
			return r, nil
		}
		return country.Receipt{Outcome: country.Absent, Raw: state.raw}, nil
	}
	if e.PAC == pacREST {
		return ch.stamp(ctx, f, e, c)
	}
	said, err := ch.stampSOAP(ctx, "stamped", f, c)
	switch {
	case err != nil:
		return country.Receipt{}, err
	case said.code == satwire.CodeNotStamped:
		return country.Receipt{Outcome: country.Absent, Raw: said.raw}, nil
	case said.code != "" && len(said.document) == 0:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", errAwkward, said.code, said.message)
	}
	return ch.adopt(ctx, f, said, true)
}

package mx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/mx/wire"
	"tributary/internal/fault"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// channel is the sender's side: it makes sealed vouchers and signed requests,
// and brings them to a provider.
type channel struct {
	*wire.Client
	cat  *catalog
	keys *identity.Keeper
}

func connect(at country.Endpoint, cat *catalog, keys *identity.Keeper) (*channel, error) {
	client, err := wire.Connect(at)
	return &channel{client, cat, keys}, err
}

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
	if ch.Simulated() {
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
		return country.Filing{}, fmt.Errorf("preparing %s: the certificate is not of %s: %w", in.OperationID, rfc,
			country.ErrCredentials)
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
	f, err := in.Filing(report, p.serie+p.folio, rfc, wire.Errand{PAC: in.Supplier.Settings.Text(settingPAC)})
	f.DedupeKey, f.Late = in.UniqueNumber, in.Late
	if nominative(&in) {
		f.Effect = &country.Effect{Amount: -in.Totals.Gross, Exact: true}
	}
	return f, err
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

// Send brings one filing to the provider.
func (ch *channel) Send(ctx context.Context, filings []country.Filing, c country.Credentials) ([]country.Receipt, error) {
	receipts := make([]country.Receipt, 0, len(filings))
	for _, f := range filings {
		var e wire.Errand
		if err := f.Carried(&e); err != nil {
			return nil, err
		}
		send := ch.stamp
		if f.Kind == transaction.Cancellation {
			send = ch.Cancel
		}
		r, err := send(ctx, f, e, c)
		if err != nil {
			return nil, fmt.Errorf("filing %s: %w", f.Number, err)
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}

func (ch *channel) stamp(ctx context.Context, f country.Filing, e wire.Errand,
	c country.Credentials) (country.Receipt, error) {
	said, err := ch.Stamp(ctx, f, e, c)
	if err != nil {
		return country.Receipt{}, err
	}
	return ch.judge(ctx, f, said)
}

// judge turns an answer into a receipt.
func (ch *channel) judge(ctx context.Context, f country.Filing, said wire.Answer) (country.Receipt, error) {
	again := said.Code == satwire.CodeStampedBefore || said.Code == satwire.CodeCustomUsed
	switch {
	case said.Code == satwire.CodeNoSAT:
		return country.Receipt{Raw: said.Raw}.Untaken("%s: %s", said.Code, said.Message), nil
	case said.Code == satwire.CodeNoAccess, said.Code == satwire.CodeRevoked:
		return country.Receipt{}, fmt.Errorf("%w: %w: %s: %s", country.ErrNotTaken, country.ErrCredentials, said.Code, said.Message)
	case said.Code == satwire.CodeNotStamped:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", wire.ErrAwkward, said.Code, said.Message)
	case said.Code != "" && !again:
		return country.Receipt{Outcome: country.Rejected, Raw: said.Raw, Faults: refusals(said)}, nil
	case len(said.Document) == 0:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", wire.ErrAwkward, said.Code, said.Message)
	}
	return ch.adopt(ctx, f, said, again)
}

// refusals are the provider's code and words.
func refusals(said wire.Answer) []fault.Fault {
	return []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: said.Code + ": " + said.Message}}
}

// adopt believes a stamp after checking it. A stamp of another voucher under
// our number or key is told by its hash, which differs from ours.
func (ch *channel) adopt(ctx context.Context, f country.Filing, said wire.Answer, again bool) (country.Receipt, error) {
	got, err := readStamped(said.Document)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("reading the stamp: %w", err)
	}
	sat, err := ch.Certificate(ctx, got.number())
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
		SHA256: f.SHA256, Document: got.raw, Format: "XML", Raw: said.Raw, Duplicate: again,
	}
	if got.voucher.Attr("Sello") != ours.Attr("Sello") {
		if !again {
			return country.Receipt{}, errors.New("checking the stamp: it is of another voucher")
		}
		r.SHA256 = country.SHA256(got.raw)
	}
	return r, nil
}

// Poll asks SAT what became of a cancellation. A stamp is never pending.
func (ch *channel) Poll(ctx context.Context, f country.Filing, last country.Receipt,
	c country.Credentials) (country.Receipt, error) {
	var e wire.Errand
	if err := f.Carried(&e); err != nil {
		return country.Receipt{}, err
	}
	if f.Kind != transaction.Cancellation {
		return country.Receipt{}, fmt.Errorf("polling %s: a stamp is given at once", f.Number)
	}
	state, err := ch.State(ctx, f, e, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("polling %s: %w", f.Number, err)
	}
	r, decided := state.Receipt(f, e, last.Handle)
	if !decided {
		// The request was taken; SAT shows it late.
		r = country.Receipt{Outcome: country.Pending, Handle: last.Handle, Raw: state.Raw, SHA256: f.SHA256}
	}
	return r, nil
}

// Find asks whether the provider has a filing. SOAP has a question for it
// (stamped); REST knows no question but the same bytes.
func (ch *channel) Find(ctx context.Context, f country.Filing, c country.Credentials) (country.Receipt, error) {
	var e wire.Errand
	if err := f.Carried(&e); err != nil {
		return country.Receipt{}, err
	}
	r, err := ch.find(ctx, f, e, c)
	if err != nil {
		return country.Receipt{}, fmt.Errorf("finding %s: %w", f.Number, err)
	}
	return r, nil
}

func (ch *channel) find(ctx context.Context, f country.Filing, e wire.Errand,
	c country.Credentials) (country.Receipt, error) {
	if f.Kind == transaction.Cancellation {
		state, err := ch.State(ctx, f, e, c)
		if err != nil {
			return country.Receipt{}, err
		}
		if r, decided := state.Receipt(f, e, ""); decided {
			return r, nil
		}
		return country.Receipt{Outcome: country.Absent, Raw: state.Raw}, nil
	}
	if e.PAC == wire.REST {
		return ch.stamp(ctx, f, e, c)
	}
	said, err := ch.Stamped(ctx, f, c)
	switch {
	case err != nil:
		return country.Receipt{}, err
	case said.Code == satwire.CodeNotStamped:
		return country.Receipt{Outcome: country.Absent, Raw: said.Raw}, nil
	case said.Code != "" && len(said.Document) == 0:
		return country.Receipt{}, fmt.Errorf("%w: %s: %s", wire.ErrAwkward, said.Code, said.Message)
	}
	return ch.adopt(ctx, f, said, true)
}

package pl

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/pl/wire"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/official/ksefwire"
)

// channel makes documents and brings them over KSeF's wire.
type channel struct {
	*wire.Client
	by *sale.Rules
}

func connect(at country.Endpoint) (*channel, error) {
	by := reading(facts())
	client, err := wire.Connect(at, by.Zone)
	return &channel{client, by}, err
}

// lookEvery is how often a double is asked what others have sent; KSeF itself says how
// long to wait.
const lookEvery = 2 * time.Second

// look asks for what others have sent to a company.
func look(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking for received invoices: the channel is a %T", in.Channel)
	}
	return ch.Received(ctx, in)
}

// Prepare writes FA(3) and the codes of its printed form.
//
// A filing that is made while KSeF is away gets the second code where a
// certificate can sign it. It is declared as issued offline (offline24, art.
// 106nda) only when KSeF takes it on a later day; without the code it goes as any
// other, and KSeF itself marks it as offline when its day has passed.
func (ch *channel) Prepare(in country.Draft) (country.Filing, error) {
	t := &in.Transaction
	d := compose(&in, ch.by)
	if err := country.Preparable(&in, d.correctable, "KSeF has no document for the operation",
		"an invoice in KSeF cannot be cancelled, only corrected to zero: use a credit"); err != nil {
		return country.Filing{}, err
	}
	report := d.writer().write()
	if len(report) > ksefwire.DocumentBytesMax {
		return country.Filing{}, fault.New(fault.Invalid, "the document is too large for KSeF").With(tooLarge("", len(report)))
	}
	f, err := ch.Filing(&in, report, d.Number(),
		wire.Extra{Issued: d.Day(d.issued), Type: d.form, Moved: d.moved, Rate: d.otherRate, Unsaid: d.unsaid})
	if err != nil {
		return country.Filing{}, err
	}
	switch {
	case completes(t): // those before stand as they are
		f.Effect, f.Effects = &country.Effect{}, make([]country.Effect, len(in.Shares))
	case settles(t) && len(in.Shares) == 0:
		f.Effect = &country.Effect{Amount: deducted(t, in.Totals)}
	}
	return f, nil
}

func tooLarge(about string, size int) fault.Fault {
	return fault.At("items", fault.FieldNotValid, "make a document of %s%d bytes; KSeF takes at most %d", about, size,
		ksefwire.DocumentBytesMax)
}

package ereport

import (
	"math/big"

	"tributary/internal/country"
	"tributary/internal/country/amount"
)

// Flow is where the payment of a sale is told.
type Flow int

// The flows of payments.
const (
	Elsewhere Flow = iota // with the invoice itself, by the platform's status 212; or nowhere
	OfInvoice             // 10.2: the invoice was reported one by one
	OfSales               // 10.4: it was reported with others
)

// Payments is what money received contributes ([transaction.PaymentReport]): of each
// sale that it is for, what falls to services whose VAT is due when they are paid, by
// rate and with tax, in euro. flow says where each is told. Nil: nothing of it is
// reported.
func (r Rules) Payments(in *country.Draft, flow func(country.Original) Flow) (*Contribution, error) {
	if r.Debits || r.Untaxed {
		return nil, nil
	}
	t, c := &in.Transaction, &Contribution{}
	day := dayOf(t.Date, in.Location)
	for i := range in.Shares {
		share := &in.Shares[i]
		to := flow(share.Original)
		if to == Elsewhere {
			continue
		}
		rates, err := r.Received(share)
		if err != nil {
			return nil, err
		}
		if len(rates) == 0 {
			continue
		}
		if to == OfInvoice {
			c.Settled = append(c.Settled, Settled{Number: share.Transaction.Number,
				Issued: dayOf(share.Transaction.Date, in.Location), Day: day, Rates: rates})
			continue
		}
		if err := add(&c.Paid, Group{Day: day, Currency: Euro, Count: 1, Rates: rates}, 0); err != nil {
			return nil, err
		}
	}
	if len(c.Paid)+len(c.Settled) == 0 {
		return nil, nil
	}
	return c, nil
}

// Received is what of a payment is for taxed services, by rate: as much as they are of
// the sale. The parts come to what was paid, goods included.
func (r Rules) Received(share *country.Share) (list []Rate, err error) {
	t := &share.Transaction
	whole, before, given := int64(0), int64(0), int64(0)
	for _, l := range share.Totals.Lines {
		whole += l.Gross
	}
	if whole <= 0 || len(share.Totals.Lines) != len(t.Items) {
		return nil, nil
	}
	for i := range t.Items {
		category, percent, _ := r.treatment(&t.Items[i])
		before += share.Totals.Lines[i].Gross
		upTo := part(share.Amount, before, whole)
		paid := upTo - given
		given = upTo
		if category != Services {
			continue
		}
		if paid, err = euro(t, paid); err != nil {
			return nil, err
		}
		g := Group{Rates: list}
		if err := g.take(Group{Rates: []Rate{{Percent: percent, Base: paid}}}); err != nil {
			return nil, err
		}
		list = g.Rates
	}
	for i := range list {
		list[i].Base = max(0, list[i].Base) // a report has no payment below nothing
	}
	return list, nil
}

// part is amount × of ÷ whole, rounded.
func part(minor, of, whole int64) int64 {
	return amount.Divided(new(big.Int).Mul(big.NewInt(minor), big.NewInt(of)), big.NewInt(whole)).Int64()
}

package received

import (
	"math/big"

	"github.com/invopop/gobl/num"

	"tributary/internal/incoming"
)

// Most documents state tax by rate alone, and paper sums it from the lines. So the tax of each rate is spread over its
// lines, in proportion to them, and the sums on paper are those that the document states.

// rate is what lines are taxed alike by.
type rate struct{ regime, kind, code, percent string }

func rateOf(t incoming.Tax) rate {
	return rate{t.Regime, t.Type, t.Code, t.Rate.Rescale(4).String()}
}

// spread is what is left of a rate's tax, and of the lines that it is on.
type spread struct {
	tax, base int64
	lines     int
}

type spreads map[rate]*spread

func shares(doc *incoming.Document) spreads {
	all := spreads{}
	for _, t := range doc.Taxes {
		s := all[rateOf(t)]
		if s == nil {
			s = &spread{}
			all[rateOf(t)] = s
		}
		s.tax += t.Amount
	}
	count := func(taxes []incoming.Tax, net int64) {
		for _, t := range taxes {
			if s := all[rateOf(t)]; s != nil && t.Amount == 0 {
				s.base, s.lines = s.base+net, s.lines+1
			}
		}
	}
	for i := range doc.Lines {
		l := doc.Lines[i].Signed()
		count(l.Taxes, l.Net)
	}
	for _, e := range doc.Allowances {
		count(e.Taxes, -e.Amount)
	}
	for _, e := range doc.Charges {
		count(e.Taxes, e.Amount)
	}
	return all
}

// take is the tax of one line: its own where the document states it, else its share.
func (all spreads) take(t incoming.Tax, net int64) int64 {
	s := all[rateOf(t)]
	if t.Amount != 0 || s == nil {
		return t.Amount
	}
	amount := s.tax
	if s.lines > 1 && s.base != 0 {
		product := new(big.Int).Mul(big.NewInt(s.tax), big.NewInt(net))
		amount = product.Quo(product, big.NewInt(s.base)).Int64()
	}
	s.tax, s.base, s.lines = s.tax-amount, s.base-net, s.lines-1
	return amount
}

func one() num.Amount { return num.MakeAmount(1, 0) }

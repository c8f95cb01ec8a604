package ereport

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"tributary/internal/country"
)

// errTooLarge says that a sum has more digits than a report may have.
var errTooLarge = errors.New("a sum of the report is too large")

// amountMax is what the rules' 19 digits allow, less what a sum still needs to be added to.
const amountMax = int64(1) << 62

func plus(a, b int64) (int64, error) {
	if b > 0 && a > amountMax-b || b < 0 && a < -amountMax-b {
		return 0, errTooLarge
	}
	return a + b, nil
}

// key is what makes one group.
func (g *Group) key() [4]string { return [4]string{g.Day, g.Currency, g.Category, g.Due} }

// add adds a group to a list, with so many transactions more where it is there.
func add(list *[]Group, g Group, count int64) error {
	i := slices.IndexFunc(*list, func(o Group) bool { return o.key() == g.key() })
	if i < 0 {
		*list = append(*list, g)
		return nil
	}
	into := &(*list)[i]
	into.Count += count
	return into.take(g)
}

// take adds what another group has.
func (g *Group) take(o Group) (err error) {
	if g.Net, err = plus(g.Net, o.Net); err != nil {
		return err
	}
	for _, r := range o.Rates {
		i := slices.IndexFunc(g.Rates, func(x Rate) bool { return x.Percent == r.Percent })
		if i < 0 {
			g.Rates = append(g.Rates, r)
			continue
		}
		into := &g.Rates[i]
		if into.Base, err = plus(into.Base, r.Base); err == nil {
			into.Tax, err = plus(into.Tax, r.Tax)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// summing adds contributions up.
type summing struct {
	groups, paid map[[4]string]*Group
	rest         Contribution
}

// Sum adds up what sales contribute: what is aggregated takes as much memory as there
// are days, currencies and categories, however many sales there are. Where every sale
// has left, what was reported of them is nothing.
func Sum(sales iter.Seq2[country.PeriodSale, error]) ([]byte, error) {
	s := summing{groups: map[[4]string]*Group{}, paid: map[[4]string]*Group{}}
	for sale, err := range sales {
		if err != nil {
			return nil, err
		}
		var c Contribution
		if err := json.Unmarshal(sale.Data, &c); err != nil {
			return nil, fmt.Errorf("reading what %s contributes: %w", sale.TransactionID, err)
		}
		if sale.Left {
			c = c.nothing()
		}
		if err := s.take(c); err != nil {
			return nil, fmt.Errorf("adding up what %s contributes: %w", sale.TransactionID, err)
		}
	}
	out := s.rest
	out.Groups, out.Paid = inOrder(s.groups), inOrder(s.paid)
	return out.Encode()
}

func (s *summing) take(c Contribution) error {
	s.rest.Invoices = append(s.rest.Invoices, c.Invoices...)
	s.rest.Settled = append(s.rest.Settled, c.Settled...)
	for _, part := range []struct {
		into map[[4]string]*Group
		of   []Group
	}{{s.groups, c.Groups}, {s.paid, c.Paid}} {
		for _, g := range part.of {
			into := part.into[g.key()]
			if into == nil {
				part.into[g.key()] = &g
				continue
			}
			into.Count += g.Count
			if err := into.take(g); err != nil {
				return err
			}
		}
	}
	return nil
}

func inOrder(groups map[[4]string]*Group) (list []Group) {
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b [4]string) int { return slices.Compare(a[:], b[:]) }) {
		g := *groups[key]
		slices.SortFunc(g.Rates, func(a, b Rate) int {
			return cmp.Or(cmp.Compare(len(whole(a.Percent)), len(whole(b.Percent))), cmp.Compare(a.Percent, b.Percent))
		})
		list = append(list, g)
	}
	return list
}

// whole are the digits in front of the point.
func whole(percent string) string {
	for i := range percent {
		if percent[i] == '.' {
			return percent[:i]
		}
	}
	return percent
}

// nothing is a contribution that was taken back: the same groups without amounts. An
// invoice that is gone, or the payment of one, leaves a day's zero among the groups:
// a report is never empty.
func (c Contribution) nothing() (out Contribution) {
	zero := func(day, category string) Group {
		return Group{Day: day, Currency: Euro, Category: category, Rates: []Rate{{Percent: "0"}}}
	}
	for _, g := range c.Groups {
		g.Count, g.Net, g.Rates = 0, 0, slices.Clone(g.Rates)
		for i := range g.Rates {
			g.Rates[i].Base, g.Rates[i].Tax = 0, 0
		}
		out.Groups = append(out.Groups, g)
	}
	for _, v := range c.Invoices {
		out.Groups = append(out.Groups, zero(v.Issued, Untaxed))
	}
	for _, g := range c.Paid {
		out.Paid = append(out.Paid, zero(g.Day, ""))
	}
	for _, p := range c.Settled {
		out.Paid = append(out.Paid, zero(p.Day, ""))
	}
	return out
}

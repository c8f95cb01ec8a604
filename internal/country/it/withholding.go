package it

import (
	"strings"

	"tributary/internal/transaction"
)

// withhold adds to what the buyer keeps back. A code is CausalePagamento, or
// TipoRitenuta and CausalePagamento with a colon between them.
func (d *invoice) withhold(tax *transaction.Tax, amount int64) {
	kind, reason, both := strings.Cut(strings.ToUpper(tax.Code), ":")
	if !both {
		kind, reason = "", kind
	}
	if kind == "" {
		kind = "RT02"
		if d.Draft.Supplier.Type == transaction.Individual {
			kind = "RT01"
		}
	}
	if reason == "" {
		reason = "A"
	}
	for i := range d.held {
		if w := &d.held[i]; w.kind == kind && w.reason == reason && w.rate.Compare(tax.Rate) == 0 {
			w.amount += amount
			return
		}
	}
	d.held = append(d.held, withholding{kind: kind, reason: reason, rate: tax.Rate, amount: amount})
}

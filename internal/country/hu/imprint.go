package hu

import (
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
)

// imprint is what the act wants on paper (§ 169 and 170): why there is no tax,
// who owes it, who issued the invoice, what it corrects, and the tax in forints.
// NAV gives neither a number nor a code to print.
func imprint(in country.Issue) country.Imprint {
	var out country.Imprint
	if in.Transaction == nil || in.Supplier == nil || len(in.Totals.Lines) != len(in.Transaction.Items) {
		return out
	}
	out.Negated = in.Transaction.Kind == transaction.Credit // see compose
	if in.Language == "" || in.Language == "HU" {
		switch in.Transaction.Kind {
		case transaction.Credit:
			out.Title = "Érvénytelenítő számla"
		case transaction.Adjustment:
			out.Title = "Módosító számla"
		}
	}
	draft := country.Draft{Transaction: *in.Transaction, Totals: in.Totals, Supplier: *in.Supplier, Location: in.Location, Now: in.At, Original: in.Original}
	out.Language, out.Texts = "HU", compose(&draft, facts()).texts(in)
	return out
}

func (d *document) texts(in country.Issue) []string {
	var texts []string
	for _, g := range d.groups {
		switch {
		case g.rate.reverse:
			texts = append(texts, "Fordított adózás (Áfa tv. 142. §)")
		case g.rate.code == navwire.EUFAD37 || g.rate.code == navwire.EUFADE:
			texts = append(texts, "Fordított adózás: "+reasonOf(g.rate.code))
		case g.rate.code != "":
			texts = append(texts, reasonOf(g.rate.code))
		}
	}
	if d.selfBilled() {
		texts = append(texts, "Önszámlázás")
	}
	if d.cashAccounting() {
		texts = append(texts, "Pénzforgalmi elszámolás")
	}
	if o := in.Original; o != nil && d.correction() {
		issued := o.Transaction.Date.In(d.zone).Format("2006-01-02")
		texts = append(texts, fmt.Sprintf("Az eredeti számla száma: %s, kelte: %s", documentNumber(&o.Transaction, o.UniqueNumber), issued))
	}
	if d.foreign() && d.t.ExchangeRate != nil && d.vat.huf != 0 {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("Áfa összege: %s HUF, árfolyam: %s %s", decimal(d.vat.huf, hufDecimals), d.t.ExchangeRate.MinimalString(), d.t.ExchangeRateDate)))
	}
	return texts
}

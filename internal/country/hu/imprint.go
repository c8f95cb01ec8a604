package hu

import (
	"fmt"

	"tributary/internal/country"
	"tributary/internal/official/navwire"
	"tributary/internal/transaction"
)

// imprint is what the act wants on paper (§ 169 and 170): why there is no tax,
// who owes it, who issued the invoice, what it corrects, and the tax in forints.
// NAV gives neither a number nor a code to print.
func imprint(in country.Issue) country.Imprint {
	var out country.Imprint
	if !in.Drafted() {
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
	out.Advice = country.Advice{Account: in.Supplier.Settings.Text(settingBankAccount), Reference: in.Transaction.Number}
	d := compose(in.Draft(), reading(facts()))
	out.Language, out.Texts, out.Words = "HU", d.texts(), map[string]string{}
	for i := range d.Items {
		for _, tax := range d.Items[i].Taxes {
			if g, known := groundOf(tax.Code); known {
				out.Words[tax.Code] = reasonOf(g.code)
			}
		}
	}
	if d.Foreign() && d.ExchangeRate != nil {
		out.LocalTax = &d.vat.huf // the sum of what the lines report, § 172
	}
	return out
}

func (d *document) texts() []string {
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
	if d.SelfBilled() {
		texts = append(texts, "Önszámlázás")
	}
	if d.Set(settingCash) {
		texts = append(texts, "Pénzforgalmi elszámolás")
	}
	if d.Correction() {
		for _, o := range d.Originals {
			texts = append(texts, fmt.Sprintf("Az eredeti számla száma: %s, kelte: %s", o.Number, d.Day(o.Transaction.Date)))
		}
	}
	return texts
}

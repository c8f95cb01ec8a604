package country

import (
	"fmt"
	"slices"

	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Shipping, packing and insurance that the seller charges for his goods are part
// of what is paid for them and share their treatment (Directive 2006/112/EC,
// article 78(b); PL art. 29a(6)(2), ES Ley 37/1992 art. 78.Dos.1, IT DPR 633/72
// art. 12, HU Áfa tv. § 70(1)b).

// plainGoods reports whether a line is goods by itself.
func plainGoods(item *transaction.Item) bool {
	return item.Type != transaction.Services && item.Type != transaction.Discount && !item.Ancillary
}

// TreatmentOfGoods is the tax entry of all goods of typed items that bear no tax;
// false where there are none, or where they differ.
func TreatmentOfGoods(items []transaction.Item) (of transaction.Tax, one bool) {
	for i := range items {
		j := items[i].OnlyTax()
		if !plainGoods(&items[i]) || j < 0 || !items[i].Taxes[j].Rate.IsZero() || items[i].Taxes[j].Quota != nil {
			continue
		}
		tax := items[i].Taxes[j]
		if one && (tax.Type != of.Type || tax.Code != of.Code) {
			return transaction.Tax{}, false
		}
		of, one = tax, true
	}
	return of, one
}

// FollowGoods gives ancillary lines without tax that say nothing the treatment of
// the goods, whose types are known by now.
func FollowGoods(items []transaction.Item) {
	goods, one := TreatmentOfGoods(items)
	for i := range items {
		j := items[i].OnlyTax()
		if !one || !items[i].Ancillary || j < 0 {
			continue
		}
		if tax := &items[i].Taxes[j]; tax.Type == "" && tax.Code == "" && tax.Rate.IsZero() && tax.Quota == nil {
			tax.Type, tax.Code = goods.Type, goods.Code
		}
	}
}

// ancillary finds lines that say they go with goods and do not.
func (p Pack) ancillary() Check {
	return Check{
		Reads: []string{"items", "items.*.type", "items.*.ancillary", "items.*.tax_breakdowns", "customer", "transaction_date"},
		Find: func(c Case) (found []fault.Fault) {
			var typed []transaction.Item
			for i := range c.Transaction.Items {
				if !c.Transaction.Items[i].Ancillary {
					continue
				}
				if typed == nil {
					typed = p.TypedItems(c)
				}
				if why := unlikeGoods(typed, i, c.Transaction.Kind); why != "" {
					found = append(found, fault.At(fmt.Sprintf("items.%d.ancillary", i), fault.ValidationMatchInvalid, "%s", why))
				}
			}
			return found
		},
	}
}

// unlikeGoods says why an ancillary line does not share the treatment of any
// goods. An adjustment may be of the shipping alone.
func unlikeGoods(items []transaction.Item, i int, kind transaction.Kind) string {
	own := items[i].OnlyTax()
	if items[i].Type == transaction.Discount {
		return "does not fit a discount, which is what the other lines are"
	}
	goods := false
	for k := range items {
		if !plainGoods(&items[k]) {
			continue
		}
		j := items[k].OnlyTax()
		if own < 0 || j < 0 {
			return "" // how such lines are taxed is the country's to judge
		}
		goods = true
		if a, b := items[i].Taxes[own], items[k].Taxes[j]; a.Rate.Equals(b.Rate) && a.Type == b.Type {
			return ""
		}
	}
	switch {
	case goods:
		return "does not fit: the line must have the rate and type of goods of this document, whose treatment it shares (Directive 2006/112/EC, article 78)"
	case kind == transaction.Adjustment:
		return ""
	}
	return "needs goods in this document: shipping, packing and insurance share their treatment"
}

// elsewhere refuses goods that go to another place than the customer's, as far as
// tax is concerned: where they go decides how they are taxed (Directive
// 2006/112/EC, articles 31 to 33, 138 and 146), and packs read it from the
// customer's address.
func (p Pack) elsewhere() Check {
	return Check{
		Reads: []string{"items.*.type", "delivery", "customer", "transaction_date"},
		Find: func(c Case) (found []fault.Fault) {
			t := c.Transaction
			if t.Delivery == nil || t.Delivery.Address == nil || !territory.InUnion(p.Code, t.Date) ||
				!slices.ContainsFunc(t.Items, func(i transaction.Item) bool {
					return plainGoods(&i)
				}) {
				return nil
			}
			sold := territory.Of(p.Code, t.Customer, t.Date, false)
			if sent := territory.Of(p.Code, &transaction.Party{Address: t.Delivery.Address}, t.Date, false); sent != sold {
				found = append(found, fault.At("delivery.address", fault.UnsupportedField,
					"must be in the customer's country and VAT territory: goods are taxed by where they go, which is read from the customer's address"))
			}
			return found
		},
	}
}

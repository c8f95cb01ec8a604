package transaction

import (
	"strconv"

	"tributary/internal/fault"
)

// CheckStated compares the amounts that the client worked out with ours, to
// the unit: a shop that rounds in another way finds out before anything is
// filed, not when the buyer asks why the invoice is a cent off.
func CheckStated(t *Transaction, totals Totals) []fault.Fault {
	var found []fault.Fault
	compare := func(field string, stated *int64, ours int64, what string) {
		if stated != nil && *stated != ours {
			found = append(found, fault.At(field, fault.ValidationMatchInvalid, "is %d, but %s %d", *stated, what, ours))
		}
	}
	compare("total_amount", t.Stated.Gross, totals.Gross, "the items come to")
	compare("total_net_amount", t.Stated.Net, totals.Net, "the items come to a net amount of")
	compare("total_tax_amount", t.Stated.Tax, totals.Tax, "the taxes of the items come to")
	for i := range t.Items {
		item, line := &t.Items[i], &totals.Lines[i]
		if item.StatedNet != nil && *item.StatedNet != line.Net {
			compare("items."+strconv.Itoa(i)+".net_price", item.StatedNet, line.Net, "the line comes to a net amount of")
		}
		for j := range item.Taxes {
			if tax := &item.Taxes[j]; tax.Stated != nil && *tax.Stated != line.Taxes[j] {
				compare(Place{Entry: i, Tax: j}.Path("items.*.tax_breakdowns.*.amount"), tax.Stated, line.Taxes[j], "the tax comes to")
			}
		}
	}
	return found
}

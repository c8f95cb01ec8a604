package hu_test

import (
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/hu"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// Every word for a unit is one that NAV's schema has, and NAV takes a sale in it.
func TestEveryUnitIsOneOfNAV(t *testing.T) {
	known := hu.UnitNames()
	var items []transaction.Item
	var said []string
	for name := range known {
		i := item("Áru "+name, one(), 100000, vat("27", transaction.Added))
		i.Unit = name
		items, said = append(items, i), append(said, name)
	}
	o := open(t)
	f := o.prepare(draft("UNITS-1", homeBuyer(), items...))
	doc, err := xmltree.Read(f.Report)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range doc.Root.At("invoiceMain", "invoice", "invoiceLines").All("line") {
		if got := line.Value("unitOfMeasure"); got != known[said[i]] || line.At("unitOfMeasureOwn") != nil {
			t.Errorf("%q is reported as %s", said[i], got)
		}
	}
	if r := o.settle(f); r.Outcome != country.Accepted || len(r.Faults) > 0 {
		t.Errorf("%s %+v", r.Outcome, r.Faults)
	}
	schema(t, [][]byte{f.Report})
}

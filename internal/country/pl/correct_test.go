package pl_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country"
	"tributary/internal/country/pl"
	"tributary/internal/transaction"
)

// The filing of an original is read once, not for every line: what a correction
// costs grows with its lines and not with their square.
func TestALongCorrectionReadsItsOriginalOnce(t *testing.T) {
	ch, err := pl.Pack().Connect(country.Endpoint{BaseURL: "https://ksef.example", HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(d country.Draft) country.Filing {
		f, err := ch.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	cost := func(lines int) float64 {
		items := make([]transaction.Item, lines)
		for i := range items {
			items[i] = item(fmt.Sprint("Towar ", i+1), num.MakeAmount(2, 0), int64(100+i), vat("23", transaction.Included))
		}
		original := draft("L-1", polishBuyer(), items...)
		credit := correct(transaction.Credit, draft("L-2", nil, items...), original)
		credit.Original.Report = prepare(original).Report
		return testing.AllocsPerRun(2, func() { prepare(credit) })
	}
	if short, long := cost(50), cost(400); long > 12*short {
		t.Errorf("50 lines take %.0f allocations, 400 lines %.0f: more than their share", short, long)
	}
}

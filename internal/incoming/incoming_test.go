package incoming_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/incoming"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

func TestNumbersAreReadAsFarAsTheyFit(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"1.50": "1.50", "+.5": "0.5", "-1.": "-1", "007": "7", "999999999999999999": "999999999999999999",
		"0.123456789012345678": "0.123456789012345678", "1." + strings.Repeat("0", 40): "1", "000000000000000000000000001": "1",
		"1000000000000000000": "", "0.1234567890123456789": "", "": "", "-": "", ".": "", "1e3": "", "1,5": "", " 1": "", "+-1": "", "0x1": "", "NaN": "",
	} {
		n, err := incoming.Decimal(written)
		if got := n.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q is %s, %v", written, got, err)
		}
	}
}

func TestAmountsAreBoundedAndTellWhetherTheyAreWhole(t *testing.T) {
	t.Parallel()
	const most = transaction.AmountMax
	for _, c := range []struct {
		value    int64
		exp      uint32
		decimals int
		minor    int64
		exact    bool
		fits     bool
	}{
		{150, 2, 2, 150, true, true}, {15, 1, 2, 150, true, true}, {1505, 3, 2, 151, false, true}, {-1505, 3, 2, -151, false, true},
		{150, 2, 0, 2, false, true}, {most, 2, 2, most, true, true}, {-most, 2, 2, -most, true, true}, {most + 1, 2, 2, 0, false, false},
		{-most - 1, 2, 2, 0, false, false}, {most/100 + 1, 0, 2, 0, false, false},
	} {
		minor, exact, err := incoming.Minor(num.MakeAmount(c.value, c.exp), c.decimals)
		if (err == nil) != c.fits || c.fits && (minor != c.minor || exact != c.exact) {
			t.Errorf("%+v: %d %v %v", c, minor, exact, err)
		}
	}
}

func TestAPriceIsForOne(t *testing.T) {
	t.Parallel()
	hundred, none := num.MakeAmount(100, 0), num.MakeAmount(0, 0)
	for _, c := range []struct {
		price num.Amount
		of    *num.Amount
		minor int64
		exact bool
	}{
		{num.MakeAmount(500, 2), nil, 500, true}, {num.MakeAmount(500, 2), &hundred, 5, true}, {num.MakeAmount(123, 4), nil, 1, false},
		{num.MakeAmount(550, 2), &hundred, 6, false}, {num.MakeAmount(500, 2), &none, 500, true},
		{num.MakeAmount(999_999_999_999_999_999, 0), nil, 0, false}, {num.MakeAmount(-500, 2), &hundred, -5, true},
	} {
		l := incoming.Line{UnitPrice: c.price, PriceOf: c.of}
		if minor, exact := l.Price("EUR"); minor != c.minor || exact != c.exact {
			t.Errorf("%s of %v is %d, %v", c.price, c.of, minor, exact)
		}
	}
}

func TestWhatIsNotReadIsListedOnce(t *testing.T) {
	t.Parallel()
	var list incoming.Unread
	add := func(from, to int) {
		for i := from; i < to; i++ {
			list.Add(func() string { return fmt.Sprint("a", i) })
		}
	}
	add(0, incoming.NotReadMax-1)
	add(0, 3)
	if got := list.List(); len(got) != incoming.NotReadMax || got[99] != "and 3 more" {
		t.Errorf("%d: %q", len(got), got[len(got)-1])
	}
	list = incoming.Unread{}
	add(0, 2)
	add(0, 2)
	if got := list.List(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestWhatIsTooDeepOrTooManyIsRefused(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	attributed := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ` a%d=""`, i)
		}
		return "<a" + b.String() + "/>"
	}
	for name, c := range map[string]struct{ at, past string }{
		"depth":        {nested(32), nested(33)},
		"attributes":   {attributed(xmltree.AttributesMax), attributed(xmltree.AttributesMax + 1)},
		"elements":     {"<a>" + strings.Repeat("<b/>", xmltree.ElementsMax-1) + "</a>", "<a>" + strings.Repeat("<b/>", xmltree.ElementsMax) + "</a>"},
		"instructions": {"<a>" + strings.Repeat("<?b?>", xmltree.AttributesMax) + "</a>", "<a>" + strings.Repeat("<?b?>", xmltree.AttributesMax+1) + "</a>"},
	} {
		if _, err := incoming.Parse([]byte(c.at)); err != nil {
			t.Errorf("%s, as many as may be: %v", name, err)
		}
		if _, err := incoming.Parse([]byte(c.past)); !errors.Is(err, xmltree.ErrLimit) || !errors.Is(err, incoming.ErrInvalid) {
			t.Errorf("%s, one more: %v", name, err)
		}
	}
}

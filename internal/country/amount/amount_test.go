package amount_test

import (
	"math/big"
	"testing"

	"github.com/invopop/gobl/num"

	"tributary/internal/country/amount"
	"tributary/internal/transaction"
)

func TestTextHasEveryDigitBehindThePoint(t *testing.T) {
	for want, of := range map[string][2]int64{
		"0.00": {0, 2}, "-0.05": {-5, 2}, "1234.50": {123450, 2}, "-12": {-12, 0}, "0.007": {7, 3},
		"-9007199254740.991": {-transaction.AmountMax, 3},
	} {
		if got := amount.Text(of[0], int(of[1])); got != want {
			t.Errorf("%d with %d decimals is %s, not %s", of[0], of[1], got, want)
		}
	}
}

func TestHalvesAreRoundedAwayFromZero(t *testing.T) {
	for _, c := range [][3]int64{{5, 2, 3}, {-5, 2, -3}, {4, 3, 1}, {-4, 3, -1}, {5, -2, -3}, {-5, -2, 3}, {0, 7, 0}} {
		if got := amount.Divided(big.NewInt(c[0]), big.NewInt(c[1])).Int64(); got != c[2] {
			t.Errorf("%d ÷ %d is %d, not %d", c[0], c[1], got, c[2])
		}
	}
	rate := num.MakeAmount(42345, 4)
	if got, ok := amount.Scaled(-1000, 0, rate); got != -4235 || !ok {
		t.Errorf("-1000 × 4.2345 is %d, %t", got, ok)
	}
	if _, ok := amount.Scaled(transaction.AmountMax, 0, num.MakeAmount(1, 0)); !ok {
		t.Error("the largest amount is none")
	}
	if _, ok := amount.Scaled(transaction.AmountMax, 0, num.MakeAmount(11, 1)); ok {
		t.Error("an amount larger than any is one")
	}
	if got := amount.Percent(1005, num.MakeAmount(10, 0)); got != 101 {
		t.Errorf("10 %% of 1005 is %d", got)
	}
}

func TestPriceOfOneHasThePlacesItNeeds(t *testing.T) {
	third := amount.New(10000, 2).Over(num.MakeAmount(3, 0), 8)
	for want, got := range map[string]string{
		"33.33333333": third.Trimmed(2), "-33.33": third.Neg().Rounded(2).String(),
		"2.00":     amount.Of(num.MakeAmount(2, 0)).Trimmed(2),
		"2.5":      amount.Of(num.MakeAmount(2500, 3)).Trimmed(0),
		"100":      amount.New(10000, 2).Over(num.MakeAmount(0, 0), 6).Trimmed(0),
		"0.000001": amount.Units(big.NewInt(1), 6).String(),
	} {
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if third.Rat().Cmp(big.NewRat(3333333333, 100000000)) != 0 || third.Sign() != 1 {
		t.Errorf("%s as a fraction", third.Rat())
	}
}

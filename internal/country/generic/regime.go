package generic

import (
	"slices"
	"strings"

	"github.com/invopop/gobl/num"
	"github.com/invopop/gobl/tax"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// regimeFacts reads what the tax library knows of a country.
func regimeFacts(regime *tax.RegimeDef) (regimes []string, rates []country.Rate, sources []string) {
	regimes = []string{transaction.VAT, transaction.Withholding}
	for _, s := range regime.Sources {
		sources = addSource(sources, s.URL)
	}
	for _, category := range regime.Categories {
		if category.Retained || category.Informative {
			continue // withheld taxes are RET, and what is only shown has no rate to check
		}
		code := category.Code.String()
		if !slices.Contains(regimes, code) && len(code) <= 10 {
			regimes = append(regimes, code)
		}
		for _, s := range category.Sources {
			sources = addSource(sources, s.URL)
		}
		for _, rate := range category.Rates {
			rates = appendRates(rates, code, rate)
		}
	}
	return regimes, rates, sources
}

func addSource(sources []string, url string) []string {
	if strings.HasPrefix(url, "http") && !slices.Contains(sources, url) {
		sources = append(sources, url)
	}
	return sources
}

// appendRates turns the values of one rate into rows with an end. Values of a
// region (Madeira, the Azores) have their own sequence; plain ones come first,
// so that messages name the rate of the mainland.
func appendRates(rates []country.Rate, regime string, rate *tax.RateDef) []country.Rate {
	kind := rateType(rate.Rate.String())
	values := slices.Clone(rate.Values)
	slices.SortStableFunc(values, func(a, b *tax.RateValueDef) int { return a.Ext.Len() - b.Ext.Len() })
	for i, v := range values {
		row := country.Rate{Regime: regime, Type: kind, Percent: shortest(v.Percent), Since: since(v)}
		for _, newer := range values[:i] {
			if newer.Ext.Equals(v.Ext) {
				row.Until = since(newer) // listed newest first
			}
		}
		if v.Disabled || slices.Contains(rates, row) {
			continue
		}
		rates = append(rates, row)
	}
	return rates
}

func since(v *tax.RateValueDef) string {
	if v.Since == nil {
		return ""
	}
	return v.Since.String()
}

func shortest(p num.Percentage) string {
	amount, err := num.AmountFromString(strings.TrimSuffix(p.String(), "%"))
	if err != nil {
		return p.String() // refused by country.NewAtlas at the start
	}
	return amount.MinimalString()
}

// rateType maps the library's rate keys, whose first part says enough
// ("general+eqs", "super-reduced+island").
func rateType(key string) string {
	first, _, _ := strings.Cut(key, "+")
	switch first {
	case "zero":
		return transaction.TaxZero
	case "general", "increased":
		return transaction.TaxStandard
	}
	return transaction.TaxReduced
}

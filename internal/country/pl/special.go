package pl

import (
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/sale"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// regimeOSS is VAT of another member state that is declared in Poland's one stop
// shop (VAT act, title XII, chapter 6a).
const regimeOSS = "OSS"

// writeMargin says which margin scheme the invoice is of, or that it is of none.
func (w writer) writeMargin() {
	if w.d.margin.field == "" {
		w.Group("PMarzy", "P_PMarzyN", "1")
	} else {
		w.Group("PMarzy", "P_PMarzy", "1", w.d.margin.field, "1")
	}
}

// margins finds a document of two margin schemes: FA(3) names one.
func margins(items []transaction.Item) []fault.Fault {
	first := ""
	for i := range items {
		j := items[i].OnlyTax()
		if j < 0 {
			continue
		}
		code := strings.ToUpper(items[i].Taxes[j].Code)
		if g, _ := groundOf(code); !g.onMargin() {
			continue
		}
		if first != "" && code != first {
			return []fault.Fault{fault.At(sale.TaxPath(i, j, "code"), fault.ValidationMatchInvalid,
				"is another margin scheme than that of the lines before (%s): an invoice names one (P_PMarzy)", first)}
		}
		first = code
	}
	return nil
}

// oneStopShop finds entries of the one stop shop that are none: it is for
// consumers in other member states, at the rate that is due there.
func oneStopShop(t *transaction.Transaction) []fault.Fault {
	var found []fault.Fault
	for i := range t.Items {
		j := t.Items[i].OnlyTax()
		if j < 0 || t.Items[i].Taxes[j].Regime != regimeOSS {
			continue
		}
		at := fmt.Sprintf("items.%d.tax_breakdowns.%d", i, j)
		if t.Items[i].Taxes[j].Rate.IsZero() {
			found = append(found, fault.At(at+".rate", fault.FieldNotValid,
				"must be more than 0 with the regime OSS: it is the rate of the customer's country"))
		}
		z := zeroCase{buyer: identify(t.Customer), customer: t.Customer, day: t.Date}
		if t.Customer != nil && (z.standing() != unionConsumer || t.Customer.Type != transaction.Individual) {
			found = append(found, fault.At(at+".regime", fault.ValidationMatchInvalid,
				"does not fit: the one stop shop is for consumers in another member state; a business there is INTRA_EU (goods) or REVERSE (services)"))
		}
	}
	return found
}

// Limits of a simplified invoice (VAT act, art. 106e sec. 5 point 3), in minor units.
const (
	simplifiedMax     = 450_00
	simplifiedMaxEuro = 100_00
)

// simplified finds what a simplified invoice (UPR) cannot be: it names its buyer
// by NIP, and is small.
func simplified(in country.Case) []fault.Fault {
	t := in.Transaction
	at := -1
	for i := range t.Items {
		if marked(&t.Items[i], codeSimplified) {
			at = i
			break
		}
	}
	if at < 0 || t.Kind != transaction.Invoice {
		return nil
	}
	refuse := func(why string) []fault.Fault {
		return []fault.Fault{fault.At(fmt.Sprintf("items.%d.classification", at), fault.ValidationMatchInvalid,
			"says UPR: %s", why)}
	}
	if t.Customer != nil && identify(t.Customer).nip == "" {
		return refuse("a simplified invoice names its buyer by NIP (art. 106e sec. 5 point 3 of the VAT act)")
	}
	limit := int64(simplifiedMax)
	switch code := strings.ToUpper(t.CurrencyCode); code {
	case ownMoney:
	case "EUR":
		limit = simplifiedMaxEuro
	default:
		return refuse("a simplified invoice is in PLN or EUR")
	}
	if in.Totals.Gross > limit {
		return refuse(fmt.Sprintf("a simplified invoice is of at most 450.00 PLN or 100.00 EUR, this one of %s",
			amount.Text(in.Totals.Gross, 2)))
	}
	return nil
}

// rateDay warns of an exchange rate of another day than the law's: the last
// working day before the supply, or before the invoice where that comes first
// (VAT act, art. 31a sec. 1 and 2).
func rateDay(t *transaction.Transaction, zone *time.Location) []fault.Fault {
	if t.Kind != transaction.Invoice || t.ExchangeRateDate == "" || strings.EqualFold(t.CurrencyCode, ownMoney) {
		return nil
	}
	day := t.Date.In(zone)
	if supplied, err := time.ParseInLocation(time.DateOnly, t.DeliveryDate, zone); err == nil && supplied.Before(day) {
		day = supplied
	}
	if want := holidays.Before(day).Format(time.DateOnly); t.ExchangeRateDate != want {
		return []fault.Fault{fault.Warn("exchange_rate_date", fault.RateUnusual,
			"is not %s, the last working day before the supply or the invoice (art. 31a of the VAT act)", want)}
	}
	return nil
}

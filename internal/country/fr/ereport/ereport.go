// Package ereport is France's e-reporting, Flux 10 of the DGFiP: what the sales and
// payments of a period come to, and the report of it.
//
// A pack gathers with it in three steps: [Rules.Sale], [Rules.Invoice] and
// [Rules.Payments] say what a transaction contributes ([country.Gathered].Data); [Sum]
// is its [country.Periods].Sum, which adds contributions up one after another; [Write]
// makes the report of [country.Period].Sum. [Regime] says in which period, and until
// when. Periods of transactions and of payments are reports of their own: the
// official rules take one of the two in a document.
//
// It is pure, and owns neither the platform to which a report goes nor the question
// which flow a transaction takes. Law: sums are those of the transactions, per day,
// currency and category; what is not taxed in France is TNT1 at 0 %, sales of the one
// stop shop too.
//
// A total without tax is in the currency of the transactions, every other amount in
// euro, by each sale's own rate of exchange. Annex 6 says so of the taxes; of the
// bases of a foreign currency it is our reading.
package ereport

import (
	"time"

	"tributary/internal/country"
)

// Categories of transactions (TT-81).
const (
	Goods    = "TLB1"
	Services = "TPS1"
	Untaxed  = "TNT1" // not taxed in France
	Margin   = "TMA1" // taxed on the margin
)

// Euro is the currency of France, and of every tax in a report.
const Euro = "EUR"

// Payments is the [country.Span].Report of payments.
const Payments = "payments"

// DebitsCode says that VAT on services is due when they are invoiced (TT-80, UNTDID
// 2005); without it it is due when they are paid.
const DebitsCode = "5"

// Regime is how a company declares VAT: it decides when it reports (DGFiP, external
// specifications 3.2, table 13).
type Regime string

// The regimes.
const (
	RealMonthly   Regime = "real_monthly"
	RealQuarterly Regime = "real_quarterly"
	Simplified    Regime = "simplified"
	Franchise     Regime = "franchise"
)

// Regimes lists them.
func Regimes() []string {
	return []string{string(RealMonthly), string(RealQuarterly), string(Simplified), string(Franchise)}
}

// Sales is the period in which a transaction of an instant is reported, in that
// instant's time zone.
func (r Regime) Sales(at time.Time) country.Span {
	if r == RealMonthly {
		s := country.SpanOf(country.TenDay, at)
		switch month := monthAfter(s.First, 0); s.First.Day() {
		case 1:
			s.Due = month.AddDate(0, 0, 20) // the 20th
		case 11:
			s.Due = monthAfter(s.First, 1) // the last day of the month
		default:
			s.Due = monthAfter(s.First, 1).AddDate(0, 0, 10) // the 10th
		}
		return s
	}
	return r.months(at)
}

// Payments is the period in which a payment is reported.
func (r Regime) Payments(at time.Time) country.Span {
	s := r.months(at)
	s.Report = Payments
	return s
}

// months is the period of those who do not report every ten days.
func (r Regime) months(at time.Time) country.Span {
	cadence := country.Monthly
	if r == Franchise {
		cadence = country.TwoMonthly
	}
	s := country.SpanOf(cadence, at)
	if r == RealMonthly || r == RealQuarterly {
		s.Due = s.Next.AddDate(0, 0, 10)
	} else {
		s.Due = monthAfter(s.Next, 1)
	}
	return s
}

// monthAfter is the first day of the month, so many after that of a day.
func monthAfter(day time.Time, n int) time.Time {
	return time.Date(day.Year(), day.Month()+time.Month(n), 1, 0, 0, 0, 0, day.Location())
}

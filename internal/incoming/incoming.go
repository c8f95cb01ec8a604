// Package incoming is a document that somebody else wrote, read into one shape.
//
// It owns the shape and nothing else: the reader of a format stands with the country
// or the standard whose format it is, and the package received decides what becomes of
// a document. Law: amounts are those that the document states, never worked out anew;
// what a reader does not understand is listed in NotRead, never dropped in silence.
package incoming

import (
	"github.com/invopop/gobl/num"

	"tributary/internal/transaction"
)

// The formats that are read, as results name them.
const (
	UBL       = "UBL"
	CII       = "CII"
	FatturaPA = "FATTURAPA"
	FA        = "FA"  // Poland
	NAV       = "NAV" // Hungary's InvoiceData
	CFDI      = "CFDI"
)

// Document is one received document. Days are YYYY-MM-DD and empty where it has none;
// amounts are minor units of Currency.
type Document struct {
	Format       string
	Kind         transaction.Kind // Invoice, Credit for credit notes, Adjustment for corrections of a part
	TypeCode     string           // the document's own word for what it is: 380, TD01, VAT, KOR, I …
	Number       string
	AuthorityID  string // the authority's own id of it, where the document carries one: CFDI's UUID
	Day          string
	DueDay       string
	DeliveryDay  string
	Period       *transaction.Span
	Currency     string
	ExchangeRate *num.Amount // units of the country's currency for one of Currency

	Sender   transaction.Party
	Receiver transaction.Party
	Payee    *transaction.Payee
	Others   []transaction.Party // further parties, each with its role
	Delivery *transaction.Delivery

	Lines      []Line
	Ordered    []Line // advance invoices: what was ordered
	Allowances []Extra
	Charges    []Extra
	Taxes      []Tax // the breakdown of the whole document

	// Where a format has no such total of its own, it is the sum of those that it
	// states of each rate; what is payable less what is withheld, where it says neither.
	Net, Tax, Gross int64
	Withheld        int64 // lowers what is payable
	Prepaid         int64
	Rounding        int64
	Payable         int64

	TaxCurrency string // of AccountingTax; empty: the document has none
	// AccountingTax is the total tax in the country's own currency, in minor units of TaxCurrency.
	AccountingTax int64

	Payments     []transaction.Payment // an amount of 0 is one that the document does not state
	Instalments  []Instalment          // where it is due in parts; DueDay is that of the first
	PaymentTerms string
	References   transaction.References
	Earlier      []Reference // documents that this one corrects or follows
	Notes        []string
	Attachments  []transaction.Attachment // embedded files; never rendered

	NotRead []string // paths of what the document says and this shape has no place for, at most NotReadMax

	Broken []BrokenRule // of the standard that the document says it keeps, at most NotReadMax
}

// BrokenRule is a rule that a document breaks.
type BrokenRule struct {
	Rule string // its official name; empty where Text speaks of the rest
	Term string
	Text string // what is wrong, without naming the term
}

// LineNets are what the lines of a sale come to without tax; nil where the document has no
// lines, or one with a tax that it does not state.
func (d *Document) LineNets() (nets []int64) {
	for _, l := range d.Lines {
		net := l.Net
		for _, t := range l.Taxes {
			switch {
			case !l.Gross:
			case t.Amount == 0 && !t.Rate.IsZero() && net != 0:
				return nil
			default:
				net -= t.Amount
			}
		}
		nets = append(nets, net)
	}
	return nets
}

// NotReadMax bounds the list of what was not understood; its last entry says how many more there are.
const NotReadMax = 100

// Reference is an earlier document.
type Reference struct {
	Number      string
	Day         string
	AuthorityID string // the authority's own id of it, where the document states one
	Relation    string // the document's own word for what it has to do with it
	Amount      int64  // what this document pays of it; 0 where it does not say
}

// Line is one line. UnitPrice has as many decimals as the document gives it, in units
// of the currency (not minor units), without tax unless Gross says otherwise.
type Line struct {
	Number      int64 // counted from 1 where the document's own is no positive integer
	Name        string
	Description string
	Code        string
	EAN         string
	Quantity    num.Amount // 0 where the document has none
	Unit        string
	UnitPrice   num.Amount
	PriceOf     *num.Amount // how many UnitPrice is for; nil: one
	Gross       bool        // UnitPrice and Net include tax: some countries have lines in no other terms
	Before      bool        // as it was before the correction, which takes it back
	Net         int64       // the line's amount, after its allowances and charges
	Allowances  []Extra
	Charges     []Extra
	Period      *transaction.Span
	Taxes       []Tax
	Classes     []transaction.Classification
}

// Instalment is a part of what is payable.
type Instalment struct {
	Day    string
	Amount int64 // 0 where the document does not state it
}

// Extra is an allowance or a charge, of a line or of the whole document.
type Extra struct {
	Code    string // the document's own word for it: 95, SC, TC04 …
	Reason  string
	Amount  int64       // 0 where only Percent or Unit is said
	Percent *num.Amount // what it is of its base
	Unit    *num.Amount // what it takes from, or adds to, the price of one, in units of the currency
	Taxes   []Tax
}

// Tax is one rate or exemption: of a line, or with its sums of the document.
type Tax struct {
	Regime string     // VAT, RET for what is withheld, or the country's own
	Type   string     // of transaction's Tax…, empty where the document does not tell
	Code   string     // the country's own word: S, N2.2, np I, 002 …
	Rate   num.Amount // a percentage
	Reason string     // why there is none
	Base   int64
	Amount int64
}

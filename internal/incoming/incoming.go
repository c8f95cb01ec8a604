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
	Day          string
	DueDay       string
	DeliveryDay  string
	Period       *transaction.Span
	Currency     string
	ExchangeRate *num.Amount // units of the country's currency for one of Currency

	Sender   transaction.Party
	Receiver transaction.Party
	Payee    *transaction.Payee

	Lines      []Line
	Allowances []Extra
	Charges    []Extra
	Taxes      []Tax // the breakdown of the whole document

	Net, Tax, Gross int64
	Withheld        int64 // lowers what is payable
	Prepaid         int64
	Rounding        int64
	Payable         int64

	Payments     []transaction.Payment
	PaymentTerms string
	References   transaction.References
	Earlier      []Reference // documents that this one corrects or follows
	Notes        []string
	Attachments  []transaction.Attachment // embedded files; never rendered

	NotRead []string // paths of what the document says and this shape has no place for, at most NotReadMax
}

// NotReadMax bounds the list of what was not understood; its last entry says how many more there are.
const NotReadMax = 100

// Reference is an earlier document.
type Reference struct {
	Number      string
	Day         string
	AuthorityID string // the authority's own id of it, where the document states one
}

// Line is one line. UnitPrice has as many decimals as the document gives it, in units
// of the currency (not minor units), without tax unless Gross says otherwise.
type Line struct {
	Number      int64 // counted from 1 where the document's own is no positive integer
	Name        string
	Description string
	Code        string
	EAN         string
	Quantity    num.Amount
	Unit        string
	UnitPrice   num.Amount
	Gross       bool  // UnitPrice and Net include tax: some countries have lines in no other terms
	Net         int64 // the line's amount
	Period      *transaction.Span
	Taxes       []Tax
	Classes     []transaction.Classification
}

// Extra is an allowance or a charge of the whole document.
type Extra struct {
	Reason string
	Amount int64
	Taxes  []Tax
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

package country

import (
	"time"

	"tributary/internal/transaction"
)

// Issue is a registered transaction on its way to paper: what a pack may look
// at when it says what the document for people must carry.
type Issue struct {
	Transaction  *transaction.Transaction // items with their taxes typed
	Totals       transaction.Totals
	Supplier     *Supplier
	Original     *Original
	Shares       []Share // of several originals each, and of a payment what it was for
	UniqueNumber string
	AuthorityID1 string
	AuthorityID2 string
	QRCode       string
	Filing       *Filing // nil where nothing was filed
	Receipt      []byte  // what the authority gave back, the RECEIPT attachment
	Language     string  // two letters, upper case: of the document
	Location     *time.Location
	At           time.Time
	Live         Live
}

// Originals are the documents that a correction is of; none where it is no correction.
func (in *Issue) Originals() (list []Original) {
	if in.Original == nil {
		return nil
	}
	if len(in.Shares) == 0 {
		return []Original{*in.Original}
	}
	for i := range in.Shares {
		list = append(list, in.Shares[i].Original)
	}
	return list
}

// Imprint is what a country's law wants printed on a document besides the
// transaction itself. Its zero value prints nothing.
type Imprint struct {
	Title       string           // in place of the language's own title
	Kind        transaction.Kind // whose title it has in languages that Title does not speak; empty: the transaction's
	Codes       []Code           // in the order in which they stand, left to right
	Identifiers []Identifier     // the authority's, in place of unlabelled ids
	Texts       []string         // legal texts, one paragraph each
	Language    string           // of Texts, two letters: readers that speak a document must know; empty: the document's

	// Negated says that the amounts were filed with the opposite sign of the
	// transaction's, a credit of Spain for one: paper shows what was filed.
	Negated bool

	// Words are what the country's own codes of this document mean, in words that
	// people know: of taxes, payments and reasons. Paper has them beside the code.
	Words map[string]string

	// Untaxed are the lines whose price shows neither rate, net nor tax: what is
	// taxed on its margin (Directive 2006/112/EC, articles 310 and 325).
	Untaxed []int

	// Unsaid are the schemes of classifications that the buyer does not read: the
	// margin is the seller's own affair.
	Unsaid []string

	// LocalTax is the tax in the country's currency as it was filed, in its minor
	// units; nil: paper works it out.
	LocalTax *int64

	// Advice is how to pay, where the document as data says more than the
	// transaction: paper says the same.
	Advice Advice
}

// Advice is how a document is to be paid.
type Advice struct {
	Account, BIC, Holder string // of the money; Holder: where it is not the supplier
	Reference            string // what to write with the payment
	DueDate              string // YYYY-MM-DD
	Terms                string
	Paid                 *int64 // what the data says is paid, in minor units; nil: what card, cash and check paid
}

// Code is a QR code with the words that stand above and below it.
type Code struct {
	Text    string // encoded byte for byte
	Title   string
	Caption string
	Leading bool // it stands first, on the side where reading begins, and its words are as large as the document's other data
}

// Identifier is a labelled id.
type Identifier struct {
	Label string // empty: the language's word for the authority's id
	Value string
}

// PlainImprint prints the authority's ids and its code without words: what a
// pack without rules of its own gets.
func PlainImprint(in Issue) Imprint {
	var out Imprint
	for _, id := range []string{in.AuthorityID1, in.AuthorityID2} {
		if id != "" {
			out.Identifiers = append(out.Identifiers, Identifier{Value: id})
		}
	}
	if in.QRCode != "" {
		out.Codes = []Code{{Text: in.QRCode}}
	}
	return out
}

// Printed is the pack's imprint of an issue.
func (p Pack) Printed(in Issue) Imprint {
	if p.Imprint == nil {
		return PlainImprint(in)
	}
	return p.Imprint(in)
}

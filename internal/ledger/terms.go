package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// What an operation is found by. A term is upper-case letters and digits, so
// that nobody has to remember blanks, dashes and dots; other kinds of terms
// begin with a sign that no text has.
const (
	countrySign  = "#" // every indexed operation has exactly one: it also says that it is indexed
	amountSign   = "="
	supplierSign = "@"
	termBytesMax = 96 // a longer text is found by its digest
	taxNumberMin = 4  // what a tax number must have besides its country
)

// termOf is the form in which a text is stored and looked for; empty for one
// without letters and digits.
func termOf(text string) string {
	term := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return -1
	}, text)
	if len(term) > termBytesMax {
		sum := sha256.Sum256([]byte(term))
		return hex.EncodeToString(sum[:16])
	}
	return term
}

// amountTerm leaves the sign out: whoever looks for an amount wants the invoice
// and what took it back.
func amountTerm(amount int64) string {
	return amountSign + strings.TrimPrefix(strconv.FormatInt(amount, 10), "-")
}

// termSet collects terms without repeating one.
type termSet []string

func (s *termSet) add(term string) {
	for _, t := range *s {
		if t == term {
			return
		}
	}
	*s = append(*s, term)
}

func (s *termSet) addText(text string) {
	if term := termOf(text); term != "" {
		s.add(term)
	}
}

// addTaxNumber adds a number without the letters of its country: one entry
// serves those who write them and those who do not, see Ledger.textSources.
func (s *termSet) addTaxNumber(number string) {
	if plain := withoutCountry(termOf(number)); plain != "" {
		s.add(plain)
		return
	}
	s.addText(number)
}

// withoutCountry is a term without two letters in front; empty where there are
// none, or where too little is left to tell anybody apart.
func withoutCountry(term string) string {
	if len(term) < 2+taxNumberMin || !isLetter(term[0]) || !isLetter(term[1]) {
		return ""
	}
	return term[2:]
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' }

// indexed is an operation as the index reads it.
type indexed struct {
	id, transactionID, country, supplierID, number string
	kind                                           transaction.Kind
	body                                           []byte
	customer                                       string // as stored, where the body names it by id
}

// decode reads the body: what can be read counts. Nil where nothing can.
func (o *indexed) decode() *transaction.Transaction {
	t, _, _ := transaction.Decode(o.kind, o.body)
	if t != nil {
		operation.WithCustomer(t, o.customer)
	}
	return t
}

// terms are what the submitted body says.
func (o *indexed) terms(t *transaction.Transaction) termSet {
	set := termSet{countrySign + o.country}
	set.addText(o.transactionID)
	set.addText(o.number)
	if o.supplierID != "" {
		set.add(supplierSign + o.supplierID)
	}
	if t == nil {
		return set
	}
	set.addText(t.Number)
	for _, p := range []*transaction.Party{t.Customer, t.Issuer} {
		if p != nil && p.TaxNumber != "" {
			set.addTaxNumber(p.TaxNumber)
		}
	}
	if len(t.Items) > 0 {
		if totals, _ := transaction.Calculate(t.Items); totals.Gross != 0 {
			set.add(amountTerm(totals.Gross))
		}
	}
	return set
}

// parts are the pieces by which it is found.
func (o *indexed) parts(t *transaction.Transaction) (set termSet) {
	set.addParts(o.number)
	set.addParts(o.transactionID)
	if tail := strings.LastIndex(o.id, "-"); tail >= 0 {
		set.addPart(partOf(o.id[len(o.id)-6:])) // as ids are shortened on the pages
	}
	if t == nil {
		return set
	}
	set.addParts(t.Number)
	for _, p := range []*transaction.Party{t.Customer, t.Issuer} {
		if p != nil {
			set.addParts(p.LegalName)
			set.addParts(p.TaxNumber)
		}
	}
	return set
}

// decided is what is only known once an operation is settled. Its members are
// those of Result.
type decided struct {
	Number       *string               `json:"transaction_number"`
	AuthorityID1 *string               `json:"tax_authority_id_1"`
	AuthorityID2 *string               `json:"tax_authority_id_2"`
	TotalAmount  *int64                `json:"total_amount"`
	Supplier     result.ResultSupplier `json:"supplier"`
}

func (d *decided) terms() (set termSet) {
	for _, id := range []*string{d.Number, d.AuthorityID1, d.AuthorityID2} {
		if id != nil {
			set.addText(*id)
		}
	}
	if d.TotalAmount != nil && *d.TotalAmount != 0 {
		set.add(amountTerm(*d.TotalAmount))
	}
	if id := d.Supplier.ID; id != nil && *id != "" {
		set.add(supplierSign + *id)
	}
	return set
}

func (d *decided) parts() (set termSet) {
	for _, id := range []*string{d.Number, d.AuthorityID1} {
		if id != nil {
			set.addParts(*id)
		}
	}
	return set
}

// operationIn finds the operation id that a text is: the id itself, or the
// service's own number of a transaction, which holds it.
func operationIn(text string) (id string, ok bool) {
	if code, rest, found := strings.Cut(text, "-"); found && len(code) == 2 && len(rest) == 32 {
		text = rest
	}
	if len(text) != 32 && len(text) != 36 {
		return "", false
	}
	parsed, err := uuid.Parse(text)
	return parsed.String(), err == nil
}

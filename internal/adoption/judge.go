package adoption

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"tributary/internal/db"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Names are those by which an authority may know an operation's document.
type Names struct {
	Number   string // its own
	Original string // that of what it corrects
	SHA256   string // of its bytes, where they are made

	// Drawn reports whether a number may have been drawn from the operation's own
	// series; nil where its number was not. What was drawn after the backup is
	// lost, and another attempt of the same sale gets another number.
	Drawn func(number string) bool
	Sales []string // numbers in the document of a period; nil: it is none
	Said  Decision // what a person said of the operation; "": nothing
}

// Verdict is what the documents that wait are to an operation.
type Verdict int

// The verdicts.
const (
	Other   Verdict = iota // none of them is its own
	Same                   // one agrees in everything that the authority tells
	Used                   // its number belongs to another document
	Unclear                // one may be its own, and the authority does not tell enough: a person decides
)

const gapColumns = "number, reference, authority_id_1, authority_id_2, kind, day, gross, net, tax, currency, customer, sales, lines, sha256, qr_code, registered_at, found_at"

// Find reads the gaps that an operation's document might be.
func Find(r db.Reader, of operation.Place, by Names) ([]Gap, error) {
	list, err := db.Collect(r, scanGap, `SELECT `+gapColumns+`
		FROM adoptions WHERE client_id = $1 AND supplier_id = $2 AND operation_id IS NULL AND (number = $3 OR reference = $4 AND reference <> '' OR $5) ORDER BY number`,
		of.Scope, of.SupplierID, by.Number, by.Original, by.Drawn != nil || by.Sales != nil)
	if err != nil {
		return nil, fmt.Errorf("look for a gap: %w", err)
	}
	return list, nil
}

func scanGap(scan func(...any) error) (g Gap, err error) {
	var sales, lines *string
	err = scan(&g.Number, &g.Reference, &g.ID1, &g.ID2, &g.Kind, &g.Day, &g.Gross, &g.Net, &g.Tax, &g.Currency, &g.Customer, &sales, &lines,
		&g.SHA256, &g.QRCode, db.NullInstant(&g.At), db.NullInstant(&g.Found))
	if err == nil && sales != nil {
		err = json.Unmarshal([]byte(*sales), &g.Sales)
	}
	if err == nil && lines != nil {
		err = json.Unmarshal([]byte(*lines), &g.Lines)
	}
	return g, err
}

func encoded[T any](list []T) any {
	if list == nil {
		return nil
	}
	text, _ := json.Marshal(list) // texts and numbers always encode
	return string(text)
}

// Judge finds an operation's document among gaps. What is compared is what the
// authority tells: number, day (give or take one: authorities and suppliers may
// count in different zones), kind, every sum, the buyer, the lines. The bytes that were
// registered are lost, and bytes made now differ from them in times, keys and
// links; only where they are the same do hashes say something.
//
// A number on another day is another document where numbers begin anew each
// year. A correction that came without a number got one of our own, which is
// lost with the operation that had it; it is known by what it corrects.
func Judge(gaps []Gap, o *operation.Operation, by Names, where *time.Location) (*Gap, Verdict) {
	if by.Sales != nil {
		return judgePeriod(gaps, by)
	}
	var unclear *Gap
	for i := range gaps {
		g := &gaps[i]
		switch {
		case g.SHA256 != "" && g.SHA256 == by.SHA256:
			return g, Same
		case g.meant(o, by, where) && g.differs(o):
			return g, Used
		case g.meant(o, by, where) && (by.Drawn == nil || g.tells(o)) && !g.doubtful(o):
			return g, Same
		case g.meant(o, by, where):
			unclear = g
		}
	}
	if unclear != nil || by.Drawn == nil {
		return unclear, verdictOn(unclear)
	}
	for i := range gaps {
		g := &gaps[i]
		switch {
		case g.Number == "" || !by.Drawn(g.Number) || !near(o.Document.Date, where, g.Day) || g.differs(o):
		case g.tells(o) && !g.doubtful(o):
			return g, Same
		case unclear == nil:
			unclear = g
		}
	}
	return unclear, verdictOn(unclear)
}

func verdictOn(unclear *Gap) Verdict {
	if unclear == nil {
		return Other
	}
	return Unclear
}

// judgePeriod finds the document of a period by the sales in it. One that does not
// say which sales it has may have any of its period.
func judgePeriod(gaps []Gap, by Names) (*Gap, Verdict) {
	prefix := by.Number[:strings.LastIndexByte(by.Number, '-')+1]
	for i := range gaps {
		g := &gaps[i]
		if !strings.HasPrefix(g.Number, prefix) {
			continue
		}
		missing := slices.ContainsFunc(by.Sales, func(number string) bool { return !slices.Contains(g.Sales, number) })
		switch {
		case g.Sales == nil, g.Number == by.Number && missing:
			return g, Unclear
		case g.Number == by.Number:
			return g, Same
		}
	}
	return nil, Other
}

// meant reports whether a gap has an operation's name.
func (g *Gap) meant(o *operation.Operation, by Names, where *time.Location) bool {
	if g.Number != "" && g.Number == by.Number {
		return near(o.Document.Date, where, g.Day)
	}
	numberless := o.Document.Number == o.UniqueNumber() || o.Document.Number == ""
	kind := g.Kind == o.Kind || g.Kind == "" && o.Kind != transaction.Cancellation && operation.IsUniqueNumber(o.Code, g.Number)
	if o.Kind == transaction.PaymentReport {
		// Several payments for one sale differ in day and amount.
		return numberless && kind && g.Reference == by.Original && near(o.Document.Date, where, g.Day) && !g.differs(o)
	}
	return o.Whole() && kind && g.Reference == by.Original && (g.Number == "" || numberless)
}

// tells reports whether the authority says what a document amounts to.
func (g *Gap) tells(o *operation.Operation) bool {
	return g.counts(o) && (g.Gross != nil || g.Net != nil && g.Tax != nil)
}

// counts reports whether sums are in the operation's own currency: an authority may
// keep them in another.
func (g *Gap) counts(o *operation.Operation) bool {
	return g.Currency == "" || strings.EqualFold(g.Currency, o.Document.CurrencyCode)
}

// differs reports whether the authority holds something else. A credit has its
// original's sums, which authorities turn round or not.
func (g *Gap) differs(o *operation.Operation) bool {
	gross := o.Totals.Gross
	if o.Kind == transaction.PaymentReport {
		gross = o.Document.Paid()
	}
	sum := func(theirs *int64, ours int64) bool {
		return theirs != nil && *theirs != ours && (o.Kind != transaction.Credit || *theirs != -ours)
	}
	return g.Kind != "" && g.Kind != o.Kind || anothers(g.Customer, o.Document.Customer) ||
		g.counts(o) && (sum(g.Gross, gross) || sum(g.Net, o.Totals.Net) || sum(g.Tax, o.Totals.Tax))
}

// doubtful reports whether a document that does not differ may be another's all the same.
func (g *Gap) doubtful(o *operation.Operation) bool { return g.namesBuyer(o) || g.OtherLines(o) }

// OtherLines reports whether the sums are the sale's and its lines are not. A program
// of another version may have written them otherwise, so a person looks. A negative
// line may be spread over the others.
func (g *Gap) OtherLines(o *operation.Operation) bool {
	if g.Lines == nil || o.Kind != transaction.Invoice || !g.counts(o) {
		return false
	}
	var ours []int64
	for _, line := range o.Totals.Lines {
		if line.Net < 0 {
			return false
		}
		ours = append(ours, line.Net)
	}
	none := func(amount int64) bool { return amount == 0 }
	ours, theirs := slices.DeleteFunc(ours, none), slices.DeleteFunc(slices.Clone(g.Lines), none)
	slices.Sort(ours)
	slices.Sort(theirs)
	return !slices.Equal(ours, theirs)
}

// namesBuyer reports whether the authority names a buyer of a sale that came without
// the number of one. Corrections say nothing of buyers: they have their original's.
func (g *Gap) namesBuyer(o *operation.Operation) bool {
	buyer := o.Document.Customer
	return g.Customer != "" && o.Kind == transaction.Invoice && (buyer == nil || bare(buyer.TaxNumber) == "")
}

// anothers reports whether a tax number is not the buyer's. Authorities write them
// with and without country and branch.
func anothers(number string, buyer *transaction.Party) bool {
	if number == "" || buyer == nil || bare(buyer.TaxNumber) == "" {
		return false
	}
	a, b := bare(number), bare(buyer.TaxNumber)
	return !strings.Contains(a, b) && !strings.Contains(b, a)
}

func bare(number string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, number)
}

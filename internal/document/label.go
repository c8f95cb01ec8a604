package document

import (
	"sync"

	"tributary/internal/transaction"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// words are a language's texts on documents, and how it writes dates, numbers and money.
type words struct {
	tag string // BCP 47, for readers that speak
	format

	invoice, receipt, credit, adjustment, cancellation                string
	date, uniqueNumber, corrects, reason                              string
	supplier, customer, issuer, taxNumber, companyNumber              string
	line, description, quantity, unitPrice, taxIncluded, taxExcluded  string
	tax, net, amount, code                                            string
	carried, brought                                                  string
	taxSummary, taxable, netTotal, taxTotal, total, withheld, payable string
	payments, onCredit, card, cash, transfer, check, other            string
	note, authority, authorityID, page, exchangeRate, taxIn, specimen string
	vat, zero, exempt, reverse, export, intraEU, outside              string
}

// Speaks reports whether documents can be made in a language, given by two
// letters in either case. For others they are in English, and the caller adds
// the warning language_fallback.
func Speaks(code string) bool {
	_, ok := languages(code)
	return ok
}

// Languages lists the languages of documents, in upper case as transactions write them.
func Languages() []string {
	return []string{"EN", "ES", "PT", "FR", "DE", "IT", "PL", "NL", "RO", "HU", "EL", "HR", "CS", "SV", "DA", "FI"}
}

// wordsFor returns the words of a language, the English ones for an unknown
// one, with the numbers of the country where those differ from the language's.
func wordsFor(code, countryCode string) words {
	w, ok := languages(code)
	if !ok {
		w = english()
	}
	w.format = w.format.in(code, countryCode)
	return w
}

// title is a document's name when its country has no other.
func (w *words) title(kind transaction.Kind, simplified bool) string {
	switch kind {
	case transaction.Credit:
		return w.credit
	case transaction.Adjustment:
		return w.adjustment
	case transaction.Cancellation:
		return w.cancellation
	}
	if simplified {
		return w.receipt
	}
	return w.invoice
}

// payment names a way of paying.
func (w *words) payment(kind string) string {
	switch kind {
	case "CREDIT":
		return w.onCredit
	case "CARD":
		return w.card
	case "CASH":
		return w.cash
	case "TRANSFER":
		return w.transfer
	case "CHECK":
		return w.check
	}
	return w.other
}

// regime names a tax: VAT has a name in every language, others are shown as they were sent.
func (w *words) regime(code string) string {
	if code == transaction.VAT || code == "" {
		return w.vat
	}
	return clean(code)
}

// taxType says why a tax entry is not an ordinary one; "" for ordinary ones.
func (w *words) taxType(kind string) string {
	switch kind {
	case transaction.TaxZero:
		return w.zero
	case transaction.TaxExempt:
		return w.exempt
	case transaction.TaxReverse:
		return w.reverse
	case transaction.TaxExport:
		return w.export
	case transaction.TaxIntraEU:
		return w.intraEU
	case transaction.TaxOutside:
		return w.outside
	}
	return ""
}

// placeNames knows the names of countries in the languages of documents.
type placeNames struct {
	mu    sync.RWMutex
	names map[[2]string]string
}

func newPlaceNames() *placeNames { return &placeNames{names: make(map[[2]string]string)} }

// name returns a country's name in a language; the code itself where there is none.
func (p *placeNames) name(tag, code string) string {
	if len(code) != 2 { // keeps the table as small as the world
		return clean(code)
	}
	key := [2]string{tag, code}
	p.mu.RLock()
	name, ok := p.names[key]
	p.mu.RUnlock()
	if ok {
		return name
	}
	name = code
	region, err := language.ParseRegion(code)
	if namer := display.Regions(language.Make(tag)); err == nil && namer != nil {
		if known := namer.Name(region); known != "" && region.IsCountry() {
			name = known
		}
	}
	p.mu.Lock()
	p.names[key] = name
	p.mu.Unlock()
	return name
}

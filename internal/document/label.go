package document

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// words are a language's texts on documents, and how it writes dates, numbers
// and money. The texts are data: words/*.txt, one file per language. Those for
// reverse charge are what Directive 2006/112/EC, article 226 (11a), prescribes;
// titles follow the VAT acts: a German "Gutschrift", for one, would be a
// self-billed invoice, so a credit is a "Stornorechnung" there.
type words struct {
	tag string // BCP 47, for readers that speak
	format

	invoice, receipt, credit, adjustment, cancellation                string
	date, uniqueNumber, corrects, reason, number                      string
	supplier, customer, issuer, taxNumber, vatNumber, companyNumber   string
	line, description, quantity, unitPrice, taxIncluded, taxExcluded  string
	tax, taxAmount, net, amount, code, discount                       string
	carried, brought                                                  string
	taxSummary, taxable, netTotal, taxTotal, total, withheld, payable string
	rounding, refund, paid, unpaid, dueDate, deliveryDate, terms      string
	payments, onCredit, card, cash, transfer, check, other            string
	paymentReference, buyerReference, orderReference                  string
	contractReference, projectReference, contact, electronicAddress   string
	note, authority, authorityID, page, exchangeRate, taxIn, specimen string
	vat, zero, exempt, reverse, export, intraEU, outside, fiscalCode  string
	transliterated, qr                                                string
}

//go:embed words/*.txt
var wordFiles embed.FS

//go:embed countries.txt
var countriesFile string

//go:embed formats.txt
var formatsFile string

// slots are the texts by the names that the files give them.
func (w *words) slots() map[string]*string {
	return map[string]*string{
		"tag": &w.tag, "invoice": &w.invoice, "receipt": &w.receipt, "credit": &w.credit, "adjustment": &w.adjustment, "cancellation": &w.cancellation,
		"date": &w.date, "uniqueNumber": &w.uniqueNumber, "corrects": &w.corrects, "reason": &w.reason, "number": &w.number,
		"supplier": &w.supplier, "customer": &w.customer, "issuer": &w.issuer, "taxNumber": &w.taxNumber, "vatNumber": &w.vatNumber, "companyNumber": &w.companyNumber,
		"line": &w.line, "description": &w.description, "quantity": &w.quantity, "unitPrice": &w.unitPrice, "taxIncluded": &w.taxIncluded, "taxExcluded": &w.taxExcluded,
		"tax": &w.tax, "taxAmount": &w.taxAmount, "net": &w.net, "amount": &w.amount, "code": &w.code, "discount": &w.discount, "carried": &w.carried, "brought": &w.brought,
		"taxSummary": &w.taxSummary, "taxable": &w.taxable, "netTotal": &w.netTotal, "taxTotal": &w.taxTotal, "total": &w.total, "withheld": &w.withheld, "payable": &w.payable,
		"rounding": &w.rounding, "refund": &w.refund, "paid": &w.paid, "unpaid": &w.unpaid, "dueDate": &w.dueDate, "deliveryDate": &w.deliveryDate, "terms": &w.terms,
		"payments": &w.payments, "onCredit": &w.onCredit, "card": &w.card, "cash": &w.cash, "transfer": &w.transfer, "check": &w.check, "other": &w.other,
		"paymentReference": &w.paymentReference, "buyerReference": &w.buyerReference, "orderReference": &w.orderReference,
		"contractReference": &w.contractReference, "projectReference": &w.projectReference, "contact": &w.contact, "electronicAddress": &w.electronicAddress,
		"note": &w.note, "authority": &w.authority, "authorityID": &w.authorityID, "page": &w.page, "exchangeRate": &w.exchangeRate, "taxIn": &w.taxIn, "specimen": &w.specimen,
		"vat": &w.vat, "zero": &w.zero, "exempt": &w.exempt, "reverse": &w.reverse, "export": &w.export, "intraEU": &w.intraEU, "outside": &w.outside, "fiscalCode": &w.fiscalCode,
		"transliterated": &w.transliterated, "qr": &w.qr,
	}
}

// Speaks reports whether documents can be made in a language, given by two
// letters in either case. For others they are in English, and the caller adds
// the warning language_fallback.
func Speaks(code string) bool {
	return slices.Contains(Languages(), strings.ToUpper(code))
}

// Languages lists the languages of documents, in upper case as transactions
// write them: the official ones of the European Union, and others that are
// asked for. Chinese is in the script of the country.
func Languages() []string {
	return []string{
		"AR", "BG", "CS", "DA", "DE", "EL", "EN", "ES", "ET", "FI", "FR", "GA", "HE", "HI", "HR", "HU", "ID", "IT", "JA", "KO", "LT", "LV", "MT", "NL", "PL", "PT", "RO", "SK", "SL", "SV",
		"TH", "TR", "UK", "VI", "ZH",
	}
}

// vocabulary is all that documents know of languages and countries.
type vocabulary struct {
	languages map[string]*words  // by upper-case code; ZH-HANT beside ZH
	formats   map[string]string  // by language and country, see formats.txt
	countries map[string]customs // by country
}

// customs are how a country writes, see countries.txt.
type customs struct {
	taxNumber string
	house     byte
	address   string
	native    string // of an address in the country's own script; "" where it is no different
}

// readVocabulary reads the files of the program: what is wrong in one is a
// fault of the program, found at its start.
func readVocabulary() (*vocabulary, error) {
	v := &vocabulary{languages: make(map[string]*words), formats: make(map[string]string), countries: make(map[string]customs)}
	for _, code := range append(Languages(), "ZH-HANT") {
		name := strings.ToLower(code)
		if code == "ZH" {
			name = "zh-hans"
		}
		text, err := wordFiles.ReadFile("words/" + name + ".txt")
		if err != nil {
			return nil, err
		}
		if v.languages[code], err = readWords(string(text)); err != nil {
			return nil, fmt.Errorf("words of %s: %w", code, err)
		}
	}
	for line := range dataLines(formatsFile) {
		key, rest, _ := strings.Cut(line, "\t")
		v.formats[key] = rest
	}
	for line := range dataLines(countriesFile) {
		cells := strings.Split(line, "\t")
		if len(cells) != 4 || len(cells[2]) != 1 {
			return nil, fmt.Errorf("countries: line %q", line)
		}
		address, native, _ := strings.Cut(cells[3], "/")
		v.countries[cells[0]] = customs{taxNumber: cells[1], house: cells[2][0], address: address, native: native}
	}
	return v, nil
}

// dataLines yields the lines of a file that are no remarks.
func dataLines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

func readWords(text string) (*words, error) {
	w := &words{}
	slots := w.slots()
	for line := range dataLines(text) {
		key, value, ok := strings.Cut(line, " = ")
		if !ok || value == "" {
			return nil, fmt.Errorf("line %q has no text", line)
		}
		if name, isFormat := strings.CutSuffix(key, "Format"); isFormat {
			if !w.format.set(name, value) {
				return nil, fmt.Errorf("unknown format %q", line)
			}
			continue
		}
		slot, known := slots[key]
		if !known || *slot != "" {
			return nil, fmt.Errorf("line %q is unknown or stands twice", line)
		}
		*slot = value
	}
	for key, slot := range slots {
		if *slot == "" {
			return nil, fmt.Errorf("no text for %s", key)
		}
	}
	return w, nil
}

// words returns the words of a language, the English ones for an unknown one,
// with the numbers of the country where those differ from the language's.
func (v *vocabulary) words(code, countryCode string) words {
	if code == "ZH" && slices.Contains([]string{"TW", "HK", "MO"}, countryCode) {
		code = "ZH-HANT"
	}
	w, ok := v.languages[code]
	if !ok {
		w, code = v.languages["EN"], "EN"
	}
	out := *w
	for pair := range strings.FieldsSeq(v.formats[code+"-"+countryCode]) {
		name, value, _ := strings.Cut(pair, "=")
		out.format.set(name, value)
	}
	return out
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
	return typeset.Clean(code)
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
		return typeset.Clean(code)
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

// scriptName names a script (ISO 15924) in a language.
func scriptName(tag, code string) string {
	script, err := language.ParseScript(code)
	if namer := display.Scripts(language.Make(tag)); err == nil && namer != nil {
		if name := namer.Name(script); name != "" {
			return name
		}
	}
	return code
}

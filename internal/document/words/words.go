// Package words is how documents speak: the texts of languages, how languages and
// countries write dates, numbers, money and addresses, and what countries call
// a tax number.
//
// It owns those texts and habits, as data beside it. It does not own where they
// stand on a page, nor what the law of a country wants printed: that is the pack's.
package words

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// Words are a language's texts on documents, and how it writes dates, numbers
// and money. The texts are data: one file per language. Those for
// reverse charge are what Directive 2006/112/EC, article 226 (11a), prescribes;
// titles follow the VAT acts: a German "Gutschrift", for one, would be a
// self-billed invoice, so a credit is a "Stornorechnung" there.
type Words struct {
	Tag string // BCP 47, for readers that speak
	Format

	Invoice, Receipt, Credit, Adjustment, Cancellation                string
	Date, UniqueNumber, Corrects, Reason, Number                      string
	Supplier, Customer, Issuer, TaxNumber, VATNumber, CompanyNumber   string
	Line, Description, Quantity, UnitPrice, TaxIncluded, TaxExcluded  string
	Tax, TaxAmount, Net, Amount, Code, Discount                       string
	Carried, Brought                                                  string
	TaxSummary, Taxable, NetTotal, TaxTotal, Total, Withheld, Payable string
	Rounding, Refund, Paid, Unpaid, DueDate, DeliveryDate, Terms      string
	Payments, OnCredit, Card, Cash, Transfer, Check, Other            string
	PaymentReference, BuyerReference, OrderReference                  string
	ContractReference, ProjectReference, Contact, ElectronicAddress   string
	Note, Authority, AuthorityID, Page, ExchangeRate, TaxIn, Specimen string
	VAT, Zero, Exempt, Reverse, Export, IntraEU, Outside, FiscalCode  string
	Transliterated, QR                                                string
	Period, DeliveryAddress, Payee, Attachments, Mandate, ScanToPay   string
}

//go:embed ??.txt zh-*.txt
var languageFiles embed.FS

//go:embed countries.txt
var countriesFile string

//go:embed formats.txt
var formatsFile string

// slots are the texts by their names in lower case, as files may give them.
func (w *Words) slots() map[string]*string {
	slots := map[string]*string{}
	for field, value := range reflect.ValueOf(w).Elem().Fields() {
		if text, ok := value.Addr().Interface().(*string); ok {
			slots[strings.ToLower(field.Name)] = text
		}
	}
	return slots
}

// Speaks reports whether documents can be made in a language, given by two
// letters in either case. For others they are in English, and the caller adds
// the warning language_fallback.
func Speaks(code string) bool {
	code = strings.ToUpper(code)
	return forms[code] != "" || slices.Contains(Languages(), code)
}

// Languages lists the languages of documents, in upper case as transactions
// write them: the official ones of the European Union, and others that are
// asked for. Chinese is in the script of the country.
func Languages() []string {
	return []string{
		"AR", "BG", "CS", "DA", "DE", "EL", "EN", "ES", "ET", "FI", "FR", "GA", "HE", "HI", "HR", "HU", "ID", "IT", "JA",
		"KO", "LT", "LV", "MT", "NB", "NL", "NN", "PL", "PT", "RO", "SK", "SL", "SV",
		"TH", "TR", "UK", "VI", "ZH",
	}
}

// forms are the written forms of languages that have several, for whoever names
// the language alone: Norwegian is Bokmål for most.
var forms = map[string]string{"NO": "NB"}

// Vocabulary is all that documents know of languages and countries. It is safe
// for concurrent use.
type Vocabulary struct {
	languages map[string]*Words  // by upper-case code; ZH-HANT beside ZH
	formats   map[string]string  // by language and country, see formats.txt
	countries map[string]customs // by country

	mu    sync.RWMutex
	names map[[2]string]string // of countries, by language and code
}

// customs are how a country writes, see countries.txt.
type customs struct {
	taxNumber string
	others    map[int]string // names of numbers with so many letters and digits
	house     byte
	address   string
	native    string // of an address in the country's own script; "" where it is no different
}

// Read reads the files of the program: what is wrong in one is a fault of the
// program, found at its start.
func Read() (*Vocabulary, error) {
	v := &Vocabulary{languages: map[string]*Words{}, formats: map[string]string{}, countries: map[string]customs{},
		names: map[[2]string]string{}}
	for _, code := range append(Languages(), "ZH-HANT") {
		name := strings.ToLower(code)
		if code == "ZH" {
			name = "zh-hans"
		}
		text, err := languageFiles.ReadFile(name + ".txt")
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
		code, rest, _ := strings.Cut(line, "\t")
		habit, err := readCustoms(rest)
		if err != nil {
			return nil, fmt.Errorf("countries: line %q: %w", line, err)
		}
		v.countries[code] = habit
	}
	return v, nil
}

func readCustoms(line string) (c customs, err error) {
	cells := strings.Split(line, "\t")
	if len(cells) != 3 || len(cells[1]) != 1 {
		return c, errors.New("it has other columns")
	}
	names := strings.Split(cells[0], ";")
	c = customs{taxNumber: names[0], others: map[int]string{}, house: cells[1][0]}
	c.address, c.native, _ = strings.Cut(cells[2], "/")
	for _, other := range names[1:] {
		name, size, _ := strings.Cut(other, "=")
		n, err := strconv.Atoi(size)
		if err != nil {
			return c, err
		}
		c.others[n] = name
	}
	return c, nil
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

func readWords(text string) (*Words, error) {
	w := &Words{}
	slots := w.slots()
	for line := range dataLines(text) {
		key, value, ok := strings.Cut(line, " = ")
		if !ok || value == "" {
			return nil, fmt.Errorf("line %q has no text", line)
		}
		if name, isFormat := strings.CutSuffix(key, "Format"); isFormat {
			if !w.Format.set(name, value) {
				return nil, fmt.Errorf("unknown format %q", line)
			}
			continue
		}
		slot, known := slots[strings.ToLower(key)]
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

// Words returns the words of a language, the English ones for an unknown one,
// with the numbers of the country where those differ from the language's.
func (v *Vocabulary) Words(code, countryCode string) Words {
	code = cmp.Or(forms[code], code)
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
		out.Format.set(name, value)
	}
	return out
}

// Title is a document's name when its country has no other.
func (w *Words) Title(kind transaction.Kind, simplified bool) string {
	switch kind {
	case transaction.Credit:
		return w.Credit
	case transaction.Adjustment:
		return w.Adjustment
	case transaction.Cancellation:
		return w.Cancellation
	}
	if simplified {
		return w.Receipt
	}
	return w.Invoice
}

// Payment names a way of paying.
func (w *Words) Payment(kind string) string {
	switch kind {
	case "CREDIT":
		return w.OnCredit
	case "CARD":
		return w.Card
	case "CASH":
		return w.Cash
	case "TRANSFER":
		return w.Transfer
	case "CHECK":
		return w.Check
	}
	return w.Other
}

// Regime names a tax: VAT has a name in every language, others are shown as they were sent.
func (w *Words) Regime(code string) string {
	if code == transaction.VAT || code == "" {
		return w.VAT
	}
	return typeset.Clean(code)
}

// TaxType says why a tax entry is not an ordinary one; "" for ordinary ones.
func (w *Words) TaxType(kind string) string {
	switch kind {
	case transaction.TaxZero:
		return w.Zero
	case transaction.TaxExempt:
		return w.Exempt
	case transaction.TaxReverse:
		return w.Reverse
	case transaction.TaxExport:
		return w.Export
	case transaction.TaxIntraEU:
		return w.IntraEU
	case transaction.TaxOutside:
		return w.Outside
	}
	return ""
}

// Country returns a country's name in a language; the code itself where there is none.
func (v *Vocabulary) Country(tag, code string) string {
	if len(code) != 2 { // keeps the table as small as the world
		return typeset.Clean(code)
	}
	key := [2]string{tag, code}
	v.mu.RLock()
	name, ok := v.names[key]
	v.mu.RUnlock()
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
	v.mu.Lock()
	v.names[key] = name
	v.mu.Unlock()
	return name
}

// ScriptName names a script (ISO 15924) in a language.
func ScriptName(tag, code string) string {
	script, err := language.ParseScript(code)
	if namer := display.Scripts(language.Make(tag)); err == nil && namer != nil {
		if name := namer.Name(script); name != "" {
			return name
		}
	}
	return code
}

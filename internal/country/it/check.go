package it

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/sale"
	"tributary/internal/country/taxid"
	"tributary/internal/country/text"
	"tributary/internal/fault"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
)

type checker struct {
	facts country.Facts
	by    *sale.Rules
}

func (c *checker) checks() []country.Check {
	parties := []string{"customer", "issuer", "reason"}
	lines := []string{"items.*.tax_breakdowns", "items.*.type", "items.*.classification", "customer", "transaction_date",
		"reason"}
	return []country.Check{
		{Reads: parties, Find: customer},
		{Reads: []string{"reason"}, Kind: transaction.Adjustment, Find: reasons},
		{Reads: []string{"payments"}, Find: methods},
		{Reads: []string{"customer", "issuer"}, Find: cutShort},
		{Reads: lines, Find: c.taxes},
		{Reads: []string{"transaction_date", "delivery_date", "reason"}, Find: late},
		{Reads: append(lines, "items", "issuer", "transaction_number"), Amounts: true, Find: c.document},
	}
}

func customer(in country.Case) []fault.Fault {
	var found []fault.Fault
	if p := identify(in.Transaction.Customer); p.flaw != "" {
		found = append(found, fault.At("customer."+p.flawAt, fault.FieldNotValid, "%s", p.flaw))
	}
	if p := identify(in.Transaction.Issuer); p.flaw != "" {
		found = append(found, fault.At("issuer."+p.flawAt, fault.FieldNotValid, "%s", p.flaw))
	}
	return found
}

// methods refuses codes that look like ModalitaPagamento and are none.
func methods(in country.Case) (found []fault.Fault) {
	for i, p := range in.Transaction.Payments {
		if code := strings.ToUpper(p.Code); len(code) == 4 && strings.HasPrefix(code, "MP") && !methodForm.MatchString(code) {
			found = append(found, fault.At(fmt.Sprintf("payments.%d.code", i), fault.FieldNotValid,
				"must be MP01 to MP23 (ModalitaPagamento)"))
		}
	}
	return found
}

// cutShort warns of names and addresses for which FatturaPA has no room.
func cutShort(in country.Case) (found []fault.Fault) {
	for member, p := range map[string]*transaction.Party{"customer": in.Transaction.Customer, "issuer": in.Transaction.Issuer} {
		if p == nil {
			continue
		}
		for _, at := range tooLong(p.LegalName, p.Address) {
			found = append(found, fault.Warn(member+"."+at.field, fault.FieldNotValid,
				"is filed with its first %d characters: FatturaPA has no room for more (%s)", at.max, at.name))
		}
	}
	slices.SortFunc(found, func(a, b fault.Fault) int { return strings.Compare(a.Field, b.Field) })
	return found
}

// room is a member of a party for which FatturaPA has too little of it.
type room struct {
	field, name string
	max         int
}

func tooLong(legalName string, a *transaction.Address) (list []room) {
	add := func(r room, words string) {
		if latin(words, r.max) != latin(words, 1<<16) {
			list = append(list, r)
		}
	}
	add(room{"legal_name", "Denominazione", nameMax}, legalName)
	if a != nil {
		add(room{"address.address_line_1", "Indirizzo", addressMax}, a.AddressLine1+" "+a.AddressLine2)
		add(room{"address.number", "NumeroCivico", houseMax}, a.Number)
		add(room{"address.city", "Comune", addressMax}, a.City)
	}
	return list
}

func reasons(in country.Case) []fault.Fault {
	reason := strings.ToUpper(in.Transaction.Reason)
	switch {
	case reason == "" || among(adjustReasons(), reason):
	default:
		return []fault.Fault{fault.At("reason", fault.FieldNotValid,
			"must be TD04 or TD05, which follow from the amounts, or the type of a document that the company issued as a buyer")}
	}
	credit := in.Totals.Gross < 0
	if reason == tdCredit && !credit || reason == tdDebit && credit {
		return []fault.Fault{fault.At("reason", fault.ValidationMatchInvalid,
			"does not fit the amounts: what lowers the original is TD04, what adds to it TD05")}
	}
	return nil
}

var heldForm = regexp.MustCompile(`^(RT0[1-6]:)?([A-E]|[G-I]|[L-Y]|L1|M1|M2|O1|V1|ZO)?$`)

// taxes checks that every line has one rate that FatturaPA can write, or says why
// it has none.
func (c *checker) taxes(in country.Case) []fault.Fault {
	t := in.Transaction
	found := sale.OneTax(t.Items, "a line has one AliquotaIVA")
	for i := range t.Items {
		for j := range t.Items[i].Taxes {
			tax, at := &t.Items[i].Taxes[j], fmt.Sprintf("items.%d.tax_breakdowns.%d", i, j)
			if tax.Rate.RescaleDown(cents).Compare(tax.Rate) != 0 {
				found = append(found, fault.At(at+".rate", fault.FieldNotValid, "must have at most two decimals (AliquotaIVA)"))
			}
			if tax.Withheld() && !heldForm.MatchString(strings.ToUpper(tax.Code)) {
				found = append(found, fault.At(at+".code", fault.FieldNotValid,
					"of a withholding must be CausalePagamento (A, O, …), or TipoRitenuta before it: RT01:A"))
			}
		}
		found = append(found, placed(i, &t.Items[i])...)
		if f, ok := intentFlaw(i, &t.Items[i]); ok {
			found = append(found, f)
		}
	}
	if len(found) > 0 || t.Kind == transaction.Adjustment && t.Customer == nil {
		return found // a correction that names no buyer has the original's: see Prepare
	}
	s := supply{buyer: identify(t.Customer), day: t.Date}
	if k, known := docKindOf(strings.ToUpper(t.Reason)); known {
		s.bought = k.side != selling
	}
	return exemptions(t.Items, classify(c.facts, in), s)
}

// intentForm is the protocol of a declaration of intent (provvedimento AdE
// 293390/2021, 4.1).
var intentForm = regexp.MustCompile(`^[0-9]{17}[-/][0-9]{6}$`)

// intentFlaw finds a line of N3.5 without a declaration of intent, or one that
// cannot be written.
func intentFlaw(i int, item *transaction.Item) (fault.Fault, bool) {
	intent, needed := intentOf(item), false
	if j := item.OnlyTax(); j >= 0 {
		needed = strings.EqualFold(item.Taxes[j].Code, "N3.5")
	}
	at := fmt.Sprintf("items.%d.classification", i)
	switch _, err := time.Parse(time.DateOnly, intent.date); {
	case intent.id != "" && (err != nil || !intentForm.MatchString(intent.id)):
		return fault.At(at, fault.FieldNotValid,
			"of scheme INTENTO must be PROTOCOL-PROGRESSIVE@YYYY-MM-DD: 17 digits, 6 digits, and the day of the receipt"), true
	case intent.id != "" && !needed:
		return fault.At(at, fault.ValidationMatchInvalid, "of scheme INTENTO stands on lines of N3.5 only"), true
	}
	if needed && intent.id == "" {
		return fault.At(at, fault.FieldRequired,
			"must name the declaration of intent of N3.5: scheme INTENTO, code PROTOCOL-PROGRESSIVE@YYYY-MM-DD (00477)"), true
	}
	return fault.Fault{}, false
}

// linesMax is NumeroLinea.
const linesMax = 9999

// sizedFrom is the number of lines from which a document may be too large.
const sizedFrom = 2000

// document makes the document that would be sent, as far as it is known at
// submit, and asks of it what SdI will ask.
func (c *checker) document(in country.Case) []fault.Fault {
	t := in.Transaction
	if len(t.Items) > linesMax {
		return []fault.Fault{fault.At("items", fault.FieldNotValid, "must be at most %d (NumeroLinea)", linesMax)}
	}
	if len(in.Totals.Lines) != len(t.Items) || t.Kind == transaction.Adjustment && t.Customer == nil {
		return nil
	}
	doc := compose(in.Draft(rome()), c.by)
	doc.flaws = nil // said by taxes
	found := doc.judged(todayInRome(in.Now))
	if len(doc.lines) >= sizedFrom || len(t.Attachments) > 0 {
		if size := len(doc.write()); size > sdiwire.FileBytesMax {
			found = append(found, tooLarge(size, t))
		}
	}
	return found
}

// ofCompany finds what the company behind a sale decides: that a flat-rate seller
// charges no VAT, that nobody sells to itself. A correction waits for its original.
func (c *checker) ofCompany(in country.Case, company country.Supplier) []fault.Fault {
	if in.Transaction.Kind != transaction.Invoice || len(in.Totals.Lines) != len(in.Transaction.Items) {
		return nil
	}
	draft := in.Draft(rome())
	draft.Supplier = company
	return compose(draft, c.by).judged("")
}

func tooLarge(size int, t *transaction.Transaction) fault.Fault {
	what := "items"
	if len(t.Attachments) > 0 {
		what = "attachments"
	}
	return fault.At(what, fault.FieldNotValid, "make a file of %d bytes; SdI takes at most %d (00003)", size,
		sdiwire.FileBytesMax)
}

// checkCompany asks for what every document must have.
func checkCompany(s country.Supplier, _ country.Credentials) []fault.Fault {
	var found []fault.Fault
	add := func(field string, code fault.Code, format string, args ...any) {
		found = append(found, fault.At(field, code, format, args...))
	}
	if v := taxid.Check(home, s.TaxNumber); !v.Valid {
		add("tax_information.tax_number", fault.FieldNotValid, "must be an Italian VAT number of 11 digits")
	}
	for _, must := range [][3]string{
		{"legal_name", s.LegalName, "must have letters that FatturaPA can carry"},
		{"address.address_line_1", s.Address.AddressLine1, "must not be empty (Sede)"},
		{"address.city", s.Address.City, "must not be empty (Sede)"},
	} {
		if latin(must[1], addressMax) == "" {
			add(must[0], fault.FieldRequired, "%s", must[2])
		}
	}
	for _, at := range tooLong(s.LegalName, &s.Address) {
		add(at.field, fault.FieldNotValid,
			"must have at most %d characters (%s): send the form in which the register shortens it", at.max, at.name)
	}
	if code := taxid.Bare(s.Address.PostalCode); len(code) != len(noPostalCode) || !text.Digits(code) {
		add("address.postal_code", fault.FieldNotValid, "must have five digits (CAP)")
	}
	if code := taxid.Bare(s.Settings.Text(settingFiscalCode)); code != "" && !fiscalCode(code) {
		add("settings."+settingFiscalCode, fault.FieldNotValid, "must be a codice fiscale with the right check character (00302)")
	}
	if (s.Settings.Text(settingREAOffice) == "") != (s.Settings.Text(settingREANumber) == "") {
		add("settings."+settingREANumber, fault.FieldNotValid, "and rea_office stand together, or not at all (IscrizioneREA)")
	}
	return found
}

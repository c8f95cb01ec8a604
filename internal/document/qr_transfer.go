package document

import (
	"strings"
	"unicode/utf8"

	"tributary/internal/country/amount"
	"tributary/internal/country/text"
	"tributary/internal/document/typeset"
)

// Limits of the code for transfers (European Payments Council, EPC069-12).
const (
	transferNameMax  = 70
	transferTextMax  = 140
	transferBytesMax = 331
	transferMost     = 999_999_999_99 // cents
)

// transfer is the code by which a bank's program fills in a transfer of what is
// open, version 002; "" where there is nothing to transfer in euro.
func (d *content) transfer() string {
	account, open := d.account(), d.open()
	iban := strings.ToUpper(strings.Join(strings.Fields(account.Account), ""))
	if d.currency != "EUR" || d.credits() || d.isPaid() || open <= 0 || open > transferMost || len(iban) < 15 || accountLabel(iban) != "IBAN" {
		return ""
	}
	for _, p := range d.v.Transaction.Payments {
		if p.Type == "OTHER" && p.IBAN == "" {
			return "" // paid in a way of its own
		}
	}
	name := account.Holder
	if name == "" {
		name = d.v.Supplier.LegalName
	}
	structured, free := "", strings.TrimSpace(account.Reference)
	if free == "" {
		free = d.v.Transaction.Number
	}
	if bare := strings.ToUpper(strings.Join(strings.Fields(free), "")); creditorReference(bare) {
		structured, free = bare, ""
	}
	lines := []string{"BCD", "002", "1", "SCT", strings.ToUpper(typeset.Clean(account.BIC)), text.Cut(typeset.Clean(name), transferNameMax), iban,
		"EUR" + amount.Text(open, 2), "", structured, text.Cut(typeset.Clean(free), transferTextMax)}
	code := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	for len(code) > transferBytesMax && len(lines[10]) > 0 { // letters of several bytes
		_, size := utf8.DecodeLastRuneInString(lines[10])
		lines[10] = lines[10][:len(lines[10])-size]
		code = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	}
	if len(code) > transferBytesMax {
		return ""
	}
	return code
}

// creditorReference recognises a structured reference (ISO 11649) by its check digits.
func creditorReference(ref string) bool {
	if len(ref) < 5 || len(ref) > 25 || !strings.HasPrefix(ref, "RF") {
		return false
	}
	rest := 0
	for _, r := range ref[4:] + ref[:4] {
		switch {
		case r >= '0' && r <= '9':
			rest = (rest*10 + int(r-'0')) % 97
		case r >= 'A' && r <= 'Z':
			rest = (rest*100 + int(r-'A') + 10) % 97
		default:
			return false
		}
	}
	return rest == 1
}

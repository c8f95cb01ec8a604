package words

import (
	"cmp"
	"strings"
	"unicode"

	"tributary/internal/country/taxid"
	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// TaxNumberLabel is the name of a party's tax number: the one that everybody in
// its country knows it by (the pack's, else that of countries.txt), where the
// document's script can write it; else the language's word, which tells a VAT
// number by its country's letters. known is the pack's by country; it may be nil.
func (v *Vocabulary) TaxNumberLabel(w *Words, p transaction.Party, known func(country string) string) string {
	number := strings.ToUpper(typeset.Clean(p.TaxNumber))
	code := ""
	if p.Address != nil {
		code = strings.ToUpper(p.Address.CountryCode)
	}
	size := 0
	for _, r := range number {
		if unicode.IsDigit(r) || unicode.IsLetter(r) {
			size++
		}
	}
	if p.Type == transaction.Individual && !taxid.Check(code, number).Valid {
		return w.TaxNumber // a passport, or whatever else a person is known by
	}
	habit := v.countries[code]
	if other := habit.others[size]; other != "" {
		return other
	}
	name := habit.taxNumber
	if known != nil {
		name = cmp.Or(known(code), name)
	}
	if name != "" && (isLatin(name) || typeset.Script(name) == typeset.Script(w.Invoice)) {
		return name
	}
	prefix := code
	if code == "GR" {
		prefix = "EL" // Directive 2006/112/EC, article 215
	}
	if len(code) == 2 && strings.HasPrefix(number, prefix) {
		return w.VATNumber
	}
	return w.TaxNumber
}

func isLatin(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) })
}

// Address writes an address as it stands on an envelope of its country, see
// countries.txt; the country's name stands last, in the language of a tag.
func (v *Vocabulary) Address(a transaction.Address, tag string) []string {
	code := strings.ToUpper(typeset.Clean(a.CountryCode))
	habit, known := v.countries[code]
	if !known {
		habit = customs{house: 'a', address: "S|2|H|Z C|P"}
	}
	format := habit.address
	if habit.native != "" && typeset.Script(a.AddressLine1+a.City) != typeset.Latin {
		format, habit.house = habit.native, 'n'
		if strings.Contains(format, " ") {
			habit.house = 'a'
		}
	}
	province := Join(", ", a.Province, a.Canton, a.Region, a.State)
	if province == typeset.Clean(a.City) { // a province is often named after its capital
		province = ""
	}
	parts := map[rune]string{
		'S': habit.street(a), '2': typeset.Clean(a.AddressLine2), 'H': Join(", ", a.Neighbourhood, a.District),
		'Z': typeset.Clean(a.PostalCode), 'C': typeset.Clean(a.City), 'P': province,
	}
	var lines []string
	used := ""
	for line := range strings.SplitSeq(format, "|") {
		used += line
		if text := fill(line, parts); text != "" {
			lines = append(lines, text)
		}
	}
	for _, part := range "ZHP" { // what a country's habit has no place for is still said
		if !strings.ContainsRune(used, part) && parts[part] != "" {
			lines = append(lines, parts[part])
		}
	}
	if name := v.Country(tag, code); name != "" {
		lines = append(lines, name)
	}
	return lines
}

// street joins street and house number in the country's order.
func (h customs) street(a transaction.Address) string {
	street, number := Join(" ", a.Prefix, a.AddressLine1), Join(" ", a.Number, a.Suffix)
	switch {
	case number == "" || street == "":
		return street + number
	case h.house == 'b':
		return number + " " + street
	case h.house == 'c':
		return street + ", " + number
	case h.house == 'n': // scripts without blanks
		return street + number
	}
	return street + " " + number
}

// fill puts parts into a line of a format. What stands between two parts is
// left out with either of them.
func fill(line string, parts map[rune]string) string {
	var out strings.Builder
	between := ""
	for _, r := range line {
		part, is := parts[r]
		switch {
		case !is:
			between += string(r)
		case part == "":
			between = strings.TrimRight(strings.TrimSuffix(between, "("), " ") // the next part brings a blank of its own
		default:
			if out.Len() > 0 || strings.TrimSpace(between) != "" && between[0] != ',' && between[0] != '-' && between[0] != ' ' {
				out.WriteString(between)
			}
			out.WriteString(part)
			between = ""
		}
	}
	if strings.HasPrefix(between, ")") && strings.Contains(out.String(), "(") {
		out.WriteString(between)
	}
	return strings.TrimSpace(out.String())
}

// Join joins the texts that say something the ones before did not.
func Join(separator string, texts ...string) string {
	var kept []string
	for _, t := range texts {
		if t = typeset.Clean(t); t != "" && (len(kept) == 0 || kept[len(kept)-1] != t) {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, separator)
}

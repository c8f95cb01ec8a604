package country

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AuthorityCode is what one of an authority's own codes means in English, in our
// own words, and what to do about it.
type AuthorityCode struct{ Code, Meaning, Do string }

// ReadCodes reads a table of codes: a line with > says what to do about those
// below it, one with # nothing, and any other is a code and what it means. They
// are grouped so that an advice is written once; they come sorted by code.
func ReadCodes(table string) []AuthorityCode {
	var list []AuthorityCode
	do := ""
	for line := range strings.Lines(table) {
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch first {
		case "", "#":
		case ">":
			do = rest
		default:
			list = append(list, AuthorityCode{first, rest, do})
		}
	}
	slices.SortStableFunc(list, func(a, b AuthorityCode) int {
		return cmp.Or(cmp.Compare(len(a.Code)*number(a.Code), len(b.Code)*number(b.Code)), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// number is 1 for a code of digits alone: such codes are sorted as numbers.
func number(code string) int {
	if strings.Trim(code, "0123456789") == "" {
		return 1
	}
	return 0
}

// Explain finds the authority's codes in what a fault, a warning or an entry of a
// life cycle says, in the order in which they stand there, each once. A text
// without one that is known gives nothing.
func (p Pack) Explain(text string) (found []AuthorityCode) {
	if len(p.Codes) == 0 {
		return nil
	}
	for from := 0; from < len(text); {
		token := text[from:]
		if end := strings.IndexFunc(token, apart); end >= 0 {
			token = token[:end]
		}
		if token == "" {
			_, size := utf8.DecodeRuneInString(text[from:])
			from += size
			continue
		}
		at := slices.IndexFunc(p.Codes, func(c AuthorityCode) bool { return c.Code == token })
		if at >= 0 && p.asCode(text[:from], token, text[from+len(token):]) && !slices.Contains(found, p.Codes[at]) {
			found = append(found, p.Codes[at])
		}
		from += len(token)
	}
	return found
}

func apart(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// asCode reports whether a word that is equal to a code is meant as one. Packs
// write "CODE: text", alone or after a comma, a colon or a semicolon; AEAT itself
// writes "Codigo[4102]"; KSeF "440 Duplikat faktury", after its name, and its
// longer codes after a semicolon. A name such as CFDI40119 or SCHEMA_VIOLATION is
// a code wherever it stands, a number elsewhere is an amount, a day or a part of
// some number.
func (p Pack) asCode(before, token, after string) bool {
	digits := strings.IndexFunc(token, unicode.IsDigit) >= 0
	named := strings.IndexFunc(token, unicode.IsUpper) >= 0
	if named && (digits || strings.Contains(token, "_")) {
		return true
	}
	lead := strings.TrimRight(before, " ")
	begins := lead == "" || lead != before && strings.ContainsRune(",:;", rune(lead[len(lead)-1]))
	switch {
	case strings.HasSuffix(before, "["):
		return strings.HasPrefix(after, "]") && len(before) > 1 && unicode.IsLetter(rune(before[len(before)-2]))
	case !begins:
		return false
	case strings.HasPrefix(after, ": "), strings.HasPrefix(after, " - ") && lead == "":
		return true
	case named:
		return after == "" || after[0] == ' '
	case !digits || !capitalised(after):
		return false
	case strings.HasSuffix(lead, ";"):
		return len(token) >= 5
	}
	return lead == "" || p.sender(strings.TrimSuffix(lead, ":"))
}

// capitalised reports whether a sentence begins after a space: no unit of money,
// which is written in capitals or small.
func capitalised(after string) bool {
	if !strings.HasPrefix(after, " ") {
		return false
	}
	first, size := utf8.DecodeRuneInString(after[1:])
	second, _ := utf8.DecodeRuneInString(after[1+size:])
	return unicode.IsUpper(first) && unicode.IsLower(second)
}

// sender reports whether a text ends in the name of the authority's system.
func (p Pack) sender(before string) bool {
	at := strings.LastIndexFunc(before, apart)
	name := before[at+1:]
	return name != "" && p.Facts.Authority != nil && slices.Contains(strings.Fields(p.Facts.Authority.System), name)
}

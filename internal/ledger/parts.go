package ledger

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Parts are what numbers, ids and names are found by when only a piece of them
// is known: each is the rest of a text from the beginning of one of its words,
// without accents, blanks and punctuation. A search is a prefix of one, so the
// order of the index answers it: "0815", "2026-08" and "crem" find
// INV-2026-0815 and Café Crème.
const (
	partBytesMax = 24 // what is written beyond that does not narrow
	partsMax     = 6  // of one text
	partMin      = 2  // letters and digits that a search needs
)

// plainLetters are letters that no decomposition turns into a plain one.
var plainLetters = strings.NewReplacer("Ł", "L", "Ø", "O", "Đ", "D", "Ð", "D", "ẞ", "SS", "Æ", "AE", "Œ", "OE", "Þ",
	"TH", "Ħ", "H", "Ŧ", "T", "Ŋ", "N")

// fold is a text without case and accents.
func fold(text string) string {
	upper := strings.ToUpper(strings.ReplaceAll(text, "ß", "ss"))
	bare := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(upper))
	return plainLetters.Replace(bare)
}

// partOf is the form in which a piece of a text is stored and looked for.
func partOf(text string) string {
	part := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, fold(text))
	return strings.ToValidUTF8(part[:min(len(part), partBytesMax)], "")
}

// addParts adds the rest of a text from each of its words on.
func (s *termSet) addParts(text string) {
	folded, n := fold(text), 0
	before := ' '
	for i, r := range folded {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		begins := word && !(unicode.IsLetter(before) || unicode.IsDigit(before)) || unicode.IsDigit(r) && unicode.IsLetter(before)
		before = r
		if !begins {
			continue
		}
		rest := partOf(folded[i:])
		s.addPart(rest)
		s.addPart(strings.TrimLeft(rest, "0")) // people leave leading zeros out
		if n++; n == partsMax {
			return
		}
	}
}

func (s *termSet) addPart(part string) {
	if len(part) >= partMin {
		s.add(part)
	}
}

// after is the first text behind all that begin with a part.
func after(part string) string { return part + "\U0010FFFF" }

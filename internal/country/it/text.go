package it

import (
	"strings"
	"unicode"

	"github.com/invopop/gobl/num"
	"golang.org/x/text/unicode/norm"

	"tributary/internal/country/amount"
	"tributary/internal/country/text"
)

// FatturaPA has no letters beyond Latin-1, and only those of ASCII in numbers
// and codes. Names from elsewhere are spelled with what there is: a buyer whose
// name is Cyrillic must be named all the same.

// latin is a text as FatturaPA carries it: letters of Latin-1, single blanks, at
// most max characters.
func latin(words string, max int) string { return spelled(words, max, unicode.MaxLatin1) }

// ascii is the same with the letters of ASCII alone.
func ascii(words string, max int) string { return spelled(words, max, unicode.MaxASCII) }

func spelled(words string, max int, most rune) string {
	var out strings.Builder
	for _, r := range norm.NFC.String(words) {
		spell(&out, r, most)
	}
	return text.Words(out.String(), max, unicode.IsSpace)
}

// pieces cuts a text at blanks into parts of at most max characters.
func pieces(words string, max int) (list []string) {
	for words != "" {
		head := text.Words(words, max, unicode.IsSpace)
		if len(head) < len(words) {
			if at := strings.LastIndexByte(head, ' '); at > 0 && words[len(head)] != ' ' {
				head = head[:at]
			}
		}
		list = append(list, head)
		words = strings.TrimLeft(words[len(head):], " ")
	}
	return list
}

// spell writes a character with those up to a limit; what has no spelling is left out.
func spell(out *strings.Builder, r, most rune) {
	switch {
	case r <= ' ' || r == 0x7f || r >= 0x80 && r <= 0xa0 || unicode.Is(unicode.Zs, r):
		out.WriteByte(' ')
		return
	case r <= most:
		out.WriteRune(r)
		return
	}
	if known, ok := spellings[unicode.ToLower(r)]; ok {
		switch {
		case unicode.IsUpper(r) && len(known) > 0:
			known = strings.ToUpper(known[:1]) + known[1:]
		}
		out.WriteString(known)
		return
	}
	for _, part := range norm.NFKD.String(string(r)) {
		if part != r && (part <= most || spellings[unicode.ToLower(part)] != "") {
			spell(out, part, most)
		}
	}
}

// spellings are of what does not come apart into Latin letters and marks.
var spellings = func() map[rune]string {
	all := map[rune]string{
		'€': "EUR", '£': "GBP", '¥': "JPY", '™': "TM", '…': "...", '•': "-", '·': "-", '–': "-", '—': "-", '‑': "-",
		'‐': "-", '−': "-", '×': "x", '÷': "/",
		'“': "\"", '”': "\"", '„': "\"", '«': "\"", '»': "\"", '‘': "'", '’': "'", '‚': "'", '‹': "'", '›': "'", '′': "'",
		'″': "\"", '´': "'",
		'œ': "oe", 'æ': "ae", 'ø': "o", 'å': "aa", 'ß': "ss", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ħ': "h", 'ı': "i",
		'ŋ': "n", '№': "N.", '°': "o", '§': "par.", '©': "(c)", '®': "(R)", '½': "1/2", '¼': "1/4", '¾': "3/4",
	}
	letters := func(from []rune, to ...string) {
		for i, r := range from {
			all[r] = to[i]
		}
	}
	letters([]rune("абвгдежзийклмнопрстуфхцчшщъыьэюяёєіїґђјљњћџ"), "a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k",
		"l", "m", "n", "o", "p", "r", "s", "t", "u", "f", "kh", "ts", "ch", "sh", "shch",
		"", "y", "", "e", "yu", "ya", "e", "ye", "i", "yi", "g", "dj", "j", "lj", "nj", "c", "dz")
	letters([]rune("αβγδεζηθικλμνξοπρσςτυφχψω"), "a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x",
		"o", "p", "r", "s", "s", "t", "y", "f", "ch", "ps", "o")
	return all
}()

const (
	cents         = 2 // decimals of amounts
	priceDecimals = 8
)

// euros writes cents.
func euros(minor int64) string { return amount.Text(minor, cents) }

// percent is a rate with two decimals.
func percent(rate num.Amount) string { return rate.Rescale(cents).String() }

package it

import (
	"html"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"github.com/invopop/gobl/num"
	"golang.org/x/text/unicode/norm"
)

// FatturaPA has no letters beyond Latin-1, and only those of ASCII in numbers
// and codes. Names from elsewhere are spelled with what there is: a buyer whose
// name is Cyrillic must be named all the same.

// latin is a text as FatturaPA carries it: letters of Latin-1, single blanks, at
// most max characters.
func latin(text string, max int) string {
	var out strings.Builder
	for _, r := range norm.NFC.String(text) {
		spell(&out, r, unicode.MaxLatin1)
	}
	return cut(out.String(), max)
}

// ascii is the same with the letters of ASCII alone.
func ascii(text string, max int) string {
	var out strings.Builder
	for _, r := range norm.NFC.String(text) {
		spell(&out, r, unicode.MaxASCII)
	}
	return cut(out.String(), max)
}

// cut joins blanks and shortens.
func cut(text string, max int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > max {
		text = strings.TrimRight(string(runes[:max]), " ")
	}
	return text
}

// pieces cuts a text at blanks into parts of at most max characters.
func pieces(text string, max int) (list []string) {
	for text != "" {
		head := cut(text, max)
		if len(head) < len(text) {
			if at := strings.LastIndexByte(head, ' '); at > 0 && text[len(head)] != ' ' {
				head = head[:at]
			}
		}
		list = append(list, head)
		text = strings.TrimLeft(text[len(head):], " ")
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
		'€': "EUR", '£': "GBP", '¥': "JPY", '™': "TM", '…': "...", '•': "-", '·': "-", '–': "-", '—': "-", '‑': "-", '‐': "-", '−': "-", '×': "x", '÷': "/",
		'“': "\"", '”': "\"", '„': "\"", '«': "\"", '»': "\"", '‘': "'", '’': "'", '‚': "'", '‹': "'", '›': "'", '′': "'", '″': "\"", '´': "'",
		'œ': "oe", 'æ': "ae", 'ø': "o", 'å': "aa", 'ß': "ss", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŋ': "n", '№': "N.", '°': "o", '§': "par.", '©': "(c)", '®': "(R)", '½': "1/2", '¼': "1/4", '¾': "3/4",
	}
	letters := func(from []rune, to ...string) {
		for i, r := range from {
			all[r] = to[i]
		}
	}
	letters([]rune("абвгдежзийклмнопрстуфхцчшщъыьэюяёєіїґђјљњћџ"), "a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s", "t", "u", "f", "kh", "ts", "ch", "sh", "shch",
		"", "y", "", "e", "yu", "ya", "e", "ye", "i", "yi", "g", "dj", "j", "lj", "nj", "c", "dz")
	letters([]rune("αβγδεζηθικλμνξοπρσςτυφχψω"), "a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "s", "t", "y", "f", "ch", "ps", "o")
	return all
}()

func digits(text string) bool {
	return text != "" && strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// plain is a note without its HTML.
func plain(note string) string {
	if strings.ContainsAny(note, "<&") {
		var out strings.Builder
		for inside := false; note != ""; note = note[1:] {
			switch c := note[0]; {
			case c == '<':
				inside = true
				out.WriteByte(' ')
			case c == '>' && inside:
				inside = false
			case !inside:
				out.WriteByte(c)
			}
		}
		note = html.UnescapeString(out.String())
	}
	return note
}

const (
	cents         = 2 // decimals of amounts
	priceDecimals = 8
)

// euros writes cents.
func euros(minor int64) string { return fixed(big.NewInt(minor), cents) }

// fixed writes an integer of which some digits stand behind the point.
func fixed(n *big.Int, decimals int) string {
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	text := new(big.Int).Abs(n).String()
	if short := decimals + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	return sign + text[:len(text)-decimals] + "." + text[len(text)-decimals:]
}

// number is a decimal exact to eight places, as prices and quantities are written.
type number struct{ units *big.Int } // of 10⁻⁸

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func ofCents(minor int64) number {
	return number{new(big.Int).Mul(big.NewInt(minor), power(priceDecimals-cents))}
}

func ofAmount(a num.Amount) number {
	return number{new(big.Int).Mul(big.NewInt(a.Value()), power(priceDecimals-int(min(a.Exp(), priceDecimals))))}
}

// shared is cents divided by a quantity, rounded half away from zero.
func shared(minor int64, quantity num.Amount) number {
	if quantity.Value() == 0 {
		return ofCents(minor)
	}
	top := new(big.Int).Mul(big.NewInt(minor), power(priceDecimals-cents+int(quantity.Exp())))
	return number{halfUp(top, big.NewInt(quantity.Value()))}
}

// halfUp divides and rounds half away from zero.
func halfUp(top, bottom *big.Int) *big.Int {
	half := new(big.Int).Rsh(new(big.Int).Abs(bottom), 1)
	if top.Sign()*bottom.Sign() < 0 {
		half.Neg(half)
	}
	if bottom.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Int).Quo(new(big.Int).Add(top, half), bottom)
}

// String has at least two decimals.
func (n number) String() string {
	text := fixed(n.units, priceDecimals)
	for strings.HasSuffix(text, "0") && text[len(text)-cents-1] != '.' {
		text = text[:len(text)-1]
	}
	return text
}

func (n number) rat() *big.Rat { return new(big.Rat).SetFrac(n.units, power(priceDecimals)) }

// percent is a rate with two decimals.
func percent(rate num.Amount) string { return rate.Rescale(cents).String() }

func itoa(n int) string { return strconv.Itoa(n) }

func negated(n number) number { return number{new(big.Int).Neg(n.units)} }

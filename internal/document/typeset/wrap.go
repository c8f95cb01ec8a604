package typeset

import (
	"slices"
	"strings"
	"unicode"
)

// Wrap breaks a text into lines of at most a width in thousandths of an em:
// where the Unicode rules for line breaking let it (UAX #14), and inside a word
// where it must. A word that is broken between letters ends in a soft hyphen,
// which [Setter.Line] draws. A text always gives a line, an empty one none.
// Callers must not change the lines.
func (s *Setter) Wrap(f Font, text string, limit int) []string {
	if text == "" {
		return nil
	}
	if s.Width(f, text) <= limit {
		return []string{text}
	}
	// What a law or a client wants said stands on all their documents: lines are
	// kept, and like those of [Setter.Line] they are copies.
	lines, _ := s.broken.GetOwn(wrapKey{lineKey{f, text}, limit}, func() (wrapKey, brokenText, error) {
		f.Lang = strings.Clone(f.Lang)
		own := strings.Clone(text)
		w := wrapper{setter: s, font: f, limit: limit, blank: s.Width(f, " ")}
		for _, part := range s.Parts(own) {
			w.add(part)
		}
		w.end()
		return wrapKey{lineKey{f, own}, limit}, slices.Clip(w.lines), nil
	})
	return lines
}

// wrapKey is a text to be broken into lines of a width.
type wrapKey struct {
	lineKey
	limit int
}

// brokenText is a text in lines.
type brokenText []string

// Size is the memory that kept lines take beside their text, roughly.
func (b brokenText) Size() int {
	total := 128
	for _, line := range b {
		total += 16 + 2*len(line)
	}
	return total
}

// Parts are the pieces of a text between which a line may end, each with the
// blanks that follow it.
func (s *Setter) Parts(text string) []string {
	sh := s.shaper()
	defer s.shapers.Put(sh)
	sh.breaks.Init([]rune(text))
	var out []string
	for lines := sh.breaks.LineIterator(); lines.Next(); {
		out = append(out, string(lines.Line().Text))
	}
	return out
}

// graphemes returns where the signs of a text end, in bytes (UAX #29).
func (s *Setter) graphemes(text string) []int {
	sh := s.shaper()
	defer s.shapers.Put(sh)
	sh.breaks.Init([]rune(text))
	var ends []int
	at := 0
	for signs := sh.breaks.GraphemeIterator(); signs.Next(); {
		at += len(string(signs.Grapheme().Text))
		ends = append(ends, at)
	}
	return ends
}

// wrapper fills lines.
type wrapper struct {
	setter *Setter
	font   Font
	limit  int
	blank  int // width of a blank

	lines []string
	line  strings.Builder
	width int // of line
	gap   int // blanks at its end
}

func (w *wrapper) add(part string) {
	word := strings.TrimRight(part, " ")
	blanks := len(part) - len(word)
	width := w.setter.Width(w.font, word)
	if w.line.Len() > 0 && w.width+w.gap*w.blank+width > w.limit {
		w.end()
	}
	for width > w.limit && w.line.Len() == 0 {
		head, tail := w.setter.split(w.font, word, w.limit)
		if tail == "" {
			break
		}
		w.lines = append(w.lines, head)
		word = tail
		width = w.setter.Width(w.font, word)
	}
	if w.line.Len() > 0 {
		w.line.WriteString(strings.Repeat(" ", w.gap))
		w.width += w.gap * w.blank
	}
	w.line.WriteString(word)
	w.width += width
	w.gap = blanks
}

func (w *wrapper) end() {
	if w.line.Len() > 0 {
		w.lines = append(w.lines, w.line.String())
	}
	w.line.Reset()
	w.width, w.gap = 0, 0
}

// split breaks a word that is wider than a line; tail is empty for one sign.
func (s *Setter) split(f Font, word string, limit int) (head, tail string) {
	ends := s.graphemes(word)
	if len(ends) < 2 {
		return word, ""
	}
	hyphen := s.Width(f, "-")
	fits := func(n int) bool { // the first n signs, with a hyphen
		return s.Width(f, word[:ends[n-1]])+hyphen <= limit
	}
	low, high := 1, len(ends)-1 // binary search: prefixes grow
	for low < high {
		middle := (low + high + 1) / 2
		if fits(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	n, hyphenated := bestSplit(word, ends, low)
	head, tail = word[:ends[n-1]], word[ends[n-1]:]
	if hyphenated {
		head += string(softHyphen)
	}
	return head, tail
}

// bestSplit looks for a good place to break a word at or before its n-th sign:
// after punctuation, where a syllable ends, or where letters and figures meet.
func bestSplit(word string, ends []int, n int) (at int, hyphenated bool) {
	sign := func(i int) rune { // the first character of the i-th sign
		from := 0
		if i > 0 {
			from = ends[i-1]
		}
		for _, r := range word[from:ends[i]] {
			return r
		}
		return 0
	}
	const letters = 3 // that stay together at either side
	earliest := max(1, n*6/10)
	for i := n; i >= earliest; i-- {
		before, after := sign(i-1), sign(i)
		if unicode.IsPunct(before) || unicode.IsSymbol(before) ||
			unicode.IsDigit(before) != unicode.IsDigit(after) && !unicode.IsPunct(after) {
			return i, false
		}
		if after >= 0x0E40 && after <= 0x0E44 { // Thai vowels that begin a syllable
			return i, false
		}
		if i >= letters && len(ends)-i >= letters && syllable(before, after, sign(i+1), sign(min(i+2, len(ends)-1))) {
			return i, true
		}
	}
	return n, alphabetic(sign(n-1)) && alphabetic(sign(n)) && n >= 2
}

// syllable reports whether a word may be broken before the second of four letters:
// one consonant goes with the vowel that follows, and so do two that are spoken
// as one (ch, tr, gn); nothing comes between those.
func syllable(before, first, second, third rune) bool {
	if !alphabetic(before) || !alphabetic(first) || vowel(first) || together(before, first) ||
		unicode.ToLower(first) == 'h' && !vowel(before) {
		return false
	}
	if unicode.ToLower(before) == 's' && together(first, second) && unicode.ToLower(second) == 'h' {
		return false // sch
	}
	return vowel(second) || together(first, second) && vowel(third)
}

// together reports consonants that begin a syllable in all languages that have
// them: those that are one sound, and a stop with the l or r behind it.
func together(first, second rune) bool {
	first, second = unicode.ToLower(first), unicode.ToLower(second)
	pair := string([]rune{first, second})
	return strings.Contains(" ch ck cs cz dz gh gn kh lj nj ph qu rz sh sz th zs ", " "+pair+" ") ||
		strings.ContainsRune("bcdfgkptvбвгдкптфхβγδθκπτφχ", first) && strings.ContainsRune("lrлрλρ", second) &&
			pair != "tl" && pair != "dl"
}

// alphabetic reports letters of scripts that hyphenate.
func alphabetic(r rune) bool {
	return unicode.IsLetter(r) && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

func vowel(r rune) bool {
	return strings.ContainsRune("aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœąęěőűůıαεηιουωάέήίόύώаеиоуыэюяёіїєў", unicode.ToLower(r))
}

package typeset

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Clean makes a text of a client safe to draw: composed (NFC), one blank for
// every kind of white space, and without characters that have no form of their
// own: controls, surrogates, noncharacters, tags, and the marks that turn the
// direction of text, with which "gpj.exe" can be made to read "exe.jpg" and an
// amount to read backwards. Joiners and variation selectors stay where they
// change a letter: Persian, Sinhala and Japanese names need them.
func Clean(s string) string {
	if isASCII(s) {
		return strings.TrimSpace(s)
	}
	if isTidy(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	blank := true // drops leading blanks
	before := rune(0)
	for _, r := range norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD")) {
		switch {
		case r == '\u00A0' || r == '\u202F': // no-break blanks stay
			out.WriteRune('\u00A0')
			blank = false
		case unicode.IsSpace(r):
			if !blank {
				out.WriteByte(' ')
			}
			blank = true
		case invisible(r) && !bound(before, r):
			continue
		default:
			out.WriteRune(r)
			blank = false
		}
		before = r
	}
	return strings.TrimRight(out.String(), " ")
}

// isASCII reports text of printable ASCII alone.
func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7E {
			return false
		}
	}
	return true
}

// isTidy reports text that is clean as it stands: Latin letters, which are
// composed, with single blanks between words. Most names are.
func isTidy(s string) bool {
	before := ' '
	for _, r := range s {
		switch {
		case r == ' ' && before == ' ':
			return false
		case r >= 0x20 && r <= 0x7E, r >= 0xA0 && r <= 0x17F && r != softHyphen:
		default:
			return false
		}
		before = r
	}
	return before != ' '
}

// CleanLines is Clean for text whose line breaks matter.
func CleanLines(s string) []string {
	if strings.ContainsAny(s, "\r\u2028\u2029") {
		s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s)
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return lines
}

// bound reports an invisible character that belongs to the letter before it.
func bound(before, r rune) bool {
	switch {
	case r == zeroWidthNonJoiner || r == zeroWidthJoiner:
		return before >= 0x600 && before < 0x2000 && (unicode.IsLetter(before) || unicode.IsMark(before))
	case r >= 0xE0100 && r <= 0xE01EF:
		return unicode.Is(unicode.Han, before)
	}
	return false
}

const (
	zeroWidthNonJoiner = '\u200C'
	zeroWidthJoiner    = '\u200D'
	softHyphen         = '\u00AD'
	rightToLeftMark    = '\u200F'
	leftToRightMark    = '\u200E'
)

// invisible reports characters that no document shows.
func invisible(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r < 0xA0: // controls
		return true
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x180E, r == 0x3164,
		r == 0xFFA0:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x206F: // joiners, direction
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r == 0xFEFF, r >= 0xFFF0 && r <= 0xFFFB: // variation, byte order, annotation
		return true
	case r >= 0xFDD0 && r <= 0xFDEF, r&0xFFFE == 0xFFFE: // noncharacters
		return true
	case r >= 0xE0000 && r <= 0xE0FFF: // tags, variation
		return true
	}
	return unicode.Is(unicode.Cs, r) || unicode.Is(unicode.Co, r)
}

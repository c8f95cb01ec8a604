package document

import (
	"unicode"

	"tributary/internal/document/typeset"
)

// Paragraph is one of a note as it will be drawn.
type Paragraph struct {
	Text, Marker string
	Level        int
}

// ReadNote sanitises a note and reads its paragraphs.
func ReadNote(raw string) (all []Paragraph) {
	for _, p := range readNote(notePolicy(), raw) {
		all = append(all, Paragraph{string(p.text), p.marker, p.level})
	}
	return all
}

// Hidden reports characters that no document may show.
func Hidden(r rune) bool {
	bound := r == 0x200C || r == 0x200D || r >= 0xE0100 && r <= 0xE01EF // stay with some letters
	return unicode.IsControl(r) || !bound && !unicode.IsSpace(r) && typeset.Clean("x"+string(r)) == "x"
}

// Limits of a note.
const (
	NoteBytesMax  = noteBytesMax
	NoteLevelsMax = noteLevelsMax
)

// InkOf is the colour in which text is drawn that a client wants in a colour,
// and its contrast on white in hundredths.
func InkOf(text string) (ink [3]uint8, contrast int) {
	c := readable(parseColor(text, defaultInk))
	return c, c.contrastOnWhite()
}

// ContrastMin is what can be read.
const ContrastMin = contrastMin

package es

import (
	"strings"

	"tributary/internal/country/text"
	"tributary/internal/official/aeatwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// Names of the service, as this package spells them.
const (
	dayForm     = aeatwire.DayForm
	instantForm = aeatwire.InstantForm
	batchMax    = aeatwire.BatchMax

	stateCorrect  = aeatwire.StateCorrect
	stateFlawed   = aeatwire.StateFlawed
	stateRefused  = aeatwire.StateRefused
	stateAnnulled = aeatwire.StateAnnulled
)

// Limits of what AEAT's answers may be. A list of 10,000 records has some
// 300,000 elements.
func limits() xmltree.Limits { return xmltree.Limits{Bytes: listBytesMax, Depth: 32} }

// newWriter writes one element a line, nothing indented, so that equal content
// is equal bytes.
func newWriter(bytes int) *xmltree.Writer {
	w := xmltree.NewWriter(bytes)
	w.Lines = true
	return w
}

// flag is S where a statement holds and nothing where it does not.
func flag(holds bool) string {
	if holds {
		return "S"
	}
	return ""
}

// envelope writes a call.
func envelope(bytes int, body func(*xmltree.Writer)) []byte {
	w := newWriter(bytes)
	w.Declare()
	soap.Message{Version: soap.V11, Body: body}.WriteTo(w)
	return w.Bytes()
}

// unprintable are control characters, the marks that turn the direction of
// text, and what Unicode has no character for.
func unprintable(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
		r >= 0xd800 && r <= 0xdfff, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe, r == 0xfffd:
		return true
	}
	return false
}

// plain is text as it goes into a record: no unprintable characters, no blanks
// at the ends, at most max characters.
func plain(words string, max int) string {
	words = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, words))
	return strings.TrimSpace(text.Cut(words, max))
}

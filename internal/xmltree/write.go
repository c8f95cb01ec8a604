package xmltree

import (
	"strings"
	"unicode/utf8"
)

// Declaration is how documents written here begin.
const Declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// Writer writes a document straight into bytes, for documents on a hot path
// where a tree would cost more than the text. What it writes is well-formed:
// elements are closed from a stack, texts and values are escaped, and
// characters that XML cannot carry become blanks. Names are the caller's own
// and are not checked. Equal calls give equal bytes.
//
// An attribute of an element is a pair of name and value; namespaces are
// declared as attributes.
type Writer struct {
	// Lines puts every tag that holds elements, and every leaf, on a line of
	// its own; nothing is indented.
	Lines bool

	out  []byte
	open []string
}

// NewWriter begins with room for that many bytes.
func NewWriter(bytes int) *Writer { return &Writer{out: make([]byte, 0, bytes)} }

// Declare writes the XML declaration.
func (w *Writer) Declare() { w.out = append(w.out, Declaration...) }

// Start opens an element.
func (w *Writer) Start(name string, pairs ...string) {
	w.tag(name, pairs)
	w.line()
	w.open = append(w.open, name)
}

// End closes the element that was opened last.
func (w *Writer) End() {
	last := len(w.open) - 1
	w.closing(w.open[last])
	w.open = w.open[:last]
}

// Leaf writes an element with text, which may be empty.
func (w *Writer) Leaf(name, text string, pairs ...string) {
	w.tag(name, pairs)
	w.out = AppendText(w.out, text)
	w.closing(name)
}

// Maybe writes a leaf that is left out when it has no text.
func (w *Writer) Maybe(name, text string, pairs ...string) {
	if text != "" {
		w.Leaf(name, text, pairs...)
	}
}

// Leaves writes leaves in a row, each a name and its text. One whose name begins
// with a question mark is left out when it has no text.
func (w *Writer) Leaves(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, optional := strings.CutPrefix(pairs[i], "?"); optional {
			w.Maybe(name, pairs[i+1])
		} else {
			w.Leaf(name, pairs[i+1])
		}
	}
}

// Group writes an element of nothing but [Writer.Leaves].
func (w *Writer) Group(name string, pairs ...string) {
	w.Start(name)
	w.Leaves(pairs...)
	w.End()
}

// Text writes text into the open element.
func (w *Writer) Text(text string) { w.out = AppendText(w.out, text) }

// Raw writes XML that is known to be well-formed as it is.
func (w *Writer) Raw(xml []byte) { w.out = append(w.out, xml...) }

// Element writes a tree.
func (w *Writer) Element(e *Element) {
	w.out = e.AppendTo(w.out)
	w.line()
}

// Bytes is everything that was written. All elements must be closed.
func (w *Writer) Bytes() []byte { return w.out }

func (w *Writer) tag(name string, pairs []string) {
	w.out = append(append(w.out, '<'), name...)
	for i := 0; i+1 < len(pairs); i += 2 {
		w.out = append(append(append(w.out, ' '), pairs[i]...), '=', '"')
		w.out = append(AppendValue(w.out, pairs[i+1]), '"')
	}
	w.out = append(w.out, '>')
}

func (w *Writer) closing(name string) {
	w.out = append(append(append(w.out, '<', '/'), name...), '>')
	w.line()
}

func (w *Writer) line() {
	if w.Lines {
		w.out = append(w.out, '\n')
	}
}

// Bytes is the document with its declaration: what was read, written by us.
func (d *Document) Bytes() []byte {
	out := append(make([]byte, 0, len(d.Source)+len(Declaration)), Declaration...)
	for _, i := range d.Before {
		out = append(i.appendTo(out), '\n')
	}
	out = d.Root.AppendTo(out)
	for _, i := range d.After {
		out = i.appendTo(append(out, '\n'))
	}
	return out
}

func (i Instruction) appendTo(out []byte) []byte {
	out = append(append(out, "<?"...), i.Target...)
	if i.Content != "" {
		out = append(append(out, ' '), i.Content...)
	}
	return append(out, "?>"...)
}

// AppendTo writes the element and what is below it, without its Tail and
// without white space of its own: first the namespaces it declares, then its
// attributes, both in their order; an element without content as <name/>.
func (e *Element) AppendTo(out []byte) []byte {
	out = appendName(append(out, '<'), e.Prefix, e.Local)
	for i := range e.Spaces {
		out = append(out, " xmlns"...)
		if e.Spaces[i].Prefix != "" {
			out = append(append(out, ':'), e.Spaces[i].Prefix...)
		}
		out = append(AppendValue(append(out, '=', '"'), e.Spaces[i].Space), '"')
	}
	for i := range e.Attrs {
		out = appendName(append(out, ' '), e.Attrs[i].Prefix, e.Attrs[i].Local)
		out = append(AppendValue(append(out, '=', '"'), e.Attrs[i].Value), '"')
	}
	if len(e.Children) == 0 && e.Text == "" {
		return append(out, '/', '>')
	}
	out = AppendText(append(out, '>'), e.Text)
	for _, c := range e.Children {
		out = AppendText(c.AppendTo(out), c.Tail)
	}
	out = appendName(append(out, '<', '/'), e.Prefix, e.Local)
	return append(out, '>')
}

func appendName(out []byte, prefix, local string) []byte {
	if prefix != "" {
		out = append(append(out, prefix...), ':')
	}
	return append(out, local...)
}

// AppendText escapes text for the inside of an element. A carriage return would
// come back as a line feed, so it is a reference. What XML has no character for
// becomes a blank.
func AppendText(out []byte, text string) []byte {
	return appendEscaped(out, text, false)
}

// AppendValue escapes text for an attribute in double quotes. White space other
// than blanks would come back as blanks, so it is a reference.
func AppendValue(out []byte, text string) []byte {
	return appendEscaped(out, text, true)
}

func appendEscaped(out []byte, text string, attribute bool) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			ch, size := utf8.DecodeRuneInString(text[i:])
			if ch == utf8.RuneError && size == 1 || !isChar(ch) {
				out = append(out, ' ')
			} else {
				out = append(out, text[i:i+size]...)
			}
			i += size
			continue
		}
		i++
		switch {
		case c == '&':
			out = append(out, "&amp;"...)
		case c == '<':
			out = append(out, "&lt;"...)
		case c == '>':
			out = append(out, "&gt;"...)
		case c == '"' && attribute:
			out = append(out, "&quot;"...)
		case c == '\r':
			out = append(out, "&#13;"...)
		case c == '\n' && attribute:
			out = append(out, "&#10;"...)
		case c == '\t' && attribute:
			out = append(out, "&#9;"...)
		case c < ' ' && c != '\n' && c != '\t':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return out
}

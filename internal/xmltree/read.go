package xmltree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what is read. A zero is the default beside it.
type Limits struct {
	Bytes      int // BytesMax
	Depth      int // DepthMax
	Elements   int // ElementsMax
	Attributes int // AttributesMax, of one element, declarations of namespaces included

	// Instructions lets processing instructions stand around the root, Inside also
	// in it, where they are no part of the tree: Italian invoices name their style
	// sheet so, some of them behind the root's start tag.
	Instructions, Inside bool
}

// What a reader takes unless it is told otherwise.
const (
	BytesMax      = 32 << 20
	DepthMax      = 64
	ElementsMax   = 400_000
	AttributesMax = 128

	attributesAll = 1_000_000 // of all elements together: each takes ten times its bytes

	spacesMax  = 256 // namespaces in scope: each name is looked up among them
	whiteSpace = " \t\r\n"
)

// Kinds of errors, to be told apart with errors.Is.
var (
	ErrSyntax      = errors.New("the document is not well-formed XML")
	ErrLimit       = errors.New("the document is too large")
	ErrDoctype     = errors.New("the document has a document type")
	ErrEncoding    = errors.New("the document is not in UTF-8")
	ErrInstruction = errors.New("the document has a processing instruction")
)

// Error says why a document cannot be read, and where.
type Error struct {
	Kind         error // one of the above
	Reason       string
	Offset       int
	Line, Column int // from 1, the column in characters
}

func (e *Error) Error() string {
	return fmt.Sprintf("reading XML, line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

func (e *Error) Unwrap() error { return e.Kind }

// Read reads a document within the default limits.
func Read(source []byte) (*Document, error) { return Limits{}.Read(source) }

// Read reads a document within the limits.
func (l Limits) Read(source []byte) (*Document, error) {
	r := &reader{limits: l.filled(), doc: &Document{}}
	if len(source) > r.limits.Bytes {
		return nil, &Error{Kind: ErrLimit, Reason: fmt.Sprintf("the document has more than %d bytes", r.limits.Bytes),
			Line: 1, Column: 1}
	}
	text := string(source)
	if rest, marked := strings.CutPrefix(text, "\uFEFF"); marked {
		text, r.doc.ByteOrderMark = rest, true
	}
	r.in, r.doc.Source = text, text
	if err := r.document(); err != nil {
		return nil, err
	}
	return r.doc, nil
}

func (l Limits) filled() Limits {
	fill := func(field *int, standard int) {
		if *field == 0 {
			*field = standard
		}
	}
	fill(&l.Bytes, BytesMax)
	fill(&l.Depth, DepthMax)
	fill(&l.Elements, ElementsMax)
	fill(&l.Attributes, AttributesMax)
	return l
}

type reader struct {
	limits Limits
	doc    *Document
	in     string
	at     int

	top    *Element // the element that is open
	depth  int
	count  int
	attrs  int       // of all elements
	scope  []Binding // namespaces, the innermost last
	counts []int     // how many each open element declared
	passed int       // instructions inside of the root
	slab   []Element // elements are allocated by the dozen

	pending string // text since the last tag: one piece without a copy,
	pieces  []byte // several of them in linear time
}

func (r *reader) fail(kind error, format string, a ...any) error {
	return r.failAt(r.at, kind, format, a...)
}

func (r *reader) failAt(at int, kind error, format string, a ...any) error {
	line, column := position(r.in, at)
	return &Error{Kind: kind, Reason: fmt.Sprintf(format, a...), Offset: at, Line: line, Column: column}
}

func (r *reader) document() error {
	if err := r.characters(); err != nil {
		return err
	}
	if strings.HasPrefix(r.in, "<?xml") && len(r.in) > 5 && isSpace(r.in[5]) {
		if err := r.declaration(); err != nil {
			return err
		}
	}
	for r.at < len(r.in) {
		var err error
		if r.in[r.at] == '<' {
			err = r.markup()
		} else {
			err = r.text()
		}
		if err != nil {
			return err
		}
	}
	switch {
	case r.top != nil:
		return r.fail(ErrSyntax, "the document ends inside of the element %s", r.top.QName())
	case r.doc.Root == nil:
		return r.fail(ErrSyntax, "the document has no element")
	}
	return nil
}

// characters refuses what XML 1.0 has no character for.
func (r *reader) characters() error {
	for i := 0; i < len(r.in); i++ {
		c := r.in[i]
		if c >= 0x20 && c < utf8.RuneSelf || c == '\n' || c == '\t' || c == '\r' {
			continue
		}
		if c < utf8.RuneSelf {
			return r.failAt(i, ErrSyntax, "the character U+%04X is not allowed in XML", c)
		}
		ch, size := utf8.DecodeRuneInString(r.in[i:])
		if ch == utf8.RuneError && size == 1 {
			return r.failAt(i, ErrEncoding, "the byte %02X is not UTF-8", c)
		}
		if !isChar(ch) {
			return r.failAt(i, ErrSyntax, "the character U+%04X is not allowed in XML", ch)
		}
		i += size - 1
	}
	return nil
}

// declaration reads <?xml version="1.0" encoding="UTF-8" standalone="yes"?>.
func (r *reader) declaration() error {
	end := strings.Index(r.in, "?>")
	if end < 0 {
		return r.fail(ErrSyntax, "the XML declaration has no end")
	}
	r.at = 5
	step := 0
	for {
		spaced := r.skipSpace()
		if r.at >= end {
			break
		}
		if !spaced {
			return r.fail(ErrSyntax, "the XML declaration is malformed")
		}
		name, value, ok := r.pseudo(end)
		if !ok {
			return r.fail(ErrSyntax, "the XML declaration is malformed")
		}
		switch {
		case name == "version" && step == 0 && len(value) == 3 && strings.HasPrefix(value, "1.") && value[2] >= '0' &&
			value[2] <= '9':
			step = 1
		case name == "encoding" && step == 1:
			if !strings.EqualFold(value, "utf-8") && !strings.EqualFold(value, "us-ascii") {
				return r.fail(ErrEncoding, "the document says that it is encoded in %q", value)
			}
			step = 2
		case name == "standalone" && (step == 1 || step == 2) && (value == "yes" || value == "no"):
			step = 3
		default:
			return r.fail(ErrSyntax, "%s=%q does not belong into the XML declaration", name, value)
		}
	}
	if step == 0 {
		return r.fail(ErrSyntax, "the XML declaration has no version")
	}
	r.at = end + 2
	return nil
}

func (r *reader) pseudo(end int) (name, value string, ok bool) {
	part := r.in[r.at:end]
	equal := strings.IndexByte(part, '=')
	if equal < 0 {
		return "", "", false
	}
	name = strings.TrimRight(part[:equal], whiteSpace)
	rest := strings.TrimLeft(part[equal+1:], whiteSpace)
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", "", false
	}
	closing := strings.IndexByte(rest[1:], rest[0])
	if closing < 0 {
		return "", "", false
	}
	r.at = end - len(rest) + closing + 2
	return name, rest[1 : 1+closing], true
}

func (r *reader) markup() error {
	rest := r.in[r.at:]
	switch {
	case strings.HasPrefix(rest, "</"):
		return r.endTag()
	case strings.HasPrefix(rest, "<!--"):
		return r.comment()
	case strings.HasPrefix(rest, "<![CDATA["):
		return r.section()
	case strings.HasPrefix(rest, "<!DOCTYPE"):
		return r.fail(ErrDoctype, "the document has a document type")
	case strings.HasPrefix(rest, "<!"):
		return r.fail(ErrSyntax, "<! begins neither a comment nor a CDATA section")
	case strings.HasPrefix(rest, "<?"):
		return r.instruction()
	}
	return r.startTag()
}

func (r *reader) comment() error {
	length := strings.Index(r.in[r.at+4:], "--")
	if length < 0 {
		return r.fail(ErrSyntax, "a comment has no end")
	}
	end := r.at + 4 + length + 2
	if end >= len(r.in) || r.in[end] != '>' {
		return r.failAt(end, ErrSyntax, "a comment has -- inside")
	}
	r.at = end + 1
	return nil
}

func (r *reader) section() error {
	if r.top == nil {
		return r.fail(ErrSyntax, "there is text outside of the root element")
	}
	start := r.at + len("<![CDATA[")
	length := strings.Index(r.in[start:], "]]>")
	if length < 0 {
		return r.fail(ErrSyntax, "a CDATA section has no end")
	}
	r.piece(lineFeeds(r.in[start : start+length]))
	r.at = start + length + 3
	return nil
}

func (r *reader) instruction() error {
	begin := r.at
	r.at += 2
	target, err := r.ncname()
	if err != nil {
		return err
	}
	if strings.EqualFold(target, "xml") {
		return r.failAt(begin, ErrSyntax, "an XML declaration stands only at the very beginning")
	}
	length := strings.Index(r.in[r.at:], "?>")
	if length < 0 {
		return r.failAt(begin, ErrSyntax, "a processing instruction has no end")
	}
	content := r.in[r.at : r.at+length]
	if content != "" && !isSpace(content[0]) {
		return r.fail(ErrSyntax, "the target of a processing instruction is malformed")
	}
	said := Instruction{target, lineFeeds(strings.TrimLeft(content, whiteSpace))}
	switch {
	case !r.limits.Instructions, r.top != nil && !r.limits.Inside:
		return r.failAt(begin, ErrInstruction, "the processing instruction %s is not expected", target)
	case r.top != nil:
		r.passed++
	case r.doc.Root == nil:
		r.doc.Before = append(r.doc.Before, said)
	default:
		r.doc.After = append(r.doc.After, said)
	}
	if r.at += length + 2; len(r.doc.Before)+len(r.doc.After)+r.passed > r.limits.Attributes {
		return r.fail(ErrLimit, "there are more than %d processing instructions", r.limits.Attributes)
	}
	return nil
}

// text reads up to the next tag.
func (r *reader) text() error {
	length := strings.IndexByte(r.in[r.at:], '<')
	if length < 0 {
		length = len(r.in) - r.at
	}
	raw := r.in[r.at : r.at+length]
	if r.top == nil {
		if i := strings.IndexFunc(raw, func(c rune) bool { return !strings.ContainsRune(whiteSpace, c) }); i >= 0 {
			return r.failAt(r.at+i, ErrSyntax, "there is text outside of the root element")
		}
		r.at += length
		return nil
	}
	if i := strings.Index(raw, "]]>"); i >= 0 {
		return r.failAt(r.at+i, ErrSyntax, "]]> stands in a text")
	}
	value, err := r.value(raw, false)
	if err != nil {
		return err
	}
	r.piece(value)
	r.at += length
	return nil
}

// piece adds to the text that is being read.
func (r *reader) piece(text string) {
	switch {
	case len(r.pieces) > 0:
		r.pieces = append(r.pieces, text...)
	case r.pending == "":
		r.pending = text
	default:
		r.pieces = append(append(r.pieces, r.pending...), text...)
	}
}

// flush puts the text that was read where it belongs.
func (r *reader) flush() {
	text := r.pending
	if len(r.pieces) > 0 {
		text = string(r.pieces)
		r.pieces = r.pieces[:0]
	}
	r.pending = ""
	if text == "" || r.top == nil {
		return
	}
	if last := len(r.top.Children) - 1; last >= 0 {
		r.top.Children[last].Tail = text
	} else {
		r.top.Text = text
	}
}

// value resolves references and line ends of the text at r.at; in an attribute
// white space becomes blanks.
func (r *reader) value(raw string, attribute bool) (string, error) {
	special := "&\r"
	if attribute {
		special = "&\r\n\t"
	}
	i := strings.IndexAny(raw, special)
	if i < 0 {
		return raw, nil
	}
	out := make([]byte, 0, len(raw))
	for begin := 0; ; {
		out = append(out, raw[begin:i]...)
		switch raw[i] {
		case '&':
			ch, size, err := r.reference(raw, i)
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, ch)
			i += size
		case '\r':
			if i++; i < len(raw) && raw[i] == '\n' {
				i++
			}
			out = append(out, breakOf(attribute))
		default:
			out = append(out, ' ')
			i++
		}
		begin = i
		next := strings.IndexAny(raw[begin:], special)
		if next < 0 {
			return string(append(out, raw[begin:]...)), nil
		}
		i = begin + next
	}
}

func breakOf(attribute bool) byte {
	if attribute {
		return ' '
	}
	return '\n'
}

// reference reads &name; or &#number; in raw, which stands at r.at.
func (r *reader) reference(raw string, i int) (ch rune, size int, err error) {
	length := strings.IndexByte(raw[i:min(len(raw), i+16)], ';')
	if length < 0 {
		return 0, 0, r.failAt(r.at+i, ErrSyntax, "& begins no reference")
	}
	name := raw[i+1 : i+length]
	switch name {
	case "amp":
		ch = '&'
	case "lt":
		ch = '<'
	case "gt":
		ch = '>'
	case "quot":
		ch = '"'
	case "apos":
		ch = '\''
	default:
		number, isNumber := strings.CutPrefix(name, "#")
		base := 10
		if hex, isHex := strings.CutPrefix(number, "x"); isHex {
			number, base = hex, 16
		}
		code, err := strconv.ParseUint(number, base, 21)
		if !isNumber || err != nil || !isChar(rune(code)) {
			return 0, 0, r.failAt(r.at+i, ErrSyntax, "&%s; is no character", name)
		}
		ch = rune(code)
	}
	return ch, length + 1, nil
}

package xmltree

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

func (r *reader) startTag() error {
	begin := r.at
	if r.top == nil && r.doc.Root != nil {
		return r.fail(ErrSyntax, "there is a second root element")
	}
	if r.count++; r.count > r.limits.Elements {
		return r.fail(ErrLimit, "there are more than %d elements", r.limits.Elements)
	}
	if r.depth >= r.limits.Depth {
		return r.fail(ErrLimit, "elements stand in each other more than %d deep", r.limits.Depth)
	}
	r.flush()
	r.at++
	e := r.element()
	e.Start = begin
	var err error
	if e.Prefix, e.Local, err = r.qname(); err != nil {
		return err
	}
	closed, err := r.attributes(e)
	if err != nil {
		return err
	}
	if err := r.resolve(e, begin); err != nil {
		return err
	}
	if r.top == nil {
		r.doc.Root = e
	} else {
		e.Parent = r.top
		r.top.Children = append(r.top.Children, e)
	}
	r.counts = append(r.counts, len(e.Spaces))
	r.top = e
	r.depth++
	if closed {
		r.close()
	}
	return nil
}

func (r *reader) element() *Element {
	if len(r.slab) == 0 {
		r.slab = make([]Element, 32)
	}
	e := &r.slab[0]
	r.slab = r.slab[1:]
	return e
}

func (r *reader) endTag() error {
	begin := r.at
	if r.top == nil {
		return r.fail(ErrSyntax, "an end tag has no start")
	}
	r.at += 2
	prefix, local, err := r.qname()
	if err != nil {
		return err
	}
	if prefix != r.top.Prefix || local != r.top.Local {
		return r.failAt(begin, ErrSyntax, "the end tag %s stands where %s is open", joinName(prefix, local), r.top.QName())
	}
	r.skipSpace()
	if r.at >= len(r.in) || r.in[r.at] != '>' {
		return r.fail(ErrSyntax, "the end tag %s has no end", r.top.QName())
	}
	r.at++
	r.flush()
	r.close()
	return nil
}

func (r *reader) close() {
	r.top.End = r.at
	r.top = r.top.Parent
	r.depth--
	last := len(r.counts) - 1
	r.scope = r.scope[:len(r.scope)-r.counts[last]]
	r.counts = r.counts[:last]
}

// attributes reads up to the end of a start tag and says whether it is an
// empty-element tag.
func (r *reader) attributes(e *Element) (closed bool, err error) {
	for {
		spaced := r.skipSpace()
		switch {
		case strings.HasPrefix(r.in[r.at:], "/>"):
			r.at += 2
			return true, nil
		case strings.HasPrefix(r.in[r.at:], ">"):
			r.at++
			return false, nil
		case r.at >= len(r.in):
			return false, r.fail(ErrSyntax, "the start tag %s has no end", e.QName())
		case !spaced:
			return false, r.fail(ErrSyntax, "the start tag %s is malformed", e.QName())
		}
		if len(e.Attrs)+len(e.Spaces) >= r.limits.Attributes {
			return false, r.fail(ErrLimit, "%s has more than %d attributes", e.QName(), r.limits.Attributes)
		}
		if r.attrs++; r.attrs > attributesAll {
			return false, r.fail(ErrLimit, "there are more than %d attributes", attributesAll)
		}
		if err := r.attribute(e); err != nil {
			return false, err
		}
	}
}

func (r *reader) attribute(e *Element) error {
	begin := r.at
	prefix, local, err := r.qname()
	if err != nil {
		return err
	}
	r.skipSpace()
	if r.at >= len(r.in) || r.in[r.at] != '=' {
		return r.fail(ErrSyntax, "the attribute %s has no value", joinName(prefix, local))
	}
	r.at++
	r.skipSpace()
	if r.at >= len(r.in) || r.in[r.at] != '"' && r.in[r.at] != '\'' {
		return r.fail(ErrSyntax, "the value of the attribute %s has no quotes", joinName(prefix, local))
	}
	quote := r.in[r.at]
	r.at++
	length := strings.IndexByte(r.in[r.at:], quote)
	if length < 0 {
		return r.fail(ErrSyntax, "the value of the attribute %s has no end", joinName(prefix, local))
	}
	raw := r.in[r.at : r.at+length]
	if i := strings.IndexByte(raw, '<'); i >= 0 {
		return r.failAt(r.at+i, ErrSyntax, "< stands in the value of the attribute %s", joinName(prefix, local))
	}
	value, err := r.value(raw, true)
	if err != nil {
		return err
	}
	r.at += length + 1
	switch {
	case prefix == "xmlns":
		return r.declare(e, Binding{local, value}, begin)
	case prefix == "" && local == "xmlns":
		return r.declare(e, Binding{"", value}, begin)
	}
	e.Attrs = append(e.Attrs, Attr{Prefix: prefix, Local: local, Value: value})
	return nil
}

func (r *reader) declare(e *Element, b Binding, begin int) error {
	switch {
	case b.Prefix == "xmlns", (b.Prefix == "xml") != (b.Space == SpaceXML), b.Space == spaceXMLNS:
		return r.failAt(begin, ErrSyntax, "the prefix %q cannot stand for %q", b.Prefix, b.Space)
	case b.Prefix != "" && b.Space == "":
		return r.failAt(begin, ErrSyntax, "the prefix %s stands for no namespace", b.Prefix)
	}
	for _, other := range e.Spaces {
		if other.Prefix == b.Prefix {
			return r.failAt(begin, ErrSyntax, "%s declares the prefix %q twice", e.QName(), b.Prefix)
		}
	}
	e.Spaces = append(e.Spaces, b)
	if r.scope = append(r.scope, b); len(r.scope) > spacesMax {
		return r.failAt(begin, ErrLimit, "more than %d namespaces are declared", spacesMax)
	}
	return nil
}

// resolve finds the namespaces of an element and its attributes.
func (r *reader) resolve(e *Element, begin int) error {
	var ok bool
	if e.Space, ok = r.space(e.Prefix); !ok {
		return r.failAt(begin, ErrSyntax, "the prefix %s of %s is not declared", e.Prefix, e.QName())
	}
	for i := range e.Attrs {
		a := &e.Attrs[i]
		if a.Prefix == "" {
			continue
		}
		if a.Space, ok = r.space(a.Prefix); !ok {
			return r.failAt(begin, ErrSyntax, "the prefix of the attribute %s is not declared", joinName(a.Prefix, a.Local))
		}
	}
	if twice := repeated(e.Attrs); twice != nil {
		return r.failAt(begin, ErrSyntax, "%s has the attribute %s twice", e.QName(), joinName(twice.Prefix, twice.Local))
	}
	return nil
}

// repeated finds an attribute that stands twice.
func repeated(attrs []Attr) *Attr {
	const few = 16
	if len(attrs) > few {
		seen := make(map[[2]string]bool, len(attrs))
		for i := range attrs {
			key := [2]string{attrs[i].Space, attrs[i].Local}
			if seen[key] {
				return &attrs[i]
			}
			seen[key] = true
		}
		return nil
	}
	for i := range attrs {
		for k := range attrs[:i] {
			if attrs[k].Local == attrs[i].Local && attrs[k].Space == attrs[i].Space {
				return &attrs[i]
			}
		}
	}
	return nil
}

func (r *reader) space(prefix string) (string, bool) {
	if prefix == "xml" {
		return SpaceXML, true
	}
	for i := len(r.scope) - 1; i >= 0; i-- {
		if r.scope[i].Prefix == prefix {
			return r.scope[i].Space, true
		}
	}
	return "", prefix == ""
}

func (r *reader) qname() (prefix, local string, err error) {
	if local, err = r.ncname(); err != nil {
		return "", "", err
	}
	if r.at < len(r.in) && r.in[r.at] == ':' {
		r.at++
		prefix = local
		local, err = r.ncname()
	}
	return prefix, local, err
}

// ncname reads a name without colon.
func (r *reader) ncname() (string, error) {
	begin := r.at
	for r.at < len(r.in) {
		if c := r.in[r.at]; c < utf8.RuneSelf {
			if !NameStart(rune(c)) && (r.at == begin || !NamePart(rune(c))) {
				break
			}
			r.at++
			continue
		}
		ch, size := utf8.DecodeRuneInString(r.in[r.at:])
		if !NameStart(ch) && (r.at == begin || !NamePart(ch)) {
			break
		}
		r.at += size
	}
	if r.at == begin {
		return "", r.fail(ErrSyntax, "a name is expected")
	}
	return r.in[begin:r.at], nil
}

// NameStart reports whether a name may begin with a character: NameStartChar of
// XML 1.0, fifth edition, without the colon.
func NameStart(c rune) bool {
	switch {
	case c < 0x80:
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
	case c >= 0xC0 && c <= 0x2FF, c >= 0x370 && c <= 0x1FFF:
		return c != 0xD7 && c != 0xF7 && c != 0x37E
	}
	return c >= 0x200C && c <= 0x200D || c >= 0x2070 && c <= 0x218F || c >= 0x2C00 && c <= 0x2FEF ||
		c >= 0x3001 && c <= 0xD7FF ||
		c >= 0xF900 && c <= 0xFDCF || c >= 0xFDF0 && c <= 0xFFFD || c >= 0x10000 && c <= 0xEFFFF
}

// NamePart reports whether a character may stand in a name: NameChar without
// the colon.
func NamePart(c rune) bool {
	return NameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == 0xB7 || c >= 0x300 && c <= 0x36F ||
		c >= 0x203F && c <= 0x2040
}

func (r *reader) skipSpace() bool {
	begin := r.at
	for r.at < len(r.in) && isSpace(r.in[r.at]) {
		r.at++
	}
	return r.at > begin
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isChar is Char of XML 1.0.
func isChar(c rune) bool {
	return c == '\t' || c == '\n' || c == '\r' || c >= 0x20 && c <= 0xD7FF || c >= 0xE000 && c <= 0xFFFD ||
		c >= 0x10000 && c <= 0x10FFFF
}

// lineFeeds makes one line feed of every line end.
func lineFeeds(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

func itoa(n int) string { return strconv.Itoa(n) }

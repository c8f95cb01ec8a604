package structure

import (
	"strings"

	"tributary/internal/xmltree"
)

// derivationsMax bounds how often a type is derived from another.
const derivationsMax = 100

// checker is one check of one document. It goes on after a flaw, with what can
// still be attributed, until it has found as many as are wanted.
type checker struct {
	schema *Schema
	flaws  []Flaw
	max    int
	ids    map[string]bool
}

func (c *checker) full() bool { return len(c.flaws) >= c.max }

func (c *checker) add(f Flaw) {
	if !c.full() {
		c.flaws = append(c.flaws, f)
	}
}

func (c *checker) element(e *xmltree.Element, d *declaration) {
	if c.full() {
		return
	}
	if d.abstract {
		c.add(Flaw{Kind: TypeUse, Element: e, Name: e.Local, Reason: "the element is abstract"})
		return
	}
	t := d.typing
	if said, ok := e.Lookup(xmltree.SpaceXSI, "type"); ok {
		before := len(c.flaws)
		if t = c.substitute(e, said, t); len(c.flaws) > before {
			return
		}
	}
	if t != nil && t.abstract {
		c.add(Flaw{Kind: TypeUse, Element: e, Name: e.Local, Reason: "the type of the element is abstract"})
		return
	}
	if said, ok := e.Lookup(xmltree.SpaceXSI, "nil"); ok && !d.wild && c.isNil(e, d, said) {
		c.attributes(e, t)
		if len(e.Children) > 0 || e.Text != "" {
			c.add(Flaw{Kind: Text, Element: e, Name: e.Local})
		}
		return
	}
	if t == nil {
		// Of anyType: whatever the schema knows below is checked.
		for _, child := range e.Children {
			c.child(child, match{process: 'l'})
		}
	} else {
		c.attributes(e, t)
		c.content(e, t, d)
	}
	for i := range d.keys {
		c.key(e, &d.keys[i], d.keys)
	}
}

func (c *checker) isNil(e *xmltree.Element, d *declaration, said string) bool {
	said = collapse(said)
	holds := said == "true" || said == "1"
	if !d.nillable || !holds && said != "false" && said != "0" {
		c.add(Flaw{Kind: TypeUse, Element: e, Name: "nil", Value: said, Reason: "xsi:nil is not allowed"})
	}
	return holds
}

// substitute is the type that xsi:type names, nil for anyType. It is a flaw
// that there is none or that it is not derived from the declared one.
func (c *checker) substitute(e *xmltree.Element, said string, declared *typing) *typing {
	prefix, local, found := strings.Cut(collapse(said), ":")
	if !found {
		prefix, local = "", prefix
	}
	space, ok := e.SpaceOf(prefix)
	if space == spaceXSD && local == "anyType" && declared == nil {
		return nil
	}
	t := c.schema.types[name{space, local}]
	if t == nil && space == spaceXSD {
		t = builtinTyping(local)
	}
	if !ok || t == nil {
		c.add(Flaw{Kind: TypeUse, Element: e, Name: "type", Value: said, Reason: "xsi:type names no known type"})
		return nil
	}
	if declared == nil {
		return t
	}
	for at, steps := t, 0; at != nil && steps < derivationsMax; at, steps = at.base, steps+1 {
		if at == declared || declared.sameBuiltin(at) {
			return t
		}
	}
	c.add(Flaw{Kind: TypeUse, Element: e, Name: "type", Value: said,
		Reason: "xsi:type names a type that is not derived from the declared one"})
	return nil
}

func (c *checker) attributes(e *xmltree.Element, t *typing) {
	if t == nil {
		return
	}
	for i := range e.Attrs {
		a := &e.Attrs[i]
		if a.Space == xmltree.SpaceXSI && (a.Local == "type" || a.Local == "nil" || a.Local == "schemaLocation" ||
			a.Local == "noNamespaceSchemaLocation") {
			continue
		}
		use := t.use(a)
		switch {
		case use != nil && !use.prohibited:
			c.attribute(e, a, use)
		case t.anyAttr != nil && t.anyAttr.takes(a.Space) && c.wildAttribute(e, a, t.anyAttr.process):
		default:
			c.add(Flaw{Kind: AttributeUnknown, Element: e, Name: a.Local, Value: a.Value})
		}
	}
	for i := range t.attrs {
		if use := &t.attrs[i]; use.required {
			if _, there := e.Lookup(use.name.space, use.name.local); !there {
				c.add(Flaw{Kind: AttributeMissing, Element: e, Name: use.name.local})
			}
		}
	}
}

func (t *typing) use(a *xmltree.Attr) *attribute {
	for i := range t.attrs {
		if t.attrs[i].name.local == a.Local && t.attrs[i].name.space == a.Space {
			return &t.attrs[i]
		}
	}
	return nil
}

// wildAttribute checks an attribute under a wildcard and says whether it may stand.
func (c *checker) wildAttribute(e *xmltree.Element, a *xmltree.Attr, process byte) bool {
	declared := c.schema.attrs[name{a.Space, a.Local}]
	if process == 'k' || declared == nil {
		return process != 's'
	}
	c.attribute(e, a, declared)
	return true
}

func (c *checker) attribute(e *xmltree.Element, a *xmltree.Attr, use *attribute) {
	reason := c.value(e, use.value, a.Value)
	if reason == "" && use.fixed != nil && !use.value.equal(a.Value, *use.fixed) {
		reason = "is not " + *use.fixed
	}
	if reason != "" {
		c.add(Flaw{Kind: AttributeValue, Element: e, Name: a.Local, Value: a.Value, Reason: reason})
	}
}

func (c *checker) content(e *xmltree.Element, t *typing, d *declaration) {
	if t.value != nil {
		c.leaf(e, t, d)
		return
	}
	if !t.mixed && hasText(e, t.model == nil) {
		c.add(Flaw{Kind: Text, Element: e, Name: e.Local})
	}
	if t.model == nil {
		if len(e.Children) > 0 {
			c.add(Flaw{Kind: Unexpected, Element: e.Children[0], Name: e.Children[0].Local})
		}
		return
	}
	m := matcher{kids: e.Children, found: make([]match, 0, len(e.Children))}
	complete := m.particle(t.model) && m.at == len(m.kids)
	for i := range m.found {
		c.child(e.Children[i], m.found[i])
	}
	if !complete {
		c.mismatch(e, &m)
	}
}

// hasText reports whether characters stand between the elements: anything but
// white space, or anything at all where the element must be empty.
func hasText(e *xmltree.Element, empty bool) bool {
	if empty {
		return e.Text != ""
	}
	if strings.Trim(e.Text, xsdSpace) != "" {
		return true
	}
	for _, c := range e.Children {
		if strings.Trim(c.Tail, xsdSpace) != "" {
			return true
		}
	}
	return false
}

func (c *checker) leaf(e *xmltree.Element, t *typing, d *declaration) {
	if len(e.Children) > 0 {
		c.add(Flaw{Kind: Unexpected, Element: e.Children[0], Name: e.Children[0].Local})
		return
	}
	text := e.Text
	if text == "" {
		switch {
		case d.fixed != nil:
			text = *d.fixed
		case d.standard != nil:
			text = *d.standard
		}
	}
	reason := c.value(e, t.value, text)
	if reason == "" && d.fixed != nil && !t.value.equal(text, *d.fixed) {
		reason = "is not " + *d.fixed
	}
	if reason != "" {
		c.add(Flaw{Kind: Value, Element: e, Name: e.Local, Value: e.Text, Reason: reason})
	}
}

// value checks a text and remembers it where it is an ID.
func (c *checker) value(e *xmltree.Element, s *simple, text string) string {
	if reason := s.refuses(text, e); reason != "" {
		return reason
	}
	if s.kind == kindID {
		id := collapse(text)
		if c.ids[id] {
			return "is an ID that another element has"
		}
		if c.ids == nil {
			c.ids = map[string]bool{}
		}
		c.ids[id] = true
	}
	return ""
}

func (c *checker) child(e *xmltree.Element, m match) {
	switch {
	case m.element != nil:
		c.element(e, m.element)
	case m.process == 'k':
	default:
		d := c.schema.elements[name{e.Space, e.Local}]
		switch {
		case d != nil:
			c.element(e, d)
		case m.process == 's':
			c.add(Flaw{Kind: Unknown, Element: e, Name: e.Local})
		default:
			c.element(e, &declaration{name: name{e.Space, e.Local}, wild: true})
		}
	}
}

func (c *checker) mismatch(e *xmltree.Element, m *matcher) {
	f := Flaw{Kind: Unexpected, Allowed: m.expected}
	switch {
	case m.at < len(m.kids) && len(m.expected) == 0:
		f.Element, f.Name = m.kids[m.at], m.kids[m.at].Local
	case len(m.expected) > 0 && (m.at >= len(m.kids) || m.required):
		f.Kind, f.Element, f.Name = Missing, e, m.expected[0]
		if m.at < len(m.kids) {
			f.Reason = "before " + m.kids[m.at].Local
		}
	default:
		f.Element, f.Name = m.kids[m.at], m.kids[m.at].Local
	}
	c.add(f)
}

// matcher goes through the children of an element along a content model. XSD
// wants models in which the next child alone decides which particle it belongs
// to, so it never goes back.
type matcher struct {
	kids     []*xmltree.Element
	at       int
	found    []match  // of the children before at
	expected []string // what a required particle could have begun with
	required bool
}

// match is what a child was attributed to: a declaration, or a wildcard.
type match struct {
	element *declaration
	process byte
}

// particle matches as many occurrences as there are.
func (m *matcher) particle(p *particle) bool {
	count := 0
	for (p.max < 0 || count < p.max) && m.at < len(m.kids) && p.starts(m.kids[m.at]) {
		before := m.at
		if !m.once(p) {
			return false
		}
		count++
		if m.at == before {
			break
		}
	}
	if count < p.min && !p.empty {
		m.required = true
		m.expected = p.names(m.expected)
		return false
	}
	return true
}

func (m *matcher) once(p *particle) bool {
	switch p.sort {
	case 'e':
		m.take(match{element: p.element.member(m.kids[m.at])})
	case 'w':
		m.take(match{process: p.wildcard.process})
	case '(':
		for _, part := range p.parts {
			if !m.particle(part) {
				return false
			}
		}
	case '[':
		for _, part := range p.parts {
			if part.starts(m.kids[m.at]) {
				return m.particle(part)
			}
		}
	case '{':
		return m.all(p)
	}
	return true
}

func (m *matcher) take(found match) {
	m.found = append(m.found, found)
	m.at++
}

// all matches every part in any order, each at most once.
func (m *matcher) all(p *particle) bool {
	used := make([]bool, len(p.parts))
	for m.at < len(m.kids) {
		next := -1
		for i, part := range p.parts {
			if !used[i] && part.starts(m.kids[m.at]) {
				next = i
				break
			}
		}
		if next < 0 {
			break
		}
		used[next] = true
		if !m.particle(p.parts[next]) {
			return false
		}
	}
	for i, part := range p.parts {
		if !used[i] && !part.empty {
			m.required = true
			m.expected = part.names(m.expected)
			return false
		}
	}
	return true
}

// starts reports whether an occurrence of the particle can begin with an element.
func (p *particle) starts(e *xmltree.Element) bool {
	switch p.sort {
	case 'e':
		return p.element.member(e) != nil
	case 'w':
		return p.wildcard.takes(e.Space)
	}
	for _, part := range p.parts {
		if part.starts(e) {
			return true
		}
		if p.sort == '(' && !part.empty {
			return false
		}
	}
	return false
}

// member is the declaration of an element in place of another: itself, or one
// of its substitution group.
func (d *declaration) member(e *xmltree.Element) *declaration {
	if d.name.local == e.Local && d.name.space == e.Space {
		return d
	}
	for _, other := range d.members {
		if found := other.member(e); found != nil {
			return found
		}
	}
	return nil
}

// names adds what the particle can begin with, as far as a reader wants to know.
func (p *particle) names(out []string) []string {
	const most = 8
	if len(out) >= most {
		return out
	}
	switch p.sort {
	case 'e':
		return append(out, p.element.name.local)
	case 'w':
		return append(out, "*")
	}
	for _, part := range p.parts {
		out = part.names(out)
		if p.sort == '(' && !part.empty {
			break
		}
	}
	return out
}

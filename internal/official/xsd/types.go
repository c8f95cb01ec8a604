package xsd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// typing answers the reference to a type by its name.
func (c *compiler) typing(n *node, text string) string {
	uri, local := c.qname(n, text)
	if uri == space {
		if local == "anyType" {
			return "-"
		}
		return local
	}
	found := c.find("type", n, text)
	if found.Local == "simpleType" {
		return c.simple(found)
	}
	return c.complex(found)
}

// simple emits a simple type, what it stands on first.
func (c *compiler) simple(n *node) string {
	if i, done := c.simpleOf[n.Element]; done {
		if i < 0 {
			fail(n.Element, "the type stands on itself")
		}
		return fmt.Sprintf("#%d", i)
	}
	c.simpleOf[n.Element] = -1
	words := []string{c.globalName(n)}
	switch {
	case n.child("restriction") != nil:
		r := n.child("restriction")
		words = append(words, c.simpleBase(r))
		words = append(words, facets(r)...)
	case n.child("list") != nil:
		words = append(words, "list:"+c.member(n.child("list"), "itemType"))
	case n.child("union") != nil:
		words = append(words, "union:"+c.members(n.child("union")))
	default:
		fail(n.Element, "the simple type is neither restriction nor list nor union")
	}
	i := c.addSimple(words)
	c.simpleOf[n.Element] = i
	return fmt.Sprintf("#%d", i)
}

func (c *compiler) addSimple(words []string) int {
	c.simples = append(c.simples, strings.Join(words, " "))
	return len(c.simples) - 1
}

func (c *compiler) simpleBase(r *node) string {
	if base := r.Attr("base"); base != "" {
		return c.typing(r, base)
	}
	inner := r.child("simpleType")
	if inner == nil {
		fail(r.Element, "the restriction has no base")
	}
	return c.simple(inner)
}

func (c *compiler) member(n *node, attr string) string {
	if named := n.Attr(attr); named != "" {
		return c.typing(n, named)
	}
	return c.simple(n.child("simpleType"))
}

func (c *compiler) members(n *node) string {
	var all []string
	for named := range strings.FieldsSeq(n.Attr("memberTypes")) {
		all = append(all, c.typing(n, named))
	}
	for _, e := range n.Children {
		if e.Is(space, "simpleType") {
			all = append(all, c.simple(&node{e, n.doc}))
		}
	}
	return strings.Join(all, ",")
}

// facets are those of one restriction.
func facets(r *node) []string {
	var words, values []string
	letters := map[string]string{
		"length": "L", "minLength": "m", "maxLength": "M", "totalDigits": "d", "fractionDigits": "f",
		"minInclusive": "G", "minExclusive": "g", "maxInclusive": "U", "maxExclusive": "u", "pattern": "~",
	}
	for _, e := range r.Children {
		if e.Space != space {
			continue
		}
		value := e.Attr("value")
		switch letter := letters[e.Local]; {
		case e.Local == "enumeration":
			values = append(values, value)
		case e.Local == "whiteSpace":
			words = append(words, "w"+value[:1])
		case e.Local == "annotation" || e.Local == "simpleType" || e.Local == "attribute" || e.Local == "anyAttribute" ||
			e.Local == "attributeGroup":
		case letter == "":
			fail(e, "the facet is not carried over")
		default:
			words = append(words, letter+escape(value))
		}
	}
	return append(words, enumeration(values)...)
}

// enumeration sorts the values as the reader wants them and counts runs.
func enumeration(values []string) []string {
	slices.SortFunc(values, func(a, b string) int {
		if by := len(a) - len(b); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	values = slices.Compact(values)
	var words []string
	for i := 0; i < len(values); {
		more := 0
		for i+more+1 < len(values) && follows(values[i+more], values[i+more+1]) {
			more++
		}
		// Short runs are as long as their values, and values stay comparable as numbers.
		const worth = 6
		if more < worth {
			more = 0
		}
		words = append(words, "="+escape(values[i]))
		if more > 0 {
			words = append(words, "+"+strconv.Itoa(more))
		}
		i += more + 1
	}
	return words
}

func follows(a, b string) bool {
	if len(a) != len(b) || len(a) > 15 || strings.Trim(a+b, "0123456789") != "" {
		return false
	}
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x+1 == y
}

// complex emits a complex type, flattened: what it extends or restricts is
// written out.
func (c *compiler) complex(n *node) string {
	if i, done := c.complexOf[n.Element]; done {
		return fmt.Sprintf("$%d", i)
	}
	i := len(c.complexes)
	c.complexes = append(c.complexes, "")
	c.complexOf[n.Element] = i
	s := c.shape(n)
	base := "-"
	if d := derivation(n); d != nil && d.Attr("base") != "" {
		base = c.typing(d, d.Attr("base"))
	}
	flags := ""
	if n.Attr("abstract") == "true" {
		flags += "a"
	}
	if s.mixed {
		flags += "m"
	}
	if n.Attr("block") != "" {
		fail(n.Element, "block is not carried over")
	}
	if flags == "" {
		flags = "-"
	}
	words := append([]string{c.globalName(n), base, flags, s.content}, s.attributes()...)
	c.complexes[i] = strings.Join(words, " ")
	return fmt.Sprintf("$%d", i)
}

// shape is the effective content and attributes of a complex type.
type shape struct {
	content string // as it stands in the compact form
	empty   bool
	mixed   bool
	names   []string // of attributes, in order
	attrs   map[string]string
	any     string
}

func (s *shape) attributes() []string {
	var words []string
	for _, name := range s.names {
		// What is prohibited may not stand; leaving it out says the same,
		// unless a wildcard would let it in.
		if word := s.attrs[name]; !strings.HasSuffix(word, ";p") || s.any != "" {
			words = append(words, word)
		}
	}
	if s.any != "" {
		words = append(words, s.any)
	}
	return words
}

func (s *shape) set(name, word string) {
	if _, there := s.attrs[name]; !there {
		s.names = append(s.names, name)
	}
	s.attrs[name] = word
}

// derivation is the restriction or extension inside of a complex type.
func derivation(n *node) *node {
	if content := n.child("complexContent", "simpleContent"); content != nil {
		return content.child("restriction", "extension")
	}
	return nil
}

func (c *compiler) shape(n *node) *shape {
	d := derivation(n)
	if d == nil {
		s := &shape{attrs: map[string]string{}, mixed: n.Attr("mixed") == "true"}
		s.content = c.model(n)
		s.empty = s.content == "-"
		c.uses(n, s)
		return s
	}
	content := n.child("complexContent", "simpleContent")
	base := c.baseShape(d)
	if content.Local == "simpleContent" {
		if d.Local == "restriction" {
			base.content = "=" + c.narrowed(d, strings.TrimPrefix(base.content, "="))
		}
		c.uses(d, base)
		return base
	}
	if mixed := content.Attr("mixed"); mixed != "" {
		base.mixed = mixed == "true"
	} else if n.Attr("mixed") == "true" {
		base.mixed = true
	}
	own := c.model(d)
	switch {
	case d.Local == "restriction":
		base.content = own
	case own == "-":
	case base.content == "-":
		base.content = own
	default:
		base.content = "( " + base.content + " " + own + " )"
	}
	c.uses(d, base)
	return base
}

// baseShape is the shape of what is derived from.
func (c *compiler) baseShape(d *node) *shape {
	uri, local := c.qname(d, d.Attr("base"))
	if uri == space {
		if local == "anyType" {
			return &shape{attrs: map[string]string{}, content: "-"}
		}
		return &shape{attrs: map[string]string{}, content: "=" + local}
	}
	found := c.find("type", d, d.Attr("base"))
	if found.Local == "simpleType" {
		return &shape{attrs: map[string]string{}, content: "=" + c.simple(found)}
	}
	return c.shape(found)
}

// narrowed is the simple type of a restriction of simple content.
func (c *compiler) narrowed(d *node, base string) string {
	if inner := d.child("simpleType"); inner != nil {
		base = c.simple(inner)
	}
	own := facets(d)
	if len(own) == 0 {
		return base
	}
	if i, done := c.simpleOf[d.Element]; done {
		return fmt.Sprintf("#%d", i)
	}
	i := c.addSimple(append([]string{"-", base}, own...))
	c.simpleOf[d.Element] = i
	return fmt.Sprintf("#%d", i)
}

// uses adds the attributes that stand in a type, group or derivation.
func (c *compiler) uses(n *node, s *shape) {
	for _, e := range n.Children {
		if e.Space != space {
			continue
		}
		one := &node{e, n.doc}
		switch e.Local {
		case "attribute":
			c.use(one, s)
		case "attributeGroup":
			c.uses(c.find("attributeGroup", one, e.Attr("ref")), s)
		case "anyAttribute":
			s.any = "@" + c.wildcard(one)
		}
	}
}

func (c *compiler) use(n *node, s *shape) {
	declared, name := n, ""
	if ref := n.Attr("ref"); ref != "" {
		uri, local := c.qname(n, ref)
		name = c.name(uri, local)
		if uri == "http://www.w3.org/XML/1998/namespace" && c.global[component{"attribute", uri, local}] == nil {
			declared = nil
		} else {
			declared = c.find("attribute", n, ref)
		}
	} else {
		uri := ""
		if form := n.Attr("form"); form == "qualified" || form == "" && n.doc.attributes {
			uri = n.doc.target
		}
		name = c.name(uri, n.Attr("name"))
	}
	word := "@" + name + ";" + c.attributeType(declared) + ";"
	switch n.Attr("use") {
	case "required":
		word += "r"
	case "prohibited":
		word += "p"
	default:
		word += "o"
	}
	fixed, is := n.Lookup("", "fixed")
	if !is && declared != nil {
		fixed, is = declared.Lookup("", "fixed")
	}
	if is {
		word += ";=" + escape(fixed)
	}
	s.set(name, word)
}

func (c *compiler) attributeType(n *node) string {
	switch {
	case n == nil:
		return "anySimpleType"
	case n.Attr("type") != "":
		return c.typing(n, n.Attr("type"))
	case n.child("simpleType") != nil:
		return c.simple(n.child("simpleType"))
	}
	return "anySimpleType"
}

func (c *compiler) globalAttribute(n *node) {
	line := c.name(n.doc.target, n.Attr("name")) + " " + c.attributeType(n)
	if fixed, ok := n.Lookup("", "fixed"); ok {
		line += " =" + escape(fixed)
	}
	c.attributes = append(c.attributes, line)
}

package xsd

import (
	"fmt"
	"strconv"
	"strings"
)

// element emits a declaration and answers its number. Equal local ones are one.
func (c *compiler) element(n *node) int {
	global := n.Parent.Local == "schema"
	uri := ""
	if form := n.Attr("form"); global || form == "qualified" || form == "" && n.doc.qualified {
		uri = n.doc.target
	}
	key := fmt.Sprintf("%p", n.Element)
	if i, done := c.elementOf[key]; done {
		return i
	}
	flags := ""
	if head := n.Attr("substitutionGroup"); head != "" {
		flags += fmt.Sprintf(" s%d", c.element(c.find("element", n, head)))
	}
	name := c.name(uri, n.Attr("name"))
	i := -1
	if global {
		// Its number is known before its type, which may contain it.
		i = len(c.elements)
		c.elements = append(c.elements, "")
		c.elementOf[key] = i
		flags += " g"
	}
	line := name + " " + c.elementType(n) + flags + elementFlags(n)
	keys := c.constraints(n)
	if !global {
		same := line + "\n" + strings.Join(keys, "\n")
		if at, there := c.elementOf[same]; there {
			c.elementOf[key] = at
			return at
		}
		i = len(c.elements)
		c.elements = append(c.elements, "")
		c.elementOf[key], c.elementOf[same] = i, i
	}
	c.elements[i] = line
	if len(keys) > 0 {
		c.keys[i] = keys
	}
	return i
}

func elementFlags(n *node) string {
	flags := ""
	if n.Attr("abstract") == "true" {
		flags += " a"
	}
	if n.Attr("nillable") == "true" {
		flags += " n"
	}
	if n.Attr("block") != "" {
		fail(n.Element, "block is not carried over")
	}
	if fixed, ok := n.Lookup("", "fixed"); ok {
		flags += " =" + escape(fixed)
	} else if standard, ok := n.Lookup("", "default"); ok {
		flags += " :" + escape(standard)
	}
	return flags
}

func (c *compiler) elementType(n *node) string {
	switch {
	case n.Attr("type") != "":
		return c.typing(n, n.Attr("type"))
	case n.child("simpleType") != nil:
		return c.simple(n.child("simpleType"))
	case n.child("complexType") != nil:
		return c.complex(n.child("complexType"))
	case n.Attr("substitutionGroup") != "":
		return c.elementType(c.find("element", n, n.Attr("substitutionGroup")))
	}
	return "-"
}

// model is the content model that stands in a type or derivation, - for none.
func (c *compiler) model(n *node) string {
	group := n.child("sequence", "choice", "all", "group")
	if group == nil {
		return "-"
	}
	p := c.particle(group)
	if p == nil {
		return "-"
	}
	p.check(group)
	if p.sort == "e" || p.sort == "w" {
		p = &particle{sort: "(", min: 1, max: 1, parts: []*particle{p}}
	}
	return p.text()
}

// particle is a part of a model while it is made.
type particle struct {
	sort     string // "e", "w", "(", "[", "{"
	word     string // of "e" and "w"
	min, max int
	parts    []*particle
}

func (c *compiler) particle(n *node) *particle {
	p := &particle{}
	p.min, p.max = occurs(n)
	if p.max == 0 {
		return nil
	}
	switch n.Local {
	case "element":
		p.sort = "e"
		target := n
		if ref := n.Attr("ref"); ref != "" {
			target = c.find("element", n, ref)
		}
		p.word = strconv.Itoa(c.element(target))
	case "any":
		p.sort, p.word = "w", c.wildcard(n)
	case "group":
		inner := c.find("group", n, n.Attr("ref")).child("sequence", "choice", "all")
		p.sort, p.parts = "(", c.parts(&node{inner.Parent, inner.doc}, inner.Local)
	case "sequence":
		p.sort, p.parts = "(", c.parts(n, "")
	case "choice":
		p.sort, p.parts = "[", c.parts(n, "")
	case "all":
		p.sort, p.parts = "{", c.parts(n, "")
	}
	return p.simplified()
}

// parts are the particles among the children, or only those with a name.
func (c *compiler) parts(n *node, only string) []*particle {
	var all []*particle
	for _, e := range n.Children {
		if e.Space != space || only != "" && e.Local != only {
			continue
		}
		switch e.Local {
		case "element", "any", "group", "sequence", "choice", "all":
			if p := c.particle(&node{e, n.doc}); p != nil {
				all = append(all, p)
			}
		case "annotation":
		default:
			fail(e, "%s does not belong into a model", e.Local)
		}
	}
	return all
}

// simplified leaves out groups that say nothing.
func (p *particle) simplified() *particle {
	if p.sort == "e" || p.sort == "w" {
		return p
	}
	if len(p.parts) == 0 {
		if p.sort == "[" && p.min > 0 {
			return p // a choice of nothing can never be made
		}
		return nil
	}
	if len(p.parts) == 1 && p.sort != "{" {
		inner := p.parts[0]
		if p.min == 1 && p.max == 1 {
			return inner
		}
		if inner.min == 1 && inner.max == 1 {
			inner.min, inner.max = p.min, p.max
			return inner
		}
	}
	return p
}

// check refuses models in which the reader, which never goes back, could take
// too much: a repeated group of one particle that is itself repeated and bounded.
func (p *particle) check(n *node) {
	for _, part := range p.parts {
		part.check(n)
	}
	if len(p.parts) == 1 && p.max != 1 {
		if inner := p.parts[0]; inner.max > 1 || inner.min > 1 {
			fail(n.Element, "a repetition of a bounded repetition is not carried over")
		}
	}
}

func (p *particle) text() string {
	word := p.word
	if p.sort != "e" && p.sort != "w" {
		var words []string
		for _, part := range p.parts {
			words = append(words, part.text())
		}
		closing := map[string]string{"(": ")", "[": "]", "{": "}"}[p.sort]
		word = strings.Join(append(append([]string{p.sort}, words...), closing), " ")
	}
	switch {
	case p.min == 1 && p.max == 1:
		return word
	case p.min == 0 && p.max == 1:
		return word + "?"
	case p.min == 0 && p.max < 0:
		return word + "*"
	case p.min == 1 && p.max < 0:
		return word + "+"
	case p.max < 0:
		return fmt.Sprintf("%s{%d,}", word, p.min)
	}
	return fmt.Sprintf("%s{%d,%d}", word, p.min, p.max)
}

func occurs(n *node) (low, high int) {
	read := func(attr string) int {
		text := n.Attr(attr)
		if text == "" {
			return 1
		}
		if text == "unbounded" {
			return -1
		}
		value, err := strconv.Atoi(text)
		if err != nil {
			fail(n.Element, "%s=%q", attr, text)
		}
		return value
	}
	return read("minOccurs"), read("maxOccurs")
}

func (c *compiler) wildcard(n *node) string {
	process := map[string]string{"": "s", "strict": "s", "lax": "l", "skip": "k"}[n.Attr("processContents")]
	spaces := n.Attr("namespace")
	switch spaces {
	case "", "##any":
		return "any:*:" + process
	case "##other":
		return "any:!" + c.space(n.doc.target) + ":" + process
	}
	var all []string
	for one := range strings.FieldsSeq(spaces) {
		switch one {
		case "##targetNamespace":
			one = n.doc.target
		case "##local":
			one = ""
		}
		all = append(all, c.space(one))
	}
	return "any:" + strings.Join(all, ",") + ":" + process
}

// constraints are the identity constraints of an element.
func (c *compiler) constraints(n *node) []string {
	var keys []string
	names := map[string]bool{}
	for _, e := range n.Children {
		one := &node{e, n.doc}
		sort := map[string]string{"unique": "u", "key": "k", "keyref": "r"}[e.Local]
		if e.Space != space || sort == "" {
			continue
		}
		name := e.Attr("name")
		names[name] = true
		if sort == "r" {
			_, refers := c.qname(one, e.Attr("refer"))
			name += ">" + refers
		}
		words := []string{sort, escape(name), c.xpath(one.child("selector"))}
		for _, f := range e.Children {
			if f.Is(space, "field") {
				words = append(words, c.xpath(&node{f, n.doc}))
			}
		}
		keys = append(keys, strings.Join(words, " "))
	}
	for _, key := range keys {
		if _, refers, is := strings.Cut(strings.Fields(key)[1], ">"); is && !names[refers] {
			fail(n.Element, "a keyref to a key of another element is not carried over")
		}
	}
	return keys
}

// xpath writes the paths of a selector or field with numbers for namespaces.
func (c *compiler) xpath(n *node) string {
	var all []string
	for one := range strings.SplitSeq(n.Attr("xpath"), "|") {
		one = strings.TrimSpace(one)
		rest, deep := strings.CutPrefix(one, ".//")
		var steps []string
		for step := range strings.SplitSeq(rest, "/") {
			attr := strings.HasPrefix(step, "@") || strings.HasPrefix(step, "attribute::")
			step = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(step, "@"), "attribute::"), "child::")
			switch {
			case step == "." || step == "*":
			case attr:
				steps = append(steps, "@"+c.step(n, step))
				continue
			default:
				step = c.step(n, step)
			}
			steps = append(steps, step)
		}
		path := strings.Join(steps, "/")
		if deep {
			path = ".//" + path
		}
		all = append(all, path)
	}
	return strings.Join(all, "|")
}

// step is a name in an XPath: without prefix it has no namespace.
func (c *compiler) step(n *node, name string) string {
	if !strings.Contains(name, ":") {
		return c.name("", name)
	}
	uri, local := c.qname(n, name)
	return c.name(uri, local)
}

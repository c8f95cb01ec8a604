// Package xsd makes compact forms of structures from XSD files: the text that
// tributary/internal/xmltree/structure reads. It is a tool of the build, run by
// tributary/internal/official/compile; the program itself never reads an XSD.
//
// The law of [Compile]: a construct that it does not carry over exactly is an
// error. It never leaves out a rule in silence.
package xsd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tributary/internal/xmltree"
	"tributary/internal/xmltree/structure"
)

const space = "http://www.w3.org/2001/XMLSchema"

// Source says which files a schema is made of.
type Source struct {
	Files []string          // they and what they include or import
	Map   map[string]string // beginning of an address → path that stands for it
}

// Compile answers the compact form of a schema.
func Compile(s Source) (text []byte, err error) {
	c := &compiler{
		source: s, seen: map[string]bool{}, global: map[component]*node{}, spaces: map[string]int{"": 0},
		simpleOf: map[*xmltree.Element]int{}, complexOf: map[*xmltree.Element]int{}, elementOf: map[string]int{},
	}
	defer func() {
		// The compiler is a deep recursion; its errors travel as panics of one type.
		if failed, ok := recover().(failure); ok {
			text, err = nil, failed.error
		}
	}()
	for _, file := range s.Files {
		c.load(file, "")
	}
	c.compile()
	text = c.text()
	made, err := structure.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the compact form cannot be read: %w", err)
	}
	return text, made.Verify()
}

type failure struct{ error }

func fail(at *xmltree.Element, format string, a ...any) {
	where := ""
	if at != nil {
		where = fmt.Sprintf("%s %q: ", at.Local, at.Attr("name")+at.Attr("ref"))
	}
	panic(failure{fmt.Errorf("compiling a schema: %s%w", where, fmt.Errorf(format, a...))})
}

type compiler struct {
	source Source
	seen   map[string]bool
	global map[component]*node
	order  []*node // global components in order

	spaces    map[string]int
	spaceList []string

	simples, complexes, elements []string
	simpleOf                     map[*xmltree.Element]int
	complexOf                    map[*xmltree.Element]int
	elementOf                    map[string]int // by what its line says
	attributes                   []string
	keys                         map[int][]string
}

// component names a global definition.
type component struct{ sort, space, local string }

// node is an element of a schema with the document it stands in.
type node struct {
	*xmltree.Element
	doc *document
}

type document struct {
	path       string
	target     string
	chameleon  bool // has no namespace of its own and takes that of who includes it
	qualified  bool
	attributes bool
}

var doctype = regexp.MustCompile(`(?s)<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>`)

// load reads a file and what it includes and imports.
func (c *compiler) load(path, includedIn string) {
	path = filepath.Clean(path)
	if c.seen[path+" "+includedIn] {
		return
	}
	source, err := os.ReadFile(path)
	if err != nil {
		fail(nil, "%w", err)
	}
	// The W3C's own schema of signatures has a document type, of which nothing is used.
	source = doctype.ReplaceAll(source, nil)
	source = bytes.TrimSpace(source)
	doc, err := xmltree.Limits{Instructions: true}.Read(source)
	if err != nil {
		fail(nil, "%s: %w", path, err)
	}
	root := doc.Root
	if !root.Is(space, "schema") {
		fail(root, "%s is no schema", path)
	}
	d := &document{path: path, target: root.Attr("targetNamespace"), qualified: root.Attr("elementFormDefault") == "qualified",
		attributes: root.Attr("attributeFormDefault") == "qualified"}
	if d.target == "" && includedIn != "" {
		d.target, d.chameleon = includedIn, true
	}
	c.seen[path+" "+includedIn] = true
	c.seen[path+" "+d.target] = true
	if root.Attr("blockDefault") != "" {
		fail(root, "blockDefault is not carried over")
	}
	for _, e := range root.Children {
		if e.Space == space {
			c.top(&node{e, d})
		}
	}
}

func (c *compiler) top(n *node) {
	switch n.Local {
	case "include":
		c.load(c.locate(n, n.Attr("schemaLocation")), n.doc.target)
	case "import":
		// A schema that is named by its namespace alone is among the files.
		if path := c.locate(n, n.Attr("schemaLocation")); path != "" {
			c.load(path, "")
		}
	case "element", "complexType", "simpleType", "group", "attributeGroup", "attribute":
		sort := n.Local
		if sort == "complexType" || sort == "simpleType" {
			sort = "type"
		}
		key := component{sort, n.doc.target, n.Attr("name")}
		if c.global[key] == nil {
			c.global[key] = n
			c.order = append(c.order, n)
		}
	case "annotation", "notation":
	default:
		fail(n.Element, "%s is not carried over", n.Local)
	}
}

func (c *compiler) locate(n *node, location string) string {
	if location == "" {
		return ""
	}
	for prefix, path := range c.source.Map {
		if rest, ok := strings.CutPrefix(location, prefix); ok {
			if path == "" {
				return ""
			}
			return path + rest
		}
	}
	if strings.Contains(location, "://") {
		fail(n.Element, "%s: no file is known for %s", n.doc.path, location)
	}
	return filepath.Join(filepath.Dir(n.doc.path), filepath.FromSlash(location))
}

func (c *compiler) compile() {
	c.keys = map[int][]string{}
	for _, n := range c.order {
		switch n.Local {
		case "element":
			c.element(n)
		case "simpleType":
			c.simple(n)
		case "complexType":
			c.complex(n)
		case "attribute":
			c.globalAttribute(n)
		}
	}
}

func (c *compiler) text() []byte {
	var out bytes.Buffer
	out.WriteString("structure 1\n")
	for _, uri := range c.spaceList {
		out.WriteString("n " + escape(uri) + "\n")
	}
	for _, line := range c.simples {
		out.WriteString("s " + line + "\n")
	}
	for _, line := range c.complexes {
		out.WriteString("t " + line + "\n")
	}
	for i, line := range c.elements {
		out.WriteString("e " + line + "\n")
		for _, key := range c.keys[i] {
			out.WriteString("k " + key + "\n")
		}
	}
	for _, line := range c.attributes {
		out.WriteString("a " + line + "\n")
	}
	return out.Bytes()
}

// qname resolves a reference in a schema.
func (c *compiler) qname(n *node, text string) (uri, local string) {
	prefix, local, found := strings.Cut(strings.TrimSpace(text), ":")
	if !found {
		prefix, local = "", prefix
	}
	uri, ok := n.SpaceOf(prefix)
	if !ok {
		fail(n.Element, "the prefix of %s is not declared", text)
	}
	if uri == "" && n.doc.chameleon {
		uri = n.doc.target
	}
	return uri, local
}

func (c *compiler) find(sort string, n *node, text string) *node {
	uri, local := c.qname(n, text)
	found := c.global[component{sort, uri, local}]
	if found == nil {
		fail(n.Element, "there is no %s {%s}%s", sort, uri, local)
	}
	return found
}

func (c *compiler) space(uri string) string {
	n, ok := c.spaces[uri]
	if !ok {
		n = len(c.spaces)
		c.spaces[uri] = n
		c.spaceList = append(c.spaceList, uri)
	}
	return fmt.Sprint(n)
}

func (c *compiler) name(uri, local string) string { return c.space(uri) + ":" + escape(local) }

// globalName is the name of a global definition, - of an inner one.
func (c *compiler) globalName(n *node) string {
	if n.Parent == nil || n.Parent.Local != "schema" {
		return "-"
	}
	return c.name(n.doc.target, n.Attr("name"))
}

// child answers the first child of the schema's own with one of the names.
func (n *node) child(names ...string) *node {
	for _, e := range n.Children {
		for _, want := range names {
			if e.Is(space, want) {
				return &node{e, n.doc}
			}
		}
	}
	return nil
}

func escape(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == '%' || c == 0x7f {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

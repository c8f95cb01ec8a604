package structure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tributary/internal/xmltree"
)

// XSD writes what the schema says about one namespace as an XML schema of our
// own, for programs that want one: a double serves it beside its WSDL. Types
// are written out instead of derived, so xsi:type cannot choose among them;
// everything else means what the official schema means. locate says where the
// schema of another namespace stands. What cannot be written is an error.
func (s *Schema) XSD(space string, locate func(space string) string) ([]byte, error) {
	x := &schemaWriter{schema: s, space: space, prefixes: map[string]string{}, w: xmltree.NewWriter(16 << 10)}
	x.w.Lines = true
	for _, n := range slices.SortedFunc(maps.Keys(s.elements), compareNames) {
		if n.space == space {
			x.element(s.elements[n], 1, 1, true)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(s.types), compareNames) {
		if n.space == space {
			x.typing(s.types[n], n.local)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(s.attrs), compareNames) {
		if n.space == space {
			x.globalAttribute(s.attrs[n])
		}
	}
	for i := 0; i < len(x.later); i++ {
		x.simple(x.later[i], fmt.Sprintf("Text%d", i+1))
	}
	if x.err != nil {
		return nil, fmt.Errorf("writing the schema of %s: %w", space, x.err)
	}
	return x.document(locate), nil
}

// Spaces are the namespaces that the schema declares something in, sorted.
func (s *Schema) Spaces() []string {
	all := map[string]bool{}
	for n := range s.elements {
		all[n.space] = true
	}
	for n := range s.types {
		all[n.space] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func compareNames(a, b name) int {
	return cmp.Or(strings.Compare(a.space, b.space), strings.Compare(a.local, b.local))
}

type schemaWriter struct {
	schema   *Schema
	space    string
	prefixes map[string]string // by namespace
	later    []*simple         // simple types without a name that need one
	w        *xmltree.Writer
	err      error
}

func (x *schemaWriter) fail(format string, a ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, a...)
	}
}

// document puts the head around what was written: only now all prefixes are known.
func (x *schemaWriter) document(locate func(string) string) []byte {
	out := xmltree.NewWriter(len(x.w.Bytes()) + 1<<10)
	out.Lines = true
	out.Declare()
	pairs := []string{"xmlns:xs", spaceXSD, "elementFormDefault", "qualified"}
	if x.space != "" {
		pairs = append(pairs, "targetNamespace", x.space)
	}
	for _, space := range slices.Sorted(maps.Keys(x.prefixes)) {
		pairs = append(pairs, "xmlns:"+x.prefixes[space], space)
	}
	out.Start("xs:schema", pairs...)
	for _, space := range slices.Sorted(maps.Keys(x.prefixes)) {
		if space != x.space {
			out.Leaf("xs:import", "", "namespace", space, "schemaLocation", locate(space))
		}
	}
	out.Raw(x.w.Bytes())
	out.End()
	return out.Bytes()
}

// reference is a qualified name in the schema.
func (x *schemaWriter) reference(n name) string {
	if n.space == spaceXSD {
		return "xs:" + n.local
	}
	if n.space == "" {
		return n.local
	}
	if x.prefixes[n.space] == "" {
		x.prefixes[n.space] = "n" + strconv.Itoa(len(x.prefixes))
	}
	return x.prefixes[n.space] + ":" + n.local
}

func occurrence(low, high int) []string {
	var pairs []string
	if low != 1 {
		pairs = append(pairs, "minOccurs", strconv.Itoa(low))
	}
	switch {
	case high < 0:
		pairs = append(pairs, "maxOccurs", "unbounded")
	case high != 1:
		pairs = append(pairs, "maxOccurs", strconv.Itoa(high))
	}
	return pairs
}

func (x *schemaWriter) element(d *declaration, low, high int, global bool) {
	if !global && x.schema.elements[d.name] == d {
		x.w.Leaf("xs:element", "", append([]string{"ref", x.reference(d.name)}, occurrence(low, high)...)...)
		return
	}
	pairs := append([]string{"name", d.name.local}, occurrence(low, high)...)
	switch {
	case d.name.space == "" && !global && x.space != "":
		pairs = append(pairs, "form", "unqualified")
	case d.name.space != x.space:
		x.fail("%s is declared in another namespace", d.name.local)
	case len(d.keys) > 0 || len(d.members) > 0:
		x.fail("%s has keys or a substitution group", d.name.local)
	}
	if d.nillable {
		pairs = append(pairs, "nillable", "true")
	}
	if d.abstract {
		pairs = append(pairs, "abstract", "true")
	}
	if d.fixed != nil {
		pairs = append(pairs, "fixed", *d.fixed)
	} else if d.standard != nil {
		pairs = append(pairs, "default", *d.standard)
	}
	switch {
	case d.typing == nil:
		x.w.Leaf("xs:element", "", pairs...)
	case d.typing.name.local != "":
		x.w.Leaf("xs:element", "", append(pairs, "type", x.reference(d.typing.name))...)
	default:
		x.w.Start("xs:element", pairs...)
		x.typing(d.typing, "")
		x.w.End()
	}
}

func (x *schemaWriter) typing(t *typing, local string) {
	if !t.complex {
		x.simple(t.value, local)
		return
	}
	var pairs []string
	if local != "" {
		pairs = append(pairs, "name", local)
	}
	if t.mixed {
		pairs = append(pairs, "mixed", "true")
	}
	if t.abstract {
		pairs = append(pairs, "abstract", "true")
	}
	x.w.Start("xs:complexType", pairs...)
	if t.value != nil {
		x.w.Start("xs:simpleContent")
		x.w.Start("xs:extension", "base", x.valueType(t.value))
		x.attributes(t)
		x.w.End()
		x.w.End()
	} else {
		if t.model != nil {
			x.group(t.model)
		}
		x.attributes(t)
	}
	x.w.End()
}

// group writes a model, which XSD wants to be a group.
func (x *schemaWriter) group(p *particle) {
	if p.sort == 'e' || p.sort == 'w' {
		p = &particle{sort: '(', min: 1, max: 1, parts: []*particle{p}}
	}
	x.particle(p)
}

func (x *schemaWriter) particle(p *particle) {
	switch p.sort {
	case 'e':
		x.element(p.element, p.min, p.max, false)
	case 'w':
		x.w.Leaf("xs:any", "", append(x.wildcard(p.wildcard), occurrence(p.min, p.max)...)...)
	default:
		x.w.Start(map[byte]string{'(': "xs:sequence", '[': "xs:choice", '{': "xs:all"}[p.sort], occurrence(p.min, p.max)...)
		for _, part := range p.parts {
			x.particle(part)
		}
		x.w.End()
	}
}

func (x *schemaWriter) wildcard(w *wildcard) []string {
	process := map[byte]string{'s': "strict", 'l': "lax", 'k': "skip"}[w.process]
	spaces := "##any"
	switch {
	case w.any:
	case w.others && w.not == x.space:
		spaces = "##other"
	case w.others:
		x.fail("a wildcard speaks of another namespace")
	default:
		var all []string
		for _, s := range w.spaces {
			if s == "" {
				s = "##local"
			}
			all = append(all, s)
		}
		spaces = strings.Join(all, " ")
	}
	return []string{"namespace", spaces, "processContents", process}
}

func (x *schemaWriter) attributes(t *typing) {
	for i := range t.attrs {
		a := &t.attrs[i]
		var pairs []string
		switch {
		case a.name.space == "":
			pairs = []string{"name", a.name.local, "type", x.valueType(a.value)}
		case x.schema.attrs[a.name] != nil:
			pairs = []string{"ref", x.reference(a.name)}
		case a.name.space == x.space:
			pairs = []string{"name", a.name.local, "form", "qualified", "type", x.valueType(a.value)}
		default:
			x.fail("the attribute %s is declared in another namespace", a.name.local)
		}
		switch {
		case a.required:
			pairs = append(pairs, "use", "required")
		case a.prohibited:
			pairs = append(pairs, "use", "prohibited")
		}
		if a.fixed != nil {
			pairs = append(pairs, "fixed", *a.fixed)
		}
		x.w.Leaf("xs:attribute", "", pairs...)
	}
	if t.anyAttr != nil {
		x.w.Leaf("xs:anyAttribute", "", x.wildcard(t.anyAttr)...)
	}
}

func (x *schemaWriter) globalAttribute(a *attribute) {
	pairs := []string{"name", a.name.local, "type", x.valueType(a.value)}
	if a.fixed != nil {
		pairs = append(pairs, "fixed", *a.fixed)
	}
	x.w.Leaf("xs:attribute", "", pairs...)
}

// valueType names a simple type; one without a name gets one.
func (x *schemaWriter) valueType(s *simple) string {
	if s.name.local != "" {
		return x.reference(s.name)
	}
	at := slices.Index(x.later, s)
	if at < 0 {
		at = len(x.later)
		x.later = append(x.later, s)
	}
	return x.reference(name{x.space, fmt.Sprintf("Text%d", at+1)})
}

func (x *schemaWriter) simple(s *simple, local string) {
	var pairs []string
	if local != "" {
		pairs = append(pairs, "name", local)
	}
	x.w.Start("xs:simpleType", pairs...)
	switch {
	case s.item != nil:
		x.w.Leaf("xs:list", "", "itemType", x.valueType(s.item))
	case s.members != nil:
		var all []string
		for _, m := range s.members {
			all = append(all, x.valueType(m))
		}
		x.w.Leaf("xs:union", "", "memberTypes", strings.Join(all, " "))
	default:
		x.w.Start("xs:restriction", "base", x.valueType(s.base))
		x.facets(s)
		x.w.End()
	}
	x.w.End()
}

func (x *schemaWriter) facets(s *simple) {
	facet := func(local, value string) { x.w.Leaf("xs:"+local, "", "value", value) }
	if s.white != s.base.white {
		facet("whiteSpace", map[byte]string{'p': "preserve", 'r': "replace", 'c': "collapse"}[s.white])
	}
	for _, f := range []struct {
		local string
		value int
	}{{"length", s.length}, {"minLength", s.shortest}, {"maxLength", s.longest}, {"totalDigits", s.digits},
		{"fractionDigits", s.decimals}} {
		if f.value >= 0 {
			facet(f.local, strconv.Itoa(f.value))
		}
	}
	for _, b := range s.bounds {
		facet(map[byte]string{'G': "minInclusive", 'g': "minExclusive", 'L': "maxInclusive", 'l': "maxExclusive"}[b.sort], b.text)
	}
	for _, p := range s.patterns {
		facet("pattern", p.source)
	}
	if s.values == nil {
		return
	}
	for _, r := range s.values.runs {
		facet("enumeration", r.first)
		if n, err := strconv.Atoi(r.first); err == nil && r.more > 0 {
			for k := 1; k <= r.more; k++ {
				facet("enumeration", fmt.Sprintf("%0*d", len(r.first), n+k))
			}
		}
	}
}

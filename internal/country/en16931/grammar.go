package en16931

import (
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strings"

	"tributary/internal/incoming"
	"tributary/internal/xmltree"
)

// A syntax is a tree of parts in the order of its schema. Each part writes
// itself from a value and reads itself back, so that the two directions cannot
// disagree, and nothing is written out of order.
//
// Writing: an element that holds nothing but fixed values is taken back, so
// empty elements never occur. Reading: a part takes the elements it knows;
// whatever nobody took is reported as not understood.
type part[T any] struct {
	write func(w *writer, v *T) bool // reports whether a term was written
	read  func(r *reader, in *xmltree.Element, v *T)
	// fits tells elements of one name apart by the fixed values inside of them
	// (an allowance from a charge, VAT from another tax). Nil fits anything.
	fits func(r *reader, in *xmltree.Element) bool
}

// leafAttr is an attribute of a leaf.
type leafAttr[T any] struct {
	name  string
	value func(w *writer, v *T) string // "" leaves it out
	take  func(r *reader, e *xmltree.Element, v *T, value string)
	fixed string // where the attribute tells elements apart
}

type writer struct {
	out         []byte
	currency    string
	taxCurrency string
}

type reader struct {
	taken       map[*xmltree.Element]bool
	unknown     incoming.Unread
	err         error
	currency    string
	taxCurrency string
}

// errContent is wrapped by everything that is wrong inside of a well-formed document.
var errContent = errors.New("reading an invoice")

func (r *reader) fail(e *xmltree.Element, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %s", errContent, e.Path(), fmt.Sprintf(format, args...))
	}
}

// take finds the next element with a name that nobody took yet.
func take[T any](r *reader, in *xmltree.Element, name elementName, parts []part[T]) *xmltree.Element {
	for _, c := range in.Children {
		if c.Local == name.local && c.Space == name.space && !r.taken[c] && fitsAll(r, c, parts) {
			r.taken[c] = true
			return c
		}
	}
	return nil
}

// each takes every element of a name that fits, in one walk: a document may have
// very many of them.
func each[T any](r *reader, in *xmltree.Element, n elementName, parts []part[T]) iter.Seq[*xmltree.Element] {
	return func(yield func(*xmltree.Element) bool) {
		for _, c := range in.Children {
			if c.Local != n.local || c.Space != n.space || r.taken[c] || !fitsAll(r, c, parts) {
				continue
			}
			if r.taken[c] = true; !yield(c) {
				return
			}
		}
	}
}

func fitsAll[T any](r *reader, in *xmltree.Element, parts []part[T]) bool {
	for i := range parts {
		if parts[i].fits != nil && !parts[i].fits(r, in) {
			return false
		}
	}
	return true
}

// elementName is a name as it is written and as it is found.
type elementName struct {
	space, local string
	open, close  string // <cbc:ID and </cbc:ID>
}

func named(name string) elementName {
	prefix, local, _ := strings.Cut(name, ":")
	return elementName{space: namespaces[prefix], local: local, open: "<" + name, close: "</" + name + ">"}
}

var namespaces = map[string]string{
	"cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
	"cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
	"rsm": "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100",
	"ram": "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
	"udt": "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100",
	"qdt": "urn:un:unece:uncefact:data:standard:QualifiedDataType:100",
}

// in is an element that holds others.
func in[T any](name string, parts ...part[T]) part[T] {
	n := named(name)
	p := part[T]{
		write: func(w *writer, v *T) bool { return w.element(n, func() bool { return writeAll(w, v, parts) }) },
		read: func(r *reader, at *xmltree.Element, v *T) {
			if e := take(r, at, n, parts); e != nil {
				readAll(r, e, v, parts)
			}
		},
	}
	if distinguishes(parts) {
		p.fits = func(r *reader, at *xmltree.Element) bool {
			for _, c := range at.Children {
				if c.Local == n.local && c.Space == n.space {
					return fitsAll(r, c, parts)
				}
			}
			return false
		}
	}
	return p
}

func distinguishes[T any](parts []part[T]) bool {
	for i := range parts {
		if parts[i].fits != nil {
			return true
		}
	}
	return false
}

// loose is an element that holds others and never tells its parent apart.
func loose[T any](name string, parts ...part[T]) part[T] {
	p := in(name, parts...)
	p.fits = nil
	return p
}

// always is an element that the schema wants even when there is nothing in it.
func always[T any](name string, parts ...part[T]) part[T] {
	p, n := loose(name, parts...), named(name)
	p.write = func(w *writer, v *T) bool {
		w.out = append(append(w.out, n.open...), '>')
		writeAll(w, v, parts)
		w.out = append(w.out, n.close...)
		return true
	}
	return p
}

func (w *writer) element(n elementName, content func() bool) bool {
	mark := len(w.out)
	w.out = append(append(w.out, n.open...), '>')
	if !content() {
		w.out = w.out[:mark]
		return false
	}
	w.out = append(w.out, n.close...)
	return true
}

func writeAll[T any](w *writer, v *T, parts []part[T]) bool {
	wrote := false
	for i := range parts {
		if parts[i].write(w, v) {
			wrote = true
		}
	}
	return wrote
}

func readAll[T any](r *reader, e *xmltree.Element, v *T, parts []part[T]) {
	for i := range parts {
		parts[i].read(r, e, v)
	}
}

// many is a repeated element, one for each entry of a list.
func many[T, E any](name string, list func(*T) *[]E, parts ...part[E]) part[T] {
	n := named(name)
	return part[T]{
		write: func(w *writer, v *T) bool {
			entries, wrote := *list(v), false
			for i := range entries {
				if w.element(n, func() bool { return writeAll(w, &entries[i], parts) }) {
					wrote = true
				}
			}
			return wrote
		},
		read: func(r *reader, at *xmltree.Element, v *T) {
			for c := range each(r, at, n, parts) {
				var entry E
				readAll(r, c, &entry, parts)
				*list(v) = append(*list(v), entry)
			}
		},
	}
}

// maybe is an element that is there when a pointer is.
func maybe[T, E any](name string, at func(*T) **E, parts ...part[E]) part[T] {
	n := named(name)
	return part[T]{
		write: func(w *writer, v *T) bool {
			e := *at(v)
			return e != nil && w.element(n, func() bool { return writeAll(w, e, parts) })
		},
		read: func(r *reader, in *xmltree.Element, v *T) {
			if e := take(r, in, n, parts); e != nil {
				*at(v) = new(E)
				readAll(r, e, *at(v), parts)
			}
		},
	}
}

// of puts the parts of a member where they are.
func of[T, E any](at func(*T) *E, parts ...part[E]) part[T] {
	p := part[T]{
		write: func(w *writer, v *T) bool { return writeAll(w, at(v), parts) },
		read:  func(r *reader, in *xmltree.Element, v *T) { readAll(r, in, at(v), parts) },
	}
	if distinguishes(parts) {
		p.fits = func(r *reader, in *xmltree.Element) bool { return fitsAll(r, in, parts) }
	}
	return p
}

// leaf is an element with text. put writes the escaped text and reports whether
// there is any; get reads it.
func leaf[T any](name string, put func(w *writer, v *T) bool, get func(r *reader, e *xmltree.Element, v *T), attrs ...leafAttr[T]) part[T] {
	n := named(name)
	p := part[T]{
		write: func(w *writer, v *T) bool {
			mark := len(w.out)
			w.out = append(w.out, n.open...)
			for i := range attrs {
				if value := attrs[i].value(w, v); value != "" {
					w.out = append(append(append(w.out, ' '), attrs[i].name...), '=', '"')
					w.out = append(xmltree.AppendValue(w.out, value), '"')
				}
			}
			w.out = append(w.out, '>')
			if !put(w, v) {
				w.out = w.out[:mark]
				return false
			}
			w.out = append(w.out, n.close...)
			return true
		},
		read: func(r *reader, in *xmltree.Element, v *T) {
			if e := takeLeaf(r, in, n, attrs); e != nil && (strings.TrimSpace(e.Text) != "" || len(e.Children) > 0) {
				get(r, e, v)
				readAttrs(r, e, v, attrs)
			}
		},
	}
	for i := range attrs {
		if attrs[i].fixed != "" {
			p.fits = func(r *reader, in *xmltree.Element) bool { return findLeaf(r, in, n, attrs) != nil }
		}
	}
	return p
}

func findLeaf[T any](r *reader, in *xmltree.Element, n elementName, attrs []leafAttr[T]) *xmltree.Element {
next:
	for _, c := range in.Children {
		if c.Local != n.local || c.Space != n.space || r.taken[c] {
			continue
		}
		for i := range attrs {
			if attrs[i].fixed != "" && !strings.EqualFold(c.Attr(attrs[i].name), attrs[i].fixed) {
				continue next
			}
		}
		return c
	}
	return nil
}

func takeLeaf[T any](r *reader, in *xmltree.Element, n elementName, attrs []leafAttr[T]) *xmltree.Element {
	e := findLeaf(r, in, n, attrs)
	if e != nil {
		r.taken[e] = true
	}
	return e
}

// readAttrs reads the attributes of a leaf. Those that only say which edition
// of a code list is meant are no terms of the standard and are passed over.
func readAttrs[T any](r *reader, e *xmltree.Element, v *T, attrs []leafAttr[T]) {
next:
	for _, a := range e.Attrs {
		for i := range attrs {
			if attrs[i].name == a.Local && a.Space == "" {
				if attrs[i].take != nil {
					attrs[i].take(r, e, v, strings.TrimSpace(a.Value))
				}
				continue next
			}
		}
		switch a.Local {
		case "listID", "listAgencyID", "listAgencyName", "listVersionID", "listName", "listURI", "schemeName", "schemeAgencyID", "schemeAgencyName",
			"schemeVersionID", "schemeURI", "schemeDataURI", "unitCodeListID", "unitCodeListAgencyID", "languageID", "schemaLocation", "type", "format":
		default:
			r.unknown.Add(func() string { return e.Path() + "/@" + a.Local })
		}
	}
}

// text is an element with a free text, kept as it is.
func text[T any](name string, at func(*T) *string, attrs ...leafAttr[T]) part[T] {
	return leaf(name, func(w *writer, v *T) bool { return w.text(*at(v)) }, func(r *reader, e *xmltree.Element, v *T) {
		*at(v) = e.Text
	}, attrs...)
}

// code is an element with an identifier or a code: blanks around it do not count.
func code[T any](name string, at func(*T) *string, attrs ...leafAttr[T]) part[T] {
	return leaf(name, func(w *writer, v *T) bool { return w.text(*at(v)) }, func(r *reader, e *xmltree.Element, v *T) {
		*at(v) = strings.TrimSpace(e.Text)
	}, attrs...)
}

func (w *writer) text(s string) bool {
	if s == "" {
		return false
	}
	w.out = xmltree.AppendText(w.out, s)
	return true
}

// identified is an element with an identifier and its scheme.
func identified[T any](name string, at func(*T) *Identifier) part[T] {
	return code(name, func(v *T) *string { return &at(v).ID }, attr("schemeID", func(v *T) *string { return &at(v).Scheme }))
}

// number is an element with a decimal.
func number[T any](name string, at func(*T) *Decimal, attrs ...leafAttr[T]) part[T] {
	return leaf(name, func(w *writer, v *T) bool {
		d := at(v)
		if d.given {
			w.out = d.append(w.out)
		}
		return d.given
	}, func(r *reader, e *xmltree.Element, v *T) {
		d, err := ParseDecimal(strings.TrimSpace(e.Text))
		if err != nil {
			r.fail(e, "%q is %v", clip(e.Text), err)
		}
		*at(v) = d
	}, attrs...)
}

func clip(s string) string { return s[:min(len(s), 40)] }

// fixed is an element whose text says what its parent is.
func fixed[T any](name, value string) part[T] {
	n := named(name)
	return part[T]{
		write: func(w *writer, _ *T) bool {
			w.out = append(append(append(append(w.out, n.open...), '>'), value...), n.close...)
			return false
		},
		read: func(r *reader, in *xmltree.Element, _ *T) { take[T](r, in, n, nil) },
		fits: func(_ *reader, in *xmltree.Element) bool {
			for _, c := range in.Children {
				if c.Local == n.local && c.Space == n.space {
					return says(strings.TrimSpace(c.Text), value)
				}
			}
			return false
		},
	}
}

// says compares a fixed value; 0 and 1 are the other spellings of a boolean.
func says(text, value string) bool {
	return strings.EqualFold(text, value) || value == "false" && text == "0" || value == "true" && text == "1"
}

// usual is a fixed value that other writers leave out.
func usual[T any](name, value string) part[T] {
	p, n := fixed[T](name, value), named(name)
	given := p.fits
	p.fits = func(r *reader, in *xmltree.Element) bool {
		for _, c := range in.Children {
			if c.Local == n.local && c.Space == n.space {
				return given(r, in)
			}
		}
		return true
	}
	return p
}

// marker is an element that holds nothing but fixed values. It is written, but
// is no term: what it stands in is taken back when there is nothing else.
func marker[T any](name string, parts ...part[T]) part[T] {
	p, n := in(name, parts...), named(name)
	p.write = func(w *writer, v *T) bool {
		w.out = append(append(w.out, n.open...), '>')
		writeAll(w, v, parts)
		w.out = append(w.out, n.close...)
		return false
	}
	return p
}

// filler is an element that a schema wants and the standard has no term for.
func filler[T any](name, value string) part[T] {
	p := fixed[T](name, value)
	p.fits = nil
	return p
}

// passed is an element that is read over and never written: it repeats what stands elsewhere.
func passed[T any](name string) part[T] {
	p := filler[T](name, "")
	p.write = func(*writer, *T) bool { return false }
	return p
}

// binary is an element with a file in base 64.
func binary[T any](name string, at func(*T) *[]byte, attrs ...leafAttr[T]) part[T] {
	return leaf(name, func(w *writer, v *T) bool {
		w.out = base64.StdEncoding.AppendEncode(w.out, *at(v))
		return len(*at(v)) > 0
	}, func(r *reader, e *xmltree.Element, v *T) {
		compact := strings.Join(strings.Fields(e.Text), "")
		content, err := base64.StdEncoding.DecodeString(compact)
		if err != nil {
			r.fail(e, "the file is not in base 64")
		}
		*at(v) = content
	}, attrs...)
}

// attr is an attribute with a code.
func attr[T any](name string, at func(*T) *string) leafAttr[T] {
	return leafAttr[T]{name: name,
		value: func(_ *writer, v *T) string { return *at(v) },
		take:  func(_ *reader, _ *xmltree.Element, v *T, value string) { *at(v) = value }}
}

// fixedAttr is an attribute whose value says what the element is.
func fixedAttr[T any](name, value string) leafAttr[T] {
	return leafAttr[T]{name: name, fixed: value, value: func(*writer, *T) string { return value }}
}

// noted is an attribute of other writers that says nothing new.
func noted[T any](name string) leafAttr[T] {
	return leafAttr[T]{name: name, value: func(*writer, *T) string { return "" }}
}

// only narrows a part by a condition on the element it stands in.
func only[T any](p part[T], when func(in *xmltree.Element) bool) part[T] {
	before := p.fits
	p.fits = func(r *reader, in *xmltree.Element) bool { return when(in) && (before == nil || before(r, in)) }
	return p
}

// leftovers lists what nobody took.
func (r *reader) leftovers(e *xmltree.Element) {
	for _, c := range e.Children {
		switch {
		case r.taken[c]:
			r.leftovers(c)
		case len(c.Children) > 0 || strings.TrimSpace(c.Text) != "":
			r.unknown.Add(c.Path)
		}
	}
}

package es

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Names of the service: AEAT, SistemaFacturacion.wsdl and its schemas.
const (
	nsSOAP    = "http://schemas.xmlsoap.org/soap/envelope/"
	nsBase    = "https://www2.agenciatributaria.gob.es/static_files/common/internet/dep/aplicaciones/es/aeat/tike/cont/ws/"
	nsLR      = nsBase + "SuministroLR.xsd"
	nsInfo    = nsBase + "SuministroInformacion.xsd"
	nsAnswer  = nsBase + "RespuestaSuministro.xsd"
	nsAsk     = nsBase + "ConsultaLR.xsd"
	nsAskedOf = nsBase + "RespuestaConsultaLR.xsd"

	servicePath = "/wlpl/TIKE-CONT/ws/SistemaFacturacion/VerifactuSOAP"
	contentType = "text/xml; charset=utf-8"
	xmlStart    = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
)

// Limits of what is read, whoever wrote it.
const (
	depthMax      = 32
	elementsMax   = 400_000 // a full call has about 70,000
	attributesMax = 32
)

var (
	errDoctype = errors.New("the document has a DOCTYPE")
	errTooBig  = errors.New("the document has too many elements, attributes or levels")
)

// element is one XML element, read. from and to are its bytes in the source.
type element struct {
	space, name string
	text        string // of a leaf, blanks at the ends taken off
	children    []*element
	from, to    int
}

// readXML reads a whole document. It refuses DOCTYPE, so that no entity can be
// declared, and everything beyond the limits above.
func readXML(source []byte) (*element, error) {
	dec := xml.NewDecoder(bytes.NewReader(source))
	var root *element
	var open []*element
	var texts [][]byte // a text that comments cut into pieces is joined in linear time
	for count := 0; ; {
		from := int(dec.InputOffset())
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading XML: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return nil, fmt.Errorf("reading XML: %w", errDoctype)
		case xml.StartElement:
			if count++; count > elementsMax || len(open) >= depthMax || len(t.Attr) > attributesMax {
				return nil, fmt.Errorf("reading XML: %w", errTooBig)
			}
			e := &element{space: t.Name.Space, name: t.Name.Local, from: from}
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, e)
			} else if root != nil {
				return nil, errors.New("reading XML: there are two roots")
			} else {
				root = e
			}
			open, texts = append(open, e), append(texts, nil)
		case xml.CharData:
			if len(open) > 0 && len(open[len(open)-1].children) == 0 {
				texts[len(open)-1] = append(texts[len(open)-1], t...)
			}
		case xml.EndElement:
			e := open[len(open)-1]
			e.to = int(dec.InputOffset())
			if len(e.children) == 0 {
				e.text = string(bytes.TrimSpace(texts[len(open)-1]))
			}
			open, texts = open[:len(open)-1], texts[:len(texts)-1]
		}
	}
	if root == nil {
		return nil, errors.New("reading XML: there is no element")
	}
	return root, nil
}

// at follows names downwards; nil when there is no such element.
func (e *element) at(path ...string) *element {
	for _, name := range path {
		if e == nil {
			return nil
		}
		var next *element
		for _, c := range e.children {
			if c.name == name {
				next = c
				break
			}
		}
		e = next
	}
	return e
}

// value is the text of the element that the path leads to, or "".
func (e *element) value(path ...string) string {
	if e = e.at(path...); e == nil {
		return ""
	}
	return e.text
}

// all answers the children with a name.
func (e *element) all(name string) []*element {
	var found []*element
	if e == nil {
		return nil
	}
	for _, c := range e.children {
		if c.name == name {
			found = append(found, c)
		}
	}
	return found
}

// is reports whether the element has a qualified name.
func (e *element) is(space, name string) bool { return e != nil && e.space == space && e.name == name }

// soapBody answers the only element of a SOAP body.
func soapBody(source []byte) (*element, error) {
	root, err := readXML(source)
	if err != nil {
		return nil, err
	}
	if !root.is(nsSOAP, "Envelope") {
		return nil, errors.New("reading XML: it is no SOAP envelope")
	}
	body := root.at("Body")
	if !body.is(nsSOAP, "Body") || len(body.children) != 1 {
		return nil, errors.New("reading XML: the SOAP envelope has no body with one element")
	}
	return body.children[0], nil
}

// writer builds XML text: one element a line, nothing indented, so that equal
// content is equal bytes.
type writer struct{ out []byte }

func (w *writer) open(tag string) {
	w.out = append(w.out, '<')
	w.out = append(w.out, tag...)
	w.out = append(w.out, '>', '\n')
}

func (w *writer) close(tag string) {
	w.out = append(w.out, '<', '/')
	w.out = append(w.out, tag...)
	w.out = append(w.out, '>', '\n')
}

func (w *writer) leaf(tag, text string) {
	w.out = append(w.out, '<')
	w.out = append(w.out, tag...)
	w.out = append(w.out, '>')
	w.out = appendText(w.out, text)
	w.out = append(w.out, '<', '/')
	w.out = append(w.out, tag...)
	w.out = append(w.out, '>', '\n')
}

// maybe writes a leaf that is left out when it is empty.
func (w *writer) maybe(tag, text string) {
	if text != "" {
		w.leaf(tag, text)
	}
}

// flag writes S where a statement holds and nothing where it does not.
func (w *writer) flag(tag string, holds bool) {
	if holds {
		w.leaf(tag, "S")
	}
}

// appendText escapes text for the inside of an element. Characters that XML
// cannot carry, and line breaks, become blanks.
func appendText(out []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '&':
			out = append(out, "&amp;"...)
		case r == '<':
			out = append(out, "&lt;"...)
		case r == '>':
			out = append(out, "&gt;"...)
		case unprintable(r):
			out = append(out, ' ')
		default:
			out = append(out, string(r)...)
		}
	}
	return out
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
func plain(text string, max int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unprintable(r) {
			return ' '
		}
		return r
	}, text))
	count := 0
	for i := range text {
		if count == max {
			return strings.TrimSpace(text[:i])
		}
		count++
	}
	return text
}

package onboarding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
)

const (
	bodyBytesMax = 1 << 20
	depthMax     = 32 // of nested objects and arrays in a body
	pathNameMax  = 64 // characters of a client's own name that a message repeats
)

// node is one JSON value. The tree keeps what a decoder into structs loses:
// which members were sent, null among them, and that none was sent twice.
type node struct {
	kind    kind
	text    string // of a string or a number, or a literal
	names   []string
	members map[string]*node
	entries []*node
}

type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	isArray
	isObject
)

// parse reads a body strictly: valid UTF-8, the grammar of RFC 8259, no name
// twice in one object, at most depthMax deep, one object and nothing after it.
func parse(body []byte) (*node, error) {
	if len(body) > bodyBytesMax {
		return nil, fault.New(fault.TooLarge, "the body is larger than %d bytes", bodyBytesMax).
			With(fault.Fault{Code: fault.BodyTooLarge, Type: fault.General, Message: "the body is too large"})
	}
	if at := invalidUTF8(body); at >= 0 {
		return nil, broken(body, at, "the body is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil { // the grammar, before any value is built
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, broken(body, max(0, int(syntax.Offset)-1), strings.TrimPrefix(syntax.Error(), "json: "))
		}
		return nil, broken(body, len(body), "the body is not JSON")
	}
	p := &parser{body: body, tokens: json.NewDecoder(bytes.NewReader(body))}
	p.tokens.UseNumber()
	root, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if root.kind != isObject {
		return nil, broken(body, 0, "the body must be an object")
	}
	return root, nil
}

type parser struct {
	body   []byte
	tokens *json.Decoder
}

func (p *parser) value(depth int) (*node, error) {
	token, err := p.tokens.Token()
	if err != nil {
		return nil, p.fail(err)
	}
	switch v := token.(type) {
	case json.Delim:
		if depth == depthMax {
			return nil, broken(p.body, int(p.tokens.InputOffset())-1, fmt.Sprintf("objects and arrays are nested more than %d deep", depthMax))
		}
		if v == '[' {
			return p.array(depth + 1)
		}
		return p.object(depth + 1)
	case string:
		return &node{kind: isText, text: v}, nil
	case json.Number:
		return &node{kind: isNumber, text: v.String()}, nil
	case bool:
		return &node{kind: isBool, text: fmt.Sprint(v)}, nil
	}
	return &node{kind: isNull, text: "null"}, nil
}

func (p *parser) array(depth int) (*node, error) {
	n := &node{kind: isArray}
	for p.tokens.More() {
		entry, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		n.entries = append(n.entries, entry)
	}
	_, err := p.tokens.Token()
	return n, p.fail(err)
}

func (p *parser) object(depth int) (*node, error) {
	n := &node{kind: isObject, members: map[string]*node{}}
	for p.tokens.More() {
		token, err := p.tokens.Token()
		if err != nil {
			return nil, p.fail(err)
		}
		name, _ := token.(string)
		if _, twice := n.members[name]; twice {
			return nil, broken(p.body, int(p.tokens.InputOffset()), fmt.Sprintf("the name %q stands twice in one object", printable(name)))
		}
		member, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		n.names = append(n.names, name)
		n.members[name] = member
	}
	_, err := p.tokens.Token()
	return n, p.fail(err)
}

// fail turns an error of the decoder, which cannot come after the grammar was
// checked, into one of the body.
func (p *parser) fail(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return broken(p.body, int(p.tokens.InputOffset()), err.Error())
}

// broken says where the body stops being acceptable JSON.
func broken(body []byte, at int, what string) error {
	before := string(body[:min(at, len(body))])
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fault.New(fault.Invalid, "the body is not acceptable JSON").With(fault.Fault{
		Code: fault.JSONNotValid, Type: fault.Validation,
		Message: fmt.Sprintf("line %d, column %d (byte %d): %s", line, column, at, what),
	})
}

func invalidUTF8(body []byte) int {
	if utf8.Valid(body) {
		return -1
	}
	for i := 0; i < len(body); {
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// canonical writes the value so that equal contents give equal bytes, names in
// order. Where a null says nothing it is left out, as if it was not sent.
func (n *node) canonical(to *bytes.Buffer, nulls bool) {
	switch n.kind {
	case isText:
		to.Write(quoted(n.text))
	case isArray:
		to.WriteByte('[')
		for _, entry := range n.entries {
			entry.canonical(to, nulls)
			to.WriteByte(',')
		}
		to.WriteByte(']')
	case isObject:
		names := append([]string(nil), n.names...)
		sort.Strings(names)
		to.WriteByte('{')
		for _, name := range names {
			if n.members[name].kind == isNull && !nulls {
				continue
			}
			to.Write(quoted(name))
			to.WriteByte(':')
			n.members[name].canonical(to, nulls)
			to.WriteByte(',')
		}
		to.WriteByte('}')
	default:
		to.WriteString(n.text)
	}
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // strings always encode
	return b
}

// printable makes a client's own name fit to be repeated in a message.
func printable(name string) string {
	var b strings.Builder
	n := 0
	for _, r := range name {
		if n++; n > pathNameMax {
			b.WriteString("…")
			break
		}
		if _, bad := unfit(string(r)); bad {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unfit finds a character that no document may carry: it would break an XML
// document (controls, noncharacters), a line, or make a reader see another
// order than is stored (bidirectional controls). U+FFFD stands for a broken
// escape.
func unfit(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case r < ' ', 0x7f <= r && r <= 0x9f, r == 0x2028, r == 0x2029,
			0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069,
			0xfdd0 <= r && r <= 0xfdef, r&0xfffe == 0xfffe, r == utf8.RuneError:
			return r, true
		}
	}
	return 0, false
}

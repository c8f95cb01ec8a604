// Package strictjson reads JSON that others wrote, once and strictly.
//
// It owns the grammar of RFC 8259 without its leniencies: valid UTF-8, no name
// twice in one object, no half of a surrogate pair, objects and arrays nested
// at most DepthMax deep, a limit on size, one value and nothing after it, no
// byte order mark. Numbers stay the digits that were written; there is no float
// anywhere. It does not own what a member means: whoever reads decides which
// names it knows.
//
// Three ways in, one grammar: [Reader] walks a body and knows the path of the
// value at hand (for what is read all day), [Parse] builds a tree (for what is
// compared as a whole), [Unmarshal] fills a Go value (for configuration and
// scripts).
//
// The law of the Reader: what breaks the JSON ends the reading, and every
// method then returns at once; what is only wrong in a value is collected with
// its path, and the reading goes on, so that one answer names all faults.
//
// Why not the standard library: docs/decisions/0023.
package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
)

const (
	// DepthMax is how deep objects and arrays may be nested.
	DepthMax = 32

	keysByList = 16 // names of one object that are compared one by one; more go through a map
)

// Reader walks one body. Embed it or make one with new, then Open it.
//
// It is written by hand because the standard decoder keeps the last of two
// equal names, replaces broken UTF-8 silently, has no limit on depth that we
// could set, and needs a second pass over the members to say what is wrong
// with each. Here the path of the value at hand is always known, so that a
// fault costs nothing until there is one.
type Reader struct {
	text   string // the whole body; strings without escapes are parts of it
	pos    int
	depth  int
	steps  [DepthMax]step // the path of the value at hand is steps[:depth]
	broken *fault.Error

	// Faults are what is wrong with values.
	Faults   fault.List
	warnings fault.List
}

// step is a member's name or, in an array, an index.
type step struct {
	name  string
	index int // -1: a member
}

// State is what became of a member.
type State uint8

// The states of a member.
const (
	Absent  State = iota // not sent, null or blank
	Refused              // sent, but a fault was raised
	Taken
)

// Open takes a body of at most bytesMax bytes. It copies it: what the caller
// does with its buffer afterwards reaches nothing that was read.
func (r *Reader) Open(body []byte, bytesMax int) {
	if len(body) > bytesMax {
		r.broken = fault.New(fault.TooLarge, "the body is larger than %d bytes", bytesMax).
			With(fault.Fault{Code: fault.BodyTooLarge, Type: fault.General, Message: "the body is too large"})
		return
	}
	r.text = string(body)
}

// Body reads the body's one object and makes sure that nothing follows it.
func (r *Reader) Body(member func(name string)) {
	switch c := r.peek(); {
	case r.broken != nil:
	case c == 0 && r.pos == len(r.text):
		r.fail(r.pos, "the body is empty")
	case c != '{':
		r.fail(r.pos, "the body must be an object")
	default:
		r.members(member)
		r.end()
	}
}

// Find reads a text of the body's object, wherever it stands, and moves
// nothing: for a fault that is told better with a member that comes later.
func (r *Reader) Find(name string, into *string) {
	other := &Reader{text: r.text}
	other.Body(func(n string) {
		if n != name {
			other.Skip()
			return
		}
		other.Text(into)
	})
}

// Err says why the body cannot be read at all: a [*fault.Error] of kind
// TooLarge, or of kind Invalid with the position. Nil: it is JSON.
func (r *Reader) Err() error {
	if r.broken == nil {
		return nil // not a nil pointer in an interface
	}
	return r.broken
}

// Broken reports that the reading has ended.
func (r *Reader) Broken() bool { return r.broken != nil }

// Path is the dotted path of the value at hand.
func (r *Reader) Path() string {
	var b strings.Builder
	for i := range r.depth {
		if i > 0 {
			b.WriteByte('.')
		}
		if r.steps[i].index >= 0 {
			b.WriteString(strconv.Itoa(r.steps[i].index))
		} else {
			b.WriteString(Printable(r.steps[i].name))
		}
	}
	return b.String()
}

// Refuse collects a fault of the value at hand.
func (r *Reader) Refuse(code fault.Code, format string, args ...any) State {
	if r.Faults.Full() {
		r.Faults.Skip() // neither built nor kept
		return Refused
	}
	r.Faults.Add(fault.At(r.Path(), code, format, args...))
	return Refused
}

// RefuseMember collects a fault of a member of the object just read.
func (r *Reader) RefuseMember(name string, code fault.Code, format string, args ...any) {
	if r.broken != nil {
		return
	}
	r.depth++
	r.steps[r.depth-1] = step{name: name, index: -1}
	r.Refuse(code, format, args...)
	r.depth--
}

// Missing names a member that the object just read lacks.
func (r *Reader) Missing(name string) {
	r.RefuseMember(name, fault.FieldRequired, "must not be empty")
}

// Unknown warns of a member nobody knows and passes over it.
func (r *Reader) Unknown() {
	if r.warnings.Full() {
		r.warnings.Skip()
	} else {
		r.warnings.Add(fault.Warn(r.Path(), fault.FieldUnknown, "is not known and was ignored"))
	}
	r.Skip()
}

// Warnings name the members nobody knows; when there are too many the last one says so.
func (r *Reader) Warnings() []fault.Fault {
	listed := r.warnings.Listed()
	if n := r.warnings.Count(); n > fault.ListMax {
		listed[fault.ListMax-1] = fault.Warn("", fault.FieldUnknown,
			"%d more fields are not known and were ignored", n-fault.ListMax+1)
	}
	return listed
}

// fail ends the reading: the body is no JSON that we accept.
func (r *Reader) fail(at int, format string, args ...any) {
	if r.broken != nil {
		return
	}
	before := r.text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	what := fmt.Sprintf(format, args...)
	r.broken = fault.New(fault.Invalid, "the body is not acceptable JSON").With(fault.Fault{
		Code: fault.JSONNotValid, Type: fault.Validation,
		Message: fmt.Sprintf("line %d, column %d (byte %d): %s", line, column, at, what),
	})
	r.pos = len(r.text)
}

// peek returns the first byte of the next token, or 0 at the end.
func (r *Reader) peek() byte {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; c {
		case ' ', '\n', '\r', '\t':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// unexpected fails on what stands at the current position.
func (r *Reader) unexpected(wanted string) {
	if r.pos >= len(r.text) {
		r.fail(len(r.text), "the body ends where %s is expected", wanted)
		return
	}
	c, size := utf8.DecodeRuneInString(r.text[r.pos:])
	if c == utf8.RuneError && size <= 1 {
		r.fail(r.pos, "the body is not valid UTF-8")
		return
	}
	r.fail(r.pos, "found %q where %s is expected", c, wanted)
}

func (r *Reader) literal(word string) {
	if !strings.HasPrefix(r.text[r.pos:], word) {
		r.unexpected("a value")
		return
	}
	r.pos += len(word)
}

// Null passes over null, which counts as absent everywhere.
func (r *Reader) Null() bool {
	if r.peek() != 'n' {
		return false
	}
	r.literal("null")
	return true
}

// Bool reads true or false.
func (r *Reader) Bool(into *bool) State {
	switch {
	case r.Null():
		return Absent
	case r.peek() == 't':
		r.literal("true")
		*into = true
	case r.peek() == 'f':
		r.literal("false")
		*into = false
	default:
		return r.mismatch("true or false")
	}
	return Taken
}

// IsText reports whether the value at hand is a string.
func (r *Reader) IsText() bool { return r.peek() == '"' }

// mismatch refuses a value of another type and passes over it.
func (r *Reader) mismatch(wanted string) State {
	r.Refuse(fault.FieldNotValid, "must be %s", wanted)
	r.Skip()
	return Refused
}

// enter goes one level down; the byte at hand opens an object or an array.
func (r *Reader) enter() bool {
	if r.depth == DepthMax {
		r.fail(r.pos, "objects and arrays are nested more than %d deep", DepthMax)
		return false
	}
	r.depth++
	r.pos++
	return true
}

func (r *Reader) leave() {
	r.depth--
	r.pos++
}

// Object reads an object and calls member for each of its names, with the path
// set to it; member must read or Skip the value.
func (r *Reader) Object(member func(name string)) State {
	if r.Null() {
		return Absent
	}
	if r.peek() != '{' {
		return r.mismatch("an object")
	}
	r.members(member)
	return Taken
}

func (r *Reader) members(member func(name string)) {
	if !r.enter() {
		return
	}
	if r.peek() == '}' {
		r.leave()
		return
	}
	var names nameSet
	for r.broken == nil {
		if r.peek() != '"' {
			r.unexpected("a name")
			return
		}
		at := r.pos
		name, _ := r.str()
		if !names.add(name) {
			r.fail(at, "the name %q stands twice in one object", Printable(name))
		}
		if r.peek() != ':' {
			r.unexpected("a colon")
			return
		}
		r.pos++
		r.steps[r.depth-1] = step{name: name, index: -1}
		member(name)
		switch r.peek() {
		case ',':
			r.pos++
			continue
		case '}':
			r.leave()
			return
		}
		r.unexpected("a comma or the end of the object")
	}
}

// Array reads an array and calls entry for each of its values, with the path
// set to it; entry must read or Skip the value.
func (r *Reader) Array(entry func(index int)) State {
	if r.Null() {
		return Absent
	}
	if r.peek() != '[' {
		return r.mismatch("an array")
	}
	r.entries(entry)
	return Taken
}

func (r *Reader) entries(entry func(index int)) {
	if !r.enter() {
		return
	}
	if r.peek() == ']' {
		r.leave()
		return
	}
	for i := 0; r.broken == nil; i++ {
		r.steps[r.depth-1] = step{index: i}
		entry(i)
		switch r.peek() {
		case ',':
			r.pos++
			continue
		case ']':
			r.leave()
			return
		}
		r.unexpected("a comma or the end of the array")
	}
}

// Skip passes over any value, as strictly as if it were read.
func (r *Reader) Skip() {
	switch c := r.peek(); {
	case c == '{':
		r.members(func(string) { r.Skip() })
	case c == '[':
		r.entries(func(int) { r.Skip() })
	case c == '"':
		r.str()
	case c == 't':
		r.literal("true")
	case c == 'f':
		r.literal("false")
	case c == 'n':
		r.literal("null")
	case c == '-' || '0' <= c && c <= '9':
		r.digits()
	default:
		r.unexpected("a value")
	}
}

// end makes sure that nothing follows the body's one value.
func (r *Reader) end() {
	if r.broken == nil && (r.peek() != 0 || r.pos < len(r.text)) {
		r.fail(r.pos, "something follows the end of the body's object")
	}
}

// nameSet finds a name that stands twice in one object. A short list beats a
// map for the objects people send; the map keeps a body with 100,000 names linear.
type nameSet struct {
	list [keysByList]string
	n    int
	more map[string]struct{}
}

func (n *nameSet) add(name string) bool {
	for i := range min(n.n, keysByList) {
		if n.list[i] == name {
			return false
		}
	}
	if n.n < keysByList {
		n.list[n.n] = name
		n.n++
		return true
	}
	if n.more == nil {
		n.more = make(map[string]struct{}, 2*keysByList)
	}
	if _, twice := n.more[name]; twice {
		return false
	}
	n.more[name] = struct{}{}
	return true
}

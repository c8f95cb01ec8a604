package transaction

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
)

const (
	depthMax       = 32 // of nested objects and arrays in a body
	pathNameMax    = 64 // characters of a client's own name that a path repeats
	keysByList     = 16 // names of one object that are compared one by one; more go through a map
	duplicateNames = "the name %q stands twice in one object"
)

// scanner reads JSON strictly, in one pass and without floats.
//
// It is written by hand because the standard decoder keeps the last of two
// equal names, replaces broken UTF-8 silently, has no limit on depth that we
// could set, and needs a second pass over the members to say what is wrong
// with each. Here the path of the value at hand is always known, so that a
// fault costs nothing until there is one.
//
// What breaks the JSON itself sets broken and ends the reading: every method
// then returns at once, because the rest has become empty. What is only wrong
// in a value is collected and the reading goes on.
type scanner struct {
	text     string // the whole body; strings without escapes are parts of it
	pos      int
	depth    int
	steps    [depthMax]step // the path of the value at hand is steps[:depth]
	broken   *fault.Error
	faults   fault.List
	warnings fault.List
}

// step is a member's name or, when the name is empty and it stands in an array, an index.
type step struct {
	name  string
	index int // -1: a member
}

// state is what became of a member.
type state uint8

const (
	absent  state = iota // not sent, null or blank
	refused              // sent, but a fault was raised
	taken
)

// path is the dotted path of the value at hand.
func (s *scanner) path() string {
	var b strings.Builder
	for i := range s.depth {
		if i > 0 {
			b.WriteByte('.')
		}
		if s.steps[i].index >= 0 {
			b.WriteString(strconv.Itoa(s.steps[i].index))
		} else {
			b.WriteString(printable(s.steps[i].name))
		}
	}
	return b.String()
}

// refuse collects a fault of the value at hand.
func (s *scanner) refuse(code fault.Code, format string, args ...any) state {
	if s.faults.Full() {
		s.faults.Skip()
		return refused
	}
	s.faults.Add(fault.At(s.path(), code, format, args...))
	return refused
}

// missing names a member that the object just read lacks.
func (s *scanner) missing(name string) {
	if s.broken != nil {
		return
	}
	s.depth++
	s.steps[s.depth-1] = step{name: name, index: -1}
	s.refuse(fault.FieldRequired, "must not be empty")
	s.depth--
}

// unknown warns of a member nobody knows and passes over it.
func (s *scanner) unknown() {
	if s.warnings.Full() {
		s.warnings.Skip()
	} else {
		s.warnings.Add(fault.Warn(s.path(), fault.FieldUnknown, "is not known and was ignored"))
	}
	s.skip()
}

// fail ends the reading: the body is no JSON that we accept.
func (s *scanner) fail(at int, format string, args ...any) {
	if s.broken != nil {
		return
	}
	before := s.text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	what := fmt.Sprintf(format, args...)
	s.broken = fault.New(fault.Invalid, "the body is not acceptable JSON").With(fault.Fault{
		Code: fault.JSONNotValid, Type: fault.Validation,
		Message: fmt.Sprintf("line %d, column %d (byte %d): %s", line, column, at, what),
	})
	s.pos = len(s.text)
}

// peek returns the first byte of the next token, or 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// unexpected fails on what stands at the current position.
func (s *scanner) unexpected(wanted string) {
	if s.pos >= len(s.text) {
		s.fail(len(s.text), "the body ends where %s is expected", wanted)
		return
	}
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	if r == utf8.RuneError && size <= 1 {
		s.fail(s.pos, "the body is not valid UTF-8")
		return
	}
	s.fail(s.pos, "found %q where %s is expected", r, wanted)
}

func (s *scanner) literal(word string) {
	if !strings.HasPrefix(s.text[s.pos:], word) {
		s.unexpected("a value")
		return
	}
	s.pos += len(word)
}

// null passes over null, which counts as absent everywhere.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return true
}

// mismatch refuses a value of another type and passes over it.
func (s *scanner) mismatch(wanted string) state {
	s.refuse(fault.FieldNotValid, "must be %s", wanted)
	s.skip()
	return refused
}

// enter goes one level down; the byte at hand opens an object or an array.
func (s *scanner) enter() bool {
	if s.depth == depthMax {
		s.fail(s.pos, "objects and arrays are nested more than %d deep", depthMax)
		return false
	}
	s.depth++
	s.pos++
	return true
}

// object reads an object and calls member for each of its names, with the path
// set to it; member must consume the value.
func (s *scanner) object(member func(name string)) state {
	if s.null() {
		return absent
	}
	if s.peek() != '{' {
		return s.mismatch("an object")
	}
	s.members(member)
	return taken
}

func (s *scanner) members(member func(name string)) {
	if !s.enter() {
		return
	}
	if s.peek() == '}' {
		s.leave()
		return
	}
	var names nameSet
	for s.broken == nil {
		if s.peek() != '"' {
			s.unexpected("a name")
			return
		}
		at := s.pos
		name, _ := s.str()
		if !names.add(name) {
			s.fail(at, duplicateNames, printable(name))
		}
		if s.peek() != ':' {
			s.unexpected("a colon")
			return
		}
		s.pos++
		s.steps[s.depth-1] = step{name: name, index: -1}
		member(name)
		switch s.peek() {
		case ',':
			s.pos++
			continue
		case '}':
			s.leave()
			return
		}
		s.unexpected("a comma or the end of the object")
	}
}

// array reads an array and calls entry for each of its values, with the path set to it.
func (s *scanner) array(entry func(index int)) state {
	if s.null() {
		return absent
	}
	if s.peek() != '[' {
		return s.mismatch("an array")
	}
	s.entries(entry)
	return taken
}

func (s *scanner) entries(entry func(index int)) {
	if !s.enter() {
		return
	}
	if s.peek() == ']' {
		s.leave()
		return
	}
	for i := 0; s.broken == nil; i++ {
		s.steps[s.depth-1] = step{index: i}
		entry(i)
		switch s.peek() {
		case ',':
			s.pos++
			continue
		case ']':
			s.leave()
			return
		}
		s.unexpected("a comma or the end of the array")
	}
}

func (s *scanner) leave() {
	s.depth--
	s.pos++
}

// skip passes over any value, as strictly as if it were read.
func (s *scanner) skip() {
	switch c := s.peek(); {
	case c == '{':
		s.members(func(string) { s.skip() })
	case c == '[':
		s.entries(func(int) { s.skip() })
	case c == '"':
		s.str()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	case c == '-' || '0' <= c && c <= '9':
		s.digits()
	default:
		s.unexpected("a value")
	}
}

// end makes sure that nothing follows the body's one value.
func (s *scanner) end() {
	if s.broken == nil && (s.peek() != 0 || s.pos < len(s.text)) {
		s.fail(s.pos, "something follows the end of the body's object")
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

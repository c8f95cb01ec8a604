package structure

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The compact form is a text of lines, each of words between blanks. A blank, a
// percent sign and control characters inside of a word are written as %XX.
//
//	structure 1                    the head
//	n URI                          a namespace; the first is 1, and 0 is none
//	s NAME BASE FACET…             a simple type; the first is #0
//	t NAME BASE FLAGS CONTENT… ATTRIBUTE…   a complex type; the first is $0
//	e NAME TYPE FLAG…              an element's declaration; the first is 0
//	k SORT NAME SELECTOR FIELD…    an identity constraint of the last element
//	a NAME TYPE FLAG…              a global attribute
//
// NAME is namespace:local, or - where it has none. A reference to a type is #n,
// $n or the name of a built-in type; - is anyType.
//
// BASE of a simple type is a reference, list:REFERENCE or
// union:REFERENCE,REFERENCE. FACET is wX (white space p, r or c), Ln, mn, Mn
// (length, shortest, longest), dn, fn (digits, decimals), Gx, gx, Ux, ux
// (least, more than, greatest, less than), ~x (pattern), =x (a value) and +n
// (the n numbers that follow the value before).
//
// FLAGS of a complex type: a abstract, m mixed, - none. CONTENT is =REFERENCE
// for a text, - for nothing, or a model: ( … ) sequence, [ … ] choice, { … }
// all, n an element, any:SPACES:PROCESS a wildcard; behind each may stand ?, *,
// + or {n,m}. SPACES is * for all, !n for others than n, or n,n. ATTRIBUTE is
// @NAME;REFERENCE;USE with USE r, o or p and perhaps ;=fixed; @any:… is a wildcard.
//
// FLAG of an element or attribute: g global, a abstract, n nillable, =x fixed,
// :x default, sN member of the substitution group of element N.

// Parse loads a compact form.
func Parse(text []byte) (*Schema, error) {
	l := &loader{schema: &Schema{elements: map[name]*declaration{}, attrs: map[name]*attribute{},
		types: map[name]*typing{}}, spaces: []string{""}}
	if !bytes.HasPrefix(text, []byte("structure 1\n")) {
		return nil, fmt.Errorf("reading a structure: it begins with %.40q", text)
	}
	l.count(text)
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, len(text)+1)
	for n := 1; in.Scan(); n++ {
		if n == 1 {
			continue
		}
		if err := l.line(strings.Split(in.Text(), " ")); err != nil {
			return nil, fmt.Errorf("reading a structure, line %d: %w", n, err)
		}
	}
	if l.simpleAt != len(l.simples) || l.complexAt != len(l.complexes) || l.elementAt != len(l.elements) {
		return nil, fmt.Errorf("reading a structure: it is incomplete")
	}
	for _, t := range l.complexes {
		if t.model != nil {
			t.model.settle()
		}
	}
	l.schema.count = len(l.simples) + len(l.complexes) + len(l.elements)
	return l.schema, nil
}

// Verify compiles every pattern; what cannot be compiled is an error.
func (s *Schema) Verify() error {
	for _, p := range s.patterns {
		if err := p.compile(); err != nil {
			return err
		}
	}
	return nil
}

type loader struct {
	schema    *Schema
	spaces    []string
	simples   []typing // wrapped, so that references to simple and complex types look alike
	complexes []*typing
	elements  []*declaration
	simpleAt  int
	complexAt int
	elementAt int
	builtins  map[string]*typing
	err       error
}

// count makes room for everything that lines may refer to before it is read.
func (l *loader) count(text []byte) {
	for line := range bytes.Lines(text) {
		switch line[0] {
		case 's':
			if bytes.HasPrefix(line, []byte("s ")) {
				l.simples = append(l.simples, typing{value: &simple{}})
			}
		case 't':
			l.complexes = append(l.complexes, &typing{complex: true})
		case 'e':
			l.elements = append(l.elements, &declaration{})
		}
	}
	l.builtins = map[string]*typing{}
}

func (l *loader) line(words []string) error {
	l.err = nil
	switch {
	case words[0] == "n" && len(words) == 2:
		l.spaces = append(l.spaces, unescape(words[1]))
	case words[0] == "s" && len(words) >= 3:
		l.simple(words[1:])
	case words[0] == "t" && len(words) >= 5:
		l.complex(words[1:])
	case words[0] == "e" && len(words) >= 3:
		l.element(words[1:])
	case words[0] == "k" && len(words) >= 5 && l.elementAt > 0:
		l.key(words[1:])
	case words[0] == "a" && len(words) >= 3:
		l.global(words[1:])
	default:
		return fmt.Errorf("%q is no line of a structure", words[0])
	}
	return l.err
}

func (l *loader) fail(format string, a ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, a...)
	}
}

func (l *loader) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		l.fail("%q is no number", text)
	}
	return n
}

func (l *loader) space(text string) string {
	n := l.number(text)
	if n < 0 || n >= len(l.spaces) {
		l.fail("there is no namespace %s", text)
		return ""
	}
	return l.spaces[n]
}

func (l *loader) name(word string) name {
	if word == "-" {
		return name{}
	}
	space, local, ok := strings.Cut(word, ":")
	if !ok {
		l.fail("%q is no name", word)
	}
	return name{l.space(space), unescape(local)}
}

// typing follows a reference; nil is anyType.
func (l *loader) typing(word string) *typing {
	switch {
	case word == "-":
		return nil
	case strings.HasPrefix(word, "#"):
		if n := l.number(word[1:]); n >= 0 && n < len(l.simples) {
			return &l.simples[n]
		}
	case strings.HasPrefix(word, "$"):
		if n := l.number(word[1:]); n >= 0 && n < len(l.complexes) {
			return l.complexes[n]
		}
	default:
		if t := l.builtins[word]; t != nil {
			return t
		}
		if t := builtinTyping(word); t != nil {
			l.builtins[word] = t
			return t
		}
	}
	l.fail("there is no type %q", word)
	return nil
}

func (l *loader) value(word string) *simple {
	t := l.typing(word)
	if t == nil || t.value == nil {
		l.fail("%q is no simple type", word)
		return builtinSimple("string")
	}
	return t.value
}

func (l *loader) simple(words []string) {
	t := &l.simples[l.simpleAt]
	l.simpleAt++
	s := t.value
	s.length, s.shortest, s.longest, s.digits, s.decimals, s.white = -1, -1, -1, -1, -1, 'p'
	t.name = l.name(words[0])
	s.name = t.name
	switch base := words[1]; {
	case strings.HasPrefix(base, "list:"):
		s.item, s.white = l.earlier(base[5:]), 'c'
	case strings.HasPrefix(base, "union:"):
		for member := range strings.SplitSeq(base[6:], ",") {
			s.members = append(s.members, l.earlier(member))
		}
	default:
		t.base, s.base = l.typing(base), l.earlier(base)
		s.kind, s.white = s.base.kind, s.base.white
	}
	for _, facet := range words[2:] {
		l.facet(s, facet)
	}
	if t.name != (name{}) {
		l.schema.types[t.name] = t
	}
}

// earlier is a simple type that was read before: types that stand on each other
// would never be done.
func (l *loader) earlier(word string) *simple {
	if strings.HasPrefix(word, "#") && l.number(word[1:]) >= l.simpleAt-1 {
		l.fail("%s stands on a later type", word)
		return builtinSimple("string")
	}
	return l.value(word)
}

func (l *loader) facet(s *simple, word string) {
	if word == "" {
		l.fail("a facet is empty")
		return
	}
	rest := word[1:]
	switch word[0] {
	case 'w':
		if len(rest) != 1 {
			l.fail("%q is no facet", word)
			return
		}
		s.white = rest[0]
	case 'L':
		s.length = l.number(rest)
	case 'm':
		s.shortest = l.number(rest)
	case 'M':
		s.longest = l.number(rest)
	case 'd':
		s.digits = l.number(rest)
	case 'f':
		s.decimals = l.number(rest)
	case 'G', 'g':
		s.bounds = append(s.bounds, bound{word[0], unescape(rest)})
	case 'U':
		s.bounds = append(s.bounds, bound{'L', unescape(rest)})
	case 'u':
		s.bounds = append(s.bounds, bound{'l', unescape(rest)})
	case '~':
		p := &pattern{source: unescape(rest)}
		s.patterns = append(s.patterns, p)
		l.schema.patterns = append(l.schema.patterns, p)
	case '=':
		if s.values == nil {
			s.values = &values{}
		}
		s.values.runs = append(s.values.runs, run{first: unescape(rest)})
	case '+':
		if s.values == nil {
			l.fail("a run has no beginning")
			return
		}
		s.values.runs[len(s.values.runs)-1].more = l.number(rest)
	default:
		l.fail("%q is no facet", word)
	}
}

func (l *loader) complex(words []string) {
	t := l.complexes[l.complexAt]
	l.complexAt++
	t.name, t.base = l.name(words[0]), l.typing(words[1])
	t.abstract, t.mixed = strings.Contains(words[2], "a"), strings.Contains(words[2], "m")
	rest := words[3:]
	switch {
	case rest[0] == "-":
		rest = rest[1:]
	case strings.HasPrefix(rest[0], "="):
		t.value, rest = l.value(rest[0][1:]), rest[1:]
	default:
		t.model, rest = l.particle(rest)
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "@") {
			l.fail("%q is no attribute", word)
			return
		}
		if strings.HasPrefix(word, "@any:") {
			t.anyAttr = l.wildcard(word[1:])
			continue
		}
		parts := strings.SplitN(word[1:], ";", 4)
		if len(parts) < 3 {
			l.fail("%q is no attribute", word)
			return
		}
		a := attribute{name: l.name(parts[0]), value: l.value(parts[1]), required: parts[2] == "r", prohibited: parts[2] == "p"}
		if len(parts) == 4 {
			fixed := unescape(strings.TrimPrefix(parts[3], "="))
			a.fixed = &fixed
		}
		t.attrs = append(t.attrs, a)
	}
	if t.name != (name{}) {
		l.schema.types[t.name] = t
	}
}

// particle reads a model from the words and answers what follows it.
func (l *loader) particle(words []string) (*particle, []string) {
	if len(words) == 0 || words[0] == "" {
		l.fail("a model has no end")
		return &particle{}, nil
	}
	word, rest := words[0], words[1:]
	p := &particle{sort: word[0]}
	closing, isGroup := map[byte]string{'(': ")", '[': "]", '{': "}"}[word[0]]
	if isGroup {
		for len(rest) > 0 && !strings.HasPrefix(rest[0], closing) && l.err == nil {
			var part *particle
			part, rest = l.particle(rest)
			p.parts = append(p.parts, part)
		}
		if len(rest) == 0 || !strings.HasPrefix(rest[0], closing) {
			l.fail("a group has no end")
			return p, nil
		}
		l.occurs(p, rest[0][1:])
		return p, rest[1:]
	}
	end := strings.IndexAny(word, "?*+{")
	if strings.HasPrefix(word, "any:") {
		// The namespaces of a wildcard may themselves be a star.
		tail := strings.LastIndexByte(word, ':') + 2
		end = min(tail, len(word))
	}
	if end < 0 {
		end = len(word)
	}
	l.occurs(p, word[end:])
	if strings.HasPrefix(word, "any:") {
		p.sort, p.wildcard = 'w', l.wildcard(word[:end])
		return p, rest
	}
	p.sort = 'e'
	if n := l.number(word[:end]); n >= 0 && n < len(l.elements) {
		p.element = l.elements[n]
	} else {
		l.fail("there is no element %s", word)
	}
	return p, rest
}

func (l *loader) occurs(p *particle, text string) {
	switch text {
	case "":
		p.min, p.max = 1, 1
	case "?":
		p.min, p.max = 0, 1
	case "*":
		p.min, p.max = 0, -1
	case "+":
		p.min, p.max = 1, -1
	default:
		low, high, _ := strings.Cut(strings.Trim(text, "{}"), ",")
		p.min, p.max = l.number(low), -1
		if high != "" {
			p.max = l.number(high)
		}
	}
}

// settle finds which particles may be matched by nothing.
func (p *particle) settle() {
	inner := p.sort == '(' || p.sort == '{'
	for _, part := range p.parts {
		part.settle()
		if p.sort == '[' {
			inner = inner || part.empty
		} else {
			inner = inner && part.empty
		}
	}
	p.empty = p.min == 0 || inner
}

func (l *loader) wildcard(word string) *wildcard {
	parts := strings.Split(word, ":")
	if len(parts) != 3 || len(parts[2]) != 1 {
		l.fail("%q is no wildcard", word)
		return &wildcard{}
	}
	w := &wildcard{process: parts[2][0]}
	switch {
	case parts[1] == "*":
		w.any = true
	case strings.HasPrefix(parts[1], "!"):
		w.others, w.not = true, l.space(parts[1][1:])
	default:
		for s := range strings.SplitSeq(parts[1], ",") {
			w.spaces = append(w.spaces, l.space(s))
		}
	}
	return w
}

func (l *loader) element(words []string) {
	d := l.elements[l.elementAt]
	l.elementAt++
	d.name, d.typing = l.name(words[0]), l.typing(words[1])
	for _, flag := range words[2:] {
		switch {
		case flag == "g":
			l.schema.elements[d.name] = d
		case flag == "a":
			d.abstract = true
		case flag == "n":
			d.nillable = true
		case strings.HasPrefix(flag, "="):
			fixed := unescape(flag[1:])
			d.fixed = &fixed
		case strings.HasPrefix(flag, ":"):
			standard := unescape(flag[1:])
			d.standard = &standard
		case strings.HasPrefix(flag, "s"):
			if n := l.number(flag[1:]); n >= 0 && n < l.elementAt-1 {
				l.elements[n].members = append(l.elements[n].members, d)
				break
			}
			fallthrough
		default:
			l.fail("%q is no flag", flag)
		}
	}
}

func (l *loader) global(words []string) {
	a := &attribute{name: l.name(words[0]), value: l.value(words[1])}
	for _, flag := range words[2:] {
		if strings.HasPrefix(flag, "=") {
			fixed := unescape(flag[1:])
			a.fixed = &fixed
		}
	}
	l.schema.attrs[a.name] = a
}

func (l *loader) key(words []string) {
	if words[0] == "" {
		l.fail("a key says of which sort it is")
		return
	}
	k := key{sort: words[0][0], name: unescape(words[1])}
	k.name, k.refers, _ = strings.Cut(k.name, ">")
	k.selector = l.paths(words[2])
	for _, field := range words[3:] {
		k.fields = append(k.fields, l.paths(field))
	}
	d := l.elements[l.elementAt-1]
	d.keys = append(d.keys, k)
}

// paths reads alternatives of steps: .//1:a/1:b|@0:c
func (l *loader) paths(word string) []path {
	var all []path
	for one := range strings.SplitSeq(word, "|") {
		var p path
		if rest, deep := strings.CutPrefix(one, ".//"); deep {
			p.deep, one = true, rest
		}
		for step := range strings.SplitSeq(one, "/") {
			switch {
			case step == "." || step == "":
			case step == "*":
				p.steps = append(p.steps, name{local: "*"})
			case strings.HasPrefix(step, "@"):
				attr := l.name(step[1:])
				p.attr = &attr
			default:
				p.steps = append(p.steps, l.name(step))
			}
		}
		all = append(all, p)
	}
	return all
}

func unescape(word string) string {
	if strings.IndexByte(word, '%') < 0 {
		return word
	}
	var out strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] == '%' && i+2 < len(word) {
			if n, err := strconv.ParseUint(word[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		out.WriteByte(word[i])
	}
	return out.String()
}

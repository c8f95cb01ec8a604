package typeset

import (
	"slices"

	"golang.org/x/text/unicode/bidi"
)

// The Unicode bidirectional algorithm (UAX #9) for texts without explicit marks:
// [Clean] takes those away, so a text is one level run at the paragraph's level.
// golang.org/x/text/unicode/bidi has the classes, but tells directions where the
// order of a line needs levels.

// ordering is a text while its levels are resolved.
type ordering struct {
	runes    []rune
	original []bidi.Class
	classes  []bidi.Class
	base     bidi.Class // L or R
}

// levels returns the embedding level of every character; rtl is the direction
// of a text without letters that have one.
func levels(runes []rune, rtl bool) []uint8 {
	o := &ordering{runes: runes, original: make([]bidi.Class, len(runes)), base: bidi.L}
	if rtl {
		o.base = bidi.R
	}
	found, turns := false, false
	for i, r := range runes {
		props, _ := bidi.LookupRune(r)
		class := props.Class()
		o.original[i] = class
		turns = turns || class == bidi.R || class == bidi.AL || class == bidi.AN
		if !found && (class == bidi.L || class == bidi.R || class == bidi.AL) { // P2, P3
			found, o.base = true, bidi.L
			if class != bidi.L {
				o.base = bidi.R
			}
		}
	}
	if !turns { // figures alone keep their order on any page: a telephone number has no paragraph
		return make([]uint8, len(runes))
	}
	o.classes = slices.Clone(o.original)
	o.resolveWeak()
	o.resolveBrackets()
	o.resolveNeutral()
	return o.implicit()
}

// resolveWeak applies rules W1 to W7.
func (o *ordering) resolveWeak() {
	c := o.classes
	before, strong := o.base, o.base
	for i := range c {
		if c[i] == bidi.NSM || c[i] == bidi.BN { // W1
			c[i] = before
		}
		switch c[i] {
		case bidi.L, bidi.R, bidi.AL:
			strong = c[i]
		case bidi.EN:
			if strong == bidi.AL { // W2
				c[i] = bidi.AN
			}
		}
		before = c[i]
	}
	for i := range c {
		if c[i] == bidi.AL { // W3
			c[i] = bidi.R
		}
		if i > 0 && i+1 < len(c) && c[i-1] == c[i+1] { // W4
			if c[i] == bidi.ES && c[i-1] == bidi.EN || c[i] == bidi.CS && (c[i-1] == bidi.EN || c[i-1] == bidi.AN) {
				c[i] = c[i-1]
			}
		}
	}
	for i := 0; i < len(c); { // W5
		j := i
		for j < len(c) && c[j] == bidi.ET {
			j++
		}
		if j == i {
			i++
			continue
		}
		if i > 0 && c[i-1] == bidi.EN || j < len(c) && c[j] == bidi.EN {
			for k := i; k < j; k++ {
				c[k] = bidi.EN
			}
		}
		i = j
	}
	strong = o.base
	for i := range c {
		switch c[i] {
		case bidi.ES, bidi.ET, bidi.CS: // W6
			c[i] = bidi.ON
		case bidi.L, bidi.R:
			strong = c[i]
		case bidi.EN: // W7
			if strong == bidi.L {
				c[i] = bidi.L
			}
		}
	}
}

// side is the direction that a class counts for among neutrals; ON for none.
func side(c bidi.Class) bidi.Class {
	switch c {
	case bidi.L:
		return bidi.L
	case bidi.R, bidi.EN, bidi.AN:
		return bidi.R
	}
	return bidi.ON
}

const bracketDepthMax = 63 // by BD16

// resolveBrackets applies rule N0: a pair of brackets runs as what it holds.
func (o *ordering) resolveBrackets() {
	type open struct {
		closing rune
		at      int
	}
	var stack []open
	var pairs [][2]int
	for i, r := range o.runes {
		props, _ := bidi.LookupRune(r)
		if o.classes[i] != bidi.ON || !props.IsBracket() {
			continue
		}
		if props.IsOpeningBracket() {
			if len(stack) == bracketDepthMax {
				break
			}
			stack = append(stack, open{closingBracket(r), i})
			continue
		}
		for k := len(stack) - 1; k >= 0; k-- {
			if stack[k].closing == r {
				pairs = append(pairs, [2]int{stack[k].at, i})
				stack = stack[:k]
				break
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return a[0] - b[0] })
	for _, p := range pairs {
		if class := o.pairClass(p); class != bidi.ON {
			o.setBracket(p[0], class)
			o.setBracket(p[1], class)
		}
	}
}

// closingBracket is the other one of a pair: they stand beside each other, or one apart.
func closingBracket(r rune) rune {
	for _, c := range []rune{r + 1, r + 2} {
		if props, _ := bidi.LookupRune(c); props.IsBracket() && !props.IsOpeningBracket() {
			return c
		}
	}
	return -1
}

func (o *ordering) pairClass(p [2]int) bidi.Class {
	opposite := false
	for i := p[0] + 1; i < p[1]; i++ {
		switch side(o.classes[i]) {
		case o.base:
			return o.base
		case bidi.ON:
		default:
			opposite = true
		}
	}
	if !opposite {
		return bidi.ON
	}
	context := o.base
	for i := p[0] - 1; i >= 0; i-- {
		if s := side(o.classes[i]); s != bidi.ON {
			context = s
			break
		}
	}
	return context
}

// setBracket gives a bracket its class, and marks that follow it the same.
func (o *ordering) setBracket(at int, class bidi.Class) {
	o.classes[at] = class
	for i := at + 1; i < len(o.classes) && o.original[i] == bidi.NSM; i++ {
		o.classes[i] = class
	}
}

// resolveNeutral applies rules N1 and N2.
func (o *ordering) resolveNeutral() {
	c := o.classes
	for i := 0; i < len(c); {
		if side(c[i]) != bidi.ON {
			i++
			continue
		}
		j := i
		for j < len(c) && side(c[j]) == bidi.ON {
			j++
		}
		before, after := o.base, o.base
		if i > 0 {
			before = side(c[i-1])
		}
		if j < len(c) {
			after = side(c[j])
		}
		class := o.base
		if before == after {
			class = before
		}
		for k := i; k < j; k++ {
			c[k] = class
		}
		i = j
	}
}

// implicit applies rules I1, I2 and L1.
func (o *ordering) implicit() []uint8 {
	base := uint8(0)
	if o.base == bidi.R {
		base = 1
	}
	out := make([]uint8, len(o.classes))
	for i, c := range o.classes {
		out[i] = base
		switch {
		case base == 0 && c == bidi.R, base == 1 && c != bidi.R:
			out[i] = base + 1
		case base == 0 && (c == bidi.AN || c == bidi.EN):
			out[i] = 2
		}
	}
	for i := len(out) - 1; i >= 0 && (o.original[i] == bidi.WS || o.original[i] == bidi.BN); i-- {
		out[i] = base
	}
	return out
}

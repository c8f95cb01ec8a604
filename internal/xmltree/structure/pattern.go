package structure

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// pattern is a regular expression of XML Schema (part 2, appendix F). It is
// translated and compiled when it is needed first: a program that files in one
// country does not pay for the patterns of the others.
type pattern struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
	class  *counted
	err    error
}

// counted is a pattern that is one class, so and so often: what [^|]{1,1000}
// and the like are. An automaton of a thousand states would do nothing more.
type counted struct {
	ranges   []rune
	min, max int // max -1: any number
}

func (p *pattern) compile() error {
	p.once.Do(func() {
		t := &translator{in: p.source}
		text, err := t.alternatives(false)
		if err == nil && t.at < len(t.in) {
			err = fmt.Errorf("a parenthesis is not open")
		}
		if err != nil {
			p.err = fmt.Errorf("pattern %q at %d: %w", p.source, t.at, err)
			return
		}
		if t.atoms == 1 && t.single != nil && t.quantified {
			p.class = &counted{t.single, t.min, t.max}
			return
		}
		p.re, p.err = regexp.Compile(`\A(?:` + text + `)\z`)
	})
	return p.err
}

// match reports whether the whole text matches. A pattern that cannot be
// compiled matches nothing; [Schema.Verify] finds such patterns.
func (p *pattern) match(text string) bool {
	if p.compile() != nil {
		return false
	}
	if p.class == nil {
		return p.re.MatchString(text)
	}
	n := utf8.RuneCountInString(text)
	if n < p.class.min || p.class.max >= 0 && n > p.class.max {
		return false
	}
	for _, r := range text {
		if !within(p.class.ranges, r) {
			return false
		}
	}
	return true
}

func within(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if r >= ranges[i] && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// translator writes a pattern in Go's syntax.
type translator struct {
	in string
	at int

	// What a pattern of a single class is recognised by.
	atoms      int
	single     []rune
	quantified bool
	min, max   int
}

func (t *translator) alternatives(inner bool) (string, error) {
	var out strings.Builder
	for t.at < len(t.in) {
		switch t.in[t.at] {
		case '|':
			t.at++
			t.atoms += 2
			out.WriteByte('|')
			continue
		case ')':
			if inner {
				return out.String(), nil
			}
			return "", fmt.Errorf("a parenthesis is not open")
		}
		atom, err := t.atom()
		if err != nil {
			return "", err
		}
		quantifier, err := t.quantifier()
		if err != nil {
			return "", err
		}
		out.WriteString(atom + quantifier)
	}
	if inner {
		return "", fmt.Errorf("a parenthesis is not closed")
	}
	return out.String(), nil
}

func (t *translator) atom() (string, error) {
	t.atoms++
	switch c := t.in[t.at]; c {
	case '(':
		t.at++
		t.atoms += 2
		text, err := t.alternatives(true)
		t.at++
		return "(?:" + text + ")", err
	case '?', '*', '+', '{', '}', ']':
		return "", fmt.Errorf("%c has nothing to belong to", c)
	case '[':
		t.at++
		ranges, err := t.class()
		t.single = ranges
		return printed(ranges), err
	case '.', '\\':
		ranges, err := t.escape()
		t.single = ranges
		return printed(ranges), err
	}
	r, size := utf8.DecodeRuneInString(t.in[t.at:])
	t.at += size
	t.single = []rune{r, r}
	return regexp.QuoteMeta(string(r)), nil
}

func (t *translator) quantifier() (string, error) {
	if t.at >= len(t.in) {
		return "", nil
	}
	rest := t.in[t.at:]
	switch rest[0] {
	case '?', '*', '+':
		t.at++
		t.count(map[byte]int{'?': 0, '*': 0, '+': 1}[rest[0]], map[byte]int{'?': 1, '*': -1, '+': -1}[rest[0]])
		return rest[:1], nil
	case '{':
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", fmt.Errorf("a quantity has no end")
		}
		low, high, ranged := strings.Cut(rest[1:end], ",")
		least, err := strconv.Atoi(low)
		most := least
		if err == nil && ranged && high == "" {
			most = -1
		} else if err == nil && ranged {
			most, err = strconv.Atoi(high)
		}
		if err != nil {
			return "", fmt.Errorf("%s is no quantity", rest[:end+1])
		}
		t.at += end + 1
		t.count(least, most)
		return rest[:end+1], nil
	}
	return "", nil
}

func (t *translator) count(least, most int) { t.quantified, t.min, t.max = true, least, most }

// class reads what follows a [, up to its ], with what is subtracted from it.
func (t *translator) class() ([]rune, error) {
	negated := strings.HasPrefix(t.in[t.at:], "^")
	if negated {
		t.at++
	}
	var ranges []rune
	for first := true; ; first = false {
		if t.at >= len(t.in) {
			return nil, fmt.Errorf("a class has no end")
		}
		rest := t.in[t.at:]
		switch {
		case rest[0] == ']' && !first:
			t.at++
			return combined(ranges, negated, nil), nil
		case strings.HasPrefix(rest, "-[") && !first:
			t.at += 2
			less, err := t.class()
			if err != nil || !strings.HasPrefix(t.in[t.at:], "]") {
				return nil, fmt.Errorf("a subtraction does not end its class")
			}
			t.at++
			return combined(ranges, negated, less), nil
		}
		low, err := t.member()
		if err != nil {
			return nil, err
		}
		rest = t.in[t.at:]
		if len(low) != 2 || low[0] != low[1] || len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' {
			ranges = append(ranges, low...)
			continue
		}
		t.at++
		high, err := t.member()
		if err != nil || len(high) != 2 || high[0] != high[1] || high[0] < low[0] {
			return nil, fmt.Errorf("a range is malformed")
		}
		ranges = append(ranges, low[0], high[0])
	}
}

func (t *translator) member() ([]rune, error) {
	if t.in[t.at] == '\\' {
		return t.escape()
	}
	r, size := utf8.DecodeRuneInString(t.in[t.at:])
	t.at += size
	return []rune{r, r}, nil
}

// escape reads a dot or what follows a backslash, as ranges.
func (t *translator) escape() ([]rune, error) {
	if t.in[t.at] == '.' {
		t.at++
		return combined([]rune{'\n', '\n', '\r', '\r'}, true, nil), nil
	}
	if t.at+1 >= len(t.in) {
		return nil, fmt.Errorf("a backslash stands at the end")
	}
	c := t.in[t.at+1]
	t.at += 2
	switch c {
	case 'n':
		return []rune{'\n', '\n'}, nil
	case 'r':
		return []rune{'\r', '\r'}, nil
	case 't':
		return []rune{'\t', '\t'}, nil
	case '\\', '|', '.', '-', '^', '?', '*', '+', '{', '}', '(', ')', '[', ']':
		return []rune{rune(c), rune(c)}, nil
	case '$', '/', '@', '&', '#', '"', '\'', ',', ':', ';', '<', '>', '=', '!', '%', '~', '_', ' ':
		// Not of the standard, yet in patterns of authorities; libxml2 takes them.
		return []rune{rune(c), rune(c)}, nil
	case 'd', 'D':
		return classOf(`[\p{Nd}]`, c == 'D')
	case 's', 'S':
		return combined([]rune{'\t', '\n', '\r', '\r', ' ', ' '}, c == 'S', nil), nil
	case 'w', 'W':
		return classOf(`[^\p{P}\p{Z}\p{C}]`, c == 'W')
	case 'i', 'I':
		return combined(nameRanges(true), c == 'I', nil), nil
	case 'c', 'C':
		return combined(nameRanges(false), c == 'C', nil), nil
	case 'p', 'P':
		rest := t.in[t.at:]
		end := strings.IndexByte(rest, '}')
		if !strings.HasPrefix(rest, "{") || end < 0 {
			return nil, fmt.Errorf("a property is malformed")
		}
		t.at += end + 1
		if block, isBlock := strings.CutPrefix(rest[1:end], "Is"); isBlock {
			return blockOf(block, c == 'P')
		}
		return classOf(`[\p{`+rest[1:end]+`}]`, c == 'P')
	}
	return nil, fmt.Errorf("\\%c means nothing", c)
}

func classOf(class string, negated bool) ([]rune, error) {
	re, err := syntax.Parse(class, syntax.Perl)
	if err != nil || re.Op != syntax.OpCharClass {
		return nil, fmt.Errorf("%s is no class", class)
	}
	return combined(re.Rune, negated, nil), nil
}

// blockOf are the blocks of Unicode that official patterns name.
func blockOf(block string, negated bool) ([]rune, error) {
	blocks := map[string][2]rune{
		"BasicLatin": {0, 0x7F}, "Latin-1Supplement": {0x80, 0xFF}, "LatinExtended-A": {0x100, 0x17F},
		"LatinExtended-B": {0x180, 0x24F},
		"Greek":           {0x370, 0x3FF}, "Cyrillic": {0x400, 0x4FF}, "Hebrew": {0x590, 0x5FF}, "Arabic": {0x600, 0x6FF},
		"GeneralPunctuation": {0x2000, 0x206F},
		"CurrencySymbols":    {0x20A0, 0x20CF}, "LetterlikeSymbols": {0x2100, 0x214F},
	}
	b, ok := blocks[block]
	if !ok {
		return nil, fmt.Errorf("the block %s is not known", block)
	}
	return combined(b[:], negated, nil), nil
}

func nameRanges(first bool) []rune {
	ranges := []rune{':', ':', 'A', 'Z', '_', '_', 'a', 'z', 0xC0, 0xD6, 0xD8, 0xF6, 0xF8, 0x2FF, 0x370, 0x37D, 0x37F,
		0x1FFF, 0x200C, 0x200D,
		0x2070, 0x218F, 0x2C00, 0x2FEF, 0x3001, 0xD7FF, 0xF900, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000, 0xEFFFF}
	if first {
		return ranges
	}
	return append(ranges, '-', '.', '0', '9', 0xB7, 0xB7, 0x300, 0x36F, 0x203F, 0x2040)
}

// combined sorts and joins ranges, turns them around, and takes others away.
func combined(ranges []rune, negated bool, less []rune) []rune {
	type span struct{ low, high rune }
	var spans []span
	for i := 0; i+1 < len(ranges); i += 2 {
		spans = append(spans, span{ranges[i], ranges[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.low - b.low) })
	var out []rune
	for _, s := range spans {
		if n := len(out); n > 0 && s.low <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.high)
		} else {
			out = append(out, s.low, s.high)
		}
	}
	if negated {
		out = complement(out)
	}
	if less != nil {
		// a − b = ¬(¬a ∪ b)
		out = complement(combined(append(complement(out), less...), false, nil))
	}
	return out
}

func complement(ranges []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i] > next {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, next, utf8.MaxRune)
	}
	return out
}

func printed(ranges []rune) string {
	if len(ranges) == 0 {
		return `[^\x{0}-\x{10FFFF}]`
	}
	var out strings.Builder
	out.WriteByte('[')
	for i := 0; i+1 < len(ranges); i += 2 {
		fmt.Fprintf(&out, `\x{%X}-\x{%X}`, ranges[i], ranges[i+1])
	}
	out.WriteByte(']')
	return out.String()
}

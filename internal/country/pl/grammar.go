package pl

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// grammarText is the structure of FA(3), see its head.
//
//go:embed fa3.grammar
var grammarText string

// grammar checks a document against FA(3) as its schema would: names, order,
// number, and the values of leaves.
type grammar struct {
	elements map[string]*elementRule
	values   map[string]*valueRule
}

// elementRule is the content of an element. Its members are matched as one
// text of names, each followed by a blank.
type elementRule struct {
	content *regexp.Regexp
	members map[string]string // name → rule
	most    map[string]int    // name → how many at most, where more than one
	text    string            // rule of the text of an element without members
	fixed   map[string]string // attributes that must be there
}

// valueRule is a simple type.
type valueRule struct {
	kind              string
	shortest, longest int
	digits, decimals  int
	min, max          string
	enum              map[string]bool
	patterns          []*regexp.Regexp
}

func newGrammar() (*grammar, error) {
	g := &grammar{elements: map[string]*elementRule{}, values: map[string]*valueRule{"integer": {kind: "integer"}}}
	for text := range strings.Lines(grammarText) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || text[0] == '#' {
			continue
		}
		var err error
		if name, rule, ok := strings.Cut(text, " = "); ok {
			g.elements[name], err = readElement(rule)
		} else if name, rule, ok := strings.Cut(text, " : "); ok {
			g.values[name], err = readValue(rule)
		} else {
			err = fmt.Errorf("it is no rule")
		}
		if err != nil {
			return nil, fmt.Errorf("reading the rule %q: %w", text, err)
		}
	}
	for name, e := range g.elements {
		for member, rule := range e.members {
			if g.elements[rule] == nil && g.values[rule] == nil {
				return nil, fmt.Errorf("reading the rule of %s: %s has no rule %q", name, member, rule)
			}
		}
	}
	return g, nil
}

var memberPattern = regexp.MustCompile(`^(\w+):([\w.]+)(\?|\{\d+,\d+\})?$`)

func readElement(rule string) (*elementRule, error) {
	e := &elementRule{members: map[string]string{}, most: map[string]int{}, fixed: map[string]string{}}
	if rest, ok := strings.CutPrefix(rule, "text "); ok {
		parts := strings.Split(rest, "\t")
		e.text = parts[0]
		for _, attribute := range parts[1:] {
			name, value, _ := strings.Cut(strings.TrimPrefix(attribute, "@"), "=")
			e.fixed[name] = value
		}
		return e, nil
	}
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, word := range strings.Fields(rule) {
		switch {
		case word == "(":
			pattern.WriteString("(?:")
		case word == ")" || word == ")?" || word == "|":
			pattern.WriteString(word)
		default:
			m := memberPattern.FindStringSubmatch(word)
			if m == nil {
				return nil, fmt.Errorf("%q is no member", word)
			}
			e.members[m[1]] = m[2]
			pattern.WriteString("(?:" + m[1] + " )" + e.occurrence(m[1], m[3]))
		}
	}
	pattern.WriteString("$")
	var err error
	e.content, err = regexp.Compile(pattern.String())
	return e, err
}

// occurrence is how often a member stands, as a pattern. Large numbers are
// counted instead: a pattern of ten thousand repetitions would be as long.
func (e *elementRule) occurrence(name, text string) string {
	if text == "" || text == "?" {
		return text
	}
	low, high, _ := strings.Cut(strings.Trim(text, "{}"), ",")
	e.most[name], _ = strconv.Atoi(high)
	if low == "0" {
		return "*"
	}
	return "+"
}

func readValue(rule string) (*valueRule, error) {
	parts := strings.Split(rule, "\t")
	v := &valueRule{kind: parts[0], longest: -1, digits: -1, decimals: -1}
	for _, facet := range parts[1:] {
		name, value, _ := strings.Cut(facet, "=")
		var err error
		switch name {
		case "shortest":
			v.shortest, err = strconv.Atoi(value)
		case "longest":
			v.longest, err = strconv.Atoi(value)
		case "digits", "totalDigits":
			v.digits, err = strconv.Atoi(value)
		case "fractionDigits":
			v.decimals, err = strconv.Atoi(value)
		case "min":
			v.min = value
		case "max":
			v.max = value
		case "enum":
			v.enum = map[string]bool{}
			for one := range strings.SplitSeq(value, "|") {
				v.enum[one] = true
			}
		case "pattern":
			var re *regexp.Regexp
			re, err = regexp.Compile("^(?:" + value + ")$")
			v.patterns = append(v.patterns, re)
		default:
			err = fmt.Errorf("%q is no facet", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// check finds the first thing that the schema would refuse, "" when there is none.
func (g *grammar) check(root *node) string {
	if root.space != namespace || root.name != "Faktura" {
		return fmt.Sprintf("the root is {%s}%s instead of {%s}Faktura", root.space, root.name, namespace)
	}
	return g.element(root, "Faktura", "Faktura")
}

func (g *grammar) element(n *node, rule, path string) string {
	if n.space != namespace {
		return path + " is in the namespace " + n.space
	}
	e := g.elements[rule]
	if e == nil {
		return g.leaf(n, rule, path)
	}
	if flaw := e.attributes(n, path); flaw != "" {
		return flaw
	}
	if e.text != "" {
		return g.leaf(&node{space: n.space, text: n.text, children: n.children}, e.text, path)
	}
	if strings.TrimSpace(n.text) != "" {
		return path + " has text between its elements"
	}
	var names strings.Builder
	count := map[string]int{}
	for _, c := range n.children {
		if e.members[c.name] == "" {
			return path + " has an element that does not belong there: " + c.name
		}
		names.WriteString(c.name + " ")
		if count[c.name]++; e.most[c.name] > 0 && count[c.name] > e.most[c.name] {
			return fmt.Sprintf("%s has more than %d elements %s", path, e.most[c.name], c.name)
		}
	}
	if !e.content.MatchString(names.String()) {
		return path + " has elements missing, out of order or too often: " + cut(names.String(), 300)
	}
	for _, c := range n.children {
		if flaw := g.element(c, e.members[c.name], path+"/"+c.name); flaw != "" {
			return flaw
		}
	}
	return ""
}

func (e *elementRule) attributes(n *node, path string) string {
	for name := range n.attributes {
		if _, ok := e.fixed[name]; !ok {
			return path + " has the attribute " + name + ", which does not belong there"
		}
	}
	for name, value := range e.fixed {
		if n.attributes[name] != value {
			return fmt.Sprintf("%s must have the attribute %s = %q", path, name, value)
		}
	}
	return ""
}

func (g *grammar) leaf(n *node, rule, path string) string {
	if len(n.children) > 0 || len(n.attributes) > 0 {
		return path + " has elements or attributes and must have text alone"
	}
	if flaw := g.values[rule].flaw(n.text); flaw != "" {
		return fmt.Sprintf("%s: %q %s", path, cut(n.text, 100), flaw)
	}
	return ""
}

// flaw says why a text is no value of the type.
func (v *valueRule) flaw(text string) string {
	switch v.kind {
	case "string":
	case "token":
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }), " ")
	default:
		text = strings.Trim(text, " \t\r\n")
	}
	if length := utf8.RuneCountInString(text); length < v.shortest || v.longest >= 0 && length > v.longest {
		return fmt.Sprintf("has %d characters", length)
	}
	if v.enum != nil && !v.enum[text] {
		return "is not among the values"
	}
	for _, re := range v.patterns {
		if !re.MatchString(text) {
			return "does not match " + re.String()
		}
	}
	switch v.kind {
	case "decimal", "integer":
		return v.number(text)
	case "date":
		return v.instant(text, time.DateOnly)
	case "datetime":
		return v.instant(text, time.RFC3339)
	}
	return ""
}

var numberPattern = regexp.MustCompile(`^[+-]?(\d+)(?:\.(\d+))?$`)

func (v *valueRule) number(text string) string {
	m := numberPattern.FindStringSubmatch(text)
	if m == nil || v.kind == "integer" && m[2] != "" {
		return "is no number"
	}
	whole, part := strings.TrimLeft(m[1], "0"), strings.TrimRight(m[2], "0")
	if v.digits >= 0 && len(whole)+len(part) > v.digits || v.decimals >= 0 && len(part) > v.decimals {
		return "has too many digits"
	}
	if v.min == "" && v.max == "" {
		return ""
	}
	value, err := strconv.ParseFloat(text, 64)
	low, _ := strconv.ParseFloat(v.min, 64)
	high, _ := strconv.ParseFloat(v.max, 64)
	if err != nil || v.min != "" && value < low || v.max != "" && value > high {
		return "is too small or too large"
	}
	return ""
}

func (v *valueRule) instant(text, layout string) string {
	at, err := time.Parse(layout, text)
	if err != nil && layout == time.RFC3339 {
		at, err = time.Parse("2006-01-02T15:04:05.999999999", text)
	}
	if err != nil {
		return "is no day or instant"
	}
	if low, err := time.Parse(layout, v.min); err == nil && at.Before(low) {
		return "is before " + v.min
	}
	if high, err := time.Parse(layout, v.max); err == nil && at.After(high) {
		return "is after " + v.max
	}
	return ""
}

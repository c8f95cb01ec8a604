package structure

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tributary/internal/xmltree"
)

const spaceXSD = "http://www.w3.org/2001/XMLSchema"

// kind is how the text of a built-in type is read.
type kind int

const (
	kindText kind = iota
	kindLanguage
	kindToken // NMTOKEN
	kindNames // NMTOKENS, IDREFS, ENTITIES
	kindName
	kindNCName
	kindID
	kindQName
	kindBoolean
	kindDecimal
	kindInteger
	kindFloat
	kindDateTime
	kindDate
	kindTime
	kindYear
	kindYearMonth
	kindMonth
	kindMonthDay
	kindDay
	kindDuration
	kindHex
	kindBase64
	kindURI
)

// builtin describes a built-in type: what it is derived from, how its white
// space is handled, and the least and greatest number where it has them.
type builtin struct {
	base     string
	kind     kind
	white    byte
	low, top string
}

// builtins are those of XML Schema part 2, section 3.
func builtins(local string) (builtin, bool) {
	switch local {
	case "anySimpleType":
		return builtin{"", kindText, 'p', "", ""}, true
	case "string":
		return builtin{"anySimpleType", kindText, 'p', "", ""}, true
	case "normalizedString":
		return builtin{"string", kindText, 'r', "", ""}, true
	case "token":
		return builtin{"normalizedString", kindText, 'c', "", ""}, true
	case "language":
		return builtin{"token", kindLanguage, 'c', "", ""}, true
	case "NMTOKEN":
		return builtin{"token", kindToken, 'c', "", ""}, true
	case "NMTOKENS", "IDREFS", "ENTITIES":
		return builtin{"anySimpleType", kindNames, 'c', "", ""}, true
	case "Name":
		return builtin{"token", kindName, 'c', "", ""}, true
	case "NCName":
		return builtin{"Name", kindNCName, 'c', "", ""}, true
	case "ID":
		return builtin{"NCName", kindID, 'c', "", ""}, true
	case "IDREF", "ENTITY":
		return builtin{"NCName", kindNCName, 'c', "", ""}, true
	case "boolean":
		return builtin{"anySimpleType", kindBoolean, 'c', "", ""}, true
	case "float", "double":
		return builtin{"anySimpleType", kindFloat, 'c', "", ""}, true
	case "dateTime":
		return builtin{"anySimpleType", kindDateTime, 'c', "", ""}, true
	case "date":
		return builtin{"anySimpleType", kindDate, 'c', "", ""}, true
	case "time":
		return builtin{"anySimpleType", kindTime, 'c', "", ""}, true
	case "gYear":
		return builtin{"anySimpleType", kindYear, 'c', "", ""}, true
	case "gYearMonth":
		return builtin{"anySimpleType", kindYearMonth, 'c', "", ""}, true
	case "gMonth":
		return builtin{"anySimpleType", kindMonth, 'c', "", ""}, true
	case "gMonthDay":
		return builtin{"anySimpleType", kindMonthDay, 'c', "", ""}, true
	case "gDay":
		return builtin{"anySimpleType", kindDay, 'c', "", ""}, true
	case "duration":
		return builtin{"anySimpleType", kindDuration, 'c', "", ""}, true
	case "hexBinary":
		return builtin{"anySimpleType", kindHex, 'c', "", ""}, true
	case "base64Binary":
		return builtin{"anySimpleType", kindBase64, 'c', "", ""}, true
	case "anyURI":
		return builtin{"anySimpleType", kindURI, 'c', "", ""}, true
	case "QName", "NOTATION":
		return builtin{"anySimpleType", kindQName, 'c', "", ""}, true
	}
	return numbers(local)
}

func numbers(local string) (builtin, bool) {
	switch local {
	case "decimal":
		return builtin{"anySimpleType", kindDecimal, 'c', "", ""}, true
	case "integer":
		return builtin{"decimal", kindInteger, 'c', "", ""}, true
	case "nonPositiveInteger":
		return builtin{"integer", kindInteger, 'c', "", "0"}, true
	case "negativeInteger":
		return builtin{"nonPositiveInteger", kindInteger, 'c', "", "-1"}, true
	case "long":
		return builtin{"integer", kindInteger, 'c', "-9223372036854775808", "9223372036854775807"}, true
	case "int":
		return builtin{"long", kindInteger, 'c', "-2147483648", "2147483647"}, true
	case "short":
		return builtin{"int", kindInteger, 'c', "-32768", "32767"}, true
	case "byte":
		return builtin{"short", kindInteger, 'c', "-128", "127"}, true
	case "nonNegativeInteger":
		return builtin{"integer", kindInteger, 'c', "0", ""}, true
	case "unsignedLong":
		return builtin{"nonNegativeInteger", kindInteger, 'c', "0", "18446744073709551615"}, true
	case "unsignedInt":
		return builtin{"unsignedLong", kindInteger, 'c', "0", "4294967295"}, true
	case "unsignedShort":
		return builtin{"unsignedInt", kindInteger, 'c', "0", "65535"}, true
	case "unsignedByte":
		return builtin{"unsignedShort", kindInteger, 'c', "0", "255"}, true
	case "positiveInteger":
		return builtin{"nonNegativeInteger", kindInteger, 'c', "1", ""}, true
	}
	return builtin{}, false
}

// builtinSimple is a built-in simple type, nil when there is none of the name.
func builtinSimple(local string) *simple {
	b, ok := builtins(local)
	if !ok {
		return nil
	}
	s := &simple{name: name{spaceXSD, local}, kind: b.kind, white: b.white, length: -1, shortest: -1, longest: -1,
		digits: -1, decimals: -1}
	if b.kind == kindNames {
		s.item, s.shortest = builtinSimple(strings.TrimSuffix(strings.Replace(local, "ENTITIES", "ENTITYS", 1), "S")), 1
	}
	if b.low != "" || b.top != "" {
		// The bounds are facets of a step above the integers.
		step := *s
		s.base = &step
		if b.low != "" {
			s.bounds = append(s.bounds, bound{'G', b.low})
		}
		if b.top != "" {
			s.bounds = append(s.bounds, bound{'L', b.top})
		}
	}
	return s
}

// builtinTyping is a built-in type as xsi:type may name it.
func builtinTyping(local string) *typing {
	s := builtinSimple(local)
	if s == nil {
		return nil
	}
	t := &typing{name: name{spaceXSD, local}, value: s}
	if b, _ := builtins(local); b.base != "" {
		t.base = builtinTyping(b.base)
	}
	return t
}

func (t *typing) sameBuiltin(other *typing) bool {
	return t.name.space == spaceXSD && t.name == other.name
}

// valued reports whether different texts of the kind can be the same value.
func (k kind) valued() bool {
	switch k {
	case kindBoolean, kindDecimal, kindInteger, kindFloat, kindDateTime, kindDate, kindTime:
		return true
	}
	return false
}

// canonical makes equal values equal texts.
func (k kind) canonical(text string) string {
	switch k {
	case kindBoolean:
		return strings.NewReplacer("1", "true", "0", "false").Replace(text)
	case kindDecimal, kindInteger:
		whole, part := significant(text)
		if whole == "" && part == "" {
			return "0"
		}
		if strings.HasPrefix(text, "-") {
			whole = "-" + whole
		}
		return whole + "." + part
	case kindFloat:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return text
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case kindDateTime, kindDate, kindTime:
		if m, ok := k.moment(text); ok {
			return m.String()
		}
	}
	return text
}

func (k kind) refuses(text string, at *xmltree.Element) string {
	switch k {
	case kindText:
		return ""
	case kindQName:
		prefix, local, found := strings.Cut(text, ":")
		if !found {
			prefix, local = "", text
		}
		if _, known := at.SpaceOf(prefix); !isName(local, false) || found && !isName(prefix, false) || !known {
			return "is no qualified name"
		}
		return ""
	}
	if k.reads(text) {
		return ""
	}
	return k.refusal()
}

func (k kind) reads(text string) bool {
	switch k {
	case kindLanguage:
		return isLanguage(text)
	case kindToken:
		return text != "" && strings.IndexFunc(text, func(r rune) bool { return !namePart(r) && r != ':' }) < 0
	case kindName:
		return isName(text, true)
	case kindNCName, kindID:
		return isName(text, false)
	case kindBoolean:
		return text == "true" || text == "false" || text == "1" || text == "0"
	case kindDecimal:
		return isDecimal(text, true)
	case kindInteger:
		return isDecimal(text, false)
	case kindFloat:
		return isFloat(text)
	case kindHex:
		_, err := hex.DecodeString(text)
		return err == nil
	case kindBase64:
		_, err := base64.StdEncoding.Strict().DecodeString(strings.ReplaceAll(text, " ", ""))
		return err == nil
	case kindDuration:
		return isDuration(text)
	case kindURI:
		return isURI(text)
	}
	_, ok := k.moment(text)
	return ok
}

func (k kind) refusal() string {
	switch k {
	case kindBoolean:
		return "is neither true nor false"
	case kindDecimal, kindFloat:
		return "is no number"
	case kindInteger:
		return "is no whole number"
	case kindDate:
		return "is no date"
	case kindDateTime, kindTime:
		return "is no time"
	case kindBase64, kindHex:
		return "is no binary text"
	}
	return "is not of its built-in type"
}

// compare orders two texts; known is false where they cannot be compared.
func (k kind) compare(a, b string) (order int, known bool) {
	switch k {
	case kindDecimal, kindInteger:
		return compareDecimals(a, b), true
	case kindFloat:
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		if errX != nil || errY != nil || math.IsNaN(x) || math.IsNaN(y) {
			return 0, false
		}
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	}
	x, okX := k.moment(a)
	y, okY := k.moment(b)
	if !okX || !okY {
		return 0, false
	}
	return x.compare(y)
}

func isDecimal(text string, fraction bool) bool {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	whole, part, point := strings.Cut(text, ".")
	if point && !fraction || whole == "" && part == "" {
		return false
	}
	return allDigits(whole) && allDigits(part)
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// significant are the digits before and after the point that count.
func significant(text string) (whole, part string) {
	whole, part, _ = strings.Cut(strings.TrimLeft(text, "+-"), ".")
	return strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
}

func compareDecimals(a, b string) int {
	wholeA, partA := significant(a)
	wholeB, partB := significant(b)
	negativeA := strings.HasPrefix(a, "-") && wholeA+partA != ""
	negativeB := strings.HasPrefix(b, "-") && wholeB+partB != ""
	switch {
	case negativeA && !negativeB:
		return -1
	case negativeB && !negativeA:
		return 1
	}
	order := len(wholeA) - len(wholeB)
	if order == 0 {
		if order = strings.Compare(wholeA, wholeB); order == 0 {
			order = strings.Compare(partA, partB)
		}
	}
	if negativeA {
		return -order
	}
	return order
}

func isFloat(text string) bool {
	if text == "INF" || text == "-INF" || text == "NaN" {
		return true
	}
	mantissa, exponent, has := strings.Cut(strings.Replace(text, "E", "e", 1), "e")
	return isDecimal(mantissa, true) && (!has || isDecimal(exponent, false))
}

func isLanguage(text string) bool {
	for i, part := range strings.Split(text, "-") {
		if len(part) < 1 || len(part) > 8 {
			return false
		}
		for _, c := range []byte(part) {
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}

func isName(text string, colon bool) bool {
	for i, r := range text {
		if colon && r == ':' {
			continue
		}
		if !namePart(r) || i == 0 && (!xmltree.NameStart(r) || r != '_' && !unicode.IsLetter(r)) {
			return false
		}
	}
	return text != "" && utf8.ValidString(text)
}

// namePart is a character of a name as XML Schema 1.0 means it: it refers to
// XML 1.0 before its fifth edition, which knows letters, digits and marks and
// not every other sign.
func namePart(r rune) bool {
	return xmltree.NamePart(r) && (r < 0x80 || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == 0xB7)
}

// uriPattern is a reference by RFC 3986, once characters that must be escaped
// are replaced.
var uriPattern = func() *regexp.Regexp {
	const (
		char      = `(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})`
		firstChar = `(?:[A-Za-z0-9\-._~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})`
		authority = `//(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*@)?(?:\[[0-9A-Fa-f:.v]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?(?:/` + char + `*)*`
		absolute  = `/(?:` + char + `+(?:/` + char + `*)*)?`
		tail      = `(?:\?(?:` + char + `|[/?])*)?(?:#(?:` + char + `|[/?\[\]])*)?`
	)
	return regexp.MustCompile(
		`\A(?:[A-Za-z][A-Za-z0-9+.\-]*:(?:` + authority + `|` + absolute + `|` + char + `+(?:/` + char + `*)*|)|` +
			authority + `|` + absolute + `|` + firstChar + `+(?:/` + char + `*)*|)` + tail + `\z`)
}()

func isURI(text string) bool {
	return uriPattern.MatchString(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f || strings.ContainsRune("<>\"{}|\\^`", r) {
			return '_'
		}
		return r
	}, text))
}

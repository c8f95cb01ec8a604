package structure_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tributary/internal/mutate"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/structure"
)

// orders is a small schema in compact form: an order with a required number, an
// optional note, up to three lines, a choice, a wildcard, and a unique line number.
const orders = `structure 1
n urn:o
n urn:ext
s 1:Code string L3 ~[A-Z]{3}
s 1:Amount decimal d5 f2 G0 u1000
s - string =A =B =10 +5
s - list:#0 m1 M2
s 1:Either union:#1,#2
s - ID
t 1:Order - - ( 1 2? 3{1,3} [ 4 ( 5 6 ) ]? 7* any:!1:l* ) @0:id;#5;o @0:version;string;r;=1.0 @any:2:l
t 1:Pair - - { 1 2? }
t - - - ( 1 ) @0:n;int;r
t 1:Text - - =string
t 1:LongText $3 - =string @0:extra;string;o
t 1:Base - a ( 1 )
t - - m ( 1? )
e 1:Order $0 g
k u lines 1:Line @0:n
e 1:Number #0
e 1:Note $3 n
e 1:Line $2
e 1:A #2
e 1:B #1 =1.50
e 1:C boolean :true
e 1:Head $5 g a
e 1:Member $3 g s7
`

func schema(t testing.TB) *structure.Schema {
	t.Helper()
	s, err := structure.Parse([]byte(orders))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	return s
}

const line = `<Line n="%d"><Number>ABC</Number></Line>`

func order(content string) string {
	return `<Order xmlns="urn:o" version="1.0">` + content + `</Order>`
}

func TestDocumentsAreJudgedByTheirStructure(t *testing.T) {
	s := schema(t)
	number, first := "<Number>ABC</Number>", fmt.Sprintf(line, 1)
	for name, c := range map[string]struct {
		document string
		kind     structure.Kind
		at       string // "" when there is no flaw
		flaw     string // its name
	}{
		"the least":            {order(number + first), 0, "", ""},
		"with a note":          {order(number + "<Note>x</Note>" + first), 0, "", ""},
		"first of the choice":  {order(number + first + "<A>A</A>"), 0, "", ""},
		"second of the choice": {order(number + first + "<B/><C/>"), 0, "", ""},
		"member of a group":    {order(number + first + "<Member>x</Member>"), 0, "", ""},
		"wildcard":             {order(number + first + `<x xmlns="urn:x"><y/></x><z xmlns="urn:ext"/>`), 0, "", ""},
		"number in a run":      {order(number + first + "<A>15</A>"), 0, "", ""},
		"behind the run":       {order(number + first + "<A>16</A>"), structure.Value, "Order/A", "A"},
		"unknown root":         {`<Order/>`, structure.Unknown, "Order", "Order"},
		"missing":              {order(first), structure.Missing, "Order", "Number"},
		"missing at the end":   {order(number), structure.Missing, "Order", "Line"},
		"out of order":         {order(number + first + "<Note>x</Note>"), structure.Unexpected, "Order/Note", "Note"},
		"too many": {order(number + first + fmt.Sprintf(line, 2) + fmt.Sprintf(line, 3) + fmt.Sprintf(line, 4)),
			structure.Unexpected, "Order/Line[4]", "Line"},
		"half of a choice":   {order(number + first + "<B/>"), structure.Missing, "Order", "C"},
		"both of the choice": {order(number + first + "<A>A</A><B/><C/>"), structure.Unexpected, "Order/B", "B"},
		"abstract head": {order(number + first + "<Head><Number>ABC</Number></Head>"), structure.TypeUse,
			"Order/Head", "Head"},
		"wildcard's own space": {order(number + first + "<Other/>"), structure.Unexpected, "Order/Other", "Other"},
		"no namespace":         {order(number + first + `<x xmlns=""/>`), structure.Unexpected, "Order/x", "x"},
		"text between":         {order(number + "text" + first), structure.Text, "Order", "Order"},
		"pattern":              {order("<Number>AB1</Number>" + first), structure.Value, "Order/Number", "Number"},
		"length":               {order("<Number>ABCD</Number>" + first), structure.Value, "Order/Number", "Number"},
		"element in a leaf":    {order("<Number><x/></Number>" + first), structure.Unexpected, "Order/Number/x", "x"},
		"fixed as a value":     {order(number + first + "<B>1.5</B><C/>"), 0, "", ""},
		"not the fixed value":  {order(number + first + "<B>1.6</B><C/>"), structure.Value, "Order/B", "B"},
		"boolean":              {order(number + first + "<B/><C>yes</C>"), structure.Value, "Order/C", "C"},
		"attribute missing": {`<Order xmlns="urn:o">` + number + first + `</Order>`, structure.AttributeMissing, "Order",
			"version"},
		"attribute fixed": {`<Order xmlns="urn:o" version="1.1">` + number + first + `</Order>`,
			structure.AttributeValue, "Order", "version"},
		"attribute unknown": {order(number + `<Line n="1" x="1"><Number>ABC</Number></Line>`), structure.AttributeUnknown,
			"Order/Line", "x"},
		"attribute of a type": {order(number + `<Line n="x"><Number>ABC</Number></Line>`), structure.AttributeValue,
			"Order/Line", "n"},
		"wild attribute": {`<Order xmlns="urn:o" version="1.0" e:x="1" xmlns:e="urn:ext">` + number + first +
			`</Order>`, 0, "", ""},
		"twice the same line": {order(number + first + first), structure.Identity, "Order/Line[2]", "Line"},
		"nil": {order(number + `<Note xsi:nil="true" xmlns:xsi="` + xmltree.SpaceXSI + `"/>` + first), 0,
			"", ""},
		"nil with text": {
			order(number + `<Note xsi:nil="true" xmlns:xsi="` + xmltree.SpaceXSI + `">x</Note>` + first), structure.Text,
			"Order/Note", "Note"},
		"nil where it is none": {order(`<Number xsi:nil="true" xmlns:xsi="` + xmltree.SpaceXSI + `"/>` + first),
			structure.TypeUse, "Order/Number", "nil"},
		"derived type": {order(number + `<Note xsi:type="LongText" extra="1" xmlns:xsi="` + xmltree.SpaceXSI + `">x</Note>` + first), 0, "", ""},
		"underived type": {order(number + `<Note xsi:type="Order" xmlns:xsi="` + xmltree.SpaceXSI + `">x</Note>` + first),
			structure.TypeUse, "Order/Note", "type"},
		"no such type": {order(number + `<Note xsi:type="Nothing" xmlns:xsi="` + xmltree.SpaceXSI + `">x</Note>` + first),
			structure.TypeUse, "Order/Note", "type"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := xmltree.Read([]byte(c.document))
			if err != nil {
				t.Fatal(err)
			}
			f := s.First(doc.Root)
			switch {
			case c.at == "" && f != nil:
				t.Errorf("it is refused: %v", f)
			case c.at != "" && f == nil:
				t.Error("it is accepted")
			case f != nil && (f.Kind != c.kind || f.Element.Path() != c.at || f.Name != c.flaw):
				t.Errorf("the flaw is of kind %d at %s about %s: %v", f.Kind, f.Element.Path(), f.Name, f)
			case f != nil && f.Error() == "":
				t.Error("the flaw says nothing")
			}
		})
	}
}

func TestCheckGoesOnAfterAFlawUpToTheNumberWanted(t *testing.T) {
	doc, err := xmltree.Read([]byte(order("<Number>1</Number>" + fmt.Sprintf(line, 1) + `<Line><Number>2</Number></Line><Bogus/>`)))
	if err != nil {
		t.Fatal(err)
	}
	all := schema(t).Check(doc.Root, 100)
	if len(all) != 4 {
		t.Fatalf("flaws: %v", all)
	}
	if some := schema(t).Check(doc.Root, 2); len(some) != 2 || some[1].Error() != all[1].Error() {
		t.Errorf("flaws: %v", some)
	}
}

func TestValuesOfBuiltInTypes(t *testing.T) {
	for kind, texts := range map[string][2][]string{
		"boolean":         {{"true", "0", " 1 "}, {"TRUE", "", "2"}},
		"decimal":         {{"1", "-1.50", "+.5", "1.", "0"}, {"", ".", "1e3", "1,5", "--1", "+-1", "INF"}},
		"integer":         {{"1", "-0", "+7", "123456789012345678901234567890"}, {"1.0", "", "-"}},
		"positiveInteger": {{"1", "001"}, {"0", "-1"}},
		"byte":            {{"127", "-128"}, {"128", "-129"}},
		"unsignedLong":    {{"18446744073709551615"}, {"18446744073709551616", "-1"}},
		"double":          {{"1e3", "INF", "-INF", "NaN", "1.5E-4"}, {"inf", "1e", "0x1"}},
		"date": {{"2024-02-29", "2024-02-29Z", "-0001-01-01", "12024-01-01+14:00"},
			{"2023-02-29", "2024-13-01", "24-01-01", "0000-01-01", "2024-01-01+14:01", "02024-01-01", "2024-1-1"}},
		"dateTime": {{"2024-01-01T24:00:00", "2024-01-01T23:59:59.999-05:00"},
			{"2024-01-01", "2024-01-01T24:00:01", "2024-01-01T10:00", "2024-01-01 10:00:00", "2024-01-01T10:00:60"}},
		"time":               {{"10:00:00", "10:00:00.5Z"}, {"10:00", "25:00:00", "10:00:00."}},
		"gYear":              {{"2024", "2024Z"}, {"24", "2024-01"}},
		"gYearMonth":         {{"2024-12"}, {"2024-13"}},
		"gMonthDay":          {{"--02-29"}, {"--02-30", "02-28"}},
		"gDay":               {{"---31"}, {"---32"}},
		"gMonth":             {{"--12"}, {"--13"}},
		"duration":           {{"P1Y2M3DT4H5M6.7S", "-P1D", "PT0S"}, {"P", "PT", "P1S", "P1.5D", "1D", "P1M1Y"}},
		"hexBinary":          {{"", "0aFF"}, {"0", "0g"}},
		"base64Binary":       {{"", "QQ==", "Q U J D", "QUI="}, {"Q", "QR==", "QQ=", "Q*==", "QUJD="}},
		"anyURI":             {{"", "http://a/b?c#d", "a b"[:1], "urn:x:y", "é"}, {"http://a#b#c", "%zz", "a b"}},
		"language":           {{"en", "en-GB"}, {"", "e1", "toolonglang", "en-"}},
		"NMTOKEN":            {{"1a", "a:b"}, {"", "a b"}},
		"NMTOKENS":           {{"a b"}, {""}},
		"NCName":             {{"_a1", "é"}, {"1a", "a:b", "", "a€", "€"}},
		"Name":               {{"a:b"}, {"1"}},
		"normalizedString":   {{"a\tb"}, nil},
		"ID":                 {{"x1"}, {"1x"}},
		"nonNegativeInteger": {{"0"}, {"-1"}},
	} {
		s, err := structure.Parse([]byte("structure 1\ne 0:v " + kind + " g\n"))
		if err != nil {
			t.Fatal(err)
		}
		for i, good := range []bool{true, false} {
			for _, text := range texts[i] {
				e := xmltree.New("v")
				e.Text = text
				if f := s.First(e); (f == nil) != good {
					t.Errorf("%s %q: %v", kind, text, f)
				}
			}
		}
	}
}

func TestFacets(t *testing.T) {
	for facets, texts := range map[string][2][]string{
		"string L2":        {{"ab", "éé"}, {"a", "abc"}},
		"string m2 M3":     {{"ab", "abc"}, {"a", "abcd"}},
		"token m1":         {{" a "}, {"  ", ""}},
		"string wc m1 M3":  {{"  a  b "}, {" abcd "}},
		"decimal d5 f2":    {{"123.45", "00123.4500", "-99999"}, {"123456", "1.234"}},
		"decimal G-1.5 U2": {{"-1.5", "2.000", "0"}, {"-1.51", "2.0001"}},
		"decimal g0 u10":   {{"0.1", "9.99"}, {"0", "10"}},
		"integer =1 =2":    {{"1", "+2", "01"}, {"3"}},
		"string =1":        {{"1"}, {"01"}},
		"date G2022-01-01": {{"2022-01-01", "2023-01-01"}, {"2021-12-31"}},
		"dateTime G2022-01-01T00:00:00Z": {{"2022-01-01T02:00:00+01:00", "2022-01-02T00:00:00"},
			{"2022-01-01T00:00:00+01:00", "2022-01-01T00:00:00"}},
		"base64Binary L2":               {{"QUI="}, {"QUJD"}},
		"hexBinary M2":                  {{"0102"}, {"010203"}},
		`string ~\d{2}-\d{2} ~X`:        {{"12-34", "X"}, {"12-3", "Y", "X12-34"}},
		`string ~[^|]{1,1000}`:          {{"a", strings.Repeat("é", 1000)}, {"", "a|", strings.Repeat("a", 1001)}},
		`string ~[a-z-[aeiou]]+`:        {{"bcd"}, {"bad", ""}},
		`string ~\p{IsBasicLatin}{1,3}`: {{"abc"}, {"é", "abcd"}},
		`string ~^a$`:                   {{"^a$"}, {"a"}},
		`string ~(a|b)?c.`:              {{"acx", "cé"}, {"c", "c\n", "abcx"}},
		`string ~\i\c*`:                 {{"a-1", ":x"}, {"1a"}},
		`string ~\w+\s\S\D\W`:           {{"é1 xy."}, {"a b"}},
		`string ~[\-+]?[0-9\.]{1,3}`:    {{"-1.5", "+12"}, {"*1"}},
		"string =10 +5 =100":            {{"10", "15", "100"}, {"16", "010", "1", "99"}},
	} {
		s, err := structure.Parse([]byte("structure 1\ns - " + strings.ReplaceAll(facets, `%`, `%25`) + "\ne 0:v #0 g\n"))
		if err != nil {
			t.Fatalf("%s: %v", facets, err)
		}
		if err := s.Verify(); err != nil {
			t.Fatal(err)
		}
		for i, good := range []bool{true, false} {
			for _, text := range texts[i] {
				e := xmltree.New("v")
				e.Text = text
				if f := s.First(e); (f == nil) != good {
					t.Errorf("%s %q: %v", facets, text, f)
				}
			}
		}
	}
}

func TestBrokenFormsAreErrors(t *testing.T) {
	for _, text := range []string{"", "structure 2\n", "structure 1\nx\n", "structure 1\ns - #0\n",
		"structure 1\ns - #1\ns - string\n", "structure 1\ne 0:a #7 g\n",
		"structure 1\nt - - - ( 0\n", "structure 1\nt - - - ( 5 )\n", "structure 1\ne 9:a string\n",
		"structure 1\ns - string Lx\n", "structure 1\ns - string +4\n", "structure 1\ne 0:a string s0\n"} {
		if _, err := structure.Parse([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	s, err := structure.Parse([]byte("structure 1\ns - string ~[a\ne 0:v #0 g\n"))
	if err != nil || s.Verify() == nil {
		t.Errorf("a broken pattern is not found: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(orders), []byte(order("<Number>ABC</Number>")))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text, document []byte) {
		s, err := structure.Parse(text)
		if err != nil {
			return
		}
		if doc, err := xmltree.Read(document); err == nil {
			for _, flaw := range s.Check(doc.Root, 10) {
				if flaw.Element == nil || flaw.Error() == "" {
					t.Fatalf("%+v", flaw)
				}
			}
		}
	})
}

// A pattern that both languages spell alike matches alike.
func FuzzPattern(f *testing.F) {
	f.Add(`[a-c]{1,3}|x`, "abc")
	plain := regexp.MustCompile(`^[a-z0-9|()?*+{},\[\]-]*$`)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, source, text string) {
		if !plain.MatchString(source) || strings.ContainsAny(text, "\n\r") || strings.Contains(source, "(?") ||
			strings.Contains(source, "?") || strings.Contains(source, "[[") || strings.Contains(source, "-[") {
			return
		}
		s, err := structure.Parse([]byte("structure 1\ns - string ~" + source + "\ne 0:v #0 g\n"))
		if err != nil || s.Verify() != nil {
			return
		}
		want, err := regexp.Compile(`\A(?:` + source + `)\z`)
		if err != nil {
			return
		}
		e := xmltree.New("v")
		e.Text = text
		if got := s.First(e) == nil; got != want.MatchString(text) {
			t.Errorf("%q matches %q: %v", source, text, got)
		}
	})
}

package official_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"tributary/internal/official"
	"tributary/internal/xmltree"
)

// mutantsOf is how many broken copies of each standard are compared; more with
// TRIBUTARY_MUTANTS, another draw with TRIBUTARY_MUTANTS_SEED.
func mutantsOf(t testing.TB) (count int, seed uint64) {
	count, seed = 250, 1
	if text := os.Getenv("TRIBUTARY_MUTANTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	if text := os.Getenv("TRIBUTARY_MUTANTS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	return count, seed
}

func TestBrokenCopiesAreJudgedAsXmllintJudgesThem(t *testing.T) {
	for _, c := range samples {
		t.Run(string(c.standard), func(t *testing.T) {
			count, seed := mutantsOf(t)
			all := samplesOf(t, c.standard, c.globs)
			made := mutants(all, count, seed)
			const batch = 500
			o, invalid := newOracle(t, c.standard), 0
			for len(made) > 0 {
				some := made[:min(batch, len(made))]
				made = made[len(some):]
				invalid += compare(t, c.standard, o, some)
			}
			t.Logf("%d broken copies, %d of them are not valid", count, invalid)
			if invalid < count/2 {
				t.Errorf("only %d of %d copies are not valid: they are not broken enough", invalid, count)
			}
		})
	}
}

// compare judges the copies by xmllint and by the structure and says how many
// are not valid.
func compare(t *testing.T, standard official.Standard, o *oracle, made []mutant) int {
	t.Helper()
	texts := make([][]byte, len(made))
	for i := range made {
		texts[i] = made[i].text
	}
	invalid := 0
	for i, valid := range o.judge(t, texts) {
		if !valid {
			invalid++
		}
		doc, err := xmltree.Read(texts[i])
		if err != nil {
			if valid {
				t.Errorf("%s: xmllint reads the copy and we do not: %v", made[i].what, err)
			}
			continue
		}
		flaw := standard.Schema().First(doc.Root)
		switch {
		case valid == (flaw == nil):
		case !valid && o.judge(t, [][]byte{collapsed(doc)})[0]:
			// libxml2 does not collapse white space around whole numbers and
			// dates where facets follow; XML Schema part 2, section 4.3.6, does.
		case valid && flaw.Reason == "is no binary text":
			// libxml2 skips characters that are none of Base64; section 3.2.16 has no such.
		default:
			t.Errorf("%s: xmllint says valid=%v, we say %v\n%.1500s", made[i].what, valid, flaw, texts[i])
		}
	}
	return invalid
}

// collapsed is the document with white space around every text taken off.
func collapsed(doc *xmltree.Document) []byte {
	for e := range doc.Root.Walk() {
		e.Text = strings.TrimSpace(e.Text)
		for i := range e.Attrs {
			e.Attrs[i].Value = strings.TrimSpace(e.Attrs[i].Value)
		}
	}
	return doc.Bytes()
}

// mutant is a copy of a sample with one thing changed.
type mutant struct {
	what string
	text []byte
}

func mutants(all []sample, count int, seed uint64) []mutant {
	draw := rand.New(rand.NewPCG(seed, 14))
	var made []mutant
	for len(made) < count {
		s := all[draw.IntN(len(all))]
		doc, err := xmltree.Read(s.text)
		if err != nil {
			panic(err)
		}
		var elements []*xmltree.Element
		for e := range doc.Root.Walk() {
			elements = append(elements, e)
		}
		e := elements[draw.IntN(len(elements))]
		change := changes[draw.IntN(len(changes))]
		path := e.Path()
		if change.to(e, draw, elements) {
			made = append(made, mutant{fmt.Sprintf("%s of %s in %s", change.name, path, s.path), doc.Bytes()})
		}
	}
	return made
}

// changes are the ways to break a copy. Each says whether it could be done.
var changes = []struct {
	name string
	to   func(e *xmltree.Element, draw *rand.Rand, all []*xmltree.Element) bool
}{
	{"removal", func(e *xmltree.Element, _ *rand.Rand, _ []*xmltree.Element) bool {
		if e.Parent == nil {
			return false
		}
		at := index(e)
		e.Parent.Children = append(e.Parent.Children[:at:at], e.Parent.Children[at+1:]...)
		return true
	}},
	{"swap", func(e *xmltree.Element, _ *rand.Rand, _ []*xmltree.Element) bool {
		if e.Parent == nil || index(e)+1 >= len(e.Parent.Children) {
			return false
		}
		at := index(e)
		kids := e.Parent.Children
		kids[at], kids[at+1] = kids[at+1], kids[at]
		return true
	}},
	{"doubling", func(e *xmltree.Element, _ *rand.Rand, _ []*xmltree.Element) bool {
		if e.Parent == nil {
			return false
		}
		insert(e.Parent, index(e), e)
		return true
	}},
	{"transplant", func(e *xmltree.Element, draw *rand.Rand, all []*xmltree.Element) bool {
		other := all[draw.IntN(len(all))]
		for at := e; at != nil; at = at.Parent {
			if at == other {
				return false
			}
		}
		insert(e, draw.IntN(len(e.Children)+1), other)
		return true
	}},
	{"renaming", func(e *xmltree.Element, draw *rand.Rand, all []*xmltree.Element) bool {
		e.Local = all[draw.IntN(len(all))].Local + []string{"", "X"}[draw.IntN(2)]
		return true
	}},
	{"unknown element", func(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
		insert(e, draw.IntN(len(e.Children)+1), &xmltree.Element{Prefix: e.Prefix, Local: "Bogus"})
		return true
	}},
	{"other namespace", func(e *xmltree.Element, _ *rand.Rand, _ []*xmltree.Element) bool {
		e.Prefix = "zz"
		e.Spaces = append(e.Spaces, xmltree.Binding{Prefix: "zz", Space: "urn:elsewhere"})
		return true
	}},
	{"unknown attribute", func(e *xmltree.Element, _ *rand.Rand, _ []*xmltree.Element) bool {
		e.Set("bogus", "1")
		return true
	}},
	{"removal of an attribute", func(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
		if len(e.Attrs) == 0 {
			return false
		}
		at := draw.IntN(len(e.Attrs))
		e.Attrs = append(e.Attrs[:at:at], e.Attrs[at+1:]...)
		return true
	}},
	{"another value of an attribute", func(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
		if len(e.Attrs) == 0 {
			return false
		}
		a := &e.Attrs[draw.IntN(len(e.Attrs))]
		a.Value = otherValue(a.Value, draw)
		return true
	}},
	{"another text", changeText}, {"another text", changeText}, {"another text", changeText},
	{"text between elements", func(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
		if len(e.Children) == 0 {
			return false
		}
		e.Children[draw.IntN(len(e.Children))].Tail = []string{"text", " \n\t", " "}[draw.IntN(3)]
		return true
	}},
	{"nil and type", func(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
		e.Spaces = append(e.Spaces, xmltree.Binding{Prefix: "zi", Space: xmltree.SpaceXSI},
			xmltree.Binding{Prefix: "zs", Space: "http://www.w3.org/2001/XMLSchema"})
		name := []string{"nil", "type", "type", "schemaLocation"}[draw.IntN(4)]
		if _, there := e.Lookup(xmltree.SpaceXSI, name); there {
			return false
		}
		value := map[string][]string{"nil": {"true", "false", "x"},
			"type": {"zs:string", "zs:date", "zs:anyType", "Nowhere"}, "schemaLocation": {"urn:a b.xsd"}}[name]
		e.Attrs = append(e.Attrs, xmltree.Attr{Prefix: "zi", Space: xmltree.SpaceXSI, Local: name,
			Value: value[draw.IntN(len(value))]})
		return true
	}},
}

func index(e *xmltree.Element) int {
	for i, c := range e.Parent.Children {
		if c == e {
			return i
		}
	}
	return -1
}

func insert(parent *xmltree.Element, at int, e *xmltree.Element) {
	parent.Children = append(parent.Children[:at:at], append([]*xmltree.Element{e}, parent.Children[at:]...)...)
}

func changeText(e *xmltree.Element, draw *rand.Rand, _ []*xmltree.Element) bool {
	if len(e.Children) > 0 {
		return false
	}
	e.Text = otherValue(e.Text, draw)
	return true
}

// otherValue is a text near the old one, or one of those that types disagree about.
func otherValue(old string, draw *rand.Rand) string {
	runes := []rune(old)
	switch draw.IntN(8) {
	case 0:
		return old + old
	case 1:
		if len(runes) > 0 {
			return string(runes[1:])
		}
	case 2:
		if len(runes) > 0 {
			runes[draw.IntN(len(runes))] = []rune("0123456789AZaz .-+|ñ€")[draw.IntN(21)]
			return string(runes)
		}
	case 3:
		return " \n" + old + "\t "
	case 4:
		return old + strconv.Itoa(draw.IntN(10))
	case 5:
		return strings.Repeat(old+"x", 1+draw.IntN(200))
	}
	odd := []string{"", " ", "x", "0", "1", "-1", "+1", "1.", ".5", "-0", "1.000", "00012", "1e3", "true", "TRUE",
		"0.00000001", "123456789012345678", "99.995",
		"2024-02-29", "2023-02-29", "2024-02-30T00:00:00", "2024-01-01T24:00:00", "2024-01-01T10:00:00Z",
		"2024-01-01T10:00:00.123+01:00", "2024-01-01Z", "01-01-2024", "10:00:00",
		"ES", "EUR", "S", "N", "QQ==", "QR==", "Q Q = =", "€", "a  b", "2.1", "380"}
	return odd[draw.IntN(len(odd))]
}

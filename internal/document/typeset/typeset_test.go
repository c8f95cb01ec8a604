package typeset_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-text/typesetting/font/cff"
	"github.com/go-text/typesetting/font/opentype/tables"

	"tributary/internal/document/typeset"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
	"tributary/internal/needs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// library is shared by the tests: fonts of folders are parsed once.
var library = sync.OnceValues(func() (*typeset.Library, error) { return typeset.NewLibrary(typeset.WithSystem()) })

func setter(t testing.TB) (*typeset.Setter, typeset.Font) {
	t.Helper()
	lib, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return typeset.NewSetter(lib), typeset.Font{Family: lib.Family(typeset.Sans), Lang: "en"}
}

// seen is a line as the eye meets it, from left to right.
func seen(l *typeset.Line) string {
	pieces := slices.Clone(l.Pieces)
	slices.SortStableFunc(pieces, func(a, b typeset.Piece) int { return a.X - b.X })
	var out strings.Builder
	for _, p := range pieces {
		for _, g := range p.Glyphs {
			out.WriteString(g.Text)
		}
	}
	return out.String()
}

// Vectors by hand from UAX #9: Hebrew letters stand for any that run from right to left.
func TestMixedDirectionsAreOrderedForTheEye(t *testing.T) {
	t.Parallel()
	s, f := setter(t)
	for _, c := range []struct {
		text, want string
		rtl        bool
	}{
		{"abc אבג def", "abc גבא def", false},
		{"אבג 123 דהו", "והד 123 גבא", false}, // numbers keep their order within
		{"אבג 1,234.50 דהו", "והד 1,234.50 גבא", false},
		{"אבג abc 123", "abc 123 גבא", false}, // the first letter decides
		{"abc אבג 123", "abc 123 גבא", false}, // a number after right-to-left text goes to its left
		{"(אבג)", "(גבא)", true},
		{"אבג (abc) דהו", "והד (abc) גבא", false},
		{"بت 15%", "%15 تب", false}, // behind Arabic letters a sign changes sides, unless it is marked
		{"بت \u200E15%\u200E", "15% تب", false},
		{"123 456", "123 456", true}, // our own: a number is not turned around
	} {
		f.RTL = c.rtl
		if got := strings.ReplaceAll(seen(s.Line(f, c.text)), "\u200E", ""); mirrored(got) != mirrored(c.want) {
			t.Errorf("%q is seen as %q, want %q", c.text, got, c.want)
		}
	}
}

// mirrored makes brackets alike: the glyph is the mirrored one, its text is not.
func mirrored(s string) string { return strings.NewReplacer("(", "|", ")", "|").Replace(s) }

// fribidi is the judge of directions where it is installed.
func TestFriBidiOrdersAlike(t *testing.T) {
	t.Parallel()
	path := needs.Tool(t, "fribidi", "libfribidi-bin")
	s, f := setter(t)
	words := []string{"abc", "אבג", "12", "ש", "x", "3,5", "-7", "דה", "%"}
	var texts []string
	for i := range 400 {
		n := i
		var parts []string
		for range 2 + i%5 {
			parts = append(parts, words[n%len(words)])
			n = n*7 + 3
		}
		// a letter decides the direction
		if text := strings.Join(parts, " "); strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' }) {
			texts = append(texts, text)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, "--nopad", "--nobreak", "--wltr")
	cmd.Stdin = strings.NewReader(strings.Join(texts, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i, text := range texts {
		if got := seen(s.Line(f, text)); got != lines[i] {
			t.Errorf("%q is seen as %q, fribidi says %q", text, got, lines[i])
		}
	}
}

func TestLinesBreakWhereUnicodeLetsThem(t *testing.T) {
	t.Parallel()
	s, f := setter(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"one two three", []string{"one two", "three"}},
		{"co-operation works", []string{"co-", "operation", "works"}},
		{"", nil},
		{"i", []string{"i"}},
	} {
		if got := s.Wrap(f, c.text, 4600); !slices.Equal(got, c.want) {
			t.Errorf("%q breaks into %q, want %q", c.text, got, c.want)
		}
	}
	for _, text := range []string{"Donaudampfschifffahrtsgesellschaft", strings.Repeat("x", 300),
		"3C464DAF61ACB827C65FDA19F352A4E3", "שלוםשלוםשלוםשלום", strings.Repeat("บริษัท", 9), "株式会社、東京。「製作所」電気部品。販売",
		strings.Repeat("word ", 40)} {
		lines := s.Wrap(f, text, 4600)
		for _, line := range lines {
			if w := s.Width(f, line); w > 4600 {
				t.Errorf("a line of %q is %d wide: %q", text, w, line)
			}
			if strings.HasPrefix(line, "。") || strings.HasPrefix(line, "、") || strings.HasSuffix(line, "「") {
				t.Errorf("a line begins or ends as no line may: %q", line)
			}
		}
		joined := strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(lines, ""), "\u00AD", "")), "")
		if joined != strings.Join(strings.Fields(text), "") {
			t.Errorf("breaking %q gives %q", text, lines)
		}
	}
	// Letters are hyphenated, figures are not, and never after one letter.
	for _, line := range s.Wrap(f, "Donaudampfschifffahrtsgesellschaft", 4600) {
		if word := strings.TrimSuffix(line, "\u00AD"); len(word) < 3 {
			t.Errorf("%q is a bad piece of a word", line)
		}
	}
	if got := s.Wrap(f, "3C464DAF61ACB827C65FDA19F352A4E3", 4600); strings.Contains(strings.Join(got, ""), "\u00AD") {
		t.Errorf("a number was hyphenated: %q", got)
	}
}

// Words are broken before syllables, never between consonants that are one sound
// or begin one together.
func TestWordsAreBrokenBetweenSyllables(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"regis.tra.tion", "pro.gramme", "tech.ni.que", "Zucker", "Verhal.ten", "Ener.gie.ver.sor.gung", "wis.senschaft",
		"admi.nis.tra.ción", "fac.tu.ra.ción", "com.pa.gnia", "sconto", "össze.sen", "регис.тра.ция", "υπη.ρε.σία",
	} {
		if got := typeset.Syllables(strings.ReplaceAll(want, ".", "")); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestCleanKeepsWhatLettersNeedAndNothingElse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" a\t\nb ": "a b", "a\u202Eb\u2066c": "abc", "می\u200Cخواهم": "می\u200Cخواهم", "a\u200Cb": "ab", "\u200D": "",
		"葛\U000E0100城": "葛\U000E0100城", "a\U000E0100": "a",
		"e\u0301": "é", "x\u00A0y": "x\u00A0y", "\xffx": "\uFFFDx", "\U000F0000": "", "ශ්\u200Dරී": "ශ්\u200Dරී",
	} {
		if got := typeset.Clean(in); got != want {
			t.Errorf("%+q becomes %+q, want %+q", in, got, want)
		}
	}
}

// A subset of a font in the Compact Font Format, read by somebody else's
// reader, has the outlines of the whole font.
func TestCompactSubsetsHaveTheOutlinesOfTheirFont(t *testing.T) {
	t.Parallel()
	s, f := setter(t)
	f.Lang = "ja"
	line := s.Line(f, "株式会社東京製作所𠮷野家ガギグ。、")
	face := line.Pieces[0].Face
	if !strings.Contains(face.Name, "CJK") {
		needs.Missing(t, "fonts-noto-cjk is not installed: this check did not run")
	}
	usage := typeset.NewUsage(face)
	codes := map[uint16]uint16{}
	for _, g := range line.Pieces[0].Glyphs {
		code, _ := usage.AddGlyph(g.ID, g.Text)
		codes[code] = g.ID
	}
	second, _ := usage.AddGlyph(line.Pieces[0].Glyphs[0].ID, "other") // the same sign with another meaning
	codes[second] = line.Pieces[0].Glyphs[0].ID
	_, key := usage.Keys()
	subset, err := typeset.Cut(face, *key)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := cff.Parse(typeset.Compact(face))
	if err != nil {
		t.Fatal(err)
	}
	cut, err := cff.Parse(subset.Program)
	if err != nil {
		t.Fatal(err)
	}
	if len(cut.Charstrings) != len(codes)+1 || len(subset.Program) > 64<<10 {
		t.Errorf("%d signs make a subset of %d in %d bytes", len(codes), len(cut.Charstrings), len(subset.Program))
	}
	sorted := make([]uint16, 0, len(codes))
	for code := range codes {
		sorted = append(sorted, code)
	}
	slices.Sort(sorted)
	for i, code := range sorted {
		a, _, err := whole.LoadGlyph(tables.GlyphID(codes[code]))
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := cut.LoadGlyph(tables.GlyphID(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(a) != fmt.Sprint(b) || len(a) == 0 {
			t.Errorf("the outline of glyph %d differs", codes[code])
		}
	}
}

func FuzzFont(f *testing.F) {
	f.Add([]byte("ttcf\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x10"))
	f.Add([]byte("OTTO\x00\x01\x00\x00\x00\x00\x00\x00CFF \x00\x00\x00\x00\x00\x00\x00\x1C\x00\x00\x00\x04\x01\x00\x04\x01"))
	f.Add(typeset.SmallFont())
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		typeset.TryFont(raw)
	})
}

func FuzzCompact(f *testing.F) {
	f.Add([]byte("\x01\x00\x04\x01\x00\x01\x01\x01\x02A\x00\x01\x01\x01\x04\xEF\x0F\x0E"))
	f.Add(bytes.Repeat([]byte{0xFF}, 64))
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		typeset.TryCompact(raw)
	})
}

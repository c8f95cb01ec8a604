package document_test

import (
	"fmt"
	"strings"
	"testing"
)

// noteLines returns the lines of a drawn note: fonts in brackets where they are not the plain one.
func noteLines(t *testing.T, note string) []string {
	t.Helper()
	v := longInvoice(t, 1)
	v.Transaction.Note = note
	f := parsePDF(t, render(t, v))
	var out []string
	inside, last := false, -1.0
	for _, r := range f.text(f.pages()[0]) {
		if strings.HasPrefix(r.text, "Unique number") {
			break
		}
		if inside {
			text := r.text
			if style := strings.TrimPrefix(r.font, "Roboto-"); style != "Regular" {
				text = fmt.Sprintf("[%s:%s]", style, text)
			}
			if r.y == last {
				out[len(out)-1] += "|" + text
			} else {
				out = append(out, fmt.Sprintf("%.0f %s", (r.x-56.7)/14.175, text))
			}
			last = r.y
		}
		inside = inside || r.text == "Note"
	}
	return out
}

func TestNoteMarkupIsDrawn(t *testing.T) {
	t.Parallel()
	for note, want := range map[string][]string{
		"plain":                    {"0 plain"},
		"two\nlines":               {"0 two", "0 lines"},
		"one<br>two<br/>three":     {"0 one", "0 two", "0 three"},
		"<p>one</p><p>two</p>":     {"0 one", "0 two"},
		"a <b>b</b> c":             {"0 a |[Bold:b]| c"},
		"<strong>a</strong>":       {"0 [Bold:a]"},
		"<i>a</i> <em>b</em>":      {"0 [Italic:a]| |[Italic:b]"},
		"<b><i>a</i></b>":          {"0 [BoldItalic:a]"},
		"<b>open":                  {"0 [Bold:open]"},
		"</b>closed":               {"0 closed"},
		"folded\n   <b>white</b>":  {"0 folded |[Bold:white]"},
		"1 &lt; 2 &amp; 3":         {"0 1 < 2 & 3"},
		"<x>unknown</x>":           {"0 unknown"},
		"&#0;&#x202E;x":            {"0 \uFFFDx"},
		"<ul><li>a</li></ul>after": {"1 •|a", "0 after"},
	} {
		if got := noteLines(t, note); fmt.Sprint(got) != fmt.Sprint(want) && !marked(got, want) {
			t.Errorf("%q is drawn as %q, want %q", note, got, want)
		}
	}
}

// marked compares lines that begin with a bullet, whose place is left of the text's.
func marked(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		_, a, _ := strings.Cut(got[i], " ")
		_, b, _ := strings.Cut(want[i], " ")
		if a != b {
			return false
		}
	}
	return true
}

func TestNoteListsAreNumberedAndNested(t *testing.T) {
	t.Parallel()
	got := noteLines(t, "<ol><li>one<ul><li>inner</li></ul></li><li>two</li></ol>")
	text := strings.Join(got, "\n")
	for _, want := range []string{"1.|one", "•|inner", "2.|two"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	deep := noteLines(t, strings.Repeat("<ul><li>x", 50))
	if len(deep) == 0 || !strings.Contains(deep[0], "x") {
		t.Errorf("fifty lists are drawn as %q", deep)
	}
}

func TestEmptyNoteHasNoHeading(t *testing.T) {
	t.Parallel()
	for _, note := range []string{"", "   ", "<p></p>", "<script>x</script>", "<br><br>"} {
		v := longInvoice(t, 1)
		v.Transaction.Note = note
		if strings.Contains(parsePDF(t, render(t, v)).allText(), "\nNote\n") {
			t.Errorf("%q has a heading", note)
		}
	}
}

func TestUnderlineIsDrawnBelowItsWords(t *testing.T) {
	t.Parallel()
	boxes := func(note string) int {
		v := longInvoice(t, 1)
		v.Transaction.Note = note
		f := parsePDF(t, render(t, v))
		n := 0
		for _, o := range f.operators(f.pages()[0]) {
			if o.name == "re" {
				n++
			}
		}
		return n
	}
	if boxes("<u>x</u>") != boxes("x")+1 {
		t.Error("an underlined word has no line of its own")
	}
}

func TestVeryLongNoteIsCut(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Transaction.Note = strings.Repeat("word ", 1<<18)
	f := parsePDF(t, render(t, v))
	if n := strings.Count(f.allText(), "word"); n < 13000 || n > 13200 {
		t.Errorf("of a note of a megabyte %d words are drawn", n)
	}
	if !strings.Contains(f.allText(), "…") {
		t.Error("the cut does not show")
	}
}

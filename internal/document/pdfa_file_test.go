package document_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"testing"

	"tributary/internal/country"
	"tributary/internal/document"
)

// The ID of a file is the same for equal documents and another for any change,
// also where what changes is a part that documents share.
func TestFileIDTellsDocumentsApart(t *testing.T) {
	t.Parallel()
	painted := func(ink color.RGBA) []byte {
		var out bytes.Buffer
		if err := png.Encode(&out, logo(t, "northwind", ink)); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	seen := map[string]string{}
	for _, c := range []struct {
		name   string
		change func(*document.Visual)
	}{
		{"as it is", func(*document.Visual) {}},
		{"another number", func(v *document.Visual) { v.Transaction.Number += "1" }},
		{"another letter of the note", func(v *document.Visual) { v.Transaction.Note += "." }},
		{"another code", func(v *document.Visual) {
			v.Imprint.Codes = []country.Code{{Text: v.Imprint.Codes[0].Text + "1", Title: v.Imprint.Codes[0].Title,
				Caption: v.Imprint.Codes[0].Caption}}
		}},
		{"another colour of the logo", func(v *document.Visual) {
			v.Branding.Logo = painted(color.RGBA{0x33, 0x3D, 0x4B, 0xFF})
		}},
		{"no logo", func(v *document.Visual) { v.Branding.Logo = nil }},
		{"another font", func(v *document.Visual) { v.Branding.Font = document.Serif }},
		{"a file", func(v *document.Visual) {
			v.Files = []document.EmbeddedFile{{Name: "a.xml", MIME: "text/xml", Content: []byte("<a/>")}}
		}},
		{"another file of the same length", func(v *document.Visual) {
			v.Files = []document.EmbeddedFile{{Name: "a.xml", MIME: "text/xml", Content: []byte("<b/>")}}
		}},
		{"untagged", func(v *document.Visual) { v.Untagged = true }},
	} {
		v := spanishInvoice(t)
		v.Branding.Logo = painted(color.RGBA{0x33, 0x3D, 0x4A, 0xFF})
		c.change(&v)
		id := fmt.Sprint(parsePDF(t, render(t, v)).trailer["ID"])
		if again := fmt.Sprint(parsePDF(t, render(t, v)).trailer["ID"]); again != id {
			t.Errorf("%s: two files of one document have IDs %q and %q", c.name, id, again)
		}
		if other, had := seen[id]; had {
			t.Errorf("%s has the ID of %s", c.name, other)
		}
		seen[id] = c.name
	}
}

package document_test

import (
	"strings"
	"testing"

	"tributary/internal/document"
)

// Every template holds what the first one holds: whole files, a structure that
// can be read aloud, every name and number, nothing beside the paper.
func TestTemplatesHoldWhatTheClassicOneHolds(t *testing.T) {
	t.Parallel()
	all := append(samples(t), sample{"widest", widest(t)}, sample{"hostile", hostile(t)})
	for _, l := range locals() {
		if l.language == "AR" || l.language == "HE" {
			all = append(all, sample{l.name(), l.visual(t)})
		}
	}
	for _, template := range []document.Template{document.Modern, document.Receipt} {
		for _, s := range all {
			t.Run(string(template)+"/"+s.name, func(t *testing.T) {
				v := s.visual
				v.Branding.Template, v.Branding.Footer = template, "Open on Sundays\nfrom ten to four"
				if template == document.Receipt {
					v.Simplified, v.Transaction.Customer = true, nil
				}
				raw := render(t, v)
				f := parsePDF(t, raw)
				checkFileStructure(t, f)
				checkForbiddenKeys(t, f, len(v.Files) > 0)
				checkFonts(t, f)
				checkStructure(t, f)
				width, side := 595.28, 56.0
				if template == document.Receipt {
					width, side = 226.77, 11.0
				}
				said := ""
				for _, page := range f.pages() {
					box := page["MediaBox"].(array)
					if box[2] != width {
						t.Fatalf("the paper is %v", box)
					}
					lines := map[float64][]wideRun{}
					for _, r := range runsWithWidth(f, page, fontWidths(f, page)) {
						said += r.text + " "
						for _, q := range lines[r.y] {
							if q.x < r.x+r.width-0.5 && r.x < q.x+q.width-0.5 {
								t.Errorf("%q and %q overlap", q.text, r.text)
							}
						}
						lines[r.y] = append(lines[r.y], r)
						if r.x < side || r.x+r.width > width-side+2 || r.y < box[1].(float64) || r.y > box[3].(float64) {
							t.Errorf("%q stands at %.1f, %.1f of %v and is %.1f wide", r.text, r.x, r.y, box, r.width)
						}
					}
				}
				for _, want := range []string{"Open on Sundays", v.Transaction.Number} {
					if s.name != "hostile" && s.name != "widest" && !strings.Contains(said, want) {
						t.Errorf("%q is not on the document", want)
					}
				}
			})
		}
	}
}

// The longest name there may be does not push the tax number, or the client's
// own words, out of the foot.
func TestTheFootIsNeverCut(t *testing.T) {
	t.Parallel()
	v := longInvoice(t, 1)
	v.Supplier.LegalName = strings.Repeat("W", 450)
	v.Branding.Footer = strings.Repeat("W", 66) + "\n" + strings.Repeat("M", 66) + "\nlast words"
	f := parsePDF(t, render(t, v))
	page := f.pages()[0]
	foot := ""
	for _, r := range f.text(page) {
		if r.y < 841.89/3 && r.size == 7.5 {
			foot += r.text
		}
		if r.y < 0 {
			t.Errorf("%q stands below the page", r.text)
		}
	}
	for _, want := range []string{v.Supplier.TaxNumber, "last words"} {
		if !strings.Contains(foot, want) {
			t.Errorf("the foot lacks %q: %q", want, foot)
		}
	}
}

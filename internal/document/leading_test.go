package document_test

import (
	"regexp"
	"strconv"
	"testing"

	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// A code that leads stands at the upper left, before the parties, and its words
// are not smaller than theirs (AEAT, code QR 0.4.7, section 3).
func TestLeadingCodeStandsAtTheUpperLeft(t *testing.T) {
	t.Parallel()
	pdftotext := needs.Tool(t, "pdftotext", "poppler-utils")
	v := spanishInvoice(t)
	v.Imprint.Codes[0].Leading = true
	type box struct{ left, top, right, bottom float64 }
	words := map[string]box{}
	page := output(t, pdftotext, "-bbox", "-l", "1", written(t, v), "-")
	for _, m := range regexp.MustCompile(
		`<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]+)</word>`).FindAllStringSubmatch(page,
		-1) {
		if _, known := words[m[5]]; known {
			continue
		}
		var n [4]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat(m[i+1], 64)
		}
		words[m[5]] = box{n[0], n[1], n[2], n[3]}
	}
	title, phrase, buyer, street := words["tributario:"], words["VERI*FACTU"], words["Museo"], words["Prado,"]
	if title == (box{}) || phrase == (box{}) || buyer == (box{}) || street == (box{}) {
		t.Fatalf("missing in %s", page)
	}
	const wide, high = 595, 842 // A4 in points
	if title.right > wide/2 || title.top > high/2 || phrase.bottom > high/2 || title.right > street.left ||
		title.right > buyer.left {
		t.Errorf("title %v, phrase %v, street %v, buyer %v", title, phrase, street, buyer)
	}
	if tall := phrase.bottom - phrase.top; tall < street.bottom-street.top || tall < buyer.bottom-buyer.top-0.01 {
		t.Errorf("the phrase is %.2f high, the buyer's name %.2f, the street %.2f", tall, buyer.bottom-buyer.top,
			street.bottom-street.top)
	}
}

// A document may bear another kind's title: what replaces a ticket is an invoice.
func TestTitleOfAnotherKind(t *testing.T) {
	t.Parallel()
	pdftotext := needs.Tool(t, "pdftotext", "poppler-utils")
	v := spanishInvoice(t)
	v.Imprint.Title, v.Transaction.Kind, v.Language = "", transaction.Adjustment, "EN"
	before := output(t, pdftotext, "-layout", written(t, v), "-")
	v.Imprint.Kind = transaction.Invoice
	after := output(t, pdftotext, "-layout", written(t, v), "-")
	if before == after || !regexp.MustCompile(`(?m)^\s*Invoice\b`).MatchString(after) {
		t.Errorf("%s", after)
	}
}

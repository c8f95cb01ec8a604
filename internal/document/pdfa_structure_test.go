package document_test

import (
	"slices"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// node is an element of the structure as it is read from the file.
type node struct {
	kind  string
	dict  dict
	kids  []*node
	parts []markedPart // marked content of its own, in order
}

// markedPart is a piece of marked content: a page's object and a number on it.
type markedPart struct {
	page ref
	mcid int
}

// structure reads the structure tree by the standard (ISO 32000-1, 14.7).
func (f *file) structure(t testing.TB) *node {
	t.Helper()
	root := f.dict(f.catalog()["StructTreeRoot"])
	top, ok := root["K"].(ref)
	if root["Type"] != name("StructTreeRoot") || !ok {
		t.Fatalf("14.7.2: the root is %v", root)
	}
	return f.node(t, top, f.catalog()["StructTreeRoot"])
}

func (f *file) node(t testing.TB, at ref, parent any) *node {
	t.Helper()
	d := f.dict(at)
	if d["P"] != parent {
		t.Fatalf("14.7.2: element %d says its parent is %v, not %v", at, d["P"], parent)
	}
	n := &node{kind: string(d["S"].(name)), dict: d}
	page, _ := d["Pg"].(ref)
	kids, ok := d["K"].(array)
	if !ok {
		kids = array{d["K"]}
	}
	for _, k := range kids {
		switch k := k.(type) {
		case float64:
			n.parts = append(n.parts, markedPart{page, int(k)})
		case ref:
			n.kids = append(n.kids, f.node(t, k, at))
		case dict:
			n.parts = append(n.parts, markedPart{k["Pg"].(ref), int(k["MCID"].(float64))})
		}
	}
	return n
}

// all lists a node and those within it in reading order.
func (n *node) all() []*node {
	out := []*node{n}
	for _, k := range n.kids {
		out = append(out, k.all()...)
	}
	return out
}

// markedText returns the text of every marked content of the file, and fails
// for whatever is painted outside of one (ISO 14289-1, 7.1).
func (f *file) markedText(t testing.TB) map[markedPart]string {
	t.Helper()
	out := map[markedPart]string{}
	for _, kid := range f.dict(f.catalog()["Pages"])["Kids"].(array) {
		page := kid.(ref)
		var open []*markedPart // nil: an artifact, or within another
		at := 0
		runs := f.text(f.dict(page))
		inside := func() *markedPart {
			for _, m := range slices.Backward(open) {
				if m != nil {
					return m
				}
			}
			return nil
		}
		fresh := false
		for _, o := range f.operators(f.dict(page)) {
			switch o.name {
			case "BMC":
				if o.args[0] != name("Artifact") || len(open) > 0 {
					t.Errorf("7.1: %v is no artifact of its own", o.args)
				}
				open = append(open, nil)
			case "BDC":
				d := o.args[1].(dict)
				if id, ok := d["MCID"].(float64); ok {
					if len(open) > 0 {
						t.Errorf("7.1: marked content %v stands within another", id)
					}
					open = append(open, &markedPart{page, int(id)})
					out[markedPart{page, int(id)}] += ""
				} else {
					open = append(open, nil)
				}
			case "EMC":
				open = open[:len(open)-1]
			case "Td":
				fresh = true
			case "Tj", "TJ", "Do", "f":
				if len(open) == 0 {
					t.Fatalf("7.1: %s paints outside of marked content", o.name)
				}
				if m := inside(); m != nil && fresh && (o.name == "Tj" || o.name == "TJ") {
					out[*m] += runs[at].text
				}
				if fresh && (o.name == "Tj" || o.name == "TJ") {
					at, fresh = at+1, false
				}
			}
		}
		if len(open) != 0 {
			t.Error("a marked content does not end")
		}
	}
	return out
}

// spoken is the document as a reader that speaks says it.
func spoken(t testing.TB, f *file) string {
	t.Helper()
	texts := f.markedText(t)
	var out strings.Builder
	for _, n := range f.structure(t).all() {
		for _, p := range n.parts {
			out.WriteString(texts[p])
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// checkStructure asserts the clauses of ISO 14289-1 (PDF/UA-1) that a file can
// be asked for without a person.
func checkStructure(t *testing.T, f *file) {
	t.Helper()
	catalog := f.catalog()
	if f.dict(catalog["MarkInfo"])["Marked"] != keyword("true") || catalog["Lang"] == nil ||
		f.dict(catalog["ViewerPreferences"])["DisplayDocTitle"] != keyword("true") {
		t.Error("6.2, 7.1, 7.2: the file is not marked, or has no language or title")
	}
	if !strings.Contains(string(f.data(catalog["Metadata"])), "<pdfuaid:part>1</pdfuaid:part>") {
		t.Error("5: the file does not identify itself")
	}
	all := f.structure(t).all()
	checkParents(t, f, all)
	heading := 0
	for _, n := range all {
		switch n.kind {
		case "H1", "H2":
			level := int(n.kind[1] - '0')
			if level > heading+1 || level == 1 && heading > 0 {
				t.Errorf("7.4: heading %d follows heading %d", level, heading)
			}
			heading = level
		case "Table":
			checkTable(t, n)
		case "L":
			for _, item := range n.kids {
				if item.kind != "LI" {
					t.Errorf("7.6: a list has a %s", item.kind)
				}
			}
		case "Figure":
			a, _ := n.dict["A"].(dict)
			if alt, _ := n.dict["Alt"].(string); alt == "" || a["BBox"] == nil {
				t.Errorf("7.3: a figure has no words or no place: %v", n.dict)
			}
		case "Document", "P", "TR", "TH", "TD", "LI", "Lbl", "LBody", "Caption":
		default:
			t.Errorf("7.1: %s is no standard type", n.kind)
		}
	}
	if heading == 0 {
		t.Error("7.4: there is no heading")
	}
}

// checkParents compares the tree with what pages mark, both ways.
func checkParents(t *testing.T, f *file, all []*node) {
	t.Helper()
	owners := map[markedPart]*node{}
	for _, n := range all {
		for _, p := range n.parts {
			if owners[p] != nil {
				t.Errorf("marked content %v belongs to two elements", p)
			}
			owners[p] = n
		}
	}
	nums := f.dict(f.dict(f.catalog()["StructTreeRoot"])["ParentTree"])["Nums"].(array)
	for _, kid := range f.dict(f.catalog()["Pages"])["Kids"].(array) {
		page := f.dict(kid)
		key := int(page["StructParents"].(float64))
		if nums[2*key] != float64(key) || page["Tabs"] != name("S") {
			t.Fatalf("14.7.4.4: page %d is not where the parent tree has it", key)
		}
		for mcid, parent := range nums[2*key+1].(array) {
			if n := owners[markedPart{kid.(ref), mcid}]; n == nil || f.dict(parent)["S"] != name(n.kind) {
				t.Errorf("14.7.4.4: marked content %d of page %d is not that of its parent", mcid, key)
			}
		}
	}
	for at := range f.markedText(t) {
		if owners[at] == nil {
			t.Errorf("marked content %v belongs to nobody", at)
		}
	}
}

// checkTable wants rows of equal cells and headings with a scope (7.5).
func checkTable(t *testing.T, table *node) {
	t.Helper()
	cells, heads := 0, 0
	for i, row := range table.kids {
		if row.kind != "TR" {
			t.Errorf("7.5: a table has a %s", row.kind)
			continue
		}
		if i > 0 && len(row.kids) != cells {
			t.Errorf("7.5: row %d has %d cells, the first %d", i, len(row.kids), cells)
		}
		cells = len(row.kids)
		for _, cell := range row.kids {
			a, _ := cell.dict["A"].(dict)
			switch {
			case cell.kind == "TH" && (a["Scope"] == name("Column") || a["Scope"] == name("Row")):
				heads++
			case cell.kind != "TD":
				t.Errorf("7.5: a row has a %s with %v", cell.kind, a)
			}
		}
	}
	if heads == 0 {
		t.Error("7.5: a table has no heading")
	}
}

// A reader that speaks says the important things first, the table row by row,
// and nothing of what only decorates.
func TestADocumentIsReadInOrder(t *testing.T) {
	t.Parallel()
	f := parsePDF(t, render(t, longInvoice(t, 60)))
	text := spoken(t, f)
	if len(f.pages()) < 2 {
		t.Fatal("the sample has one page")
	}
	last := -1
	for _, want := range []string{"Invoice INV-10077", "14 Nov 2025", "Amount due", "Supplier", "Northwind Supplies plc",
		"Customer", "No.\nDescription\nQuantity\nUnit price incl. tax\n",
		"1\nWaxed canvas apron\n1 pcs\n1.99\n20%\n1.66\n1.99\n2\n", "60\n", "Net total", "Tax summary"} {
		at := strings.Index(text[last+1:], want)
		if at < 0 {
			t.Fatalf("%q is not said after what comes before it:\n%s", want, text)
		}
		last += 1 + at
	}
	for _, silent := range []string{"Page 1", "Carried forward", "Brought forward"} {
		if strings.Contains(text, silent) {
			t.Errorf("%q is read out", silent)
		}
	}
	if n := strings.Count(text, "\nDescription\n"); n != 1 {
		t.Errorf("the head of the table is read %d times", n)
	}
}

// Poppler is another reader of the structure.
func TestPDFInfoReadsTheStructure(t *testing.T) {
	t.Parallel()
	pdfinfo := needs.Tool(t, "pdfinfo", "poppler-utils")
	for _, s := range samples(t) {
		if s.name == "en-invoice-many-pages" && !needs.IsLong() {
			s.visual = longInvoice(t, 30) // two pages: its time grows with the square of what is read
		}
		path := written(t, s.visual)
		if out := output(t, pdfinfo, path); !strings.Contains(out, "Tagged:          yes") {
			t.Errorf("%s is not tagged:\n%s", s.name, out)
		}
		out := output(t, pdfinfo, "-struct-text", path)
		if !strings.HasPrefix(out, "Document") || !strings.Contains(out, "H1 (block)") ||
			!strings.Contains(out, "Table (block)") || !strings.Contains(out, s.visual.Transaction.Number) {
			t.Errorf("%s: the structure is\n%.2000s", s.name, out)
		}
	}
}

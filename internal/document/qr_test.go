package document_test

import (
	"strings"
	"testing"

	"rsc.io/qr/coding"

	"tributary/internal/country"
	"tributary/internal/document"
)

// drawnModules reads the code off the page.
func drawnModules(t *testing.T, v document.Visual) [][]bool {
	t.Helper()
	f := parsePDF(t, render(t, v))
	var cells [][3]int
	size, inside := 0, false
	for _, o := range f.operators(f.pages()[0]) {
		switch o.name {
		case "cm":
			inside = true
		case "Q":
			inside = false
		case "re":
			if inside {
				x, y, w := int(o.args[0].(float64)), int(o.args[1].(float64)), int(o.args[2].(float64))
				cells = append(cells, [3]int{x, y, w})
				size = max(size, x+w, y+1)
			}
		}
	}
	modules := make([][]bool, size)
	for i := range modules {
		modules[i] = make([]bool, size)
	}
	for _, c := range cells {
		for x := c[0]; x < c[0]+c[2]; x++ {
			modules[size-1-c[1]][x] = true
		}
	}
	return modules
}

// slowPenalty is ISO/IEC 18004, 7.8.3.1, word for word and module by module.
func slowPenalty(m [][]bool) int {
	n, total, dark := len(m), 0, 0
	line := func(at func(int) bool) {
		for i := 0; i < n; {
			j := i
			for j < n && at(j) == at(i) {
				j++
			}
			if j-i >= 5 {
				total += 3 + (j - i - 5)
			}
			i = j
		}
		for _, pattern := range []string{"10111010000", "00001011101"} {
			for i := 0; i+11 <= n; i++ {
				match := true
				for k := range 11 {
					match = match && at(i+k) == (pattern[k] == '1')
				}
				if match {
					total += 40
				}
			}
		}
	}
	for i := range n {
		line(func(j int) bool { return m[i][j] })
		line(func(j int) bool { return m[j][i] })
		for j := range n {
			if m[i][j] {
				dark++
			}
			if i+1 < n && j+1 < n && m[i][j] == m[i][j+1] && m[i][j] == m[i+1][j] && m[i][j] == m[i+1][j+1] {
				total += 3
			}
		}
	}
	off := dark*100/(n*n) - 50
	return total + max(off, -off)/5*10
}

func TestQRCodeHasTheMaskOfTheLowestPenalty(t *testing.T) {
	t.Parallel()
	chosen := map[coding.Mask]bool{}
	for _, text := range []string{
		"https://www2.agenciatributaria.gob.es/wlpl/TIKE-CONT/ValidarQR?nif=B12345674&numserie=F-2025-00042&fecha=14-11-2025&importe=4339.50",
		"short", "0000000000000000000000000000", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("x", 40),
		strings.Repeat("long and longer ", 70), "another one, to vary",
	} {
		v := spanishReceipt(t)
		v.Imprint.Codes[0].Text = text
		drawn := drawnModules(t, v)
		var data coding.Encoding = coding.String(text)
		if coding.Num(text).Check() == nil {
			data = coding.Num(text)
		} else if coding.Alpha(text).Check() == nil {
			data = coding.Alpha(text)
		}
		best, lowest := coding.Mask(-1), 1<<30
		var want [][]bool
		for mask := range coding.Mask(8) {
			plan, err := coding.NewPlan(coding.Version((len(drawn)-17)/4), coding.M, mask)
			if err != nil {
				t.Fatal(err)
			}
			code, err := plan.Encode(data)
			if err != nil {
				t.Fatal(err)
			}
			modules := make([][]bool, code.Size)
			for y := range modules {
				for x := range code.Size {
					modules[y] = append(modules[y], code.Black(x, y))
				}
			}
			if p := slowPenalty(modules); p < lowest {
				best, lowest, want = mask, p, modules
			}
		}
		chosen[best] = true
		for y := range drawn {
			for x := range drawn {
				if drawn[y][x] != want[y][x] {
					t.Fatalf("%.20s…: module %d,%d is not that of mask %d", text, x, y, best)
				}
			}
		}
	}
	if len(chosen) < 2 {
		t.Errorf("the samples are all masked alike: %v", chosen)
	}
}

// Two codes stand side by side; a third is not drawn.
func TestTwoCodesAreDrawnAndNoMore(t *testing.T) {
	t.Parallel()
	width := func(codes int) int {
		v := spanishInvoice(t)
		v.Imprint.Codes = nil
		for i := range codes {
			v.Imprint.Codes = append(v.Imprint.Codes,
				country.Code{Text: "https://example.test/" + strings.Repeat("x", i), Caption: "code"})
		}
		return len(render(t, v))
	}
	none, one, two, three := width(0), width(1), width(2), width(3)
	if !(none < one && one < two) || two != three {
		t.Errorf("documents with 0 to 3 codes have %d, %d, %d and %d bytes", none, one, two, three)
	}
}

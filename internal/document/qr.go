package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"tributary/internal/document/typeset"

	"rsc.io/qr/coding"
)

// The code on paper: Spain wants it between 30 and 40 mm (Orden HAC/1177/2024,
// article 21), Mexico at least 27.5 mm (Anexo 20); level M is what Spain and
// Poland name.
const (
	qrSide    = 31 * millimetre // the modules alone; four modules of white surround them
	qrTextMax = 2331            // bytes of the largest code at level M
)

// qrMaker encodes texts. The package qr always masks a code with pattern 0;
// ISO/IEC 18004 wants the pattern of eight that leaves the fewest shapes a
// scanner could stumble over, so the choice is made here. What depends on the
// size alone is kept: there are forty sizes.
type qrMaker struct {
	mu    sync.Mutex
	plans [coding.MaxVersion + 1]*qrPlan
}

// qrPlan is a size's layout with pattern 0, and what each pattern changes in it.
type qrPlan struct {
	base    *coding.Plan
	changes [8]*qrGrid // to be combined with a code of base by exclusive or
}

func (m *qrMaker) plan(v coding.Version) (*qrPlan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans[v] != nil {
		return m.plans[v], nil
	}
	made := &qrPlan{}
	for mask := range made.changes {
		p, err := coding.NewPlan(v, coding.M, coding.Mask(mask))
		if err != nil {
			return nil, err
		}
		if mask == 0 {
			made.base = p
		}
		made.changes[mask] = newQRGrid(len(p.Pixel), func(x, y int) bool {
			return (p.Pixel[y][x]^made.base.Pixel[y][x])&coding.Black != 0
		})
	}
	m.plans[v] = made
	return made, nil
}

// encode returns the modules of a text.
func (m *qrMaker) encode(text string) (*qrGrid, error) {
	data := []coding.Encoding{coding.String(text)}
	switch {
	case coding.Num(text).Check() == nil:
		data[0] = coding.Num(text)
	case coding.Alpha(text).Check() == nil:
		data[0] = coding.Alpha(text)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		data = []coding.Encoding{utf8Mark{}, data[0]}
	}
	for v := coding.Version(coding.MinVersion); v <= coding.MaxVersion; v++ {
		bits := 0
		for _, part := range data {
			bits += part.Bits(v)
		}
		if bits > v.DataBytes(coding.M)*8 {
			continue
		}
		plan, err := m.plan(v)
		if err != nil {
			return nil, fmt.Errorf("planning a QR code: %w", err)
		}
		code, err := plan.base.Encode(data...)
		if err != nil {
			return nil, fmt.Errorf("encoding a QR code: %w", err)
		}
		return plan.masked(code), nil
	}
	return nil, invalid("a QR code holds at most %d bytes, not %d", qrTextMax, len(text))
}

// utf8Mark is the header that says the bytes which follow are UTF-8 (ISO/IEC
// 18004, 7.4.2: extended channel interpretation 26). Without it scanners guess,
// and take a Spanish name for Japanese.
type utf8Mark struct{}

func (utf8Mark) String() string                          { return "ECI 26" }
func (utf8Mark) Check() error                            { return nil }
func (utf8Mark) Bits(coding.Version) int                 { return 12 }
func (utf8Mark) Encode(b *coding.Bits, _ coding.Version) { b.Write(0b0111, 4); b.Write(26, 8) }

// masked returns the code with the pattern of the lowest penalty, the first of equals.
func (p *qrPlan) masked(code *coding.Code) *qrGrid {
	plain := newQRGrid(code.Size, code.Black)
	var best, tried qrGrid
	lowest := math.MaxInt
	for _, change := range p.changes {
		tried.combine(plain, change)
		if penalty := tried.penalty(); penalty < lowest {
			best, lowest = tried, penalty
		}
	}
	return &best
}

// drawCode draws the modules as one path in whole units of a module: dark runs
// of a row side by side, so that no reader shows seams between them.
func (c *composition) drawCode(code *qrGrid, x, y, side length) {
	c.beginMark()
	sh := c.sheet
	sh.setFill(rgb{}) // black, whatever the brand: scanners want contrast
	module := strconv.AppendFloat(nil, float64(side)/float64(point)/float64(code.size), 'f', 5, 64)
	sh.out = append(sh.out, "q "...)
	sh.out = append(sh.out, module...)
	sh.out = append(sh.out, " 0 0 "...)
	sh.out = append(sh.out, module...)
	sh.out = append(sh.out, ' ')
	sh.out = c.across(x, side).append(sh.out)
	sh.out = append(sh.out, ' ')
	sh.out = (c.paper.height - y - side).append(sh.out)
	sh.out = append(sh.out, " cm\n"...)
	for row := range code.size {
		for col := 0; col < code.size; col++ {
			if !code.dark(col, row) {
				continue
			}
			first := col
			for col+1 < code.size && code.dark(col+1, row) {
				col++
			}
			sh.out = strconv.AppendInt(sh.out, int64(first), 10)
			sh.out = append(sh.out, ' ')
			sh.out = strconv.AppendInt(sh.out, int64(code.size-1-row), 10)
			sh.out = append(sh.out, ' ')
			sh.out = strconv.AppendInt(sh.out, int64(col-first+1), 10)
			sh.out = append(sh.out, " 1 re\n"...)
		}
	}
	sh.out = append(sh.out, "f Q\n"...)
}

// qrBlock is the code with its words, measured before it is drawn.
type qrBlock struct {
	code           *qrGrid
	title, caption block
	width, height  length
	figure         *element
	words          string // for those who do not see it
}

func (c *composition) newQRBlock(in *QR) (*qrBlock, error) {
	code, err := c.codes.encode(in.Text)
	if err != nil {
		return nil, err
	}
	// The quiet zone of four modules is kept free of text above and below;
	// at the sides the page is white anyway.
	b := &qrBlock{code: code, width: qrSide}
	p := c.smallPen()
	if in.Leading {
		p = pen{typeset.Regular, c.namePen().size, c.ink}
	}
	c.within("Figure", func() {
		b.figure = c.tag
		c.within("Caption", func() {
			b.title.add(c, p, typeset.Clean(in.Title), b.width)
			b.caption.add(c, p, typeset.Clean(in.Caption), b.width)
		})
	})
	b.words = joined(" ", c.words.qr, in.Title, in.Caption, in.Text)
	const captionLinesMax = 12 // a caption is a line or two; a longer one is not one
	if len(b.caption) > captionLinesMax {
		b.caption = b.caption[:captionLinesMax]
	}
	if len(b.title) > captionLinesMax {
		b.title = b.title[:captionLinesMax]
	}
	b.height = b.title.height() + 2*b.quiet() + qrSide + b.caption.height()
	return b, nil
}

func (b *qrBlock) quiet() length {
	return 4 * qrSide / length(b.code.size)
}

func (b *qrBlock) draw(c *composition, x, y length) {
	tag := c.tag
	defer func() { c.tag = tag }()
	words := func(lines block) {
		for i := range lines {
			l := &lines[i]
			c.tag = l.tag
			c.textIn(l.pen, &column{x: x, width: b.width, align: centred}, y+l.base(), l.text)
			y += l.lead
		}
	}
	words(b.title)
	if len(b.title) > 0 {
		y += b.quiet()
	}
	c.tag = b.figure
	c.drawCode(b.code, x, y, qrSide)
	b.figure.shows(c, b.words, rectangle{c.across(x, qrSide), y, qrSide, qrSide})
	y += qrSide + b.quiet()
	words(b.caption)
}

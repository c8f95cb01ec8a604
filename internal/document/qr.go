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

// qrPlan is a size's layout with pattern 0 and no data in it, where each bit of
// the data goes, and what each pattern changes.
type qrPlan struct {
	version coding.Version
	empty   *qrGrid
	modules [][2]uint8 // column and row by number of the bit
	changes [8]*qrGrid // to be combined with a code of pattern 0 by exclusive or
}

func (m *qrMaker) plan(v coding.Version) (*qrPlan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans[v] != nil {
		return m.plans[v], nil
	}
	made := &qrPlan{version: v}
	var base *coding.Plan
	for mask := range made.changes {
		p, err := coding.NewPlan(v, coding.M, coding.Mask(mask))
		if err != nil {
			return nil, err
		}
		if mask == 0 {
			base = p
		}
		made.changes[mask] = newQRGrid(len(p.Pixel), func(x, y int) bool {
			return (p.Pixel[y][x]^base.Pixel[y][x])&coding.Black != 0
		})
	}
	made.empty = newQRGrid(len(base.Pixel), func(x, y int) bool { return base.Pixel[y][x]&coding.Black != 0 })
	made.modules = make([][2]uint8, 8*(base.DataBytes+base.CheckBytes))
	for y, row := range base.Pixel {
		for x, pixel := range row {
			if role := pixel.Role(); role == coding.Data || role == coding.Check {
				made.modules[pixel.Offset()] = [2]uint8{uint8(x), uint8(y)}
			}
		}
	}
	m.plans[v] = made
	return made, nil
}

// encode returns the modules of a text.
func (m *qrMaker) encode(text string) (*qrGrid, error) {
	data := encodings(text)
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
		return plan.masked(plan.filled(data)), nil
	}
	return nil, invalid("a QR code holds at most %d bytes, not %d", qrTextMax, len(text))
}

// encodings chooses the shortest way to write a text, byte for byte where it
// is more than figures or capitals.
func encodings(text string) []coding.Encoding {
	const figures = "0123456789"
	switch {
	case consistsOf(text, figures):
		return []coding.Encoding{coding.Num(text)}
	case consistsOf(text, figures+"ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"): // ISO/IEC 18004, 7.4.4
		return []coding.Encoding{coding.Alpha(text)}
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }):
		return []coding.Encoding{utf8Mark{}, coding.String(text)}
	}
	return []coding.Encoding{coding.String(text)}
}

func consistsOf(text, set string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(set, r) })
}

// filled returns the code of data that fits, with pattern 0.
func (p *qrPlan) filled(data []coding.Encoding) *qrGrid {
	var bits coding.Bits
	for _, part := range data {
		part.Encode(&bits, p.version)
	}
	bits.AddCheckBytes(p.version, coding.M)
	code := p.empty.clone()
	for i, b := range bits.Bytes() {
		for at := 8 * i; b != 0; at, b = at+1, b<<1 {
			if b&0x80 != 0 {
				code.flip(int(p.modules[at][0]), int(p.modules[at][1]))
			}
		}
	}
	return code
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
func (p *qrPlan) masked(plain *qrGrid) *qrGrid {
	tried := plain.clone()
	best, lowest := p.changes[0], math.MaxInt
	for _, change := range p.changes {
		tried.combine(plain, change)
		if penalty := tried.penalty(); penalty < lowest {
			best, lowest = change, penalty
		}
	}
	tried.combine(plain, best)
	return tried
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
	var height [8]byte
	for row := range code.size {
		line := &code.rows[row]
		above := append(strconv.AppendInt(append(height[:0], ' '), int64(code.size-1-row), 10), ' ')
		for from := line.seek(0, dark); from < code.size; {
			to := line.seek(from, light)
			sh.out = strconv.AppendInt(sh.out, int64(from), 10)
			sh.out = append(sh.out, above...)
			sh.out = strconv.AppendInt(sh.out, int64(to-from), 10)
			sh.out = append(sh.out, " 1 re\n"...)
			from = line.seek(to, dark)
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

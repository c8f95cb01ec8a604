package document

import (
	"strconv"

	"tributary/internal/country"
	"tributary/internal/document/qr"
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
)

// The code on paper: Spain wants it between 30 and 40 mm (Orden HAC/1177/2024,
// article 21), Mexico at least 27.5 mm (Anexo 20); level M is what Spain and
// Poland name.
const qrSide = 31 * millimetre // the modules alone; four modules of white surround them

// drawCode draws the modules as one path in whole units of a module: dark runs
// of a row side by side, so that no reader shows seams between them.
func (c *composition) drawCode(code *qr.Grid, x, y, side length) {
	c.on.beginMark()
	sh := c.on.sheet
	sh.setFill(rgb{}) // black, whatever the brand: scanners want contrast
	module := strconv.AppendFloat(nil, float64(side)/float64(point)/float64(code.Size()), 'f', 5, 64)
	sh.out = append(sh.out, "q "...)
	sh.out = append(sh.out, module...)
	sh.out = append(sh.out, " 0 0 "...)
	sh.out = append(sh.out, module...)
	sh.out = append(sh.out, ' ')
	sh.out = c.on.across(x, side).append(sh.out)
	sh.out = append(sh.out, ' ')
	sh.out = (c.on.paper.height - y - side).append(sh.out)
	sh.out = append(sh.out, " cm\n"...)
	var height [8]byte
	for row := range code.Size() {
		above := append(strconv.AppendInt(append(height[:0], ' '), int64(code.Size()-1-row), 10), ' ')
		for from, to := range code.Runs(row) {
			sh.out = strconv.AppendInt(sh.out, int64(from), 10)
			sh.out = append(sh.out, above...)
			sh.out = strconv.AppendInt(sh.out, int64(to-from), 10)
			sh.out = append(sh.out, " 1 re\n"...)
		}
	}
	sh.out = append(sh.out, "f Q\n"...)
}

// qrBlock is the code with its words, measured before it is drawn.
type qrBlock struct {
	code           *qr.Grid
	title, caption block
	width, height  length
	figure         *element
	words          string // for those who do not see it
}

func (c *composition) newQRBlock(in *country.Code) (*qrBlock, error) {
	code, err := c.codes.Encode(in.Text)
	if err != nil {
		return nil, err
	}
	// The quiet zone of four modules is kept free of text above and below;
	// at the sides the page is white anyway.
	b := &qrBlock{code: code, width: qrSide}
	p := c.color.smallPen()
	if in.Leading {
		p = pen{typeset.Regular, c.color.namePen().size, c.color.ink}
	}
	c.on.within("Figure", func() {
		b.figure = c.on.tag
		c.on.within("Caption", func() {
			b.title.add(&c.on, p, typeset.Clean(in.Title), b.width)
			b.caption.add(&c.on, p, typeset.Clean(in.Caption), b.width)
		})
	})
	b.words = words.Join(" ", c.doc.words.QR, in.Title, in.Caption, in.Text)
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
	return 4 * qrSide / length(b.code.Size())
}

func (b *qrBlock) draw(c *composition, x, y length) {
	tag := c.on.tag
	defer func() { c.on.tag = tag }()
	write := func(lines block) {
		for i := range lines {
			l := &lines[i]
			c.on.tag = l.tag
			c.on.textIn(l.pen, &column{x: x, width: b.width, align: centred}, y+l.base(), l.text)
			y += l.lead
		}
	}
	write(b.title)
	if len(b.title) > 0 {
		y += b.quiet()
	}
	c.on.tag = b.figure
	c.drawCode(b.code, x, y, qrSide)
	b.figure.shows(&c.on, b.words, rectangle{c.on.across(x, qrSide), y, qrSide, qrSide})
	y += qrSide + b.quiet()
	write(b.caption)
}

package bench

import (
	"bytes"
	"fmt"
	"io"
)

const (
	reportBytesMax = 1 << 20
	lineBytesMax   = 4 << 10
	lastLinesMax   = 8 // of what a binary said before it failed
)

// bounded keeps what a binary prints. One that prints without end loses its
// reader, and ends of that.
type bounded struct {
	text []byte
	over bool
}

func (b *bounded) Write(text []byte) (int, error) {
	if len(b.text)+len(text) > reportBytesMax {
		b.over = true
		return 0, io.ErrShortWrite
	}
	b.text = append(b.text, text...)
	return len(text), nil
}

// progress passes on what a run says, each line with the round in front. A run
// ends with an empty line and its own table, which would bury the progress of
// the others: that is kept for an error only.
type progress struct {
	to    io.Writer
	label string
	line  []byte
	quiet bool
	last  []string
}

func (p *progress) Write(text []byte) (int, error) {
	for _, c := range text {
		switch {
		case c == '\n' || c == '\r':
			p.tell(c)
		case len(p.line) < lineBytesMax:
			p.line = append(p.line, c)
		}
	}
	return len(text), nil
}

// tell passes on the line so far. A line that ends in a carriage return is overwritten by the next, here as well.
func (p *progress) tell(end byte) {
	line := bytes.TrimRight(p.line, " ")
	p.line = p.line[:0]
	if len(line) == 0 {
		p.quiet = p.quiet || end == '\n'
		return
	}
	p.last = append(p.last, string(line))
	p.last = p.last[max(0, len(p.last)-lastLinesMax):]
	if !p.quiet {
		fmt.Fprintf(p.to, "%s: %s%c", p.label, line, end)
	}
}

// end tells a last line without an end.
func (p *progress) end() {
	if len(p.line) > 0 {
		p.tell('\n')
	}
}

// Package qr makes the codes of documents, at level M.
//
// It owns which modules are dark. It does not own what a code says, nor how large
// it is printed.
package qr

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode"

	"rsc.io/qr/coding"

	"tributary/internal/fault"
)

// textMax is how many bytes the largest code holds at level M.
const textMax = 2331

// Maker encodes texts. The package rsc.io/qr always masks a code with pattern 0;
// ISO/IEC 18004 wants the pattern of eight that leaves the fewest shapes a
// scanner could stumble over, so the choice is made here. What depends on the
// size alone is kept: there are forty sizes. The zero value is ready, and safe
// for concurrent use.
type Maker struct {
	mu    sync.Mutex
	plans [coding.MaxVersion + 1]*plan
}

// plan is a size's layout with pattern 0 and no data in it, where each bit of
// the data goes, and what each pattern changes.
type plan struct {
	version coding.Version
	empty   *Grid
	modules [][2]uint8 // column and row by number of the bit
	changes [8]*Grid   // to be combined with a code of pattern 0 by exclusive or
}

func (m *Maker) planOf(v coding.Version) (*plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plans[v] != nil {
		return m.plans[v], nil
	}
	made := &plan{version: v}
	var base *coding.Plan
	for mask := range made.changes {
		p, err := coding.NewPlan(v, coding.M, coding.Mask(mask))
		if err != nil {
			return nil, err
		}
		if mask == 0 {
			base = p
		}
		made.changes[mask] = newGrid(len(p.Pixel), func(x, y int) bool {
			return (p.Pixel[y][x]^base.Pixel[y][x])&coding.Black != 0
		})
	}
	made.empty = newGrid(len(base.Pixel), func(x, y int) bool { return base.Pixel[y][x]&coding.Black != 0 })
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

// Encode returns the modules of a text.
func (m *Maker) Encode(text string) (*Grid, error) {
	data := encodings(text)
	for v := coding.Version(coding.MinVersion); v <= coding.MaxVersion; v++ {
		bits := 0
		for _, part := range data {
			bits += part.Bits(v)
		}
		if bits > v.DataBytes(coding.M)*8 {
			continue
		}
		p, err := m.planOf(v)
		if err != nil {
			return nil, fmt.Errorf("planning a QR code: %w", err)
		}
		return p.masked(p.filled(data)), nil
	}
	return nil, fault.New(fault.Invalid, "a QR code holds at most %d bytes, not %d", textMax, len(text))
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
func (p *plan) filled(data []coding.Encoding) *Grid {
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
func (p *plan) masked(plain *Grid) *Grid {
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

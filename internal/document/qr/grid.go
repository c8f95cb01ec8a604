package qr

import (
	"iter"
	"math/bits"
)

// line is a row or a column of modules, dark ones as ones, the first in the
// lowest bit. The largest code has 177 on a side.
type line [3]uint64

// Grid is a code as rows and as columns, so that both are scored a word at a time.
type Grid struct {
	size          int
	rows, columns []line
}

func blankGrid(size int) *Grid {
	lines := make([]line, 2*size)
	return &Grid{size: size, rows: lines[:size:size], columns: lines[size:]}
}

func newGrid(size int, dark func(x, y int) bool) *Grid {
	g := blankGrid(size)
	for y := range size {
		for x := range size {
			if dark(x, y) {
				g.flip(x, y)
			}
		}
	}
	return g
}

func (g *Grid) clone() *Grid {
	c := blankGrid(g.size)
	copy(c.rows, g.rows)
	copy(c.columns, g.columns)
	return c
}

// flip makes a light module dark and a dark one light.
func (g *Grid) flip(x, y int) {
	g.rows[y][x/64] ^= 1 << (x % 64)
	g.columns[x][y/64] ^= 1 << (y % 64)
}

// Size is the number of modules on a side.
func (g *Grid) Size() int { return g.size }

// Runs yields the runs of dark modules in a row, from the first to behind the last of each.
func (g *Grid) Runs(row int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		l := &g.rows[row]
		for from := l.seek(0, dark); from < g.size; {
			to := l.seek(from, light)
			if !yield(from, to) {
				return
			}
			from = l.seek(to, dark)
		}
	}
}

// What to seek in a line: all bits of it inverted give the light ones.
const (
	dark  uint64 = 0
	light        = ^dark
)

// seek returns the first module at or after a place that is dark or light; what
// lies behind the last one is light.
func (l *line) seek(from int, invert uint64) int {
	for at := from; at < 64*len(l); at = (at/64 + 1) * 64 {
		if rest := (l[at/64] ^ invert) >> (at % 64); rest != 0 {
			return at + bits.TrailingZeros64(rest)
		}
	}
	return 64 * len(l)
}

// combine sets g to the exclusive or of two grids of its size.
func (g *Grid) combine(a, b *Grid) {
	for i := range g.rows {
		for w := range g.rows[i] {
			g.rows[i][w] = a.rows[i][w] ^ b.rows[i][w]
			g.columns[i][w] = a.columns[i][w] ^ b.columns[i][w]
		}
	}
}

// penalty scores a code by ISO/IEC 18004, 7.8.3.1.
func (g *Grid) penalty() int {
	all, pairs := ones(g.size), ones(g.size-1)
	total, dark := 0, 0
	if g.size <= 64 { // the codes of nearly all documents: one word does
		for i := range g.size {
			row, column := g.rows[i][0], g.columns[i][0]
			total += wordPenalty(row, all[0], pairs[0]) + wordPenalty(column, all[0], pairs[0])
			dark += bits.OnesCount64(row)
			if i+1 < g.size {
				next := g.rows[i+1][0]
				total += 3 * bits.OnesCount64(^(row^row>>1)&^(next^next>>1)&^(row^next)&pairs[0])
			}
		}
		return total + imbalance(dark, g.size)
	}
	for i := range g.size {
		total += g.rows[i].penalty(all, pairs) + g.columns[i].penalty(all, pairs)
		dark += g.rows[i].count()
		if i+1 < g.size { // blocks of four alike
			total += 3 * g.rows[i].alike(pairs).and(g.rows[i+1].alike(pairs)).and(g.rows[i].xor(g.rows[i+1]).not(pairs)).count()
		}
	}
	return total + imbalance(dark, g.size)
}

// imbalance scores how far a code is from half dark.
func imbalance(dark, size int) int {
	off := dark*100/(size*size) - 50
	return max(off, -off) / 5 * 10
}

// wordPenalty is line.penalty for a line of one word.
func wordPenalty(l, all, pairs uint64) int {
	alike := ^(l ^ l>>1) & pairs
	three := alike & (alike >> 1)
	five := three & (three >> 2)
	light := ^l & all
	finder := l & (light >> 1) & (l >> 2) & (l >> 3) & (l >> 4) & (light >> 5) & (l >> 6)
	two := light & (light >> 1)
	four := two & (two >> 2)
	return bits.OnesCount64(five) + 2*bits.OnesCount64(five&^(five<<1)) +
		40*(bits.OnesCount64(finder&(four>>7))+bits.OnesCount64(four&(finder>>4)))
}

// penalty scores a line: three for a run of five alike and one for each module
// more, forty for what looks like a finder with light beside it.
func (l line) penalty(all, pairs line) int {
	alike := l.alike(pairs)
	three := alike.and(alike.shift(1))
	five := three.and(three.shift(2)) // a run of n has n-4 of these
	score := five.count() + 2*five.and(five.up().not(all)).count()

	light := l.not(all)
	finder := l.and(light.shift(1)).and(l.shift(2)).and(l.shift(3)).and(l.shift(4)).and(light.shift(5)).and(l.shift(6))
	two := light.and(light.shift(1))
	four := two.and(two.shift(2))
	return score + 40*(finder.and(four.shift(7)).count()+four.and(finder.shift(4)).count())
}

// alike marks the modules that are as dark as the next one.
func (l line) alike(pairs line) line { return l.xor(l.shift(1)).not(pairs) }

func (l line) and(m line) line { return line{l[0] & m[0], l[1] & m[1], l[2] & m[2]} }
func (l line) xor(m line) line { return line{l[0] ^ m[0], l[1] ^ m[1], l[2] ^ m[2]} }

// not inverts the bits of a mask and clears the others.
func (l line) not(mask line) line {
	return line{^l[0] & mask[0], ^l[1] & mask[1], ^l[2] & mask[2]}
}

// shift moves every module n places towards the first, 0 < n < 64.
func (l line) shift(n int) line {
	return line{l[0]>>n | l[1]<<(64-n), l[1]>>n | l[2]<<(64-n), l[2] >> n}
}

// up moves every module one place away from the first.
func (l line) up() line { return line{l[0] << 1, l[1]<<1 | l[0]>>63, l[2]<<1 | l[1]>>63} }

func (l line) count() int {
	return bits.OnesCount64(l[0]) + bits.OnesCount64(l[1]) + bits.OnesCount64(l[2])
}

// ones has the first n modules dark.
func ones(n int) line {
	var l line
	for i := range n {
		l[i/64] |= 1 << (i % 64)
	}
	return l
}

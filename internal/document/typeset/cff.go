package typeset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The Compact Font Format (Adobe Technical Note 5176), as far as cutting a
// subset needs it: Chinese, Japanese and Korean fonts come in it.

// Operators of dictionaries; those of two bytes are 12<<8 plus the second.
const (
	dictFontBBox    = 5
	dictCharset     = 15
	dictCharStrings = 17
	dictPrivate     = 18
	dictSubrs       = 19
	dictFontMatrix  = 12<<8 | 7
	dictROS         = 12<<8 | 30
	dictCIDCount    = 12<<8 | 34
	dictFDArray     = 12<<8 | 36
	dictFDSelect    = 12<<8 | 37
)

var errCFF = errors.New("the font's outlines are broken")

// cffFont is a font's outlines by glyph.
type cffFont struct {
	raw         []byte // the whole table
	charstrings [][]byte
	global      [][]byte
	parts       []cffPart // a font keyed by name has one
	selected    []uint8   // part by glyph; nil: the first
	matrix, box []byte    // operands as they stand; nil: the default
}

// cffPart is a Font DICT with its private dictionary.
type cffPart struct {
	matrix  []byte // operands
	private []byte // without its subroutines
	local   [][]byte
}

// cffEntry is an entry of a dictionary.
type cffEntry struct {
	operator int
	raw      []byte // the operands
	values   []int  // those that are integers
}

func parseCFF(raw []byte) (*cffFont, error) {
	if len(raw) < 4 || raw[0] != 1 {
		return nil, errCFF
	}
	r := cffReader{raw: raw, at: int(raw[2])}
	r.index() // names
	tops := r.index()
	r.index() // strings
	f := &cffFont{raw: raw, global: r.index()}
	if r.failed || len(tops) != 1 {
		return nil, errCFF
	}
	top := dictionary(tops[0])
	if f.charstrings = r.indexAt(top.value(dictCharStrings, 0)); len(f.charstrings) == 0 {
		return nil, errCFF
	}
	f.matrix, f.box = top.operands(dictFontMatrix), top.operands(dictFontBBox)
	if top.has(dictROS) {
		for _, dict := range r.indexAt(top.value(dictFDArray, 0)) {
			f.parts = append(f.parts, r.part(dictionary(dict)))
		}
		f.selected = r.selection(top.value(dictFDSelect, 0), len(f.charstrings))
	} else {
		part := r.part(top)
		part.matrix = nil // it is the top's
		f.parts = []cffPart{part}
	}
	if r.failed || len(f.parts) == 0 {
		return nil, errCFF
	}
	for _, s := range f.selected {
		if int(s) >= len(f.parts) {
			return nil, errCFF
		}
	}
	return f, nil
}

// cffReader reads structures and remembers whether one was broken.
type cffReader struct {
	raw    []byte
	at     int
	failed bool
}

// take returns the next n bytes, nil where there are fewer.
func (r *cffReader) take(n int) []byte {
	if n < 0 || r.at < 0 || r.at > len(r.raw) || n > len(r.raw)-r.at {
		r.failed = true
		return nil
	}
	r.at += n
	return r.raw[r.at-n : r.at]
}

func (r *cffReader) indexAt(offset int) [][]byte {
	if offset <= 0 {
		r.failed = true
		return nil
	}
	r.at = offset
	return r.index()
}

func (r *cffReader) index() [][]byte {
	head := r.take(2)
	if r.failed {
		return nil
	}
	count := int(u16(head, 0))
	if count == 0 {
		return nil
	}
	size := r.take(1)
	if r.failed || size[0] < 1 || size[0] > 4 {
		r.failed = true
		return nil
	}
	width := int(size[0])
	offsets := r.take((count + 1) * width)
	if r.failed {
		return nil
	}
	offset := func(i int) int {
		v := 0
		for _, b := range offsets[i*width : (i+1)*width] {
			v = v<<8 | int(b)
		}
		return v - 1
	}
	data := r.take(offset(count))
	if r.failed {
		return nil
	}
	out := make([][]byte, count)
	for i := range out {
		from, to := offset(i), offset(i+1)
		if from < 0 || from > to || to > len(data) {
			r.failed = true
			return nil
		}
		out[i] = data[from:to:to]
	}
	return out
}

// part reads the private dictionary that a dictionary names.
func (r *cffReader) part(d cffDict) cffPart {
	p := cffPart{matrix: d.operands(dictFontMatrix)}
	size, offset := d.value(dictPrivate, 0), d.value(dictPrivate, 1)
	r.at = offset
	private := dictionary(r.take(size))
	for _, e := range private {
		if e.operator != dictSubrs {
			p.private = appendEntry(p.private, e)
		}
	}
	if private.has(dictSubrs) {
		p.local = r.indexAt(offset + private.value(dictSubrs, 0))
	}
	return p
}

// selection reads FDSelect: the part of every glyph.
func (r *cffReader) selection(offset, count int) []uint8 {
	r.at = offset
	format := r.take(1)
	if r.failed || offset <= 0 {
		r.failed = true
		return nil
	}
	if format[0] == 0 {
		return r.take(count)
	}
	head := r.take(2)
	if r.failed || format[0] != 3 {
		r.failed = true
		return nil
	}
	ranges := r.take(3*int(u16(head, 0)) + 2)
	if r.failed {
		return nil
	}
	out := make([]uint8, count)
	for i := 0; i+4 < len(ranges); i += 3 {
		first, part, next := int(u16(ranges, i)), ranges[i+2], int(u16(ranges, i+3))
		for g := first; g < next && g < count; g++ {
			out[g] = part
		}
	}
	return out
}

type cffDict []cffEntry

// dictionary reads a DICT; what is broken ends it.
func dictionary(raw []byte) cffDict {
	var out cffDict
	var entry cffEntry
	for at := 0; at < len(raw); {
		b, start := int(raw[at]), at
		switch {
		case b <= 21:
			at++
			entry.operator = b
			if b == 12 && at < len(raw) {
				entry.operator = 12<<8 | int(raw[at])
				at++
			}
			out = append(out, entry)
			entry = cffEntry{}
			continue
		case b == 28 && at+3 <= len(raw):
			entry.values = append(entry.values, i16(raw, at+1))
			at += 3
		case b == 29 && at+5 <= len(raw):
			entry.values = append(entry.values, int(int32(u32(raw, at+1))))
			at += 5
		case b == 30:
			for at++; at < len(raw) && raw[at]&0xF != 0xF; at++ {
			}
			at++
		case b >= 32 && b <= 246:
			entry.values = append(entry.values, b-139)
			at++
		case b >= 247 && b <= 254 && at+2 <= len(raw):
			v := (b-247)*256 + int(raw[at+1]) + 108
			if b >= 251 {
				v = -(b-251)*256 - int(raw[at+1]) - 108
			}
			entry.values = append(entry.values, v)
			at += 2
		default:
			return out
		}
		if at > len(raw) {
			return out
		}
		entry.raw = append(entry.raw, raw[start:at]...)
	}
	return out
}

func (d cffDict) find(operator int) (cffEntry, bool) {
	i := slices.IndexFunc(d, func(e cffEntry) bool { return e.operator == operator })
	if i < 0 {
		return cffEntry{}, false
	}
	return d[i], true
}

func (d cffDict) has(operator int) bool { _, ok := d.find(operator); return ok }

func (d cffDict) operands(operator int) []byte { e, _ := d.find(operator); return e.raw }

func (d cffDict) value(operator, i int) int {
	if e, ok := d.find(operator); ok && i < len(e.values) {
		return e.values[i]
	}
	return 0
}

func appendEntry(out []byte, e cffEntry) []byte {
	return appendOperator(append(out, e.raw...), e.operator)
}

func appendOperator(out []byte, operator int) []byte {
	if operator >= 12<<8 {
		return append(out, 12, byte(operator))
	}
	return append(out, byte(operator))
}

// appendInt writes an integer in the five bytes that any offset fits.
func appendInt(out []byte, v int) []byte {
	return binary.BigEndian.AppendUint32(append(out, 29), uint32(int32(v)))
}

func (f *cffFont) partOf(glyph uint16) int {
	if f.selected == nil {
		return 0
	}
	return int(f.selected[glyph])
}

// program writes a subset as a font keyed by CID whose CIDs are the codes: PDF
// has no other map from codes to such glyphs (ISO 32000-1, 9.7.4.2).
func (f *cffFont) program(name string, entries []entry) ([]byte, error) {
	var outlines [][]byte
	var parts []int // in the subset's own numbers
	selected, charset := []byte{0}, []byte{0}
	for _, e := range slices.Insert(slices.Clone(entries), 0, entry{}) {
		outline, err := f.inlined(e.glyph)
		if err != nil {
			return nil, fmt.Errorf("glyph %d of %s: %w", e.glyph, name, err)
		}
		outlines = append(outlines, outline)
		if e.code != 0 { // .notdef is not listed
			charset = binary.BigEndian.AppendUint16(charset, e.code)
		}
		part := f.partOf(e.glyph)
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
		selected = append(selected, byte(slices.Index(parts, part)))
	}
	head := slices.Concat([]byte{1, 0, 4, 4}, cffIndex([]byte(name)))
	tail := slices.Concat(cffIndex([]byte("Adobe"), []byte("Identity")), cffIndex())
	topSize := len(cffIndex(f.top(0, 0, 0, 0)))
	at := len(head) + topSize + len(tail)
	charsetAt := at
	selectAt := charsetAt + len(charset)
	stringsAt := selectAt + len(selected)
	strings := cffIndex(outlines...)
	arrayAt := stringsAt + len(strings)
	var dicts [][]byte
	for _, p := range parts {
		dicts = append(dicts, f.parts[p].dict(0))
	}
	privateAt := arrayAt + len(cffIndex(dicts...))
	var privates []byte
	for i, p := range parts {
		dicts[i] = f.parts[p].dict(privateAt + len(privates))
		privates = append(privates, f.parts[p].private...)
	}
	return slices.Concat(head, cffIndex(f.top(charsetAt, selectAt, stringsAt, arrayAt)), tail, charset, selected, strings,
		cffIndex(dicts...), privates), nil
}

// top writes the Top DICT of a subset; its length does not depend on the offsets.
func (f *cffFont) top(charset, selected, strings, array int) []byte {
	var out []byte
	for _, v := range []int{391, 392, 0} { // the first strings of our own: Adobe, Identity
		out = appendInt(out, v)
	}
	out = appendOperator(out, dictROS)
	for _, e := range []cffEntry{{operator: dictFontMatrix, raw: f.matrix}, {operator: dictFontBBox, raw: f.box}} {
		if e.raw != nil {
			out = appendEntry(out, e)
		}
	}
	for _, e := range [][2]int{{dictCIDCount, 65536}, {dictCharset, charset}, {dictFDSelect, selected},
		{dictCharStrings, strings}, {dictFDArray, array}} {
		out = appendOperator(appendInt(out, e[1]), e[0])
	}
	return out
}

func (p cffPart) dict(private int) []byte {
	var out []byte
	if p.matrix != nil {
		out = appendEntry(out, cffEntry{operator: dictFontMatrix, raw: p.matrix})
	}
	return appendOperator(appendInt(appendInt(out, len(p.private)), private), dictPrivate)
}

// cffIndex writes an INDEX.
func cffIndex(items ...[]byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, uint16(len(items)))
	if len(items) == 0 {
		return out
	}
	out = append(out, 4)
	offset := uint32(1)
	out = binary.BigEndian.AppendUint32(out, offset)
	for _, item := range items {
		offset += uint32(len(item))
		out = binary.BigEndian.AppendUint32(out, offset)
	}
	for _, item := range items {
		out = append(out, item...)
	}
	return out
}

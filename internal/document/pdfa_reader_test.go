package document_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// A reader of PDF files, written for these tests and against the standard, not
// against the writer: it knows no more of the writer than that its
// cross-reference is one stream.

type (
	name   string
	ref    int
	dict   map[string]any
	array  []any
	stream struct {
		dict dict
		raw  []byte
	}
	keyword string
)

// file is a parsed PDF.
type file struct {
	t       testing.TB
	raw     []byte
	objects map[ref]any
	offsets map[ref]int
	trailer dict
	ops     map[any][]op // by content stream, read once
	cmaps   map[any]map[uint16]string
}

// lexer reads objects out of bytes.
type lexer struct {
	t          testing.TB
	in         []byte
	pos        int
	references bool // a page's content has none
}

func (l *lexer) fail(format string, args ...any) {
	l.t.Helper()
	end := min(len(l.in), l.pos+40)
	l.t.Fatalf("at byte %d (%q): %s", l.pos, l.in[min(l.pos, len(l.in)):end], fmt.Sprintf(format, args...))
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

func (l *lexer) skip() {
	for l.pos < len(l.in) && isSpace(l.in[l.pos]) {
		l.pos++
	}
}

func (l *lexer) word() string {
	start := l.pos
	for l.pos < len(l.in) && !isSpace(l.in[l.pos]) && !isDelimiter(l.in[l.pos]) {
		l.pos++
	}
	return string(l.in[start:l.pos])
}

var mapping = regexp.MustCompile(`(?m)^<([0-9A-F]{4})> <([0-9A-F]+)>$`)

var reference = regexp.MustCompile(`^(\d+) 0 R`)

// next reads one object; nil at the end.
func (l *lexer) next() any {
	l.skip()
	if l.pos >= len(l.in) {
		return nil
	}
	rest := l.in[l.pos:]
	switch c := rest[0]; {
	case bytes.HasPrefix(rest, []byte("<<")):
		l.pos += 2
		d := dict{}
		for {
			key := l.next()
			if key == keyword(">>") {
				return d
			}
			k, ok := key.(name)
			if !ok {
				l.fail("a dictionary has key %v", key)
			}
			if _, twice := d[string(k)]; twice {
				l.fail("a dictionary has %s twice", k)
			}
			d[string(k)] = l.next()
		}
	case bytes.HasPrefix(rest, []byte(">>")):
		l.pos += 2
		return keyword(">>")
	case c == '<':
		return l.hexString()
	case c == '(':
		return l.literal()
	case c == '/':
		l.pos++
		return name(l.name())
	case c == '[':
		l.pos++
		out := array{}
		for {
			v := l.next()
			if v == keyword("]") {
				return out
			}
			if v == nil {
				l.fail("an array does not end")
			}
			out = append(out, v)
		}
	case c == ']':
		l.pos++
		return keyword("]")
	}
	if c := rest[0]; l.references && c >= '0' && c <= '9' {
		if m := reference.FindSubmatch(rest); m != nil {
			l.pos += len(m[0])
			n, _ := strconv.Atoi(string(m[1]))
			return ref(n)
		}
	}
	w := l.word()
	if w == "" {
		l.fail("nothing to read")
	}
	if n, err := strconv.ParseFloat(w, 64); err == nil {
		return n
	}
	return keyword(w)
}

func (l *lexer) name() string {
	w := l.word()
	for i := strings.IndexByte(w, '#'); i >= 0; i = strings.IndexByte(w, '#') {
		v, err := strconv.ParseUint(w[i+1:i+3], 16, 8)
		if err != nil {
			l.fail("name %s", w)
		}
		w = w[:i] + string(rune(v)) + w[i+3:]
	}
	return w
}

func (l *lexer) hexString() string {
	end := bytes.IndexByte(l.in[l.pos:], '>')
	digits := string(l.in[l.pos+1 : l.pos+end])
	if len(digits)%2 != 0 {
		l.fail("a hexadecimal string of odd length (ISO 19005-3, 6.1.6)")
	}
	l.pos += end + 1
	var out []byte
	for i := 0; i < len(digits); i += 2 {
		v, err := strconv.ParseUint(digits[i:i+2], 16, 8)
		if err != nil {
			l.fail("hexadecimal string %q", digits)
		}
		out = append(out, byte(v))
	}
	return string(out)
}

func (l *lexer) literal() string {
	var out []byte
	depth := 0
	for ; l.pos < len(l.in); l.pos++ {
		switch c := l.in[l.pos]; c {
		case '\\':
			l.pos++
			if l.in[l.pos] == 'r' {
				out = append(out, '\r')
			} else if strings.IndexByte(`()\`, l.in[l.pos]) >= 0 {
				out = append(out, l.in[l.pos])
			} else {
				l.fail("escape the writer should not use")
			}
		case '\r':
			l.fail("a bare carriage return reads as a line feed")
		case '(':
			if depth++; depth > 1 {
				out = append(out, c)
			}
		case ')':
			if depth--; depth == 0 {
				l.pos++
				return string(out)
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	l.fail("a string does not end")
	return ""
}

// parsePDF reads a file by its cross-reference stream.
func parsePDF(t testing.TB, raw []byte) *file {
	t.Helper()
	f := &file{t: t, raw: raw, objects: map[ref]any{}, offsets: map[ref]int{}, ops: map[any][]op{},
		cmaps: map[any]map[uint16]string{}}
	tail := regexp.MustCompile(`startxref\n(\d+)\n%%EOF\n$`).FindSubmatch(raw)
	if tail == nil {
		t.Fatal("the file does not end in startxref and the end mark")
	}
	at, _ := strconv.Atoi(string(tail[1]))
	head := regexp.MustCompile(`^(\d+) 0 obj\n`).FindSubmatch(raw[at:])
	if head == nil {
		t.Fatal("startxref does not point at an object")
	}
	own, _ := strconv.Atoi(string(head[1]))
	s, ok := f.object(own, at).(stream)
	if !ok || s.dict["Type"] != name("XRef") || fmt.Sprint(s.dict["W"]) != "[1 4 2]" || s.dict["Index"] != nil ||
		s.dict["Prev"] != nil {
		t.Fatalf("the cross-reference stream is %v", s.dict)
	}
	f.trailer = s.dict
	table := f.data(s)
	count := int(s.dict["Size"].(float64))
	if len(table) != 7*count || table[0] != 0 {
		t.Fatalf("the table has %d bytes for %d objects", len(table), count)
	}
	packed := map[int][][2]int{} // stream → number and index of its objects
	for n := 1; n < count; n++ {
		entry := table[7*n:]
		value, index := int(binary.BigEndian.Uint32(entry[1:])), int(binary.BigEndian.Uint16(entry[5:]))
		switch entry[0] {
		case 1:
			f.offsets[ref(n)] = value
			f.objects[ref(n)] = f.object(n, value)
		case 2:
			packed[value] = append(packed[value], [2]int{n, index})
		default:
			t.Fatalf("object %d is of type %d", n, entry[0])
		}
	}
	for number, members := range packed {
		f.unpack(ref(number), members)
	}
	return f
}

// unpack reads the objects of an object stream (ISO 32000-1, 7.5.7).
func (f *file) unpack(number ref, members [][2]int) {
	f.t.Helper()
	s, ok := f.objects[number].(stream)
	if !ok || s.dict["Type"] != name("ObjStm") || int(s.dict["N"].(float64)) != len(members) {
		f.t.Fatalf("object %d is no object stream of %d", number, len(members))
	}
	data, first := f.data(s), int(s.dict["First"].(float64))
	index := &lexer{t: f.t, in: data[:first]}
	starts := map[int]int{} // by index
	numbers := map[int]int{}
	for i := range members {
		numbers[i] = int(index.next().(float64))
		starts[i] = first + int(index.next().(float64))
	}
	for _, m := range members {
		if numbers[m[1]] != m[0] {
			f.t.Fatalf("object %d is not where the table says", m[0])
		}
		l := &lexer{t: f.t, in: data, pos: starts[m[1]], references: true}
		v := l.next()
		if _, isStream := v.(stream); isStream {
			f.t.Fatalf("a stream lies in a stream")
		}
		f.objects[ref(m[0])] = v
	}
}

func (f *file) object(n, offset int) any {
	f.t.Helper()
	start := fmt.Sprintf("%d 0 obj\n", n)
	if !bytes.HasPrefix(f.raw[offset:], []byte(start)) {
		f.t.Fatalf("object %d is not at its offset", n)
	}
	l := &lexer{t: f.t, in: f.raw, pos: offset + len(start), references: true}
	v := l.next()
	if bytes.HasPrefix(l.in[l.pos:], []byte("\nstream\n")) {
		d := v.(dict)
		begin, length := l.pos+len("\nstream\n"), int(d["Length"].(float64))
		l.pos = begin + length
		if !bytes.HasPrefix(l.in[l.pos:], []byte("\nendstream")) {
			f.t.Fatalf("stream %d is not as long as it says", n)
		}
		l.pos += len("\nendstream")
		v = stream{d, f.raw[begin : begin+length]}
	}
	if !bytes.HasPrefix(l.in[l.pos:], []byte("\nendobj\n")) {
		f.t.Fatalf("object %d does not end", n)
	}
	return v
}

func (f *file) get(v any) any {
	if r, ok := v.(ref); ok {
		return f.objects[r]
	}
	return v
}

func (f *file) dict(v any) dict {
	f.t.Helper()
	d, ok := f.get(v).(dict)
	if !ok {
		f.t.Fatalf("%v is no dictionary", v)
	}
	return d
}

// data returns a stream's content, decoded.
func (f *file) data(v any) []byte {
	f.t.Helper()
	s, ok := f.get(v).(stream)
	if !ok {
		f.t.Fatalf("%v is no stream", v)
	}
	if s.dict["Filter"] != name("FlateDecode") {
		return s.raw
	}
	z, err := zlib.NewReader(bytes.NewReader(s.raw))
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *file) catalog() dict { return f.dict(f.trailer["Root"]) }

func (f *file) pages() []dict {
	var out []dict
	for _, kid := range f.dict(f.catalog()["Pages"])["Kids"].(array) {
		out = append(out, f.dict(kid))
	}
	return out
}

// op is an operator of a content stream with its operands.
type op struct {
	name string
	args []any
}

func (f *file) operators(page dict) []op {
	f.t.Helper()
	if kept, ok := f.ops[page["Contents"]]; ok {
		return kept
	}
	l := &lexer{t: f.t, in: f.data(page["Contents"])}
	var out []op
	var args []any
	for {
		switch v := l.next().(type) {
		case nil:
			if len(args) > 0 {
				f.t.Fatalf("operands without an operator: %v", args)
			}
			f.ops[page["Contents"]] = out
			return out
		case keyword:
			out = append(out, op{string(v), args})
			args = nil
		default:
			args = append(args, v)
		}
	}
}

// cmap reads a ToUnicode map.
func (f *file) cmap(v any) map[uint16]string {
	f.t.Helper()
	if kept, ok := f.cmaps[v]; ok {
		return kept
	}
	out := map[uint16]string{}
	f.cmaps[v] = out
	for _, m := range mapping.FindAllSubmatch(f.data(v), -1) {
		code, _ := strconv.ParseUint(string(m[1]), 16, 16)
		var units []uint16
		for i := 0; i < len(m[2]); i += 4 {
			u, _ := strconv.ParseUint(string(m[2][i:i+4]), 16, 16)
			units = append(units, uint16(u))
		}
		if string(m[1]) != "0000" || string(m[2]) != "FFFF" { // the code space
			out[uint16(code)] = string(utf16.Decode(units))
		}
	}
	return out
}

// run is a piece of text on a page.
type run struct {
	x, y, size float64
	font       string // without the subset's tag
	text       string
	color      [3]float64
}

// text returns the runs of a page in the order they were drawn.
func (f *file) text(page dict) []run {
	f.t.Helper()
	fonts := f.dict(f.dict(page["Resources"])["Font"])
	maps := map[string]map[uint16]string{}
	names := map[string]string{}
	for key, v := range fonts {
		d := f.dict(v)
		maps[key] = f.cmap(d["ToUnicode"])
		names[key] = string(d["BaseFont"].(name))[7:]
	}
	var out []run
	var now run
	font, fresh := "", true
	var spans []*string // open marked content; a text replaces what is shown within
	for _, o := range f.operators(page) {
		switch o.name {
		case "BDC", "BMC":
			spans = append(spans, actualText(o))
		case "EMC":
			spans = spans[:len(spans)-1]
		case "Tf":
			font, now.size = string(o.args[0].(name)), o.args[1].(float64)
		case "Td":
			now.x, now.y, fresh = o.args[0].(float64), o.args[1].(float64), true
		case "rg":
			now.color = [3]float64{o.args[0].(float64), o.args[1].(float64), o.args[2].(float64)}
		case "Tj", "TJ":
			text := ""
			for _, code := range o.codes() {
				c, ok := maps[font][code]
				if !ok {
					f.t.Fatalf("font %s shows a glyph without Unicode", names[font])
				}
				text += c
			}
			for _, instead := range spans {
				if instead != nil {
					text = *instead
					*instead = "" // once for all that is shown within
				}
			}
			if !fresh { // the same line in another font
				out[len(out)-1].text += text
				continue
			}
			now.font, now.text, fresh = names[font], text, false
			out = append(out, now)
		}
	}
	return out
}

// actualText is the text that stands for a marked content, nil where it is that of its glyphs.
func actualText(o op) *string {
	if len(o.args) < 2 {
		return nil
	}
	d, _ := o.args[1].(dict)
	raw, ok := d["ActualText"].(string)
	if !ok {
		return nil
	}
	text := textString(raw)
	return &text
}

// textString reads a text string (ISO 32000-1, 7.9.2.2).
func textString(raw string) string {
	if !strings.HasPrefix(raw, "\xFE\xFF") {
		return raw
	}
	var units []uint16
	for i := 2; i+1 < len(raw); i += 2 {
		units = append(units, binary.BigEndian.Uint16([]byte(raw[i:])))
	}
	return string(utf16.Decode(units))
}

// codes are the codes that an operator shows.
func (o op) codes() []uint16 {
	var out []uint16
	add := func(s string) {
		for i := 0; i+1 < len(s); i += 2 {
			out = append(out, binary.BigEndian.Uint16([]byte(s[i:])))
		}
	}
	switch v := o.args[0].(type) {
	case string:
		add(v)
	case array:
		for _, part := range v {
			if s, ok := part.(string); ok {
				add(s)
			}
		}
	}
	return out
}

// moved is how far the numbers of a TJ move its text, in thousandths of an em.
func (o op) moved() float64 {
	total := 0.0
	if parts, ok := o.args[0].(array); ok {
		for _, part := range parts {
			if n, ok := part.(float64); ok {
				total -= n
			}
		}
	}
	return total
}

// allText returns every run of the document's text, one to a line.
func (f *file) allText() string {
	var out strings.Builder
	for _, page := range f.pages() {
		for _, r := range f.text(page) {
			out.WriteString(strings.TrimRight(r.text, " "))
			out.WriteByte('\n')
		}
	}
	return out.String()
}

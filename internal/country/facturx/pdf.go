package facturx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zlib"

	"tributary/internal/incoming"
)

// What is read of a PDF (ISO 32000): the tables of its objects, old and new, objects
// in streams, and streams that are stored or deflated. Nothing is drawn or run.
const (
	objectsMax  = 200_000
	valuesMax   = 1_000_000 // that are parsed, in all objects
	inflatedMax = 64 << 20  // of all streams together
	nestingMax  = 32
	tablesMax   = 200 // earlier tables of objects, one behind another
	treeMax     = 10_000
	scannedMax  = 64 << 20 // bytes of objects that are parsed, some of them again
)

var (
	errPDF       = fmt.Errorf("%w: it is no PDF whose objects can be found", incoming.ErrInvalid)
	errTooMuch   = fmt.Errorf("%w: the PDF is more than is read", incoming.ErrInvalid)
	errEncrypted = fmt.Errorf("%w: the PDF is encrypted", incoming.ErrInvalid)
)

type (
	name   string
	ref    int
	dict   map[name]any
	array  []any
	stream struct {
		dict  dict
		start int
	}
)

// place is where an object stands: at an offset, or in a stream of objects.
type place struct{ offset, in, index int }

type file struct {
	in       []byte
	places   map[int]place
	packed   map[int][]byte // streams of objects, inflated
	trailer  dict
	values   int
	inflated int
	scanned  int
	err      error
}

func open(pdf []byte) (*file, error) {
	if len(pdf) > incoming.BytesMax {
		return nil, errTooMuch
	}
	f := &file{in: pdf, places: map[int]place{}, packed: map[int][]byte{}, trailer: dict{}}
	at := bytes.LastIndex(pdf, []byte("startxref"))
	if !Is(pdf) || at < 0 {
		return nil, errPDF
	}
	l := lexer{file: f, in: pdf, at: at + len("startxref")}
	offset, ok := l.value(0).(int)
	if !ok {
		return nil, errPDF
	}
	seen := map[int]bool{}
	for next := offset; next > 0 || len(seen) == 0; {
		if seen[next] || len(seen) >= tablesMax {
			return nil, errPDF
		}
		seen[next] = true
		trailer, err := f.table(next)
		if err != nil {
			return nil, err
		}
		for key, value := range trailer {
			if _, newer := f.trailer[key]; !newer {
				f.trailer[key] = value
			}
		}
		if hybrid, has := trailer["XRefStm"].(int); has && !seen[hybrid] {
			seen[hybrid] = true
			if _, err := f.table(hybrid); err != nil {
				return nil, err
			}
		}
		next, _ = trailer["Prev"].(int)
	}
	if _, locked := f.trailer["Encrypt"]; locked {
		return nil, errEncrypted
	}
	return f, f.err
}

// table reads a table of objects of either form. What a later table said stays.
func (f *file) table(offset int) (dict, error) {
	if offset < 0 || offset >= len(f.in) {
		return nil, errPDF
	}
	l := lexer{file: f, in: f.in, at: offset}
	if !l.word("xref") {
		return f.tableStream(&l)
	}
	for !l.word("trailer") {
		first, isFirst := l.value(0).(int)
		count, isCount := l.value(0).(int)
		if !isFirst || !isCount || first < 0 || count < 0 || f.err != nil {
			return nil, errors.Join(errPDF, f.err)
		}
		for i := range count {
			at, ok := l.value(0).(int)
			l.value(0) // generation
			used := l.word("n")
			if !ok || !used && !l.word("f") {
				return nil, errPDF
			}
			if used {
				f.put(first+i, place{offset: at})
			}
			if f.err != nil {
				return nil, f.err
			}
		}
	}
	trailer, ok := l.value(0).(dict)
	if !ok {
		return nil, errPDF
	}
	return trailer, f.err
}

func (f *file) put(number int, p place) {
	if _, newer := f.places[number]; newer {
		return
	}
	if f.places[number] = p; len(f.places) > objectsMax {
		f.err = errTooMuch
	}
}

// tableStream reads a table that is a stream: fields of fixed widths.
func (f *file) tableStream(l *lexer) (dict, error) {
	s, ok := l.object().(stream)
	if !ok || s.dict["Type"] != name("XRef") {
		return nil, errPDF
	}
	rows, err := f.data(s)
	if err != nil {
		return nil, err
	}
	widths, _ := s.dict["W"].(array)
	var w [3]int
	for i := range w {
		if len(widths) != 3 {
			return nil, errPDF
		}
		if w[i], ok = widths[i].(int); !ok || w[i] < 0 || w[i] > 4 {
			return nil, errPDF
		}
	}
	size := w[0] + w[1] + w[2]
	index, _ := s.dict["Index"].(array)
	if index == nil {
		index = array{0, s.dict["Size"]}
	}
	for i := 0; i+1 < len(index) && size > 0; i += 2 {
		first, _ := index[i].(int)
		count, _ := index[i+1].(int)
		for n := 0; n < count && len(rows) >= size && f.err == nil; n++ {
			kind, a, b := 1, number(rows[w[0]:w[0]+w[1]]), number(rows[w[0]+w[1]:size])
			if w[0] > 0 {
				kind = number(rows[:w[0]])
			}
			switch kind {
			case 1:
				f.put(first+n, place{offset: a})
			case 2:
				f.put(first+n, place{in: a, index: b})
			}
			rows = rows[size:]
		}
	}
	return s.dict, f.err
}

func number(bytes []byte) (n int) {
	for _, b := range bytes {
		n = n<<8 | int(b)
	}
	return n
}

// get answers what a value is, through references.
func (f *file) get(value any) any {
	for range nestingMax {
		r, is := value.(ref)
		if !is {
			return value
		}
		p, known := f.places[int(r)]
		switch {
		case !known || f.err != nil:
			return nil
		case p.in != 0:
			value = f.unpacked(p)
		case p.offset <= 0 || p.offset >= len(f.in):
			return nil
		default:
			l := lexer{file: f, in: f.in, at: p.offset}
			value = l.object()
			f.scan(l.at - p.offset)
		}
	}
	return nil
}

// scan counts what was parsed: an object that much refers to is parsed each time.
func (f *file) scan(bytes int) {
	if f.scanned += bytes; f.scanned > scannedMax {
		f.err = errTooMuch
	}
}

// unpacked is an object in a stream of objects.
func (f *file) unpacked(p place) any {
	if outer, known := f.places[p.in]; !known || outer.in != 0 {
		return nil // a stream of objects stands in no other
	}
	s, ok := f.get(ref(p.in)).(stream)
	if !ok {
		return nil
	}
	data, known := f.packed[p.in]
	if !known {
		var err error
		if data, err = f.data(s); err != nil {
			f.err = err
			return nil
		}
		f.packed[p.in] = data
	}
	first, _ := s.dict["First"].(int)
	l := lexer{file: f, in: data}
	defer func() { f.scan(l.at) }()
	var offset int
	for i := 0; i <= p.index; i++ {
		l.value(0) // number of the object
		if offset, ok = l.value(0).(int); !ok || f.err != nil {
			return nil
		}
	}
	if l.at = first + offset; l.at < 0 || l.at > len(data) {
		return nil
	}
	return l.value(0)
}

// data is what a stream holds, inflated where it is deflated.
func (f *file) data(s stream) ([]byte, error) {
	length, ok := f.get(s.dict["Length"]).(int)
	if !ok || length < 0 || s.start+length > len(f.in) {
		return nil, errPDF
	}
	raw := f.in[s.start : s.start+length]
	filter, params := f.get(s.dict["Filter"]), f.get(s.dict["DecodeParms"])
	if list, several := filter.(array); several && len(list) <= 1 {
		if filter = nil; len(list) == 1 {
			filter = f.get(list[0])
		}
		if list, several := params.(array); several && len(list) == 1 {
			params = f.get(list[0])
		}
	}
	switch filter {
	case nil:
		return raw, nil
	case name("FlateDecode"), name("Fl"):
	default:
		return nil, fmt.Errorf("%w: a stream is neither stored nor deflated", incoming.ErrInvalid)
	}
	r, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, errPDF
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(inflatedMax-f.inflated)+1))
	if f.inflated += len(out); f.inflated > inflatedMax {
		return nil, errTooMuch
	}
	if err != nil {
		return nil, errPDF
	}
	return unpredicted(out, params)
}

// unpredicted undoes the predictors of PNG, which tables of objects are written with.
func unpredicted(data []byte, params any) ([]byte, error) {
	p, _ := params.(dict)
	predictor, _ := p["Predictor"].(int)
	if predictor <= 1 {
		return data, nil
	}
	columns, _ := p["Columns"].(int)
	if columns == 0 {
		columns = 1
	}
	if predictor < 10 || columns < 0 || columns > 1<<16 || p["Colors"] != nil || p["BitsPerComponent"] != nil {
		return nil, errPDF
	}
	out, before := make([]byte, 0, len(data)), make([]byte, columns)
	for ; len(data) > columns; data = data[columns+1:] {
		row := data[1 : columns+1]
		for i := range row {
			left := 0
			if i > 0 {
				left = int(row[i-1])
			}
			switch data[0] {
			case 0:
			case 1:
				row[i] += byte(left)
			case 2:
				row[i] += before[i]
			case 3:
				row[i] += byte((left + int(before[i])) / 2)
			default:
				return nil, errPDF
			}
		}
		out, before = append(out, row...), row
	}
	return out, nil
}

// lexer reads values one after another.
type lexer struct {
	file *file
	in   []byte
	at   int
}

func blank(c byte) bool {
	return c == 0 || c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '
}

func regular(c byte) bool { return !blank(c) && bytes.IndexByte([]byte("()<>[]{}/%"), c) < 0 }

func (l *lexer) space() {
	for l.at < len(l.in) {
		switch c := l.in[l.at]; {
		case blank(c):
			l.at++
		case c == '%':
			for l.at < len(l.in) && l.in[l.at] != '\n' && l.in[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// word takes a word where it stands next.
func (l *lexer) word(word string) bool {
	l.space()
	if bytes.HasPrefix(l.in[l.at:], []byte(word)) {
		l.at += len(word)
		return true
	}
	return false
}

func (l *lexer) token() string {
	begin := l.at
	for l.at < len(l.in) && regular(l.in[l.at]) {
		l.at++
	}
	return string(l.in[begin:l.at])
}

// object reads "7 0 obj" with what follows; nil where there is none.
func (l *lexer) object() any {
	l.space()
	l.token()
	l.space()
	l.token()
	if !l.word("obj") {
		return nil
	}
	value := l.value(0)
	d, is := value.(dict)
	if !is || !l.word("stream") {
		return value
	}
	if l.at < len(l.in) && l.in[l.at] == '\r' {
		l.at++
	}
	if l.at < len(l.in) && l.in[l.at] == '\n' {
		l.at++
	}
	return stream{d, l.at}
}

// value reads a value; nil is null, or what is none.
func (l *lexer) value(depth int) any {
	if l.file.values++; l.file.values > valuesMax || depth > nestingMax {
		l.file.err = errTooMuch
		return nil
	}
	l.space()
	if l.at >= len(l.in) {
		return nil
	}
	switch c := l.in[l.at]; {
	case c == '/':
		l.at++
		return unescaped(l.token())
	case c == '(':
		return l.text()
	case c == '[':
		l.at++
		all := array{}
		for !l.word("]") && l.at < len(l.in) && l.file.err == nil {
			all = append(all, l.value(depth+1))
		}
		return all
	case bytes.HasPrefix(l.in[l.at:], []byte("<<")):
		l.at += 2
		return l.dict(depth)
	case c == '<':
		return l.hex()
	case regular(c):
		return l.plain()
	}
	l.at++ // no value begins with it
	return nil
}

func (l *lexer) dict(depth int) dict {
	d := dict{}
	for !l.word(">>") && l.at < len(l.in) && l.file.err == nil {
		key, is := l.value(depth + 1).(name)
		value := l.value(depth + 1)
		if is {
			d[key] = value
		}
	}
	return d
}

// plain reads a number, a reference or a word.
func (l *lexer) plain() any {
	text := l.token()
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil // true, false, null, 1.5: nothing here asks for them
	}
	back := l.at
	l.space()
	if _, err := strconv.Atoi(l.token()); err == nil && n > 0 {
		l.space()
		if l.token() == "R" {
			return ref(n)
		}
	}
	l.at = back
	return n
}

// text reads a string in parentheses.
func (l *lexer) text() string {
	var out []byte
	open := 0
	for ; l.at < len(l.in); l.at++ {
		c := l.in[l.at]
		switch {
		case c == '(':
			if open++; open == 1 {
				continue
			}
		case c == ')':
			if open--; open == 0 {
				l.at++
				return string(out)
			}
		case c == '\\' && l.at+1 < len(l.in):
			l.at++
			if c = l.in[l.at]; c >= '0' && c <= '7' {
				end := l.at
				for end < len(l.in) && end < l.at+3 && l.in[end] >= '0' && l.in[end] <= '7' {
					end++
				}
				n, err := strconv.ParseUint(string(l.in[l.at:end]), 8, 16)
				if err != nil {
					return ""
				}
				c, l.at = byte(n), end-1
			}
		}
		out = append(out, c)
	}
	return ""
}

// hex reads a string in hexadecimal digits.
func (l *lexer) hex() string {
	end := bytes.IndexByte(l.in[l.at:], '>')
	if end < 0 {
		l.at = len(l.in)
		return ""
	}
	digits := bytes.Join(bytes.Fields(l.in[l.at+1:l.at+end]), nil)
	l.at += end + 1
	if len(digits)%2 == 1 {
		digits = append(digits, '0')
	}
	out := make([]byte, 0, len(digits)/2)
	for i := 0; i < len(digits); i += 2 {
		b, err := strconv.ParseUint(string(digits[i:i+2]), 16, 8)
		if err != nil {
			return ""
		}
		out = append(out, byte(b))
	}
	return string(out)
}

// unescaped is a name with its #20.
func unescaped(text string) name {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '#' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out, i = append(out, byte(b)), i+2
				continue
			}
		}
		out = append(out, text[i])
	}
	return name(out)
}

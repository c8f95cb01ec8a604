package document

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// pdfFile collects the objects of a file. Numbers start at 1.
type pdfFile struct {
	out     []byte
	objects []place // by object number less 1
	deflate *deflaters

	digest   hash.Hash
	digested int // how much of out the digest knows
}

// place is where an object lies: at an offset of the file, or as one of those
// in an object stream.
type place struct{ offset, stream, index int }

// blob is the content of a stream that documents share, with its digest: most
// of a file is fonts and a logo.
type blob struct {
	data   []byte
	digest [sha256.Size]byte
}

func newBlob(data []byte) blob { return blob{data, sha256.Sum256(data)} }

func newPDFFile(w *workspace, deflate *deflaters) *pdfFile {
	f := &pdfFile{out: w.file[:0], objects: w.objects[:0], deflate: deflate, digest: sha256.New()}
	// Four bytes over 127 tell transports that the file is binary.
	f.out = append(f.out, "%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"...)
	return f
}

// reserve returns the number of an object that is written later.
func (f *pdfFile) reserve() int {
	f.objects = append(f.objects, place{})
	return len(f.objects)
}

// open begins an object, whose body is then written to f.out; shut ends it.
func (f *pdfFile) open(number int) {
	f.objects[number-1].offset = len(f.out)
	f.out = strconv.AppendInt(f.out, int64(number), 10)
	f.out = append(f.out, " 0 obj\n"...)
}

func (f *pdfFile) shut() { f.out = append(f.out, "\nendobj\n"...) }

// object writes an object whose body is a format.
func (f *pdfFile) object(number int, format string, args ...any) {
	f.open(number)
	f.out = fmt.Appendf(f.out, format, args...)
	f.shut()
}

// add is object with a new number.
func (f *pdfFile) add(format string, args ...any) int {
	n := f.reserve()
	f.object(n, format, args...)
	return n
}

// join writes a new object from texts and references to other objects, which
// stand after every text but the last.
func (f *pdfFile) join(texts []string, refs ...int) int {
	n := f.reserve()
	f.open(n)
	for i, text := range texts {
		f.out = append(f.out, text...)
		if i < len(texts)-1 {
			f.out = strconv.AppendInt(f.out, int64(refs[i]), 10)
			f.out = append(f.out, " 0 R"...)
		}
	}
	f.shut()
	return n
}

// stream writes a stream object; dict is what its dictionary has besides Length.
func (f *pdfFile) stream(dict string, data []byte) int {
	n := f.openStream(dict, len(data))
	f.out = append(f.out, data...)
	f.shutStream()
	return n
}

// share is stream for content that is known already: it is copied, and the
// file's digest takes its digest.
func (f *pdfFile) share(dict string, b blob) int {
	n := f.openStream(dict, len(b.data))
	_, _ = f.digest.Write(f.out[f.digested:]) // a digest takes everything
	_, _ = f.digest.Write(b.digest[:])
	f.out = append(f.out, b.data...)
	f.digested = len(f.out)
	f.shutStream()
	return n
}

// pack is stream for content that is deflated now, given in pieces.
func (f *pdfFile) pack(dict string, pieces ...[]byte) (n int) {
	f.deflate.fast(func(deflated []byte) { n = f.stream(dict+"/Filter/FlateDecode", deflated) }, pieces...)
	return n
}

func (f *pdfFile) openStream(dict string, length int) int {
	n := f.reserve()
	f.open(n)
	f.out = append(f.out, "<<"...)
	f.out = append(f.out, dict...)
	f.out = append(f.out, "/Length "...)
	f.out = strconv.AppendInt(f.out, int64(length), 10)
	f.out = append(f.out, ">>\nstream\n"...)
	return n
}

func (f *pdfFile) shutStream() {
	f.out = append(f.out, "\nendstream"...)
	f.shut()
}

// packedMax objects lie in one object stream: readers unpack it whole.
const packedMax = 400

// packer gathers small objects into object streams (ISO 32000-1, 7.5.7): the
// structure of a long document has more objects than text.
type packer struct {
	file   *pdfFile
	index  []byte
	body   []byte
	inside []int
}

// open begins the body of an object, written to p.body; shut ends it.
func (p *packer) open(number int) {
	p.index = strconv.AppendInt(p.index, int64(number), 10)
	p.index = append(p.index, ' ')
	p.index = strconv.AppendInt(p.index, int64(len(p.body)), 10)
	p.index = append(p.index, ' ')
	p.inside = append(p.inside, number)
}

func (p *packer) shut() {
	p.body = append(p.body, '\n')
	if len(p.inside) == packedMax {
		p.flush()
	}
}

func (p *packer) flush() {
	if len(p.inside) == 0 {
		return
	}
	stream := p.file.pack(fmt.Sprintf("/Type/ObjStm/N %d/First %d", len(p.inside), len(p.index)), p.index, p.body)
	for i, number := range p.inside {
		p.file.objects[number-1] = place{stream: stream, index: i}
	}
	p.index, p.body, p.inside = p.index[:0], p.body[:0], p.inside[:0]
}

// tableBytesMax bounds a cross-reference table that is written as it is:
// deflating a short one saves less than a hundredth of a file.
const tableBytesMax = 2 << 10

// finish writes the cross-reference stream, which is the trailer as well. The
// file's ID is a digest of its content, so that equal documents stay equal.
func (f *pdfFile) finish(root, info int) {
	_, _ = f.digest.Write(f.out[f.digested:]) // a digest takes everything
	id := hex.EncodeToString(f.digest.Sum(nil)[:16])
	start := len(f.out)
	table := f.table(start)
	dict := fmt.Sprintf("/Type/XRef/Size %d/W[1 4 2]/Root %d 0 R/Info %d 0 R/ID[<%s><%s>]", len(f.objects)+2, root, info, id, id)
	if len(table) > tableBytesMax {
		f.pack(dict, table)
	} else {
		f.stream(dict, table)
	}
	f.out = fmt.Appendf(f.out, "startxref\n%d\n%%%%EOF\n", start)
}

// table is the places of all objects; own is that of the table, which comes last.
func (f *pdfFile) table(own int) []byte {
	table := make([]byte, 0, 7*(len(f.objects)+2))
	table = append(table, 0, 0, 0, 0, 0, 0xFF, 0xFF) // object 0 is free
	entry := func(kind byte, where, index int) {
		table = append(table, kind)
		table = binary.BigEndian.AppendUint32(table, uint32(where))
		table = binary.BigEndian.AppendUint16(table, uint16(index))
	}
	for _, o := range f.objects {
		if o.stream != 0 {
			entry(2, o.stream, o.index)
		} else {
			entry(1, o.offset, 0)
		}
	}
	entry(1, own, 0)
	return table
}

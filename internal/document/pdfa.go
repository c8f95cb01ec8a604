package document

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zlib"

	"time"

	"tributary/internal/document/typeset"
)

// The file is written here, object by object, instead of by a PDF library:
// docs/decisions/0007-pdf-writer.md has the measurements. It is ISO 32000-1
// (PDF 1.7) within the limits of ISO 19005-3 (PDF/A-3), level U.

// pdfFile collects the objects of a file. Numbers start at 1.
type pdfFile struct {
	out     []byte
	objects []place // by object number less 1
	deflate func([]byte) []byte
}

// place is where an object lies: at an offset of the file, or as one of those
// in an object stream.
type place struct{ offset, stream, index int }

func newPDFFile(sizeHint int, deflate func([]byte) []byte) *pdfFile {
	f := &pdfFile{out: make([]byte, 0, sizeHint), deflate: deflate}
	// Four bytes over 127 tell transports that the file is binary.
	f.out = append(f.out, "%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"...)
	return f
}

// reserve returns the number of an object that is written later.
func (f *pdfFile) reserve() int {
	f.objects = append(f.objects, place{})
	return len(f.objects)
}

// object writes an object whose body is a format.
func (f *pdfFile) object(number int, format string, args ...any) {
	f.objects[number-1].offset = len(f.out)
	f.out = strconv.AppendInt(f.out, int64(number), 10)
	f.out = append(f.out, " 0 obj\n"...)
	f.out = fmt.Appendf(f.out, format, args...)
	f.out = append(f.out, "\nendobj\n"...)
}

// add is object with a new number.
func (f *pdfFile) add(format string, args ...any) int {
	n := f.reserve()
	f.object(n, format, args...)
	return n
}

// stream writes a stream object; dict is what its dictionary has besides Length.
func (f *pdfFile) stream(dict string, data []byte) int {
	n := f.reserve()
	f.objects[n-1].offset = len(f.out)
	f.out = strconv.AppendInt(f.out, int64(n), 10)
	f.out = append(f.out, " 0 obj\n<<"...)
	f.out = append(f.out, dict...)
	f.out = append(f.out, "/Length "...)
	f.out = strconv.AppendInt(f.out, int64(len(data)), 10)
	f.out = append(f.out, ">>\nstream\n"...)
	f.out = append(f.out, data...)
	f.out = append(f.out, "\nendstream\nendobj\n"...)
	return n
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
	stream := p.file.stream(fmt.Sprintf("/Type/ObjStm/N %d/First %d/Filter/FlateDecode", len(p.inside), len(p.index)), p.file.deflate(append(p.index, p.body...)))
	for i, number := range p.inside {
		p.file.objects[number-1] = place{stream: stream, index: i}
	}
	p.index, p.body, p.inside = p.index[:0], p.body[:0], p.inside[:0]
}

// finish writes the cross-reference stream, which is the trailer as well. The
// file's ID is a digest of its content, so that equal documents stay equal.
func (f *pdfFile) finish(root, info int) []byte {
	sum := sha256.Sum256(f.out)
	id := hex.EncodeToString(sum[:16])
	table := []byte{0, 0, 0, 0, 0, 0xFF, 0xFF} // object 0 is free
	own := f.reserve()
	start := len(f.out)
	f.objects[own-1].offset = start
	for _, o := range f.objects {
		if o.stream != 0 {
			table = append(table, 2)
			table = binary.BigEndian.AppendUint32(table, uint32(o.stream))
			table = binary.BigEndian.AppendUint16(table, uint16(o.index))
			continue
		}
		table = append(table, 1)
		table = binary.BigEndian.AppendUint32(table, uint32(o.offset))
		table = append(table, 0, 0)
	}
	data := f.deflate(table)
	f.out = fmt.Appendf(f.out, "%d 0 obj\n<</Type/XRef/Size %d/W[1 4 2]/Root %d 0 R/Info %d 0 R/ID[<%s><%s>]/Filter/FlateDecode/Length %d>>\nstream\n",
		own, len(f.objects)+1, root, info, id, id, len(data))
	f.out = append(f.out, data...)
	f.out = fmt.Appendf(f.out, "\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", start)
	return f.out
}

// write turns composed pages into the file.
func (r *Renderer) write(ctx context.Context, v *Visual, p *composition) ([]byte, error) {
	f := newPDFFile(64<<10+p.bytes()/3, r.deflate.fast)
	catalog, tree, info := f.reserve(), f.reserve(), f.reserve()
	meta := p.metadata(v)
	xmp := f.stream("/Type/Metadata/Subtype/XML", meta.xmp(v.FacturX, p.root != nil))
	profile := f.stream("/N 3/Filter/FlateDecode", r.profile)
	resources, err := r.writeResources(f, p)
	if err != nil {
		return nil, err
	}
	pages := make([]int, len(p.sheets))
	var kids []byte
	for i, s := range p.sheets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		content := f.stream("/Filter/FlateDecode", r.deflate.fast(s.out))
		bottom, parents := length(0), ""
		if p.paper.roll {
			bottom = p.paper.height - s.height
		}
		if p.root != nil {
			parents = fmt.Sprintf("/StructParents %d/Tabs/S", i)
		}
		pages[i] = f.add("<</Type/Page/Parent %d 0 R/MediaBox[0 %s %s %s]/Resources %d 0 R/Contents %d 0 R%s>>",
			tree, bottom, p.paper.width, p.paper.height, resources, content, parents)
		kids = fmt.Appendf(kids, "%d 0 R ", pages[i])
	}
	f.object(tree, "<</Type/Pages/Count %d/Kids[%s]>>", len(p.sheets), kids)
	f.object(info, "<</Title %s/Author %s/Creator %s/Producer %s/CreationDate %s/ModDate %s>>", pdfText(meta.title), pdfText(meta.author),
		pdfText(producer), pdfText(producer), pdfDate(meta.at), pdfDate(meta.at))
	direction := ""
	if p.rtl {
		direction = "/Direction/R2L"
	}
	f.object(catalog, "<</Type/Catalog/Pages %d 0 R/Metadata %d 0 R/Lang %s/ViewerPreferences<</DisplayDocTitle true%s>>"+
		"/OutputIntents[<</Type/OutputIntent/S/GTS_PDFA1/OutputConditionIdentifier(sRGB IEC61966-2.1)/Info(sRGB IEC61966-2.1)/DestOutputProfile %d 0 R>>]%s%s>>",
		tree, xmp, pdfText(p.words.tag), direction, profile, r.writeFiles(f, v.Files), f.writeStructure(p, pages))
	return f.finish(catalog, info), nil
}

// writeResources writes fonts and logo, and returns the dictionary that all pages share.
func (r *Renderer) writeResources(f *pdfFile, p *composition) (int, error) {
	var fonts []byte
	for i, use := range p.fonts {
		blocks, others := p.used[use.face.ID].Keys()
		key := blocks
		if use.rare {
			key = others
		}
		sub, err := r.subset(*key)
		if err != nil {
			return 0, err
		}
		fonts = fmt.Appendf(fonts, "/F%d %d 0 R", i, writeFont(f, sub))
	}
	pictures := ""
	if p.logo != nil {
		n := f.stream(fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter%s",
			p.logo.width, p.logo.height, p.logo.filter), p.logo.data)
		pictures = fmt.Sprintf("/XObject<</Logo %d 0 R>>", n)
	}
	return f.add("<</Font<<%s>>%s>>", fonts, pictures), nil
}

// subsetBytesMax bounds the memory of kept subsets. A subset of the common
// blocks takes about 25 KB, so this is hundreds of them, far more than a set of
// countries and fonts gives rise to.
const subsetBytesMax = 16 << 20

// embedded is a subset with its streams deflated: per document it is only copied.
type embedded struct {
	*typeset.Subset
	length                    int // of the program before deflation
	program, toGID, toUnicode []byte
}

func (e *embedded) Size() int {
	return len(e.program) + len(e.toGID) + len(e.toUnicode) + len(e.Widths) + 256
}

// subset returns the subset of a key, cut now or kept from an earlier document.
func (r *Renderer) subset(key typeset.Key) (*embedded, error) {
	return r.subsets.Get(key, func() (*embedded, error) {
		cut, err := typeset.Cut(r.library.Face(key.Face), key)
		if err != nil {
			return nil, err
		}
		e := &embedded{Subset: cut, length: len(cut.Program), program: r.deflate.best(cut.Program), toUnicode: r.deflate.best(cut.ToUnicode)}
		if !cut.Compact {
			e.toGID = r.deflate.best(cut.CIDToGID)
		}
		cut.Program, cut.CIDToGID, cut.ToUnicode = nil, nil, nil
		return e, nil
	})
}

// writeFont writes a subset as a composite font whose codes are the glyph
// numbers of the whole face: page contents do not depend on how it was cut.
func writeFont(f *pdfFile, s *embedded) int {
	m := s.Face.Metrics
	kind, file, toGID := "CIDFontType2", "FontFile2", ""
	if s.Compact {
		kind, file = "CIDFontType0", "FontFile3"
	}
	head := fmt.Sprintf("/Filter/FlateDecode/Length1 %d", s.length)
	if s.Compact {
		head = "/Filter/FlateDecode/Subtype/CIDFontType0C"
	} else {
		toGID = fmt.Sprintf("/CIDToGIDMap %d 0 R", f.stream("/Filter/FlateDecode", s.toGID))
	}
	program := f.stream(head, s.program)
	descriptor := f.add("<</Type/FontDescriptor/FontName/%s/Flags %d/FontBBox[%d %d %d %d]/ItalicAngle %d/Ascent %d/Descent %d/CapHeight %d/StemV %d/%s %d 0 R>>",
		s.Name, m.Flags(), m.Box[0], m.Box[1], m.Box[2], m.Box[3], m.ItalicAngle, m.Ascent, m.Descent, m.CapHeight, m.Stem(), file, program)
	descendant := f.add("<</Type/Font/Subtype/%s/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor %d 0 R/W %s%s>>",
		kind, s.Name, descriptor, s.Widths, toGID)
	unicode := f.stream("/Filter/FlateDecode", s.toUnicode)
	return f.add("<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", s.Name, descendant, unicode)
}

// pdfText writes a text string: plain where it is printable ASCII, UTF-16 in
// hexadecimal otherwise, so that no byte of a client stands raw in the file.
func pdfText(s string) string {
	var out bytes.Buffer
	out.WriteByte('(')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x20 || c > 0x7E:
			return pdfUTF16(s)
		case c == '(' || c == ')' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte(')')
	return out.String()
}

func pdfUTF16(s string) string { return string(appendUTF16(nil, s)) }

// pdfName writes a name object, everything unusual as #xx.
func pdfName(s string) string {
	out := []byte{'/'}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '+' {
			out = append(out, c)
		} else {
			out = fmt.Appendf(out, "#%02X", c)
		}
	}
	return string(out)
}

func pdfDate(t time.Time) string { return t.UTC().Format("(D:20060102150405Z)") }

// deflaters keeps compressors: making one costs more than a page's worth of
// compressing. They are klauspost/compress, which needs a third of the time of
// the standard library's for the same size (decision 0044).
type deflaters struct {
	quick, small sync.Pool // of *zlib.Writer
}

// fast compresses what is written once: page contents.
func (d *deflaters) fast(data []byte) []byte { return deflate(&d.quick, contentLevel, data) }

// best compresses what many documents share.
func (d *deflaters) best(data []byte) []byte { return deflate(&d.small, zlib.BestCompression, data) }

// contentLevel is where page contents stop getting smaller for their time.
const contentLevel = 1

func deflate(pool *sync.Pool, level int, data []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(data)/3+64))
	w, ok := pool.Get().(*zlib.Writer)
	if ok {
		w.Reset(out)
	} else {
		w, _ = zlib.NewWriterLevel(out, level) // the levels above are valid
	}
	// A bytes.Buffer takes everything, so neither call can fail.
	_, _ = w.Write(data)
	_ = w.Close() // into memory
	pool.Put(w)
	return out.Bytes()
}

package document

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// deflaters keeps compressors: making one costs more than a page's worth of
// compressing. They are klauspost/compress, which needs a third of the time of
// the standard library's for the same size (docs/decisions/0034-pdf-writer.md).
type deflaters struct {
	quick, small sync.Pool // of *deflater
}

// deflater is a compressor with the memory it writes to.
type deflater struct {
	w   *zlib.Writer
	out bytes.Buffer
}

// deflatedKept bounds the memory that a compressor keeps for the next document.
const deflatedKept = 256 << 10

// contentLevel is where page contents stop getting smaller for their time.
const contentLevel = 1

// fast compresses what is written once: page contents. What use is given is
// its own until it returns.
func (d *deflaters) fast(use func(deflated []byte), pieces ...[]byte) {
	deflate(&d.quick, contentLevel, use, pieces...)
}

// best compresses what many documents share.
func (d *deflaters) best(data []byte) (out blob) {
	deflate(&d.small, zlib.BestCompression, func(deflated []byte) { out = newBlob(bytes.Clone(deflated)) }, data)
	return out
}

func deflate(pool *sync.Pool, level int, use func([]byte), pieces ...[]byte) {
	d, ok := pool.Get().(*deflater)
	if ok {
		d.out.Reset()
		d.w.Reset(&d.out)
	} else {
		d = &deflater{}
		d.w, _ = zlib.NewWriterLevel(&d.out, level) // the levels above are valid
	}
	for _, piece := range pieces { // a bytes.Buffer takes everything, so neither call can fail
		_, _ = d.w.Write(piece)
	}
	_ = d.w.Close() // into memory
	use(d.out.Bytes())
	if d.out.Cap() > deflatedKept {
		d.out = bytes.Buffer{}
	}
	pool.Put(d)
}

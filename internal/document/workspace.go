package document

import "bytes"

// workspace is the memory that a document is made in, one after the other: what
// they leave behind would keep the collector busier than the documents
// themselves keep the processor. Nothing of a document stays in it.
type workspace struct {
	file    []byte
	objects []place
	packer  packer

	sheets     []*sheet // by order of use; the first so many are in use
	sheetsUsed int

	elements     []*[elementsAtOnce]element // likewise, those of the last one in part
	elementsUsed int
}

// elementsAtOnce are made in one piece: a page has some hundred.
const elementsAtOnce = 64

// What is kept for the next document: a few MB at most.
const (
	fileKept     = 1 << 20 // bytes
	pagesKept    = 16
	pageKept     = 64 << 10 // bytes of one
	elementsKept = 4096
)

// workspace takes one that is free; the caller releases it.
func (r *Renderer) workspace() *workspace {
	if w, ok := r.workspaces.Get().(*workspace); ok {
		return w
	}
	return &workspace{}
}

// release keeps a workspace for the next document.
func (r *Renderer) release(w *workspace) {
	if w.reset() {
		r.workspaces.Put(w)
	}
}

// reset forgets the document that was made, and reports whether the memory is
// worth keeping: that of a huge document is let go.
func (w *workspace) reset() bool {
	if cap(w.file) > fileKept || w.sheetsUsed > pagesKept || w.elementsUsed > elementsKept {
		return false
	}
	for _, s := range w.sheets[:w.sheetsUsed] {
		if cap(s.out) > pageKept {
			return false
		}
		clear(s.marks)
		*s = sheet{out: s.out[:0], marks: s.marks[:0]}
	}
	for i := range (w.elementsUsed + elementsAtOnce - 1) / elementsAtOnce {
		clear(w.elements[i][:])
	}
	w.sheetsUsed, w.elementsUsed = 0, 0
	return true
}

// sheet returns an empty page.
func (w *workspace) sheet(index int) *sheet {
	if w.sheetsUsed == len(w.sheets) {
		w.sheets = append(w.sheets, &sheet{out: make([]byte, 0, 20<<10)})
	}
	s := w.sheets[w.sheetsUsed]
	w.sheetsUsed++
	s.index = index
	return s
}

// element returns an empty element.
func (w *workspace) element() *element {
	piece, at := w.elementsUsed/elementsAtOnce, w.elementsUsed%elementsAtOnce
	if piece == len(w.elements) {
		w.elements = append(w.elements, new([elementsAtOnce]element))
	}
	w.elementsUsed++
	return &w.elements[piece][at]
}

// keep takes the memory of a finished file back, and returns a copy of the file.
func (w *workspace) keep(f *pdfFile) []byte {
	w.file, w.objects = f.out, f.objects
	return bytes.Clone(f.out)
}

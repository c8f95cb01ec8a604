package document

// The bounds of what is kept of a document's memory.
const (
	FileKept     = fileKept
	PagesKept    = pagesKept
	PageKept     = pageKept
	ElementsKept = elementsKept
)

// KeepsWorkspace reports whether the memory of a document of some sizes is kept.
func KeepsWorkspace(file, pages, page, elements int) bool {
	w := &workspace{file: make([]byte, file)}
	for i := range pages {
		w.sheet(i).out = make([]byte, page)
	}
	for range elements {
		w.element()
	}
	return w.reset()
}

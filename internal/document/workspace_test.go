package document_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"tributary/internal/document"
)

// Documents of several clients that are made at once by one renderer are, byte
// for byte, those that a renderer of their own makes.
func TestDocumentsMadeAtOnceAreThoseMadeAlone(t *testing.T) {
	t.Parallel()
	var visuals []document.Visual
	for i, s := range samples(t)[:3] {
		for _, note := range []string{"<p>Thank you.</p>",
			fmt.Sprintf("<p>Thank you <b>very much</b>.</p><ul><li>%d</li></ul>", i)} {
			v := s.visual
			v.Transaction.Note, v.Branding.Footer = note, fmt.Sprintf("footer of client %d", i)
			visuals = append(visuals, v)
		}
	}
	alone := make([][]byte, len(visuals))
	for i, v := range visuals {
		made, err := newRenderer(t).Render(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		alone[i] = made.PDF
	}
	together := newRenderer(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for round := range 2 {
				for k := range visuals {
					i := (k*(g+1) + round) % len(visuals) // in another order each
					made, err := together.Render(t.Context(), visuals[i])
					if err != nil || !bytes.Equal(made.PDF, alone[i]) {
						t.Errorf("document %d is not the one that is made alone: %v", i, err)
					}
				}
			}
		})
	}
	all.Wait()
}

func TestMemoryOfHugeDocumentsIsNotKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, pages, page, elements int
		kept                        bool
	}{
		{document.FileKept, document.PagesKept, document.PageKept, document.ElementsKept, true},
		{document.FileKept + 1, 1, 1, 1, false},
		{1, document.PagesKept + 1, 1, 1, false},
		{1, 1, document.PageKept + 1, 1, false},
		{1, 1, 1, document.ElementsKept + 1, false},
	} {
		if kept := document.KeepsWorkspace(c.file, c.pages, c.page, c.elements); kept != c.kept {
			t.Errorf("%+v: kept %v", c, kept)
		}
	}
}

// A note whose lines are kept holds its own text, not the body from which it was cut.
func TestKeptNotesHoldNothingOfTheBodyTheyCameFrom(t *testing.T) {
	r := newRenderer(t)
	freed := make(chan struct{})
	func() {
		body := []byte(strings.Repeat(`{"note":"<p>Gracias por su <b>confianza</b>.</p>"}`, 1<<12))
		runtime.AddCleanup(&body[0], func(freed chan struct{}) { close(freed) }, freed)
		text := unsafe.String(&body[0], len(body))
		v := spanishInvoice(t)
		v.Transaction.Note = text[9 : 9+strings.Index(text[9:], `"`)]
		for range 2 {
			if _, err := r.Render(t.Context(), v); err != nil {
				t.Error(err)
			}
		}
	}()
	for late := time.After(2 * time.Minute); ; {
		runtime.GC()
		select {
		case <-freed:
			runtime.KeepAlive(r)
			return
		case <-late:
			t.Fatal("the body is still held")
		case <-time.After(10 * time.Millisecond): // cleanups run beside the collector
		}
	}
}

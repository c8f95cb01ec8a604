package filing_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"tributary/internal/alert"
	"tributary/internal/document"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// An object store that is away stops no filing: the document is registered,
// somebody is told once, and the result follows when the store is back.
func TestAnObjectStoreThatIsAwayIsToldAndNothingIsLost(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	var back atomic.Bool
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !back.Load() {
			http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		}
	}))
	t.Cleanup(store.Close)
	a := newAuthorities(t)
	s := a.Setup()
	s.Documents = "s3://docs?region=eu-central-1&use_path_style=true&endpoint=" + url.QueryEscape(store.URL)
	s.Render = func(context.Context, filing.Issued) (document.Rendering, error) {
		return document.Rendering{PDF: []byte("%PDF")}, nil
	}
	n := newNode(t, sqlite(t), s).Start()
	supplier := n.Supplier(byNumber, "s1")
	id := n.File(invoice(byNumber, supplier, "t1"))
	n.Until("somebody is told", func() bool { return len(n.Raised(alert.DocumentsUnavailable)) > 0 })
	same(t, "registered", fmt.Sprint(a.Registered(byNumber)), "[N-t1]")
	same(t, "status", n.Show(id).Status, filing.Processing)
	same(t, "the lane's reason", one[string](t, n.DB, "SELECT reason FROM lanes WHERE reason <> ''"),
		string(fault.DocumentsUnavailable))
	back.Store(true)
	n.Succeeds(id)
	same(t, "registered", fmt.Sprint(a.Registered(byNumber)), "[N-t1]")
	same(t, "told", n.Raised(alert.DocumentsUnavailable)["documents"], 1)
}

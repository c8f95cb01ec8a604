package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/api"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/site"
)

// TestTheDocumentationInABrowser reads the pages with axe, tries a call from
// one, searches, and does the same with the pages as files. It stands here
// because the browser does.
func TestTheDocumentationInABrowser(t *testing.T) {
	needs.NotInTheGate(t, "all pages of the documentation in a browser")
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	key, _, err := h.accounts.SigningKeys(t.Context(), clientID)
	must(t, err)
	a, err := api.New(api.Config{
		Accounts: h.accounts, Atlas: h.atlas, Transactions: h.service, Ledger: h.ledger, Companies: h.companies,
		Lookups: h.lookups, Hooks: h.hooks, BaseURL: "http://127.0.0.1:8080", Version: "test",
		Ready: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler),
		Demo: func() *site.Demo {
			return &site.Demo{Key: key.Text.RevealText(), Suppliers: map[string]string{"XX": h.supplier}}
		},
	})
	must(t, err)
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	files, err := a.Pages()
	must(t, err)
	folder := t.TempDir()
	for _, f := range files {
		must(t, os.WriteFile(filepath.Join(folder, f.Name), f.Content, 0o600))
	}
	c := h.chromium(server.URL+"/docs/", server.URL+"/v1/transactions", "file://"+folder)
	read := func(name string) {
		c.visit(server.URL + "/docs/" + name)
		c.fits(name)
		c.axe(name)
	}

	// Trying it: the key and the supplier are filled in, the next page knows the operation.
	read("postV1Transactions.html")
	c.click(`#tryform button[type=submit]`)
	c.shows("#tried pre")
	c.sees("202 Accepted in")
	c.visit(server.URL + "/docs/getV1TransactionsOperationId.html")
	c.click(`#tryform button[type=submit]`)
	c.sees(`"transaction_id": "order-1001"`)
	c.axe("after a call")
	c.content()

	c.types("#find", "authority_not_configured\r")
	c.sees("places for")
	c.axe("search")
	c.visit("file://" + folder + "/index.html")
	c.types("#find", "authority_not_configured\r")
	c.sees("places for")
	c.click("#hits a")
	c.sees("Where codes appear")
	c.content()

	kinds := map[string]bool{} // of pages that are made alike
	kind := func(name string) string {
		for _, alike := range []string{"decision-", "get", "post", "patch", "delete", "country-", "verify-"} {
			if strings.HasPrefix(name, alike) && !everyView() {
				return alike
			}
		}
		return name
	}
	c.views(func(view string) {
		for _, name := range []string{"index.html", "concepts.html", "reference.html", "postV1Transactions.html",
			"countries.html", "country-es.html", "search.html?q=webhook"} {
			if view != lastView && !everyView() && name != "postV1Transactions.html" && name != "country-es.html" {
				continue
			}
			read(name)
			kinds[kind(name)] = view == lastView
			c.shot("docs-" + strings.Split(name, ".")[0] + "-" + view)
		}
	})
	// All of them in the last view; of pages that are made alike one, unless there is time.
	for _, f := range files {
		if strings.HasPrefix(f.Media, "text/html") && !kinds[kind(f.Name)] {
			kinds[kind(f.Name)] = true
			read(f.Name)
		}
	}
	c.content()
	if resp, err := http.Get(server.URL + "/docs"); err != nil || resp.Request.URL.Path != "/docs/index.html" ||
		resp.Body.Close() != nil {
		t.Errorf("/docs leads to %v: %v", resp, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

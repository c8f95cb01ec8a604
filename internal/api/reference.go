package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"
)

// reference is the browsable page. Everything it loads is embedded in the
// binary, and its policy lets a browser load nothing else.
type reference struct {
	files  http.Handler
	page   []byte
	policy string
}

// newReference renders the page once: it is the same for everybody.
func newReference() (*reference, error) {
	files := v5emb.New("Tributary", "/openapi.json", "/docs/")
	request, err := http.NewRequest(http.MethodGet, "/docs", nil)
	if err != nil {
		return nil, err
	}
	written := &kept{head: http.Header{}}
	files.ServeHTTP(written, request)
	if written.status != 0 && written.status != http.StatusOK {
		return nil, fmt.Errorf("render the reference page: status %d", written.status)
	}
	page := written.body.Bytes()
	return &reference{files: files, page: page, policy: policyOf(page)}, nil
}

// policyOf allows the page its own inline scripts by their digests and nothing
// from elsewhere. Styles are set by script all over the page, so they are
// allowed inline.
func policyOf(page []byte) string {
	scripts := "'self'"
	for _, inline := range regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(inline[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'self'; script-src " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// kept is a ResponseWriter that keeps what is written.
type kept struct {
	head   http.Header
	body   bytes.Buffer
	status int
}

func (k *kept) Header() http.Header            { return k.head }
func (k *kept) Write(text []byte) (int, error) { return k.body.Write(text) }
func (k *kept) WriteHeader(status int)         { k.status = status }

func (a *API) referencePage(c *call) error {
	c.out.Header().Set("Content-Security-Policy", a.pages.policy)
	c.raw(http.StatusOK, "text/html; charset=utf-8", a.pages.page)
	return nil
}

// referenceFile serves what the page loads.
func (a *API) referenceFile(c *call) error {
	name := c.PathValue("asset")
	found := false
	if entries, err := static.FS.ReadDir("."); err == nil {
		for _, e := range entries {
			found = found || strings.TrimSuffix(e.Name(), ".gz") == name
		}
	}
	if !found {
		return notFound("there is no such file")
	}
	c.out.Header().Set("Content-Security-Policy", a.pages.policy)
	a.pages.files.ServeHTTP(c.out, c.Request)
	return nil
}

package reference

import (
	"crypto/rand"
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"net/url"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
	"tributary/internal/strictjson"
)

// Keys of the book: "code/" a code that was given to a browser, "grant/" the
// token of a supplier that has agreed.

var grantPage = template.Must(template.New("grant").Parse(`<!doctype html><html lang="en"><title>Reference authority</title>
<h1>May this platform act for {{.Supplier}}?</h1>
<form method="post"><button name="agree" value="yes">Agree</button> <button name="agree" value="no">Refuse</button></form></html>
`))

// grant serves GET and POST /v1/grant: the page on which a person agrees, and
// the way back.
func (a *double) grant(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Host == "" || query.Get("supplier") == "" || query.Get("state") == "" {
		http.Error(w, "supplier, state and redirect_uri are needed", http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = grantPage.Execute(w, map[string]string{"Supplier": query.Get("supplier")}) // a browser that left
		return
	}
	a.desk.Consented(w, r, back, query.Get("supplier"))
}

// token serves POST /v1/token: a code is good once.
func (a *double) token(w http.ResponseWriter, r *http.Request) {
	var in xxwire.Exchange
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, enrolmentBytesMax))
	if err != nil || strictjson.Unmarshal(text, enrolmentBytesMax, "the exchange", &in) != nil {
		refusal{http.StatusBadRequest, xxwire.CodeCall, "an exchange has supplier and code"}.write(w)
		return
	}
	token, known := rand.Text(), false
	err = a.desk.Write(func(b *authority.Book) {
		supplier, ok := b.Get("code/" + in.Code)
		if known = ok && supplier == in.Supplier && supplier != ""; known {
			b.Put("code/"+in.Code, "")
			b.Put("grant/"+in.Supplier, token)
		}
	})
	switch {
	case err != nil:
		refusal{http.StatusInternalServerError, xxwire.CodeInternalError, "the book cannot be written"}.write(w)
	case !known:
		refusal{http.StatusForbidden, xxwire.CodeGrant, "the code is not known or was used"}.write(w)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(xxwire.Granted{Token: token}) // a caller that left must ask for another code
	}
}

// ungranted reports whether a supplier that has granted is called for without its token.
func (a *double) ungranted(r *http.Request, supplier string) (missing bool) {
	a.desk.Read(func(b *authority.Book) {
		token, granted := b.Get("grant/" + supplier)
		missing = granted && r.Header.Get(xxwire.HeaderGrant) != token
	})
	return missing
}

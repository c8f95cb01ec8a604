package authority

import (
	"crypto/rand"
	"net/http"
	"net/url"
)

// Consented sends a browser back with what its person has decided: a code, good once,
// that stands in the book as "code/" and names what was agreed to, or that there is none.
func (d *Desk) Consented(w http.ResponseWriter, r *http.Request, back *url.URL, agreedTo string) {
	brought := url.Values{"state": {r.URL.Query().Get("state")}}
	if r.PostFormValue("agree") != "yes" {
		brought.Set("error", "access_denied")
	} else {
		code := rand.Text()
		if err := d.Write(func(b *Book) { b.Put("code/"+code, agreedTo) }); err != nil {
			http.Error(w, "the book cannot be written", http.StatusInternalServerError)
			return
		}
		brought.Set("code", code)
	}
	back.RawQuery = brought.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

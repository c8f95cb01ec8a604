package pa

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/authority"
)

// token gives a token to a client that shows its secret (RFC 6749, section 4.4).
func (a *double) token(w http.ResponseWriter, r *http.Request) {
	turn, ok := a.question(w)
	if !ok {
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	id, _ = url.QueryUnescape(id)
	switch {
	case r.PostFormValue("grant_type") != "client_credentials":
		authority.WriteJSON(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
		return
	case id == "" || secret == "" || secret == "wrong":
		authority.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	text := rand.Text()
	if a.desk.Write(func(b *authority.Book) {
		b.Put("token/"+text, a.now().UTC().Add(tokenFor).Format(time.RFC3339Nano))
	}) != nil || !turn.End(w, r) {
		return
	}
	authority.WriteJSON(w, http.StatusOK, map[string]any{"access_token": text, "token_type": "Bearer", "expires_in": int(tokenFor.Seconds())})
}

// authorized lets a call with a good token through.
func (a *double) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		good := false
		a.desk.Read(func(b *authority.Book) {
			ends, err := time.Parse(time.RFC3339Nano, b.Text("token/"+text))
			good = err == nil && a.now().Before(ends)
		})
		if !bearer || !good {
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "the token is not known, or has ended")
			return
		}
		next(w, r)
	}
}

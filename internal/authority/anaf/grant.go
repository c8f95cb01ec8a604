package anaf

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tributary/internal/authority"
)

// Lifetimes of tokens.
const (
	accessFor  = time.Hour
	refreshFor = 365 * 24 * time.Hour
)

// Keys of the book: "code/" a code that was given to a browser, with its address;
// "refresh/" a refresh token that is good; "access/" until when an access token is.

var grantPage = template.Must(template.New("grant").Parse(`<!doctype html><html lang="ro"><title>ANAF (simulated)</title>
<h1>May the application {{.}} act for you in RO e-Factura?</h1>
<form method="post"><button name="agree" value="yes">Agree</button> <button name="agree" value="no">Refuse</button></form></html>
`))

// authorized lets a call with a good access token through.
func (a *double) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		good := token == AccessToken
		a.desk.Read(func(b *authority.Book) {
			if until, known := b.Get("access/" + token); known {
				end, err := time.Parse(time.RFC3339, until)
				good = err == nil && a.now().Before(end)
			}
		})
		if !bearer || !good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

// authorize serves the page on which a person agrees, with a certificate in the
// browser at ANAF itself, and the way back.
func (a *double) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Host == "" || query.Get("client_id") == "" || query.Get("response_type") != "code" ||
		query.Get("token_content_type") != "jwt" || query.Get("state") == "" {
		http.Error(w, "response_type=code, token_content_type=jwt, client_id, state and redirect_uri are needed", http.StatusBadRequest)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = grantPage.Execute(w, query.Get("client_id")) // a browser that left
		return
	}
	a.desk.Consented(w, r, back, query.Get("redirect_uri"))
}

// token exchanges a code, or a refresh token that dies with it.
func (a *double) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic || id == "" || secret == "" || secret == "wrong" {
		authority.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	turn, ok := a.question(w)
	if !ok {
		return
	}
	old, code := r.PostFormValue("refresh_token"), r.PostFormValue("code")
	now := a.now().UTC()
	access, refresh := jwt(now.Add(accessFor)), jwt(now.Add(refreshFor))
	good := false
	err := a.desk.Write(func(b *authority.Book) {
		switch r.PostFormValue("grant_type") {
		case "authorization_code":
			address, known := b.Get("code/" + code)
			if good = known && address == r.PostFormValue("redirect_uri") && r.PostFormValue("token_content_type") == "jwt"; known {
				b.Put("code/"+code, "")
			}
		case "refresh_token":
			_, known := b.Get("refresh/" + old)
			if good = known || strings.HasPrefix(old, "demo-"); known {
				b.Put("refresh/"+old, "")
			}
		}
		if good {
			b.Put("refresh/"+refresh, id)
			b.Put("access/"+access, now.Add(accessFor).Format(time.RFC3339))
		}
	})
	switch {
	case err != nil:
		http.Error(w, "the book cannot be written", http.StatusInternalServerError)
	case !turn.End(w, r):
	case !good:
		authority.WriteJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "unknown, invalid, or expired refresh token"})
	default:
		authority.WriteJSON(w, http.StatusOK, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer",
			"expires_in": int(accessFor.Seconds())})
	}
}

// jwt is a token that says when it ends; its signature is nobody's.
func jwt(ends time.Time) string {
	part := func(v any) string {
		text, _ := json.Marshal(v) // plain data always encodes
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]string{"alg": "RS512", "typ": "JWT"}) + "." +
		part(map[string]any{"exp": ends.Unix(), "jti": rand.Text()}) + "." + base64.RawURLEncoding.EncodeToString([]byte(rand.Text()))
}

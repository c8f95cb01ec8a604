package console

import (
	"net/http"
	"strings"
	"time"

	"tributary/internal/account"
)

// The policies of content. Nothing is loaded from anywhere but here, nothing
// inline runs, nobody may frame a page. A page that shows a document may embed
// one of our own, and that document may be embedded by us alone.
const (
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

	pageWithDocumentPolicy = pagePolicy + "; object-src 'self'; frame-src 'self'"

	// A viewer built into the browser brings styles of its own, so a PDF gets no
	// style rule; it gets no script and no network.
	documentPolicy = "script-src 'none'; connect-src 'none'; frame-ancestors 'self'"
)

// cookies is what browsers are told and bring along.
type cookies struct{ cfg *Config }

func (c *cookies) guardHeaders(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with it browsers send "Origin: null", by which a POST of
	// our own page looks like a stranger's.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy",
		"accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), payment=(), usb=()")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Cache-Control", "no-store")
	if c.cfg.Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// cookieName has the prefix that binds a cookie to HTTPS and to this host alone,
// where there is HTTPS.
func (c *cookies) cookieName(name string) string {
	if c.cfg.Secure {
		return "__Host-" + name
	}
	return name
}

// cookiePath is where a cookie goes: the prefix of its name allows no path but
// the root.
func (c *cookies) cookiePath(path string) string {
	if c.cfg.Secure {
		return "/"
	}
	return path
}

const sessionCookie = "tributary_console"

func (c *cookies) setCookie(w http.ResponseWriter, token string, until time.Time) {
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(sessionCookie), Value: token, Path: c.cookiePath(Root),
		Expires: until, HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteStrictMode})
}

func (c *cookies) dropCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(sessionCookie), Path: c.cookiePath(Root), MaxAge: -1,
		HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteStrictMode})
}

func (c *cookies) cookie(r *http.Request) string {
	k, err := r.Cookie(c.cookieName(sessionCookie))
	if err != nil {
		return ""
	}
	return k.Value
}

// address is where a request comes from, as the API reads it.
func (c *cookies) address(r *http.Request) string {
	at := account.AddressOf(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), c.cfg.TrustProxy)
	if !at.IsValid() {
		return ""
	}
	return at.String()
}

// local answers a path of the console that a form may lead back to. Anything
// else, another host above all, becomes the overview.
func local(path string) string {
	if !strings.HasPrefix(path, Root+"/") || strings.ContainsAny(path, "\\\r\n\t") ||
		strings.HasPrefix(path, Root+"/sign-") || strings.HasPrefix(path, Root+"/live/") {
		return Root + "/"
	}
	return path
}

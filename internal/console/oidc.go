package console

import (
	"net/http"

	"tributary/internal/fault"
	"tributary/internal/operator"
)

// The way through an identity provider, below a path of its own: its cookie
// must come back in a request that another site begins, so it is Lax, and
// without HTTPS it goes nowhere else; with HTTPS its name binds it to the host.
const (
	oidcPath       = Root + "/oidc"
	oidcTicketSecs = 600
)

// OIDCFinish is the path that a provider sends browsers back to: the redirect
// address registered there is the admin address followed by it.
const OIDCFinish = oidcPath + "/finish"

func (c *entry) ticketCookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: c.cookies.cookieName("tributary_oidc"), Value: value, Path: c.cookies.cookiePath(oidcPath), MaxAge: age,
		HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteLaxMode}
}

func (c *entry) oidcBegin(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	to, ticket, err := c.cfg.OIDC.Begin(r.Context(), next)
	if err != nil {
		c.notLetIn(w, next, err)
		return
	}
	http.SetCookie(w, c.ticketCookie(ticket, oidcTicketSecs))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// notLetIn answers the sign-in page with what a person can do about it.
func (c *entry) notLetIn(w http.ResponseWriter, next string, err error) {
	d := c.entrance()
	d.Next = next
	d.Message = "The identity provider refused the sign-in."
	status, told := http.StatusUnauthorized, asFault(err)
	if told != nil && told.Kind != fault.Internal {
		d.Message = sentence(told.Message)
		status, _ = statusOf(told.Kind)
	}
	if told == nil || told.Kind == fault.Internal || told.Kind == fault.Unavailable {
		c.log.Error("console", "path", oidcPath, "error", err)
	}
	c.door(w, status, d)
}

// oidcFinish answers a page that leads on by itself: the session's cookie is
// strict, and a browser does not send it in a chain of redirects that another
// site began.
func (c *entry) oidcFinish(w http.ResponseWriter, r *http.Request) {
	ticket := ""
	if k, err := r.Cookie(c.cookies.cookieName("tributary_oidc")); err == nil {
		ticket = k.Value
	}
	http.SetCookie(w, c.ticketCookie("", -1))
	token, s, next, err := c.cfg.OIDC.Finish(r.Context(), ticket, r.URL.Query(),
		operator.Attempt{IP: c.cookies.address(r), Agent: r.UserAgent()})
	if err != nil {
		c.notLetIn(w, Root+"/", err)
		return
	}
	c.cookies.setCookie(w, token.RevealText(), s.EndsAt)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := c.front.pages.ExecuteTemplate(w, "onward", local(next)); err != nil {
		c.log.Error("console", "path", oidcPath, "error", err)
	}
}

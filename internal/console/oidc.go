package console

import (
	"net/http"

	"tributary/internal/fault"
	"tributary/internal/operator"
)

// The way through an identity provider, below a path of its own: its cookie
// must come back in a request that another site begins, so it is Lax, and it
// goes nowhere else.
const (
	oidcPath       = Root + "/oidc"
	oidcTicketSecs = 600
)

func (c *Console) ticketCookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: "tributary_oidc", Value: value, Path: oidcPath, MaxAge: age, HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteLaxMode}
}

func (c *Console) oidcBegin(w http.ResponseWriter, r *http.Request) {
	to, ticket, err := c.cfg.OIDC.Begin(local(r.URL.Query().Get("next")))
	if err != nil {
		c.fail(w, r, nil, err)
		return
	}
	http.SetCookie(w, c.ticketCookie(ticket, oidcTicketSecs))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// oidcFinish answers a page that leads on by itself: the session's cookie is
// strict, and a browser does not send it in a chain of redirects that another
// site began.
func (c *Console) oidcFinish(w http.ResponseWriter, r *http.Request) {
	ticket := ""
	if k, err := r.Cookie("tributary_oidc"); err == nil {
		ticket = k.Value
	}
	http.SetCookie(w, c.ticketCookie("", -1))
	token, s, next, err := c.cfg.OIDC.Finish(r.Context(), ticket, r.URL.Query(), operator.Attempt{IP: c.address(r), Agent: r.UserAgent()})
	if err != nil {
		d := c.entrance()
		d.Message = "The identity provider did not let you in."
		if told := asFault(err); told != nil && told.Kind != fault.Internal {
			d.Message = sentence(told.Message)
		} else {
			c.log.Error("console", "path", oidcPath, "error", err)
		}
		c.door(w, http.StatusUnauthorized, d)
		return
	}
	c.setCookie(w, token.RevealText(), s.EndsAt)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := c.pages.ExecuteTemplate(w, "onward", local(next)); err != nil {
		c.log.Error("console", "path", oidcPath, "error", err)
	}
}

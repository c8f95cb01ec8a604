package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// entry signs operators in and out, with their second factors and their
// organisation's sign-in.
type entry struct {
	cfg     *Config
	log     *slog.Logger
	front   *front
	cookies *cookies
}

// door is what the sign-in page shows.
type door struct {
	Name, Next, Message string
	Wait                time.Duration
	OIDC                bool
}

func (c *entry) entrance() door { return door{Next: Root + "/", OIDC: c.cfg.OIDC != nil} }

func (c *front) toSignIn(w http.ResponseWriter, r *http.Request) {
	at := Root + "/sign-in"
	if next := local(r.URL.RequestURI()); r.Method == http.MethodGet && next != Root+"/" {
		at += "?next=" + url.QueryEscape(next)
	}
	http.Redirect(w, r, at, http.StatusSeeOther)
}

func (c *entry) signInPage(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	if _, err := c.front.signedIn(r, false); err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	d := c.entrance()
	d.Next = next
	c.door(w, http.StatusOK, d)
}

func (c *entry) door(w http.ResponseWriter, status int, d door) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := c.front.pages.ExecuteTemplate(w, "sign-in", d); err != nil {
		c.log.Error("console", "path", Root+"/sign-in", "error", err)
	}
}

// signIn checks name and password. A session that a browser brings along is
// never taken over: signing in makes a new one, so nobody can plant one.
func (c *entry) signIn(w http.ResponseWriter, r *http.Request) {
	d := c.entrance()
	if err := c.front.cross.Check(r); err != nil {
		d.Message = "This form was sent from another site. Sign in here."
		c.door(w, http.StatusForbidden, d)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	if err := r.ParseForm(); err != nil {
		d.Message = "The form is not valid."
		c.door(w, http.StatusBadRequest, d)
		return
	}
	d.Name, d.Next = r.PostFormValue("name"), local(r.PostFormValue("next"))
	token, s, err := c.cfg.Operators.SignIn(r.Context(), operator.Attempt{
		Name: d.Name, Password: secret.New([]byte(r.PostFormValue("password"))), IP: c.cookies.address(r), Agent: r.UserAgent(),
		Device: c.deviceOf(r),
	})
	if err == nil {
		c.cookies.setCookie(w, token.RevealText(), s.EndsAt)
		c.remember(w, r, s.Name)
		http.Redirect(w, r, d.Next, http.StatusSeeOther)
		return
	}
	if waits := asHalfway(err); waits != nil {
		c.setHalfway(w, waits.Token.RevealText(), waits.Until)
		http.Redirect(w, r, secondPath+"?next="+url.QueryEscape(d.Next), http.StatusSeeOther)
		return
	}
	c.refuse(w, d, err)
}

// refuse answers the sign-in page with why nobody is in.
func (c *entry) refuse(w http.ResponseWriter, d door, err error) {
	switch kind := fault.KindOf(err); kind {
	case fault.Unauthenticated, fault.Invalid:
		d.Message = "Incorrect name or password."
		c.door(w, http.StatusUnauthorized, d)
	case fault.Limited, fault.Unavailable:
		if told := asFault(err); told.RetryAfter > 0 {
			d.Wait = told.RetryAfter.Round(time.Second)
			w.Header().Set("Retry-After", strconv.Itoa(int(max(told.RetryAfter.Seconds(), 1))))
		}
		d.Message = "Too many attempts."
		if kind == fault.Unavailable {
			d.Message = "The service is unavailable. Try again later."
		}
		status, _ := statusOf(kind)
		c.door(w, status, d)
	default:
		c.log.Error("console", "path", Root+"/sign-in", "error", err)
		d.Message = "Internal error. See the service's log for details."
		c.door(w, http.StatusInternalServerError, d)
	}
}

const deviceCookie = "tributary_device"

func (c *entry) deviceOf(r *http.Request) string {
	if k, err := r.Cookie(c.cookies.cookieName(deviceCookie)); err == nil {
		return k.Value
	}
	return ""
}

// remember lets a browser prove later that this operator has signed in with it.
// Without it the operator is in all the same.
func (c *entry) remember(w http.ResponseWriter, r *http.Request, name string) {
	proof, until, err := c.cfg.Operators.Remember(r.Context(), name)
	if err != nil {
		c.log.Warn("remember a browser", "error", err)
	}
	if proof != "" {
		http.SetCookie(w, &http.Cookie{Name: c.cookies.cookieName(deviceCookie), Value: proof, Path: c.cookies.cookiePath(Root),
			Expires: until, HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteStrictMode})
	}
}

func (c *entry) signOut(v *request) (string, error) {
	if err := c.cfg.Operators.SignOut(v.ctx, v.session); err != nil {
		return "", err
	}
	c.cookies.dropCookie(v.w)
	return Root + "/sign-in", nil
}

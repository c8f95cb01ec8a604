package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rsc.io/qr"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
)

// The second half of a sign-in has a cookie and a path of its own: what it holds
// is no session and never reaches a page of the console.
const (
	halfwayCookie = "tributary_halfway"
	secondPath    = Root + "/sign-in/second"
)

func (c *entry) halfwayToken(r *http.Request) string {
	if k, err := r.Cookie(c.cookies.cookieName(halfwayCookie)); err == nil {
		return k.Value
	}
	return ""
}

func (c *entry) setHalfway(w http.ResponseWriter, token string, until time.Time) {
	k := &http.Cookie{Name: c.cookies.cookieName(halfwayCookie), Value: token, Path: c.cookies.cookiePath(Root), Expires: until,
		HttpOnly: true, Secure: c.cfg.Secure, SameSite: http.SameSiteStrictMode}
	if token == "" {
		k.MaxAge = -1
	}
	http.SetCookie(w, k)
}

// passkeyQuestion is what the script asks the browser. Without a domain there
// are no passkeys.
type passkeyQuestion struct {
	Domain    string   `json:"domain"`
	Challenge string   `json:"challenge"`
	Known     []string `json:"known"` // ids: to choose from, or not to be made again
	Handle    string   `json:"handle"`
	Name      string   `json:"name"`
	Kinds     []int    `json:"kinds"`
}

// Text is the question as an attribute carries it.
func (q passkeyQuestion) Text() (string, error) {
	text, err := json.Marshal(q)
	return string(text), err
}

func (c *entry) question(name string, challenge []byte, f operator.Factors) passkeyQuestion {
	b64 := base64.RawURLEncoding
	q := passkeyQuestion{Domain: c.cfg.Operators.PasskeyDomain(), Challenge: b64.EncodeToString(challenge),
		Known: []string{}, Handle: b64.EncodeToString(operator.Handle(name)), Name: name, Kinds: operator.PasskeyAlgorithms()}
	for _, k := range f.Passkeys {
		q.Known = append(q.Known, k.ID)
	}
	return q
}

// secondBody is what the pages of the second half show.
type secondBody struct {
	Next, Message string
	Wait          time.Duration
	CSRF          string
	Factors       operator.Factors
	Question      passkeyQuestion
	Offer         *operator.Offer // of a new app
	Enrol         bool            // at the door: before anything else
	Fresh         bool            // factors may be changed now
	Required      bool
	Codes         []string
}

// secondPage asks for the second factor, or for the first one of an operator.
func (c *entry) secondPage(w http.ResponseWriter, r *http.Request) {
	c.showSecond(w, r, http.StatusOK, secondBody{Next: local(r.URL.Query().Get("next"))})
}

func (c *entry) showSecond(w http.ResponseWriter, r *http.Request, status int, b secondBody) {
	waits, err := c.cfg.Operators.Waiting(r.Context(), c.halfwayToken(r))
	if err == nil {
		b.CSRF, b.Factors, b.Enrol = waits.CSRF, waits.Factors, !waits.Factors.Any()
		b.Question = c.question(waits.Name, waits.Challenge, waits.Factors)
		if b.Enrol && b.Offer == nil {
			b.Offer, err = c.offer(r, waits.Name)
		}
	}
	if err != nil {
		c.backToDoor(w, b.Next, err)
		return
	}
	name := "second"
	if b.Enrol {
		name = "enrol"
	}
	c.bare(w, status, name, b)
}

func (c *entry) offer(r *http.Request, name string) (*operator.Offer, error) {
	o, err := c.cfg.Operators.Offer(r.Context(), name)
	return &o, err
}

// bare answers a page without the frame of the console.
func (c *entry) bare(w http.ResponseWriter, status int, name string, body any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := c.front.pages.ExecuteTemplate(w, name, body); err != nil {
		c.log.Error("console", "path", secondPath, "error", err)
	}
}

// backToDoor lets somebody begin again whose half sign-in is over.
func (c *entry) backToDoor(w http.ResponseWriter, next string, err error) {
	d := c.entrance()
	d.Next, d.Message = next, "The sign-in expired, or there were too many attempts. Sign in again."
	status, known := statusOf(fault.KindOf(err))
	if !known || status == http.StatusServiceUnavailable {
		c.log.Error("console", "path", secondPath, "error", err)
		d.Message = "The service is unavailable. Try again later."
	}
	c.setHalfway(w, "", time.Time{})
	c.door(w, status, d)
}

// second takes the second factor, or the first one of an operator.
func (c *entry) second(w http.ResponseWriter, r *http.Request) {
	if err := c.front.cross.Check(r); err != nil {
		c.backToDoor(w, Root+"/", fault.New(fault.Forbidden, "another site"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
	if err := r.ParseForm(); err != nil {
		c.backToDoor(w, Root+"/", fault.New(fault.Invalid, "the form is not valid"))
		return
	}
	token, b := c.halfwayToken(r), secondBody{Next: local(r.PostFormValue("next"))}
	waits, err := c.cfg.Operators.Waiting(r.Context(), token)
	if err != nil {
		c.backToDoor(w, b.Next, err)
		return
	}
	if r.PostFormValue("csrf") != waits.CSRF {
		c.backToDoor(w, b.Next, fault.New(fault.Forbidden, "another form"))
		return
	}
	if waits.Factors.Any() {
		c.prove(w, r, token, b)
		return
	}
	c.enrolAtDoor(w, r, token, b)
}

func (c *entry) attempt(r *http.Request) operator.Attempt {
	return operator.Attempt{IP: c.cookies.address(r), Agent: r.UserAgent()}
}

func (c *entry) prove(w http.ResponseWriter, r *http.Request, token string, b secondBody) {
	session, s, err := c.cfg.Operators.Finish(r.Context(), token,
		operator.Proof{Code: r.PostFormValue("code"), Passkey: r.PostFormValue("passkey")}, c.attempt(r))
	if err == nil {
		c.letIn(w, r, session.RevealText(), s)
		http.Redirect(w, r, b.Next, http.StatusSeeOther)
		return
	}
	kind := fault.KindOf(err)
	status, known := statusOf(kind)
	b.Message = "Incorrect code, or it was already used."
	switch {
	case !known:
		c.backToDoor(w, b.Next, err)
		return
	case kind == fault.Limited:
		told := asFault(err)
		b.Message, b.Wait = "Too many attempts.", told.RetryAfter.Round(time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(int(max(told.RetryAfter.Seconds(), 1))))
	}
	c.showSecond(w, r, status, b)
}

func (c *entry) letIn(w http.ResponseWriter, r *http.Request, token string, s operator.Session) {
	c.setHalfway(w, "", time.Time{})
	c.cookies.setCookie(w, token, s.EndsAt)
	c.remember(w, r, s.Name)
}

func enrolment(r *http.Request) operator.Enrolment {
	return operator.Enrolment{Ticket: r.PostFormValue("ticket"), Code: r.PostFormValue("code"),
		Passkey: r.PostFormValue("passkey"), Label: r.PostFormValue("label")}
}

func (c *entry) enrolAtDoor(w http.ResponseWriter, r *http.Request, token string, b secondBody) {
	session, s, codes, err := c.cfg.Operators.FinishEnrolment(r.Context(), token, enrolment(r), c.attempt(r))
	if err == nil {
		c.letIn(w, r, session.RevealText(), s)
		b.Codes = codes
		c.bare(w, http.StatusOK, "codes", b)
		return
	}
	told := asFault(err)
	if status, known := statusOf(fault.KindOf(err)); known && told != nil && told.Kind != fault.Unauthenticated {
		b.Message = sentence(told.Message)
		c.showSecond(w, r, status, b)
		return
	}
	c.backToDoor(w, b.Next, err)
}

// secondFactors is an operator's own page about them.
func (c *entry) secondFactors(v *request) (page, error) {
	b := &secondBody{Fresh: v.session.Fresh(c.cfg.DB.Now()), Required: c.cfg.Operators.SecondRequired()}
	p := page{Title: "Second factors", Place: "Your account", Crumbs: []crumb{{"Your account", Root + "/account"}}, Body: b}
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) (err error) {
		b.Factors, err = c.cfg.Operators.Factors(r, v.session.Name)
		return err
	})
	if err != nil {
		return p, err
	}
	b.Question = c.question(v.session.Name, v.session.Challenge(), b.Factors)
	if !b.Factors.App && b.Fresh {
		b.Offer, err = c.offer(v.r, v.session.Name)
	}
	return p, err
}

const secondAt = Root + "/account/second"

// enrol adds a factor; with the first one come recovery codes.
func (c *entry) enrol(v *request) error {
	codes, err := c.cfg.Operators.Enrol(v.ctx, v.session, enrolment(v.r))
	if err != nil {
		return err
	}
	if len(codes) == 0 {
		v.redirect(secondAt + "?notice=factor")
		return nil
	}
	return c.showCodes(v, codes)
}

func (c *entry) showCodes(v *request, codes []string) error {
	return c.front.showOnce(v, "Recovery codes", "Account",
		shown{What: "Recovery codes", Subject: v.session.Name, Secret: strings.Join(codes, "\n"),
			Advice: "Each signs you in once, together with your password, if you lose your second factor. Store them separately from it.", Back: secondAt})
}

func (c *entry) renewCodes(v *request) error {
	codes, err := c.cfg.Operators.RenewRecovery(v.ctx, v.session)
	if err != nil {
		return err
	}
	return c.showCodes(v, codes)
}

func (c *entry) removeFactor(v *request) (string, error) {
	if id := v.r.PostFormValue("passkey"); id != "" {
		return secondAt + "?notice=factor", c.cfg.Operators.RemovePasskey(v.ctx, v.session, id)
	}
	return secondAt + "?notice=factor", c.cfg.Operators.RemoveApp(v.ctx, v.session)
}

// picture draws a text as a QR code. It is black on white in every scheme:
// phones read no other.
func picture(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", err
	}
	const quiet = 4 // modules of white around it
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	side := code.Size + 2*quiet
	return template.HTML(fmt.Sprintf(`<svg class="code" viewBox="0 0 %d %d" role="img" aria-label="QR code of the key"><path fill="#fff" d="M0 0h%dv%dh-%dz"/><path fill="#000" d="%s"/></svg>`, side, side, side, side, side, path.String())), nil
}

// asHalfway finds out whether a sign-in waits for its second half.
func asHalfway(err error) *operator.Halfway {
	var waits *operator.Halfway
	if errors.As(err, &waits) {
		return waits
	}
	return nil
}

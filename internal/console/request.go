package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
)

// request is an HTTP request of an operator who is signed in.
type request struct {
	ctx     context.Context
	w       http.ResponseWriter // nil on a stream of updates
	r       *http.Request
	session operator.Session
}

// by is who acts, for the audit log.
func (v *request) by() audit.Actor { return v.session.Actor() }

func (v *request) redirect(to string) { http.Redirect(v.w, v.r, to, http.StatusSeeOther) }

// page is what a view answers.
type page struct {
	Title  string
	Place  string  // the entry of the navigation that is current
	Crumbs []crumb // what stands above
	Client string  // whose it is: the page says whether that one is live; "": of nobody, or of many
	Body   any     // the template's own
}

type crumb struct{ Name, Address string }

// frame is what every template sees.
type frame struct {
	page
	Session operator.Session
	CSRF    string
	Notice  notice
	Places  []group
	Query   url.Values
	Path    string
	LiveAt  string        // address of the page's updates; "" without
	Region  template.HTML // the live part as it is now
	Content template.HTML
	Version string
	Demo    bool
}

// May reports whether who looks may do what needs a role; templates leave out
// what the routes would refuse anyway.
func (f frame) May(role string) bool { return f.Session.Role.Allows(operator.Role(role)) }

type group struct {
	Name  string
	Links []place
}

type place struct {
	Name, Address string
	Current       bool
	Tally         int
}

// front is what all pages share: who asks, the layout around a page, and what
// is answered where something fails.
type front struct {
	cfg      *Config
	log      *slog.Logger
	pages    *template.Template
	cross    *http.CrossOriginProtection
	cookies  *cookies
	refusals *rate.Limiter // notes in the log
}

// handle makes a handler of a route.
func (c *Console) handle(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		out := &recorder{ResponseWriter: w, status: http.StatusOK}
		c.answer(out, r, rt)
		c.took.WithLabelValues(rt.method+" "+Root+rt.path, strconv.Itoa(out.status)).Observe(time.Since(begun).Seconds())
	})
}

// recorder remembers the status for the metric.
type recorder struct {
	http.ResponseWriter
	status int
}

func (o *recorder) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

func (c *Console) answer(w http.ResponseWriter, r *http.Request, rt route) {
	v, err := c.front.signedIn(r, true)
	if fault.KindOf(err) == fault.Unauthenticated {
		c.front.toSignIn(w, r)
		return
	}
	if err != nil {
		c.front.fail(w, r, nil, err)
		return
	}
	v.w = w
	if !v.session.Role.Allows(rt.role) {
		err = fault.New(fault.Forbidden, "This needs the role %s; yours is %s.", rt.role, v.session.Role)
	} else if r.Method == http.MethodPost {
		err = c.front.checkForm(v)
	}
	if err != nil {
		c.front.noteRefusal(v, rt, err)
		c.front.fail(w, r, v, err)
		return
	}
	if err := checkText(r); err != nil {
		c.front.fail(w, r, v, err)
		return
	}
	switch {
	case rt.serve != nil:
		err = rt.serve(v)
	case rt.act != nil:
		var to string
		if to, err = rt.act(v); err == nil {
			http.Redirect(w, r, to, http.StatusSeeOther)
		}
	default:
		var p page
		if p, err = rt.show(v); err == nil {
			err = c.front.render(v, rt, p)
		}
	}
	if err != nil {
		c.front.fail(w, r, v, err)
	}
}

// Refusals that the log keeps: a page that asks again and again must not fill it.
const (
	refusalsPerSecond = 1
	refusalsBurst     = 50
)

// noteRefusal writes down what somebody who has signed in may not do, or what
// another site tried in their name. The refusal does not wait for the note.
func (c *front) noteRefusal(v *request, rt route, err error) {
	if fault.KindOf(err) != fault.Forbidden || !c.refusals.Allow() {
		return
	}
	if err := c.cfg.Operators.Refused(v.ctx, v.session.Actor(), rt.method+" "+rt.path, asFault(err).Message); err != nil {
		c.log.Error("record what was refused", "operator", v.session.Name, "path", rt.path, "error", err)
	}
}

// signedIn finds the session of a request. touch says that it is the operator
// who asks, and not the page by itself.
func (c *front) signedIn(r *http.Request, touch bool) (*request, error) {
	token := c.cookies.cookie(r)
	if token == "" {
		return nil, fault.New(fault.Unauthenticated, "not signed in")
	}
	look := c.cfg.Operators.Watch
	if touch {
		look = c.cfg.Operators.Session
	}
	s, err := look(r.Context(), token)
	if err != nil {
		return nil, err
	}
	return &request{ctx: r.Context(), r: r, session: s}, nil
}

// checkForm refuses what does not come from a page of ours in this session. The
// browser's own word on where a request comes from is checked first, then the
// token, which also protects where a browser says nothing.
func (c *front) checkForm(v *request) error {
	stale := fault.New(fault.Forbidden, "This form does not belong to your session. Go back, reload the page and try again.")
	if err := c.cross.Check(v.r); err != nil {
		return stale.Because(err)
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, logoFormMax)
	var err error
	if strings.HasPrefix(v.r.Header.Get("Content-Type"), "multipart/form-data") {
		err = v.r.ParseMultipartForm(logoFormMax)
	} else {
		err = v.r.ParseForm()
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fault.New(fault.TooLarge, "The request is larger than %d KiB.", logoFormMax>>10)
	}
	if err != nil {
		return fault.New(fault.Invalid, "The form is not valid.").Because(err)
	}
	if !v.session.CheckCSRF(v.r.PostFormValue("csrf")) {
		return stale
	}
	return nil
}

// checkText refuses what could not be looked for.
func checkText(r *http.Request) error {
	texts := []string{r.URL.Path}
	for _, values := range []url.Values{r.URL.Query(), r.PostForm} {
		for name, list := range values {
			texts = append(append(texts, name), list...)
		}
	}
	for _, text := range texts {
		if !db.Storable(text) {
			return fault.New(fault.Invalid, "The URL or the form contains bytes that are not valid text.")
		}
	}
	return nil
}

// render answers a whole page. It is made before its first byte is sent, so
// that a page is never cut off by an error in the middle.
func (c *front) render(v *request, rt route, p page) error {
	f := c.frame(v, rt, p)
	if rt.live {
		region, digest, err := c.region(v, rt, p)
		if err != nil {
			return err
		}
		f.Region = template.HTML(region) // html/template made it a line above
		query := v.r.URL.Query()
		query.Del("notice")
		query.Set("seen", digest)
		f.LiveAt = Root + "/live" + strings.TrimPrefix(v.r.URL.EscapedPath(), Root) + "?" + query.Encode()
	}
	if rt.embeds {
		v.w.Header().Set("Content-Security-Policy", pageWithDocumentPolicy)
	}
	return c.write(v.w, http.StatusOK, rt.template, f)
}

// write renders a template into the layout.
func (c *front) write(w http.ResponseWriter, status int, name string, f frame) error {
	var b bytes.Buffer
	if err := c.pages.ExecuteTemplate(&b, name, f); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	f.Content = template.HTML(b.String()) // html/template made it a line above
	b.Reset()
	if err := c.pages.ExecuteTemplate(&b, "layout", f); err != nil {
		return fmt.Errorf("render the layout: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes())
	return nil
}

func (c *front) frame(v *request, rt route, p page) frame {
	query := v.r.URL.Query()
	f := frame{page: p, Session: v.session, CSRF: v.session.CSRF, Notice: noticeOf(query.Get("notice")), Query: query,
		Path: v.r.URL.Path, Version: c.cfg.Version, Demo: c.cfg.Simulators != ""}
	if v.w != nil { // a stream of updates sends no navigation
		f.Places = c.places(v, p.Place)
	}
	return f
}

// places is the navigation. The count of open alerts is decoration: without it
// the page is still worth showing.
func (c *front) places(v *request, current string) []group {
	open := 0
	err := c.cfg.DB.Read(v.ctx, func(r db.Reader) error {
		list, err := alert.List(r, alert.Filter{Open: true, Limit: alertsShown})
		open = len(list)
		return err
	})
	if err != nil {
		c.log.Warn("count the open alerts", "error", err)
	}
	link := func(name, path string) place {
		return place{Name: name, Address: Root + path, Current: name == current}
	}
	alerts := link("Alerts", "/alerts")
	alerts.Tally = open
	groups := []group{
		{Name: "Now", Links: []place{link("Overview", "/"), alerts, link("Queues", "/queues")}},
		{Name: "Work", Links: []place{link("Transactions", "/transactions"), link("Periods", "/periods"),
			link("Deliveries", "/deliveries"), link("Lookups", "/lookups")}},
		{Name: "Parties", Links: []place{link("Clients", "/clients"), link("Suppliers", "/suppliers"),
			link("Authorities", "/authorities")}},
		{Name: "Settings", Links: []place{link("Audit log", "/audit"), link("Your account", "/account")}},
	}
	if v.session.Role.Allows(operator.Admin) {
		groups[3].Links = append(groups[3].Links, link("Operators", "/operators"))
	}
	if c.cfg.Simulators != "" {
		groups[3].Links = append(groups[3].Links, link("Simulators", "/simulators"))
	}
	return groups
}

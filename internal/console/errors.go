package console

import (
	"errors"
	"net/http"
	"strconv"

	"tributary/internal/fault"
)

// trouble is the body of the page that says what went wrong.
type trouble struct {
	Message string
	Faults  []fault.Fault
}

// statusOf is the status of a kind of failure; false: it is our own defect.
func statusOf(kind fault.Kind) (status int, known bool) {
	status, known = map[fault.Kind]int{
		fault.Invalid: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound,
		fault.Conflict: http.StatusConflict, fault.Expired: http.StatusGone, fault.TooLarge: http.StatusRequestEntityTooLarge, fault.MediaType: http.StatusUnsupportedMediaType,
		fault.Limited: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable,
	}[kind]
	if !known {
		status = http.StatusInternalServerError
	}
	return status, known
}

// fail answers an error. Operators see the sentence of a fault and its parts;
// what is not a fault is our defect: the log has it, the page does not.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	if r.Context().Err() != nil {
		return // the reader left
	}
	status, known := statusOf(fault.KindOf(err))
	t := trouble{Message: "Something went wrong on our side. The program's log says what."}
	if !known {
		c.log.Error("console", "path", r.URL.Path, "error", err)
	}
	if told := asFault(err); known && told != nil {
		t.Message, t.Faults = sentence(told.Message), told.Faults
		if told.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(told.RetryAfter.Seconds()+0.999)))
		}
	}
	if v == nil {
		http.Error(w, t.Message, status)
		return
	}
	p := page{Title: http.StatusText(status), Body: t}
	if err := c.write(w, status, "trouble", c.frame(v, route{}, p)); err != nil {
		c.log.Error("console", "path", r.URL.Path, "error", err)
	}
}

func asFault(err error) *fault.Error {
	var told *fault.Error
	if errors.As(err, &told) {
		return told
	}
	return nil
}

// unknown answers a path or a method that is not in the table.
func (c *Console) unknown(w http.ResponseWriter, r *http.Request) {
	v, err := c.visitor(r, false)
	if fault.KindOf(err) == fault.Unauthenticated && r.Method == http.MethodGet {
		c.toSignIn(w, r)
		return
	}
	if err != nil {
		c.fail(w, r, nil, err)
		return
	}
	v.w = w
	c.fail(w, r, v, fault.New(fault.NotFound, "There is no such page."))
}

// notice is what a page says after an action. Only what is listed here can be
// shown: the address carries a name, never a text.
type notice struct{ Text, Class string }

func noticeOf(name string) notice {
	return map[string]notice{
		"retried":              {Text: "It is due now. This page follows what happens."},
		"redelivered":          {Text: "The event goes out again now, with the same webhook_id."},
		"behind-breaker":       {Text: "The event is due again, with the same webhook_id. Its receiver keeps failing, so it goes out when a single probe was answered; the page says when the next one is.", Class: "busy"},
		"retried-together":     {Text: "They are due now; the audit log says how many. Those that still wait are listed."},
		"redelivered-together": {Text: "Their events go out again now, each with its own webhook_id; the audit log says how many."},
		"replaying":            {Text: "The replay has started. It goes on by itself, also after a restart."},
		"saved":                {Text: "Saved."},
		"unchanged":            {Text: "Nothing was different, so nothing was changed."},
		"promoted":             {Text: "The key is active now: it signs webhooks. The one before it retires."},
		"revoked":              {Text: "The key is revoked. Requests made with it are refused from now on."},
		"acknowledged":         {Text: "The alert is acknowledged. Raised again, it opens anew."},
		"ended":                {Text: "The session is over."},
		"password":             {Text: "Your password is changed. Your other sessions have ended."},
		"factor":               {Text: "Your second factors are changed."},
		"scripted":             {Text: "The simulated authority follows the script from its next call on."},
		"operator":             {Text: "Done. It is in the audit log."},
	}[name]
}

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
		fault.Invalid: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized,
		fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound,
		fault.Conflict: http.StatusConflict, fault.Expired: http.StatusGone,
		fault.TooLarge: http.StatusRequestEntityTooLarge, fault.MediaType: http.StatusUnsupportedMediaType,
		fault.Limited: http.StatusTooManyRequests, fault.Unavailable: http.StatusServiceUnavailable,
	}[kind]
	if !known {
		status = http.StatusInternalServerError
	}
	return status, known
}

// fail answers an error. Operators see the sentence of a fault and its parts;
// what is not a fault is our defect: the log has it, the page does not.
func (c *front) fail(w http.ResponseWriter, r *http.Request, v *request, err error) {
	if r.Context().Err() != nil {
		return // the reader left
	}
	status, known := statusOf(fault.KindOf(err))
	t := trouble{Message: "Internal error. See the service's log for details."}
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
func (c *front) unknown(w http.ResponseWriter, r *http.Request) {
	v, err := c.signedIn(r, false)
	if fault.KindOf(err) == fault.Unauthenticated && r.Method == http.MethodGet {
		c.toSignIn(w, r)
		return
	}
	if err != nil {
		c.fail(w, r, nil, err)
		return
	}
	v.w = w
	c.fail(w, r, v, fault.New(fault.NotFound, "Page not found."))
}

// notice is what a page says after an action. Only what is listed here can be
// shown: the address carries a name, never a text.
type notice struct{ Text, Class string }

func noticeOf(name string) notice {
	return map[string]notice{
		"retried":     {Text: "Retrying now. This page updates live."},
		"decided":     {Text: "Decided. It goes on as soon as filing for its supplier does."},
		"redelivered": {Text: "The event is being sent again, with the same webhook_id."},
		"behind-breaker": {
			Text: "The event will be sent again, with the same webhook_id. Its receiver is failing, so it waits until a probe succeeds; the page shows when the next one is.", Class: "busy"},
		"retried-together": {Text: "Retrying now; the audit log has the number. Those still waiting are listed."},
		"redelivered-together": {
			Text: "The webhooks are being sent again, each with the same webhook_id; the audit log has the number."},
		"replaying":    {Text: "The replay has started. It continues in the background, also after a restart."},
		"saved":        {Text: "Saved."},
		"view-saved":   {Text: "The view is saved. It is listed above the search, for you alone."},
		"view-removed": {Text: "The view is removed."},
		"unchanged":    {Text: "No changes."},
		"promoted":     {Text: "The key is now active: it signs webhooks. The previous one is retiring."},
		"revoked":      {Text: "The key is revoked. Requests with it are rejected."},
		"acknowledged": {Text: "The alert is acknowledged. It reopens if it is raised again."},
		"ended":        {Text: "The session has ended."},
		"password":     {Text: "Your password is changed. Your other sessions have ended."},
		"factor":       {Text: "Your second factors are changed."},
		"scripted":     {Text: "The simulated authority follows the script from its next call."},
		"operator":     {Text: "Done. It is in the audit log."},
	}[name]
}

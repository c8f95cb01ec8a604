package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"tributary/internal/fault"
)

// errorBody is the one shape of every refusal.
type errorBody struct {
	Message string        `json:"message"`
	Errors  []fault.Fault `json:"errors"`
}

// faultsMax bounds how many faults one answer lists; the message says how many there are.
const faultsMax = 100

// statuses maps kinds to HTTP. 409 and 410 are told apart from 400 because a
// client acts on them differently.
var statuses = map[fault.Kind]int{
	fault.Internal: http.StatusInternalServerError, fault.Invalid: http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Expired:  http.StatusGone,
	fault.TooLarge: http.StatusRequestEntityTooLarge, fault.MediaType: http.StatusUnsupportedMediaType,
	fault.Limited:     http.StatusTooManyRequests,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// defaults are the faults of kinds whose errors came without any.
var defaults = map[fault.Kind]fault.Fault{
	fault.Internal:        {Code: fault.InternalError, Type: fault.General, Message: "an internal error occurred"},
	fault.Invalid:         {Code: fault.FieldNotValid, Type: fault.Validation},
	fault.Unauthenticated: {Code: fault.CodeUnauthenticated, Type: fault.Authentication},
	fault.Forbidden:       {Code: fault.CodeForbidden, Type: fault.Authentication},
	fault.NotFound:        {Code: fault.CodeNotFound, Type: fault.General},
	fault.Conflict:        {Code: fault.CodeConflict, Type: fault.General},
	fault.Expired:         {Code: fault.CodeExpired, Type: fault.General},
	fault.TooLarge:        {Code: fault.BodyTooLarge, Type: fault.General},
	fault.MediaType:       {Code: fault.MediaTypeUnsupported, Type: fault.General},
	fault.Limited:         {Code: fault.RateLimited, Type: fault.General},
	fault.Unavailable:     {Code: fault.CodeOverloaded, Type: fault.General},
}

// refuse answers an error. What is not a fault.Error is our own defect: it is
// logged with the request's id and shown as nothing but that.
func (a *API) refuse(c *call, err error) {
	var e *fault.Error
	if c.Context().Err() != nil && !errors.As(err, &e) {
		return // the client went away; nobody reads an answer
	}
	if !errors.As(err, &e) || e.Kind == fault.Internal {
		a.log.Error("request", "request_id", c.id, "method", c.Method, "path", c.URL.Path, "client", c.caller.ClientID,
			"error", err)
		e = fault.New(fault.Internal, "an internal error occurred; quote request %s", c.id)
	}
	if e.Kind == fault.Unavailable {
		if silent, speak := a.refusals.next(time.Now()); speak {
			a.log.Warn("request rejected", "request_id", c.id, "path", c.URL.Path, "error", err, "refused_before_silently", silent)
		}
	}
	writeError(c, statuses[e.Kind], e)
}

func writeError(c *call, status int, e *fault.Error) {
	c.refusing()
	head := c.out.Header()
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		head.Set("Retry-After", strconv.Itoa(int(math.Ceil(max(e.RetryAfter, time.Second).Seconds()))))
	case http.StatusUnauthorized:
		head.Set("WWW-Authenticate", `Bearer realm="tributary"`)
	}
	body := errorBody{Message: e.Message, Errors: e.Faults}
	if len(body.Errors) == 0 {
		f := defaults[e.Kind]
		if f.Message == "" {
			f.Message = e.Message
		}
		body.Errors = []fault.Fault{f}
	}
	if len(body.Errors) > faultsMax {
		body.Message = fmt.Sprintf("%s (%d errors, the first %d are listed)", body.Message, len(body.Errors), faultsMax)
		body.Errors = body.Errors[:faultsMax]
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte(`{"message":"an internal error occurred","errors":[]}`)
	}
	c.raw(status, "application/json", text)
}

// refusals lets one line a second into the log: under overload thousands of
// requests are refused, and telling of each would cost more than serving it.
type refusals struct {
	last   atomic.Int64
	silent atomic.Int64
}

func (r *refusals) next(now time.Time) (silent int64, speak bool) {
	last := r.last.Load()
	if now.UnixNano()-last < int64(time.Second) || !r.last.CompareAndSwap(last, now.UnixNano()) {
		r.silent.Add(1)
		return 0, false
	}
	return r.silent.Swap(0), true
}

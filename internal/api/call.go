package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ids"
	"tributary/internal/transaction"
	"tributary/internal/turnstile"
)

// call is one request on its way to an answer.
type call struct {
	out http.ResponseWriter
	*http.Request
	caller account.Caller // zero on open routes without a key
	id     string
	status int // 0: nothing has been written

	read, wrote int64 // bytes of body and answer

	large   *turnstile.Gate // of bodies that take memory to judge
	uploads *turnstile.Gate // of bodies with attachments
	leave   func()          // of the gates; nil: not inside

	lingers bool // the caller may still be writing a body that was refused
}

// noted keeps the status of an answer for log and metric.
type noted struct {
	http.ResponseWriter
	status *int
	wrote  *int64
}

// WriteHeader notes the status.
func (n noted) WriteHeader(status int) {
	*n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// Write notes the status that net/http assumes.
func (n noted) Write(text []byte) (int, error) {
	if *n.status == 0 {
		*n.status = http.StatusOK
	}
	*n.wrote += int64(len(text))
	return n.ResponseWriter.Write(text)
}

// serve answers every request of one path: method, key, rate, then the handler.
func (a *API) serve(path string, methods map[string]route) http.Handler {
	allowed := make([]string, 0, len(methods))
	for m := range methods {
		allowed = append(allowed, m)
		if m == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	sort.Strings(allowed)
	allow := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := a.now()
		c := &call{Request: r, id: requestID(r), large: a.large, uploads: a.uploads}
		c.out = noted{w, &c.status, &c.wrote}
		r.Body = &bodyReader{ReadCloser: r.Body}
		head := w.Header()
		head.Set("X-Request-Id", c.id)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		if r.TLS != nil {
			head.Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer a.finish(c, path, began)
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet // net/http drops the body
		}
		rt, ok := methods[method]
		switch {
		case methods == nil:
			a.refuse(c, notFound("no such endpoint"))
		case !ok:
			head.Set("Allow", allow)
			writeError(c, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "supported methods: %s", allow).
				With(fault.Fault{Code: fault.MethodNotAllowed, Type: fault.General, Message: "method not allowed"}))
		default:
			if err := a.run(c, rt); err != nil {
				a.refuse(c, err)
			}
		}
	})
}

// run authenticates and calls the handler.
func (a *API) run(c *call, rt route) error {
	key, err := keyOf(c.Request)
	if err != nil && (!rt.open || rt.path == documentPath) {
		return err
	}
	if !rt.open || key != "" && rt.path == documentPath {
		caller, err := a.cfg.Accounts.Authenticate(c.Context(), key, a.addressOf(c.Request))
		if err != nil {
			return err
		}
		if err := caller.Allow(a.now(), account.Cost(c.ContentLength)); err != nil {
			return err
		}
		c.caller = caller
		c.Request = c.WithContext(db.ForClient(c.Context(), caller.ClientID))
		if err := caller.Require(scopesOf(rt)...); err != nil {
			return err
		}
	}
	if !db.Storable(c.URL.Path) && rt.path != historyPath {
		return notFound("no such endpoint")
	}
	err = rt.handle(c)
	c.caller.Spend(a.now(), c.unpaid())
	return err
}

// unpaid is what a request cost beyond its announced body: one that came without
// a length, and a long answer.
func (c *call) unpaid() int {
	return account.Cost(max(c.read, c.ContentLength)) - account.Cost(c.ContentLength) + account.Cost(c.wrote) - 1
}

// finish logs and measures; a panic becomes a 500 that tells nothing.
func (a *API) finish(c *call, path string, began time.Time) {
	if c.leave != nil {
		defer c.leave()
	}
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler { // a sentinel by contract of net/http
			panic(p)
		}
		a.log.Error("panic in a handler", "request_id", c.id, "path", path, "panic", p, "stack", string(debug.Stack()))
		if c.status != 0 {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
		a.refuse(c, errors.New("panic"))
	}
	a.took.WithLabelValues(path, strconv.Itoa(c.status)).Observe(a.now().Sub(began).Seconds())
	c.linger()
}

// keyOf finds the API key wherever clients of this family of APIs put it. Two
// different ones are refused: a proxy in front of us may have judged the other.
func keyOf(r *http.Request) (key string, err error) {
	var found []string
	for _, value := range r.Header.Values("Authorization") {
		if scheme, key, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
			found = append(found, strings.TrimSpace(key))
		}
	}
	found = append(found, r.Header.Values("X-Api-Key")...)
	found = append(found, r.Header.Values("Ocp-Apim-Subscription-Key")...)
	for _, one := range found {
		if key != "" && one != "" && one != key {
			return "", fault.New(fault.Unauthenticated, "the request carries two different API keys").
				With(fault.Fault{Code: fault.CodeUnauthenticated, Type: fault.Authentication, Message: "send one API key"})
		}
		if key == "" {
			key = one
		}
	}
	return key, nil
}

func (a *API) addressOf(r *http.Request) netip.Addr {
	return account.AddressOf(r.RemoteAddr, r.Header.Values("X-Forwarded-For"), a.cfg.TrustProxy)
}

const requestIDMax = 128

// requestID keeps the client's own id when it is harmless, else makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id != "" && len(id) <= requestIDMax && strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) < 0 {
		return id
	}
	return ids.New()[:24]
}

// body reads a JSON request body within the limit.
func (c *call) body() ([]byte, error) { return c.bodyUpTo(bodyBytesMax) }

// bodyUpTo reads a JSON body of another limit. More than the usual comes from those who
// say how much it is, and waits for its turn before it is read.
func (c *call) bodyUpTo(most int64) ([]byte, error) {
	media, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, fault.New(fault.MediaType, "the body must be sent as application/json").
			With(fault.Fault{Code: fault.MediaTypeUnsupported, Type: fault.General, Message: "Content-Type must be application/json"})
	}
	buffer, err := c.bytesUpTo(most)
	if err != nil || c.read <= smallBodyMax {
		return buffer, err
	}
	leave, err := c.large.Enter(c.Context(), c.caller.ClientID, min(c.read, bodyBytesMax)*treeFactor)
	if err != nil {
		return nil, err
	}
	uploaded := c.leave
	c.leave = func() {
		leave()
		if uploaded != nil {
			uploaded()
		}
	}
	return buffer, nil
}

// bytesUpTo reads a body whatever its type. More than the usual waits for its turn.
func (c *call) bytesUpTo(most int64) (buffer []byte, err error) {
	if c.ContentLength > most {
		return nil, tooLarge(most)
	}
	if most = bodyBytesMax; c.ContentLength > bodyBytesMax {
		most = c.ContentLength
		if c.leave, err = c.uploads.Enter(c.Context(), c.caller.ClientID, most); err != nil {
			return nil, err
		}
	}
	size := max(c.ContentLength, 512)
	buffer = make([]byte, 0, size+1)
	limited := io.LimitReader(c.Body, most+1)
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := limited.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF { // io.Reader returns it bare
			break
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "the body could not be read").Because(err).
				With(fault.Fault{Code: fault.JSONNotValid, Type: fault.Validation, Message: "the body ended early"})
		}
	}
	c.read = int64(len(buffer))
	if c.read > most {
		return nil, tooLarge(most)
	}
	return buffer, nil
}

const (
	smallBodyMax = 64 << 10 // bodies up to it wait for nobody

	// treeFactor is how many bytes a byte of a body becomes at worst: of "0," each
	// is a value of its own.
	treeFactor = 64

	uploadsMax = 4 * transaction.BodyBytesMax // bytes of large bodies that are read at a time

	largeWaiting = 4 // bodies of one client; more are told to come back
)

// newLargeGate leaves half of the cores to small requests, and no more than a
// quarter of the memory to the trees of large ones.
func newLargeGate() *turnstile.Gate {
	most := int64(bodyBytesMax*treeFactor) * int64(max(1, runtime.GOMAXPROCS(0)/2))
	return turnstile.New(min(most, debug.SetMemoryLimit(-1)/4), largeWaiting)
}

func tooLarge(most int64) error {
	return fault.New(fault.TooLarge, "the body is larger than %d bytes", most).
		With(fault.Fault{Code: fault.BodyTooLarge, Type: fault.General,
			Message: fmt.Sprintf("the body is larger than %d bytes", most)})
}

// answer writes v as JSON.
func (c *call) answer(status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	c.raw(status, "application/json", text)
	return nil
}

// answerPage writes a list entry by entry: what is in memory at a time is an
// entry, not the whole of its text. Asked for its head alone, it says how long
// the list is.
func answerPage[T any](c *call, p page[T]) error {
	c.out.Header().Set("Content-Type", "application/json")
	if c.Method != http.MethodHead {
		c.out.WriteHeader(http.StatusOK)
	}
	length := 0
	send := func(text []byte) {
		length += len(text)
		if c.Method != http.MethodHead {
			c.out.Write(text)
		}
	}
	var out bytes.Buffer
	out.WriteString(`{"data":[`)
	write := func(before string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Errorf("encode an entry of a list: %w", err)) // half a list must not look whole
		}
		out.WriteString(before)
		if out.Write(text); out.Len() > pageBuffer {
			send(out.Bytes())
			out.Reset()
		}
	}
	comma := ""
	for _, entry := range p.Data {
		write(comma, entry)
		comma = ","
	}
	write(`],"next_cursor":`, p.Next)
	out.WriteByte('}')
	send(out.Bytes())
	if c.Method == http.MethodHead {
		c.out.Header().Set("Content-Length", strconv.Itoa(length))
		c.out.WriteHeader(http.StatusOK)
	}
	return nil
}

const pageBuffer = 32 << 10

func (c *call) raw(status int, media string, pieces ...[]byte) {
	length := 0
	for _, text := range pieces {
		length += len(text)
	}
	head := c.out.Header()
	head.Set("Content-Type", media)
	head.Set("Content-Length", strconv.Itoa(length))
	c.out.WriteHeader(status)
	for _, text := range pieces {
		c.out.Write(text)
	}
}

// actingAs is the transaction slice's view of the caller.
func (c *call) actingAs() filing.Caller {
	return filing.Caller{Scope: c.caller.ClientID, Live: country.Live(c.caller.Live), UseCase: c.caller.Config.UseCase,
		WarnTotals: c.caller.Config.Totals == account.TotalsWarn}
}

func notFound(message string) *fault.Error {
	return fault.New(fault.NotFound, "%s",
		message).With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: message})
}

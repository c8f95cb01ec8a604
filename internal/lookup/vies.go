package lookup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/country/taxid"
)

// VIESBaseURL is the European Commission's own service.
const VIESBaseURL = "https://ec.europa.eu/taxation_customs/vies/rest-api"

// replyBytesMax bounds what is read of an answer; real ones stay below 2 KiB,
// the status of all member states below 4 KiB.
const replyBytesMax = 64 << 10

// VIESConfig says how the register is asked. Zero fields take the defaults.
type VIESConfig struct {
	BaseURL          string        // required; without the trailing slash
	HTTP             *http.Client  // its transport is used; redirects are never followed
	RequesterState   string        // own VAT number, for consultation numbers; both or none
	RequesterNumber  string        //
	Parallel         int           // calls at a time: 16
	ParallelPerState int           // calls at a time for one member state: 4
	Tries            int           // tries for one number: 4
	RetryBase        time.Duration // wait after the first try, doubling, ±20 %: 500 ms
	RetryMax         time.Duration // longest wait, Retry-After included: 8 s
	CallTimeout      time.Duration // one call: 20 s
	OutageFor        time.Duration // how long a failure is believed before the next call: 30 s
	CacheEntries     int           // answers kept: 20,000
	CacheFor         time.Duration // how long "valid" is kept: 24 h
	CacheAbsentFor   time.Duration // how long "not valid" is kept; registrations appear within days: 1 h
	Now              func() time.Time
}

// VIES asks the European register of VAT numbers over its REST protocol.
//
// Failure policy: answers are data, errors are ignorance. What the register
// says may pass (busy, unavailable, time-out), a broken connection, a 5xx and
// an answer that cannot be read are tried again with back-off; after the last
// try a member state, or the whole service, counts as down for OutageFor and
// further questions fail at once, so that a batch is not held up by a country
// that is out. Only answers are cached, never failures. A block of our
// address (IP_BLOCKED) silences the client ten times as long.
type VIES struct {
	config  VIESConfig
	client  *http.Client
	slots   chan struct{}
	states  map[string]*memberState
	service outage
	cache   answerCache
	flights flights
}

// memberState is one country's queue and its last failure.
type memberState struct {
	code  string
	slots chan struct{}
	down  outage
}

// Answer is what the register said about a number.
type Answer struct {
	Registered bool
	Name       string // empty where the member state hides it
	Address    string
	RequestID  string
	AnsweredAt time.Time // the register's time of the answer
	Cached     bool      // given before
}

// VIESError is a question without an answer.
type VIESError struct {
	Code       string // the register's word, or [CodeUnavailable]
	HTTPStatus int    // 0: no answer at all
	Remembered bool   // not asked now: the failure of a moment ago still holds
	retryAfter time.Duration
	cause      error
}

func (e *VIESError) Error() string {
	text := "asking VIES: " + e.Code
	if e.HTTPStatus != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.HTTPStatus)
	}
	if e.Remembered {
		text += ", remembered"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *VIESError) Unwrap() error { return e.cause }

// ErrNotServed is returned for countries the register does not have.
var ErrNotServed = errors.New("the country is not in VIES")

// NewVIES returns a client. It opens no connection.
func NewVIES(config VIESConfig) (*VIES, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("reading the VIES address %q: not an http address", config.BaseURL)
	}
	if (config.RequesterState == "") != (config.RequesterNumber == "") {
		return nil, errors.New("reading the VIES requester: country and number belong together")
	}
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	withDefaults(&config)
	v := &VIES{config: config, slots: make(chan struct{}, config.Parallel), states: map[string]*memberState{}}
	for _, code := range append(taxid.VIESStates(), taxid.Reference) {
		v.states[code] = &memberState{code: code, slots: make(chan struct{}, config.ParallelPerState)}
	}
	v.cache = newAnswerCache(config.CacheEntries)
	v.flights.under = map[string]*flight{}
	v.client = viesHTTP(config)
	return v, nil
}

func withDefaults(c *VIESConfig) {
	number := func(at *int, otherwise int) {
		if *at <= 0 {
			*at = otherwise
		}
	}
	span := func(at *time.Duration, otherwise time.Duration) {
		if *at <= 0 {
			*at = otherwise
		}
	}
	number(&c.Parallel, 16)
	number(&c.ParallelPerState, 4)
	number(&c.Tries, 4)
	number(&c.CacheEntries, 20_000)
	span(&c.RetryBase, 500*time.Millisecond)
	span(&c.RetryMax, 8*time.Second)
	span(&c.CallTimeout, 20*time.Second)
	span(&c.OutageFor, 30*time.Second)
	span(&c.CacheFor, 24*time.Hour)
	span(&c.CacheAbsentFor, time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
}

// viesHTTP keeps a copy, so that the caller's client does not learn our redirect rule.
func viesHTTP(config VIESConfig) *http.Client {
	client := http.Client{}
	if config.HTTP != nil {
		client = *config.HTTP
	}
	if client.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = config.Parallel
		client.Transport = transport
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Close lets go of idle connections.
func (v *VIES) Close() { v.client.CloseIdleConnections() }

// Check asks for a number of a member state, both spelled as [taxid.Verdict.VIES]
// gives them. [taxid.Reference] asks the register's test service, where the
// number itself selects the answer. The error is a [*VIESError], [ErrNotServed]
// or the context's.
func (v *VIES) Check(ctx context.Context, state, number string) (Answer, error) {
	s, ok := v.states[state]
	if !ok {
		return Answer{}, fmt.Errorf("asking VIES for %q: %w", state, ErrNotServed)
	}
	key := state + number
	if a, ok := v.cache.get(key, v.config.Now()); ok {
		return a, nil
	}
	return v.flights.join(ctx, key, func(ctx context.Context) (Answer, error) {
		// Whoever flew before may have landed between the look and the start.
		if a, ok := v.cache.get(key, v.config.Now()); ok {
			return a, nil
		}
		a, err := v.ask(ctx, s, number)
		if err == nil {
			keep := v.config.CacheFor
			if !a.Registered {
				keep = v.config.CacheAbsentFor
			}
			v.cache.put(key, a, v.config.Now().Add(keep))
		}
		return a, err
	})
}

// ask tries until there is an answer or no sense in asking again. It holds the
// member state's place while it backs off, which is what a busy state wants,
// and the service's only while a call is under way, so that a busy state does
// not slow down the others.
func (v *VIES) ask(ctx context.Context, s *memberState, number string) (Answer, error) {
	if err := take(ctx, s.slots); err != nil {
		return Answer{}, err
	}
	defer release(s.slots)
	for try := 1; ; try++ {
		if e := v.remembered(s); e != nil {
			return Answer{}, e
		}
		a, err := v.callOnce(ctx, s.code, number)
		if err == nil {
			s.down.clear()
			v.service.clear()
			return a, nil
		}
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		var e *VIESError
		if !errors.As(err, &e) {
			return Answer{}, err
		}
		if !e.passing() || try == v.config.Tries {
			v.remember(s, e)
			return Answer{}, e
		}
		if err := pause(ctx, v.wait(try, e.retryAfter)); err != nil {
			return Answer{}, err
		}
	}
}

// remembered returns the failure that still holds for a member state.
func (v *VIES) remembered(s *memberState) *VIESError {
	now := v.config.Now()
	for _, o := range []*outage{&v.service, &s.down} {
		if e := o.at(now); e != nil {
			return &VIESError{Code: e.Code, HTTPStatus: e.HTTPStatus, Remembered: true}
		}
	}
	return nil
}

// remember decides whom a failure speaks for. An answer that was read and made
// no sense speaks for its one number only, a call that took too long for the
// member state behind it, a closed door for the whole service. The test service
// selects failures by number: they speak for nobody.
func (v *VIES) remember(s *memberState, e *VIESError) {
	if s.code == taxid.Reference {
		return
	}
	until := v.config.Now().Add(v.config.OutageFor)
	switch e.Code {
	case "MS_UNAVAILABLE", "TIMEOUT":
		s.down.set(e, until)
	case "SERVICE_UNAVAILABLE", "SERVER_BUSY":
		v.service.set(e, until)
	case "IP_BLOCKED":
		v.service.set(e, v.config.Now().Add(10*v.config.OutageFor))
	case CodeUnavailable:
		switch {
		case e.HTTPStatus == http.StatusOK:
		case errors.Is(e.cause, context.DeadlineExceeded):
			s.down.set(e, until)
		default:
			v.service.set(e, until)
		}
	}
}

// passing reports whether the same question may be answered in a moment.
func (e *VIESError) passing() bool {
	switch e.Code {
	case "MS_UNAVAILABLE", "TIMEOUT", "SERVICE_UNAVAILABLE", "SERVER_BUSY", CodeUnavailable,
		"GLOBAL_MAX_CONCURRENT_REQ", "GLOBAL_MAX_CONCURRENT_REQ_TIME", "MS_MAX_CONCURRENT_REQ", "MS_MAX_CONCURRENT_REQ_TIME":
		return true
	}
	return e.HTTPStatus >= 500 || e.HTTPStatus == http.StatusTooManyRequests
}

func (v *VIES) wait(try int, asked time.Duration) time.Duration {
	d := v.config.RetryBase << (try - 1)
	if d <= 0 || d > v.config.RetryMax {
		d = v.config.RetryMax
	}
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
	return min(max(d, asked), v.config.RetryMax)
}

// outage is a failure with the time until which it is believed.
type outage struct {
	mu    sync.Mutex
	cause *VIESError
	until time.Time
}

func (o *outage) set(e *VIESError, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cause, o.until = e, until
}

func (o *outage) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cause = nil
}

func (o *outage) at(now time.Time) *VIESError {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == nil || !now.Before(o.until) {
		return nil
	}
	return o.cause
}

func take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(slots chan struct{}) { <-slots }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// viesQuestion is the body of check-vat-number and check-vat-test-service.
type viesQuestion struct {
	CountryCode     string `json:"countryCode"`
	VATNumber       string `json:"vatNumber"`
	RequesterState  string `json:"requesterMemberStateCode,omitempty"`
	RequesterNumber string `json:"requesterNumber,omitempty"`
}

func (v *VIES) callOnce(ctx context.Context, state, number string) (Answer, error) {
	path := "/check-vat-number"
	if state == taxid.Reference {
		path = "/check-vat-test-service"
	}
	question, err := json.Marshal(viesQuestion{CountryCode: state, VATNumber: number,
		RequesterState: v.config.RequesterState, RequesterNumber: v.config.RequesterNumber})
	if err != nil {
		return Answer{}, fmt.Errorf("writing a question to VIES: %w", err)
	}
	body, header, err := v.exchange(ctx, http.MethodPost, path, question)
	if err != nil {
		return Answer{}, err
	}
	a, err := readAnswer(body, state, number)
	if err != nil {
		return Answer{}, &VIESError{Code: CodeUnavailable, HTTPStatus: header.status, retryAfter: header.retryAfter, cause: err}
	}
	if a.AnsweredAt.IsZero() {
		a.AnsweredAt = v.config.Now().UTC()
	}
	return a, nil
}

// head is what matters of an answer beside its body.
type head struct {
	status     int
	retryAfter time.Duration
}

// exchange makes one call and returns the body of a 200 that is not a business error.
func (v *VIES) exchange(ctx context.Context, method, path string, body []byte) ([]byte, head, error) {
	if err := take(ctx, v.slots); err != nil {
		return nil, head{}, err
	}
	defer release(v.slots)
	ctx, cancel := context.WithTimeout(ctx, v.config.CallTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, v.config.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, head{}, fmt.Errorf("writing a request to VIES: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "tributary")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := v.client.Do(request)
	if err != nil {
		return nil, head{}, &VIESError{Code: CodeUnavailable, cause: err}
	}
	defer answer.Body.Close()
	h := head{status: answer.StatusCode, retryAfter: retryAfter(answer.Header.Get("Retry-After"))}
	read, err := io.ReadAll(io.LimitReader(answer.Body, replyBytesMax+1))
	switch {
	case err != nil:
		err = fmt.Errorf("reading the answer: %w", err)
	case len(read) > replyBytesMax:
		err = fmt.Errorf("reading the answer: more than %d bytes", replyBytesMax)
	}
	if err != nil {
		return nil, h, &VIESError{Code: CodeUnavailable, HTTPStatus: h.status, retryAfter: h.retryAfter, cause: err}
	}
	if code := businessError(read); code != "" {
		return nil, h, &VIESError{Code: code, HTTPStatus: h.status, retryAfter: h.retryAfter}
	}
	if h.status != http.StatusOK {
		return nil, h, &VIESError{Code: CodeUnavailable, HTTPStatus: h.status, retryAfter: h.retryAfter}
	}
	return read, h, nil
}

func retryAfter(text string) time.Duration {
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// businessError finds {"actionSucceed":false,"errorWrappers":[{"error":"…"}]},
// which comes with status 200 as well as with 4xx and 5xx. A code that does not
// look like one is not repeated to clients.
func businessError(body []byte) string {
	var reply struct {
		ActionSucceed *bool `json:"actionSucceed"`
		ErrorWrappers []struct {
			Error string `json:"error"`
		} `json:"errorWrappers"`
	}
	if json.Unmarshal(body, &reply) != nil || reply.ActionSucceed == nil || *reply.ActionSucceed {
		return ""
	}
	if len(reply.ErrorWrappers) == 0 || !looksLikeCode(reply.ErrorWrappers[0].Error) {
		return CodeUnavailable
	}
	return reply.ErrorWrappers[0].Error
}

func looksLikeCode(text string) bool {
	if text == "" || len(text) > 40 {
		return false
	}
	for _, r := range text {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}

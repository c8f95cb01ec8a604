package client

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
	"sync"
	"time"

	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// Limits of the tool's requests.
const (
	requestTimeout = 30 * time.Second
	requestGrace   = 3 * time.Second // for requests under way when Ctrl-C is pressed
	answerBytesMax = 32 << 20        // a result with 5,000 items
	backoffBase    = 200 * time.Millisecond
	backoffMax     = 10 * time.Second
)

// service speaks to the service. It is safe for concurrent use.
type service struct {
	base, key, path string
	http            *http.Client
	retryFor        time.Duration

	warn io.Writer // hears of retries

	mu     sync.Mutex
	paused time.Time // nobody asks before it: the service said so to one of us
	warned time.Time // when a retry was told of last
}

// submitPaths are where the operations go.
func submitPath(operation string) string {
	switch operation {
	case "transaction":
		return "/v1/transactions"
	case "backfill":
		return "/v1/transactions/backfill/reported"
	default:
		return "/v1/transactions/" + operation
	}
}

func newService(s *Submission, warn io.Writer) *service {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = s.Concurrency
	return &service{
		base: s.URL, key: s.APIKey, path: submitPath(s.Operation), retryFor: s.RetryFor, warn: warn,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the key goes to nobody else
		}},
	}
}

// refusal is what the service says about an entry it will not take.
type refusal struct {
	Message string        `json:"message"`
	Errors  []fault.Fault `json:"errors"`
}

// result is what the report shows of a result.
type result struct {
	Status       string        `json:"status"`
	UniqueNumber string        `json:"unique_transaction_number,omitempty"`
	AuthorityID  string        `json:"tax_authority_id_1,omitempty"`
	Currency     string        `json:"currency_code,omitempty"`
	Total        *int64        `json:"total_amount,omitempty"`
	Errors       []fault.Fault `json:"errors,omitempty"`
}

// submit hands an entry over: an operation id, or why it was refused.
func (c *service) submit(ctx context.Context, body []byte) (operation string, refused *refusal, err error) {
	status, answer, err := c.exchange(ctx, http.MethodPost, c.path, body)
	if err != nil {
		return "", nil, err
	}
	if status == http.StatusAccepted {
		var accepted struct {
			OperationID string `json:"operation_id"`
		}
		if err := json.Unmarshal(answer, &accepted); err != nil || accepted.OperationID == "" {
			return "", nil, fmt.Errorf("the service at %s answered 202 without an operation_id: is it Tributary?", c.base)
		}
		return accepted.OperationID, nil, nil
	}
	refused = &refusal{}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Message == "" {
		refused.Message = fmt.Sprintf("status %d without a message", status)
	}
	return "", refused, nil
}

// result asks for an operation's result.
func (c *service) result(ctx context.Context, operation string) (*result, error) {
	status, answer, err := c.exchange(ctx, http.MethodGet, "/v1/transactions/"+url.PathEscape(operation), nil)
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(answer, r); err != nil || status != http.StatusOK || r.Status == "" {
		return nil, fmt.Errorf("the service answered %d when asked for operation %s", status, operation)
	}
	return r, nil
}

// fatalError ends the whole run: every other entry would meet the same.
type fatalError struct{ message string }

func (e *fatalError) Error() string { return e.message }

// exchange asks until there is an answer that means something. Failure policy:
// every request here may be repeated, since a submit is idempotent by its
// transaction_id; so a lost connection, 429 and any 5xx are tried again, no
// earlier than the service's Retry-After, until retryFor is over.
func (c *service) exchange(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	status, answer, err := c.exchangeAny(ctx, method, path, body)
	if err != nil {
		return status, answer, err
	}
	return status, answer, c.fatal(status, answer)
}

// exchangeAny is exchange for those who know what to make of every status.
func (c *service) exchangeAny(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	deadline := time.Now().Add(c.retryFor)
	for attempt := 0; ; attempt++ {
		if err := c.waitTurn(ctx, deadline); err != nil {
			return 0, nil, err
		}
		status, head, answer, err := c.once(ctx, method, path, body)
		if err == nil && status != http.StatusTooManyRequests && status < 500 {
			return status, answer, nil
		}
		if ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
		delay := min(backoffBase<<min(attempt, 10), backoffMax)
		delay = delay*4/5 + rand.N(delay*2/5)
		if err == nil {
			err = fmt.Errorf("the service at %s is unavailable: status %d", c.base, status)
			if wait, ok := webhook.ParseRetryAfter(head.Get("Retry-After"), time.Now()); ok {
				delay = max(wait, delay)
				c.pause(wait)
			}
		}
		if time.Now().Add(delay).After(deadline) {
			return 0, nil, fault.New(fault.Unavailable, "%v (%s)", err, fault.Count(attempt+1, "attempt"))
		}
		c.tellRetry(err, attempt+1, time.Until(deadline))
		if err := sleep(ctx, delay); err != nil {
			return 0, nil, err
		}
	}
}

// tellRetry says at once that nothing goes through, and again now and then: of
// many requests that wait together one speaks.
func (c *service) tellRetry(err error, attempts int, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.warned) < lineEvery {
		return
	}
	c.warned = time.Now()
	fmt.Fprintf(c.warn, "%s (%s so far); retrying for another %s\n", fault.Printable(err.Error()),
		fault.Count(attempts, "attempt"), left.Round(time.Second))
}

// fatal tells answers that speak of the whole run from those of one entry.
func (c *service) fatal(status int, answer []byte) error {
	var said refusal
	_ = json.Unmarshal(answer, &said) // without a message the status must do
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &fatalError{fmt.Sprintf("the service rejected the API key (%d %s): check --api-key and --url", status, said.Message)}
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return &fatalError{fmt.Sprintf("the service at %s answers %d %s: check --url, and that --state belongs to this client", c.base, status, said.Message)}
	case status >= 300 && status < 400:
		return &fatalError{fmt.Sprintf("%s redirects elsewhere; use the final URL with --url", c.base)}
	}
	return nil
}

func (c *service) once(parent context.Context, method, path string, body []byte) (int, http.Header, []byte, error) {
	// Ctrl-C lets a request that is under way have its answer, for a moment.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), requestTimeout)
	defer cancel()
	defer context.AfterFunc(parent, func() { time.AfterFunc(requestGrace, cancel) })()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return 0, nil, nil, fault.New(fault.Unavailable, "Cannot connect to %s: %v", c.base, cause(err))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	return answer.StatusCode, answer.Header, text, err
}

// cause is the innermost reason why a request failed.
func cause(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// pause keeps everybody from asking for a while.
func (c *service) pause(wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(wait); until.After(c.paused) {
		c.paused = until
	}
}

// waitTurn waits until requests may go out again, unless that is after the deadline.
func (c *service) waitTurn(ctx context.Context, deadline time.Time) error {
	c.mu.Lock()
	paused := c.paused
	c.mu.Unlock()
	switch wait := time.Until(paused); {
	case wait <= 0:
		return ctx.Err()
	case paused.After(deadline):
		return fmt.Errorf("rate limited for another %s: run again later", wait.Round(time.Second))
	default:
		return sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isFatal reports whether the run should end.
func isFatal(err error) bool {
	var f *fatalError
	return errors.As(err, &f)
}

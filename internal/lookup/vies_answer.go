package lookup

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Bounds on what is kept of a register's texts, in characters.
const (
	nameMax    = 450
	addressMax = 1000
)

// readAnswer decodes the answer to a question. An answer without "valid" is no
// answer: reading absence as false would refuse real businesses. One that
// speaks of another number is no answer either.
func readAnswer(body []byte, state, number string) (Answer, error) {
	var reply struct {
		CountryCode       string `json:"countryCode"`
		VATNumber         string `json:"vatNumber"`
		RequestDate       string `json:"requestDate"`
		Valid             *bool  `json:"valid"`
		RequestIdentifier string `json:"requestIdentifier"`
		Name              string `json:"name"`
		Address           string `json:"address"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return Answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	if reply.Valid == nil {
		return Answer{}, errors.New("reading the answer: it has no member valid")
	}
	if reply.CountryCode != "" && reply.CountryCode != state || reply.VATNumber != "" && reply.VATNumber != number {
		return Answer{}, errors.New("reading the answer: it is about another number")
	}
	a := Answer{Registered: *reply.Valid, RequestID: plainText(reply.RequestIdentifier, 60)}
	if a.Registered {
		a.Name, a.Address = plainText(reply.Name, nameMax), plainText(reply.Address, addressMax)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02Z07:00", time.DateOnly} {
		if at, err := time.Parse(layout, reply.RequestDate); err == nil {
			a.AnsweredAt = at.UTC()
			break
		}
	}
	return a, nil
}

// plainText makes one line of a register's text. Lines become parts after
// commas, control characters vanish, "---" means that the member state hides it.
func plainText(text string, charactersMax int) string {
	var parts []string
	for line := range strings.Lines(text) {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return ' '
			}
			return r
		}, line)
		if line = strings.Join(strings.Fields(line), " "); line != "" && line != "---" {
			parts = append(parts, line)
		}
	}
	runes := []rune(strings.Join(parts, ", "))
	return string(runes[:min(len(runes), charactersMax)])
}

// Availability is one member state's line in the register's own status.
type Availability struct {
	State     string
	Available bool
}

// Status asks which member states answer at the moment. It is for operators;
// questions do not depend on it.
func (v *VIES) Status(ctx context.Context) ([]Availability, error) {
	body, h, err := v.exchange(ctx, http.MethodGet, "/check-status", nil)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Countries []struct {
			CountryCode  string `json:"countryCode"`
			Availability string `json:"availability"`
		} `json:"countries"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, &VIESError{Code: CodeUnavailable, HTTPStatus: h.status, cause: fmt.Errorf("reading the status: %w", err)}
	}
	all := make([]Availability, 0, len(reply.Countries))
	for _, c := range reply.Countries {
		all = append(all, Availability{State: c.CountryCode, Available: c.Availability == "Available"})
	}
	return all, nil
}

// answerCache keeps the answers used last, each until its own time.
type answerCache struct {
	mu    sync.Mutex
	max   int
	byKey map[string]*list.Element
	order *list.List // front: used last
}

type cachedAnswer struct {
	key    string
	answer Answer
	until  time.Time
}

func newAnswerCache(entriesMax int) answerCache {
	return answerCache{max: entriesMax, byKey: map[string]*list.Element{}, order: list.New()}
}

func (c *answerCache) get(key string, now time.Time) (Answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[key]
	if !ok {
		return Answer{}, false
	}
	kept := at.Value.(*cachedAnswer)
	if !now.Before(kept.until) {
		c.drop(at)
		return Answer{}, false
	}
	c.order.MoveToFront(at)
	a := kept.answer
	a.Cached = true
	return a, true
}

func (c *answerCache) put(key string, a Answer, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.byKey[key]; ok {
		c.drop(at)
	}
	c.byKey[key] = c.order.PushFront(&cachedAnswer{key: key, answer: a, until: until})
	for c.order.Len() > c.max {
		c.drop(c.order.Back())
	}
}

func (c *answerCache) drop(at *list.Element) {
	c.order.Remove(at)
	delete(c.byKey, at.Value.(*cachedAnswer).key)
}

// flights lets callers with the same question wait for one answer.
type flights struct {
	mu    sync.Mutex
	under map[string]*flight
}

// flight is a question under way. It belongs to all who wait: it goes on when
// the first of them leaves and stops when the last one does.
type flight struct {
	waiting int
	stop    context.CancelFunc
	landed  chan struct{}
	answer  Answer
	err     error
}

func (f *flights) join(ctx context.Context, key string, ask func(context.Context) (Answer, error)) (Answer, error) {
	f.mu.Lock()
	fl, ok := f.under[key]
	if !ok {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		fl = &flight{stop: stop, landed: make(chan struct{})}
		f.under[key] = fl
		go func() {
			defer stop()
			fl.answer, fl.err = ask(own)
			f.mu.Lock()
			f.remove(key, fl)
			f.mu.Unlock()
			close(fl.landed)
		}()
	}
	fl.waiting++
	f.mu.Unlock()
	select {
	case <-fl.landed:
		return fl.answer, fl.err
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		// Under one lock, so that nobody boards a flight that is being stopped.
		if fl.waiting--; fl.waiting == 0 {
			f.remove(key, fl)
			fl.stop()
		}
		return Answer{}, context.Cause(ctx)
	}
}

// remove takes a flight off the board, unless a later one of the same question
// stands there. The caller holds the lock.
func (f *flights) remove(key string, fl *flight) {
	if f.under[key] == fl {
		delete(f.under, key)
	}
}

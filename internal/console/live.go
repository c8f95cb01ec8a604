package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	beatEvery    = 15 * time.Second // a comment that keeps proxies and the connection awake
	writeTimeout = 10 * time.Second // of one update to one reader
	reconnect    = 3 * time.Second
)

// live serves the updates of a page as server-sent events: the page's own view
// runs again and again, and its changing region is sent when it has changed.
//
// Failure policy: a stream is a convenience. It ends with the session, with the
// reader, with the program and when there are too many; the page stays as it
// was and says that it is no longer live. Looking on does not count as the
// operator's activity, so an open page does not keep a session alive.
func (c *Console) live(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Who is not signed in hears so and holds nothing.
		if v, err := c.front.signedIn(r, false); err == nil {
			if !c.streams.take(v.session.Name) {
				http.Error(w, "too many open pages", http.StatusServiceUnavailable)
				return
			}
			defer c.streams.give(v.session.Name)
		}
		c.open.Add(1)
		defer c.open.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(c.stopping, cancel)()
		s := &stream{w: w, out: http.NewResponseController(w), seen: r.URL.Query().Get("seen")}
		// The listener's limit on reading a request would end the stream: there is nothing left to read.
		if err := s.out.SetReadDeadline(time.Time{}); err != nil {
			c.front.fail(w, r, nil, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("X-Accel-Buffering", "no")
		if err := s.send(fmt.Sprintf("retry: %d\n\n", reconnect.Milliseconds())); err != nil {
			return
		}
		c.follow(ctx, r.WithContext(ctx), rt, s)
	}
}

// streams counts the open streams, of everybody and of each operator, so that
// one who opens a hundred tabs does not take the others' away.
type streams struct {
	all, each int

	mu   sync.Mutex
	open int
	by   map[string]int
}

func (s *streams) take(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.all || s.by[name] >= s.each {
		return false
	}
	s.open++
	s.by[name]++
	return true
}

func (s *streams) give(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.by[name]--; s.by[name] == 0 {
		delete(s.by, name)
	}
}

// follow sends until something ends.
func (c *Console) follow(ctx context.Context, r *http.Request, rt route, s *stream) {
	tick := time.NewTicker(c.cfg.LiveEvery)
	defer tick.Stop()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		v, err := c.front.signedIn(r, false)
		if err != nil || !v.session.Role.Allows(rt.role) {
			if ctx.Err() == nil {
				_ = s.event("over", "Signed out: sign in again") // the stream ends either way
			}
			return
		}
		if err := c.update(v, rt, s); err != nil {
			if ctx.Err() == nil {
				c.log.Warn("live page", "route", rt.path, "error", err)
				_ = s.event("over", "Not live: reload the page") // the stream ends either way
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if s.send(":\n\n") != nil {
				return
			}
		case <-tick.C:
		}
	}
}

func (c *Console) update(v *request, rt route, s *stream) error {
	p, err := rt.show(v)
	if err != nil {
		return err
	}
	region, digest, err := c.front.region(v, rt, p)
	if err != nil || digest == s.seen {
		return err
	}
	s.seen = digest
	return s.event("page", region)
}

// region renders the part of a page that changes, with a digest of it.
func (c *front) region(v *request, rt route, p page) (html, digest string, err error) {
	var b bytes.Buffer
	if err := c.pages.ExecuteTemplate(&b, rt.template+".live", c.frame(v, rt, p)); err != nil {
		return "", "", fmt.Errorf("render %s: %w", rt.template, err)
	}
	sum := sha256.Sum256(b.Bytes())
	return b.String(), hex.EncodeToString(sum[:8]), nil
}

// stream is one open connection.
type stream struct {
	w    http.ResponseWriter
	out  *http.ResponseController
	seen string // digest of what the page shows
}

func (s *stream) event(name, data string) error {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	for line := range strings.Lines(strings.ReplaceAll(data, "\r", "")) {
		b.WriteString("data: " + strings.TrimSuffix(line, "\n") + "\n")
	}
	b.WriteString("\n")
	return s.send(b.String())
}

func (s *stream) send(text string) error {
	if err := s.out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}

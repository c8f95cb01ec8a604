package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tributary/internal/country"
)

// Fate is what befalls one call on its way.
type Fate struct {
	Refused bool          // nobody listens; not a byte leaves
	Lost    bool          // the request never arrives
	Delay   time.Duration // until it arrives; past the caller's patience it arrives all the same, behind later ones
	Again   time.Duration // it arrives a second time, so much later; 0: once
	Back    time.Duration // until the answer is back
	Page    int           // a proxy's page with this status comes back instead of the answer; 0: the answer
	Cut     bool          // the answer ends in the middle
	Mute    bool          // the answer never comes back, the connection ends
}

// Fates are drawn so that about half of all calls meet something.
func (d Dice) Fate(words ...any) Fate {
	r := d.Of(words...)
	switch r.IntN(20) {
	case 0:
		return Fate{Refused: true}
	case 1:
		return Fate{Lost: true}
	case 2:
		return Fate{Mute: true, Delay: Between(r, 0, time.Second)}
	case 3:
		return Fate{Cut: true}
	case 4:
		return Fate{Delay: Between(r, time.Second, 2*time.Minute)}
	case 5:
		return Fate{Back: Between(r, time.Second, 2*time.Minute)}
	case 6:
		return Fate{Again: Between(r, time.Millisecond, time.Minute)}
	case 7:
		return Fate{Lost: true, Page: pick(r, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusOK,
			http.StatusTooManyRequests)}
	case 8:
		return Fate{Page: pick(r, http.StatusGatewayTimeout, http.StatusInternalServerError, http.StatusOK)}
	case 9:
		return Fate{Mute: true, Again: Between(r, time.Second, time.Minute)}
	}
	return Fate{Delay: Between(r, 0, 50*time.Millisecond), Back: Between(r, 0, 50*time.Millisecond)}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// Wire is the network between one process and a server, as a transport for
// http.Client. It lives in a bubble. What it carries goes on when the caller
// has left or died.
type Wire struct {
	Server http.Handler
	Fate   func(r *http.Request, body []byte) Fate

	dead    atomic.Bool
	flights *sync.WaitGroup
}

// NewWire returns a wire; flights is done when nothing is on its way any more.
func NewWire(server http.Handler, fate func(*http.Request, []byte) Fate, flights *sync.WaitGroup) *Wire {
	return &Wire{Server: server, Fate: fate, flights: flights}
}

// Cut is the death of the caller's process: nothing leaves it any more.
func (w *Wire) Cut() { w.dead.Store(true) }

var (
	errDead  = errors.New("the process is dead")
	errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// RoundTrip carries one call.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.dead.Load() {
		return nil, errDead
	}
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
	}
	fate := w.Fate(r, body)
	if fate.Refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	back := make(chan *http.Response, 1)
	w.flights.Go(func() { w.fly(r, body, fate, back) })
	select {
	case answer, ok := <-back:
		if !ok {
			return nil, errReset
		}
		return answer, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// fly is the journey of one request and its answer; a closed channel is a
// connection that ended without one.
func (w *Wire) fly(r *http.Request, body []byte, fate Fate, back chan<- *http.Response) {
	defer close(back)
	time.Sleep(fate.Delay)
	var answer *http.Response
	if !fate.Lost {
		answer = w.serve(r, body)
	}
	if fate.Again > 0 {
		w.flights.Go(func() {
			time.Sleep(fate.Again)
			w.serve(r, body)
		})
	}
	if fate.Page != 0 {
		answer = page(fate.Page)
	}
	if answer == nil || fate.Mute {
		return
	}
	time.Sleep(fate.Back)
	if fate.Cut {
		text, _ := io.ReadAll(answer.Body) // from memory
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text[:len(text)/2]), torn{}))
	}
	back <- answer
}

// Through returns the pack with this wire instead of the atlas' own network.
func (w *Wire) Through(p country.Pack) country.Pack {
	client := &http.Client{Transport: w}
	if connect := p.Connect; connect != nil {
		p.Connect = func(at country.Endpoint) (country.Channel, error) {
			at.HTTP = client
			return connect(at)
		}
	}
	if enrol := p.Enrol; enrol != nil {
		p.Enrol = func(ctx context.Context, in country.Enrolment) country.Enrolled {
			in.At.HTTP = client
			return enrol(ctx, in)
		}
	}
	return p
}

// serve hands the request to the server; nil: it answered nothing.
func (w *Wire) serve(r *http.Request, body []byte) (answer *http.Response) {
	defer func() {
		if cause := recover(); cause != nil {
			if cause != http.ErrAbortHandler {
				panic(cause)
			}
			answer = nil
		}
	}()
	request := r.Clone(context.Background())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.RequestURI, request.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1"
	recorder := httptest.NewRecorder()
	w.Server.ServeHTTP(recorder, request)
	return recorder.Result()
}

func page(status int) *http.Response {
	text := fmt.Sprintf("<!DOCTYPE html>\n<html><body><h1>%d</h1></body></html>\n", status)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(text)),
		Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(bytes.NewReader([]byte(text))),
	}
}

// torn is where an answer breaks off.
type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

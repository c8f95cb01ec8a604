package api

import (
	"io"
	"net/http"
	"time"
)

// How long a refused body is read on: a caller that still writes when the
// connection closes sees a reset in place of the answer.
const (
	lingerBytesMax = 16 << 20
	lingerMax      = 5 * time.Second
)

// bodyReader remembers whether the body was read to its end.
type bodyReader struct {
	io.ReadCloser
	ended bool
}

// Read notes the end.
func (b *bodyReader) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil {
		b.ended = true
	}
	return n, err
}

// Unwrap lets [http.ResponseController] reach the connection.
func (n noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// unread reports whether the caller may still be writing. One that waits for
// "100 Continue" is not: it has the answer before it begins.
func (c *call) unread() bool {
	body, ok := c.Body.(*bodyReader)
	return ok && !body.ended && c.ContentLength != 0 && c.Header.Get("Expect") == "" && c.ProtoMajor == 1
}

// refusing prepares an answer to a caller that still writes: it is sent at
// once, not after the body, and the connection is used no more.
func (c *call) refusing() {
	if !c.unread() {
		return
	}
	if err := http.NewResponseController(c.out).EnableFullDuplex(); err != nil {
		return // net/http reads some of the body first, as ever
	}
	c.out.Header().Set("Connection", "close")
	c.lingers = true
}

// linger reads on for a bounded while after such an answer, so that it arrives.
func (c *call) linger() {
	if !c.lingers {
		return
	}
	control := http.NewResponseController(c.out)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(lingerMax)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Body, lingerBytesMax) // whatever comes is not read by anybody
}

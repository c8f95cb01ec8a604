package webhook

import (
	"bytes"
	"errors"
	"net"
	"sync"
)

const (
	// statusLineBytesMax is enough for "HTTP/1.1 200", whatever ends it, and a few blanks too many.
	statusLineBytesMax = 32
	// headLineBytesMax and headLinesMax bound the head of a reply beside the limit on
	// all of it: a line longer than the transport's buffer is copied each time it
	// grows, and 64 KiB of tiny headers become a megabyte of map.
	headLineBytesMax = 8 << 10
	headLinesMax     = 256
	// interimRepliesMax bounds the 1xx before a reply; each is parsed as a reply of its own.
	interimRepliesMax = 8
)

var errHead = errors.New("the head of the reply has too long a line, too many lines or too many interim replies")

// watchedConn notes the status line of the reply while it passes by. The transport
// hands out a reply only after its last header; a receiver that says 200 and then
// sends headers without end, or one byte of them per second, or resets the
// connection, has nevertheless taken the notification.
type watchedConn struct {
	net.Conn
	mu    sync.Mutex
	reply replyWatch
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.reply.feed(p[:n]) {
			return 0, errHead
		}
	}
	return n, err
}

// expect begins a new exchange on a connection, which may have served others before.
func (c *watchedConn) expect() {
	c.mu.Lock()
	c.reply = replyWatch{}
	c.mu.Unlock()
}

// status returns the final reply's status, 0 while there is no whole status line,
// and whether the receiver has said anything at all.
func (c *watchedConn) status() (code int, spoke bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reply.status, c.reply.spoke
}

// replyWatch reads the head of a reply: its final status line, that is the first
// one that is not interim (1xx), and the lengths of its lines. It keeps a few bytes
// whatever it is fed.
type replyWatch struct {
	spoke  bool
	status int // the final status, once its line is complete

	phase    watchPhase
	start    [statusLineBytesMax]byte // of the present line
	n        int                      // bytes of the present line, carriage returns included
	lines    int
	interims int
}

type watchPhase uint8

const (
	watchStatus  watchPhase = iota // inside a status line
	watchInterim                   // inside the headers of a 1xx
	watchHeaders                   // inside the final headers
	watchOver                      // inside the body, or there is no sense in the head
)

// feed reports whether the head is still within its limits.
func (w *replyWatch) feed(p []byte) bool {
	w.spoke = w.spoke || len(p) > 0
	for _, b := range p {
		if w.phase == watchOver {
			return true
		}
		if b != '\n' {
			if w.n < len(w.start) {
				w.start[w.n] = b
			}
			if w.n++; w.n > headLineBytesMax {
				return false
			}
			continue
		}
		w.endLine()
		w.n = 0
		if w.lines++; w.lines > headLinesMax || w.interims > interimRepliesMax {
			return false
		}
	}
	return true
}

func (w *replyWatch) endLine() {
	line := w.start[:min(w.n, len(w.start))]
	if w.phase == watchStatus {
		switch code := parseStatusLine(line); {
		case code == 0:
			w.phase = watchOver
		case code < 200 && code != 101: // 101 ends an exchange like any final status
			w.phase, w.interims = watchInterim, w.interims+1
		default:
			w.phase, w.status = watchHeaders, code
		}
		return
	}
	if blank := w.n == 0 || w.n == 1 && line[0] == '\r'; blank {
		if w.phase == watchInterim {
			w.phase = watchStatus
		} else {
			w.phase = watchOver
		}
	}
}

// parseStatusLine reads the beginning of "HTTP/1.1 200 OK\r"; 0 means it is none.
func parseStatusLine(line []byte) int {
	const prefix = "HTTP/1."
	if len(line) < len(prefix)+5 || string(line[:len(prefix)]) != prefix {
		return 0
	}
	rest := line[len(prefix):]
	if rest[0] < '0' || rest[0] > '9' || rest[1] != ' ' {
		return 0
	}
	rest = bytes.TrimLeft(rest[2:], " ")
	if len(rest) < 3 {
		return 0
	}
	code := 0
	for _, d := range rest[:3] {
		if d < '0' || d > '9' {
			return 0
		}
		code = 10*code + int(d-'0')
	}
	if len(rest) > 3 && rest[3] != ' ' && rest[3] != '\r' || code < 100 {
		return 0
	}
	return code
}

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load drives one address from many kept connections. It writes ready-made
// bytes and reads no more of an answer than it must, because it shares the
// cores with what it measures.
type load struct {
	address     string
	beside      []string // further nodes; connections go to all of them in turn
	connections int
	total       int           // requests; 0: until the time is over
	lasts       time.Duration // 0: until total
	every       time.Duration // pace over all connections; 0: as fast as it goes
	request     func(i int) (path string, body []byte)
	header      string
	answered    func(i int, status int, body []byte, took time.Duration) // may be nil; called concurrently
}

// outcome of a load.
type outcome struct {
	requests int
	refused  int // 429 and 503
	failed   int // anything else that is not 2xx
	took     time.Duration
	times    []time.Duration // sorted
}

func (o outcome) rate() float64 { return float64(o.requests-o.refused-o.failed) / o.took.Seconds() }

// and adds up two runs of one load, without their times.
func (o outcome) and(other outcome) outcome {
	return outcome{
		requests: o.requests + other.requests, refused: o.refused + other.refused, failed: o.failed + other.failed,
		took: o.took + other.took,
	}
}

func (o outcome) percentile(p float64) time.Duration {
	if len(o.times) == 0 {
		return 0
	}
	return o.times[min(len(o.times)-1, int(p*float64(len(o.times))))]
}

func (l load) run(ctx context.Context) (outcome, error) {
	// Connections are made before the clock starts: that is not what is measured. A paced load makes each when its first
	// request is due: a server hangs up on who is connected and says nothing.
	connections := make([]*connection, l.connections)
	nodes := append([]string{l.address}, l.beside...)
	for i := range connections {
		connections[i] = &connection{node: nodes[i%len(nodes)]}
		defer connections[i].close()
		if l.every > 0 {
			continue
		}
		if err := connections[i].dial(); err != nil {
			return outcome{}, err
		}
	}
	var next atomic.Int64
	var mu sync.Mutex
	var all outcome
	var failure error
	var wg sync.WaitGroup
	start := time.Now()
	for _, conn := range connections {
		wg.Go(func() {
			o, err := l.drive(ctx, conn, start, &next)
			mu.Lock()
			defer mu.Unlock()
			all.requests += o.requests
			all.refused += o.refused
			all.failed += o.failed
			all.times = append(all.times, o.times...)
			failure = errors.Join(failure, err)
		})
	}
	wg.Wait()
	all.took = time.Since(start)
	slices.Sort(all.times)
	return all, failure
}

// connection is one of the load's, kept until its end.
type connection struct {
	node string
	conn net.Conn
	in   *bufio.Reader
}

func (c *connection) dial() (err error) {
	if c.conn, err = net.Dial("tcp", c.node); err == nil {
		c.in = bufio.NewReaderSize(c.conn, 8<<10)
	}
	return err
}

func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close() // what was sent is answered
	}
}

func (l load) drive(ctx context.Context, c *connection, start time.Time, next *atomic.Int64) (o outcome, err error) {
	var out bytes.Buffer
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if l.total > 0 && i >= l.total || l.lasts > 0 && time.Since(start) > l.lasts {
			return o, nil
		}
		if l.every > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * l.every)))
		}
		if c.conn == nil {
			if err := c.dial(); err != nil {
				return o, err
			}
		}
		path, body := l.request(i)
		out.Reset()
		fmt.Fprintf(&out, "POST %s HTTP/1.1\r\nHost: bench\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, l.header, len(body))
		out.Write(body)
		began := time.Now()
		if _, err := c.conn.Write(out.Bytes()); err != nil {
			return o, err
		}
		status, answer, err := readAnswer(c.in)
		if err != nil {
			return o, err
		}
		took := time.Since(began)
		o.requests++
		o.times = append(o.times, took)
		switch {
		case status == 429 || status == 503:
			o.refused++
		case status/100 != 2:
			o.failed++
		}
		if l.answered != nil {
			l.answered(i, status, answer, took)
		}
	}
	return o, ctx.Err()
}

// answerBytesMax is far beyond what the service answers in a measurement.
const answerBytesMax = 64 << 20

// readAnswer reads one response with a Content-Length.
func readAnswer(in *bufio.Reader) (status int, body []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 {
		return 0, nil, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, err
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, ok := bytes.Cut(line,
			[]byte(":")); ok && len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(textproto.TrimString(string(value))); err != nil || length < 0 || length > answerBytesMax {
				return 0, nil, fmt.Errorf("an answer of %q bytes: %w", textproto.TrimBytes(value), err)
			}
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(in, body)
	return status, body, err
}

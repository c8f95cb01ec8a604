package webhook_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/guard"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

// Whatever a receiver answers, and however long it keeps the line open
// afterwards: the try ends in time, what is kept of it is small, and it is
// delivered exactly when a status line of success was given.
func FuzzReply(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 500 x\r\nRetry-After: 9\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: //evil\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
		"HTTP/1.1 2", "\x16\x03\x01", "", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200 OK\r\n" + "A: b\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte, open bool) {
		synctest.Test(t, func(t *testing.T) {
			s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, guard.Config{Demo: true}),
				Exchange: webhook.ExchangeTimeout})
			s.Over(func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
						return
					}
					_, _ = theirs.Write(text) // the sender may have heard enough
					if open {
						_, _ = io.Copy(io.Discard, theirs) // until the sender leaves
					}
				}()
				return ours, nil
			})
			begun := time.Now()
			try := s.Send(t.Context(), "http://127.0.0.1:8080/hook", parcel(t))
			if took := time.Since(begun); took > webhook.ExchangeTimeout+time.Second {
				t.Errorf("a try took %s", took)
			}
			if len(try.Reply) > webhook.ReplyBytesKept || try.Hops > webhook.RedirectsMax {
				t.Errorf("%d bytes are kept, %d redirects followed", len(try.Reply), try.Hops)
			}
			if try.Delivered() != (try.Status >= 200 && try.Status < 300) {
				t.Errorf("%q is %d and delivered: %t", text, try.Status, try.Delivered())
			}
		})
	})
}

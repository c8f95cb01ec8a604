package webhook_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/webhook"
)

// Whatever a receiver answers, and however long it keeps the line open
// afterwards: the try ends in time, what is kept of it is small, and it is
// delivered exactly when a status line of success was given.
func FuzzReply(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 500 x\r\nRetry-After: 9\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: //evil\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
		"HTTP/1.1 2", "\x16\x03\x01", "", "HTTP/2 200\r\n\r\n", "HTTP/1.1 200 OK\r\n" + "A: b\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, open bool) {
		synctest.Test(t, func(t *testing.T) {
			s := newSender(t, webhook.SenderConfig{Guard: newGuard(t, webhook.GuardConfig{Demo: true})})
			s.Over(func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close() //nolint:errcheck // a pipe
					if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
						return
					}
					theirs.Write(text) //nolint:errcheck // the sender may have heard enough
					if open {
						io.Copy(io.Discard, theirs) //nolint:errcheck // until the sender leaves
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

// Wherever a receiver redirects to, it is an address that could have been
// configured, or the try ends there.
func FuzzLocation(f *testing.F) {
	for _, location := range []string{
		"/b", "//other.example/b", "https://other.example:8443/x?y#z", "http://other.example/", "https://127.0.0.1/", "https://api.own.example/", "?x=y", "", "\\\\evil.example", "https://u:p@h/",
		"HTTPS://OTHER.example./", "javascript:alert(1)", "https:/other.example", "https://0x7f.1/", "\t//h",
	} {
		f.Add(location)
	}
	g, err := webhook.NewGuard(webhook.GuardConfig{Own: []string{"https://api.own.example"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, location string) {
		got, err := g.Hop("https://receiver.example/a/b", location)
		if err != nil {
			if reasonOf(err) == "" {
				t.Fatalf("%q: untyped error %v", location, err)
			}
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || u.Hostname() == "api.own.example" || len(got) > webhook.URLCharactersMax {
			t.Fatalf("%q leads to %q, %v", location, got, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && g.CheckAddress(a) != nil {
			t.Fatalf("%q leads to the refused address %s", location, a)
		}
	})
}

// No spelling of our own address, nor of any other, makes the service call itself.
func FuzzOwnAddress(f *testing.F) {
	f.Add("https://api.own.example")
	f.Add("https://API.Own.example.:443/base")
	f.Add("https://[2606:4700::1]:8443")
	f.Add("https://b\u00fccher.example")
	free, err := webhook.NewGuard(webhook.GuardConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, own string) {
		g, err := webhook.NewGuard(webhook.GuardConfig{Own: []string{own}})
		if err != nil {
			return
		}
		if plain, err := free.CheckURL(own); err == nil {
			if _, err := g.CheckURL(own); reasonOf(err) != webhook.ReasonOwnHost {
				t.Fatalf("%q may be called: %v", own, err)
			}
			if _, err := g.CheckURL(plain); reasonOf(err) != webhook.ReasonOwnHost {
				t.Fatalf("%q may be called: %v", plain, err)
			}
		}
	})
}

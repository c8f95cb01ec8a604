package sdi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
	"tributary/internal/xmltree/soap"
)

// When the double calls: soon, then what comes later, late when a number asks
// for it, and again until it is answered.
const (
	soon  = 20 * time.Millisecond
	then  = 600 * time.Millisecond
	late  = 5 * time.Second
	again = 250 * time.Millisecond

	callTimeout = 10 * time.Second
)

func noticeKey(n int64) string { return "notice/" + itoa(n) }

// queue keeps messages until they are delivered.
func queue(b *authority.Book, list ...notice) []notice {
	for i := range list {
		list[i].N = next(b, "notices")
		b.Keep(noticeKey(list[i].N), list[i])
	}
	return list
}

// resume takes up what was not delivered when the double was stopped.
func (a *double) resume() {
	var open []notice
	a.desk.Read(func(b *authority.Book) {
		var count int64
		b.Load("count/notices", &count) // none before the first
		for i := int64(1); i <= count; i++ {
			var n notice
			if b.Load(noticeKey(i), &n) {
				open = append(open, n)
			}
		}
	})
	a.tell(open)
}

// tell delivers messages, each by itself: SdI gives no order.
func (a *double) tell(list []notice) {
	for _, n := range list {
		a.desk.Go(func(ctx context.Context) {
			if !authority.Pause(ctx, n.At.Sub(a.now())) {
				return
			}
			if n.Open != nil {
				a.settle(n)
				return
			}
			a.deliver(ctx, n)
		})
	}
}

// settle decides a file that waited for its decision.
func (a *double) settle(n notice) {
	var queued []notice
	err := a.desk.Write(func(b *authority.Book) {
		b.Put(noticeKey(n.N), "")
		reg := registrar{book: b, at: a.now()}
		if step := a.desk.Decide(); step.Outcome == authority.Suspend {
			n.At = a.now().Add(max(step.Delay, soon))
			reg.notices = []notice{n}
		} else {
			reg.decide(*n.Open, step)
		}
		queued = queue(b, reg.notices...)
	})
	if err == nil {
		a.tell(queued)
	}
}

// deliver calls until the transmitter has answered 200 as often as the message
// is to come.
//
// Failure policy: a message that was answered and not yet forgotten when the
// double dies comes once more; SdI repeats, too.
func (a *double) deliver(ctx context.Context, n notice) {
	bring := a.messenger(n)
	if bring == nil {
		return // an error of ours, which tests of every kind exclude
	}
	for left := max(n.Times, 1); left > 0; {
		if bring(ctx) {
			left--
			continue
		}
		if !authority.Pause(ctx, again) {
			return
		}
	}
	_ = a.desk.Write(func(b *authority.Book) { // a broken book says so to the next caller
		b.Put(noticeKey(n.N), "")
		if n.Kind == received {
			b.Put(fileKey(n.SdI), "")
		}
	})
}

// messenger makes a call for a message each time, and reports whether it was answered.
func (a *double) messenger(n notice) func(context.Context) bool {
	if n.Kind == received {
		return a.invoice(n)
	}
	text, name, err := n.write()
	m, ok := sdiwire.MessageOf(n.Kind)
	if err != nil || !ok {
		return nil
	}
	kind, body := frame(m, n, name, text)
	return func(ctx context.Context) bool {
		to := a.callback(n.Channel)
		return to != "" && call(ctx, to, m.Action(), kind, body)
	}
}

func (a *double) callback(name string) string {
	var c channel
	a.desk.Read(func(b *authority.Book) { b.Load(channelKey(name), &c) })
	return c.Callback
}

// call makes one call and reports whether it was answered 200.
func call(ctx context.Context, to, action, kind string, body []byte) bool {
	keys, err := keysOf()
	if err != nil {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return false // no address
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("SOAPAction", `"`+action+`"`)
	// Whose certificate the receiver serves is not looked at: what is sent is made up.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{keys.certificate()}, InsecureSkipVerify: true,
	}}
	if strings.HasPrefix(to, "http://") {
		r.Header.Set(sdiwire.HeaderClient, ":"+base64.StdEncoding.EncodeToString(keys.leaf.Raw)+":")
	}
	resp, err := (&http.Client{Timeout: callTimeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}).Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the status says it all
	return resp.StatusCode == http.StatusOK
}

// frame is the body of the call: every second one in parts.
func frame(m sdiwire.Message, n notice, name string, text []byte) (contentType string, body []byte) {
	packed := n.N%2 == 0
	w := xmltree.NewWriter(len(text)*4/3 + 1024)
	w.Declare()
	soap.Message{Version: soap.V11, NoHeader: true, Body: func(w *xmltree.Writer) {
		w.Start("ns2:"+m.Element, "xmlns:ns2", sdiwire.SpaceTypes)
		w.Leaf("IdentificativoSdI", n.id())
		w.Leaf("NomeFile", name)
		writeFile(w, text, packed)
		w.End()
	}}.WriteTo(w)
	return finished(w, text, packed)
}

// writeFile writes a call's file, or where it follows as a part of its own.
func writeFile(w *xmltree.Writer, file []byte, packed bool) {
	if !packed {
		w.Leaf("File", base64.StdEncoding.EncodeToString(file))
		return
	}
	w.Start("File")
	w.Raw([]byte(sdiwire.Include))
	w.End()
}

// finished is a call's type and body.
func finished(w *xmltree.Writer, file []byte, packed bool) (contentType string, body []byte) {
	if packed {
		return sdiwire.Pack(w.Bytes(), file, "text/xml")
	}
	return soap.V11.ContentType(""), w.Bytes()
}

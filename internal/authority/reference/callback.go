package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
)

// How the authority calls back: soon, and again until it is answered.
const (
	callbackSoon  = 100 * time.Millisecond
	callbackAgain = 250 * time.Millisecond
	callbackTries = 120
	callbackCall  = 5 * time.Second

	// callbackMost is when a poll decides after all, should nobody be reached.
	callbackMost = time.Minute
)

// callsBack reports whether a document wants its decision by callback.
func (d *arrival) callsBack() bool { return strings.HasSuffix(d.Number, xxwire.SuffixCallback) }

// callBack decides the documents of a call that asked for it, later, and tells
// the platform: each decision twice, and behind it, out of order, that the
// document is pending. That is what real ones do on a bad day.
func (a *double) callBack(r *http.Request, from caller, docs []arrival, answers []xxwire.Receipt) {
	to := r.Header.Get(xxwire.HeaderCallback)
	if to == "" {
		return
	}
	name := ""
	if cert, err := authority.ClientCertificate(r); err == nil && cert != nil {
		name = cert.Subject.CommonName
	}
	for i := range docs {
		if !docs[i].callsBack() || answers[i].Outcome != xxwire.OutcomePending {
			continue
		}
		number, key, pending := docs[i].Number, docs[i].Key, answers[i]
		a.desk.Go(func(ctx context.Context) {
			if !authority.Pause(ctx, callbackSoon) {
				return
			}
			decided, ok := a.decideNow(from.supplier, number)
			if !ok {
				return
			}
			id := fmt.Sprintf("%s/%s", from.supplier, number)
			call := platformCall{to: to, key: xxwire.PlatformKey(name)}
			call.post(ctx, xxwire.Callback{ID: id + "/decision", Key: key, Receipt: decided})
			call.post(ctx, xxwire.Callback{ID: id + "/decision", Key: key, Receipt: decided})
			call.post(ctx, xxwire.Callback{ID: id + "/pending", Key: key, Receipt: pending})
		})
	}
}

// decideNow is the authority's decision on an open document.
func (a *double) decideNow(supplier, number string) (said xxwire.Receipt, ok bool) {
	err := a.desk.Write(func(b *authority.Book) {
		said, ok = (&registrar{book: b, supplier: supplier}).settled(number,
			strings.HasSuffix(number, xxwire.SuffixCallbackRefused))
	})
	return said, ok && err == nil
}

// settled is a document's decision, made now if it was open.
func (reg *registrar) settled(number string, refused bool) (said xxwire.Receipt, ok bool) {
	if open, waits := reg.open(number); waits && !open.Rejected {
		step := authority.Step{Outcome: authority.Accept}
		if refused {
			step.Outcome = authority.Reject
		}
		reg.decide(number, open, step)
	}
	if held, known := reg.book.Find(reg.supplier, number); known {
		return registered(held), true
	}
	open, waits := reg.open(number)
	return open.receipt(number), waits
}

// platformCall is where a platform is told, and with which key.
type platformCall struct{ to, key string }

// post tells a platform, again and again until it answers that it has stored it.
func (c platformCall) post(ctx context.Context, m xxwire.Callback) {
	body, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encoding a callback: %v", err)) // strings only: cannot happen
	}
	client := &http.Client{Timeout: callbackCall, Transport: &http.Transport{DisableKeepAlives: true}}
	for range callbackTries {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to, bytes.NewReader(body))
		if err != nil {
			return // no address
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(xxwire.HeaderPlatform, xxwire.PlatformMAC(c.key, body))
		if resp, err := client.Do(r); err == nil {
			_ = resp.Body.Close() // the status says it all
			if resp.StatusCode/100 == 2 {
				return
			}
		}
		if !authority.Pause(ctx, callbackAgain) {
			return
		}
	}
}

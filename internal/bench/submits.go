package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"tributary/internal/server"
	"tributary/internal/transaction"
)

// submitLoad posts fresh sales to a server.
func submitLoad(s *subject, prefix string) load {
	demo := s.Demo()
	return load{
		address: host(s.URL()), connections: connections, header: "Authorization: Bearer " + demo.APIKey + "\r\n",
		request: func(i int) (string, []byte) {
			return "/v1/transactions", body(fmt.Sprintf("%s-%s-%08d", s.mark, prefix, i), demo.Suppliers["XX"])
		},
	}
}

// submits measures durable submits against two yardsticks: the same HTTP
// server that only decodes and answers, and one commit per request. The first
// takes turns with what it is compared to, because machines have moods.
func (r *run) submits(ctx context.Context) error {
	bare, stop, err := r.bareHandler()
	if err != nil {
		return err
	}
	defer stop()
	s, err := r.open(ctx, "submits", apiOnly)
	if err != nil {
		return err
	}
	full, err := r.againstDecoding(ctx, s, bare)
	if err == nil {
		err = r.atPace(ctx, s, "half_load", full/2)
	}
	if err == nil {
		err = r.atPace(ctx, s, "2500_per_second", steadyRate)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	single, err := r.oneCommitEach(ctx)
	if err != nil {
		return err
	}
	r.report.add("one_commit_per_request_per_second", single, "1/s")
	r.report.add("submits_to_one_commit", full/single, "x")
	return nil
}

func apiOnly(c *server.Config) { c.Worker = false }

// againstDecoding lets submits and the bare handler take turns.
func (r *run) againstDecoding(ctx context.Context, s *subject, bare load) (rate float64, err error) {
	bare, measured := r.lasting(bare, turnSeconds), r.lasting(submitLoad(s, "submit"), turnSeconds)
	var decoded, full outcome
	err = r.turns(func(counts bool) error {
		a, err := bare.run(ctx)
		if err != nil {
			return err
		}
		b, err := measured.run(ctx)
		measured = measured.behind(b)
		if counts {
			decoded, full = decoded.and(a), full.and(b)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	r.report.add("submits_per_second", full.rate(), "1/s")
	r.report.add("submits_refused", float64(full.refused+full.failed), "")
	r.report.add("decode_only_per_second", decoded.rate(), "1/s")
	r.report.add("submits_to_decode_only", full.rate()/decoded.rate(), "x")
	return full.rate(), nil
}

// atPace measures how long a submit takes at half of what the server can do,
// and at a pace that is the same everywhere. A single stall of the disk decides
// the 99th percentile of a short run, so there are several: the middle one is
// the figure, and the worst is told.
func (r *run) atPace(ctx context.Context, s *subject, name string, rate float64) error {
	l := r.lasting(submitLoad(s, name), halfSeconds)
	l.every = time.Duration(float64(time.Second) / rate)
	var p50, p99 []time.Duration
	err := r.turns(func(counts bool) error {
		o, err := l.run(ctx)
		if err == nil && o.failed > 0 {
			err = fmt.Errorf("%d of %d submissions were not accepted", o.failed, o.requests)
		}
		l = l.behind(o)
		if counts {
			p50, p99 = append(p50, o.percentile(.5)), append(p99, o.percentile(.99))
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(p50)
	slices.Sort(p99)
	r.report.add("submit_p50_"+name, ms(p50[len(p50)/2]), "ms")
	r.report.add("submit_p99_"+name, ms(p99[len(p99)/2]), "ms")
	r.report.add("submit_p99_"+name+"_worst_turn", ms(p99[len(p99)-1]), "ms")
	return nil
}

const (
	turnCount   = 5
	turnSeconds = 1
	halfSeconds = 2
	steadyRate  = 2500 // submits per second: half of the least that the service must take
)

// turns does something several times. The first time warms up and does not count.
func (r *run) turns(do func(counts bool) error) error {
	count := turnCount
	if r.cfg.Quick {
		count = 1
	}
	for turn := range count + 1 {
		if err := do(turn > 0); err != nil {
			return err
		}
	}
	return nil
}

// behind is the same load with requests that were not sent yet.
func (l load) behind(o outcome) load {
	request, sent := l.request, o.requests+l.connections // each connection may have drawn one more
	l.request = func(i int) (string, []byte) { return request(sent + i) }
	return l
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bareHandler is the first yardstick, ready to be called.
func (r *run) bareHandler() (l load, stop func(), err error) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return load{}, nil, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err == nil {
			_, _, err = transaction.Decode(transaction.Invoice, text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, _ := uuid.NewV7() // never fails here
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"operation_id":"%s"}`, id)
	})}
	go func() { _ = srv.Serve(at) }() // ends with Close
	return load{
		address: at.Addr().String(), connections: connections,
		request: func(i int) (string, []byte) { return "/", body(fmt.Sprintf("bare-%08d", i), "supplier") },
	}, func() { _ = srv.Close() }, nil // a yardstick
}

// oneCommitEach is the second yardstick: the same program without groups.
func (r *run) oneCommitEach(ctx context.Context) (float64, error) {
	s, err := r.open(ctx, "single", func(c *server.Config) { c.Worker, c.NoGroups = false, true })
	if err != nil {
		return 0, err
	}
	o, err := r.lasting(submitLoad(s, "single"), 2).run(ctx)
	return o.rate(), errors.Join(err, s.close())
}

package country

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// Traffic counts the bytes of bodies that one call of a [Channel] sent and
// received, however many requests it took. A nil Traffic has counted nothing.
type Traffic struct {
	out, in atomic.Int64
	room    room // of its answers
}

// Out is how many bytes were handed to the network.
func (t *Traffic) Out() int64 {
	if t == nil {
		return 0
	}
	return t.out.Load()
}

// In is how many bytes of answers were read.
func (t *Traffic) In() int64 {
	if t == nil {
		return 0
	}
	return t.in.Load()
}

type trafficKey struct{}

// WithTraffic returns a context whose calls to authorities are counted.
func WithTraffic(ctx context.Context) context.Context {
	return context.WithValue(ctx, trafficKey{}, &Traffic{})
}

// TrafficOf is what the calls of a context amounted to; nil where nobody counts.
func TrafficOf(ctx context.Context) *Traffic {
	t, _ := ctx.Value(trafficKey{}).(*Traffic)
	return t
}

// counted makes a request count its bytes, once: a client may stand on another.
func counted(r *http.Request) (*http.Request, *Traffic) {
	t := TrafficOf(r.Context())
	if t == nil {
		return r, nil
	}
	r = r.Clone(context.WithValue(r.Context(), trafficKey{}, (*Traffic)(nil)))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &countedBody{r.Body, &t.out}
		if again := r.GetBody; again != nil {
			r.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				if err != nil {
					return nil, err
				}
				return &countedBody{body, &t.out}, nil
			}
		}
	}
	return r, t
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

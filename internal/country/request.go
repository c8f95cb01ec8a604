package country

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
)

// Request is one call to an authority.
type Request struct {
	Method   string // empty: POST
	URL      string
	Header   []string // names and values in turn; one without a value is not sent
	Body     []byte
	BytesMax int64 // of the answer
}

// Do makes the call, see [Exchange]. What is no request at all was not taken.
func (q Request) Do(ctx context.Context, client *http.Client) (Reply, error) {
	if q.Method == "" {
		q.Method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.URL, bytes.NewReader(q.Body))
	if err != nil {
		return Reply{}, fmt.Errorf("calling the authority: %w: %w", ErrNotTaken, err)
	}
	for i := 0; i+1 < len(q.Header); i += 2 {
		if q.Header[i+1] != "" {
			r.Header.Set(q.Header[i], q.Header[i+1])
		}
	}
	return Exchange(client, r, q.BytesMax)
}

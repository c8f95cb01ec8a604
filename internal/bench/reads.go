package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/server"
	"tributary/internal/transaction"
)

const readCount = 120 // of each kind

// storedBody is a sale of a store with a past: its documents are of the last thousand days.
func storedBody(s *subject, i, of int) []byte {
	day := time.Date(2023, 7, 5, 10, 0, 0, 0, time.UTC).AddDate(0, 0, i*1000/of).Format(time.RFC3339)
	return bytes.Replace(body(storedID(s.mark, i), s.Demo().Suppliers["XX"]), []byte("2026-03-31T10:00:00Z"), []byte(day), 1)
}

func storedID(mark string, i int) string { return fmt.Sprintf("%s-old-%09d", mark, i) }

// reads measures what a client with a past reads, filter by filter, also where
// there is nothing to find, and what an operator searches for in it.
func (r *run) reads(ctx context.Context, s *subject, mark string) error {
	n := r.cfg.Stored
	number := storedID(mark, n/3)
	const path = "/v1/transactions"
	var lists time.Duration
	for _, query := range []string{
		"", "transaction_number=" + number, "supplier_id=" + s.Demo().Suppliers["XX"],
		"supplier_id=00000000000000000000000000000000", "status=FAILURE", "status=PROCESSING", "country_code=ES",
		"from=2023-07-05T00:00:00Z&to=2023-07-07T00:00:00Z", "from=2031-01-01T00:00:00Z", "status=FAILURE&country_code=XX",
	} {
		took, err := r.read(ctx, s, path+"?limit=100&"+query)
		if err != nil {
			return err
		}
		lists = max(lists, took)
	}
	r.report.add("list_p99_stored", ms(lists), "ms")
	history, err := r.read(ctx, s, path+"/history/"+url.PathEscape(number))
	if err != nil {
		return err
	}
	r.report.add("history_p99_stored", ms(history), "ms")
	var searches time.Duration
	for _, q := range []ledger.Query{
		{}, {Text: number}, {ClientID: server.DemoClient, Kind: transaction.Credit}, {ClientID: server.DemoClient, Status: filing.Failure},
		{ClientID: server.DemoClient, Reason: fault.Held}, {Country: "ES"}, {Kind: transaction.Credit},
	} {
		var o outcome
		for range r.scale(readCount) {
			began := time.Now()
			if err := s.Search(ctx, q); err != nil {
				return err
			}
			o.times = append(o.times, time.Since(began))
		}
		searches = max(searches, o.sorted().percentile(.99))
	}
	r.report.add("search_p99_stored", ms(searches), "ms")
	return nil
}

// read is the 99th percentile of one address, asked again and again.
func (r *run) read(ctx context.Context, s *subject, path string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Demo().APIKey)
	var o outcome
	for range r.scale(readCount) {
		began := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("GET %s: %s", path, resp.Status)
		}
		if err != nil {
			return 0, err
		}
		o.times = append(o.times, time.Since(began))
	}
	p99 := o.sorted().percentile(.99)
	fmt.Fprintf(r.cfg.Err, "GET %s: p99 %.1f ms\n", path, ms(p99))
	return p99, nil
}

func (o outcome) sorted() outcome {
	slices.Sort(o.times)
	return o
}

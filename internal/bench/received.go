package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/server"
	"tributary/internal/webhook"
)

const (
	receivedCount   = 10_000
	receivedCountry = "PL" // of the demo: KSeF, whose packages have thousands of documents
	receivedTax     = "5265877635"
	receivedName    = "Klient Sp. z o.o."
)

// received measures documents that wait for one company at its authority: fetched, stored, read and announced. They
// are sold first, by a process of its own life; the clock begins when the buyer switches receiving on.
func (r *run) received(ctx context.Context) error {
	if r.cfg.Stored != 0 || r.cfg.Nodes != 0 {
		return fault.New(fault.Invalid, "--received and --stored or --nodes are mutually exclusive")
	}
	at, err := r.place(ctx, "received")
	if err != nil {
		return err
	}
	n := r.scale(receivedCount)
	fmt.Fprintf(r.cfg.Err, "selling %d documents …\n", n)
	if err := r.visit(ctx, at, nil, func(s *subject) error { return r.sell(ctx, s, n) }); err != nil {
		return errors.Join(err, at.drop())
	}
	debug.FreeOSMemory() // what selling has left is not its own
	box := newMailbox()
	box.event = webhook.TransactionReceived
	defer box.close()
	fmt.Fprintf(r.cfg.Err, "measuring %d received documents …\n", n)
	err = r.visit(ctx, at, func(c *server.Config) { c.WebhookURL = box.url() }, func(s *subject) error { return r.bring(ctx, s, box, n) })
	return errors.Join(err, at.drop())
}

// sell files so many sales of the demo's company with its authority.
func (r *run) sell(ctx context.Context, s *subject, n int) error {
	packs, err := world.Packs()
	if err != nil {
		return err
	}
	pack := packs[slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == receivedCountry })]
	sales, now := make([][]byte, n), time.Now()
	for i := range sales {
		name := fmt.Sprintf("%s-%08d", s.mark, i)
		sales[i], err = pack.ExampleSale(country.SaleID{Transaction: name, Number: name, Supplier: s.Demo().Suppliers[receivedCountry], Date: now})
		if err != nil {
			return err
		}
	}
	l := submitLoad(s, "received")
	l.total, l.request = n, func(i int) (string, []byte) { return "/v1/transactions", sales[i] }
	o, err := l.run(ctx)
	if err == nil && o.refused+o.failed > 0 {
		err = fmt.Errorf("%d of %d submissions were rejected and %d failed", o.refused, o.requests, o.failed)
	}
	if err != nil {
		return err
	}
	if err := s.WaitSettled(ctx); err != nil {
		return err
	}
	return s.noneFailed(ctx, "SENT")
}

// bring lets the buyer receive, and waits until all documents are announced.
func (r *run) bring(ctx context.Context, s *subject, box *mailbox, n int) error {
	r.rss.anew()
	company := fmt.Appendf(nil, `{"meta":{"country_code":"%[1]s","external_id":"bench-buyer"},"legal_name":"%[2]s","tax_information":{"tax_number":"%[1]s%[3]s"},`+
		`"address":{"country_code":"%[1]s","city":"Kraków","postal_code":"30-001","address_line_1":"ul. Długa 1"},`+
		`"settings":{"receive":{"from":"%[4]s"}},"tax_credentials":{"password":"20251006-EC-0123456789-ABCDEF0123-4A|nip-%[3]s|%[5]s"}}`,
		receivedCountry, receivedName, receivedTax, time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), strings.Repeat("ab", 32))
	start := time.Now()
	if err := s.onboard(ctx, company); err != nil {
		return fmt.Errorf("onboard the buyer: %w", err)
	}
	if err := box.wait(ctx, n/2); err != nil {
		return err
	}
	first := r.rss.anew()
	if err := box.wait(ctx, n); err != nil {
		return err
	}
	took, second := time.Since(start), r.rss.anew()
	if err := s.noneFailed(ctx, "RECEIVED"); err != nil {
		return err
	}
	r.report.add("received_per_second", float64(n)/took.Seconds(), "1/s")
	r.report.add("resident_memory_received", float64(max(first, second))/(1<<20), "MiB")
	r.report.add("resident_memory_received_second_half_to_first", float64(second)/float64(first), "x")
	return nil
}

// noneFailed refuses to measure what did not work.
func (s *subject) noneFailed(ctx context.Context, direction string) error {
	text, err := s.call(ctx, http.MethodGet, "/v1/transactions?status=FAILURE&limit=1&direction="+direction, nil, http.StatusOK)
	if err != nil {
		return err
	}
	var failed struct{ Data []json.RawMessage }
	if err := json.Unmarshal(text, &failed); err == nil && len(failed.Data) > 0 {
		return fmt.Errorf("documents failed: %s", text)
	}
	return err
}

// onboard onboards a company, and waits for its job.
func (s *subject) onboard(ctx context.Context, company []byte) error {
	text, err := s.call(ctx, http.MethodPost, "/onboarding/v2/companies", company, http.StatusAccepted)
	for err == nil {
		var job struct {
			Data struct {
				Job string `json:"job_id"`
			}
			Status string
			Errors json.RawMessage
		}
		if err = json.Unmarshal(text, &job); err != nil {
			break
		}
		if job.Status == "failed" {
			return fmt.Errorf("the job failed: %s", job.Errors)
		}
		if job.Data.Job == "" {
			return nil // it is done: the company is there
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		text, err = s.call(ctx, http.MethodGet, "/onboarding/v2/jobs/"+job.Data.Job, nil, http.StatusOK)
	}
	return err
}

// call makes one call of the API with the demo's key.
func (s *subject) call(ctx context.Context, method, path string, body []byte, want int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Demo().APIKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s %s answered %d: %s", method, path, resp.StatusCode, text)
	}
	return text, err
}

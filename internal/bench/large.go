package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"tributary/internal/country"
	"tributary/internal/server"
)

const (
	largeCount       = 40
	largeLines       = 4800
	largeConnections = 4 // past a few large bodies of one client that wait, the next is told to come back
)

// largeBody is a sale of so many lines, about 700 kB.
func largeBody(id, supplier string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"country_code":"XX","language_code":"EN","currency_code":"EUR","transaction_date":"2026-03-31T10:00:00Z","transaction_number":"%[1]s","transaction_id":"%[1]s","supplier":{"id":"%[2]s"},"items":[`, id, supplier)
	for i := range largeLines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"number":%d,"name":"Darjeeling first flush, 100 g, of garden %d","quantity":3,"unit_price":7570,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}`, i+1, i+1)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// largeDocuments measures sales of thousands of lines of one supplier, filed and
// printed, and what memory they take: what is in work is bounded by bytes.
func (r *run) largeDocuments(ctx context.Context) error {
	debug.FreeOSMemory() // what the phases before have left is not its own
	s, err := r.open(ctx, "large", func(c *server.Config) { c.DemoUseCase = country.Both })
	if err != nil {
		return err
	}
	r.rss.anew()
	demo := s.Demo()
	l := submitLoad(s, "large")
	l.total, l.connections = r.scale(largeCount), largeConnections
	l.request = func(i int) (string, []byte) {
		return "/v1/transactions", largeBody(fmt.Sprintf("%s-large-%08d", s.mark, i), demo.Suppliers["XX"])
	}
	wrong := make(chan string, 1)
	l.answered = func(_, status int, text []byte, _ time.Duration) {
		if status != http.StatusAccepted {
			select {
			case wrong <- fmt.Sprintf("%d %s", status, text):
			default:
			}
		}
	}
	start := time.Now()
	done, err := l.run(ctx)
	if err == nil {
		err = s.WaitSettled(ctx)
	}
	done.took = time.Since(start)
	select {
	case text := <-wrong:
		err = errors.Join(err, fmt.Errorf("a large sale got %s", text))
	default:
	}
	peak := r.rss.anew()
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	r.report.add("large_documents_per_second", done.rate(), "1/s")
	r.report.add("resident_memory_large_documents", float64(peak)/(1<<20), "MiB")
	return nil
}

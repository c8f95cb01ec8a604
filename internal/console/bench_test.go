package console_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/operator"
)

const pageMax = 200 * time.Millisecond

// BenchmarkPages measures the server's time for each page on a store that has
// been in use: TRIBUTARY_BENCH_STORED transactions, 10,000 unless told. A page
// that takes longer than pageMax on average fails.
func BenchmarkPages(b *testing.B) {
	n := 10_000
	if text := os.Getenv("TRIBUTARY_BENCH_STORED"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	h := build(b, dbtest.SQLite(b))
	caller := filing.Caller{Scope: clientID, UseCase: func(string) (country.UseCase, bool) { return country.Both, true }}
	must(b, h.service.LoadSettled(b.Context(), caller, n, func(i int) []byte {
		return fmt.Appendf(nil, `{"country_code":"XX","currency_code":"EUR","transaction_date":"2026-04-02T10:00:00Z","transaction_number":"OLD-%d","transaction_id":"old-%d","supplier":{"id":%q},
			"items":[{"number":1,"name":"Tea","quantity":3,"unit_price":%d,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}`, i, i, h.supplier, 1000+i%1000)
	}))
	h.run()
	v := h.as(operator.Admin)
	last := "/transactions?q=OLD-" + strconv.Itoa(n-1)
	for late := time.Now().Add(time.Hour); ; {
		page := v.get(last)
		if strings.Contains(page, "/console/transactions/0") {
			break
		}
		if time.Now().After(late) {
			b.Fatal("the search never caught up")
		}
		v.follow(page, "/console/transactions/0")
	}
	one := h.submit("INV-1")
	v.await("/transactions/"+one, "delivered")
	for _, path := range []string{
		"/", "/?over=week", "/transactions", "/transactions?q=OLD-77", "/transactions?status=FAILURE",
		"/transactions?country=IE", "/transactions?status=SUCCESS&client=acme&from=2020-01-01",
		"/transactions?amount=300.00&kind=CREDIT",
		"/transactions/" + one, "/deliveries", "/deliveries?status=discarded",
		"/deliveries/replay?client=acme&from=2020-01-01T00:00&to=2090-01-01T00:00", "/clients", "/clients/acme",
		"/clients/acme/preview.pdf",
		"/suppliers", "/lookups", "/queues", "/periods", "/alerts", "/audit", "/operators", "/simulators", "/authorities",
	} {
		b.Run(strings.ReplaceAll(path, "/", "_"), func(b *testing.B) {
			for b.Loop() {
				if resp := v.do(http.MethodGet, path, nil); resp.StatusCode != http.StatusOK {
					b.Fatalf("%d\n%s", resp.StatusCode, gist(read(b, resp)))
				} else {
					read(b, resp)
				}
			}
			if mean := b.Elapsed() / time.Duration(b.N); mean > pageMax {
				b.Errorf("%s takes %s with %d transactions", path, mean, n)
			}
		})
	}
}

package bench

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/xx"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/transaction"
)

// documents measures PDFs and filings made per second on all cores.
func (r *run) documents(ctx context.Context) error {
	sale, _, err := transaction.Decode(transaction.Invoice, body("bench-document", "supplier"))
	if err != nil {
		return err
	}
	totals, _ := transaction.Calculate(sale.Items)
	supplier := country.Supplier{ID: "supplier", CountryCode: "XX", LegalName: "Reference Trading Ltd", TaxNumber: "XX123456789",
		Address: transaction.Address{CountryCode: "XX", City: "Exampleton", AddressLine1: "1 Sample Street"}}
	renderer, err := document.NewRenderer(typeset.WithSystem())
	if err != nil {
		return err
	}
	visual := document.Visual{Transaction: *sale, Totals: totals, Supplier: supplier, Language: "EN",
		IssuedAt: time.Now(), UniqueNumber: "XX-BENCH",
		Imprint: country.Imprint{Codes: []country.Code{{Text: "https://authority.invalid/xx/check?s=XX123456789&n=bench"}}}}
	perSecond, err := r.everywhere(2, func(int) error {
		_, err := renderer.Render(ctx, visual)
		return err
	})
	if err != nil {
		return fmt.Errorf("render: %w", err)
	}
	r.report.add("pdf_per_second", perSecond, "1/s")
	r.report.add("pdf_per_core", 1000*float64(runtime.GOMAXPROCS(0))/perSecond, "ms")

	channel, err := xx.Variant(transaction.ReferenceCode,
		country.ByNumber).Connect(country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: http.DefaultClient})
	if err != nil {
		return err
	}
	perSecond, err = r.everywhere(1, func(i int) error {
		_, err := channel.Prepare(country.Draft{OperationID: fmt.Sprint(i), UniqueNumber: "XX-BENCH", Transaction: *sale,
			Totals:   totals,
			Supplier: supplier, Location: time.UTC, Now: time.Now()})
		return err
	})
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	r.report.add("filings_prepared_per_second", perSecond, "1/s")
	return nil
}

// everywhere calls fn on all cores for some seconds.
func (r *run) everywhere(seconds int, fn func(i int) error) (float64, error) {
	var n atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	start, lasts := time.Now(), time.Duration(r.scale(seconds*1000))*time.Millisecond
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for first := true; first || time.Since(start) < lasts; first = false {
				if err := fn(int(n.Add(1))); err != nil {
					failure.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(n.Load()) / time.Since(start).Seconds(), nil
}

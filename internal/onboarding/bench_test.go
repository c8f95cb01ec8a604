package onboarding_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// One iteration is one company, from the POST to the end of its job. The
// figures of the project: 10,000 without certificates and 1,000 with PKCS#12 in
// under 60 s each on two cores:
//
//	go test -run '^$' -bench 'Onboard/plain' -benchtime 10000x ./internal/onboarding
//	go test -run '^$' -bench 'Onboard/pkcs12' -benchtime 1000x ./internal/onboarding
func BenchmarkOnboard(b *testing.B) {
	engines := map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}
	file := base64.StdEncoding.EncodeToString(sample{password: "p", subject: sample{}.subject}.file())
	for _, kind := range []string{"plain", "pkcs12"} {
		for _, engine := range []string{"sqlite", "postgres"} {
			b.Run(kind+"/"+engine, func(b *testing.B) {
				onboardMany(b, engines[engine](b), func(i int) map[string]any {
					body := company("meta.country_code", "ie", "meta.external_id", fmt.Sprint("s", i), "tax_information.tax_number",
						fmt.Sprintf("%08d", i))
					if kind == "pkcs12" {
						set(body, "tax_credentials.certificate_base64", file)
						set(body, "tax_credentials.certificate_password", "p")
					}
					return body
				})
			})
		}
	}
}

func onboardMany(b *testing.B, d *db.DB, body func(int) map[string]any) {
	w := newWorld(b, d)
	w.start()
	b.ResetTimer()
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range numbers {
				if _, err := w.Create(context.Background(), client, false, encode(body(i))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	for range b.N {
		<-w.ended
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "companies/s")
	var made int
	if err := d.Read(context.Background(), func(r db.Reader) error {
		return r.Row("SELECT count(*) FROM companies").Scan(&made)
	}); err != nil || made != b.N {
		b.Errorf("%d companies were made of %d: %v", made, b.N, err)
	}
}

func BenchmarkSupplier(b *testing.B) {
	w := newWorld(b, dbtest.SQLite(b))
	id := w.onboard(company("settings.level", 5))
	b.ReportAllocs()
	err := w.d.Read(b.Context(), func(r db.Reader) error {
		for b.Loop() {
			if _, err := w.Supplier(r, client, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

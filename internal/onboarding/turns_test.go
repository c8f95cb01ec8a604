package onboarding_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"runtime"
	"sync"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

// Certificates that take long to open are one client's own affair.
func TestDearOnboardingsOfOneClientHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "ciphers")
	w := newWorld(t, dbtest.SQLite(t))
	rounds := 10_000
	if needs.IsLong() {
		rounds = 100_000
	}
	dear := base64.StdEncoding.EncodeToString(sample{password: "p",
		encoder: pkcs12.Modern2023.WithIterations(rounds)}.file())
	body := func(number int) []byte {
		return encode(company("meta.country_code", "ie", "meta.external_id", fmt.Sprint("s", number),
			"tax_information.tax_number", fmt.Sprintf("%08d", number),
			"tax_credentials.certificate_base64", dear, "tax_credentials.certificate_password", "p"))
	}
	const many = 40
	for i := range many {
		if _, err := w.Create(t.Context(), "hostile", false, body(i)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := w.Create(t.Context(), "other", false, body(many))
	if err != nil {
		t.Fatal(err)
	}
	w.start() // not before: how many of them end meanwhile would be a matter of speed
	before := 0
	for ; <-w.ended != e.Data.JobID; before++ {
	}
	// Eight may have been taken and wait at the same turnstile; more is no turn.
	if before > 24 {
		t.Errorf("%d of another client's jobs went before the only one of this client", before)
	}
}

// Pictures that are small as files and large in memory: the memory is bounded,
// and whoever has too many of them waiting is told to come back.
func TestLogosAreDecodedWithinABoundOfMemory(t *testing.T) {
	needs.NotRaced(t, "memory is measured")
	w := newWorld(t, dbtest.SQLite(t))
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewNRGBA64(image.Rect(0, 0, 2048, 2048))); err != nil {
		t.Fatal(err)
	}
	body := func(i int) []byte {
		return encode(company("meta.external_id", fmt.Sprint("l", i), "branding.logo_base64",
			base64.StdEncoding.EncodeToString(file.Bytes())))
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := w.Create(t.Context(), client, false, body(i)); err != nil && fault.KindOf(err) != fault.Limited {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	// All at the same time would be a quarter of a gigabyte; two at a time leaves the collector time to take back what is
	// done.
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 160<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	t.Logf("the heap grew by %d MiB", (int64(after.HeapSys)-int64(before.HeapSys))>>20)
	if e := w.settle(w.create(company("meta.external_id", "after", "branding.logo_base64",
		base64.StdEncoding.EncodeToString(file.Bytes())))); e.Status != onboarding.Success {
		t.Errorf("%+v", e)
	}
}

// What a clock that was a year ahead has put off is worked by the next start.
func TestAfterAClockThatWasAheadJobsAreWorked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		job := w.create(company())
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE onboarding_jobs SET due_at = $1", db.Micros(tx.Now().AddDate(1, 0, 0)))
		}); err != nil {
			t.Fatal(err)
		}
		w.start()
		for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			e, err := w.Job(t.Context(), client, job)
			if err != nil {
				t.Fatal(err)
			}
			if e.Status == onboarding.Success {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("it waits on: %+v", e)
			}
		}
	})
}

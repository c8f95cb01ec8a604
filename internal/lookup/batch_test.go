package lookup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority/vies"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/lookup"
)

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func TestABatchIsAnsweredEntryByEntryWithOneEvent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 1<<30)
		k := newDesk(t, d, g.register(t))
		entries := []lookup.Entry{
			{Country: "IT", Number: "99100000001"},         // found
			{Country: "it", Number: " IT 991.000.000.01 "}, // the same number
			{Country: "IT", Number: "99200000000"},         // not found
			{Country: "IT", Number: "99400000008"},         // VAT_BLOCKED
			{Country: "DE", Number: "136695977"},           // check digit
			{Country: "QQ", Number: "1"},                   // no such country
			{Country: "GB", Number: "366303068"},           // no register
		}
		created, err := k.CreateBatch(context.Background(), client, batchBody("spring clean", entries))
		if err != nil {
			t.Fatal(err)
		}
		id := created.BatchID
		want := []string{
			"valid pending unknown null", "valid pending unknown null", "valid pending unknown null",
			"valid pending unknown null",
			"invalid invalid no field_not_valid", "invalid invalid unknown unsupported_country",
			"valid not_checked unknown null",
		}
		compare := func(when string, got []lookup.Validation) {
			t.Helper()
			if len(got) != len(want) {
				t.Fatalf("%s: %d entries", when, len(got))
			}
			for i, v := range got {
				if line := fmt.Sprintf("%s %s %s %s", v.Format, v.Status, v.IsBusiness, text(v.ErrorCode)); line != want[i] {
					t.Errorf("%s, entry %d: %q, want %q", when, i, line, want[i])
				}
				if v.CountryISOCode != entries[i].Country || v.TaxIdentificationNumber != entries[i].Number {
					t.Errorf("%s, entry %d is not as it was sent: %+v", when, i, v)
				}
				if v.ValidationID != created.Validations[i].ValidationID {
					t.Errorf("%s, entry %d has another id", when, i)
				}
			}
		}
		compare("created", created.Validations)
		if created.Status != lookup.Running || created.NextCursor != nil || *created.BatchName != "spring clean" {
			t.Errorf("%+v", created)
		}
		if len(k.events(id)) != 0 {
			t.Error("an event before the end")
		}
		k.start()
		if got := k.finished(client, id); got != lookup.Completed {
			t.Errorf("the batch is %s", got)
		}
		copy(want, []string{"valid registered yes null", "valid registered yes null", "valid not_registered no null",
			"valid unknown unknown VAT_BLOCKED"})
		batch, all := k.all(id)
		compare("completed", all)
		if text(all[0].BusinessName) == "null" || text(all[0].BusinessName) != text(all[1].BusinessName) ||
			all[2].BusinessName != nil {
			t.Errorf("names %s, %s, %s", text(all[0].BusinessName), text(all[1].BusinessName), text(all[2].BusinessName))
		}
		if !batch.RequestedAt.Equal(created.RequestedAt) || batch.ResultURL != created.ResultURL ||
			*batch.BatchName != "spring clean" {
			t.Errorf("%+v, created %+v", batch, created)
		}
		k.wantOneEvent(id)
		if n := g.asked.Load(); n != 3 {
			t.Errorf("%d questions for 3 numbers", n)
		}
		if n := k.number("SELECT count(*) FROM lookup_answers WHERE answered_at IS NOT NULL"); n != 3 {
			t.Errorf("%d answers have the register's time", n)
		}
	})
}

func TestTheWireShapesAreTheContracts(t *testing.T) {
	t.Parallel()
	k := newDesk(t, dbtest.SQLite(t), nil)
	ctx := context.Background()
	batch := k.create([]lookup.Entry{{Country: "GB", Number: "366303068"}, {Country: "GB", Number: "1"}})
	page, err := k.Batch(ctx, client, batch.BatchID, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	single, err := k.CreateSingle(ctx, client, []byte(`{"country_iso_code":"GB","tax_identification_number":"366303068"}`))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(id string) string {
		return `"validation_id":"` + id +
			`","country_iso_code":"GB","tax_identification_number":"366303068","format":"valid","status":"not_checked",` +
			`"is_business":"unknown","business_name":null,"business_address":null,"error_code":null`
	}
	at := page.RequestedAt.Format("2006-01-02T15:04:05Z")
	tail := `"requested_at":"` + at + `","status":"running","batch_validation_result_url":"` + base +
		`/lookup/v2/batch-validations/` + batch.BatchID + `"`
	head := `{"batch_id":"` + batch.BatchID + `","batch_name":null,"validations":[{` +
		entry(batch.Validations[0].ValidationID) + `}`
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"page": {page, head + `],` + tail + `,"next_cursor":"v1"}`},
		"created": {batch, head + `,{"validation_id":"` + batch.Validations[1].ValidationID + `","country_iso_code":"GB","tax_identification_number":"1","format":"invalid",` +
			`"status":"invalid","is_business":"no","business_name":null,"business_address":null,"error_code":"field_not_valid"}],` + tail + `}`},
		"single": {single, `{` + entry(single.ValidationID) + `,"requested_at":"` + single.RequestedAt.Format("2006-01-02T15:04:05Z") +
			`","single_validation_result_url":"` + base + `/lookup/v2/single-validations/` + single.ValidationID + `"}`},
	} {
		got, err := json.Marshal(c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
	last, err := k.Batch(ctx, client, batch.BatchID, 2, "")
	if text, _ := json.Marshal(last); err != nil || !strings.Contains(string(text), `"next_cursor":null`) {
		t.Errorf("the last page: %s %v", text, err)
	}
	for _, id := range []string{batch.BatchID, batch.Validations[0].ValidationID, batch.Validations[1].ValidationID,
		single.ValidationID} {
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
			t.Errorf("id %q", id)
		}
	}
}

func TestPagesCoverABatchInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newDesk(t, d, nil)
		entries := make([]lookup.Entry, 205)
		for i := range entries {
			entries[i] = lookup.Entry{Country: "GB", Number: fmt.Sprint(i)}
		}
		id := k.create(entries).BatchID
		for limit, pages := range map[int]int{0: 11, 1: 205, 20: 11, 99: 3, 100: 3} {
			seen, count, cursor := 0, 0, ""
			for {
				page, err := k.Batch(context.Background(), client, id, limit, cursor)
				if err != nil {
					t.Fatal(err)
				}
				count++
				for _, v := range page.Validations {
					if v.TaxIdentificationNumber != fmt.Sprint(seen) {
						t.Fatalf("limit %d: entry %s at %d", limit, v.TaxIdentificationNumber, seen)
					}
					seen++
				}
				if cursor = string(*page.NextCursor); cursor == "" {
					break
				}
			}
			if seen != 205 || count != pages {
				t.Errorf("limit %d: %d entries on %d pages", limit, seen, count)
			}
		}
		for _, c := range []struct {
			limit  int
			cursor string
		}{{-1, ""}, {101, ""}, {20, "20"}, {20, "v-1"}, {20, "v206"}, {20, "v020"}, {20, "v"}, {20, "vx"},
			{20, "v99999999999999999999"}, {20, "é"}} {
			_, err := k.Batch(context.Background(), client, id, c.limit, c.cursor)
			wantKind(t, err, fault.Invalid)
		}
	})
}

func TestForeignAndUnknownIdsAreOneAnswer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newDesk(t, d, nil)
		ctx := context.Background()
		batch := k.create([]lookup.Entry{{Country: "GB", Number: "1"}})
		single, err := k.CreateSingle(ctx, client, []byte(`{"country_iso_code":"GB","tax_identification_number":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		unknown := strings.Repeat("0", 32)
		said := map[string]string{}
		for _, c := range []struct{ clientID, batch, single string }{
			{"c_other", batch.BatchID, single.ValidationID}, {client, unknown, unknown},
			{client, single.ValidationID, batch.BatchID},
			{client, "", ""}, {client, strings.ToUpper(batch.BatchID) + "'", batch.Validations[0].ValidationID},
		} {
			_, asBatch := k.Batch(ctx, c.clientID, c.batch, 20, "")
			_, asSingle := k.Single(ctx, c.clientID, c.single)
			for verb, err := range map[string]error{"batch": asBatch, "single": asSingle,
				"cancel": k.CancelBatch(ctx, c.clientID, c.batch)} {
				wantKind(t, err, fault.NotFound)
				if said[verb] == "" {
					said[verb] = err.Error()
				}
				if err.Error() != said[verb] {
					t.Errorf("%s: %q differs from %q", verb, err, said[verb])
				}
			}
		}
		if b, err := k.Batch(ctx, client, batch.BatchID, 20, ""); err != nil || b.Status != lookup.Running {
			t.Errorf("after foreign cancels: %+v %v", b, err)
		}
	})
}

func TestACancelStopsTheQuestionsAndHasNoEvent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		g := newGate(t, 30)
		k := newDesk(t, d, g.register(t)).start()
		id := k.create(manyEntries(t, 600)).BatchID
		<-g.reached
		k.until("an answer is stored", func() bool { return k.answers(id) > 0 })
		if err := k.CancelBatch(ctx, client, id); err != nil {
			t.Fatal(err)
		}
		asked, stored := g.asked.Load(), k.answers(id)
		g.release()
		// Whoever comes after it is not held up, and its end tells that the job of the canceled one is over or idle.
		next := k.create([]lookup.Entry{{Country: "IT", Number: "99100000001"}}).BatchID
		if got := k.finished(client, next); got != lookup.Completed {
			t.Errorf("the next batch is %s", got)
		}
		k.halt()
		if n := g.asked.Load(); n > asked+17 {
			t.Errorf("%d questions after the cancel", n-asked)
		}
		batch, all := k.all(id)
		counts := map[lookup.Status]int{}
		for _, v := range all {
			counts[v.Status]++
		}
		if batch.Status != lookup.Canceled || counts[lookup.StatusRegistered] != stored ||
			counts[lookup.StatusCanceled] != 600-stored || stored == 0 || stored > 30 {
			t.Errorf("%s: %v, %d stored", batch.Status, counts, stored)
		}
		if err := k.CancelBatch(ctx, client, id); err != nil {
			t.Errorf("canceled again: %v", err)
		}
		wantKind(t, k.CancelBatch(ctx, client, next), fault.Conflict)
		if e := k.events(id); len(e) != 0 {
			t.Errorf("events of a canceled batch: %q", e)
		}
		k.wantOneEvent(next)
	})
}

func TestABatchCanceledBeforeItsTurnAsksNothing(t *testing.T) {
	t.Parallel()
	g := newGate(t, 1<<30)
	k := newDesk(t, dbtest.SQLite(t), g.register(t))
	id := k.create(manyEntries(t, 20)).BatchID
	if err := k.CancelBatch(context.Background(), client, id); err != nil {
		t.Fatal(err)
	}
	k.start()
	k.finished(client, k.create([]lookup.Entry{{Country: "GB", Number: "1"}}).BatchID)
	if n := g.asked.Load(); n != 0 || len(k.events(id)) != 0 {
		t.Errorf("%d questions, events %q", n, k.events(id))
	}
}

func TestTheHundredAndFirstOpenBatchIsRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newDesk(t, d, nil)
		body := batchBody("", []lookup.Entry{{Country: "GB", Number: "1"}})
		last := k.create([]lookup.Entry{{Country: "GB", Number: "1"}})
		var others sync.WaitGroup
		for range 99 {
			others.Go(func() {
				if _, err := k.CreateBatch(context.Background(), client, body); err != nil {
					t.Error(err)
				}
			})
		}
		others.Wait()
		_, err := k.CreateBatch(context.Background(), client, body)
		wantKind(t, err, fault.Limited)
		if _, err := k.CreateBatch(context.Background(), "c_other", body); err != nil {
			t.Errorf("another client: %v", err)
		}
		if _, err := k.CreateSingle(context.Background(), client,
			[]byte(`{"country_iso_code":"GB","tax_identification_number":"1"}`)); err != nil {
			t.Errorf("a single validation: %v", err)
		}
		if err := k.CancelBatch(context.Background(), client, last.BatchID); err != nil {
			t.Fatal(err)
		}
		if _, err := k.CreateBatch(context.Background(), client, body); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
	})
}

func TestASingleValidationEndsWithItsOwnEvent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		g := newGate(t, 1<<30)
		k := newDesk(t, d, g.register(t))
		for body, want := range map[string]string{
			`{"country_iso_code":"IT","tax_identification_number":"99100000001"}`: "valid registered yes null",
			`{"country_iso_code":"XX","tax_identification_number":"301"}`:         "valid unknown unknown MS_UNAVAILABLE",
			`{"country_iso_code":"DE","tax_identification_number":"1"}`:           "invalid invalid no field_not_valid",
		} {
			single, err := k.CreateSingle(ctx, client, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			id := single.ValidationID
			if pending := !strings.Contains(want, "invalid"); pending != (single.Status == lookup.StatusPending) {
				t.Errorf("created: %+v", single)
			}
			k.start()
			k.until("the event is stored", func() bool { return len(k.events(id)) > 0 })
			k.halt()
			if e := k.events(id); len(e) != 1 ||
				e[0] != "lookup.single_validation_completed /lookup/v2/single-validations/"+id+" "+client {
				t.Errorf("events %q", e)
			}
			got, err := k.Single(ctx, client, id)
			if line := fmt.Sprintf("%s %s %s %s", got.Format, got.Status, got.IsBusiness, text(got.ErrorCode)); err != nil ||
				line != want {
				t.Errorf("%s: %q, want %q (%v)", body, line, want, err)
			}
		}
	})
}

func TestTenThousandEntriesThroughTheRegister(t *testing.T) {
	r := newRegister(t, vies.Config{Latency: 500 * time.Microsecond}, lookup.VIESConfig{CacheEntries: 100})
	k := newDesk(t, dbtest.SQLite(t), r.vies)
	size := 10_000 / manyFactor()
	entries := manyEntries(t, size)
	body := batchBody("", entries)
	created, err := k.CreateBatch(context.Background(), client, body)
	if err != nil || len(created.Validations) != size {
		t.Fatal(len(created.Validations), err)
	}
	id := created.BatchID
	created = lookup.Batch{}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := before.HeapAlloc
	k.start()
	looked := 0
	k.until("the batch ends", func() bool {
		if looked++; looked%50 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
		b, err := k.Batch(context.Background(), client, id, 1, "")
		return err == nil && b.Status == lookup.Completed
	})
	grown := (int64(peak) - int64(before.HeapAlloc)) >> 10
	a := r.asked()
	t.Logf("heap grew by at most %d KiB; peak %d calls", grown, a.Peak.Global)
	if a.Count != size || a.Outcomes["found"] != size || a.Peak.Global > 16 {
		t.Errorf("asked %d times: %v, peak %d", a.Count, a.Outcomes, a.Peak.Global)
	}
	if grown > 24<<10 {
		t.Errorf("the heap grew by %d KiB", grown)
	}
	if n := k.number("SELECT count(*) FROM lookup_answers WHERE status = 'registered'"); n != size {
		t.Errorf("%d answers", n)
	}
	k.wantOneEvent(id)
}

func BenchmarkCreateBatchOf10000(b *testing.B) {
	k := newDesk(b, dbtest.SQLite(b), nil)
	body := batchBody("", manyEntries(b, 10_000))
	for i := 0; b.Loop(); i++ {
		if _, err := k.CreateBatch(context.Background(), fmt.Sprint("c_", i), body); err != nil {
			b.Fatal(err)
		}
	}
}

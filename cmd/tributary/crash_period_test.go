package main

import (
	"fmt"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/killpoint"
)

// The process is killed while a period is closed, and while its document is
// filed: each sale is in one document, and the authority holds that once.
func TestKilledWhileAPeriodIsClosed(t *testing.T) {
	if !killpoint.Armed {
		t.Skip("the program cannot be killed at a place: needs -tags killpoints")
	}
	t.Parallel()
	for point, postgres := range map[killpoint.Point]bool{killpoint.Gathered: true, killpoint.Prepared: false, killpoint.Sent: true, killpoint.Answered: false, killpoint.Settled: true} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fastBinary(t), 1, postgres)
			n := s.nodes[0]
			n.process.waitReady()
			land := crashCountryOf(t, "XX")
			land.settings = country.Settings{"period": string(country.Daily)}
			supplier := s.onboard(land)
			var ids []string
			for i := range 3 {
				number := fmt.Sprintf("P-%d", i)
				ids = append(ids, s.submitOne(land.body(number, number, supplier, time.Now().UTC())))
			}
			if missing := s.awaitTold(ids); len(missing) > 0 {
				t.Fatalf("%v have not ended\n%s", missing, s.lastWords())
			}
			if held := s.registered("XX"); held != 0 {
				t.Fatalf("%d were filed by themselves", held)
			}
			n.process.kill()
			d, err := db.Open(t.Context(), db.Config{URL: s.database, Guest: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }() // only read from now on
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("UPDATE periods SET due_at = 1") }); err != nil {
				t.Fatal(err)
			}
			s.launch(n, string(point)+":1")
			if !n.process.endsWithin(time.Minute) {
				t.Fatalf("it was not killed at %s\n%s", point, s.lastWords())
			}
			s.launch(n, "")
			n.process.waitReady()
			s.eventually("the document is accepted", func() bool {
				var filled int
				if err := d.Read(t.Context(), func(r db.Reader) error {
					return r.Row("SELECT count(*) FROM period_entries WHERE authority_id_1 IS NOT NULL").Scan(&filled)
				}); err != nil {
					t.Fatal(err)
				}
				return filled == len(ids)
			})
			if held := s.registered("XX"); held != 1 {
				t.Errorf("the authority holds %d documents", held)
			}
		})
	}
}

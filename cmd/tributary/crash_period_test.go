package main

import (
	"fmt"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/killpoint"
)

// The process is killed while a period is closed, and while its document is
// filed: each sale is in one document, and the authority holds that once.
func TestKilledWhileAPeriodIsClosed(t *testing.T) {
	if !killpoint.Armed {
		t.Skip("the program cannot be killed at a place: needs -tags killpoints")
	}
	t.Parallel()
	for engine, c := range map[string]struct {
		postgres bool
		points   []killpoint.Point // one after the other, for one document
	}{
		"sqlite":   {false, []killpoint.Point{killpoint.Prepared, killpoint.Answered}},
		"postgres": {true, []killpoint.Point{killpoint.Gathered, killpoint.Sent, killpoint.Settled}},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fastBinary(t), 1, c.postgres)
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
			d := dbtest.Open(t, db.Config{URL: s.database, NoWorkers: true})
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				return tx.Exec("UPDATE periods SET due_at = 1")
			}); err != nil {
				t.Fatal(err)
			}
			for _, point := range c.points {
				s.launch(n, string(point)+":1")
				if !n.process.endsWithin(patience) {
					t.Fatalf("it was not killed at %s\n%s", point, s.lastWords())
				}
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

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/killpoint"
	"tributary/internal/needs"
)

// A long queue of Polish invoices goes in packages, and the process is killed in
// the middle of one: after its parts were brought, or after it was closed and
// before the answer was stored. Each invoice is registered once all the same.
func TestKilledInTheMiddleOfABatch(t *testing.T) {
	if !killpoint.Armed {
		t.Skip("the program cannot be killed at a place: needs -tags killpoints")
	}
	t.Parallel()
	const invoices = 200 // in four lanes: more than thirty in each
	for name, c := range map[string]struct {
		postgres bool
		at       killpoint.Point
	}{
		"brought":          {false, killpoint.Uploaded},
		"closed":           {false, killpoint.Closed},
		"closed, postgres": {true, killpoint.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "closed" {
				needs.Long(t, "the same on PostgreSQL runs in the gate")
			}
			t.Parallel()
			s := newStage(t, fastBinary(t), 1, c.postgres)
			n := s.nodes[0]
			n.process.waitReady()
			land := crashCountryOf(t, "PL")
			supplier := s.onboard(land)
			n.process.kill()
			s.launch(n, fmt.Sprintf("%s:2", c.at))
			n.process.waitReady()
			s.script("pl", `{"steps":[{"outcome":"unavailable","times":1000,"on":"any"}]}`) // the queue grows meanwhile
			var ids []string
			for i := range invoices {
				id := fmt.Sprintf("batch-%03d", i)
				ids = append(ids, s.submitOne(land.body(id, id, supplier, time.Now().UTC())))
			}
			s.script("pl", `{"steps":[]}`)
			if !n.process.endsWithin(patience) {
				t.Fatalf("no batch was sent\n%s", s.lastWords())
			}
			s.launch(n, "")
			n.process.waitReady()
			if missing := s.awaitTold(ids); len(missing) > 0 {
				t.Fatalf("%d have not ended\n%s", len(missing), s.lastWords())
			}
			held := map[string]int{}
			for _, r := range s.registrations("pl") {
				held[r.Number]++
			}
			for i, id := range ids {
				status, answer, err := patiently(func() (int, []byte, error) { return s.fetch(n.base, "/v1/transactions/"+id) })
				var r shown
				if err != nil || status != http.StatusOK || json.Unmarshal(answer, &r) != nil || r.Status != "SUCCESS" {
					t.Fatalf("%d %s %v", status, answer, err)
				}
				if number := fmt.Sprintf("batch-%03d", i); held[number] != 1 {
					t.Errorf("%s is registered %d times", number, held[number])
				}
			}
			if len(held) != invoices {
				t.Errorf("%d numbers are registered", len(held))
			}
		})
	}
}

// script tells an authority how to behave.
func (s *stage) script(code, steps string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPut, s.sims+"/_control/"+code+"/script", strings.NewReader(steps))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		s.t.Fatalf("script: %s", answer.Status)
	}
}

// registrations is what an authority holds.
func (s *stage) registrations(code string) []struct{ Number string } {
	s.t.Helper()
	answer, err := s.client.Get(s.sims + "/_control/" + code + "/registrations")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var book struct{ Registrations []struct{ Number string } }
	if err := json.NewDecoder(answer.Body).Decode(&book); err != nil {
		s.t.Fatal(err)
	}
	return book.Registrations
}

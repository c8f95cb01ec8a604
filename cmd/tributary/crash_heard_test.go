package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/killpoint"
	"tributary/internal/official/sdiwire"
	"tributary/internal/official/xxwire"
)

// A message of an authority is on disk when the process is killed, and its answer
// has not left: the authority repeats it, or the mailbox is looked into again, and
// what it says is done once.
func TestKilledBetweenAMessagesStorageAndItsAnswer(t *testing.T) {
	if !killpoint.Armed {
		t.Skip("the program cannot be killed at a place: needs -tags killpoints")
	}
	t.Parallel()
	type spoken struct {
		number   string
		messages int // that the authority sends about a document, repetitions apart
		code     string
	}
	for engine, c := range map[string]struct {
		postgres bool
		spoken   []spoken
	}{
		"sqlite": {false, []spoken{
			{"K-1" + xxwire.SuffixCallback, 2, "XX"}, // the decision, and a late "pending"
			{"K-3" + xxwire.SuffixMailbox, 1, "XX"},
			{"K-4", 1, "IT"},
		}},
		"postgres": {true, []spoken{
			{"K-2" + xxwire.SuffixCallbackRefused, 2, "XX"},
			{"K-5" + sdiwire.EndingTwice, 1, "IT"},
		}},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fastBinary(t), 1, c.postgres)
			n := s.nodes[0]
			n.process.waitReady()
			lands, suppliers := map[string]crashCountry{}, map[string]string{}
			for _, code := range []string{"XX", "IT"} {
				land := crashCountryOf(t, code)
				if code == "XX" {
					land.settings = country.Settings{"mailbox": true}
				}
				lands[code], suppliers[code] = land, s.onboard(land)
			}
			for _, said := range c.spoken {
				n.process.kill()
				s.launch(n, string(killpoint.Heard)+":1")
				n.process.waitReady()
				held := s.registered(said.code)
				id := s.submitOne(lands[said.code].body(said.number, said.number, suppliers[said.code], time.Now().UTC()))
				if !n.process.endsWithin(patience) {
					t.Fatalf("%s: nothing was heard\n%s", said.number, s.lastWords())
				}
				if told := s.receiver.told(id); told != 0 {
					t.Errorf("%s: announced %d times before", said.number, told)
				}
				s.launch(n, "")
				n.process.waitReady()
				if missing := s.awaitTold([]string{id}); len(missing) > 0 {
					t.Fatalf("%s has not ended\n%s", said.number, s.lastWords())
				}
				s.heardOnce(id, said.messages, func() int { return s.registered(said.code) - held })
			}
		})
	}
}

// submitOne posts a sale and answers its operation.
func (s *stage) submitOne(body []byte) string {
	s.t.Helper()
	var got struct {
		OperationID string `json:"operation_id"`
	}
	status, answer, err := patiently(func() (int, []byte, error) {
		return s.post(s.nodes[0].base, "/v1/transactions", body)
	})
	if err != nil || status != http.StatusAccepted || json.Unmarshal(answer, &got) != nil {
		s.t.Fatalf("submitted: %d %s %v", status, answer, err)
	}
	return got.OperationID
}

// heardOnce sees one effect of everything that was said about an operation; held
// counts what the authority has registered for it.
func (s *stage) heardOnce(id string, messages int, held func() int) {
	s.t.Helper()
	status, answer, err := patiently(func() (int, []byte, error) {
		return s.fetch(s.nodes[0].base, "/v1/transactions/"+id)
	})
	var r shown
	if err != nil || status != http.StatusOK || json.Unmarshal(answer, &r) != nil {
		s.t.Fatalf("%d %s %v", status, answer, err)
	}
	d, err := db.Open(s.t.Context(), db.Config{URL: s.database, NoWorkers: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // only read
	count := func(sql string) (n int) {
		if err := d.Read(s.t.Context(), func(r db.Reader) error { return r.Row(sql).Scan(&n) }); err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	s.eventually("every message", func() bool {
		return count("SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL AND operation_id = '"+id+"'") == messages
	})
	if n := count("SELECT count(*) FROM inbox_messages WHERE operation_id = '" + id + "' OR operation_id IS NULL"); n !=
		messages {
		s.t.Errorf("%d messages are stored, want %d", n, messages)
	}
	if n := count("SELECT count(*) FROM webhook_events WHERE resource_id = '" + id + "'"); n != 1 {
		s.t.Errorf("%d events", n)
	}
	want, ended := map[string]int{"SUCCESS": 1, "FAILURE": 0}[r.Status]
	if n := held(); !ended || n != want {
		s.t.Errorf("it ended %s, and the authority holds %d", r.Status, n)
	}
}

// registered is how many documents the authority of a country holds.
func (s *stage) registered(code string) int {
	s.t.Helper()
	var book struct{ Count int }
	answer, err := s.client.Get(s.sims + "/_control/" + strings.ToLower(code) + "/registrations")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&book); err != nil {
		s.t.Fatal(fmt.Errorf("registrations: %w", err))
	}
	return book.Count
}

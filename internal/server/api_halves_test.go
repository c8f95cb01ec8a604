package server_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tributary/internal/db"
)

// What was refused has left nothing, and what was accepted is there as it was
// sent: mutated bodies at a program of its own, whose tables are counted afterwards.
func TestHostileBodiesLeaveNothingHalfStored(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "tributary.db")
	p, err := start(false, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	guest, err := db.Open(t.Context(), db.Config{URL: url, NoWorkers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guest.Close() }) // only read
	before := tally(t, guest)
	var mu sync.Mutex
	accepted, answers := map[string][]byte{}, map[string]int{}
	all := readers(t, p)
	var bodies [][]byte
	for _, r := range all {
		text, err := json.Marshal(r.full)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, text)
	}
	c := p.as(demoKey)
	const sent = 400
	inParts(t, sent, func(t *testing.T, i int) {
		r := all[i%5] // those that make transactions
		path := strings.TrimSuffix(r.path, "/validate")
		body := mutated(rand.New(rand.NewPCG(29, uint64(i))), bodies[i%5], bodies)
		got := exchange(t, c.request(t, r.method, path, body))
		judge(t, got.status, got.header, got.body)
		if got.status != 202 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := got.json(t)["operation_id"].(string)
		accepted[id] = body
		answers[id]++
	})
	after := tally(t, guest)
	for _, table := range []string{"operations", "bodies"} {
		if got := after[table] - before[table]; got != len(accepted) {
			t.Errorf("%d rows of %s for %d accepted operations", got, table, len(accepted))
		}
	}
	if rows := after["transactions"] - before["transactions"]; rows == 0 || rows > len(accepted) {
		t.Errorf("%d transactions for %d accepted operations", rows, len(accepted))
	}
	for id, body := range accepted {
		var kept []byte
		if err := guest.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT body FROM bodies WHERE operation_id = $1", id).Scan(&kept)
		}); err != nil || string(kept) != string(body) {
			t.Errorf("operation %s is kept as %.200q, was sent as %.200q: %v", id, kept, body, err)
		}
		if answers[id] != 1 {
			t.Errorf("operation %s was answered %d times while nothing had succeeded", id, answers[id])
		}
	}
	t.Logf("%d of %d were accepted", len(accepted), sent)
}

// tally counts the rows that submits make.
func tally(t *testing.T, d *db.DB) map[string]int {
	t.Helper()
	rows := map[string]int{}
	if err := d.Read(context.Background(), func(r db.Reader) error {
		for _, table := range []string{"transactions", "operations", "bodies"} {
			var n int
			if err := r.Row("SELECT count(*) FROM " + table).Scan(&n); err != nil {
				return err
			}
			rows[table] = n
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

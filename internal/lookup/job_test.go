package lookup_test

import (
	"context"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lookup"
)

func TestAStoppedEngineGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 300)
		entries := manyEntries(t, 700)
		first := newDesk(t, d, g.register(t)).start()
		id := first.create(entries).BatchID
		<-g.reached
		first.halt()
		stored := first.answers(id)
		if b, _ := first.all(id); b.Status != lookup.Running || stored < 280 || stored > 300 {
			t.Errorf("%s with %d answers after the stop", b.Status, stored)
		}
		g.release()
		// Another process, and another register: questions of the first may still be under way.
		later := newGate(t, 1<<30)
		second := newDesk(t, d, later.register(t)).start()
		second.finished(client, id)
		_, all := second.all(id)
		for i, v := range all {
			if v.Status != lookup.StatusRegistered {
				t.Fatalf("entry %d: %+v", i, v)
			}
		}
		if n := int(later.asked.Load()); n != 700-stored || second.answers(id) != 700 {
			t.Errorf("%d questions and %d answers after the stop, %d before", n, second.answers(id), stored)
		}
		second.wantOneEvent(id)
	})
}

func TestAWorkerThatLostItsClaimStoresNothingMore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 40)
		k := newDesk(t, d, g.register(t)).start()
		id := k.create(manyEntries(t, 300)).BatchID
		<-g.reached
		k.until("answers are stored", func() bool { return k.answers(id) > 0 })
		k.exec("UPDATE lookups SET lease_token = lease_token + 1, due_at = due_at + 3600000000, lease_until = lease_until + 3600000000 WHERE lookup_id = $1", id)
		stored := k.answers(id)
		g.release()
		k.until("the register is quiet", func() bool {
			// A single validation that begins now ends after what was under way.
			before := g.asked.Load()
			single, err := k.CreateSingle(context.Background(), client,
				[]byte(`{"country_iso_code":"XX","tax_identification_number":"100"}`))
			if err != nil {
				t.Fatal(err)
			}
			k.until("the single validation ends", func() bool { return len(k.events(single.ValidationID)) == 1 })
			return g.asked.Load() <= before+1
		})
		if n := k.answers(id); n != stored {
			t.Errorf("%d answers, %d when the claim was lost", n, stored)
		}
		if e := k.events(id); len(e) != 0 {
			t.Errorf("events %q", e)
		}
		// The new holder's lease runs out in its turn.
		k.exec("UPDATE lookups SET due_at = 1, lease_until = 1 WHERE lookup_id = $1", id)
		k.d.Wake("lookups")
		k.finished(client, id)
		if n := k.answers(id); n != 300 {
			t.Errorf("%d answers", n)
		}
		k.wantOneEvent(id)
	})
}

func TestBatchesOfOneClientTakeTurnsAndOthersDoNotWait(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 0)
		k := newDesk(t, d, g.register(t)).start()
		first := k.create([]lookup.Entry{{Country: "IT", Number: "99100000001"}}).BatchID
		<-g.reached
		var behind []string
		for range 5 {
			behind = append(behind, k.create([]lookup.Entry{{Country: "GB", Number: "1"}}).BatchID)
		}
		other := k.createFor("c_other", []lookup.Entry{{Country: "GB", Number: "1"}}).BatchID
		if got := k.finished("c_other", other); got != lookup.Completed {
			t.Errorf("another client's batch is %s", got)
		}
		for _, id := range behind {
			if b, _ := k.all(id); b.Status != lookup.Running {
				t.Errorf("a batch overtook the one before it: %s", b.Status)
			}
		}
		g.release()
		for _, id := range append(behind, first) {
			k.finished(client, id)
			k.wantOneEvent(id)
		}
		if n := k.number(`SELECT count(*) FROM lookups a JOIN lookups b ON a.client_id = b.client_id
			AND a.requested_at < b.requested_at AND a.ended_at > b.ended_at`); n != 0 {
			t.Errorf("%d batches ended before an older one", n)
		}
	})
}

func TestMoreClientsThanSlotsAllEnd(t *testing.T) {
	t.Parallel()
	g := newGate(t, 0)
	k := newDesk(t, dbtest.SQLite(t), g.register(t)).start()
	ids := map[string]string{}
	for _, clientID := range []string{"a", "b", "c", "d", "e", "f"} {
		ids[clientID] = k.createFor(clientID, manyEntries(t, 3)).BatchID
	}
	<-g.reached
	k.until("all slots are taken", func() bool {
		return k.number("SELECT count(*) FROM lookups WHERE lease_until IS NOT NULL") == 4
	})
	g.release()
	for clientID, id := range ids {
		if got := k.finished(clientID, id); got != lookup.Completed || len(k.events(id)) != 1 {
			t.Errorf("client %s: %s, events %q", clientID, got, k.events(id))
		}
	}
}

func TestABatchThatKillsItsWorkersIsGivenUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 1<<30)
		k := newDesk(t, d, g.register(t))
		id := k.create(append(manyEntries(t, 700), lookup.Entry{Country: "GB", Number: "1"})).BatchID
		k.exec("UPDATE lookups SET crashes = 3")
		k.start()
		k.finished(client, id)
		_, all := k.all(id)
		for i, v := range all[:700] {
			if v.Status != lookup.StatusUnknown || text(v.ErrorCode) != "internal_error" {
				t.Fatalf("entry %d: %+v", i, v)
			}
		}
		if all[700].Status != lookup.StatusInvalid || g.asked.Load() != 0 {
			t.Errorf("%+v, %d questions", all[700], g.asked.Load())
		}
		k.wantOneEvent(id)
	})
}

// What a clock that was a year ahead has put off is asked by the next start.
func TestAfterAClockThatWasAheadBatchesAreAsked(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := newGate(t, 1<<30)
		desk := newDesk(t, d, g.register(t))
		id := desk.create(manyEntries(t, 3)).BatchID
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE lookups SET due_at = $1", db.Micros(tx.Now().AddDate(1, 0, 0)))
		}); err != nil {
			t.Fatal(err)
		}
		desk.start().finished(client, id)
	})
}

package filing_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/needs"
)

func stages() []filing.Stage {
	return []filing.Stage{filing.Waiting, filing.Blocked, filing.Received, filing.Prepared, filing.Sent, filing.Pending,
		filing.Quarantined, filing.Settled}
}

// standIn puts an operation into a stage, with its bytes.
func standIn(tx *db.Tx, id string, stage filing.Stage, status string) error {
	return errors.Join(
		tx.Exec("DELETE FROM operations WHERE operation_id = $1", id),
		tx.Exec("DELETE FROM filings WHERE operation_id = $1", id),
		tx.Insert("operations",
			"operation_id,client_id,transaction_id,attempt,kind,country,live,use_case,supplier_id,number,dated_at,accepted_at,reference_id,lane,stage,status,due_at,pack_version",
			[]any{id, "c", "t", 1, "INVOICE", "XX", false, "BOTH", "s", "N", 1, 1, "orig", "l", string(stage), status, 1, "1"}),
		tx.Insert("filings", "operation_id,report,sha256,filing", []any{id, []byte("bytes"), "x", "{}"}))
}

// Whatever is not in the table is refused and changes nothing, whoever asks:
// every move, from every stage, whatever its maker believes.
func TestOnlyTheTableMovesOperations(t *testing.T) {
	needs.NotRaced(t, "one goroutine")
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		execSQL(t, d, "INSERT INTO transactions (client_id, transaction_id, attempts, open) VALUES ('c', 'orig', 1, 1)")
		made, n := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			stored := rapid.SampledFrom(stages()).Draw(rt, "stored")
			believed := rapid.OneOf(rapid.Just(stored), rapid.SampledFrom(stages())).Draw(rt, "believed")
			move := rapid.SampledFrom(filing.Moves()).Draw(rt, "move")
			ended := rapid.IntRange(0, 4).Draw(rt, "ended") == 0
			status := "PROCESSING"
			if ended {
				status = "FAILURE"
			}
			n++
			id := fmt.Sprint("o", n)
			must(t, d.Write(t.Context(), func(tx *db.Tx) error { return standIn(tx, id, stored, status) }))
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				return filing.Apply(tx, filing.Shift{Move: move, ID: id, From: believed})
			})
			after := filing.Stage(one[string](t, d, "SELECT stage FROM operations WHERE operation_id = $1", id))
			to := filing.Allowed(move, believed)
			fits := to != "" && believed == stored && !ended
			switch {
			case fits && (err != nil || after != to):
				rt.Fatalf("%s from %s: %v, it is in %s", move, stored, err, after)
			case !fits && after != stored:
				rt.Fatalf("%s from %s, believed in %s, %s: it is in %s", move, stored, believed, status, after)
			case !fits && err == nil && move != "blocked":
				rt.Fatalf("%s from %s, believed in %s, %s: no error", move, stored, believed, status)
			case !fits && to != "" && err != nil && !errors.Is(err, db.ErrStale):
				rt.Fatalf("%s from %s: %v", move, stored, err)
			}
			if fits {
				made++
			}
		})
		if made == 0 {
			t.Error("no move was made at all")
		}
	})
}

// An operation whose bytes are not stored is neither prepared nor sent.
func TestNothingIsMarkedAsSentWithoutItsBytes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for name, without := range map[string]string{"no filing": "DELETE FROM filings",
			"an empty one": "UPDATE filings SET report = ''"} {
			for move, from := range map[filing.Move]filing.Stage{"prepared": filing.Received, "sent": filing.Prepared,
				"taken up": filing.Quarantined} {
				must(t, d.Write(t.Context(), func(tx *db.Tx) error { return standIn(tx, "o", from, "PROCESSING") }))
				execSQL(t, d, without)
				err := d.Write(t.Context(), func(tx *db.Tx) error {
					return filing.Apply(tx, filing.Shift{Move: move, ID: "o", From: from})
				})
				if !errors.Is(err, db.ErrStale) {
					t.Errorf("%s, %s: %v", move, name, err)
				}
			}
		}
	})
}

func TestOneFunctionWritesStages(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	must(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if n := strings.Count(string(text), "UPDATE operations"); n > 0 {
			found[filepath.ToSlash(path)] += strings.Count(string(text), "UPDATE operations SET stage")
		}
		return err
	}))
	if len(found) != 1 || found["../../internal/filing/transition.go"] != 1 {
		t.Errorf("operations are updated, and their stages written, in %v", found)
	}
}

func TestTheArchitecturePrintsTheTableOfStages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	must(t, err)
	if !strings.Contains(string(text), filing.Stages()) {
		t.Errorf("ARCHITECTURE.md must print:\n%s", filing.Stages())
	}
}

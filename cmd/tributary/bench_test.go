package main

import (
	"encoding/json"
	"strings"
	"testing"

	"tributary/internal/bench"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

// Work is waiting for authorities: a second node brings its slots along, and
// what it takes does not stand in the first one's way. How many times as much
// two settle can be said of a quiet machine only.
func TestASecondNodeDoublesWhatIsUnderWay(t *testing.T) {
	needs.Long(t, "it measures one node and two")
	const least = 1.8
	cmd := child(fastBinary(t), "bench", "--nodes", "2", "--database", dbtest.PostgresURL(t), "--json")
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	var report bench.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	figures := map[string]float64{}
	for _, f := range report.Figures {
		figures[f.Name] = f.Value
	}
	for name, want := range map[string]float64{
		"calls_at_once_1_nodes": 8, "filings_per_call_1_nodes": 1, "filings_per_call_2_nodes": 1, "deadlocks_1_nodes": 0,
		"deadlocks_2_nodes": 0,
	} {
		if got, ok := figures[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	// On a busy machine the last slots of the second node may never be needed at once.
	if at := figures["calls_at_once_2_nodes"]; at <= 8 || at > 16 {
		t.Errorf("two nodes of 8 slots each made %v calls at once", at)
	}
	if got := figures["settled_nodes_to_one"]; got <= least || figures["settled_per_second_2_nodes"] <= 0 ||
		figures["submit_p99_2_nodes"] <= 0 {
		t.Errorf("two nodes settle %.2f times what one does, want more than %.1f: %s", got, least, out)
	}
	t.Logf("two nodes settle %.2f times what one does: %s", figures["settled_nodes_to_one"], out)
}

func TestNodesAreRefusedWhereTheyCannotBe(t *testing.T) {
	for want, args := range map[string][]string{
		"several nodes need one PostgreSQL": {"--nodes", "2"},
		"must be 1 to 16":                   {"--nodes", "17", "--database", "postgres://nobody@127.0.0.1:1/none"},
		"--nodes: must be":                  {"--nodes=-1"},
	} {
		if code, out, errs := call(t, append([]string{"bench"}, args...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("bench %v: %d, %s%s", args, code, out, errs)
		}
	}
}

package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

func TestJobsAreCountedByKindAndState(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		list, err := d.JobCounts(t.Context())
		if err != nil || len(list) != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		began := time.Now().Add(-time.Second) // stored in whole milliseconds
		since := func(at time.Time) bool { return !at.Before(began) && !at.After(time.Now().Add(time.Second)) }
		for i := range 3 {
			must(t, enqueue(d, fmt.Sprint("job ", i), nil))
		}
		if err := enqueue(d, "undone", errors.New("undone")); err == nil {
			t.Fatal("a write that failed enqueued a job")
		}
		list, err = d.JobCounts(context.Background())
		if err != nil || len(list) != 1 || list[0].Kind != "errand" || list[0].State != "available" || list[0].Count != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		if !since(list[0].OldestAt) {
			t.Errorf("the oldest is of %s", list[0].OldestAt)
		}
		enqueueFor(t, d, "c", 2)
		list, err = d.JobCounts(context.Background())
		if err != nil || len(list) != 2 || list[0].Count+list[1].Count != 5 || list[0].Kind != list[1].Kind || list[0].State != list[1].State || !since(list[1].OldestAt) {
			t.Errorf("with the jobs of a client: %+v, %v", list, err)
		}
	})
}

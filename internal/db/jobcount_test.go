package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

func TestJobsAreCountedByKindAndState(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		list, err := d.JobCounts(t.Context())
		if err != nil || len(list) != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
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
		if age := time.Since(list[0].OldestAt); age < -2*time.Second || age > time.Minute {
			t.Errorf("the oldest is %s old", age)
		}
		enqueueFor(t, d, "c", 2)
		list, err = d.JobCounts(context.Background())
		if err != nil || len(list) != 2 || list[0].Count+list[1].Count != 5 || list[0].Kind != list[1].Kind || list[0].State != list[1].State || time.Since(list[1].OldestAt) > time.Minute {
			t.Errorf("with the jobs of a client: %+v, %v", list, err)
		}
	})
}

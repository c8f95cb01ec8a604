package db_test

import (
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

func TestPlanByValueLastsForOneSnapshot(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one caller at a time")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		mode := func(r db.Reader) (mode string) {
			if d.Engine() != "postgres" {
				return "auto"
			}
			must(t, r.Row("SELECT current_setting('plan_cache_mode')").Scan(&mode))
			return mode
		}
		for range 3 { // connections are used again
			must(t, d.Read(t.Context(), func(r db.Reader) error {
				if before := mode(r); before != "auto" {
					t.Errorf("a snapshot begins with %s", before)
				}
				if err := d.PlanByValue(r); err != nil {
					return err
				}
				if during := mode(r); d.Engine() == "postgres" && during != "force_custom_plan" {
					t.Errorf("plans are made %s", during)
				}
				return nil
			}))
		}
	})
}

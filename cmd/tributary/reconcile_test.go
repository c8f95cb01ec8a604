package main

import (
	"testing"
	"time"

	"tributary/internal/fault"
)

func TestReconciliationTakesAYearOfDaysAndNoMore(t *testing.T) {
	first := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	until := func(days int) string { return first.AddDate(0, 0, days-1).Format(time.DateOnly) }
	for _, c := range []struct {
		until string
		days  int // 0: refused
	}{{"", 1}, {"2024-01-01", 1}, {until(daysMax), daysMax}, {until(daysMax + 1), 0}, {"2023-12-31", 0}, {"soon", 0}} {
		list, err := (&reconcileCommand{Day: "2024-01-01", Until: c.until}).days()
		if len(list) != c.days || (err != nil) != (c.days == 0) || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("until %q: %d days, %v", c.until, len(list), err)
		}
	}
	list, err := (&reconcileCommand{Day: "2024-02-28", Until: "2024-03-01"}).days()
	if err != nil || len(list) != 3 || list[1].String() != "2024-02-29" {
		t.Errorf("over a leap day: %v %v", list, err)
	}
}

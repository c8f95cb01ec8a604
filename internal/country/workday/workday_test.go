package workday_test

import (
	"testing"
	"time"

	"tributary/internal/country/workday"
)

func at(text string) time.Time {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return day
}

// Easter of both calendars, as the churches publish it.
func TestEasterMovesByBothCalendars(t *testing.T) {
	t.Parallel()
	west := &workday.Calendar{Easter: []workday.Feast{{After: 0}}}
	east := &workday.Calendar{Easter: []workday.Feast{{After: 0}}, Orthodox: true}
	for _, year := range [][2]string{{"2024-03-31", "2024-05-05"}, {"2025-04-20", "2025-04-20"},
		{"2026-04-05", "2026-04-12"}, {"2027-03-28", "2027-05-02"}, {"2028-04-16", "2028-04-16"},
		{"2030-04-21", "2030-04-28"}} {
		if !west.Free(at(year[0])) || !east.Free(at(year[1])) {
			t.Errorf("Easter of %s", year)
		}
		if year[0] != year[1] && (west.Free(at(year[1])) || east.Free(at(year[0]))) {
			t.Errorf("%s: one calendar has the other's Easter", year)
		}
	}
}

func TestWorkingDaysAreCountedAroundWhatIsFree(t *testing.T) {
	t.Parallel()
	c := &workday.Calendar{Days: []workday.Holiday{{Day: "01-01"}, {Day: "12-25"}, {Day: "12-26"},
		{Day: "12-24", Since: 2025}}, Easter: []workday.Feast{{After: -2, Since: 2018}, {After: 1}}}
	for _, x := range []struct {
		from string
		n    int
		want string
	}{
		{"2026-12-23", 1, "2026-12-28"}, // Thursday to Saturday are free, Sunday always
		{"2024-12-23", 1, "2024-12-24"}, // it was a working day then
		{"2026-12-18", 5, "2026-12-29"},
		{"2026-12-19", 5, "2026-12-29"}, // a Saturday: the count begins on Monday
		{"2026-12-31", 1, "2027-01-04"}, // over the end of a year
		{"2026-04-02", 1, "2026-04-07"}, // Good Friday to Easter Monday
		{"2017-04-13", 1, "2017-04-14"}, // Good Friday was none then
		{"2026-06-10", 0, "2026-06-10"},
	} {
		if got := c.After(at(x.from), x.n).Format(time.DateOnly); got != x.want {
			t.Errorf("%d working days after %s: %s instead of %s", x.n, x.from, got, x.want)
		}
	}
	if got := c.Before(at("2026-12-28")).Format(time.DateOnly); got != "2026-12-23" {
		t.Errorf("before a holiday's end: %s", got)
	}
}

// A day is where the clock is that shows it.
func TestADayIsThatOfItsZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Bucharest")
	if err != nil {
		t.Fatal(err)
	}
	c := &workday.Calendar{Days: []workday.Holiday{{Day: "12-01"}}}
	instant := time.Date(2026, 11, 30, 22, 30, 0, 0, time.UTC) // 00:30 on the first of December
	if c.Works(instant.In(zone)) || !c.Works(instant) {
		t.Error("the holiday begins at midnight of Bucharest")
	}
}

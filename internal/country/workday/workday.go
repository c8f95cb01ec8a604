// Package workday counts the working days of a country.
//
// It owns the arithmetic; the holidays are data that a country brings. Law: a
// working day is neither Saturday, Sunday nor free by the country's law.
package workday

import (
	"slices"
	"time"
)

// Calendar is what a country's law says is free, besides Saturdays and Sundays.
type Calendar struct {
	Days   []Holiday `json:"days"`
	Easter []Feast   `json:"easter_days"`
	// Easter is that of the Julian calendar
	Orthodox bool `json:"orthodox,omitempty"`
}

// Holiday is a day of every year.
type Holiday struct {
	Day   string `json:"day"`             // MM-DD
	Since int    `json:"since,omitempty"` // the first year; 0: always
}

// Feast is a day that moves with Easter.
type Feast struct {
	After int `json:"days_after_easter"` // negative: before
	Since int `json:"since,omitempty"`
}

// Works reports whether a day, as its own time zone has it, is a working day.
func (c *Calendar) Works(day time.Time) bool {
	if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
		return false
	}
	return !c.Free(day)
}

// Free reports whether a day is free by law, whatever day of the week it is.
func (c *Calendar) Free(day time.Time) bool {
	year, text := day.Year(), day.Format("01-02")
	if slices.ContainsFunc(c.Days, func(h Holiday) bool { return h.Day == text && year >= h.Since }) {
		return true
	}
	easter := gregorian(year)
	if c.Orthodox {
		easter = julian(year)
	}
	return slices.ContainsFunc(c.Easter, func(f Feast) bool {
		return year >= f.Since && easter.AddDate(0, 0, f.After).Format("01-02") == text
	})
}

// Before is the last working day before a day.
func (c *Calendar) Before(day time.Time) time.Time {
	for {
		if day = day.AddDate(0, 0, -1); c.Works(day) {
			return day
		}
	}
}

// After is the n-th working day after a day; the day itself does not count.
func (c *Calendar) After(day time.Time, n int) time.Time {
	for n > 0 {
		if day = day.AddDate(0, 0, 1); c.Works(day) {
			n--
		}
	}
	return day
}

// gregorian is Easter Sunday of a year (Meeus, Jones, Butcher).
func gregorian(year int) time.Time {
	a, b, c := year%19, year/100, year%100
	d, e, f := b/4, b%4, (b+8)/25
	g := (b - f + 1) / 3
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	month, day := (h+l-7*m+114)/31, (h+l-7*m+114)%31+1
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

// julian is Easter Sunday of the Orthodox churches, as the Gregorian calendar has
// it (Meeus); the two calendars are 13 days apart until 2099.
func julian(year int) time.Time {
	a, b, c := year%4, year%7, year%19
	d := (19*c + 15) % 30
	e := (2*a + 4*b - d + 34) % 7
	month, day := (d+e+114)/31, (d+e+114)%31+1
	return time.Date(year, time.Month(month), day+13, 0, 0, 0, 0, time.UTC)
}

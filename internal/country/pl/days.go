package pl

import "time"

// holiday reports whether a day is free by law (act of 18 January 1951 on
// non-working days, art. 1; Christmas Eve since 2025).
func holiday(day time.Time) bool {
	switch day.Format("01-02") {
	case "01-01", "01-06", "05-01", "05-03", "08-15", "11-01", "11-11", "12-25", "12-26":
		return true
	case "12-24":
		return day.Year() >= 2025
	}
	easter := easterSunday(day.Year())
	for _, after := range []int{1, 60} { // Easter Monday, Corpus Christi; Easter and Pentecost are Sundays
		if day.Format(time.DateOnly) == easter.AddDate(0, 0, after).Format(time.DateOnly) {
			return true
		}
	}
	return false
}

// easterSunday is that of a year in the Gregorian calendar (Meeus, Jones, Butcher).
func easterSunday(year int) time.Time {
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

// workingBefore is the last working day before a day: neither Saturday, Sunday
// nor free by law.
func workingBefore(day time.Time) time.Time {
	for {
		day = day.AddDate(0, 0, -1)
		if day.Weekday() != time.Saturday && day.Weekday() != time.Sunday && !holiday(day) {
			return day
		}
	}
}

// setDays decides P_1 and P_6. An invoice may be sent until the working day
// after the one it bears (offline24, art. 106nda of the VAT act); one that comes
// later was not issued on its day: it is issued when it is filed, and its day is
// that of the supply.
func (d *document) setDays() {
	d.issued, d.supplied = d.Date.In(d.Zone), d.DeliveryDate
	if d.Draft.Now.IsZero() || d.Day(d.Date) >= d.Day(workingBefore(d.Draft.Now.In(d.Zone))) {
		return
	}
	d.moved = true
	if d.supplied == "" && !d.correction() {
		d.supplied = d.Day(d.Date)
	}
	d.issued = d.Draft.Now.In(d.Zone)
}

package pl

import "tributary/internal/country/workday"

// holidays are the days that are free by law (act of 18 January 1951 on
// non-working days, art. 1; Christmas Eve since 2025). Easter and Pentecost are
// Sundays; Easter Monday and Corpus Christi move with them.
var holidays = workday.Calendar{
	Days: []workday.Holiday{{Day: "01-01"}, {Day: "01-06"}, {Day: "05-01"}, {Day: "05-03"}, {Day: "08-15"}, {Day: "11-01"},
		{Day: "11-11"}, {Day: "12-24", Since: 2025}, {Day: "12-25"}, {Day: "12-26"}},
	Easter: []workday.Feast{{After: 1}, {After: 60}},
}

// setDays decides P_1 and P_6. An invoice may be sent until the working day
// after the one it bears (offline24, art. 106nda of the VAT act); one that comes
// later was not issued on its day: it is issued when it is filed, and its day is
// that of the supply.
func (d *document) setDays() {
	d.issued, d.supplied = d.Date.In(d.Zone), d.DeliveryDate
	if d.Draft.Now.IsZero() || d.Day(d.Date) >= d.Day(holidays.Before(d.Draft.Now.In(d.Zone))) {
		return
	}
	d.moved = true
	if d.supplied == "" && !d.correction() {
		d.supplied = d.Day(d.Date)
	}
	d.issued = d.Draft.Now.In(d.Zone)
}

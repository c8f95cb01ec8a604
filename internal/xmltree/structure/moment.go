package structure

import (
	"fmt"
	"strconv"
	"strings"
)

// moment is a date, a time or a part of one, in the order of the calendar.
type moment struct {
	year, month, day     int
	hour, minute, second int
	fraction             string // digits of the second's fraction that count
	zoned                bool
	zone                 int // minutes east of Greenwich
}

// moment reads a text of a kind: XML Schema part 2, sections 3.2.7 to 3.2.14.
func (k kind) moment(text string) (moment, bool) {
	m := moment{year: 2000, month: 1, day: 1} // a leap year, for --02-29
	p := timeReader{text: text}
	switch k {
	case kindDateTime:
		p.date(&m)
		p.skip("T")
		p.clock(&m)
	case kindDate:
		p.date(&m)
	case kindTime:
		p.clock(&m)
	case kindYear:
		m.year = p.year()
	case kindYearMonth:
		m.year = p.year()
		p.skip("-")
		m.month = p.two(1, 12)
	case kindMonth:
		p.skip("--")
		m.month = p.two(1, 12)
	case kindMonthDay:
		p.skip("--")
		m.month = p.two(1, 12)
		p.skip("-")
		m.day = p.two(1, 31)
	case kindDay:
		p.skip("---")
		m.day = p.two(1, 31)
	default:
		return m, false
	}
	p.zone(&m)
	if p.bad || p.at != len(text) || k != kindDay && m.day > daysOf(m.year, m.month) {
		return m, false
	}
	return m, true
}

func daysOf(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && year%100 != 0 || year%400 == 0 {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

type timeReader struct {
	text string
	at   int
	bad  bool
}

func (p *timeReader) skip(mark string) {
	if !strings.HasPrefix(p.text[min(p.at, len(p.text)):], mark) {
		p.bad = true
		return
	}
	p.at += len(mark)
}

func (p *timeReader) digits() string {
	begin := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.text[begin:p.at]
}

func (p *timeReader) two(low, high int) int {
	if p.at+2 > len(p.text) || !allDigits(p.text[p.at:p.at+2]) {
		p.bad = true
		return low
	}
	n, _ := strconv.Atoi(p.text[p.at : p.at+2])
	p.at += 2
	if n < low || n > high {
		p.bad = true
	}
	return n
}

// year has at least four digits, no zero before more than four, and is not 0000.
func (p *timeReader) year() int {
	negative := strings.HasPrefix(p.text[min(p.at, len(p.text)):], "-")
	if negative {
		p.at++
	}
	text := p.digits()
	n, err := strconv.Atoi(text)
	if len(text) < 4 || len(text) > 4 && text[0] == '0' || err != nil || n == 0 || len(text) > 9 {
		p.bad = true
	}
	if negative {
		return -n
	}
	return n
}

func (p *timeReader) date(m *moment) {
	m.year = p.year()
	p.skip("-")
	m.month = p.two(1, 12)
	p.skip("-")
	m.day = p.two(1, 31)
}

func (p *timeReader) clock(m *moment) {
	m.hour = p.two(0, 24)
	p.skip(":")
	m.minute = p.two(0, 59)
	p.skip(":")
	m.second = p.two(0, 59)
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		digits := p.digits()
		if digits == "" {
			p.bad = true
		}
		m.fraction = strings.TrimRight(digits, "0")
	}
	if m.hour == 24 && (m.minute != 0 || m.second != 0 || m.fraction != "") {
		p.bad = true
	}
}

func (p *timeReader) zone(m *moment) {
	if p.at >= len(p.text) {
		return
	}
	m.zoned = true
	sign := 1
	switch p.text[p.at] {
	case 'Z':
		p.at++
		return
	case '-':
		sign = -1
	case '+':
	default:
		p.bad = true
		return
	}
	p.at++
	hours := p.two(0, 14)
	p.skip(":")
	minutes := p.two(0, 59)
	if hours == 14 && minutes != 0 {
		p.bad = true
	}
	m.zone = sign * (hours*60 + minutes)
}

// seconds counts from some day on, in Greenwich where the zone is known.
func (m moment) seconds() int64 {
	y, mo := int64(m.year), int64(m.month)
	if mo <= 2 {
		y, mo = y-1, mo+12
	}
	floor := func(a, b int64) int64 {
		if a < 0 && a%b != 0 {
			return a/b - 1
		}
		return a / b
	}
	days := 365*y + floor(y, 4) - floor(y, 100) + floor(y, 400) + (153*(mo-3)+2)/5 + int64(m.day)
	return days*86400 + int64(m.hour)*3600 + int64(m.minute-m.zone)*60 + int64(m.second)
}

// compare orders two moments. One without zone may be up to fourteen hours off,
// so it is comparable with one in a zone only when that does not matter.
func (m moment) compare(o moment) (int, bool) {
	const farthest = 14 * 3600
	distance := m.seconds() - o.seconds()
	if m.zoned != o.zoned {
		switch {
		case distance > farthest:
			return 1, true
		case distance < -farthest:
			return -1, true
		}
		return 0, false
	}
	switch {
	case distance > 0:
		return 1, true
	case distance < 0:
		return -1, true
	}
	return strings.Compare(m.fraction, o.fraction), true
}

func (m moment) String() string { return fmt.Sprint(m.seconds(), m.fraction, m.zoned) }

// isDuration reads -P1Y2M3DT4H5M6.7S: parts in order, at least one, and one
// after a T.
func isDuration(text string) bool {
	text, ok := strings.CutPrefix(strings.TrimPrefix(text, "-"), "P")
	if !ok {
		return false
	}
	days, clock, timed := strings.Cut(text, "T")
	before, ok := durationParts(days, "YMD", false)
	after, okay := durationParts(clock, "HMS", true)
	return ok && okay && (before || after) && (!timed || after)
}

func durationParts(text, units string, fraction bool) (some, ok bool) {
	for text != "" {
		i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if i <= 0 {
			return some, false
		}
		unit := strings.IndexByte(units, text[i])
		whole, part, point := strings.Cut(text[:i], ".")
		if unit < 0 || !allDigits(whole) || !allDigits(part) || whole == "" ||
			point && (part == "" || !fraction || text[i] != 'S') {
			return some, false
		}
		units, text, some = units[unit+1:], text[i+1:], true
	}
	return some, true
}

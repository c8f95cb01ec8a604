package transaction

import (
	"strings"
	"time"
)

const (
	timestampForm = "dddd-dd-ddTdd:dd:dd"
	secondsAt     = len(timestampForm) - 2
)

// ParseInstant reads a timestamp of RFC 3339: any offset, any fraction, T and Z
// in either case (section 5.6). A leap second (23:59:60 UTC at the end of a
// month) is read as the second before it: no clock of ours has it.
func ParseInstant(text string) (time.Time, bool) {
	if strings.ContainsAny(text, "tz") {
		text = strings.ToUpper(text)
	}
	if !hasTimestampForm(text) || !strings.HasSuffix(text, "Z") && text[len(text)-5:] > "23:59" {
		return time.Time{}, false
	}
	leap := text[secondsAt:len(timestampForm)] == "60"
	if leap {
		text = text[:secondsAt] + "59" + text[len(timestampForm):]
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || leap && !endsMonth(at.UTC()) {
		return time.Time{}, false
	}
	return at, true
}

func endsMonth(at time.Time) bool {
	next := at.Truncate(time.Second).Add(time.Second)
	return next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0 && next.Second() == 0
}

// hasTimestampForm refuses what time.Parse takes beyond RFC 3339: hours of one
// digit and fractions after a comma.
func hasTimestampForm(text string) bool {
	if len(text) <= len(timestampForm) {
		return false
	}
	for i := range len(timestampForm) {
		form := timestampForm[i]
		if digit := '0' <= text[i] && text[i] <= '9'; digit != (form == 'd') || !digit && text[i] != form {
			return false
		}
	}
	return text[len(timestampForm)] != ','
}

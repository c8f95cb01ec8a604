package series

import (
	"regexp"
	"strings"
	"unicode"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// place is a character of the numbers that a pattern gives.
type place struct {
	any   string // one of these
	maybe bool   // or none
}

const digitsAny = "0123456789"

var anyPart = regexp.MustCompile(`\{YYYY\}|\{YY\}|\{N:[0-9]{1,2}\}|.`)

// places are the characters of all numbers of a pattern. Capitals do not tell
// numbers apart: not every register minds them.
func places(pattern string) (all []place) {
	digits := func(n int, maybe bool) {
		for range n {
			all = append(all, place{digitsAny, maybe})
		}
	}
	for _, part := range anyPart.FindAllString(pattern, -1) {
		switch {
		case part == "{YYYY}":
			all = append(all, place{any: "12"}, place{any: "019"}) // years from 1970 to 2199
			digits(2, false)
		case part == "{YY}":
			digits(2, false)
		case strings.HasPrefix(part, "{N:"):
			digits(width(part), false)
			digits(widthMax-width(part), true)
		default:
			all = append(all, place{any: strings.Map(unicode.ToLower, part)})
		}
	}
	return all
}

// overlap reports whether two patterns could give one number. Years are taken for
// any digits, so that it says yes rather than no.
func overlap(one, other string) bool {
	a, b := places(one), places(other)
	// meet[i][j]: the first i places of one and the first j of the other can read alike.
	meet := make([][]bool, len(a)+1)
	for i := range meet {
		meet[i] = make([]bool, len(b)+1)
	}
	meet[0][0] = true
	for i := range meet {
		for j := range meet[i] {
			if !meet[i][j] {
				continue
			}
			if i < len(a) && a[i].maybe {
				meet[i+1][j] = true
			}
			if j < len(b) && b[j].maybe {
				meet[i][j+1] = true
			}
			if i < len(a) && j < len(b) && strings.ContainsAny(a[i].any, b[j].any) {
				meet[i+1][j+1] = true
			}
		}
	}
	return meet[len(a)][len(b)]
}

// refuseOverlap refuses a series that could give a number which another one of the
// supplier gives, whatever kind of document that is for.
func refuseOverlap(tx *db.Tx, scope string, in Series) error {
	others, err := db.Collect(tx, func(scan func(...any) error) (o Series, err error) {
		return o, scan(&o.ID, &o.Pattern)
	}, "SELECT series_id, pattern FROM number_series WHERE client_id = $1 AND supplier_id = $2 ORDER BY series_id",
		scope, in.SupplierID)
	if err != nil {
		return err
	}
	for _, o := range others {
		if overlap(in.Pattern, o.Pattern) {
			return fault.New(fault.Conflict, "another series of the supplier could give the same numbers").
				With(fault.Fault{Code: fault.CodeConflict, Type: fault.General, Field: "pattern",
					Message: "pattern could give a number that series " + o.ID + " (" + o.Pattern + ") gives"})
		}
	}
	return nil
}

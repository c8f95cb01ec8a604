package transaction

import (
	"strings"
	"time"
	"unicode"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// The years a document can belong to: both ends fit every store and wire format.
const (
	yearMin = 1970
	yearMax = 2199
)

// instant reads a timestamp of RFC 3339, with any offset and fractions.
func (in *reader) instant(into *time.Time) strictjson.State {
	var text string
	if st := in.Line(&text, 1000); st != strictjson.Taken {
		return st
	}
	at, ok := ParseInstant(text)
	if !ok {
		return in.Refuse(fault.FieldNotValid, "must be a timestamp like 2006-01-02T15:04:05Z")
	}
	if y := at.UTC().Year(); y < yearMin || y > yearMax {
		return in.Refuse(fault.FieldNotValid, "must lie in the years %d to %d", yearMin, yearMax)
	}
	*into = at
	return strictjson.Taken
}

// day reads a calendar day.
func (in *reader) day(into *string) strictjson.State {
	if st := in.Line(into, 1000); st != strictjson.Taken {
		return st
	}
	at, err := time.Parse(time.DateOnly, *into)
	if err != nil || at.Year() < yearMin || at.Year() > yearMax {
		*into = ""
		return in.Refuse(fault.FieldNotValid, "must be a day like 2006-01-02")
	}
	return strictjson.Taken
}

// identifier reads a client's own id: it stands in addresses and comparisons,
// so what cannot be seen has no place in it.
func (in *reader) identifier(into *string) strictjson.State {
	if st := in.Line(into, identifierMax); st != strictjson.Taken {
		return st
	}
	for _, r := range *into {
		if !unicode.IsGraphic(r) {
			return in.Refuse(fault.FieldNotValid, "must have printable characters only, but has U+%04X", r)
		}
	}
	if strings.TrimSpace(*into) != *into {
		return in.Refuse(fault.FieldNotValid, "must not begin or end with a blank")
	}
	return strictjson.Taken
}

// code reads a code of letters in either case.
func (in *reader) code(into *string, length int, what string) strictjson.State {
	if st := in.Line(into, 1000); st != strictjson.Taken {
		return st
	}
	if len(*into) != length || strings.IndexFunc(*into, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) >= 0 {
		*into = ""
		return in.Refuse(fault.FieldNotValid, "must be a %s", what)
	}
	return strictjson.Taken
}

// choice reads a member that knows some values only.
func (in *reader) choice(into *string, values ...string) strictjson.State {
	if st := in.Line(into, 1000); st != strictjson.Taken {
		return st
	}
	for _, v := range values {
		if *into == v {
			return strictjson.Taken
		}
	}
	*into = ""
	return in.Refuse(fault.FieldNotValid, "must be one of %s", strings.Join(values, ", "))
}

// word reads a short code in capitals whose values are the country's own.
func (in *reader) word(into *string, max int) strictjson.State {
	if st := in.Line(into, max); st != strictjson.Taken {
		return st
	}
	if strings.IndexFunc(*into, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) >= 0 {
		*into = ""
		return in.Refuse(fault.FieldNotValid, "must have capital letters, digits, - and _ only")
	}
	return strictjson.Taken
}

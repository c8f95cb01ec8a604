package lookup

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
)

// Limits of a request.
const (
	bodyBytesMax = 1 << 20
	batchNameMax = 150
	numberMax    = 50 // no tax number of the world has more than 20 characters; blanks and punctuation are the client's
)

// batchRequest is the body of a batch.
type batchRequest struct {
	name    string
	entries []Entry
}

// decodeBatch reads the body of a batch and tells everything that is wrong
// with it. Whether a country exists and a number can be one is no fault of the
// body: the entry's result says so. Members nobody knows are accepted.
func decodeBatch(body []byte) (batchRequest, error) {
	var request batchRequest
	d := newDecoder(body)
	entries := strictjson.Absent
	d.Body(func(name string) {
		switch name {
		case "batch_name":
			d.text(&request.name, batchNameMax)
		case "validations":
			entries = d.entries(&request.entries)
		default:
			d.Skip()
		}
	})
	if entries == strictjson.Absent {
		d.Missing("validations")
	}
	return request, d.verdict()
}

// decodeSingle reads the body of a single validation.
func decodeSingle(body []byte) (entry Entry, err error) {
	d := newDecoder(body)
	var got members
	d.Body(func(name string) { d.entryMember(name, &entry, &got) })
	d.requireEntry(got)
	return entry, d.verdict()
}

// decoder reads one body. Nothing is built of what nobody wants.
type decoder struct{ strictjson.Reader }

func newDecoder(body []byte) *decoder {
	d := &decoder{}
	d.Open(body, bodyBytesMax)
	return d
}

func (d *decoder) verdict() error {
	if err := d.Err(); err != nil {
		return err
	}
	n := d.Faults.Count()
	if n == 0 {
		return nil
	}
	what := "the request has 1 error"
	if n > 1 {
		what = fmt.Sprintf("the request has %d errors", n)
	}
	if n > fault.ListMax {
		what += fmt.Sprintf(", the first %d are listed", fault.ListMax)
	}
	return fault.New(fault.Invalid, "%s", what).With(d.Faults.Listed()...)
}

// text takes a string within a length. Null and "" count as not sent.
func (d *decoder) text(to *string, lengthMax int) strictjson.State {
	var text string
	if st := d.Text(&text); st != strictjson.Taken {
		return st
	}
	if utf8.RuneCountInString(text) > lengthMax {
		return d.Refuse(fault.FieldNotValid, "must have at most %d characters", lengthMax)
	}
	if _, unfit := strictjson.Unfit(text, false); unfit {
		return d.Refuse(fault.FieldNotValid, "must not have control characters")
	}
	*to = text
	return strictjson.Taken
}

// entries reads the list. Beyond the limit entries are passed over, but what is
// no JSON is refused there too.
func (d *decoder) entries(to *[]Entry) strictjson.State {
	count := 0
	st := d.Array(func(i int) {
		count++
		if i >= entriesMax {
			d.Skip()
			return
		}
		var entry Entry
		var got members
		switch d.Object(func(name string) { d.entryMember(name, &entry, &got) }) {
		case strictjson.Absent:
			d.Refuse(fault.FieldNotValid, "must be an object")
		case strictjson.Taken:
			d.requireEntry(got)
			*to = append(*to, entry)
		}
	})
	switch {
	case st != strictjson.Taken || d.Broken():
	case count == 0:
		return strictjson.Absent
	case count > entriesMax:
		d.Refuse(fault.FieldNotValid, "must have at most %d entries, not %d", entriesMax, count)
	}
	return st
}

const (
	countryMember = "country_iso_code"
	numberMember  = "tax_identification_number"
)

// members are what became of the members of an entry.
type members struct{ country, number strictjson.State }

func (d *decoder) entryMember(name string, to *Entry, got *members) {
	switch name {
	case countryMember:
		got.country = d.country(&to.Country)
	case numberMember:
		st := d.text(&to.Number, numberMax)
		got.number = given(st, to.Number)
	default:
		d.Skip()
	}
}

// given turns a text of blanks into an absent one.
func given(st strictjson.State, text string) strictjson.State {
	if st == strictjson.Taken && strings.TrimSpace(text) == "" {
		return strictjson.Absent
	}
	return st
}

// country takes two letters in either case. Whether such a country exists is
// the result's matter.
func (d *decoder) country(to *string) strictjson.State {
	var text string
	st := d.Text(&text)
	if st = given(st, text); st != strictjson.Taken {
		return st
	}
	if !twoLetters(text) {
		return d.Refuse(fault.FieldNotValid, "must be a two-letter country code")
	}
	*to = text
	return st
}

func twoLetters(text string) bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	return len(text) == 2 && letter(text[0]) && letter(text[1])
}

// requireEntry names what an entry lacks, or has only blanks of.
func (d *decoder) requireEntry(got members) {
	if got.country == strictjson.Absent {
		d.Missing(countryMember)
	}
	if got.number == strictjson.Absent {
		d.Missing(numberMember)
	}
}

package sdiwire

import (
	"fmt"
	"regexp"
	"strings"
)

// Name is the name of a file with one XML invoice: IT01234567890_00001.xml.
// Signed files in a CAdES envelope (.p7m) and archives (.zip) are not supported.
type Name struct {
	Country     string // ISO 3166 alpha-2 of the transmitter
	ID          string // codice fiscale; abroad whatever identifies
	Progressive string
}

var (
	nameForm = regexp.MustCompile(`^([A-Z]{2})([A-Za-z0-9]{2,28})_([A-Za-z0-9]{1,5})\.xml$`)
	callForm = regexp.MustCompile(`^[a-zA-Z0-9_.]{9,50}$`)
)

// Italian transmitters are named by a codice fiscale.
const italianIDMin, italianIDMax = 11, 16

// ParseName reads the name of an invoice; false is 00001.
func ParseName(text string) (Name, bool) {
	parts := nameForm.FindStringSubmatch(text)
	if parts == nil {
		return Name{}, false
	}
	n := Name{Country: parts[1], ID: parts[2], Progressive: parts[3]}
	if n.Country == "IT" && (len(n.ID) < italianIDMin || len(n.ID) > italianIDMax) {
		return Name{}, false
	}
	return n, true
}

// Callable reports whether NomeFile of a call may have this value at all: one
// that may not is answered with a fault, and has no code.
func Callable(name string) bool { return callForm.MatchString(name) }

// String is the file name.
func (n Name) String() string { return n.Country + n.ID + "_" + n.Progressive + ".xml" }

// MessageName is the file name of a message about a file.
func MessageName(file string, k Kind, n int) string {
	file, _, _ = strings.Cut(file, ".")
	return fmt.Sprintf("%s_%s_%03d.xml", file, k, n)
}

// AnswerName is the file name of what a buyer says of a file: its mark is three letters or digits, never twice of one file.
func AnswerName(file, mark string) string {
	file, _, _ = strings.Cut(file, ".")
	return file + "_EC_" + mark + ".xml"
}

var answerForm = regexp.MustCompile(`^(.+)_EC_[A-Za-z0-9]{1,3}\.xml$`)

// ParseAnswerName reads what AnswerName writes about an XML invoice.
func ParseAnswerName(text string) (invoice string, ok bool) {
	parts := answerForm.FindStringSubmatch(text)
	if parts == nil {
		return "", false
	}
	return parts[1] + ".xml", true
}

var messageForm = regexp.MustCompile(`^(.+)_(RC|MC|NS|NE|DT|AT)_[A-Za-z0-9]{1,5}\.xml$`)

// ParseMessageName reads what MessageName writes about an invoice.
func ParseMessageName(text string) (invoice string, k Kind, ok bool) {
	parts := messageForm.FindStringSubmatch(text)
	if parts == nil {
		return "", "", false
	}
	return parts[1] + ".xml", Kind(parts[2]), true
}

package sdi

import "time"

// Judge is every code that the checks of a single file find, in their order.
func Judge(file []byte, received time.Time) (codes []string) {
	in, flaws := read(file)
	if in != nil {
		flaws = in.examine(received)
	}
	for _, f := range flaws {
		codes = append(codes, f.Code)
	}
	return codes
}

var (
	Meanings  = meanings
	ValidVAT  = validVAT
	ValidCode = validCode
)

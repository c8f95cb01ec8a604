package world

import (
	"fmt"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/facturx"
	"tributary/internal/incoming"
)

// Formats lists what documents of others are read in: those of EN 16931, and those
// that packs have of their own.
func Formats(packs []country.Pack) []country.Format {
	all := append(en16931.Formats(), facturx.Format())
	for i := range packs {
		all = append(all, packs[i].Formats...)
	}
	return all
}

// Sniff tells the format of a file by its beginning alone; false where it is none
// that is read.
func Sniff(formats []country.Format, file []byte) (country.Format, bool) {
	space, root := incoming.Root(file)
	for _, f := range formats {
		if f.Begins == nil && root != "" && f.Space == space && f.Root == root || f.Begins != nil && root == "" && f.Begins(file) {
			return f, true
		}
	}
	return country.Format{}, false
}

// Read reads all documents of a file in whichever format it is.
func Read(formats []country.Format, file []byte) ([]*incoming.Document, error) {
	if len(file) > incoming.BytesMax {
		return nil, fmt.Errorf("%w: the file has more than %d bytes", incoming.ErrInvalid, incoming.BytesMax)
	}
	f, known := Sniff(formats, file)
	if !known {
		return nil, fmt.Errorf("%w: the file is in no format that is read", incoming.ErrInvalid)
	}
	return f.Read(file)
}

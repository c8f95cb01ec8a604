package server

import (
	"fmt"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/incoming"
)

// readIncoming reads what others sent, in whichever format of these packs it is. The kind of content that its sender
// named is not believed: the file's beginning tells.
func readIncoming(packs []country.Pack) func([]byte) (*incoming.Document, error) {
	formats := world.Formats(packs)
	return func(file []byte) (*incoming.Document, error) {
		all, err := world.Read(formats, file)
		if err != nil {
			return nil, err
		}
		if len(all) != 1 {
			return nil, fmt.Errorf("%w: the file has %d documents; send each in a file of its own", incoming.ErrInvalid, len(all))
		}
		return all[0], nil
	}
}

package document

import "slices"

// Template is the arrangement of a document.
type Template string

// The templates. The zero value means classic.
const (
	Classic Template = "classic" // A4, sober
	Modern  Template = "modern"  // A4, the facts in a row, tinted tables
	Receipt Template = "receipt" // a roll of 80 mm, for consumers
)

// Templates lists the names that [Branding] knows.
func Templates() []Template { return []Template{Classic, Modern, Receipt} }

// orDefault returns a template that there is. A full invoice is never a
// receipt: the roll has no room for what a business must find on one.
func (t Template) orDefault(simplified bool) Template {
	if !slices.Contains(Templates(), t) || t == Receipt && !simplified {
		return Classic
	}
	return t
}

func (t Template) paper() paper {
	if t == Receipt {
		return roll()
	}
	return a4()
}

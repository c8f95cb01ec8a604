package document

import "slices"

// Template is the arrangement of a document.
//
// What leads on paper is the number, the date, the amount and whether it is paid;
// our own unique number stands small at the end. A name or a tax number in the foot
// is never cut: the foot grows. Where the last page would be almost empty, a
// document of up to 40 pages is laid out once more with tighter lines, because
// white space bends before a page does. Running heads, feet, carried sums and lines
// are artifacts to readers that speak: they repeat or decorate.
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

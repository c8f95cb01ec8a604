package country

// Structured is the invoice of a transaction as data, where nothing is filed
// with anybody: what becomes the REPORT attachment, and is carried inside of
// the document for people where the format is a hybrid one.
type Structured struct {
	Format   string // "XML"
	Content  []byte
	Name     string // of the format, as settings.format calls it
	Rounding int64  // minor units between the sum of the lines and the document's own total
	// TaxedBySum says that its taxes are computed on the sum of each rate, not
	// taken from the lines: paper shows the same.
	TaxedBySum bool

	// Embedded says under which name and level the PDF carries it; nil: it does not.
	Embedded *Embedding
}

// Embedding is how a hybrid document names the data inside of it.
type Embedding struct {
	FileName string // factur-x.xml
	Level    string // "EN 16931"
}

// Package document makes the pages that people and auditors keep: the visual form
// of a transaction as PDF/A-3.
//
// It owns how a document looks and reads. It does not own where it is kept (that
// is the package files) nor what it says: amounts come from transaction.Calculate, legal texts, codes and
// captions from the country's pack, logo and colours from the client's
// configuration.
//
// The law of Render: a document is a pure function of its [Visual]. Equal
// visuals give equal bytes; nothing in one is fetched, opened, executed or
// trusted to be short, printable or well-formed; and nothing in one can keep
// the document of a registered transaction from being made.
//
// What a law wants on paper (the words above and below a code, labelled ids,
// sentences) is data that the pack returns; where it stands is decided here. Two
// codes can stand beside the parties: KSeF asks for two on invoices that were
// issued while it could not be reached, no country asks for more, and a third is
// not drawn. There is no look for a single document: nobody asked for it, and an
// auditor would have to know which was meant. Why documents are written by a writer
// of our own: docs/decisions/0034.
package document

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/document/qr"
	"tributary/internal/document/typeset"
	"tributary/internal/document/words"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Visual is everything a visual document is made from.
type Visual struct {
	Transaction transaction.Transaction // its Kind decides the title, its Note is sanitised here
	Totals      transaction.Totals
	Supplier    country.Supplier
	Simplified  bool // a receipt instead of a full invoice

	Language string         // two letters; "" means the transaction's. See [words.Speaks]
	Location *time.Location // of the supplier's address: decides the days on the document; nil means UTC
	IssuedAt time.Time      // document_generated_at: the only time in the metadata

	// TaxNumberName is the name by which everybody in a country (upper case) knows
	// a business's tax number, "" where the language's words do; nil: they always do.
	TaxNumberName func(country string) string

	UniqueNumber string
	Imprint      country.Imprint // what the country's law wants; at most codesMax of its codes are drawn
	Original     *Reference      // corrections: the document that is corrected
	Others       []Reference     // further ones that the same correction is of

	// LocalCurrency is the currency of the country when it is not the
	// transaction's: with an exchange rate the tax is stated in it as well.
	LocalCurrency string
	// Rounding is what brings a total whose taxes are computed per rate to what is
	// payable (EN 16931, BT-114); 0 without.
	Rounding int64
	// TaxedBySum says that the data beside this document has its taxes from the
	// sum of each rate: paper shows those, not the sums of the lines' own.
	TaxedBySum bool
	// Untagged leaves the structure out: for measurements.
	Untagged bool
	// Specimen marks a document of the test environment, so that nobody books it.
	Specimen bool

	Branding Branding
	Files    []EmbeddedFile
	FacturX  *FacturX
}

// codesMax codes stand beside the parties; no country prints more.
const codesMax = 2

// Reference names the document that a correction corrects.
type Reference struct {
	Number      string
	Date        time.Time
	AuthorityID string
}

// Branding is the look that a client or a company chose. Its zero value is a
// sober document that carries the supplier's name in place of a logo.
type Branding struct {
	Logo      []byte // PNG or JPEG within account's limits; another is left out
	Placement Placement
	Accent    string // #RRGGBB; darkened until it can be read on white
	Ink       string // #RRGGBB of the text, likewise
	Font      string // one of [Fonts]
	Template  Template
	Footer    string // the client's own words in the foot, a few lines
}

// Placement is where the logo stands in the head of the first page.
type Placement string

// The placements. The zero value means left.
const (
	Left   Placement = "left"
	Center Placement = "center"
	Right  Placement = "right"
)

// EmbeddedFile is a file inside the PDF.
type EmbeddedFile struct {
	Name         string // file name without a folder
	MIME         string
	Description  string
	Relationship Relationship
	ModifiedAt   time.Time
	Content      []byte
}

// Relationship is how an attachment relates to the visual document (ISO 19005-3, AFRelationship).
type Relationship string

// The relationships of ISO 19005-3, annex E. The zero value means Unspecified.
const (
	Alternative Relationship = "Alternative" // the same document in another form: Factur-X, ZUGFeRD
	Source      Relationship = "Source"
	Data        Relationship = "Data"
	Supplement  Relationship = "Supplement"
	Unspecified Relationship = "Unspecified"
)

// FacturX says that one of the attachments is a Factur-X or ZUGFeRD invoice.
type FacturX struct {
	FileName string // factur-x.xml, or xrechnung.xml for that profile
	Level    string // MINIMUM, BASIC WL, BASIC, EN 16931, EXTENDED, XRECHNUNG
	Version  string // "" means 1.0
}

// Renderer makes PDFs. It parses fonts once and keeps the subsets, logos and
// working memory that documents share, all within fixed bounds. It is safe for
// concurrent use.
type Renderer struct {
	library    *typeset.Library
	setter     *typeset.Setter
	subsets    *typeset.Cache[typeset.Key, *embedded]
	logos      *typeset.Cache[uint64, *picture]
	seed       maphash.Seed
	deflate    deflaters
	workspaces sync.Pool // of *workspace
	profile    blob      // the sRGB output intent, deflated
	vocabulary *words.Vocabulary
	codes      qr.Maker
	notes      *noteBook
}

// NewRenderer parses the fonts of the program. Those of the folders are looked
// for when a text needs one.
func NewRenderer(folders typeset.Folders) (*Renderer, error) {
	lib, err := typeset.NewLibrary(folders)
	if err != nil {
		return nil, fmt.Errorf("parsing the document fonts: %w", err)
	}
	vocabulary, err := words.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the words of documents: %w", err)
	}
	r := &Renderer{
		library:    lib,
		vocabulary: vocabulary,
		setter:     typeset.NewSetter(lib),
		notes:      newNoteBook(),
		subsets:    typeset.NewCache[typeset.Key, *embedded](subsetBytesMax),
		logos:      typeset.NewCache[uint64, *picture](logoCacheBytesMax),
		seed:       maphash.MakeSeed(),
	}
	r.profile = r.deflate.best(srgbProfile())
	return r, nil
}

// Rendering is a document that was made, and what a client should know of it.
type Rendering struct {
	PDF []byte
	// English says that the language asked for is none of documents, or that no
	// font can set its letters, so that captions are in English.
	English bool
	// Missing are scripts (ISO 15924) that no font could set. Their text stands
	// in Latin letters, and the document says so.
	Missing []string
}

// Render returns the document as PDF/A-3u, deterministic in v and in the fonts
// that are installed.
//
// Failure policy: the transaction may already be registered with an authority,
// so whatever can be drawn is drawn. A logo that is no longer an image is left
// out, an unknown colour, font or language falls back (see [words.Speaks]), text that
// no font has is transliterated. The errors that remain are a code that does not
// fit any QR size and attachments the format cannot hold, because a document
// without them would be another document; and ctx's, asked page by page.
func (r *Renderer) Render(ctx context.Context, v Visual) (Rendering, error) {
	if err := v.check(); err != nil {
		return Rendering{}, err
	}
	v.sign()
	v.hideTax()
	w := r.workspace()
	defer r.release(w)
	p, err := r.compose(ctx, w, &v)
	if err != nil {
		return Rendering{}, fmt.Errorf("laying out document %s: %w", v.Transaction.ID, err)
	}
	out, err := r.write(ctx, &v, p)
	if err != nil {
		return Rendering{}, fmt.Errorf("writing document %s: %w", v.Transaction.ID, err)
	}
	return Rendering{PDF: out, English: p.english, Missing: p.on.missing}, nil
}

// Scripts tells which scripts documents can be set in here, for whoever
// installs fonts. The error names folders that cannot be read.
func (r *Renderer) Scripts() ([]typeset.Availability, error) { return r.library.Scripts() }

// check refuses what would make another document than the one that was meant.
func (v *Visual) check() error {
	items, lines := v.Transaction.Items, v.Totals.Lines
	if len(items) != len(lines) {
		return invalid("%d items have totals of %d lines", len(items), len(lines))
	}
	for i := range items {
		if len(items[i].Taxes) != len(lines[i].Taxes) {
			return invalid("item %d has %d taxes and amounts of %d", i, len(items[i].Taxes), len(lines[i].Taxes))
		}
	}
	return v.checkFiles()
}

// language returns the code of the language asked for, upper case.
func (v *Visual) language() string {
	code := v.Language
	if code == "" {
		code = v.Transaction.LanguageCode
	}
	return strings.ToUpper(code)
}

// location never returns nil.
func (v *Visual) location() *time.Location {
	if v.Location == nil {
		return time.UTC
	}
	return v.Location
}

// invalid is the one shape of the errors that Render and its checks return for what they were given.
func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...)
}

// The fonts a client may choose from.
const (
	Sans  = typeset.Sans
	Serif = typeset.Serif
)

// Fonts lists the names that [Branding] knows; anything else means the first.
func Fonts() []string { return []string{Sans, Serif} }

// Languages lists the languages of documents, in upper case.
func Languages() []string { return words.Languages() }

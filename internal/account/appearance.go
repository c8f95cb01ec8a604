package account

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tributary/internal/fault"
	"tributary/internal/strictjson"
	"tributary/internal/transaction"
)

// Placement is where the logo stands on documents. Empty means left.
type Placement string

// The placements.
const (
	Left   Placement = "left"
	Center Placement = "center"
	Right  Placement = "right"
)

// Font is a family of the document renderer. Empty means sans.
type Font string

// The fonts.
const (
	Sans  Font = "sans"
	Serif Font = "serif"
)

// Template is an arrangement of the document renderer. Empty means classic. A
// receipt is for simplified documents; a full invoice of that client is classic.
type Template string

// The templates.
const (
	Classic Template = "classic"
	Modern  Template = "modern"
	Receipt Template = "receipt"
)

// Limits of the words that a client puts into the foot of its documents.
const (
	FooterMax      = 200 // characters
	FooterLinesMax = 3
)

// Colours are #RRGGBB, or empty for the renderer's own.
type Colours struct {
	Accent string `json:"accent,omitempty"`
	Ink    string `json:"ink,omitempty"`
}

// Appearance is how documents appearance. What is empty is left to whoever is asked next:
// a company's to its client's for the country, that to the client's, a client's
// to the renderer's own.
type Appearance struct {
	Logo          *Logo     `json:"logo"`
	LogoPlacement Placement `json:"logo_placement,omitempty"`
	Colours       Colours   `json:"colours"`
	Font          Font      `json:"font,omitempty"`
	Template      Template  `json:"template,omitempty"`
	Footer        string    `json:"footer,omitempty"`
}

// CountryAppearance is what a client wants otherwise in one country.
type CountryAppearance struct {
	LogoPlacement Placement `json:"logo_placement,omitempty"`
	Colours       Colours   `json:"colours,omitzero"`
	Font          Font      `json:"font,omitempty"`
	Template      Template  `json:"template,omitempty"`
	Footer        string    `json:"footer,omitempty"`
}

func (c *Config) appearance() Appearance {
	return Appearance{Logo: c.Logo, LogoPlacement: c.LogoPlacement, Colours: c.Colours, Font: c.Font,
		Template: c.Template, Footer: c.Footer}
}

// AppearanceIn is how the client's documents appearance in a country, by upper-case code.
func (c *Config) AppearanceIn(code string) Appearance {
	appearance, own := c.appearance(), c.Looks[code]
	return Appearance{
		Logo: appearance.Logo, LogoPlacement: cmp.Or(own.LogoPlacement, appearance.LogoPlacement),
		Font: cmp.Or(own.Font, appearance.Font),
		Colours: Colours{Accent: cmp.Or(own.Colours.Accent, appearance.Colours.Accent),
			Ink: cmp.Or(own.Colours.Ink, appearance.Colours.Ink)},
		Template: cmp.Or(own.Template, appearance.Template), Footer: cmp.Or(own.Footer, appearance.Footer),
	}
}

// settleLooks does for every country what settle does for the client's own appearance.
func (c *Config) settleLooks(found finder) {
	settled := make(map[string]CountryAppearance, len(c.Looks))
	for _, given := range slices.Sorted(maps.Keys(c.Looks)) {
		code, own, field := strings.ToUpper(given), c.Looks[given], "looks."+given
		if _, twice := settled[code]; twice {
			found(field, fault.FieldNotValid, "must appear only once")
		}
		if !transaction.CountryKnown(code) {
			found(field, fault.FieldNotValid, "is not a country code")
		}
		appearance := Appearance{LogoPlacement: own.LogoPlacement, Colours: own.Colours, Font: own.Font,
			Template: own.Template, Footer: own.Footer}
		appearance.settle(func(at string, code fault.Code, format string, args ...any) {
			found(field+"."+at, code, format, args...)
		})
		settled[code] = CountryAppearance{LogoPlacement: appearance.LogoPlacement, Colours: appearance.Colours,
			Font: appearance.Font, Template: appearance.Template, Footer: appearance.Footer}
	}
	maps.DeleteFunc(settled, func(_ string, l CountryAppearance) bool { return l == CountryAppearance{} })
	if len(settled) == 0 {
		settled = nil
	}
	c.Looks = settled
}

// Settle brings a appearance into its stored form and finds everything that is wrong
// with it, with paths below itself.
func (l *Appearance) Settle() (wrong []fault.Fault) {
	l.settle(func(field string, code fault.Code, format string, args ...any) {
		wrong = append(wrong, fault.At(field, code, format, args...))
	})
	return wrong
}

func (l *Appearance) settle(found finder) {
	if !slices.Contains([]Placement{"", Left, Center, Right}, l.LogoPlacement) {
		found("logo_placement", fault.FieldNotValid, "must be %s, %s or %s", Left, Center, Right)
	}
	if !slices.Contains([]Font{"", Sans, Serif}, l.Font) {
		found("font", fault.FieldNotValid, "must be %s or %s", Sans, Serif)
	}
	if !slices.Contains([]Template{"", Classic, Modern, Receipt}, l.Template) {
		found("template", fault.FieldNotValid, "must be %s, %s or %s", Classic, Modern, Receipt)
	}
	l.settleFooter(found)
	for _, part := range []struct {
		field  string
		colour *string
	}{{"colours.accent", &l.Colours.Accent}, {"colours.ink", &l.Colours.Ink}} {
		*part.colour = strings.ToUpper(*part.colour)
		if *part.colour != "" && !isColour(*part.colour) {
			found(part.field, fault.FieldNotValid, "must be of the form #RRGGBB")
		}
	}
}

func (l *Appearance) settleFooter(found finder) {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(l.Footer, "\r\n", "\n")), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	l.Footer = strings.Join(lines, "\n")
	switch n := utf8.RuneCountInString(l.Footer); {
	case n > FooterMax:
		found("footer", fault.FieldNotValid, "has %d characters, at most %d are allowed", n, FooterMax)
	case len(lines) > FooterLinesMax:
		found("footer", fault.FieldNotValid, "has %d lines, at most %d are allowed", len(lines), FooterLinesMax)
	default:
		if r, bad := strictjson.Unfit(strings.Join(lines, " "), false); bad {
			found("footer", fault.FieldNotValid, "must not contain the character U+%04X", r)
		}
	}
}

func isColour(text string) bool {
	return len(text) == 7 && text[0] == '#' && strings.Trim(text[1:], "0123456789ABCDEF") == ""
}

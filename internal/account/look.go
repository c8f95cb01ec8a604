package account

import (
	"slices"
	"strings"

	"tributary/internal/fault"
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

// Colours are #RRGGBB, or empty for the renderer's own.
type Colours struct {
	Accent string `json:"accent,omitempty"`
	Ink    string `json:"ink,omitempty"`
}

// Look is how documents look. What is empty is left to whoever is asked next:
// a company's to its client's, a client's to the renderer's own.
type Look struct {
	Logo          *Logo     `json:"logo"`
	LogoPlacement Placement `json:"logo_placement,omitempty"`
	Colours       Colours   `json:"colours"`
	Font          Font      `json:"font,omitempty"`
}

func (c *Config) look() Look {
	return Look{Logo: c.Logo, LogoPlacement: c.LogoPlacement, Colours: c.Colours, Font: c.Font}
}

// Settle brings a look into its stored form and finds everything that is wrong
// with it, with paths below itself.
func (l *Look) Settle() (wrong []fault.Fault) {
	l.settle(func(field string, code fault.Code, format string, args ...any) {
		wrong = append(wrong, fault.At(field, code, format, args...))
	})
	return wrong
}

func (l *Look) settle(found finder) {
	if !slices.Contains([]Placement{"", Left, Center, Right}, l.LogoPlacement) {
		found("logo_placement", fault.FieldNotValid, "must be %s, %s or %s", Left, Center, Right)
	}
	if !slices.Contains([]Font{"", Sans, Serif}, l.Font) {
		found("font", fault.FieldNotValid, "must be %s or %s", Sans, Serif)
	}
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

func isColour(text string) bool {
	return len(text) == 7 && text[0] == '#' && strings.Trim(text[1:], "0123456789ABCDEF") == ""
}

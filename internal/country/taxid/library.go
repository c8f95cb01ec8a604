package taxid

import (
	"strings"

	"github.com/invopop/gobl/cbc"
	"github.com/invopop/gobl/l10n"
	_ "github.com/invopop/gobl/regimes" // registers every regime's normaliser and rules
	"github.com/invopop/gobl/rules"
	"github.com/invopop/gobl/tax"
)

// askLibrary hands a compacted number to the tax library's regime. The
// library drops characters it does not like; compact has refused them before.
func askLibrary(country, text string) (number, reason string) {
	asked := country
	switch country {
	case "XI":
		// Northern Ireland's numbers are British ones under another prefix; the
		// library normalises XI but has check digits for GB only.
		asked, text = "GB", trimPrefix("XI", text)
	case "GR":
		// The library trims the prefix EL only when it is asked for EL.
		asked = "EL"
	}
	id := &tax.Identity{Country: l10n.TaxCountryCode(asked), Code: cbc.Code(text)}
	id.Normalize()
	number = id.Code.String()
	if country == "FR" && strings.HasPrefix(number, "FR") {
		// French keys may be letters, so a doubled prefix would pass for a key.
		return number, "the prefix stands twice"
	}
	if number == "" {
		// The library takes an absent number for a correct one.
		return "", "the number is only a prefix"
	}
	if faults := rules.Validate(id); faults != nil && faults.Len() > 0 {
		return number, faults.First().Message()
	}
	return number, ""
}

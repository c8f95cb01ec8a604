package sat

import (
	"slices"

	"tributary/internal/xmltree"
)

// listed reports whether c_TasaOCuota has the rate of a tax, in millionths: some
// taxes have single rates, others all up to a limit. An exempt one has none.
func listed(t *xmltree.Element, withheld bool) bool {
	rate := millionths(t.Attr("TasaOCuota"))
	switch tax, factor := t.Attr("Impuesto"), t.Attr("TipoFactor"); {
	case factor == "Exento":
		return true
	case tax == "001" && factor == "Tasa":
		return withheld && rate >= 0 && rate <= 350_000
	case tax == "002" && factor == "Tasa" && withheld:
		return rate >= 0 && rate <= 160_000
	case tax == "002" && factor == "Tasa":
		return rate == 0 || rate == 80_000 || rate == 160_000
	case tax == "003" && factor == "Tasa" && !withheld && (rate == 0 || rate == 30_000):
		return true
	case tax == "003" && factor == "Tasa":
		return slices.Contains([]int64{265_000, 300_000, 530_000, 500_000, 1_600_000, 304_000, 250_000, 90_000, 80_000,
			70_000, 60_000}, rate)
	case tax == "003" && factor == "Cuota":
		return rate >= 0 && rate <= quotaMax
	}
	return false
}

// quotaMax is the largest quota of IEPS, in millionths of a peso (2026).
const quotaMax = 72_160_500

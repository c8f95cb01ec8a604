package ro

import (
	"strings"

	"tributary/internal/country/en16931"
)

// counties are the names of the counties as people write them, without marks and
// in lower case, by their codes of ISO 3166-2:RO.
var counties = map[string]string{
	"alba": "AB", "arges": "AG", "arad": "AR", "bucuresti": "B", "bucharest": "B", "bacau": "BC", "bihor": "BH",
	"bistrita-nasaud": "BN", "bistrita nasaud": "BN", "braila": "BR", "botosani": "BT", "brasov": "BV", "buzau": "BZ", "cluj": "CJ",
	"calarasi": "CL", "caras-severin": "CS", "caras severin": "CS", "constanta": "CT", "covasna": "CV", "dambovita": "DB",
	"dolj": "DJ", "gorj": "GJ", "galati": "GL", "giurgiu": "GR", "hunedoara": "HD", "harghita": "HR", "ilfov": "IF",
	"ialomita": "IL", "iasi": "IS", "mehedinti": "MH", "maramures": "MM", "mures": "MS", "neamt": "NT", "olt": "OT",
	"prahova": "PH", "sibiu": "SB", "salaj": "SJ", "satu mare": "SM", "satu-mare": "SM", "suceava": "SV", "tulcea": "TL",
	"timis": "TM", "teleorman": "TR", "valcea": "VL", "vrancea": "VN", "vaslui": "VS",
}

// unmarked takes the marks off Romanian letters, old and new forms alike.
var unmarked = strings.NewReplacer("ă", "a", "â", "a", "î", "i", "ș", "s", "ş", "s", "ț", "t", "ţ", "t",
	"Ă", "a", "Â", "a", "Î", "i", "Ș", "s", "Ş", "s", "Ț", "t", "Ţ", "t")

func plain(text string) string {
	return strings.Join(strings.Fields(strings.ToLower(unmarked.Replace(text))), " ")
}

// countyOf is the code of a county by its name or its code; what is none stays
// as it is, so that the rules name it.
func countyOf(text string) string {
	name := plain(text)
	for _, word := range []string{"judetul ", "judet ", "jud. ", "jud ", "municipiul ", "mun. "} {
		name = strings.TrimPrefix(name, word)
	}
	if code, known := counties[name]; known {
		return "RO-" + code
	}
	if code := strings.ToUpper(strings.TrimPrefix(name, "ro-")); en16931.IsRomanianCounty("RO-" + code) {
		return "RO-" + code
	}
	return text
}

// sectorOf finds a sector of Bucharest in parts of an address; "": none names one.
func sectorOf(parts ...string) string {
	for _, part := range parts {
		_, rest, found := strings.Cut(plain(part), "sector")
		if !found {
			continue
		}
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "ul"), " .:")
		if rest != "" && rest[0] >= '1' && rest[0] <= '6' && (len(rest) == 1 || rest[1] < '0' || rest[1] > '9') {
			return "SECTOR" + rest[:1]
		}
	}
	return ""
}

// settle brings an address of Romania into the codes of CIUS-RO. A city that is
// Bucharest, or one of its sectors, needs no county beside it.
func settle(a *en16931.Address) {
	if a.Country != "RO" {
		return
	}
	a.Subdivision = countyOf(a.Subdivision)
	sector := sectorOf(a.City, a.Subdivision, a.Line2, a.Line3)
	if a.Subdivision == "" && (strings.HasPrefix(plain(a.City), "bucuresti") || plain(a.City) == "bucharest" || sectorOf(a.City) != "") {
		a.Subdivision = "RO-B"
	}
	if sectorOf(a.Subdivision) != "" {
		a.Subdivision = "RO-B"
	}
	if a.Subdivision == "RO-B" && sector != "" {
		a.City = sector
	}
}

package es

import (
	"maps"
	"slices"
	"strings"
	"time"

	"tributary/internal/country/taxid"
	"tributary/internal/country/territory"
	"tributary/internal/fault"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

const home = "ES"

const (
	nameMax = 120 // NombreRazon
	idMax   = 20  // IDOtro/ID
)

// Types of identification other than a Spanish NIF (list L7).
const (
	idVAT       = "02" // NIF-IVA
	idPassport  = "03"
	idOfficial  = "04" // official document of the country of residence
	idResidence = "05" // certificate of residence
	idOther     = "06" // other document
	idUncensed  = "07" // a NIF that the census does not have
)

// person is somebody as the authority wants them named: by NIF, or by another id.
type person struct {
	Name    string
	NIF     string
	Country string // of the other id; empty for NIF-IVA
	IDType  string
	ID      string
}

func (p person) write(w *xmltree.Writer) {
	w.Leaf("sf:NombreRazon", p.Name)
	if p.NIF != "" {
		w.Leaf("sf:NIF", p.NIF)
		return
	}
	w.Group("sf:IDOtro", "?sf:CodigoPais", p.Country, "sf:IDType", p.IDType, "sf:ID", p.ID)
}

// identify decides how a tax number of a country is told to the authority. The
// reason says why it cannot be told.
//
// A Spanish number is a NIF, also that of somebody who lives abroad. A business
// of another member state has a NIF-IVA, which the authority looks up; everybody
// else an official document of their country.
func identify(name, from, number string, business bool) (person, string) {
	from = strings.ToUpper(from)
	if from == "" {
		from = "ES"
	}
	if from != "ES" && spanishNumber(&transaction.Party{TaxNumber: number, Address: &transaction.Address{CountryCode: from}}) {
		from = "ES"
	}
	if from == "ES" {
		if nif := taxid.NIF(number); nif != "" {
			return person{Name: name, NIF: nif}, ""
		}
		return person{}, "is not a Spanish NIF: " + taxid.Check("ES", number).Reason
	}
	if from == "GB" && strings.HasPrefix(strings.ToUpper(strings.TrimSpace(number)), "XI") {
		from = "XI" // Northern Ireland
	}
	if inUnion(from) && business || from == "XI" {
		v := taxid.Check(from, number)
		if !v.Valid {
			return person{}, "is not a VAT number of " + from + ": " + v.Reason
		}
		return person{Name: name, IDType: idVAT, ID: vatPrefix(from) + v.Number}, ""
	}
	id := plain(number, idMax+1)
	if id == "" || len([]rune(id)) > idMax {
		return person{}, "must have 1 to 20 printable characters"
	}
	return person{Name: name, Country: placeOf(from), IDType: idOfficial, ID: id}, ""
}

// lawDay stands for every day that can be filed: no member has left the Union
// since the first one.
var lawDay = time.Date(2024, 10, 28, 12, 0, 0, 0, time.UTC)

// inUnion reports whether a country other than Spain is a member of the
// European Union.
func inUnion(code string) bool { return code != home && territory.InUnion(code, lawDay) }

func vatPrefix(code string) string {
	if code == "GR" {
		return "EL"
	}
	return code
}

// placeOf is the authority's name of a country: its list (CountryType2) counts
// some territories to their states and calls what it does not have QU.
func placeOf(code string) string {
	switch code {
	case "BL", "GF", "GP", "MF", "MQ", "RE":
		return "FR"
	case "AX":
		return "FI"
	case "SJ":
		return "NO"
	case "EH", "XK", transaction.ReferenceCode:
		return "QU"
	}
	return code
}

// homeOf is the country that a party's tax number belongs to: numbers of Monaco
// are French.
func homeOf(p *transaction.Party) string {
	code := territory.Code(taxid.CountryOf(home, p))
	if at := territory.Of(home, p, lawDay, true); at.Union && !territory.InUnion(code, lawDay) {
		return at.Country
	}
	return code
}

// partyID identifies a customer or an issuer; field is its path. Nil without
// faults: the party carries no number.
func partyID(p *transaction.Party, field string) (*person, []fault.Fault) {
	if p == nil || p.TaxNumber == "" {
		return nil, nil
	}
	who, reason := identifyParty(p)
	if reason != "" {
		return nil, []fault.Fault{fault.At(field+".tax_information.tax_number", fault.FieldNotValid, "%s", reason)}
	}
	return &who, nil
}

// identifyParty reads tax_information.regime: 03 to 07 say which document the
// number is of (list L7); everything else leaves it to identify.
func identifyParty(p *transaction.Party) (person, string) {
	name, from := plain(p.LegalName, nameMax), homeOf(p)
	switch kind := p.TaxRegime; kind {
	case idPassport, idOfficial, idResidence, idOther:
		id := plain(p.TaxNumber, idMax+1)
		switch {
		case id == "" || len([]rune(id)) > idMax:
			return person{}, "must have 1 to 20 printable characters"
		case from == "ES" && kind != idPassport:
			return person{}, "is a document of type " + kind + ", which exists for other countries than Spain only; a passport is 03"
		}
		return person{Name: name, Country: placeOf(from), IDType: kind, ID: id}, ""
	case idUncensed:
		nif := taxid.NIF(p.TaxNumber)
		if nif == "" || !natural(nif) {
			return person{}, "must be the NIF of a natural person: nobody else may be missing in the census (07)"
		}
		return person{Name: name, Country: "ES", IDType: idUncensed, ID: nif}, ""
	}
	return identify(name, from, p.TaxNumber, p.Type == transaction.Business)
}

// natural reports whether a NIF is that of a person: a DNI, an NIE, or K, L, M.
func natural(nif string) bool {
	return nif[0] >= '0' && nif[0] <= '9' || strings.ContainsRune("XYZKLM", rune(nif[0]))
}

func (p *person) same(q *person) bool {
	return p != nil && q != nil && p.NIF == q.NIF && p.IDType == q.IDType && p.ID == q.ID
}

func sortedKeys(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}

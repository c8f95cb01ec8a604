// Package es is Spain: VERI*FACTU, the chained records of invoices that the
// Agencia Estatal de Administración Tributaria (AEAT) receives as they are
// issued. docs/countries/es.md says what is filed and how.
//
// It owns Spain's rules, the records (RegistroAlta, RegistroAnulacion) with
// their huella, and the SOAP wire to AEAT. It refuses to own the chain's
// storage, retries and waiting, which the caller does by Limits and
// Receipt.Wait, the double that stands in for AEAT (authority/aeat), and the
// Basque TicketBAI. Law: a record's bytes and
// its place in the chain are fixed by Prepare, whatever becomes of it; what
// AEAT holds is recognised by its huella and by nothing else.
//
// What was chosen where AEAT's papers are silent is docs/decisions/0027. RefExterna
// is N/ or I/ (prepared as late) with the operation's id, so that a record itself
// says with which header it was prepared. A cancellation has a number of its own,
// because Filing.Number is what an authority knows a document by. Everybody without
// a NIF gets a plain F2 within the limit of article 4; a substitution states the
// original's amounts (ImporteRectificacion), a mended record (reason S) has no
// paper.
package es

import (
	_ "embed"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/sale"
)

// codesFile is what the codes of AEAT mean, in our own words.
//
//go:embed codes.txt
var codesFile string

// version is stored with every operation; bytes made by one version are sent unchanged by the next.
const version = "es-1"

// pack holds what all channels of a program share.
type pack struct {
	facts  country.Facts
	by     *sale.Rules
	keeper *identity.Keeper
}

// Pack is Spain.
func Pack() country.Pack {
	p := &pack{facts: facts(), by: &sale.Rules{Home: home, Money: "EUR", Zone: sale.Zone(timeZone)},
		keeper: identity.NewKeeper()}
	return country.Pack{
		Code:    home,
		Name:    "Spain",
		Version: version,
		Sources: []string{
			"https://www.boe.es/eli/es/rd/2023/12/05/1007/con",   // requirements of billing systems
			"https://www.boe.es/eli/es/o/2024/10/17/hac1177/con", // records, chain, transmission, QR
			"https://www.boe.es/eli/es/rd/2012/11/30/1619/con",   // invoicing: types, content, corrections
			"https://www.boe.es/eli/es/l/1992/12/28/37/con",      // IVA: rates, exemptions, correction of the tax
			"https://sede.agenciatributaria.gob.es/Sede/iva/sistemas-informaticos-facturacion-verifactu.html",
			"https://www.agenciatributaria.es/AEAT.desarrolladores/Desarrolladores/_menu_/Documentacion/Sistemas_Informaticos_de_Facturacion_y_Sistemas_VERI_FACTU/Sistemas_Informaticos_de_Facturacion_y_Sistemas_VERI_FACTU.html",
		},
		RetentionYears: 6, // Código de Comercio, art. 30: books and documents from the last entry on

		Facts:        p.facts,
		Checks:       p.checks(),
		Classify:     p.classify,
		Connect:      p.connect,
		CheckCompany: checkCompany,
		Imprint:      p.imprint,
		ZoneOf:       timeZoneOf,
		Example:      example(),
		Codes:        country.ReadCodes(codesFile),
	}
}

package mx

import (
	"bufio"
	"bytes"
	"compress/flate"
	_ "embed" // the catalogues below
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/transaction"

	"tributary/internal/country"
)

// productsFile holds the 52,514 keys of SAT's catalogue c_ClaveProdServ as
// differences between sorted numbers, deflated: 6 kB. unitsFile holds those of
// c_ClaveUnidad. Both are compared with the official catalogue by a test.
//
//go:embed products.bin
var productsFile []byte

//go:embed units.txt
var unitsFile string

// catalog is what SAT's catalogues say and a table in code would say badly.
type catalog struct {
	products []uint32 // sorted
	units    map[string]bool
	zones    map[string]*time.Location // by IANA name
	facts    country.Facts
}

// openCatalog reads the embedded files. They are part of the program: that
// they cannot be read is a defect of the build, found by any test.
func openCatalog() *catalog {
	products, err := readProducts(productsFile)
	if err != nil {
		panic(fmt.Sprintf("reading the embedded catalogue: %v", err))
	}
	c := &catalog{products: products, units: map[string]bool{}, zones: map[string]*time.Location{}, facts: facts()}
	for unit := range strings.FieldsSeq(unitsFile) {
		c.units[unit] = true
	}
	for _, name := range []string{zoneCentre, "America/Tijuana", "America/Mazatlan", "America/Hermosillo", "America/Cancun",
		"America/Chihuahua", "America/Ciudad_Juarez", "America/Matamoros"} {
		// Without the time zone database the supplier's own location serves.
		if zone, err := time.LoadLocation(name); err == nil {
			c.zones[name] = zone
		}
	}
	return c
}

func readProducts(deflated []byte) ([]uint32, error) {
	in := bufio.NewReader(flate.NewReader(bytes.NewReader(deflated)))
	keys := make([]uint32, 0, 53_000)
	for last := uint64(0); ; {
		step, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, err
		}
		last += step
		if last > 99_999_999 || step == 0 {
			return nil, fmt.Errorf("key %d after %d keys", last, len(keys))
		}
		keys = append(keys, uint32(last))
	}
}

// product reports whether SAT knows a product or service under a key.
func (c *catalog) product(key string) bool {
	if len(key) != 8 || strings.Trim(key, "0123456789") != "" {
		return false
	}
	number, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return false
	}
	_, found := slices.BinarySearch(c.products, uint32(number))
	return found
}

const zoneCentre = "America/Mexico_City"

// zone is the time zone of a postal code: the one in which Fecha is written
// (Anexo 20, Fecha: "hora local donde se expide"). Where one prefix has two
// zones the one that is earlier stands, because a Fecha in the future is
// refused and one an hour ago is not.
func (c *catalog) zone(postalCode string, otherwise *time.Location) *time.Location {
	name := zoneCentre
	if len(postalCode) == 5 {
		switch postalCode[:2] {
		case "21", "22":
			name = "America/Tijuana"
		case "23", "63", "80", "81", "82":
			name = "America/Mazatlan"
		case "83", "84", "85":
			name = "America/Hermosillo"
		case "77":
			name = "America/Cancun"
		case "31", "33":
			name = "America/Chihuahua"
		case "32":
			name = "America/Ciudad_Juarez"
		}
		switch postalCode[:3] {
		case "873", "880", "887": // Matamoros, Nuevo Laredo, Reynosa keep summer time with Texas
			name = "America/Matamoros"
		}
	}
	if zone := c.zones[name]; zone != nil {
		return zone
	}
	if otherwise != nil {
		return otherwise
	}
	return time.FixedZone("CST", -6*60*60)
}

// regimeMeaning is what a key of c_RegimenFiscal stands for, and for which
// persons: "F" natural, "M" legal, "FM" both. Unknown keys are "".
func regimeMeaning(key string) (meaning, persons string) {
	switch key {
	case "601":
		return "General de Ley Personas Morales", "M"
	case "603":
		return "Personas Morales con Fines no Lucrativos", "M"
	case "605":
		return "Sueldos y Salarios e Ingresos Asimilados a Salarios", "F"
	case "606":
		return "Arrendamiento", "F"
	case "607":
		return "Régimen de Enajenación o Adquisición de Bienes", "F"
	case "608":
		return "Demás ingresos", "F"
	case "610":
		return "Residentes en el Extranjero sin Establecimiento Permanente en México", "FM"
	case "611":
		return "Ingresos por Dividendos (socios y accionistas)", "F"
	case "612":
		return "Personas Físicas con Actividades Empresariales y Profesionales", "F"
	case "614":
		return "Ingresos por intereses", "F"
	case "615":
		return "Régimen de los ingresos por obtención de premios", "F"
	case "616":
		return "Sin obligaciones fiscales", "F"
	case "620":
		return "Sociedades Cooperativas de Producción que optan por diferir sus ingresos", "M"
	case "621":
		return "Incorporación Fiscal", "F"
	case "622":
		return "Actividades Agrícolas, Ganaderas, Silvícolas y Pesqueras", "M"
	case "623":
		return "Opcional para Grupos de Sociedades", "M"
	case "624":
		return "Coordinados", "M"
	case "625":
		return "Régimen de las Actividades Empresariales con ingresos a través de Plataformas Tecnológicas", "F"
	case "626":
		return "Régimen Simplificado de Confianza", "FM"
	}
	return "", ""
}

// regimes lists the keys of c_RegimenFiscal.
func regimes() []string {
	return strings.Fields("601 603 605 606 607 608 610 611 612 614 615 616 620 621 622 623 624 625 626")
}

// regimeFits reports whether a person with an RFC can be in a regime.
func regimeFits(rfc, regime string) bool {
	_, persons := regimeMeaning(regime)
	if len([]rune(rfc)) == 12 {
		return strings.Contains(persons, "M")
	}
	return strings.Contains(persons, "F")
}

// useRegimes are the receiver's regimes that c_UsoCFDI allows a use for, and
// whether legal persons may have it; unknown uses have none.
func useRegimes(use string) (regimes string, legal bool) {
	switch use {
	case "G01", "G03", "I01", "I02", "I03", "I04", "I05", "I06", "I07", "I08":
		return "601 603 606 612 620 621 622 623 624 625 626", true
	case "G02":
		return "601 603 606 612 616 620 621 622 623 624 625 626", true
	case "D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09", "D10":
		return "605 606 607 608 611 612 614 615 625", false
	case "S01":
		return "601 603 605 606 607 608 610 611 612 614 615 616 620 621 622 623 624 625 626", true
	}
	return "", false
}

// uses lists the keys of c_UsoCFDI that invoices and credit notes can have.
func uses() []string {
	return strings.Fields("G01 G02 G03 I01 I02 I03 I04 I05 I06 I07 I08 D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 S01")
}

func useFits(use, rfc, regime string) bool {
	allowed, legal := useRegimes(use)
	return strings.Contains(allowed, regime) && regime != "" && (legal || len([]rune(rfc)) == 13)
}

// paymentForm reports whether a key is one of c_FormaPago.
func paymentForm(key string) bool {
	return len(key) == 2 && strings.Contains(" 01 02 03 04 05 06 08 12 13 14 15 17 23 24 25 26 27 28 29 30 31 99 ", " "+key+" ")
}

// currency reports whether c_Moneda has a currency. It lacks those that ISO
// 4217 made after SAT's list.
func currency(code string) bool {
	switch code {
	case "BYN", "MRU", "SLE", "STN", "UYW", "VED", "XAD", "XCG", "ZWG":
		return false
	}
	_, known := transaction.CurrencyExponent(code)
	return known
}

// motives are the reasons of a cancellation, by SAT's catalogue of motives.
// The one that most cancellations have comes first.
func motives() []country.Meaning {
	return []country.Meaning{
		{Code: "02", Meaning: "Comprobante emitido con errores sin relación: issued with errors, nothing replaces it"},
		{Code: "03", Meaning: "No se llevó a cabo la operación: the sale did not take place"},
		{Code: "04", Meaning: "Operación nominativa relacionada en la factura global: the buyer asked for an invoice of a sale that is in a global one"},
		{Code: "01", Meaning: "Comprobante emitido con errores con relación: issued with errors and replaced; write 01:UUID with the UUID of the replacement"},
	}
}

// motivePattern is how a reason is written: a motive, and with 01 the UUID of
// the voucher that replaces the cancelled one.
const motivePattern = `^(02|03|04|01:[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})$`

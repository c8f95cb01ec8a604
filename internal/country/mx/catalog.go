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

	"tributary/internal/country"
	"tributary/internal/official/satwire"
	"tributary/internal/transaction"
)

// productsFile holds the 52,514 keys of SAT's catalogue c_ClaveProdServ as
// differences between sorted numbers, deflated: 6 kB. unitsFile holds those of
// c_ClaveUnidad. Both are compared with the official catalogue by a test.
//
//go:embed products.bin
var productsFile []byte

//go:embed units.txt
var unitsFile string

// codesFile is what the codes of SAT and of the providers mean, in our own words.
//
//go:embed codes.txt
var codesFile string

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
	for _, name := range satwire.Zones() {
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

// zone is the time zone of a postal code, or of central Mexico without one.
func (c *catalog) zone(postalCode string, otherwise *time.Location) *time.Location {
	if zone := c.zones[satwire.Zone(postalCode)]; zone != nil {
		return zone
	}
	if otherwise != nil {
		return otherwise
	}
	return time.FixedZone("CST", -6*60*60)
}

// regimeFits reports whether a person with an RFC can be in a regime.
func regimeFits(rfc, regime string) bool {
	_, persons := satwire.Regime(regime)
	if len([]rune(rfc)) == 12 {
		return strings.Contains(persons, "M")
	}
	return strings.Contains(persons, "F")
}

func useFits(use, rfc, regime string) bool {
	allowed, legal := satwire.UseRegimes(use)
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

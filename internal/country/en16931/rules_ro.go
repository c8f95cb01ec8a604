package en16931

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CIUSRO is Romania's CIUS-RO, in UBL. The identifier stays 1.0.1 in later
// editions of its rules.
func CIUSRO() Profile {
	return Profile{Code: "CIUS_RO", Romanian: true,
		Specification: specificationCore + "#compliant#urn:efactura.mfinante.ro:CIUS-RO:1.0.1"}
}

// RomanianCounties are the subdivisions of ISO 3166-2:RO without their prefix.
const RomanianCounties = "AB AG AR B BC BH BN BR BT BV BZ CJ CL CS CT CV DB DJ GJ GL GR HD HR IF IL IS MH MM MS NT OT PH SB SJ SM SV TL TM TR VL VN VS"

// IsRomanianCounty reports whether a code is one of ISO 3166-2:RO.
func IsRomanianCounty(code string) bool {
	county, ok := strings.CutPrefix(code, "RO-")
	return ok && county != "" && slices.Contains(strings.Fields(RomanianCounties), county)
}

// IsBucharestSector reports whether a city is one of the codes SECTOR-RO.
func IsBucharestSector(city string) bool {
	n, ok := strings.CutPrefix(city, "SECTOR")
	return ok && len(n) == 1 && n[0] >= '1' && n[0] <= '6'
}

// romanian are the rules of CIUS-RO 1.0.9.
func (n nationalRules) romanian() {
	d := n.c.d
	n.c.must("BR-RO-010", "BT-1", strings.ContainsAny(d.Number, "0123456789"), "must have at least one digit")
	types := []string{"380", "384", "389", "751"}
	if d.IsCreditNote() {
		types = []string{"381"}
	}
	n.c.must("BR-RO-020", "BT-3", slices.Contains(types, d.TypeCode), "is none of the document types of CIUS-RO: 380, 381, 384, 389, 751")
	if d.Currency != "RON" {
		n.c.need("BR-RO-030", "BT-111", d.TaxCurrency == "RON")
	}
	if d.TaxPointCode != "" {
		n.c.must("BR-RO-040", "BT-8", slices.Contains([]string{"3", "35", "432"}, d.TaxPointCode), notListed)
	}
	taxed := slices.ContainsFunc(d.Breakdown, func(t TaxSubtotal) bool { return t.Category != "O" })
	if taxed {
		n.c.need("BR-RO-065", "BT-31", d.Seller.VATID != "" || d.Seller.TaxID != "")
		n.c.need("BR-RO-120", "BT-47", d.Buyer.LegalID.ID != "" || d.Buyer.VATID != "")
	}
	n.romanianAddress(&d.Seller.Address, [3]string{"BT-35", "BT-37", "BT-39"}, [4]string{"BR-RO-081", "BR-RO-091", "BR-RO-110", "BR-RO-100"})
	n.romanianAddress(&d.Buyer.Address, [3]string{"BT-50", "BT-52", "BT-54"}, [4]string{"BR-RO-082", "BR-RO-092", "BR-RO-111", "BR-RO-101"})
	if to := &d.Delivery.Address; *to != (Address{}) {
		n.romanianAddress(to, [3]string{"BT-75", "BT-77", "BT-79"}, [4]string{"BR-RO-180", "BR-RO-201", "BR-RO-210", "BR-RO-200"})
		n.c.need("BR-RO-211", "BT-79", to.Subdivision != "")
	}
	n.c.must("BR-RO-A020", "BT-22", len(d.Notes) <= 20, "has more than 20 notes")
	n.c.must("BR-RO-A051", "BT-125", len(d.Documents) <= 50, "has more than 50 files")
	n.romanianLengths()
}

// romanianAddress has a street and a city, and in Romania a county; Bucharest's
// cities are its sectors.
func (n nationalRules) romanianAddress(a *Address, terms [3]string, rules [4]string) {
	n.c.need(rules[0], terms[0], strings.TrimSpace(a.Line1) != "")
	n.c.need(rules[1], terms[1], strings.TrimSpace(a.City) != "")
	if a.Country != "RO" {
		return
	}
	n.c.must(rules[2], terms[2], IsRomanianCounty(a.Subdivision), "must be a county of Romania, by its name or its code of ISO 3166-2:RO")
	n.c.must(rules[3], terms[1], a.Subdivision != "RO-B" || IsBucharestSector(a.City), "must be a sector of Bucharest, SECTOR1 to SECTOR6")
}

// romanianLengths are the rules BR-RO-L….
func (n nationalRules) romanianLengths() {
	d := n.c.d
	at := func(rule, term string, max int, texts ...string) {
		for _, text := range texts {
			n.c.must(rule, term, utf8.RuneCountInString(strings.Join(strings.Fields(text), " ")) <= max, "has more than "+strconv.Itoa(max)+" characters")
		}
	}
	at("BR-RO-L155", "BT-1", 200, d.Number)
	at("BR-RO-L301", "BT-20", 300, d.PaymentTerms)
	at("BR-RO-L302", "BT-22", 300, texts(d.Notes, func(n Note) string { return n.Text })...)
	at("BR-RO-L140", "BT-83", 140, d.Payment.Remittance)
	at("BR-RO-L1019", "BT-120", 100, texts(d.Breakdown, func(t TaxSubtotal) string { return t.Reason })...)
	at("BR-RO-L151", "BT-35", 150, d.Seller.Address.Line1)
	at("BR-RO-L1002", "BT-36", 100, d.Seller.Address.Line2, d.Seller.Address.Line3)
	at("BR-RO-L0501", "BT-37", 50, d.Seller.Address.City)
	at("BR-RO-L0201", "BT-38", 20, d.Seller.Address.PostCode)
	at("BR-RO-L201", "BT-27", 200, d.Seller.Name)
	at("BR-RO-L1004", "BT-41", 100, d.Seller.Contact.Name)
	at("BR-RO-L1005", "BT-42", 100, d.Seller.Contact.Phone)
	at("BR-RO-L1006", "BT-43", 100, d.Seller.Contact.Email)
	at("BR-RO-L152", "BT-50", 150, d.Buyer.Address.Line1)
	at("BR-RO-L1007", "BT-51", 100, d.Buyer.Address.Line2, d.Buyer.Address.Line3)
	at("BR-RO-L0502", "BT-52", 50, d.Buyer.Address.City)
	at("BR-RO-L0202", "BT-53", 20, d.Buyer.Address.PostCode)
	at("BR-RO-L203", "BT-44", 200, d.Buyer.Name)
	at("BR-RO-L204", "BT-45", 200, d.Buyer.TradeName)
	at("BR-RO-L1010", "BT-57", 100, d.Buyer.Contact.Phone)
	at("BR-RO-L1011", "BT-58", 100, d.Buyer.Contact.Email)
	at("BR-RO-L154", "BT-75", 150, d.Delivery.Address.Line1)
	at("BR-RO-L1014", "BT-76", 100, d.Delivery.Address.Line2, d.Delivery.Address.Line3)
	at("BR-RO-L0504", "BT-77", 50, d.Delivery.Address.City)
	at("BR-RO-L207", "BT-70", 200, d.Delivery.Name)
	for i := range d.Lines {
		n.c.index = i
		item := &d.Lines[i].Item
		at("BR-RO-L1024", "BT-153", 100, item.Name)
		at("BR-RO-L212", "BT-154", 200, item.Description)
		at("BR-RO-L0505", "BT-160", 50, texts(item.Attributes, func(a Attribute) string { return a.Name })...)
		at("BR-RO-L1025", "BT-161", 100, texts(item.Attributes, func(a Attribute) string { return a.Value })...)
	}
	n.c.index = -1
}

func texts[T any](list []T, text func(T) string) (all []string) {
	for _, v := range list {
		all = append(all, text(v))
	}
	return all
}

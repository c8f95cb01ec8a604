package anaf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"tributary/internal/country/taxid"
	"tributary/internal/xmltree"
)

const (
	spaceInvoice = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	spaceCredit  = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"
	ciusRO       = "urn:cen.eu:en16931:2017#compliant#urn:efactura.mfinante.ro:CIUS-RO:1.0.1"
)

// read reads a document and what is wrong with it. standard is what the call says
// it is; "": whatever it is.
func read(data []byte, cif, standard string) arrival {
	sum := sha256.Sum256(data)
	x := arrival{cif: cif, seller: cif, hash: hex.EncodeToString(sum[:]), data: data}
	doc, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(data)
	if err != nil {
		x.flaws = append(x.flaws, "Fisierul transmis nu este valid. "+err.Error())
		return x
	}
	root := doc.Root
	if standard == standardMessage || standard == "" && root.Is(spaceMessage, "header") {
		x.message(root)
		return x
	}
	credit := root.Is(spaceCredit, "CreditNote")
	if !credit && !root.Is(spaceInvoice, "Invoice") || standard == "UBL" && credit || standard == "CN" && !credit {
		x.flaws = append(x.flaws, "Structura fisierului nu corespunde cu standard="+standard+" (schema)")
		return x
	}
	x.number = root.Value("ID")
	x.judge(root, credit)
	return x
}

// judge holds a document against the rules of CIUS-RO that come first.
func (x *arrival) judge(root *xmltree.Element, credit bool) {
	rule := func(ok bool, name, text string) {
		if !ok {
			x.flaws = append(x.flaws, fmt.Sprintf("E: validari globale  eroare regula: %s %s", name, text))
		}
	}
	seller, buyer := root.At("AccountingSupplierParty", "Party"), root.At("AccountingCustomerParty", "Party")
	rule(root.Value("CustomizationID") == ciusRO, "BR-RO-001", "identificatorul specificatiei")
	rule(strings.ContainsAny(x.number, "0123456789"), "BR-RO-010", "numarul facturii")
	kind, kinds := root.Value("InvoiceTypeCode"), []string{"380", "384", "389", "751"}
	if credit {
		kind, kinds = root.Value("CreditNoteTypeCode"), []string{"381"}
	}
	rule(slices.Contains(kinds, kind), "BR-RO-020", "codul tipului facturii")
	if currency := root.Value("DocumentCurrencyCode"); currency != "RON" {
		rule(root.Value("TaxCurrencyCode") == "RON", "BR-RO-030", "moneda de contabilizare a TVA")
	}
	for _, p := range []struct {
		party    *xmltree.Element
		county   string
		district string
	}{{seller, "BR-RO-110", "BR-RO-100"}, {buyer, "BR-RO-111", "BR-RO-101"}} {
		at := p.party.At("PostalAddress")
		rule(at.Value("StreetName") != "" && at.Value("CityName") != "", "BR-RO-080", "adresa")
		if at.Value("Country", "IdentificationCode") != "RO" {
			continue
		}
		county, city := at.Value("CountrySubentity"), at.Value("CityName")
		rule(slices.Contains(strings.Fields(counties), strings.TrimPrefix(county, "RO-")) && strings.HasPrefix(county, "RO-"), p.county, "subdiviziunea")
		rule(county != "RO-B" || len(city) == 7 && strings.HasPrefix(city, "SECTOR") && city[6] >= '1' && city[6] <= '6', p.district, "localitatea")
	}
	for _, note := range root.All("Note") {
		rule(len([]rune(note.Text)) <= 300, "BR-RO-L302", "comentariul")
	}
	rule(len(root.All("Note")) <= 20, "BR-RO-A020", "comentariile")
	x.numbers(seller, buyer, rule)
}

const counties = "AB AG AR B BC BH BN BR BT BV BZ CJ CL CS CT CV DB DJ GJ GL GR HD HR IF IL IS MH MM MS NT OT PH SB SJ SM SV TL TM TR VL VN VS"

// numbers reads who sells, and sees that the buyer has a number.
func (x *arrival) numbers(seller, buyer *xmltree.Element, rule func(bool, string, string)) {
	own := strings.TrimPrefix(seller.Value("PartyTaxScheme", "CompanyID"), "RO")
	if own == "" {
		own = strings.TrimPrefix(seller.Value("PartyLegalEntity", "CompanyID"), "RO")
	}
	rule(taxid.Check("RO", own).Valid, "CIF", "al vanzatorului nu este valid: "+own)
	if own != "" {
		x.seller = own
	}
	rule(x.cif == "" || x.cif == own, "CIF", "parametrul cif nu este al vanzatorului")
	legal, vat := buyer.Value("PartyLegalEntity", "CompanyID"), buyer.Value("PartyTaxScheme", "CompanyID")
	rule(legal != "" || vat != "", "BR-RO-120", "cumparatorul nu are identificator")
	x.buyer = strings.TrimPrefix(cmp.Or(vat, legal), "RO")
	if number, romanian := strings.CutPrefix(vat, "RO"); romanian {
		rule(taxid.Check("RO", number).Valid, "CIF", "al cumparatorului nu este valid: "+number)
	}
}

// judgeCall holds the parameters of the call against the document.
func (x *arrival) judgeCall(abroad, own, consumer bool) {
	doc, err := xmltree.Limits{Bytes: uploadBytesMax}.Read(x.data)
	if err != nil {
		return
	}
	wrong := func(text string) { x.flaws = append(x.flaws, "E: "+text) }
	buyer := doc.Root.At("AccountingCustomerParty", "Party")
	if home := buyer.Value("PostalAddress", "Country", "IdentificationCode") == "RO"; home == abroad {
		wrong("parametrul extern nu corespunde cumparatorului")
	}
	if self := doc.Root.Value("InvoiceTypeCode") == "389"; self != own {
		wrong("parametrul autofactura nu corespunde tipului facturii")
	}
	if vat := buyer.Value("PartyTaxScheme", "CompanyID"); consumer && vat != "" {
		wrong("uploadb2c: cumparatorul este persoana impozabila, CIF " + vat)
	}
}

package it_test

import (
	"fmt"
	"strings"
	"testing"

	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Places of member states outside of the VAT territory take exports; their
// neighbours do not.
func TestGoodsToPlacesOutsideOfTheVATTerritoryAreExported(t *testing.T) {
	for place, outside := range map[string]bool{
		"IT 23041": true, "IT 22061": true, "IT 23030": false, "ES 35001": true, "ES 38001": true, "ES 51001": true,
		"ES 52001": true, "ES 28001": false,
		"FR 97400": true, "FR 75001": false, "DE 27498": true, "DE 78266": true, "DE 27499": false, "FI 22100": true,
		"FI 00100": false, "MC 98000": false, "US 23041": true,
	} {
		code, postal, _ := strings.Cut(place, " ")
		buyer := business()
		if code != "IT" {
			buyer = abroad(code, "", transaction.Business)
		}
		if code == "MC" {
			buyer.TaxNumber = "FR61954506077"
		}
		buyer.Address.PostalCode = postal
		got := found(draft("1", buyer, goods(free(transaction.TaxExport, ""))))
		if refused := len(got) > 0; refused == outside {
			t.Errorf("%s: %v", place, got)
		}
	}
	monaco := abroad("MC", "FR61954506077", transaction.Business)
	if got := found(draft("1", monaco, goods(free(transaction.TaxIntraEU, "")))); len(got) > 0 {
		t.Errorf("Monaco is France: %v", got)
	}
}

// A contribution may be a cent above its rate, which rounding takes, and no more.
func TestAContributionIsNoMoreThanItsRate(t *testing.T) {
	for price, right := range map[int64]bool{399: true, 400: true, 401: true, 402: false} {
		got := found(professional("1", work(taxed), contribution("TC04@4", price, taxed)))
		if (len(got) == 0) != right {
			t.Errorf("%d: %v", price, got)
		}
	}
	// What it is a percentage of stands there only where it is all that is billed.
	ch := offline(t)
	var reports [][]byte
	for price, base := range map[int64]bool{350: false, 399: true, 401: true} {
		f, err := ch.Prepare(professional("1", work(taxed), contribution("TC04@4", price, taxed)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(f.Report), "<ImponibileCassa>100.00<"); got != base {
			t.Errorf("%d: %s", price, f.Report)
		}
		reports = append(reports, f.Report)
	}
	alone := found(professional("1", contribution("TC04@4", 0, taxed)))
	if !strings.Contains(fmt.Sprint(alone), "contributions to funds alone") {
		t.Errorf("a contribution alone: %v", alone)
	}
	schema(t, reports)
}

// A transport document is of some lines, or of all; its number has a limit.
func TestTransportDocumentsNameTheirLines(t *testing.T) {
	by := func(i transaction.Item, code string) transaction.Item {
		i.Classifications = []transaction.Classification{{Scheme: "ddt", Code: code}}
		return i
	}
	f, err := offline(t).Prepare(draft("1", business(), by(goods(taxed), "A@2025-02-01"),
		contribution("TC04@4", 100, taxed), goods(taxed), by(goods(taxed), "A@2025-02-01"), by(goods(taxed), "B@2025-02-02")))
	if err != nil {
		t.Fatal(err)
	}
	schema(t, [][]byte{f.Report})
	for _, want := range []string{
		"<NumeroDDT>A</NumeroDDT><DataDDT>2025-02-01</DataDDT><RiferimentoNumeroLinea>1</RiferimentoNumeroLinea><RiferimentoNumeroLinea>3<", "<NumeroDDT>B</NumeroDDT><DataDDT>2025-02-02</DataDDT><RiferimentoNumeroLinea>4<"} {
		if !strings.Contains(string(f.Report), want) {
			t.Errorf("%s is not in %s", want, f.Report)
		}
	}
	for code, right := range map[string]bool{strings.Repeat("1", 20) + "@2025-02-01": true,
		strings.Repeat("1", 21) + "@2025-02-01": false, "@2025-02-01": false, "È@2025-02-01": false, "1@2025-02-30": false} {
		if got := found(draft("1", business(), by(goods(taxed), code))); (len(got) == 0) != right {
			t.Errorf("%s: %v", code, got)
		}
	}
}

// What the company's regime decides is found when the document is made, and not
// asked of purchases, whose tax every company owes.
func TestAFlatRateBusinessOwesTheTaxOfWhatItBuysAbroad(t *testing.T) {
	d := reason(flat("1", german(), work(taxed)), "TD17")
	if _, err := offline(t).Prepare(d); err != nil {
		t.Error(err)
	}
	d = company(flat("1", business(), work(taxed)), "fiscal_regime", "RF02")
	if got := found(d); len(got) > 0 {
		t.Errorf("at submit nobody knows the regime: %v", got)
	}
	if _, err := offline(t).Prepare(d); fault.KindOf(err) != fault.Invalid {
		t.Errorf("RF02: %v", err)
	}
}

// A person's code may begin with the letters of a member state; it is no VAT
// number of that state. A number of another state is one where it is valid there.
func TestACodeOfAPersonIsNoForeignNumber(t *testing.T) {
	for _, c := range []struct{ number, address, want string }{
		{"FRRGNN85A41H501W", "IT", "<CodiceFiscale>FRRGNN85A41H501W</CodiceFiscale>"},
		{"PLMRCC80A01F205V", "IT", "<CodiceFiscale>PLMRCC80A01F205V</CodiceFiscale>"},
		{"MTTLCU90B02L219V", "IT", "<CodiceFiscale>MTTLCU90B02L219V</CodiceFiscale>"},
		{"LVRNNA75C43F839W", "IT", "<CodiceFiscale>LVRNNA75C43F839W</CodiceFiscale>"},
		{"PTRFNC60D04D612I", "FR", "<CodiceFiscale>PTRFNC60D04D612I</CodiceFiscale>"},
		{"FR61954506077", "IT", "<IdPaese>FR</IdPaese><IdCodice>61954506077</IdCodice>"},
		{"DE136695976", "DE", "<IdPaese>DE</IdPaese><IdCodice>136695976</IdCodice>"},
		{"IT12345670017", "IT", "<IdPaese>IT</IdPaese><IdCodice>12345670017</IdCodice>"},
	} {
		buyer := abroad(c.address, c.number, transaction.Individual)
		f, err := offline(t).Prepare(draft("CF-1", buyer, item("Merce", "1", 10000, vat("22", transaction.Included))))
		if err != nil {
			t.Errorf("%s: %v", c.number, err)
			continue
		}
		_, filed, _ := strings.Cut(string(f.Report), "<CessionarioCommittente>")
		if got, _, _ := strings.Cut(filed, "</DatiAnagrafici>"); !strings.Contains(got, c.want) ||
			strings.Contains(got, "CodiceFiscale") != strings.Contains(c.want, "CodiceFiscale") ||
			strings.Contains(got, "IdPaese") != strings.Contains(c.want, "IdPaese") {
			t.Errorf("%s is filed as %s", c.number, got)
		}
	}
	for _, number := range []string{"FR12345678901", "DE136695977", "PLMRCC80A01F205X"} {
		buyer := person()
		buyer.TaxNumber = number
		if list := found(draft("CF-2", buyer, item("Merce", "1", 10000, vat("22", transaction.Included)))); len(list) != 1 ||
			list[0].Field != "customer.tax_information.tax_number" {
			t.Errorf("%s: %+v", number, list)
		}
	}
}

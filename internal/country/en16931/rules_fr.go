package en16931

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// France is the invoice between French businesses, plain EN 16931 by the French
// rules (AFNOR XP Z12-012), in UBL or in CII.
func France(cii bool) Profile {
	p := Profile{Code: "UBL", Specification: specificationCore, French: true, CII: cii}
	if cii {
		p.Code = "CII"
	}
	return p
}

// FrenchRates are the percentages that a French invoice may have (BR-FR-16).
const FrenchRates = "0 0.9 1.05 1.75 2.1 5.5 7 8.5 9.2 9.6 10 13 19.6 20 20.6"

// Codes of BR-FR-04, of the notes that everybody needs, and of documents that the buyer issues.
const (
	frenchTypes      = "380 389 393 501 386 500 384 471 472 473 261 262 381 396 502 503"
	frenchNotes      = "PMT PMD AAB"
	frenchFrames     = "B1 S1 M1 B2 S2 M2 S3 B4 S4 M4 S5 S6 B7 S7"
	frenchTreatments = "B2B B2BINT B2C B2CINT OUTOFSCOPE ARCHIVEONLY"
	frenchNumberMax  = 35
)

func oneOf(list, code string) bool { return code != "" && slices.Contains(strings.Fields(list), code) }

// Treatment is what the note BAR says that the platform does with the document.
func (d *Invoice) Treatment() string {
	for _, n := range d.Notes {
		if n.Subject == "BAR" {
			return n.Text
		}
	}
	return ""
}

// french are the rules BR-FR 1.4.0.03 of flow 2 that can be broken here.
func (c *checker) french() {
	d := c.d
	c.frenchNumber("BT-1", d.Number)
	for _, p := range d.Preceding {
		c.frenchNumber("BT-25", p.Number)
	}
	for _, at := range []struct {
		term string
		day  Date
	}{{"BT-2", d.IssueDate}, {"BT-9", d.DueDate}, {"BT-72", d.Delivery.Date}} {
		c.must("BR-FR-03", at.term, at.day == "" || strings.HasPrefix(string(at.day), "20"), "must be in a year from 2000 to 2099")
	}
	c.must("BR-FR-04", "BT-3", oneOf(frenchTypes, d.TypeCode), "is none of the types of documents in France")
	for _, subject := range strings.Fields(frenchNotes) {
		n := 0
		for i := range d.Notes {
			if d.Notes[i].Subject == subject {
				n++
			}
		}
		c.must("BR-FR-05", "BT-22", n == 1, "must have the text "+subject+" once")
	}
	c.must("BR-FR-08", "BT-23", oneOf(frenchFrames, d.Process), "is no processing frame")
	c.frenchParties()
	c.frenchReferences()
	c.frenchAmounts()
}

func (c *checker) frenchNumber(term, number string) {
	c.must("BR-FR-01", term, utf8.RuneCountInString(number) <= frenchNumberMax, "has more than 35 characters")
	c.must("BR-FR-02", term, number != "" && strings.Trim(number, letters+"0123456789+-_/") == "",
		"may have letters without accents, digits and + - _ / alone")
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func (c *checker) frenchParties() {
	d := c.d
	siren := func(id Identifier) bool { return id.Scheme == "0002" && len(id.ID) == 9 && digits(id.ID) == id.ID }
	c.must("BR-FR-10", "BT-30", siren(d.Seller.LegalID), "must be the SIREN of the seller, nine digits")
	treatment := d.Treatment()
	c.must("BR-FR-20", "BT-22", treatment == "" || oneOf(frenchTreatments, treatment), "has no treatment that the platform knows")
	own := treatment == "B2B"
	if own && d.Buyer.LegalID.ID == "" {
		c.need("BR-FR-11", "BT-47", false)
		return // the address is made of it
	}
	c.must("BR-FR-11", "BT-47", !own || siren(d.Buyer.LegalID), "must be the SIREN (9 digits) or a SIRET (14) of the buyer, with a right check digit")
	if own && !siren(d.Buyer.LegalID) {
		return
	}
	c.need("BR-FR-12", "BT-49", d.Buyer.Electronic.ID != "")
	c.need("BR-FR-13", "BT-34", d.Seller.Electronic.ID != "")
	receiver, term, rule := &d.Buyer, "BT-49", "BR-FR-21"
	if oneOf("389 501 500 471 473 261 502", d.TypeCode) {
		receiver, term, rule = &d.Seller, "BT-34", "BR-FR-22"
	}
	c.must(rule, term, !own || receiver.Electronic.Scheme == "0225" && strings.HasPrefix(receiver.Electronic.ID, receiver.LegalID.ID),
		"must be an address of scheme 0225 that begins with the SIREN")
	for _, at := range []struct {
		term string
		p    *Party
	}{{"BT-29", &d.Seller}, {"BT-46", &d.Buyer}} {
		seen := map[string]bool{}
		for _, id := range at.p.IDs {
			c.must("BR-FR-09", at.term, id.Scheme != "0009" || len(id.ID) == 14 && digits(id.ID) == id.ID && strings.HasPrefix(id.ID, at.p.LegalID.ID),
				"must be a SIRET of 14 digits that begins with the SIREN")
			c.must("BR-FR-CO-10", at.term, id.Scheme != "" && !seen[id.Scheme], "must have a scheme, and each scheme once")
			seen[id.Scheme] = true
		}
	}
	for _, at := range []struct {
		term string
		id   Identifier
	}{{"BT-34", d.Seller.Electronic}, {"BT-49", d.Buyer.Electronic}} {
		c.must("BR-FR-23", at.term, at.id.Scheme != "0225" || addressChars(at.id.ID), "may have letters, digits and - _ . alone, at most 125")
	}
}

func (c *checker) frenchReferences() {
	d := c.d
	dated := 0
	for _, p := range d.Preceding {
		if p.Number != "" && p.Date != "" {
			dated++
		}
	}
	c.must("BR-FR-CO-04", "BT-25", !oneOf("384 471 472 473", d.TypeCode) || dated == 1, "must name one earlier invoice with its day")
	c.must("BR-FR-CO-05", "BT-25", !oneOf("261 381 396 502 503", d.TypeCode) || dated > 0, "must name an earlier invoice with its day")
	advance, paid := oneOf("386 500 503", d.TypeCode), oneOf("B2 S2 M2", d.Process)
	c.must("BR-FR-CO-07", "BT-9", d.DueDate == "" || advance || paid || d.DueDate >= d.IssueDate, "is before the day of the invoice")
	c.must("BR-FR-CO-08", "BT-23", !advance || !oneOf("B4 S4 M4", d.Process), "does not fit an advance")
	if paid {
		c.must("BR-FR-CO-09", "BT-23", equalValues(d.Totals.Paid, d.Totals.Gross) && d.Totals.Due.Sign() == 0 && d.DueDate != "",
			"says that all is paid, and the amounts do not")
	}
	if d.Currency != "EUR" {
		c.need("BR-FR-CO-12", "BT-111", d.TaxCurrency == "EUR" && d.Totals.TaxAccounting.Given())
	}
}

func (c *checker) frenchAmounts() {
	d := c.d
	for i := range d.Breakdown {
		row := &d.Breakdown[i]
		c.index = i
		c.must("BR-FR-15", "BT-118", !oneOf("L M", row.Category), "is a category that France does not have")
		c.must("BR-FR-16", "BT-119", frenchRate(row.Rate), "is no rate of France")
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		c.index = i
		c.must("BR-FR-15", "BT-151", !oneOf("L M", l.Category), "is a category that France does not have")
		c.must("BR-FR-16", "BT-152", frenchRate(l.Rate), "is no rate of France: "+FrenchRates)
		c.must("BR-FR-DEC-02", "BT-129", l.Quantity.Trim(0).Decimals() <= 4, "may have at most 4 decimals")
		c.must("BR-FR-DEC-02", "BT-149", l.Price.BaseQuantity.Trim(0).Decimals() <= 4, "may have at most 4 decimals")
		c.must("BR-FR-DEC-03", "BT-146", l.Price.Net.Trim(0).Decimals() <= 6, "may have at most 6 decimals")
	}
	c.index = -1
}

func frenchRate(d Decimal) bool { return !d.Given() || oneOf(FrenchRates, d.Trim(0).String()) }

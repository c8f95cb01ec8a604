package sdi

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"tributary/internal/official"
	"tributary/internal/official/sdiwire"
	"tributary/internal/xmltree"
)

// flaw is one entry of a ListaErrori.
type flaw struct{ Code, Text string }

// flawf is a flaw with what the list of checks says of its code, and a place.
func flawf(code, format string, args ...any) flaw {
	text := meaningOf(code)
	if place := fmt.Sprintf(format, args...); place != "" {
		text += ": " + place
	}
	return flaw{code, text}
}

// invoice is a file, read. It has several bodies when it is a lotto.
type invoice struct {
	root   *xmltree.Element
	head   *xmltree.Element
	format string
	bodies []body

	seller, buyer party
}

// party is who sells or buys, as far as the checks ask.
type party struct{ country, number, code string }

// same reports whether two parties are one by their numbers, and whether that is known.
func (p party) same(o party) (same, known bool) {
	switch {
	case o.number != "":
		return p.country == o.country && p.number == o.number, true
	case o.code != "" && (o.code == p.code || o.code == p.number):
		return true, true
	}
	return false, false // the tax register knows it
}

// body is one invoice of a file.
type body struct {
	e      *xmltree.Element
	head   *xmltree.Element // DatiGeneraliDocumento
	kind   string
	number string
	date   string
	lines  []*xmltree.Element
	funds  []*xmltree.Element
	sums   []*xmltree.Element
}

// read reads a file; the flaws are of its form, and end the examination.
func read(file []byte) (*invoice, []flaw) {
	text := strings.TrimSpace(strings.TrimPrefix(string(file), "\ufeff"))
	if !strings.HasPrefix(text, "<") {
		return nil, []flaw{flawf(sdiwire.FileDamaged, "il file non contiene un documento XML")}
	}
	doc, err := xmltree.Limits{Bytes: sdiwire.FileBytesMax, Instructions: true}.Read(file)
	if err != nil {
		return nil, []flaw{flawf(sdiwire.FormatWrong, "%v", err)}
	}
	standard := official.FatturaPA
	if doc.Root.Space == sdiwire.SpaceSimplified {
		standard = official.FatturaSemplificata
	}
	flaws := standard.Schema().Check(doc.Root, sdiwire.FormatErrorsMax+1)
	if len(flaws) > sdiwire.FormatErrorsMax {
		return nil, []flaw{flawf(sdiwire.FormatHopeless, "")}
	}
	var found []flaw
	for i := range flaws {
		found = append(found, flawf(sdiwire.FormatWrong, "%v", flaws[i].Error()))
	}
	if len(found) > 0 {
		return nil, found
	}
	return open(doc.Root), nil
}

func open(root *xmltree.Element) *invoice {
	head := root.At("FatturaElettronicaHeader")
	in := &invoice{root: root, head: head, format: head.Value("DatiTrasmissione", "FormatoTrasmissione")}
	in.seller, in.buyer = partyOf(head.At("CedentePrestatore")), partyOf(head.At("CessionarioCommittente"))
	for _, e := range root.All("FatturaElettronicaBody") {
		general := e.At("DatiGenerali", "DatiGeneraliDocumento")
		goods := e.At("DatiBeniServizi")
		b := body{e: e, head: general, kind: general.Value("TipoDocumento"), number: general.Value("Numero"),
			date:  general.Value("Data"),
			lines: goods.All("DettaglioLinee"), funds: general.All("DatiCassaPrevidenziale"), sums: goods.All("DatiRiepilogo")}
		if in.simplified() {
			b.lines = e.All("DatiBeniServizi")
		}
		in.bodies = append(in.bodies, b)
	}
	return in
}

func (in *invoice) simplified() bool { return in.root.Space == sdiwire.SpaceSimplified }

// partyOf reads a party of either form of invoice: the simplified one has no DatiAnagrafici.
func partyOf(e *xmltree.Element) party {
	who := e.At("DatiAnagrafici")
	if who == nil {
		who = e
	}
	if ids := e.At("IdentificativiFiscali"); ids != nil {
		who = ids
	}
	vat := who.At("IdFiscaleIVA")
	return party{country: vat.Value("IdPaese"), number: vat.Value("IdCodice"), code: who.Value("CodiceFiscale")}
}

// issuer is whose numbering an invoice belongs to: the seller's, or the buyer's
// where the buyer has issued it.
func (in *invoice) issuer(b body) string {
	own := in.seller
	if in.head.Value("SoggettoEmittente") == "CC" || slices.Contains(byBuyer(), b.kind) {
		own = in.buyer
	}
	if own.number == "" {
		return own.code
	}
	return own.country + own.number
}

// byBuyer are the types that the buyer issues, and numbers.
func byBuyer() []string {
	return []string{"TD16", "TD17", "TD18", "TD19", "TD20", "TD22", "TD23", "TD28", "TD29"}
}

// examine applies the list of checks to a file that has its form, as far as it
// needs no register; received is when SdI got it.
func (in *invoice) examine(received time.Time) []flaw {
	found := append(in.transmission(), in.parties()...)
	today := received.In(rome()).Format(time.DateOnly)
	for i, b := range in.bodies {
		var own []flaw
		if in.simplified() {
			own = in.simple(b)
		} else {
			own = slices.Concat(in.kinds(b), b.natures(in.format), b.withheld(), b.summaries(), b.arithmetic())
		}
		own = append(own, in.dates(b, today)...)
		for _, f := range own {
			if len(in.bodies) > 1 {
				f.Text += fmt.Sprintf(" (fattura %d del lotto)", i+1)
			}
			found = append(found, f)
		}
	}
	return append(found, in.twice()...)
}

// dates are the checks of number and date.
func (in *invoice) dates(b body, today string) (found []flaw) {
	if b.date[:10] > today {
		found = append(found, flawf(sdiwire.DateAhead, "%s", b.date))
	}
	if !strings.ContainsAny(b.number, "0123456789") {
		found = append(found, flawf(sdiwire.NumberWithoutDigit, "%s", b.number))
	}
	return found
}

// twice finds invoices of one file that are duplicates of each other.
func (in *invoice) twice() (found []flaw) {
	for i, a := range in.bodies {
		for _, b := range in.bodies[:i] {
			if a.entry().collides(b.entry()) || b.entry().collides(a.entry()) {
				found = append(found, flawf(sdiwire.DuplicateInFile, "%s", a.number))
			}
		}
	}
	return found
}

// entry is what is remembered of an invoice to find duplicates of it.
type entry struct {
	Number string `json:"number"`
	Date   string `json:"date"`
	Credit bool   `json:"credit,omitempty"`
	Art73  bool   `json:"art73,omitempty"`
}

func (b body) entry() entry {
	return entry{Number: b.number, Date: b.date[:10], Credit: b.kind == "TD04" || b.kind == "TD08",
		Art73: b.head.Value("Art73") == "SI"}
}

// collides is the rule of 00404 and 00409: one number in one year, of an invoice
// by art. 73 on one day; credit notes count apart.
func (e entry) collides(with entry) bool {
	period := 4
	if e.Art73 {
		period = 10
	}
	return e.Number == with.Number && e.Credit == with.Credit && e.Date[:period] == with.Date[:period]
}

// total is the sum of a member over elements.
func total(all []*xmltree.Element, name string) *big.Rat {
	sum := new(big.Rat)
	for _, e := range all {
		sum.Add(sum, decimal(e.Value(name)))
	}
	return sum
}

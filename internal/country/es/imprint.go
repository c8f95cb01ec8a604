package es

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// imprint is what Spanish law wants on an invoice: the tax QR code under its
// fixed title with the fixed phrase below (Orden HAC/1177/2024, article 20;
// AEAT, code QR 0.4.7, section 3), and the words of Real Decreto 1619/2012,
// articles 6.1 and 15.5. Those words are law in Spanish whatever the
// document's language; only the title follows it.
func (p *pack) imprint(in country.Issue) country.Imprint {
	var out country.Imprint
	if in.QRCode != "" {
		out.Codes = []country.Code{{
			Text: in.QRCode, Title: "QR tributario:", Caption: "Factura verificable en la sede electrónica de la AEAT (VERI*FACTU)",
			Leading: true, // code QR 0.4.7, section 3: top left or centre, words not smaller than the other data
		}}
	}
	if in.AuthorityID1 != "" {
		out.Identifiers = append(out.Identifiers, country.Identifier{Label: "CSV", Value: in.AuthorityID1})
	}
	if in.AuthorityID2 != "" {
		out.Identifiers = append(out.Identifiers, country.Identifier{Label: "Huella", Value: in.AuthorityID2})
	}
	if in.Transaction == nil {
		return out
	}
	filed := filedRecord(in)
	out.Negated = in.Transaction.Kind == transaction.Credit // see correct
	out.Unsaid = []string{schemeMargin}
	for i := range in.Transaction.Items {
		if itemOnMargin(in.Transaction.Items[i]) {
			out.Untaxed = append(out.Untaxed, i)
		}
	}
	if in.Language == "ES" {
		out.Title = title(filed, in.Transaction.Kind)
	}
	if filed.Value("TipoFactura") == "F3" {
		out.Kind = transaction.Invoice // what replaces a ticket corrects nothing (article 15.6)
	}
	out.Language, out.Words = "ES", spoken(in.Transaction.Items)
	out.Texts = append(p.words(in, filed.Value("TipoFactura")), rectification(filed)...)
	return out
}

// gradeWords and regimeWords are AEAT's lists L8A, L9 and L10 in words.
var (
	gradeWords = map[string]string{"S1": "sujeta y no exenta", "S2": "inversión del sujeto pasivo",
		"N1": "no sujeta", "N2": "no sujeta por reglas de localización", "E1": "exenta, artículo 20",
		"E2": "exenta, artículo 21 (exportación)", "E3": "exenta, artículo 22", "E4": "exenta, artículos 23 y 24",
		"E5": "exenta, artículo 25 (entrega intracomunitaria)", "E6": "exenta por otra causa",
		"E7": "exenta, Ley 20/1991", "E8": "exenta por otra causa, Ley 20/1991"}
	regimeWords = map[string]string{"01": "régimen general", "02": "exportación", "03": "bienes usados", "04": "oro de inversión",
		"05": "agencias de viajes", "06": "grupo de entidades, nivel avanzado", "07": "criterio de caja",
		"08": "operación sujeta a IPSI, IGIC o IVA de otro territorio", "09": "servicios de agencias de viajes como mediadoras",
		"10": "cobros por cuenta de terceros", "11": "arrendamiento de local de negocio",
		"14": "IVA pendiente, certificaciones de obra a la Administración", "15": "IVA pendiente, tracto sucesivo",
		"17": "ventanilla única (OSS, IOSS) o comerciante minorista", "18": "recargo de equivalencia",
		"19": "régimen de la agricultura, ganadería y pesca", "20": "régimen simplificado"}
)

// spoken are the codes of lines in words.
func spoken(items []transaction.Item) map[string]string {
	said := map[string]string{}
	for i := range items {
		for _, tax := range items[i].Taxes {
			if grade, regime, ok := readCode(tax.Code); ok && tax.Code != "" {
				if regime >= "17" && taxOf(tax.Regime) != taxIVA {
					regime = "" // of IGIC and IPSI they are others
				}
				said[tax.Code] = strings.Trim(gradeWords[grade]+", "+regimeWords[regime], ", ")
			}
		}
	}
	return said
}

// rectification is what a substitution changes, which the invoice states beside
// its new amounts (Real Decreto 1619/2012, article 15.5).
func rectification(filed *xmltree.Element) []string {
	before := filed.At("ImporteRectificacion")
	if before == nil {
		return nil
	}
	total, quota := readEuros(filed.Value("ImporteTotal")), readEuros(filed.Value("CuotaTotal"))
	old := readEuros(before.Value("CuotaRectificada")) + readEuros(before.Value("CuotaRecargoRectificado"))
	spoken := func(cents int64) string { return strings.Replace(euros(cents), ".", ",", 1) + " €" }
	return []string{"Importe de la rectificación: base " + spoken(total-quota-readEuros(before.Value("BaseRectificada"))) + ", cuota " + spoken(quota-old)}
}

// filedRecord is the RegistroAlta that was filed; nil without one.
func filedRecord(in country.Issue) *xmltree.Element {
	if in.Filing == nil {
		return nil
	}
	filing, err := limits().Read(in.Filing.Report)
	if err != nil {
		return nil
	}
	return filing.Root.At("RegistroFactura", "RegistroAlta")
}

// title is what the document is by Real Decreto 1619/2012. A full invoice that
// needs no number of its customer is filed as F2 and is none of the simplified.
func title(filed *xmltree.Element, of transaction.Kind) string {
	kind := filed.Value("TipoFactura")
	simplified := (kind == "F2" || kind == "R5") && filed.Value("FacturaSinIdentifDestinatarioArt61d") != "S" ||
		filed.Value("FacturaSimplificadaArt7273") == "S"
	corrects := strings.HasPrefix(kind, "R")
	switch {
	case of == transaction.Cancellation:
		return "Anulación de factura"
	case simplified && corrects:
		return "Factura simplificada rectificativa"
	case simplified:
		return "Factura simplificada"
	case corrects:
		return "Factura rectificativa"
	}
	return "Factura"
}

// words are the mentions that the content of the invoice calls for.
func (p *pack) words(in country.Issue, kind string) []string {
	var out []string
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	where := cmp.Or(in.Location, p.by.Zone)
	for i := range in.Originals() {
		of := &in.Originals()[i]
		number := cmp.Or(of.Transaction.Number, of.UniqueNumber)
		about := number + " de fecha " + of.Transaction.Date.In(where).Format("02/01/2006")
		switch {
		case in.Transaction.Kind == transaction.Cancellation:
			add("Anula la factura " + about)
		case kind == "F3":
			add("Sustituye a la factura simplificada " + about)
		default:
			add("Rectifica la factura " + about)
		}
	}
	if in.Transaction.Issuer != nil && in.Transaction.Customer != nil && in.Transaction.Issuer.TaxNumber != "" &&
		in.Transaction.Issuer.TaxNumber == in.Transaction.Customer.TaxNumber {
		add("Facturación por el destinatario")
	}
	for _, item := range p.classify(country.Case{Transaction: in.Transaction, Now: time.Time{}}) {
		for _, tax := range item.Taxes {
			if taxOf(tax.Regime) == "" {
				continue
			}
			if onMargin(tax.Code) {
				_, regime, _ := readCode(tax.Code)
				add(marginWords[regime])
				continue
			}
			if d, reason := gradeOf(in.Transaction, tax); reason == "" {
				for _, text := range d.mentions() {
					add(text)
				}
			}
		}
	}
	return out
}

// marginWords are the mentions of Real Decreto 1619/2012, article 6.1, letters o and p.
var marginWords = map[string]string{regimeTravel: "Régimen especial de las agencias de viajes",
	regimeUsed: "Régimen especial de los bienes usados"}

// mentions are those of Real Decreto 1619/2012, article 6.1, letters j to p.
func (d *detail) mentions() []string {
	var out []string
	law := map[string]string{taxIVA: "Ley 37/1992 del IVA", taxIGIC: "Ley 20/1991 del IGIC",
		taxIPSI: "Ley 8/1991 del IPSI"}[d.tax]
	switch {
	case d.grade == "S2":
		out = append(out, "Inversión del sujeto pasivo")
	case d.grade == "N1", d.grade == "N2":
		out = append(out, "Operación no sujeta ("+law+")")
	case d.exempt():
		article := ""
		if d.tax == taxIVA {
			article = map[string]string{"E1": "artículo 20 de la ", "E2": "artículo 21 de la ", "E3": "artículo 22 de la ",
				"E4": "artículos 23 y 24 de la ", "E5": "artículo 25 de la "}[d.grade]
		}
		out = append(out, "Operación exenta ("+article+law+")")
	}
	if d.regime == "07" {
		out = append(out, "Régimen especial del criterio de caja")
	}
	return out
}

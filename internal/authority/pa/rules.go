package pa

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tributary/internal/official"
	"tributary/internal/xmltree"
)

// flaw is a reason of a status.
type flaw struct{ code, text string }

// party is who sells or buys, as a file has it.
type party struct{ siren, siret, address, scheme string }

// arrival is what a file says.
type arrival struct {
	org                                       string // whose account it came to
	number, kind, frame, currency, accounting string
	day, due                                  string // YYYYMMDD
	seller, buyer                             party
	notes                                     map[string][]string
	rates, categories, quantities             []string
	paid, gross, payable                      string
	earlier                                   int // documents before, with their days
	hash                                      string
	standing                                  string // of a status: its code
	unreadable                                []detail

	of       span     // of a report
	wrong    []flaw   // with a report, for the administration
	id, code string   // of a status
	amounts  []string // of a status, by its rates
}

const (
	spaceStatus = spaceAggregates + "CrossDomainAcknowledgementAndResponse:100"
	spaceCII    = spaceAggregates + "CrossIndustryInvoice:100"
	spaceUBL    = "urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
	spaceCredit = "urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2"
)

// read reads a file of a syntax.
func read(file []byte, syntax string) arrival {
	sum := sha256.Sum256(file)
	x := arrival{hash: hex.EncodeToString(sum[:]), notes: map[string][]string{}}
	fail := func(code, format string, args ...any) arrival {
		x.unreadable = append(x.unreadable, detail{"Error", "file", code, fmt.Sprintf(format, args...)})
		return x
	}
	if len(file) == 0 {
		return fail("EmptyFlow", "the file is empty")
	}
	doc, err := xmltree.Limits{Bytes: fileBytesMax}.Read(file)
	if err != nil {
		return fail("InvalidSchema", "%v", err)
	}
	root := doc.Root
	switch {
	case syntax == "FRR":
		return x.report(root)
	case syntax == syntaxStatus && root.Is(spaceStatus, "CrossDomainAcknowledgementAndResponse"):
		if root.Value("ExchangedDocument", "IssuerTradeParty", "RoleCode") != "SE" {
			return x.answer(root)
		}
		x.status(root)
	case syntax == "CII" && root.Is(spaceCII, "CrossIndustryInvoice"):
		if flaw := official.CII.Schema().First(root); flaw != nil {
			return fail("InvalidSchema", "%v", flaw)
		}
		x.cii(root)
	case syntax == "UBL" && (root.Is(spaceUBL, "Invoice") || root.Is(spaceCredit, "CreditNote")):
		if flaw := official.UBL.Schema().First(root); flaw != nil {
			return fail("InvalidSchema", "%v", flaw)
		}
		x.ubl(root)
	default:
		return fail("FlowTypeError", "{%s}%s is not of the syntax %s", root.Space, root.Local, syntax)
	}
	return x
}

func (x *arrival) cii(root *xmltree.Element) {
	doc, deal := root.At("ExchangedDocument"), root.At("SupplyChainTradeTransaction")
	terms, pay := deal.At("ApplicableHeaderTradeAgreement"), deal.At("ApplicableHeaderTradeSettlement")
	x.number, x.kind = doc.Value("ID"), doc.Value("TypeCode")
	x.day = doc.Value("IssueDateTime", "DateTimeString")
	x.frame = root.Value("ExchangedDocumentContext", "BusinessProcessSpecifiedDocumentContextParameter", "ID")
	for _, n := range doc.All("IncludedNote") {
		x.notes[n.Value("SubjectCode")] = append(x.notes[n.Value("SubjectCode")], n.Value("Content"))
	}
	for to, name := range map[*party]string{&x.seller: "SellerTradeParty", &x.buyer: "BuyerTradeParty"} {
		p := terms.At(name)
		legal, uri := p.At("SpecifiedLegalOrganization", "ID"), p.At("URIUniversalCommunication", "URIID")
		to.register(legal)
		for _, id := range p.All("GlobalID") {
			to.register(id)
		}
		to.addressed(uri)
	}
	x.currency, x.accounting = pay.Value("InvoiceCurrencyCode"), pay.Value("TaxCurrencyCode")
	x.due = pay.Value("SpecifiedTradePaymentTerms", "DueDateDateTime", "DateTimeString")
	for _, tax := range pay.All("ApplicableTradeTax") {
		x.rates, x.categories = append(x.rates, tax.Value("RateApplicablePercent")), append(x.categories, tax.Value("CategoryCode"))
	}
	for _, l := range deal.All("IncludedSupplyChainTradeLineItem") {
		x.quantities = append(x.quantities, l.Value("SpecifiedLineTradeDelivery", "BilledQuantity"))
	}
	sums := pay.At("SpecifiedTradeSettlementHeaderMonetarySummation")
	x.gross, x.paid, x.payable = sums.Value("GrandTotalAmount"), sums.Value("TotalPrepaidAmount"), sums.Value("DuePayableAmount")
	for _, d := range pay.All("InvoiceReferencedDocument") {
		if d.Value("IssuerAssignedID") != "" && d.Value("FormattedIssueDateTime", "DateTimeString") != "" {
			x.earlier++
		}
	}
}

func (x *arrival) ubl(root *xmltree.Element) {
	x.number, x.kind = root.Value("ID"), root.Value("InvoiceTypeCode")+root.Value("CreditNoteTypeCode")
	x.day, x.due = plainDay(root.Value("IssueDate")), plainDay(root.Value("DueDate"))
	x.frame = root.Value("ProfileID")
	for _, n := range root.All("Note") {
		subject, text := "", n.Text
		if m := noted.FindStringSubmatch(n.Text); m != nil {
			subject, text = m[1], m[2]
		}
		x.notes[subject] = append(x.notes[subject], text)
	}
	for to, name := range map[*party]string{&x.seller: "AccountingSupplierParty", &x.buyer: "AccountingCustomerParty"} {
		p := root.At(name, "Party")
		to.register(p.At("PartyLegalEntity", "CompanyID"))
		for _, id := range p.All("PartyIdentification") {
			to.register(id.At("ID"))
		}
		to.addressed(p.At("EndpointID"))
	}
	x.currency, x.accounting = root.Value("DocumentCurrencyCode"), root.Value("TaxCurrencyCode")
	for _, t := range root.All("TaxTotal") {
		for _, s := range t.All("TaxSubtotal") {
			x.rates, x.categories = append(x.rates, s.Value("TaxCategory", "Percent")), append(x.categories, s.Value("TaxCategory", "ID"))
		}
	}
	for _, l := range slices.Concat(root.All("InvoiceLine"), root.All("CreditNoteLine")) {
		x.quantities = append(x.quantities, l.Value("InvoicedQuantity")+l.Value("CreditedQuantity"))
	}
	sums := root.At("LegalMonetaryTotal")
	x.gross, x.paid, x.payable = sums.Value("TaxInclusiveAmount"), sums.Value("PrepaidAmount"), sums.Value("PayableAmount")
	for _, d := range root.All("BillingReference") {
		if d.Value("InvoiceDocumentReference", "ID") != "" && d.Value("InvoiceDocumentReference", "IssueDate") != "" {
			x.earlier++
		}
	}
}

var noted = regexp.MustCompile(`(?s)^#([A-Z]{3})#(.*)$`)

func plainDay(day string) string { return strings.ReplaceAll(day, "-", "") }

func (p *party) register(id *xmltree.Element) {
	if id == nil {
		return
	}
	switch id.Attr("schemeID") {
	case "0002":
		p.siren = strings.TrimSpace(id.Text)
	case "0009":
		p.siret = strings.TrimSpace(id.Text)
	}
}

func (p *party) addressed(e *xmltree.Element) {
	if e != nil {
		p.address, p.scheme = strings.TrimSpace(e.Text), e.Attr("schemeID")
	}
}

const (
	kinds      = "380 389 393 501 386 500 384 471 472 473 261 262 381 396 502 503"
	frames     = "B1 S1 M1 B2 S2 M2 S3 B4 S4 M4 S5 S6 B7 S7 B8 S8 M8 B9 S9 M9"
	selfBilled = "389 501 500 471 473 261 502"

	rates = "0 0.9 1.05 1.75 2.1 5.5 7 8.5 9.2 9.6 10 13 19.6 20 20.6"
)

var (
	numberForm   = regexp.MustCompile(`^[A-Za-z0-9+_/-]{1,35}$`)
	sirenForm    = regexp.MustCompile(`^[0-9]{9}$`)
	quantityForm = regexp.MustCompile(`^-?[0-9]{1,19}(\.[0-9]{1,4})?$`)
)

func listed(list, code string) bool { return slices.Contains(strings.Fields(list), code) }

// flaws are the official rules that everybody breaks first (BR-FR 1.4.0.03), and
// what a platform knows besides: whose account it is, and who is in the directory.
func (x *arrival) flaws(rule string) (found []flaw) {
	must := func(ok bool, code, text string) {
		if !ok {
			found = append(found, flaw{code, text})
		}
	}
	seman := func(ok bool, rule string) { must(ok, "REJ_SEMAN", rule) }
	seman(numberForm.MatchString(x.number), "BR-FR-01/02 BT-1")
	seman(listed(kinds, x.kind), "BR-FR-04 BT-3")
	for _, subject := range []string{"PMT", "PMD", "AAB"} {
		seman(len(x.notes[subject]) == 1, "BR-FR-05/06 "+subject)
	}
	seman(listed(frames, x.frame), "BR-FR-08 BT-23")
	for _, p := range []party{x.seller, x.buyer} {
		seman(p.siret == "" || len(p.siret) == 14 && strings.HasPrefix(p.siret, p.siren), "BR-FR-09 SIRET")
		seman(p.address != "", "BR-FR-12/13 BT-34, BT-49")
	}
	seman(sirenForm.MatchString(x.seller.siren), "BR-FR-10 BT-30")
	between := slices.Equal(x.notes["BAR"], []string{"B2B"})
	seman(between && rule == "B2B", "BR-FR-20 BAR")
	if between {
		seman(sirenForm.MatchString(x.buyer.siren), "BR-FR-11 BT-47")
		to := x.buyer
		if listed(selfBilled, x.kind) {
			to = x.seller
		}
		seman(to.scheme == "0225" && strings.HasPrefix(to.address, to.siren), "BR-FR-21/22 BT-49")
	}
	for i, rate := range x.rates {
		seman(rate == "" || listed(rates, rate), "BR-FR-16 "+rate)
		seman(listed("S E AE K G O Z", x.categories[i]), "BR-FR-15 "+x.categories[i])
	}
	for _, quantity := range x.quantities {
		seman(quantityForm.MatchString(quantity), "BR-FR-DEC-02 BT-129")
	}
	credit, paid := listed("261 381 396 502 503", x.kind), listed("B2 S2 M2", x.frame)
	seman(!credit || x.earlier > 0, "BR-FR-CO-05 BT-25")
	seman(x.due == "" || paid || listed("386 500 503", x.kind) || x.due >= x.day, "BR-FR-CO-07 BT-9")
	seman(!paid || x.paid == x.gross && strings.Trim(x.payable, "0.") == "" && x.due != "", "BR-FR-CO-09 BT-23")
	seman(x.currency == "EUR" || x.accounting == "EUR", "BR-FR-CO-12 BT-6")
	must(x.org == "" || x.org == x.seller.siren, "EMMET_INC", "Émetteur inconnu: "+x.seller.siren)
	must(x.known(), "REJ_ADR", "Adresse inconnue de l'annuaire: "+x.buyer.address)
	return found
}

// known reports whether the directory has who receives.
func (x *arrival) known() bool {
	for _, l := range linesOf(x.buyer.siren) {
		if l.Type == "WK" {
			return true
		}
	}
	return false
}

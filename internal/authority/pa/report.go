package pa

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"tributary/internal/authority"
	"tributary/internal/official"
	"tributary/internal/xmltree"
)

var (
	platformForm = regexp.MustCompile(`^[0-9]{4}$`)
	dayForm      = regexp.MustCompile(`^20[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$`)
)

// span is what a report is of: the kind of its data and its days.
type span struct{ kind, first, last string }

// report reads a file of flow 10. What breaks its official structure is refused at
// once, what breaks a rule is the administration's to refuse.
func (x *arrival) report(root *xmltree.Element) arrival {
	head := root.At("ReportDocument")
	x.number, x.seller.siren, x.kind = head.Value("Id"), head.Value("Issuer", "Id"), head.Value("TypeCode")
	if flaw := official.FRR.Schema().First(root); flaw != nil {
		x.unreadable = append(x.unreadable, detail{"Error", "file", "InvalidSchema", flaw.Error()})
		return *x
	}
	must := func(ok bool, rule string) {
		if !ok {
			x.wrong = append(x.wrong, flaw{"REJ_SEMAN", rule})
		}
	}
	must(len(x.number) <= 50, "G1.104 TT-1")
	must(x.kind == "IN" || x.kind == "RE", "TT-4")
	must(platformForm.MatchString(head.Value("Sender", "Id")) && head.At("Sender", "Id").Attr("schemeId") == "0238", "G6.22 TT-8")
	must(sirenForm.MatchString(x.seller.siren) && head.At("Issuer", "Id").Attr("schemeId") == "0002", "TT-13")
	sales, payments := root.At("TransactionsReport"), root.At("PaymentsReport")
	must(len(root.All("TransactionsReport"))+len(root.All("PaymentsReport")) == 1, "TB-2 or TB-3")
	if len(root.All("TransactionsReport")) > 0 {
		x.spanOf("transactions", sales, must)
		must(len(sales.All("Transactions"))+len(sales.All("Invoice")) > 0, "TB-2 is empty")
	} else {
		x.spanOf("payments", payments, must)
		must(len(payments.All("Transactions"))+len(payments.All("Invoice")) > 0, "TB-3 is empty")
	}
	seen := map[string]bool{}
	for _, t := range sales.All("Transactions") {
		group := strings.Join([]string{t.Value("Date"), t.Value("TransactionsCurrency"), t.Value("CategoryCode"), t.Value("TaxDueDateTypeCode")}, "|")
		must(!seen[group], "10.3: one aggregate of "+group)
		seen[group] = true
		x.grouped(t, must)
	}
	for _, v := range sales.All("Invoice") {
		must(numberForm.MatchString(strings.ReplaceAll(v.Value("ID"), " ", "_")), "G1.05 TT-19")
		must(dayForm.MatchString(v.Value("IssueDate")), "G1.09 TT-20")
	}
	for _, p := range slices.Concat(payments.All("Invoice"), payments.All("Transactions")) {
		for _, one := range p.All("Payment") {
			must(x.within(one.Value("Date")), "G1.09 TT-92")
			for _, s := range one.All("SubTotals") {
				must(listed(rates, s.Value("TaxPercent")), "G1.24 "+s.Value("TaxPercent"))
			}
		}
	}
	return *x
}

// spanOf reads the days of a report.
func (x *arrival) spanOf(kind string, of *xmltree.Element, must func(bool, string)) {
	days := of.At("ReportPeriod")
	x.of = span{kind, days.Value("StartDate"), days.Value("EndDate")}
	must(dayForm.MatchString(x.of.first) && dayForm.MatchString(x.of.last) && x.of.first <= x.of.last, "TB-5 ReportPeriod")
}

func (x *arrival) within(day string) bool {
	return dayForm.MatchString(day) && x.of.first <= day && day <= x.of.last
}

// grouped judges an aggregate of a day (10.3).
func (x *arrival) grouped(t *xmltree.Element, must func(bool, string)) {
	must(x.within(t.Value("Date")), "TT-77 is outside of the period")
	must(listed("TLB1 TPS1 TNT1 TMA1", t.Value("CategoryCode")), "G1.68 TT-81")
	base, tax := new(big.Rat), new(big.Rat)
	for _, s := range t.All("TaxSubtotal") {
		must(listed(rates, s.Value("TaxPercent")), "G1.24 "+s.Value("TaxPercent"))
		base.Add(base, number(s.Value("TaxableAmount")))
		tax.Add(tax, number(s.Value("TaxTotal")))
	}
	must(tax.Cmp(number(t.Value("TaxTotal"))) == 0, "G1.53 TT-83")
	must(t.Value("TransactionsCurrency") != "EUR" || base.Cmp(number(t.Value("TaxExclusiveAmount"))) == 0, "G1.53 TT-82")
}

func number(text string) *big.Rat {
	if r, ok := new(big.Rat).SetString(text); ok {
		return r
	}
	return new(big.Rat)
}

// administered says what the administration makes of a report that was taken: a
// first one of a period (IN), or one that replaces it (RE).
func (a *double) administered(b *authority.Book, e *entry, x *arrival, step authority.Step) {
	x.org = e.Org
	flaws := x.wrong
	if x.org != "" && x.org != x.seller.siren {
		flaws = append(flaws, flaw{"REJ_SEMAN", "Déclarant inconnu: " + x.seller.siren})
	}
	place := strings.Join([]string{"period", x.seller.siren, x.of.kind, x.of.first, x.of.last}, "/")
	_, there := b.Get(place)
	switch {
	case x.kind == "IN" && there:
		flaws = append(flaws, flaw{"REJ_UNI", "La période a déjà été transmise"})
	case x.kind == "RE" && !there:
		flaws = append(flaws, flaw{"REJ_PER", "Aucune transmission à remplacer pour la période"})
	}
	if step.Outcome == authority.Reject {
		flaws = append(flaws, flaw{"REJ_PER", "rejetée par le scénario de test"})
	}
	x.kind, x.day = "", stampDay(a.now())
	if len(flaws) > 0 {
		a.say(b, x, "301", flaws)
		return
	}
	b.Put(place, e.ID)
	a.say(b, x, "300", nil)
}

// status reads what a seller says of an invoice.
func (x *arrival) status(root *xmltree.Element) {
	about := root.At("AcknowledgementDocument", "ReferenceReferencedDocument")
	x.id, x.code, x.number = root.Value("ExchangedDocument", "ID"), about.Value("ProcessConditionCode"), about.Value("IssuerAssignedID")
	x.seller.siren, x.day = about.Value("IssuerTradeParty", "GlobalID"), about.Value("FormattedIssueDateTime", "DateTimeString")
	for _, d := range about.All("SpecifiedDocumentStatus") {
		for _, c := range d.All("SpecifiedDocumentCharacteristic") {
			if c.Value("TypeCode") == "MEN" {
				x.amounts, x.rates = append(x.amounts, c.Value("ValueAmount")), append(x.rates, c.Value("ValuePercent"))
			}
		}
	}
}

// said judges what a seller says of an invoice: that it was paid (212), by rate, of
// one that was deposited here, and no more than it comes to.
func (a *double) said(b *authority.Book, e *entry, x *arrival, step authority.Step) []detail {
	no := func(code, text string) []detail { return []detail{{"Error", "file", code, text}} }
	key := x.seller.siren + "\x00" + x.number + "\x00" + x.day[:min(4, len(x.day))]
	invoice, known := b.FindKey(key)
	of, _ := arrivalOf(b, invoice.AuthorityID)
	sum := new(big.Rat)
	for _, amount := range x.amounts {
		sum.Add(sum, number(amount))
	}
	switch {
	case e.Org != "" && e.Org != x.seller.siren:
		return no("InvoiceLCAccessDenied", "the invoice is another company's")
	case x.code != "212":
		return no("InvoiceLCInvalidStatus", "a seller says 212 here")
	case !known:
		return no("InvoiceLCStatusError", "the invoice "+x.number+" was not deposited here")
	case x.id == "" || len(x.rates) == 0 || slices.ContainsFunc(x.rates, func(r string) bool { return !listed(rates, r) }), step.Outcome == authority.Reject:
		return no("InvoiceLCRuleError", "BR-FR-CDV-14 MDT-207, MDT-215, MDT-224")
	case sum.Sign() <= 0 || sum.Cmp(number(of.gross)) > 0:
		return no("InvoiceLCAmountError", sum.FloatString(2)+" was paid of "+of.gross)
	}
	return nil
}

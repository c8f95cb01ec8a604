package nav

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country/taxid"
	"tributary/internal/official"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

func fatal(code, text string) remark { return remark{Severity: navwire.Error, Code: code, Text: text} }

func ofLine(code, line, text string) remark {
	return remark{Severity: navwire.Error, Code: code, Text: text, Line: line}
}

// judge checks an invoice by its structure and by the blocking rules of the
// specification (3.3.2) that a report of one taxpayer can break.
func (a *double) judge(b *authority.Book, taxpayer string, x *arrival) []remark {
	if x.root.Space != navwire.SpaceData || x.root.Local != "InvoiceData" {
		return []remark{technical("A gyökérelem nem InvoiceData.")}
	}
	if flaw := official.NAV.Schema().First(x.root); flaw != nil {
		return []remark{technical(flaw.Error())}
	}
	main := x.root.At("invoiceMain", "invoice")
	if main == nil {
		return []remark{technical("A kötegelt módosítás nem támogatott.")}
	}
	var found []remark
	found = append(found, a.ruleHead(taxpayer, x, main)...)
	found = append(found, ruleCustomer(main)...)
	found = append(found, ruleLines(x, main)...)
	found = append(found, ruleSums(main)...)
	found = append(found, ruleChain(b, taxpayer, x, main)...)
	return found
}

func (a *double) ruleHead(taxpayer string, x *arrival, main *xmltree.Element) []remark {
	var found []remark
	supplier := main.At("invoiceHead", "supplierInfo")
	if supplier.Value("supplierTaxNumber", "taxpayerId") != taxpayer {
		found = append(found, fatal(navwire.SupplierMismatch, "Az eladó adószáma eltér a felhasználóétól."))
	}
	if strings.TrimSpace(x.number) != x.number {
		found = append(found, fatal(navwire.InvalidNumber, "A számla sorszáma szóközzel kezdődik vagy végződik."))
	}
	issued, err := time.Parse(time.DateOnly, x.root.Value("invoiceIssueDate"))
	if err == nil && issued.Before(a.now().AddDate(-1, 0, -1)) {
		found = append(found, fatal(navwire.IssueDateLate, "A számla kelte egy évnél régebbi."))
	}
	delivered, err2 := time.Parse(time.DateOnly, main.Value("invoiceHead", "invoiceDetail", "invoiceDeliveryDate"))
	if err == nil && err2 == nil && delivered.After(issued.AddDate(5, 0, 0)) {
		found = append(found, fatal(navwire.DeliveryDateLate, "A teljesítés dátuma több mint öt évvel a számla kelte utáni."))
	}
	if x.root.Value("completenessIndicator") == "true" {
		found = append(found, fatal(navwire.HashExpected, "Az elektronikus számla lenyomata hiányzik."))
	}
	return found
}

func ruleCustomer(main *xmltree.Element) []remark {
	info := main.At("invoiceHead", "customerInfo")
	if info == nil {
		return []remark{fatal(navwire.CustomerMissing, "A vevő adatai hiányoznak.")}
	}
	data := info.At("customerVatData")
	named := info.At("customerName") != nil && info.At("customerAddress") != nil
	home, union, third := data.At("customerTaxNumber"), data.At("communityVatNumber"), data.At("thirdStateTaxId")
	var found []remark
	switch status := info.Value("customerVatStatus"); status {
	case navwire.PrivatePerson:
		if len(info.Children) > 1 {
			found = append(found, fatal(navwire.CustomerNotExpected, "Magánszemély vevőről nem küldhető adat."))
		}
	case navwire.Domestic:
		if !named {
			found = append(found, fatal(navwire.CustomerExpected, "A vevő neve és címe kötelező."))
		}
		if home == nil {
			found = append(found, fatal(navwire.DomesticMissing, "Belföldi adóalany vevő adószáma kötelező."))
		}
		if home != nil && !taxid.Check("HU", home.Value("taxpayerId")).Valid {
			found = append(found, fatal(navwire.InvalidCustomer, "A vevő adószáma érvénytelen."))
		}
		if union != nil {
			found = append(found, fatal(navwire.UnionNotExpected, "Belföldi vevőhöz közösségi adószám nem adható."))
		}
	default:
		if !named {
			found = append(found, fatal(navwire.CustomerExpected, "A vevő neve és címe kötelező."))
		}
	}
	for _, line := range main.At("invoiceLines").All("line") {
		rate := amountsOf(line).At("lineVatRate")
		number := line.Value("lineNumber")
		if rate.Value("vatDomesticReverseCharge") == "true" && home == nil {
			found = append(found, ofLine(navwire.DomesticForReverse, number, "Belföldi fordított adózáshoz belföldi adószám kell."))
		}
		code := rate.Value("vatExemption", "case") + rate.Value("vatOutOfScope", "case")
		if (code == navwire.KBAET || code == navwire.EUFAD37) && union == nil {
			found = append(found, ofLine(navwire.InvalidVATData, number, code+" esetén a vevő közösségi adószáma kötelező."))
		}
		if code == navwire.EUFADE && third != nil {
			found = append(found, ofLine(navwire.ThirdNotExpected, number, "EUFADE esetén harmadik országbeli adószám nem adható."))
		}
	}
	return found
}

func ruleLines(x *arrival, main *xmltree.Element) []remark {
	lines := main.At("invoiceLines").All("line")
	if len(lines) == 0 && x.operation != navwire.Modify {
		return []remark{fatal(navwire.LineMissing, "A számlának nincs tétele.")}
	}
	var found []remark
	for i, line := range lines {
		number := line.Value("lineNumber")
		if number != itoa(i+1) {
			found = append(found, fatal(navwire.LinesNotSequential, "A tételek sorszáma nem folytonos."))
		}
		changed := line.At("lineModificationReference")
		switch {
		case x.operation == navwire.Create && changed != nil:
			found = append(found, ofLine(navwire.LineChangeNotExpected, number, "Eredeti számlán nem lehet módosító hivatkozás."))
		case x.operation != navwire.Create && changed == nil:
			found = append(found, ofLine(navwire.LineChangeExpected, number, "Módosító okiraton kötelező a tétel hivatkozása."))
		case changed != nil && changed.Value("lineOperation") != navwire.Create:
			found = append(found, ofLine(navwire.InvalidLineOperation, number, "A tétel művelete csak CREATE lehet."))
		}
		if line.Value("lineExpressionIndicator") == "true" {
			for _, wanted := range []string{"lineDescription", "quantity", "unitOfMeasure", "unitPrice"} {
				if line.At(wanted) == nil {
					found = append(found, ofLine(navwire.LineContentMissing, number, "Hiányzik: "+wanted))
				}
			}
			if (line.Value("unitOfMeasure") == "OWN") != (line.At("unitOfMeasureOwn") != nil) {
				found = append(found, ofLine(navwire.LineContentMissing, number, "A saját mennyiségi egység hiányzik vagy felesleges."))
			}
		}
		found = append(found, ruleRate(amountsOf(line), number)...)
		found = append(found, ruleProduct(line, number)...)
	}
	return found
}

// ruleProduct compares quantity × price less the discount with the net amount,
// within one per cent or one unit of the currency, and warns as NAV does.
func ruleProduct(line *xmltree.Element, number string) []remark {
	net := line.Value("lineAmountsNormal", "lineNetAmountData", "lineNetAmount")
	quantity, err1 := strconv.ParseFloat(line.Value("quantity"), 64)
	price, err2 := strconv.ParseFloat(line.Value("unitPrice"), 64)
	want, err3 := strconv.ParseFloat(net, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return nil // it says nothing that could be compared
	}
	discount, _ := strconv.ParseFloat(line.Value("lineDiscountData", "discountValue"), 64) // none is 0
	if off := math.Abs(quantity*price - discount - want); off > 1 && off > math.Abs(want)/100 {
		return []remark{{Severity: navwire.Warning, Code: "INCORRECT_LINE_CALCULATION_NET_AMOUNT",
			Text: "A mennyiség és az egységár szorzata eltér a nettó összegtől.", Line: number}}
	}
	return nil
}

func ruleRate(amounts *xmltree.Element, number string) []remark {
	rate := amounts.At("lineVatRate")
	var found []remark
	if percent := rate.Value("vatPercentage"); percent != "" && !slices.Contains(navwire.Rates(), trimmed(percent)) {
		found = append(found, ofLine(navwire.InvalidVATData, number, "Az adómérték nem szerepel az értékkészletben: "+percent))
	}
	if code := rate.Value("vatExemption", "case"); code != "" && !slices.Contains(navwire.Exemptions(), code) {
		found = append(found, ofLine(navwire.InvalidExemption, number, code))
	}
	if code := rate.Value("vatOutOfScope", "case"); code != "" && !slices.Contains(navwire.OutOfScope(), code) {
		found = append(found, ofLine(navwire.InvalidOutOfScope, number, code))
	}
	return found
}

func trimmed(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// cents reads an amount of at most two decimals.
func cents(text string) int64 {
	whole, part, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	n, _ := strconv.ParseInt(whole+(part + "00")[:2], 10, 64) // the structure has checked its form
	if strings.HasPrefix(text, "-") {
		return -n
	}
	return n
}

// amountsOf are a line's amounts, normal or simplified; a line of text has none.
func amountsOf(line *xmltree.Element) *xmltree.Element {
	if normal := line.At("lineAmountsNormal"); normal != nil {
		return normal
	}
	return line.At("lineAmountsSimplified")
}

// ruleSums compares the sums of lines with the summary of a normal invoice, and
// warns as NAV does. A line need not state its tax: then only nets are compared.
func ruleSums(main *xmltree.Element) []remark {
	summary := main.At("invoiceSummary", "summaryNormal")
	if summary == nil {
		return nil
	}
	var net, vat, groupNet, groupVAT int64
	stated := true
	for _, line := range main.At("invoiceLines").All("line") {
		amounts := line.At("lineAmountsNormal")
		net += cents(amounts.Value("lineNetAmountData", "lineNetAmountHUF"))
		vat += cents(amounts.Value("lineVatData", "lineVatAmountHUF"))
		stated = stated && amounts.At("lineVatData") != nil
	}
	for _, g := range summary.All("summaryByVatRate") {
		groupNet += cents(g.Value("vatRateNetData", "vatRateNetAmountHUF"))
		groupVAT += cents(g.Value("vatRateVatData", "vatRateVatAmountHUF"))
	}
	n, v := cents(summary.Value("invoiceNetAmountHUF")), cents(summary.Value("invoiceVatAmountHUF"))
	if net != n || stated && vat != v || groupNet != n || groupVAT != v {
		return []remark{{Severity: navwire.Warning, Code: "LINE_SUMMARY_NET_AMOUNT_MISMATCH",
			Text: "A tételek és az összesítő összegei eltérnek."}}
	}
	return nil
}

// ruleChain checks what a correction says of its original and of those before it.
func ruleChain(b *authority.Book, taxpayer string, x *arrival, main *xmltree.Element) []remark {
	ref := main.At("invoiceReference")
	switch {
	case x.operation == navwire.Create && ref != nil:
		return []remark{fatal(navwire.ReferenceNotExpected, "Eredeti számlán nem lehet hivatkozás.")}
	case x.operation == navwire.Create:
		return nil
	case ref == nil:
		return []remark{fatal(navwire.ReferenceExpected, "Módosító okiraton kötelező a hivatkozás.")}
	}
	original, masterless := ref.Value("originalInvoiceNumber"), ref.Value("modifyWithoutMaster") == "true"
	var held invoice
	known := b.Load("invoice/"+key(taxpayer, original), &held) && held.Operation == navwire.Create
	switch {
	case !known && !masterless:
		return []remark{fatal(navwire.InvalidReference, "A hivatkozott számla nem található: "+original)}
	case known && masterless:
		return []remark{fatal(navwire.MasterMismatch, "A hivatkozott számla létezik: "+original)}
	}
	taken, from := map[string]bool{}, held.Lines
	var chain []string
	b.Load("chain/"+key(taxpayer, original), &chain)
	var found []remark
	for _, number := range chain {
		var earlier invoice
		b.Load("invoice/"+key(taxpayer, number), &earlier)
		taken[itoa(earlier.Index)] = true
		from += earlier.Lines
	}
	if taken[ref.Value("modificationIndex")] {
		found = append(found, fatal(navwire.IndexTaken, "A módosítás sorszáma már létezik."))
	}
	seen := map[string]bool{}
	for _, line := range main.At("invoiceLines").All("line") {
		number := line.Value("lineModificationReference", "lineNumberReference")
		if seen[number] {
			found = append(found, ofLine(navwire.LineReferenceTaken, line.Value("lineNumber"), number))
		}
		seen[number] = true
		if n, err := strconv.Atoi(number); err == nil && known && n <= from {
			found = append(found, ofLine(navwire.LineExists, line.Value("lineNumber"), "A tétel már létezik a számlaláncban: "+number))
		}
	}
	return found
}

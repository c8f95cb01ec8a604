package en16931_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country/en16931"
	"tributary/internal/country/packtest"
	"tributary/internal/incoming"
	"tributary/internal/mutate"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// places are where the two syntaxes have what is compared, as another reader finds it.
type places struct{ number, net, tax, gross, payable, lines, line, base, rateTax, seller, sellerVAT, buyer string }

func placesOf(document []byte) places {
	if strings.Contains(string(document), "CrossIndustryInvoice") {
		const sum, row = "//ApplicableHeaderTradeSettlement/SpecifiedTradeSettlementHeaderMonetarySummation/",
			"//ApplicableHeaderTradeSettlement/ApplicableTradeTax/"
		return places{number: "//ExchangedDocument/ID", net: sum + "TaxBasisTotalAmount", tax: sum + "TaxTotalAmount[1]", gross: sum + "GrandTotalAmount",
			payable: sum + "DuePayableAmount", lines: "//IncludedSupplyChainTradeLineItem/AssociatedDocumentLineDocument",
			line: "//SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
			base: row + "BasisAmount", rateTax: row + "CalculatedAmount", seller: "//SellerTradeParty/Name", buyer: "//BuyerTradeParty/Name",
			sellerVAT: "//SellerTradeParty/SpecifiedTaxRegistration/ID[@schemeID='VA']"}
	}
	root := "/Invoice/"
	if strings.Contains(string(document), "<CreditNote") || strings.Contains(string(document), ":CreditNote ") {
		root = "/CreditNote/"
	}
	const sum = "LegalMonetaryTotal/"
	line := root + "InvoiceLine/"
	if root == "/CreditNote/" {
		line = root + "CreditNoteLine/"
	}
	party := func(p string) string { return root + p + "/Party/PartyLegalEntity/RegistrationName" }
	return places{number: root + "ID", net: root + sum + "TaxExclusiveAmount", tax: root + "TaxTotal[1]/TaxAmount",
		gross:   root + sum + "TaxInclusiveAmount",
		payable: root + sum + "PayableAmount", lines: line + "ID", line: line + "LineExtensionAmount", base: root + "TaxTotal/TaxSubtotal/TaxableAmount",
		rateTax: root + "TaxTotal/TaxSubtotal/TaxAmount", seller: party("AccountingSupplierParty"), buyer: party("AccountingCustomerParty"),
		sellerVAT: root + "AccountingSupplierParty/Party/PartyTaxScheme/TaxScheme[ID='VAT']/../CompanyID"}
}

// agrees compares what was received with the document, read in another way.
func agrees(t *testing.T, name string, document []byte, d *incoming.Document) {
	t.Helper()
	s, at := packtest.Say(t, name, document), placesOf(document)
	decimals, _ := transaction.CurrencyExponent(d.Currency)
	packtest.Equal(s, "number", d.Number, s.Text(at.number))
	packtest.Equal(s, "net", d.Net, s.Sum(at.net, decimals))
	packtest.Equal(s, "gross", d.Gross, s.Sum(at.gross, decimals))
	packtest.Equal(s, "payable", d.Payable, s.Sum(at.payable, decimals))
	if d.TaxCurrency == "" {
		packtest.Equal(s, "tax", d.Tax, s.Sum(at.tax, decimals))
	}
	packtest.Equal(s, "lines", len(d.Lines), len(s.Texts(at.lines)))
	var lines int64
	for i := range d.Lines {
		lines += d.Lines[i].Net
	}
	packtest.Equal(s, "sum of the lines", lines, s.Sum(at.line, decimals))
	var base, tax int64
	for _, row := range d.Taxes {
		base, tax = base+row.Base, tax+row.Amount
	}
	packtest.Equal(s, "bases", base, s.Sum(at.base, decimals))
	packtest.Equal(s, "taxes", tax, s.Sum(at.rateTax, decimals))
	packtest.Equal(s, "seller", strings.TrimSpace(d.Sender.LegalName), s.Text(at.seller))
	packtest.Equal(s, "buyer", strings.TrimSpace(d.Receiver.LegalName), s.Text(at.buyer))
	if vat := s.Text(at.sellerVAT); vat != "" {
		packtest.Equal(s, "the seller's number", d.Sender.TaxNumber, vat)
	}
}

func TestExamplesAreReceived(t *testing.T) {
	t.Parallel()
	examples(t, func(name string, document []byte) {
		d, err := en16931.ReadIncoming(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		agrees(t, name, document, d)
		for _, b := range d.Broken {
			if faulty[name] != b.Rule {
				t.Errorf("%s: %s %s %s", name, b.Rule, b.Term, b.Text)
			}
		}
	})
}

// faulty are examples that break a rule of the specification that they name.
var faulty = map[string]string{
	"en16931/ubl/examples/issue116.xml":                                      "PEPPOL-COMMON-R049",  // Swedish numbers of nobody
	"peppol-bis3/examples-2026.5/base-example_profile02.xml":                 "PEPPOL-EN16931-R007", // its process is none of Peppol's
	"peppol-bis3/national-examples/GR/GR-base-example-TaxRepresentative.xml": "BR-06",               // no name of the seller
	"en16931-worked/negprice.xml":                                            "BR-27",               // made to be refused
}

// What others write may break the rules that it names: the document is read, and they are told.
func TestBrokenRulesOfReceivedDocumentsAreTold(t *testing.T) {
	t.Parallel()
	rules := func(specification string, change func(*en16931.Invoice)) (told []string) {
		t.Helper()
		d := sample(en16931.PeppolBIS())
		if specification != "" {
			d.Specification = specification
		}
		change(d)
		in, err := en16931.ReadIncoming(en16931.WriteUBL(d))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range in.Broken {
			told = append(told, strings.TrimSpace(b.Rule+" "+b.Term))
		}
		return told
	}
	const core = "urn:cen.eu:en16931:2017"
	worse := func(d *en16931.Invoice) { d.Totals.Gross = dec("1.00") }
	for _, c := range []struct {
		specification string
		change        func(*en16931.Invoice)
		want          string
	}{
		{"", func(*en16931.Invoice) {}, ""},
		{"", worse, "BR-CO-15 BT-112"},
		{"", func(d *en16931.Invoice) { d.Buyer.Electronic = en16931.Identifier{} }, "PEPPOL-EN16931-R010 BT-49"},
		{core, func(d *en16931.Invoice) { d.Buyer.Electronic = en16931.Identifier{} }, ""},
		{core, worse, "BR-CO-15 BT-112"},
		{core + "#compliant#urn:factur-x.eu:1p0:basic", worse, "BR-CO-15 BT-112"},
		{core + "#conformant#urn:factur-x.eu:1p0:extended", worse, ""},
		{"urn:factur-x.eu:1p0:minimum", worse, ""},
		{core, func(d *en16931.Invoice) { d.Lines[0].Item.Name = "" }, "BR-25 BT-153, number 1"},
	} {
		told := rules(c.specification, c.change)
		if c.want == "" && len(told) > 0 || c.want != "" && !slices.Contains(told, c.want) {
			t.Errorf("%s: told %q, want %q", c.specification, told, c.want)
		}
	}
	for n, judged := range map[int]bool{100: true, 101: false} {
		told := rules(core, func(d *en16931.Invoice) { d.Breakdown = slices.Repeat(d.Breakdown[:1], n) })
		if unjudged := slices.Equal(told, []string{""}); unjudged == judged {
			t.Errorf("%d subtotals: told %q", n, told)
		}
	}
	means := sample(en16931.FacturX())
	means.Payment.Means = append(means.Payment.Means, en16931.PaymentMeans{Code: "30", Account: means.Payment.Means[0].Account})
	for syntax, document := range map[string][]byte{"UBL": en16931.WriteUBL(means), "CII": en16931.WriteCII(means)} {
		in, err := en16931.ReadIncoming(document)
		if err != nil {
			t.Fatal(err)
		}
		if told := len(in.Broken) > 0; told != (syntax == "UBL") { // UBL-SR-47
			t.Errorf("two means of payment in %s: told %v", syntax, in.Broken)
		}
	}
	many := rules(core, func(d *en16931.Invoice) {
		for range 200 {
			line := d.Lines[0]
			line.Item.Name = ""
			d.Lines = append(d.Lines, line)
		}
	})
	if len(many) != incoming.NotReadMax || many[len(many)-1] != "" {
		t.Errorf("%d are told, the last is %q", len(many), many[len(many)-1])
	}
}

// written are the documents that packs of the family made.
func written(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for _, folder := range []string{"../peppol/testdata", "../ro/testdata"} {
		for name, document := range packtest.Filed(t, folder) {
			all[filepath.Base(filepath.Dir(folder))+" "+name] = document
		}
	}
	paths, err := filepath.Glob("testdata/golden/*.xml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestWhatWeWriteIsReadBack(t *testing.T) {
	t.Parallel()
	for name, document := range written(t) {
		d, err := en16931.ReadIncoming(document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		agrees(t, name, document, d)
		for _, u := range d.NotRead {
			if strings.Contains(u, "/") {
				t.Errorf("%s: not read: %s", name, u)
			}
		}
		for _, b := range d.Broken {
			t.Errorf("%s: %s %s %s", name, b.Rule, b.Term, b.Text)
		}
	}
}

func TestReceivedDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	p := en16931.XRechnung(false)
	plain := string(en16931.WriteUBL(sample(p)))
	many := func(what string) []byte {
		return []byte(strings.Replace(plain, "<cac:AccountingSupplierParty>", strings.Repeat(what, 390_000/(1+strings.Count(what, "></")))+
			"<cac:AccountingSupplierParty>", 1))
	}
	// What stands there very often, known or not, takes time by its number and no more.
	for _, what := range []string{"<cac:PaymentMeans></cac:PaymentMeans>", "<cbc:Odd>1</cbc:Odd>", "<cbc:Note>1</cbc:Note>"} {
		d, err := en16931.ReadIncoming(many(what))
		if err != nil || len(d.NotRead) > incoming.NotReadMax {
			t.Errorf("%s: %v", what, err)
		}
	}
	at := func(elements int) error {
		_, err := en16931.ReadIncoming([]byte(strings.Replace(plain, "<cac:AccountingSupplierParty>",
			strings.Repeat("<a/>", elements-strings.Count(plain, "</"))+"<cac:AccountingSupplierParty>", 1)))
		return err
	}
	if err := at(xmltree.ElementsMax); err != nil {
		t.Errorf("as many elements as are read: %v", err)
	}
	if err := at(xmltree.ElementsMax + 1); !errors.Is(err, xmltree.ErrLimit) {
		t.Errorf("one element more than are read: %v", err)
	}
	long := func(bytes int) error {
		_, err := en16931.ReadIncoming([]byte(plain + strings.Repeat(" ", bytes-len(plain))))
		return err
	}
	if err := long(incoming.BytesMax); err != nil {
		t.Errorf("as long as is read: %v", err)
	}
	if err := long(incoming.BytesMax + 1); !errors.Is(err, xmltree.ErrLimit) || !errors.Is(err, incoming.ErrInvalid) {
		t.Errorf("a byte longer: %v", err)
	}
	typed := strings.Replace(plain, "<Invoice", "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><Invoice", 1)
	if _, err := en16931.ReadIncoming([]byte(typed)); !errors.Is(err, xmltree.ErrDoctype) {
		t.Errorf("entities: %v", err)
	}
	for what, document := range map[string]string{
		"a currency that is none": strings.Replace(plain, ">EUR<", ">QQQ<", 1),
		"an amount that is none":  strings.Replace(plain, "<cbc:PayableAmount currencyID=\"EUR\">", "<cbc:PayableAmount currencyID=\"EUR\">x", 1),
		"more than an amount is":  strings.Replace(plain, "<cbc:PayableAmount currencyID=\"EUR\">", "<cbc:PayableAmount currencyID=\"EUR\">99999999999", 1),
	} {
		if _, err := en16931.ReadIncoming([]byte(document)); !errors.Is(err, incoming.ErrInvalid) && err == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzReadIncoming(f *testing.F) {
	for _, p := range []en16931.Profile{en16931.XRechnung(false), en16931.XRechnung(true)} {
		f.Add(en16931.Write(sample(p), p))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		if d, err := en16931.ReadIncoming(document); err == nil && d.Format == "" {
			t.Error("a document without a format")
		}
	})
}

package sdi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/sdi"
	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/official/sdiwire"
)

// day is when the files of these tests are received.
func day() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// base is a valid invoice with one of everything that the checks look at.
func base(t testing.TB, numero string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/fattura.xml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "{numero}", numero, 1)
}

// broken is a copy of the base invoice with a defect, and the code it has.
type broken struct {
	code   string
	change []string // pairs: what stands there once, and what takes its place
	also   []string // codes that the defect has besides
}

func brokenCopies() []broken {
	seller, buyer := "<IdPaese>IT</IdPaese><IdCodice>01234567897</IdCodice>",
		"<IdPaese>IT</IdPaese><IdCodice>07643520567</IdCodice>"
	buyerVAT := "<IdFiscaleIVA>" + buyer + "</IdFiscaleIVA>"
	kind := "<TipoDocumento>TD06</TipoDocumento>"
	as := func(td string) string { return "<TipoDocumento>" + td + "</TipoDocumento>" }
	number := "<Numero>{numero}</Numero>"
	line1 := "<PrezzoTotale>100.00</PrezzoTotale>\n        <AliquotaIVA>22.00</AliquotaIVA>"
	line2 := "<AliquotaIVA>0.00</AliquotaIVA>\n        <Natura>N4</Natura>\n      </DettaglioLinee>"
	sum1 := "<AliquotaIVA>22.00</AliquotaIVA>\n        <ImponibileImporto>104.00</ImponibileImporto>"
	sum2 := "<AliquotaIVA>0.00</AliquotaIVA>\n        <Natura>N4</Natura>\n        <ImponibileImporto>30.00</ImponibileImporto>"
	fund := "<ImportoContributoCassa>4.00</ImportoContributoCassa><AliquotaIVA>22.00</AliquotaIVA>"
	return []broken{
		{code: sdiwire.FileDamaged, change: []string{`<?xml version="1.0" encoding="UTF-8"?>`, "%PDF-1.7"}},
		{code: sdiwire.FormatWrong, change: []string{"<Divisa>EUR</Divisa>", ""}},
		{code: sdiwire.FormatWrong, change: []string{"</p:FatturaElettronica>", ""}},
		{code: sdiwire.FormatWrong, change: []string{"<Quantita>20.00</Quantita>", "<Quantita>20</Quantita>"}},
		{code: sdiwire.FormatWrong, change: []string{"Via Roma 1", "Via Roma 1 €"}},
		{code: sdiwire.FormatWrong, change: []string{as("TD06"), as("TD99")}},
		{code: sdiwire.FormatHopeless, change: []string{number, number + strings.Repeat("<Causale></Causale>", 51)}},

		{code: sdiwire.TransmitterUnknown, change: []string{"<IdCodice>12345678903</IdCodice>",
			"<IdCodice>12345678901</IdCodice>"}},
		{code: sdiwire.SellerVATUnknown, change: []string{"01234567897", "01234567890"}},
		{code: sdiwire.SellerCodeUnknown, change: []string{"RSSMRA85T10A562S", "RSSMRA85T10A562T"}},
		{code: sdiwire.AgentVATUnknown, change: []string{"<IdCodice>00743110157</IdCodice>",
			"<IdCodice>00743110158</IdCodice>"}},
		{code: sdiwire.AgentCodeUnknown, change: []string{"<CodiceFiscale>00743110157</CodiceFiscale>",
			"<CodiceFiscale>00743110158</CodiceFiscale>"}},
		{code: sdiwire.BuyerVATUnknown, change: []string{"07643520567", "07643520568"}},
		{code: sdiwire.BuyerCodeUnknown, change: []string{"BNCGNN80A41F205A", "BNCGNN80A41F205Z"}},
		{code: sdiwire.AddressNotForeign, change: []string{"ABC1234", "XXXXXXX"}},
		{code: sdiwire.AddressNotForeign, change: []string{"ABC1234", "XXXXXXX", buyerVAT, ""}},
		{code: sdiwire.PECOfSdI, change: []string{"acquisti@pec.example.it", "sdi01@pec.fatturapa.it"}},
		{code: sdiwire.BuyerNumberMissing, change: []string{buyerVAT, "", "<CodiceFiscale>BNCGNN80A41F205A</CodiceFiscale>",
			""}},
		{code: sdiwire.BothForeign, change: []string{seller, "<IdPaese>DE</IdPaese><IdCodice>1</IdCodice>", buyer,
			"<IdPaese>FR</IdPaese><IdCodice>2</IdCodice>"}},
		{code: sdiwire.AddressLength, change: []string{"ABC1234", "ABC123"}},
		{code: sdiwire.FormatDiffers, change: []string{`versione="FPR12"`, `versione="FPA12"`}},

		{code: sdiwire.SamePerson, change: []string{buyer, seller}},
		{code: sdiwire.SamePerson, change: []string{buyer, seller, kind, as("TD16")}},
		{code: sdiwire.SamePerson, change: []string{buyerVAT, "", "BNCGNN80A41F205A", "RSSMRA85T10A562S"}},
		{code: sdiwire.NotSamePerson, change: []string{kind, as("TD27")}},
		{code: sdiwire.SellerCountryWrong, change: []string{kind, as("TD17")}},
		{code: sdiwire.SellerCountryWrong, change: []string{kind, as("TD29"), seller,
			"<IdPaese>DE</IdPaese><IdCodice>1</IdCodice>"}},
		{code: sdiwire.SelfSupplyUntaxed, change: []string{kind, as("TD21"), buyer, seller}},
		{code: sdiwire.BuyerVATMissing, change: []string{kind, as("TD22"), buyerVAT, ""}},
		{code: sdiwire.BeforeOriginal, change: []string{kind, as("TD04"), "<Data>2026-03-01</Data>",
			"<Data>2026-03-03</Data>"}},
		{code: sdiwire.DateAhead, change: []string{"<Data>2026-03-02</Data>", "<Data>2026-06-02</Data>"}},
		{code: sdiwire.NumberWithoutDigit, change: []string{number, "<Numero>ABC</Numero>"}},

		{code: sdiwire.LineNaturaMissing, change: []string{line2, strings.Replace(line2, "<Natura>N4</Natura>", "", 1)}},
		{code: sdiwire.LineNaturaUnexpected, change: []string{"<Ritenuta>SI</Ritenuta>",
			"<Ritenuta>SI</Ritenuta><Natura>N4</Natura>"}},
		{code: sdiwire.FundNaturaMissing, change: []string{fund, strings.Replace(fund, "22.00", "0.00", 1)},
			also: []string{sdiwire.TaxableWrong, sdiwire.TaxableWrong}},
		{code: sdiwire.FundNaturaUnexpected, change: []string{fund, fund + "<Natura>N4</Natura>"}},
		{code: sdiwire.SumNaturaMissing, change: []string{sum2, strings.Replace(sum2, "<Natura>N4</Natura>", "", 1)},
			also: []string{sdiwire.NaturaNotSummed}},
		{code: sdiwire.SumNaturaUnexpected, change: []string{sum1,
			strings.Replace(sum1, "</AliquotaIVA>", "</AliquotaIVA><Natura>N4</Natura>", 1)}},
		{code: sdiwire.NaturaGeneric, change: []string{line2, strings.Replace(line2, "N4", "N2", 1), sum2,
			strings.Replace(sum2, "N4", "N2", 1)}, also: []string{sdiwire.NaturaGeneric}},
		{code: sdiwire.SplitReverse, change: []string{line2, strings.Replace(line2, "N4", "N6.9", 1), sum2,
			strings.Replace(sum2, "N4", "N6.9", 1), "<Imposta>0.00</Imposta>",
			"<Imposta>0.00</Imposta><EsigibilitaIVA>S</EsigibilitaIVA>"}},
		{code: sdiwire.RateFraction, change: []string{line2, strings.Replace(line2, "0.00", "0.22", 1)},
			also: []string{sdiwire.LineNaturaUnexpected, sdiwire.RateNotSummed, sdiwire.TaxableWrong, sdiwire.TaxableWrong}},
		{code: sdiwire.SummariesMissing, change: []string{line2,
			strings.Replace(line2, "<AliquotaIVA>0.00</AliquotaIVA>\n        <Natura>N4</Natura>",
				"<AliquotaIVA>5.00</AliquotaIVA>", 1), fund, strings.Replace(fund, "22.00", "4.00", 1)},
			also: []string{sdiwire.RateNotSummed, sdiwire.RateNotSummed, sdiwire.TaxableWrong, sdiwire.TaxableWrong,
				sdiwire.TaxableWrong, sdiwire.TaxableWrong}},
		{code: sdiwire.RateNotSummed, change: []string{line1, strings.Replace(line1, "22.00", "10.00", 1), fund,
			strings.Replace(fund, "22.00", "10.00", 1)}, also: []string{sdiwire.TaxableWrong, sdiwire.TaxableWrong}},
		{code: sdiwire.NaturaNotSummed, change: []string{line2, strings.Replace(line2, "N4", "N1", 1)}},
		{code: sdiwire.LineWithholdingMissing, change: []string{"<DatiRitenuta>", "<!--", "</DatiRitenuta>", "-->"}},
		{code: sdiwire.FundWithholdingMissing,
			change: []string{"<DatiRitenuta>", "<!--", "</DatiRitenuta>", "-->", "<Ritenuta>SI</Ritenuta>", "", fund,
				fund + "<Ritenuta>SI</Ritenuta>"}},
		{code: sdiwire.DiscountEmpty, change: []string{"<Tipo>SC</Tipo><Importo>0.00</Importo>", "<Tipo>SC</Tipo>"}},
		{code: sdiwire.LineDiscountEmpty, change: []string{"<Tipo>SC</Tipo><Importo>1.00</Importo>", "<Tipo>SC</Tipo>",
			"<PrezzoUnitario>6.00</PrezzoUnitario>", "<PrezzoUnitario>5.00</PrezzoUnitario>"}},
		{code: sdiwire.TaxWrong, change: []string{"<Imposta>22.88</Imposta>", "<Imposta>22.89</Imposta>"}},
		{code: sdiwire.TaxableWrong, change: []string{"<ImponibileImporto>104.00</ImponibileImporto>",
			"<ImponibileImporto>105.00</ImponibileImporto>", "<Imposta>22.88</Imposta>", "<Imposta>23.10</Imposta>"}},
		{code: sdiwire.LineTotalWrong, change: []string{"<PrezzoTotale>100.00</PrezzoTotale>",
			"<PrezzoTotale>100.01</PrezzoTotale>"}},
	}
}

// breaks makes a broken copy, and fails where a change changes nothing.
func (x broken) breaks(t testing.TB, numero string) string {
	t.Helper()
	text := base(t, "{numero}")
	for i := 0; i < len(x.change); i += 2 {
		if strings.Count(text, x.change[i]) != 1 {
			t.Fatalf("%s: %q stands there %d times", x.code, x.change[i], strings.Count(text, x.change[i]))
		}
		text = strings.Replace(text, x.change[i], x.change[i+1], 1)
	}
	return strings.Replace(text, "{numero}", numero, 1)
}

func TestEveryBrokenCopyIsRefusedWithItsCode(t *testing.T) {
	if codes := sdi.Judge([]byte(base(t, "F-1")), day()); len(codes) > 0 {
		t.Fatalf("the base invoice: %v", codes)
	}
	for _, x := range brokenCopies() {
		codes := sdi.Judge([]byte(x.breaks(t, "F-1")), day())
		want := append([]string{x.code}, x.also...)
		slices.Sort(want)
		slices.Sort(codes)
		if !slices.Equal(codes, want) {
			t.Errorf("%v instead of %v: %q", codes, want, x.change)
		}
	}
}

// Every code that the double has words for is found by a test: here, or where a
// whole exchange is needed.
func TestEveryCodeHasABrokenCopy(t *testing.T) {
	elsewhere := []string{sdiwire.NameWrong, sdiwire.NameUsed, sdiwire.TooLarge, sdiwire.NotSigned,
		sdiwire.AddressUnknown, sdiwire.Duplicate, sdiwire.DuplicateInFile, sdiwire.SimplifiedTooMuch}
	for code := range sdi.Meanings() {
		found := slices.ContainsFunc(brokenCopies(), func(x broken) bool { return x.code == code })
		if found == slices.Contains(elsewhere, code) {
			t.Errorf("%s: broken here %v", code, found)
		}
	}
}

// The examples of arithmetic are those of the Elenco dei controlli.
func TestLinesAreCountedAsTheListOfChecksDoes(t *testing.T) {
	line := "<Quantita>20.00</Quantita>\n        <PrezzoUnitario>6.00</PrezzoUnitario>\n        <ScontoMaggiorazione><Tipo>SC</Tipo><Importo>1.00</Importo></ScontoMaggiorazione>\n        <PrezzoTotale>100.00</PrezzoTotale>"
	discount := func(text string) string {
		return "<ScontoMaggiorazione><Tipo>SC</Tipo>" + text + "</ScontoMaggiorazione>"
	}
	amount := func(text string) string { return discount("<Importo>" + text + "</Importo>") }
	share := func(text string) string { return discount("<Percentuale>" + text + "</Percentuale>") }
	for _, x := range []struct {
		discounts, total string
		ok               bool
	}{
		{amount("10.05") + amount("5.25") + amount("4.70"), "48000.00", true},
		{share("8.50") + share("5.15") + share("3.00"), "42092.05875", true},
		{share("8.50") + share("5.15") + share("3.00"), "42092.05", true},
		{share("8.50") + share("5.15") + share("3.00"), "42092.06", true},
		{share("8.50") + share("5.15") + share("3.00"), "42092.07", false},
		{share("8.50") + discount("<Percentuale>5.15</Percentuale><Importo>23.56</Importo>") + amount("15.00") +
			share("2.00"), "41056.12", true},
	} {
		text := base(t, "F-1")
		if !strings.Contains(text, line) {
			t.Fatal("the base invoice has another line")
		}
		text = strings.Replace(text, line,
			"<Quantita>100.00</Quantita><PrezzoUnitario>500.00</PrezzoUnitario>"+x.discounts+"<PrezzoTotale>"+x.total+
				"</PrezzoTotale>", 1)
		codes := sdi.Judge([]byte(text), day())
		if slices.Contains(codes, sdiwire.FormatWrong) || slices.Contains(codes, sdiwire.LineTotalWrong) == x.ok {
			t.Errorf("%s: %v", x.total, codes)
		}
	}
}

func TestALottoMayNotHoldANumberTwice(t *testing.T) {
	text := base(t, "F-1")
	body := text[strings.Index(text, "<FatturaElettronicaBody>") : strings.Index(text, "</FatturaElettronicaBody>")+
		len("</FatturaElettronicaBody>")]
	art73 := strings.Replace(strings.Replace(body, "</ImportoTotaleDocumento>",
		"</ImportoTotaleDocumento><Art73>SI</Art73>", 1), "2026-03-02", "2026-03-05", 1)
	for second, codes := range map[string][]string{
		body:                                     {sdiwire.DuplicateInFile},
		strings.Replace(body, "F-1<", "F-2<", 1): nil,
		strings.Replace(body, "TD06", "TD04", 1): nil,
		strings.Replace(body, "2026-03-02", "2025-03-02", 1): nil,
		art73: {sdiwire.DuplicateInFile}, // by the other's rule
	} {
		if got := sdi.Judge([]byte(strings.Replace(text, body, body+second, 1)), day()); !slices.Equal(got, codes) {
			t.Errorf("%v instead of %v", got, codes)
		}
	}
}

func TestNumbersHaveTheirCheckDigits(t *testing.T) {
	for _, good := range []string{"01234567897", "12345678903", "00743110157", "07643520567"} {
		if !sdi.ValidVAT(good) || !sdi.ValidCode(good) {
			t.Errorf("%s is refused", good)
		}
		if bad := good[:10] + string('0'+(good[10]-'0'+1)%10); sdi.ValidVAT(bad) {
			t.Errorf("%s is taken", bad)
		}
	}
	for code, ok := range map[string]bool{"RSSMRA85T10A562S": true, "BNCGNN80A41F205A": true, "MRALNE80E05H501C": true,
		"RSSMRA85T10A562T": false, "rssmra85t10a562s": false, "": false} {
		if sdi.ValidCode(code) != ok {
			t.Errorf("%q: %v", code, !ok)
		}
	}
}

// Published samples pass but for their numbers, which are invented, and for what
// is known of them.
func TestPublishedSamplesAreAccepted(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(needs.Schemas(t, "it-fatturapa", "examples"), "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{
		"ok_IT01234567890_FPR03.xml": {sdiwire.TaxWrong, sdiwire.TaxableWrong}, // 5.95 of 27.00, and lines of 25.00
	}
	register := regexp.MustCompile(`^003`)
	count := 0
	for _, path := range paths {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "ok_IT") && !strings.HasPrefix(name, "gobl-") || strings.Contains(name, "_EC_") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		count++
		codes := slices.DeleteFunc(sdi.Judge(text, day()), register.MatchString)
		if !slices.Equal(codes, known[name]) {
			t.Errorf("%s: %v", name, codes)
		}
	}
	if count < 14 {
		t.Errorf("%d samples", count)
	}
}

func FuzzJudge(f *testing.F) {
	f.Add(base(f, "F-1"))
	for _, x := range brokenCopies() {
		f.Add(x.breaks(f, "F-1"))
	}
	f.Add(simplified)
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, file string) {
		for _, code := range sdi.Judge([]byte(file), day()) {
			if sdi.Meanings()[code] == "" {
				t.Errorf("the code %q has no meaning", code)
			}
		}
	})
}

// simplified is a valid simplified invoice.
const simplified = `<p:FatturaElettronicaSemplificata xmlns:p="http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.0" versione="FSM10">
<FatturaElettronicaHeader><DatiTrasmissione><IdTrasmittente><IdPaese>IT</IdPaese><IdCodice>12345678903</IdCodice></IdTrasmittente><ProgressivoInvio>1</ProgressivoInvio><FormatoTrasmissione>FSM10</FormatoTrasmissione><CodiceDestinatario>0000000</CodiceDestinatario></DatiTrasmissione>
<CedentePrestatore><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>01234567897</IdCodice></IdFiscaleIVA><Denominazione>Bar Sport</Denominazione><Sede><Indirizzo>Via Roma 1</Indirizzo><CAP>20121</CAP><Comune>Milano</Comune><Nazione>IT</Nazione></Sede><RegimeFiscale>RF01</RegimeFiscale></CedentePrestatore>
<CessionarioCommittente><IdentificativiFiscali><IdFiscaleIVA><IdPaese>IT</IdPaese><IdCodice>07643520567</IdCodice></IdFiscaleIVA></IdentificativiFiscali></CessionarioCommittente></FatturaElettronicaHeader>
<FatturaElettronicaBody><DatiGenerali><DatiGeneraliDocumento><TipoDocumento>TD07</TipoDocumento><Divisa>EUR</Divisa><Data>2026-03-02</Data><Numero>S-1</Numero></DatiGeneraliDocumento></DatiGenerali>
<DatiBeniServizi><Descrizione>Pranzo</Descrizione><Importo>100.00</Importo><DatiIVA><Aliquota>10.00</Aliquota></DatiIVA></DatiBeniServizi></FatturaElettronicaBody></p:FatturaElettronicaSemplificata>`

func TestSimplifiedInvoicesHaveTheirOwnChecks(t *testing.T) {
	for _, x := range []struct {
		from, to string
		codes    []string
	}{
		{"", "", nil},
		{"100.00", "400.01", []string{sdiwire.SimplifiedTooMuch}},
		{"<Aliquota>10.00</Aliquota>", "<Aliquota>0.00</Aliquota>", []string{sdiwire.LineNaturaMissing}},
		{"</DatiIVA>", "</DatiIVA><Natura>N4</Natura>", []string{sdiwire.LineNaturaUnexpected}},
		{"07643520567", "01234567897", []string{sdiwire.SamePerson}},
		{"S-1", "S", []string{sdiwire.NumberWithoutDigit}},
		{"07643520567", "07643520568", []string{sdiwire.BuyerVATUnknown}},
		{"</DatiGeneraliDocumento>",
			"</DatiGeneraliDocumento><DatiFatturaRettificata><NumeroFR>1</NumeroFR><DataFR>2026-03-03</DataFR><ElementiRettificati>x</ElementiRettificati></DatiFatturaRettificata>", []string{sdiwire.BeforeOriginal}},
	} {
		if got := sdi.Judge([]byte(strings.Replace(simplified, x.from, x.to, 1)), day()); !slices.Equal(got, x.codes) {
			t.Errorf("%v instead of %v: %s", got, x.codes, x.to)
		}
	}
}

package it

import (
	"encoding/base64"
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/text"
	"tributary/internal/incoming"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// bodiesMax is how many invoices may stand in one file.
const bodiesMax = 1000

// spaceSimplified is the namespace of simplified invoices (FSM10).
const spaceSimplified = "http://ivaservizi.agenziaentrate.gov.it/docs/xsd/fatture/v1.0"

// unverified stands among what was not read of a signed file.
const unverified = "signature of the file: not verified"

// formats are the ordinary and the simplified invoice, and either signed.
func formats() []country.Format {
	return []country.Format{
		{Name: incoming.FatturaPA, Space: sdiwire.SpaceInvoice, Root: "FatturaElettronica", Read: ReadAll},
		{Name: incoming.FatturaPA, Space: spaceSimplified, Root: "FatturaElettronicaSemplificata", Read: ReadAll},
		{Name: incoming.FatturaPA, Begins: IsSigned, Read: ReadAll},
	}
}

// Read reads a file with one invoice.
func Read(file []byte) (*incoming.Document, error) {
	all, err := ReadAll(file)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%w: the file has %d invoices", incoming.ErrInvalid, len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// ReadAll reads each invoice of a file, which may be signed.
func ReadAll(file []byte) ([]*incoming.Document, error) {
	document, signed, err := opened(file)
	if err != nil {
		return nil, err
	}
	s, err := incoming.Parse(document)
	if err != nil {
		return nil, err
	}
	simplified := s.Root.Is(spaceSimplified, "FatturaElettronicaSemplificata")
	if !simplified && (s.Root.Local != "FatturaElettronica" || !strings.HasPrefix(s.Root.Space, "http")) {
		return nil, fmt.Errorf("%w: the root {%s}%s is not FatturaPA", incoming.ErrInvalid, s.Root.Space, s.Root.Local)
	}
	s.Text(s.Root, "@versione")
	s.Text(s.Root, "@SistemaEmittente")
	s.Ignore(s.Root, "Signature")
	if signed || s.Root.At("Signature") != nil {
		s.MissAt(unverified)
	}
	head := readHead(s, simplified)
	bodies := s.Root.All("FatturaElettronicaBody")
	if len(bodies) == 0 || len(bodies) > bodiesMax {
		return nil, fmt.Errorf("%w: the file has %d invoices, not 1 to %d", incoming.ErrInvalid, len(bodies), bodiesMax)
	}
	s.Leave(s.Root.At("FatturaElettronicaHeader"))
	s.LeaveAttributes(s.Root)
	all := make([]*incoming.Document, 0, len(bodies))
	for _, body := range bodies {
		d := *head
		b := bill{Source: s.Part(), body: body, d: &d}
		if simplified {
			b.simplified()
		} else {
			b.read()
		}
		if _, err := b.Finish(&d, body); err != nil {
			return nil, err
		}
		all = append(all, &d)
	}
	return all, nil
}

// readHead reads what all invoices of a file share.
func readHead(s *incoming.Source, simplified bool) *incoming.Document {
	d := &incoming.Document{Format: incoming.FatturaPA}
	h := s.Root.At("FatturaElettronicaHeader")
	way := h.At("DatiTrasmissione")
	seller, buyer := h.At("CedentePrestatore"), h.At("CessionarioCommittente")
	s.Ignore(way, "IdTrasmittente")
	for _, of := range []string{"ProgressivoInvio", "FormatoTrasmissione"} {
		s.Text(way, of)
	}
	if simplified {
		d.Sender = partyIn(s, seller, seller, seller)
		d.Sender.TaxRegime = s.Text(seller, "RegimeFiscale")
		d.Receiver = partyIn(s, buyer.At("IdentificativiFiscali"), buyer.At("AltriDatiIdentificativi"), buyer.At("AltriDatiIdentificativi"))
	} else {
		d.Sender, d.Receiver = readParty(s, seller), readParty(s, buyer)
		for _, third := range [][2]string{{"RappresentanteFiscale", "tax representative"}, {"TerzoIntermediarioOSoggettoEmittente", "issuer"}} {
			if e := h.At(third[0]); e != nil {
				p := readParty(s, e)
				p.Role = third[1]
				d.Others = append(d.Others, p)
			}
		}
	}
	d.References.Buyer = s.Text(seller, "RiferimentoAmministrazione")
	code, pec := s.Text(way, "CodiceDestinatario"), s.Text(way, "PECDestinatario")
	switch {
	case pec != "" && (code == "" || code == sdiwire.NoAddress):
		d.Receiver.Electronic = &transaction.ElectronicAddress{Scheme: transaction.SchemePEC, ID: pec}
	case code != "":
		d.Receiver.Electronic = &transaction.ElectronicAddress{Scheme: transaction.SchemeSDI, ID: code}
	}
	return d
}

func readParty(s *incoming.Source, e *xmltree.Element) transaction.Party {
	data := e.At("DatiAnagrafici")
	p := partyIn(s, data, data.At("Anagrafica"), e)
	p.TaxRegime = s.Text(data, "RegimeFiscale")
	if office := s.Text(e, "IscrizioneREA", "Ufficio"); office != "" {
		p.EntityNumber = office + "-" + s.Text(e, "IscrizioneREA", "NumeroREA")
	}
	p.Email, p.Phone = s.Text(e, "Contatti", "Email"), s.Text(e, "Contatti", "Telefono")
	return p
}

// partyIn reads a party whose numbers, names and address stand in these elements.
func partyIn(s *incoming.Source, numbers, names, place *xmltree.Element) transaction.Party {
	p := transaction.Party{LegalName: s.Text(names, "Denominazione"), FiscalCode: s.Text(numbers, "CodiceFiscale"),
		TaxNumber: s.Text(numbers, "IdFiscaleIVA", "IdPaese") + s.Text(numbers, "IdFiscaleIVA", "IdCodice"),
		Address:   readAddress(s, place.At("Sede"))}
	if p.LegalName == "" {
		p.LegalName, p.Type = text.Join(" ", s.Text(names, "Nome"), s.Text(names, "Cognome")), transaction.Individual
	}
	return p
}

func readAddress(s *incoming.Source, e *xmltree.Element) *transaction.Address {
	if e == nil {
		return nil
	}
	return &transaction.Address{AddressLine1: s.Text(e, "Indirizzo"), Number: s.Text(e, "NumeroCivico"), PostalCode: s.Text(e, "CAP"),
		City: s.Text(e, "Comune"), Province: s.Text(e, "Provincia"), CountryCode: s.Text(e, "Nazione")}
}

// bill is one invoice that is being read.
type bill struct {
	*incoming.Source
	body *xmltree.Element
	d    *incoming.Document
}

func (b *bill) read() {
	general := b.body.At("DatiGenerali")
	b.general(general.At("DatiGeneraliDocumento"))
	b.related(general)
	goods := b.body.At("DatiBeniServizi")
	for i, e := range goods.All("DettaglioLinee") {
		b.d.Lines = append(b.d.Lines, b.line(i, e))
	}
	split := b.summary(goods)
	b.payments()
	if b.d.Payable == 0 && len(b.d.Payments) == 0 {
		b.d.Payable = b.d.Gross - b.d.Withheld - split
	}
	b.attachments()
}

func (b *bill) general(e *xmltree.Element) {
	d := b.d
	b.begin(e)
	for _, h := range e.All("DatiRitenuta") {
		held := incoming.Tax{Regime: transaction.Withholding, Rate: b.Number(h, "AliquotaRitenuta"), Amount: b.Amount(h, "ImportoRitenuta"),
			Code: text.Join(":", b.Text(h, "TipoRitenuta"), b.Text(h, "CausalePagamento"))}
		d.Taxes = append(d.Taxes, held)
		d.Withheld = b.Plus(h, d.Withheld, held.Amount)
	}
	if stamp := e.At("DatiBollo"); stamp != nil {
		d.Taxes = append(d.Taxes, incoming.Tax{Regime: "BOLLO", Code: b.Text(stamp, "BolloVirtuale"), Amount: b.Amount(stamp, "ImportoBollo")})
	}
	for _, f := range e.All("DatiCassaPrevidenziale") {
		taxes := []incoming.Tax{b.tax(f, "AliquotaIVA")}
		if b.Text(f, "Ritenuta") == "SI" {
			taxes = append(taxes, incoming.Tax{Regime: transaction.Withholding})
		}
		d.Charges = append(d.Charges, incoming.Extra{Code: b.Text(f, "TipoCassa"), Percent: b.Maybe(f, "AlCassa"),
			Amount: b.Amount(f, "ImportoContributoCassa"), Taxes: taxes})
	}
	for _, x := range e.All("ScontoMaggiorazione") {
		extra := incoming.Extra{Code: b.Text(x, "Tipo"), Percent: b.Maybe(x, "Percentuale"), Amount: b.Amount(x, "Importo")}
		if extra.Code == "MG" {
			d.Charges = append(d.Charges, extra)
		} else {
			d.Allowances = append(d.Allowances, extra)
		}
	}
	d.Gross, d.Rounding = b.Amount(e, "ImportoTotaleDocumento"), b.Amount(e, "Arrotondamento")
	d.Notes = b.Texts(e, "Causale")
}

// begin reads what ordinary and simplified invoices begin with.
func (b *bill) begin(e *xmltree.Element) {
	d := b.d
	d.TypeCode, d.Currency, d.Number, d.Day = b.Text(e, "TipoDocumento"), b.Text(e, "Divisa"), b.Text(e, "Numero"), b.Day(e, "Data")
	b.Money(d.Currency)
	switch d.TypeCode {
	case "TD04", "TD08":
		d.Kind = transaction.Credit
	case "TD05", "TD09":
		d.Kind = transaction.Adjustment
	default:
		d.Kind = transaction.Invoice
	}
}

// related reads what the invoice refers to.
func (b *bill) related(e *xmltree.Element) {
	d := b.d
	order, contract := e.At("DatiOrdineAcquisto"), e.At("DatiContratto")
	d.References.Order, d.References.Contract = b.Text(order, "IdDocumento"), b.Text(contract, "IdDocumento")
	d.References.Project = b.Text(order, "CodiceCommessaConvenzione")
	if d.References.Project == "" {
		d.References.Project = b.Text(contract, "CodiceCommessaConvenzione")
	}
	for _, r := range e.All("DatiFattureCollegate") {
		d.Earlier = append(d.Earlier, incoming.Reference{Number: b.Text(r, "IdDocumento"), Day: b.Day(r, "Data")})
	}
	if main := e.At("FatturaPrincipale"); main != nil {
		d.Earlier = append(d.Earlier,
			incoming.Reference{Number: b.Text(main, "NumeroFatturaPrincipale"), Day: b.Day(main, "DataFatturaPrincipale")})
	}
	if to := readAddress(b.Source, e.At("DatiTrasporto", "IndirizzoResa")); to != nil {
		d.Delivery = &transaction.Delivery{Address: to}
	}
}

func (b *bill) line(i int, e *xmltree.Element) incoming.Line {
	l := incoming.Line{Number: b.Counted(i, e, "NumeroLinea"), Name: b.Text(e, "Descrizione"), Quantity: b.Number(e, "Quantita"),
		Unit: b.Text(e, "UnitaMisura"), UnitPrice: b.Number(e, "PrezzoUnitario"), Net: b.Amount(e, "PrezzoTotale"),
		Period: b.Span(e, "DataInizioPeriodo", "DataFinePeriodo"), Taxes: []incoming.Tax{b.tax(e, "AliquotaIVA")}}
	if b.Text(e, "Ritenuta") == "SI" {
		l.Taxes = append(l.Taxes, incoming.Tax{Regime: transaction.Withholding})
	}
	if kind := b.Text(e, "TipoCessionePrestazione"); kind != "" {
		l.Classes = append(l.Classes, transaction.Classification{Scheme: "TipoCessionePrestazione", Code: kind})
	}
	for _, c := range e.All("CodiceArticolo") {
		switch kind, value := b.Text(c, "CodiceTipo"), b.Text(c, "CodiceValore"); {
		case strings.EqualFold(kind, "EAN") && l.EAN == "":
			l.EAN = value
		case strings.EqualFold(kind, "INTERNO") && l.Code == "":
			l.Code = value
		default:
			l.Classes = append(l.Classes, transaction.Classification{Scheme: kind, Code: value})
		}
	}
	for _, x := range e.All("ScontoMaggiorazione") {
		extra := incoming.Extra{Code: b.Text(x, "Tipo"), Percent: b.Maybe(x, "Percentuale"), Unit: b.Maybe(x, "Importo")}
		if extra.Code == "MG" {
			l.Charges = append(l.Charges, extra)
		} else {
			l.Allowances = append(l.Allowances, extra)
		}
	}
	return l
}

// tax is a rate, or why there is none.
func (b *bill) tax(e *xmltree.Element, rate string) incoming.Tax {
	t := incoming.Tax{Regime: transaction.VAT, Code: b.Text(e, "Natura"), Rate: b.Number(e, rate), Reason: b.Text(e, "RiferimentoNormativo")}
	switch root, _, _ := strings.Cut(t.Code, "."); {
	case root == "N1", root == "N2":
		t.Type = transaction.TaxOutside
	case t.Code == "N3.1":
		t.Type = transaction.TaxExport
	case t.Code == "N3.2":
		t.Type = transaction.TaxIntraEU
	case root == "N4":
		t.Type = transaction.TaxExempt
	case root == "N6":
		t.Type = transaction.TaxReverse
	}
	return t
}

// summary reads the breakdown, and what of it the buyer pays to the treasury.
func (b *bill) summary(goods *xmltree.Element) (split int64) {
	d := b.d
	for _, e := range goods.All("DatiRiepilogo") {
		t := b.tax(e, "AliquotaIVA")
		t.Base, t.Amount = b.Amount(e, "ImponibileImporto"), b.Amount(e, "Imposta")
		d.Net, d.Tax = b.Plus(e, d.Net, t.Base), b.Plus(e, d.Tax, t.Amount)
		if due := b.Text(e, "EsigibilitaIVA"); due != "" {
			if t.Code = text.Join(":", t.Code, due); due == dueByBuyer {
				split += t.Amount
			}
		}
		d.Taxes = append(d.Taxes, t)
	}
	if b.body.At("DatiGenerali", "DatiGeneraliDocumento", "ImportoTotaleDocumento") == nil {
		d.Gross = b.Plus(b.body, b.Plus(b.body, d.Net, d.Tax), d.Rounding)
	}
	return split
}

func (b *bill) payments() {
	d := b.d
	for _, terms := range b.body.All("DatiPagamento") {
		d.PaymentTerms = text.Join(" ", d.PaymentTerms, b.Text(terms, "CondizioniPagamento"))
		for _, e := range terms.All("DettaglioPagamento") {
			p := transaction.Payment{Code: b.Text(e, "ModalitaPagamento"), Amount: b.Amount(e, "ImportoPagamento"), IBAN: b.Text(e, "IBAN"),
				Reference: b.Text(e, "CodicePagamento")}
			p.Type = paymentKind(p.Code)
			if day := b.Day(e, "DataScadenzaPagamento"); day != "" {
				d.Instalments = append(d.Instalments, incoming.Instalment{Day: day, Amount: p.Amount})
			}
			if name := b.Text(e, "Beneficiario"); name != "" && d.Payee == nil {
				d.Payee = &transaction.Payee{Name: name}
			}
			d.Payments = append(d.Payments, p)
			d.Payable = b.Plus(e, d.Payable, p.Amount)
		}
	}
	if len(d.Instalments) > 0 {
		d.DueDay = d.Instalments[0].Day
	}
	if len(d.Instalments) == 1 {
		d.Instalments = nil
	}
}

// paymentKind is ModalitaPagamento in the words of a transaction.
func paymentKind(code string) string {
	switch code {
	case "MP01":
		return "CASH"
	case "MP02", "MP03":
		return "CHECK"
	case "MP05":
		return "TRANSFER"
	case "MP08":
		return "CARD"
	}
	return "OTHER"
}

// attachment reads a file as it is: what was compressed stays so.
func (b *bill) attachment(e *xmltree.Element) {
	a := transaction.Attachment{Name: b.Text(e, "NomeAttachment"), Type: "application/octet-stream"}
	switch strings.ToUpper(b.Text(e, "FormatoAttachment")) {
	case "PDF":
		a.Type = "application/pdf"
	case "PNG":
		a.Type = "image/png"
	case "JPG", "JPEG":
		a.Type = "image/jpeg"
	case "CSV":
		a.Type = "text/csv"
	}
	content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(b.Text(e, "Attachment")), ""))
	if err != nil {
		b.Miss(e.At("Attachment"))
		return
	}
	a.Content = content
	b.d.Attachments = append(b.d.Attachments, a)
}

// simplified reads FSM10, whose amounts include tax.
func (b *bill) simplified() {
	d := b.d
	general := b.body.At("DatiGenerali")
	b.begin(general.At("DatiGeneraliDocumento"))
	if stamp := b.Text(general, "DatiGeneraliDocumento", "BolloVirtuale"); stamp != "" {
		d.Taxes = append(d.Taxes, incoming.Tax{Regime: "BOLLO", Code: stamp})
	}
	if e := general.At("DatiFatturaRettificata"); e != nil {
		d.Earlier = append(d.Earlier, incoming.Reference{Number: b.Text(e, "NumeroFR"), Day: b.Day(e, "DataFR")})
		d.Notes = append(d.Notes, b.Text(e, "ElementiRettificati"))
	}
	for i, e := range b.body.All("DatiBeniServizi") {
		l := incoming.Line{Number: int64(i) + 1, Name: b.Text(e, "Descrizione"), Gross: true, Net: b.Amount(e, "Importo")}
		t := b.tax(e, "")
		t.Rate, t.Amount = b.Number(e, "DatiIVA", "Aliquota"), b.Amount(e, "DatiIVA", "Imposta")
		l.Taxes = []incoming.Tax{t}
		d.Lines = append(d.Lines, l)
		d.Taxes = append(d.Taxes, t)
		d.Gross, d.Tax = b.Plus(e, d.Gross, l.Net), b.Plus(e, d.Tax, t.Amount)
	}
	d.Net, d.Payable = d.Gross-d.Tax, d.Gross
	b.attachments()
}

func (b *bill) attachments() {
	for _, e := range b.body.All("Allegati") {
		b.attachment(e)
	}
}

package it

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"

	"tributary/internal/country/amount"
	"tributary/internal/official/sdiwire"
	"tributary/internal/transaction"
	"tributary/internal/xmltree"
)

// write writes the file. The order of elements is the schema's.
func (d *invoice) write() []byte {
	w := xmltree.NewWriter(4096 + 512*len(d.lines))
	w.Declare()
	w.Start("p:FatturaElettronica", "xmlns:p", sdiwire.SpaceInvoice, "versione", d.format)
	w.Start("FatturaElettronicaHeader")
	d.writeTransmission(w)
	d.writeSeller(w)
	d.writeBuyer(w)
	if d.third != nil {
		w.Start("TerzoIntermediarioOSoggettoEmittente")
		d.third.writeParty(w, "")
		w.End()
	}
	w.Maybe("SoggettoEmittente", d.issuer)
	w.End()
	w.Start("FatturaElettronicaBody")
	d.writeGeneral(w)
	w.Start("DatiBeniServizi")
	at := 0
	for i := range d.lines {
		if l := &d.lines[i]; l.fund.kind == "" {
			at++
			l.write(w, at)
		}
	}
	for i := range d.groups {
		d.groups[i].write(w, d.lawOf(d.groups[i]))
	}
	w.End()
	d.writePayments(w)
	d.writeAttachments(w)
	w.End()
	w.End()
	return w.Bytes()
}

// writeAttachments writes what the client sent with the invoice; a credit takes the
// invoice back, not what came with it.
func (d *invoice) writeAttachments(w *xmltree.Writer) {
	if !d.Whole() {
		return
	}
	for i := range d.Attachments {
		a := &d.Attachments[i]
		w.Group("Allegati", "NomeAttachment", cmp.Or(latin(a.Name, 60), "-"), "FormatoAttachment", a.Short(), "Attachment",
			base64.StdEncoding.EncodeToString(a.Content))
	}
}

func (d *invoice) writeTransmission(w *xmltree.Writer) {
	w.Start("DatiTrasmissione")
	w.Group("IdTrasmittente", "IdPaese", d.transmitter[0], "IdCodice", d.transmitter[1])
	w.Leaves("ProgressivoInvio", d.progressive, "FormatoTrasmissione", d.format, "CodiceDestinatario", d.recipient,
		"?PECDestinatario", d.pec)
	w.End()
}

func (p party) writeNumbers(w *xmltree.Writer) {
	if p.id != "" {
		w.Group("IdFiscaleIVA", "IdPaese", p.country, "IdCodice", p.id)
	}
	w.Maybe("CodiceFiscale", p.code)
}

// writeParty writes who somebody is and, of a seller, under which regime.
func (p party) writeParty(w *xmltree.Writer, regime string) {
	w.Start("DatiAnagrafici")
	p.writeNumbers(w)
	w.Group("Anagrafica", "Denominazione", cmp.Or(p.name, "-"))
	w.Maybe("RegimeFiscale", regime)
	w.End()
}

func (s sede) write(w *xmltree.Writer) { s.writeAs(w, "Sede") }

func (s sede) writeAs(w *xmltree.Writer, name string) {
	w.Group(name, "Indirizzo", s.street, "?NumeroCivico", s.house, "CAP", s.cap, "Comune", s.city, "?Provincia",
		s.province, "Nazione", s.nation)
}

func (d *invoice) writeSeller(w *xmltree.Writer) {
	w.Start("CedentePrestatore")
	d.seller.writeParty(w, d.regime)
	sedeOf(d.seller.address, d.seller.nation).write(w)
	if d.rea != nil {
		w.Group("IscrizioneREA", "Ufficio", d.rea.office, "NumeroREA", d.rea.number, "?CapitaleSociale", d.rea.capital,
			"?SocioUnico", d.rea.shareholder, "StatoLiquidazione", d.rea.state)
	}
	w.Maybe("RiferimentoAmministrazione", d.reference)
	w.End()
}

func (d *invoice) writeBuyer(w *xmltree.Writer) {
	w.Start("CessionarioCommittente")
	d.buyer.writeParty(w, "")
	sedeOf(d.buyer.address, d.buyer.nation).write(w)
	w.End()
}

func (d *invoice) writeGeneral(w *xmltree.Writer) {
	w.Start("DatiGenerali")
	w.Start("DatiGeneraliDocumento")
	w.Leaves("TipoDocumento", d.kind.code, "Divisa", ownMoney, "Data", d.date, "Numero", d.Number())
	for _, h := range d.held {
		w.Group("DatiRitenuta", "TipoRitenuta", h.kind, "ImportoRitenuta", euros(h.amount), "AliquotaRitenuta",
			percent(h.rate), "CausalePagamento", h.reason)
	}
	if d.stamp {
		w.Group("DatiBollo", "BolloVirtuale", "SI", "ImportoBollo", stampDuty)
	}
	for i := range d.lines {
		if l := &d.lines[i]; l.fund.kind != "" {
			d.writeFund(w, l)
		}
	}
	w.Leaf("ImportoTotaleDocumento", euros(d.total))
	if d.rounding != 0 {
		w.Leaf("Arrotondamento", euros(d.rounding))
	}
	for _, text := range d.texts {
		w.Leaf("Causale", text)
	}
	w.End()
	d.order.write(w, "DatiOrdineAcquisto")
	d.contract.write(w, "DatiContratto")
	d.original.write(w, "DatiFattureCollegate")
	d.writeDeliveries(w)
	if to := d.Delivery; to != nil && to.Address != nil {
		w.Start("DatiTrasporto")
		sedeOf(*to.Address, strings.ToUpper(to.Address.CountryCode)).writeAs(w, "IndirizzoResa")
		w.End()
	}
	w.End()
}

func (r related) write(w *xmltree.Writer, name string) {
	if r.id != "" {
		w.Group(name, "IdDocumento", r.id, "?Data", r.date, "?CodiceCommessaConvenzione", r.project)
	}
}

func (l *line) write(w *xmltree.Writer, at int) {
	w.Start("DettaglioLinee")
	w.Leaf("NumeroLinea", strconv.Itoa(at))
	switch e := l.Item.Extra; {
	case l.Item.Type == transaction.Discount:
		w.Leaf("TipoCessionePrestazione", "SC")
	case e != nil && e.Charge:
		w.Leaf("TipoCessionePrestazione", "AC") // spesa accessoria
	}
	l.writeCodes(w)
	w.Leaves("Descrizione", l.text, "Quantita", amount.Of(l.quantity).Trimmed(cents), "?UnitaMisura", ascii(l.Item.Unit, 10),
		"?DataInizioPeriodo", l.span.From, "?DataFinePeriodo", l.span.To, "PrezzoUnitario", l.price.Trimmed(cents))
	if l.discount != nil {
		kind, off := "SC", *l.discount
		if off.Sign() < 0 { // it follows the sign of its line: a negative one is lowered by less
			kind, off = "MG", off.Neg()
		}
		w.Group("ScontoMaggiorazione", "Tipo", kind, "Importo", off.Trimmed(cents))
	}
	w.Leaves("PrezzoTotale", euros(l.Net), "AliquotaIVA", percent(l.rate), "?Ritenuta", l.heldText(), "?Natura", l.natura)
	if l.contin {
		w.Group("AltriDatiGestionali", "TipoDato", "INVCONT")
	}
	if l.intent.id != "" {
		w.Group("AltriDatiGestionali", "TipoDato", schemeIntent, "RiferimentoTesto", l.intent.id, "?RiferimentoData", l.intent.date)
	}
	w.End()
}

// heldText is Ritenuta, left out where nothing is withheld.
func (l *line) heldText() string {
	if l.held {
		return "SI"
	}
	return ""
}

func (l *line) writeCodes(w *xmltree.Writer) {
	add := func(kind, value string) {
		if kind, value = ascii(kind, 35), latin(value, 35); kind != "" && value != "" {
			w.Group("CodiceArticolo", "CodiceTipo", kind, "CodiceValore", value)
		}
	}
	add("EAN", l.Item.EAN)
	add("INTERNO", l.Item.Code)
	for _, c := range l.Item.Classifications {
		if !strings.EqualFold(c.Scheme, schemeIntent) && !strings.EqualFold(c.Scheme, schemeDelivery) {
			add(c.Scheme, c.Code)
		}
	}
}

func (g *group) write(w *xmltree.Writer, law string) {
	w.Group("DatiRiepilogo", "AliquotaIVA", percent(g.rate), "?Natura", g.natura, "ImponibileImporto", euros(g.net),
		"Imposta", euros(g.tax),
		"?EsigibilitaIVA", g.due, "?RiferimentoNormativo", law)
}

// beneficiary is who gets the money, where that is not the seller.
func (d *invoice) beneficiary() string {
	if d.Payee == nil {
		return ""
	}
	return latin(d.Payee.Name, 200)
}

func (d *invoice) writePayments(w *xmltree.Writer) {
	if len(d.payments) == 0 {
		return
	}
	terms := "TP02"
	if len(d.payments) > 1 {
		terms = "TP01"
	}
	w.Start("DatiPagamento")
	w.Leaf("CondizioniPagamento", terms)
	for _, p := range d.payments {
		w.Group("DettaglioPagamento", "?Beneficiario", d.beneficiary(), "ModalitaPagamento", p.method,
			"?DataScadenzaPagamento", d.DueDate, "ImportoPagamento", euros(p.amount),
			"?IBAN", p.iban, "?CodicePagamento", p.reference)
	}
	w.End()
}

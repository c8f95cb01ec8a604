package it

import (
	"strings"

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
		w.Start("DatiAnagrafici")
		d.third.writeNumbers(w)
		writeName(w, d.third.name)
		w.End()
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
	w.End()
	w.End()
	return w.Bytes()
}

func (d *invoice) writeTransmission(w *xmltree.Writer) {
	w.Start("DatiTrasmissione")
	w.Start("IdTrasmittente")
	w.Leaf("IdPaese", d.transmitter[0])
	w.Leaf("IdCodice", d.transmitter[1])
	w.End()
	w.Leaf("ProgressivoInvio", d.progressive)
	w.Leaf("FormatoTrasmissione", d.format)
	w.Leaf("CodiceDestinatario", d.recipient)
	w.Maybe("PECDestinatario", d.pec)
	w.End()
}

func (p party) writeNumbers(w *xmltree.Writer) {
	if p.id != "" {
		w.Start("IdFiscaleIVA")
		w.Leaf("IdPaese", p.country)
		w.Leaf("IdCodice", p.id)
		w.End()
	}
	w.Maybe("CodiceFiscale", p.code)
}

func writeName(w *xmltree.Writer, name string) {
	if name == "" {
		name = "-"
	}
	w.Start("Anagrafica")
	w.Leaf("Denominazione", name)
	w.End()
}

func (s sede) write(w *xmltree.Writer) {
	w.Start("Sede")
	w.Leaf("Indirizzo", s.street)
	w.Maybe("NumeroCivico", s.house)
	w.Leaf("CAP", s.cap)
	w.Leaf("Comune", s.city)
	w.Maybe("Provincia", s.province)
	w.Leaf("Nazione", s.nation)
	w.End()
}

func (d *invoice) writeSeller(w *xmltree.Writer) {
	w.Start("CedentePrestatore")
	w.Start("DatiAnagrafici")
	d.seller.writeNumbers(w)
	writeName(w, d.seller.name)
	w.Leaf("RegimeFiscale", d.regime)
	w.End()
	sedeOf(d.seller.address, d.seller.nation).write(w)
	if d.rea != nil {
		w.Start("IscrizioneREA")
		w.Leaf("Ufficio", d.rea.office)
		w.Leaf("NumeroREA", d.rea.number)
		w.Maybe("CapitaleSociale", d.rea.capital)
		w.Maybe("SocioUnico", d.rea.shareholder)
		w.Leaf("StatoLiquidazione", d.rea.state)
		w.End()
	}
	w.Maybe("RiferimentoAmministrazione", d.reference)
	w.End()
}

func (d *invoice) writeBuyer(w *xmltree.Writer) {
	w.Start("CessionarioCommittente")
	w.Start("DatiAnagrafici")
	d.buyer.writeNumbers(w)
	writeName(w, d.buyer.name)
	w.End()
	sedeOf(d.buyer.address, d.buyer.nation).write(w)
	w.End()
}

func (d *invoice) writeGeneral(w *xmltree.Writer) {
	w.Start("DatiGenerali")
	w.Start("DatiGeneraliDocumento")
	w.Leaf("TipoDocumento", d.kind.code)
	w.Leaf("Divisa", ownMoney)
	w.Leaf("Data", d.date)
	w.Leaf("Numero", d.number)
	for _, h := range d.held {
		w.Start("DatiRitenuta")
		w.Leaf("TipoRitenuta", h.kind)
		w.Leaf("ImportoRitenuta", euros(h.amount))
		w.Leaf("AliquotaRitenuta", percent(h.rate))
		w.Leaf("CausalePagamento", h.reason)
		w.End()
	}
	if d.stamp {
		w.Start("DatiBollo")
		w.Leaf("BolloVirtuale", "SI")
		w.Leaf("ImportoBollo", stampDuty)
		w.End()
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
	w.End()
}

func (r related) write(w *xmltree.Writer, name string) {
	if r.id == "" {
		return
	}
	w.Start(name)
	w.Leaf("IdDocumento", r.id)
	w.Maybe("Data", r.date)
	w.Maybe("CodiceCommessaConvenzione", r.project)
	w.End()
}

func (l *line) write(w *xmltree.Writer, at int) {
	w.Start("DettaglioLinee")
	w.Leaf("NumeroLinea", itoa(at))
	if l.item.Type == transaction.Discount {
		w.Leaf("TipoCessionePrestazione", "SC")
	}
	l.writeCodes(w)
	w.Leaf("Descrizione", l.text)
	w.Leaf("Quantita", ofAmount(l.quantity).String())
	w.Maybe("UnitaMisura", ascii(l.item.Unit, 10))
	w.Leaf("PrezzoUnitario", l.price.String())
	if l.discount != nil {
		kind, off := "SC", *l.discount
		if off.units.Sign() < 0 { // it follows the sign of its line: a negative one is lowered by less
			kind, off = "MG", negated(off)
		}
		w.Start("ScontoMaggiorazione")
		w.Leaf("Tipo", kind)
		w.Leaf("Importo", off.String())
		w.End()
	}
	w.Leaf("PrezzoTotale", euros(l.total))
	w.Leaf("AliquotaIVA", percent(l.rate))
	if l.held {
		w.Leaf("Ritenuta", "SI")
	}
	w.Maybe("Natura", l.natura)
	if l.contin {
		writeFurther(w, "INVCONT", related{})
	}
	if l.intent.id != "" {
		writeFurther(w, schemeIntent, l.intent)
	}
	w.End()
}

func writeFurther(w *xmltree.Writer, kind string, r related) {
	w.Start("AltriDatiGestionali")
	w.Leaf("TipoDato", kind)
	w.Maybe("RiferimentoTesto", r.id)
	w.Maybe("RiferimentoData", r.date)
	w.End()
}

func (l *line) writeCodes(w *xmltree.Writer) {
	add := func(kind, value string) {
		if kind, value = ascii(kind, 35), latin(value, 35); kind != "" && value != "" {
			w.Start("CodiceArticolo")
			w.Leaf("CodiceTipo", kind)
			w.Leaf("CodiceValore", value)
			w.End()
		}
	}
	add("EAN", l.item.EAN)
	add("INTERNO", l.item.Code)
	for _, c := range l.item.Classifications {
		if !strings.EqualFold(c.Scheme, schemeIntent) && !strings.EqualFold(c.Scheme, schemeDelivery) {
			add(c.Scheme, c.Code)
		}
	}
}

func (g *group) write(w *xmltree.Writer, law string) {
	w.Start("DatiRiepilogo")
	w.Leaf("AliquotaIVA", percent(g.rate))
	w.Maybe("Natura", g.natura)
	w.Leaf("ImponibileImporto", euros(g.net))
	w.Leaf("Imposta", euros(g.tax))
	w.Maybe("EsigibilitaIVA", g.due)
	w.Maybe("RiferimentoNormativo", law)
	w.End()
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
		w.Start("DettaglioPagamento")
		w.Leaf("ModalitaPagamento", p.method)
		w.Maybe("DataScadenzaPagamento", d.due)
		w.Leaf("ImportoPagamento", euros(p.amount))
		w.Maybe("IBAN", p.iban)
		w.Maybe("CodicePagamento", p.reference)
		w.End()
	}
	w.End()
}

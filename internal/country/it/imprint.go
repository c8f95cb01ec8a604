package it

import (
	"cmp"
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// imprint is what stands on the courtesy copy: the invoice itself is the file at
// SdI, in the buyer's reserved area.
func imprint(in country.Issue) country.Imprint {
	var out country.Imprint
	if !in.Drafted() {
		return out
	}
	d := compose(in.Draft(), reading(facts()))
	out.Language, out.Texts, out.Words = "IT", d.printed(in), spoken(in.Transaction)
	if in.AuthorityID1 != "" {
		out.Identifiers = append(out.Identifiers, country.Identifier{Label: "Identificativo SdI", Value: in.AuthorityID1})
	}
	if in.Language == "" || in.Language == "IT" {
		out.Title = titleOf(d.kind.code)
	}
	switch d.kind.code {
	case tdCredit:
		out.Kind = transaction.Credit
	case tdDebit:
		out.Kind = transaction.Adjustment
	}
	out.Negated = d.Sign < 0
	for _, p := range d.payments {
		if p.iban != "" {
			out.Advice = country.Advice{Account: p.iban, Reference: cmp.Or(p.reference, d.Number())}
		}
	}
	return out
}

// paymentWords are those of ModalitaPagamento.
var paymentWords = map[string]string{"MP01": "contanti", "MP02": "assegno", "MP03": "assegno circolare",
	"MP04": "contanti presso Tesoreria", "MP05": "bonifico", "MP06": "vaglia cambiario", "MP07": "bollettino bancario",
	"MP08": "carta di pagamento", "MP09": "RID", "MP10": "RID utenze", "MP11": "RID veloce", "MP12": "RIBA", "MP13": "MAV",
	"MP14": "quietanza erario", "MP15": "giroconto su conti di contabilità speciale", "MP16": "domiciliazione bancaria",
	"MP17": "domiciliazione postale", "MP18": "bollettino di c/c postale", "MP19": "SEPA Direct Debit",
	"MP20": "SEPA Direct Debit CORE", "MP21": "SEPA Direct Debit B2B", "MP22": "trattenuta su somme già riscosse",
	"MP23": "PagoPA"}

// dueWords are those of EsigibilitaIVA.
var dueWords = map[string]string{dueAtOnce: "esigibilità immediata", dueOnPayment: "esigibilità differita",
	dueByBuyer: "scissione dei pagamenti"}

// spoken are the codes of payments, of taxes and of the document in words.
func spoken(t *transaction.Transaction) map[string]string {
	said := map[string]string{}
	add := func(code, words string) {
		if code != "" && words != "" {
			said[code] = words
		}
	}
	add(t.Reason, titleOf(t.Reason))
	for _, p := range t.Payments {
		add(p.Code, paymentWords[strings.ToUpper(p.Code)])
	}
	for i := range t.Items {
		for _, tax := range t.Items[i].Taxes {
			n, _ := naturaOf(tax.Code)
			add(tax.Code, cmp.Or(dueWords[strings.ToUpper(tax.Code)], n.law))
		}
	}
	return said
}

func titleOf(code string) string {
	switch code {
	case tdCredit:
		return "Nota di credito"
	case tdDebit:
		return "Nota di debito"
	case "TD02", "TD03":
		return "Fattura di acconto"
	case "TD06":
		return "Parcella"
	case "TD24", "TD25":
		return "Fattura differita"
	case tdInvoice, "TD26":
		return ""
	}
	if strings.HasPrefix(code, "TD") {
		return "Autofattura / integrazione " + code
	}
	return ""
}

func (d *invoice) printed(in country.Issue) []string {
	texts := []string{"Copia di cortesia della fattura elettronica trasmessa al Sistema di Interscambio"}
	if in.Filing == nil {
		texts[0] = "Copia di cortesia della fattura elettronica"
	}
	if d.kind.side == selling && d.buyer.nation == home && d.buyer.id == "" {
		texts = append(texts, "L'originale è a disposizione del cliente nell'area riservata del sito dell'Agenzia delle Entrate")
	}
	for _, g := range d.groups {
		switch law := d.lawOf(g); {
		case g.natura != "":
			texts = append(texts, g.natura+": "+law)
		case law != "":
			texts = append(texts, law)
		case g.due == dueOnPayment:
			texts = append(texts, "IVA a esigibilità differita")
		}
	}
	if d.stamp {
		texts = append(texts, "Imposta di bollo assolta in modo virtuale: "+stampDuty+" EUR")
	}
	for _, h := range d.held {
		texts = append(texts, fmt.Sprintf("Ritenuta %s %s %%, causale %s: %s EUR", h.kind, percent(h.rate), h.reason,
			euros(h.amount)))
	}
	if d.original.id != "" {
		texts = append(texts, "Rif. fattura "+d.original.id+" del "+d.original.date)
	}
	return texts
}

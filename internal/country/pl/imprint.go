package pl

import (
	"cmp"
	"fmt"
	"strings"

	"tributary/internal/country"
	"tributary/internal/country/amount"
	"tributary/internal/country/pl/wire"
	"tributary/internal/country/taxid"
	"tributary/internal/official/ksefwire"
	"tributary/internal/transaction"
)

// Words that stand at the codes, fixed by ksef-docs, kody-qr.md.
const (
	wordOffline     = "OFFLINE"
	wordCertificate = "CERTYFIKAT"
)

// imprint is what the printed form of an invoice carries when it is handed
// over outside KSeF (art. 106gb sec. 5 and 106nda sec. 8 of the VAT act): KOD I
// with the KSeF number below it, or with OFFLINE while there is none; for an
// invoice issued offline also KOD II with CERTYFIKAT below it.
func imprint(in country.Issue) country.Imprint {
	var out country.Imprint
	var x wire.Extra
	if in.Filing != nil {
		_ = in.Filing.Carried(&x) // what cannot be read has no second code
	}
	offline := x.CodeTwo != ""
	if ksefwire.LooksLikeNumber(in.AuthorityID1) { // it names the day of receipt
		day := in.AuthorityID1[11:19]
		offline = x.Offline(day[:4] + "-" + day[4:6] + "-" + day[6:])
	}
	if in.QRCode != "" {
		code := country.Code{Text: in.QRCode, Title: "KSeF", Caption: in.AuthorityID1}
		if offline {
			code.Title = wordOffline
		}
		if code.Caption == "" {
			code.Caption = wordOffline
		}
		out.Codes = append(out.Codes, code)
	}
	if offline {
		out.Codes = append(out.Codes, country.Code{Text: x.CodeTwo, Title: "KSeF", Caption: wordCertificate})
	}
	if in.AuthorityID1 != "" {
		out.Identifiers = append(out.Identifiers, country.Identifier{Label: "Numer KSeF", Value: in.AuthorityID1})
	}
	out.Negated = in.Transaction != nil && in.Transaction.Kind == transaction.Credit // see compose
	polish := in.Language == "" || in.Language == "PL"
	if polish && in.Transaction != nil && in.Transaction.Kind != transaction.Invoice {
		out.Title = "Faktura korygująca"
	}
	switch t := in.Transaction; {
	case t != nil && settles(t):
		out.Title, out.Kind = map[bool]string{true: "Faktura rozliczeniowa"}[polish], transaction.Invoice
	case t != nil && completes(t):
		out.Title, out.Kind = map[bool]string{true: "Faktura zaliczkowa"}[polish], transaction.Invoice
	case polish && t != nil && t.Kind == transaction.Invoice && len(t.OrderItems) > 0:
		out.Title = "Faktura zaliczkowa"
	}
	if in.Transaction != nil {
		out.Untaxed = untaxed(in.Transaction.Items)
	}
	if in.Transaction != nil && in.Supplier != nil {
		out.Language, out.Words = "PL", spoken(in.Transaction)
	}
	if in.Drafted() {
		d := compose(in.Draft(), reading(facts()))
		out.Texts, out.Advice = d.legalTexts(), d.advice()
	}
	return out
}

// advice is how to pay, and what is paid, as Platnosc says it.
func (d *document) advice() country.Advice {
	out := country.Advice{Account: taxid.Bare(d.Setting(settingBankAccount, "")), Reference: d.Number()}
	if _, paid := d.paid(); !d.correction() {
		out.Paid = &paid
	}
	return out
}

// Words of codes that people have no list of.
var (
	groundWords = map[string]string{"0KR": "stawka 0% w kraju", "0WDT": "wewnątrzwspólnotowa dostawa towarów",
		"0EX": "eksport towarów", "NP1": "dostawa lub usługa poza terytorium kraju",
		codeOutsideToEU: "usługa, art. 100 ust. 1 pkt 4 ustawy", codeReverse: "odwrotne obciążenie", "ZW": "zwolnione",
		codeTriangular: "procedura uproszczona, art. 135 ustawy", codeNoSupply: "poza podstawą opodatkowania (kaucja, odszkodowanie)"}
	effectWords = map[string]string{"1": "korekta skutkująca w dacie faktury pierwotnej",
		"2": "korekta skutkująca w dacie korekty", "3": "korekta skutkująca w innej dacie",
		typeSettlement: "faktura rozliczeniowa", typeAdvance: "faktura zaliczkowa"}
)

// spoken are the codes of lines and of the reason in words.
func spoken(t *transaction.Transaction) map[string]string {
	effect, _, _ := strings.Cut(t.Reason, ":")
	said := map[string]string{t.Reason: effectWords[effect]}
	for i := range t.Items {
		for _, tax := range t.Items[i].Taxes {
			if g, known := groundOf(tax.Code); known {
				said[tax.Code] = cmp.Or(groundWords[g.code], g.words)
			}
		}
	}
	return said
}

// untaxed are the lines that are taxed on their margin: they show neither rate nor
// tax (art. 106e sec. 2 and 3 of the VAT act).
func untaxed(items []transaction.Item) (list []int) {
	for i := range items {
		if j := items[i].OnlyTax(); j >= 0 {
			if g, _ := groundOf(items[i].Taxes[j].Code); g.onMargin() {
				list = append(list, i)
			}
		}
	}
	return list
}

// legalTexts are the words that art. 106e fixes, in Polish whatever the
// document's language.
func (d *document) legalTexts() []string {
	var texts []string
	add := func(yes bool, text string) {
		if yes {
			texts = append(texts, text)
		}
	}
	texts = append(texts, d.thirdTexts()...)
	texts = append(texts, d.advanceTexts()...)
	add(d.moved, "Data wystawienia faktury: "+d.Day(d.issued))
	add(d.supplied != "" && d.supplied != d.Day(d.issued), "Data dokonania dostawy lub wykonania usługi: "+d.supplied)
	add(d.Set(settingCashMethod), "metoda kasowa")
	add(d.SelfBilled(), "samofakturowanie")
	add(d.reversed, "odwrotne obciążenie")
	add(d.triangular, triangular)
	add(d.split, "mechanizm podzielonej płatności")
	add(d.margin.field != "", d.margin.words)
	add(len(d.grounds) > 0, "Zwolnienie od podatku: "+joinGrounds(d.grounds))
	if len(d.Originals) > 0 && d.correction() {
		for _, o := range d.Originals {
			text := fmt.Sprintf("Korekta do faktury %s z dnia %s", o.Number, d.issuedOn(o))
			if ksefwire.LooksLikeNumber(o.AuthorityID1) {
				text += ", numer KSeF " + o.AuthorityID1
			}
			texts = append(texts, text)
		}
		add(d.period() != "", "Okres, do którego odnosi się opust lub obniżka: "+d.period())
		add(d.reason != "", "Przyczyna korekty: "+token(d.reason, textMax))
	}
	if d.Foreign() && d.ExchangeRate != nil {
		if tax := d.ownTax(); tax != 0 {
			texts = append(texts, strings.TrimSpace(fmt.Sprintf("Kwota podatku: %s PLN, kurs %s %s", amount.Text(tax, 2),
				d.ExchangeRate.MinimalString(), d.ExchangeRateDate)))
		}
	}
	return texts
}

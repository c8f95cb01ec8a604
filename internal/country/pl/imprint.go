package pl

import (
	"fmt"
	"strings"
	"time"

	"github.com/microcosm-cc/bluemonday"

	"tributary/internal/country"
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
	var x extra
	if in.Filing != nil {
		x, _ = readExtra(*in.Filing) // what cannot be read has no second code
	}
	offline := x.CodeTwo != ""
	if ksefwire.LooksLikeNumber(in.AuthorityID1) { // it names the day of receipt
		day := in.AuthorityID1[11:19]
		offline = x.offline(day[:4] + "-" + day[4:6] + "-" + day[6:])
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
	if in.Transaction != nil && in.Supplier != nil {
		out.Language, out.Texts = "PL", legalTexts(in)
	}
	return out
}

// legalTexts are the words that art. 106e fixes, in Polish whatever the
// document's language.
func legalTexts(in country.Issue) []string {
	if len(in.Totals.Lines) != len(in.Transaction.Items) {
		return nil
	}
	f := facts()
	draft := country.Draft{Transaction: *in.Transaction, Totals: in.Totals, Supplier: *in.Supplier, Location: in.Location, Now: in.At, Original: in.Original, Shares: in.Shares}
	if in.Filing != nil {
		draft.Now = in.Filing.PreparedAt // when its days were decided
	}
	d := compose(&draft, &f, bluemonday.StrictPolicy())
	var texts []string
	add := func(yes bool, text string) {
		if yes {
			texts = append(texts, text)
		}
	}
	texts = append(texts, d.thirdTexts()...)
	texts = append(texts, d.advanceTexts()...)
	add(d.moved, "Data wystawienia faktury: "+d.day.Format(time.DateOnly))
	add(d.supplied != "" && d.supplied != d.day.Format(time.DateOnly), "Data dokonania dostawy lub wykonania usługi: "+d.supplied)
	add(d.cashMethod(), "metoda kasowa")
	add(d.selfBilled(), "samofakturowanie")
	add(d.reversed, "odwrotne obciążenie")
	add(d.splitPayment(), "mechanizm podzielonej płatności")
	add(d.margin != (scheme{}), d.margin.words)
	add(len(d.grounds) > 0, "Zwolnienie od podatku: "+joinGrounds(d.grounds))
	if in.Original != nil && d.correction() {
		for _, o := range originalsOf(&draft) {
			text := fmt.Sprintf("Korekta do faktury %s z dnia %s", documentNumber(&o.Transaction, o.UniqueNumber), d.issuedOn(o))
			if ksefwire.LooksLikeNumber(o.AuthorityID1) {
				text += ", numer KSeF " + o.AuthorityID1
			}
			texts = append(texts, text)
		}
		add(d.period() != "", "Okres, do którego odnosi się opust lub obniżka: "+d.period())
		add(d.reason != "", "Przyczyna korekty: "+token(d.reason, textMax))
	}
	if d.foreign() && d.t.ExchangeRate != nil {
		if tax := d.ownTax(); tax != 0 {
			texts = append(texts, strings.TrimSpace(fmt.Sprintf("Kwota podatku: %s PLN, kurs %s %s", decimal(tax, 2), d.t.ExchangeRate.MinimalString(), d.t.ExchangeRateDate)))
		}
	}
	return texts
}

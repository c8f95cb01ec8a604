package es_test

import (
	"fmt"
	"testing"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// together is one correction of several drafts that were filed, with what of it
// is for each.
func together(reason, number string, of []country.Draft, shares []int64, items ...transaction.Item) country.Draft {
	d := about(transaction.Adjustment, reason, number, of[0], items...)
	for i := range of {
		d.Shares = append(d.Shares, country.Share{Original: *filed(of[i]).Original, Amount: shares[i]})
		d.Transaction.Shares = append(d.Transaction.Shares,
			transaction.Share{TransactionID: of[i].Transaction.ID, Amount: shares[i]})
	}
	d.Original = &d.Shares[0].Original
	return d
}

// severalSituations: one document that corrects, or stands for, several.
func severalSituations() []situation {
	vat := entry("VAT", "21", "", "")
	acme := at(company, "ES", madrid, "A28015865")
	first, second := draft("S-70", acme, work(12100, vat)), draft("S-71", acme, work(12100, vat))
	first.Transaction.DeliveryDate = "2026-03-25"
	ticket, another := draft("S-1", nil, goods(12100, vat)), draft("S-2", nil, goods(300000, vat))
	other := draft("S-6", at(private, "ES", madrid, "12345678Z"), goods(1_210_000, vat))
	full := settled(together("F3", "S-103", []country.Draft{ticket, another}, []int64{12100, 300000}, goods(312100, vat)),
		func(d *country.Draft) {
			d.Transaction.Customer = acme
		})
	return []situation{
		{Name: "A rebate for the turnover of several invoices",
			Draft: together("", "S-100", []country.Draft{first, second}, []int64{-1210, -2420}, work(-3630, vat)),
			Files: []string{"TipoFactura>R1<", "TipoRectificativa>I<", "<sf:NumSerieFactura>S-70<", "<sf:NumSerieFactura>S-71<",
				"ImporteTotal>-36.30<",
				"words: Rectifica la factura S-70 de fecha 01/04/2026", "words: Rectifica la factura S-71 de fecha 01/04/2026"}},
		{Name: "Several invoices are replaced by one",
			Draft: together("R4-S", "S-101", []country.Draft{first, second}, []int64{6050, 12100}, work(18150, vat)),
			Files: []string{"TipoFactura>R4<", "TipoRectificativa>S<", "BaseRectificada>200.00<", "CuotaRectificada>42.00<",
				"ImporteTotal>181.50<"}},
		{Name: "Several tickets are corrected together",
			Draft: together("", "S-102", []country.Draft{ticket, another}, []int64{-1210, -1210}, goods(-2420, vat)),
			Files: []string{"TipoFactura>R5<", "<sf:NumSerieFactura>S-1<", "<sf:NumSerieFactura>S-2<"},
			Not:   []string{"Destinatarios"}},
		{Name: "A customer comes back with several tickets and a NIF", Draft: full,
			Files: []string{"TipoFactura>F3<", "<sf:NumSerieFactura>S-1<", "<sf:NumSerieFactura>S-2<", "ImporteTotal>3121.00<",
				"words: Sustituye a la factura simplificada S-1 de fecha 01/04/2026",
				"words: Sustituye a la factura simplificada S-2 de fecha 01/04/2026"}, Not: []string{"TipoRectificativa"}},
		{Name: "A ticket and an invoice are corrected together",
			Draft:  together("", "S-104", []country.Draft{first, ticket}, []int64{-100, -110}, work(-210, vat)),
			Refuse: "simplified and full", Field: "references.1.transaction_id"},
		{Name: "Invoices of two customers are corrected together",
			Draft:  together("", "S-105", []country.Draft{first, other}, []int64{-100, -110}, work(-210, vat)),
			Refuse: "another customer", Field: "references.1.transaction_id"},
		{Name: "The records of several invoices are mended together",
			Draft:  together("S", "S-70", []country.Draft{first, second}, []int64{6050, 6050}, work(12100, vat)),
			Refuse: "one entry", Field: "references"},
	}
}

// What a correction of several takes from each is told to the book of each.
func TestEffectsOfACorrectionOfSeveral(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"A rebate for the turnover of several invoices":        "[]",
		"Several invoices are replaced by one":                 "[{-6050 -12100 false true} {0 -12100 false true}]",
		"A customer comes back with several tickets and a NIF": "[{-12100 -12100 true false} {-300000 -300000 true false}]",
	} {
		for _, s := range severalSituations() {
			if s.Name != name {
				continue
			}
			f, err := channelOf().Prepare(s.Draft)
			if got := fmt.Sprint(f.Effects); err != nil || got != want || f.Effect != nil {
				t.Errorf("%s: %s %v", name, got, err)
			}
		}
	}
}

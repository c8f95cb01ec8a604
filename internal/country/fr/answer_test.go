package fr_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/incoming"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// answered is an answer of our company to an invoice of a seller.
func answered(status, reason, note string) transaction.Answer {
	return transaction.Answer{Status: status, Reason: reason, Note: note, To: transaction.Answered{Format: incoming.CII, TypeCode: "380",
		Number: "F/2026-1", Day: "2026-10-01", Currency: "EUR", Gross: 120_000, Sender: *business()}}
}

// Every status that a company can give is taken by the official rules of statuses; those that they refuse are refused
// before.
func TestTheOfficialRulesTakeEveryAnswer(t *testing.T) {
	t.Parallel()
	rules := needs.Schemas(t, "fr-ctc", "xslt", "20260804_BR-FR-CDV-Schematron-CDAR_V1.4.0.03.xslt")
	ch := open(t, country.Endpoint{})
	var trials []packtest.Trial
	for _, said := range [][3]string{{transaction.Accepted, "", ""}, {transaction.Accepted, "", "bien reçu"}, {transaction.Paid, "", ""},
		{transaction.Rejected, "DOUBLON", ""}, {transaction.Rejected, "ADR_ERR", "l'adresse <est> fausse & vieille"},
		{transaction.Disputed, "TX_TVA_ERR", "10 %"}, {transaction.Disputed, "SIRET_ERR", ""}} {
		a := answered(said[0], said[1], said[2])
		if found := pack().Answerable(supplier(), a); len(found) > 0 {
			t.Errorf("%v: %v", said, found)
		}
		d := draft("", nil)
		d.Transaction.Kind, d.Transaction.Answer, d.OperationID = transaction.Response, &a, strings.Join(said[:], "/")
		trials = append(trials, packtest.Trial{Rules: rules, Document: packtest.Prepared(t, ch, d).Report})
	}
	trials = append(trials, packtest.Trial{Rules: rules, Document: []byte(strings.Replace(string(trials[3].Document), "DOUBLON", "AUTRE", 1))})
	for i, v := range packtest.Judge(t, trials) {
		switch last := i == len(trials)-1; {
		case last && len(v.Errors) == 0:
			t.Error("a reason of another status is taken")
		case !last && (v.Fired == 0 || len(v.Errors) > 0):
			t.Errorf("refused: %s\n%s", strings.Join(v.Texts, "\n"), trials[i].Document)
		}
	}
	for name, wrong := range map[string]func(*transaction.Answer){
		"a refusal without a reason": func(a *transaction.Answer) { a.Status = transaction.Rejected },
		"a reason of another status": func(a *transaction.Answer) { a.Status, a.Reason = transaction.Rejected, "AUTRE" },
		"a reason to accept":         func(a *transaction.Answer) { a.Reason = "DOUBLON" },
		"no SIREN":                   func(a *transaction.Answer) { a.To.Sender.EntityNumber, a.To.Sender.TaxNumber = "", "" },
		"a document of Italy":        func(a *transaction.Answer) { a.To.Format = incoming.FatturaPA },
		"no number":                  func(a *transaction.Answer) { a.To.Number = "" },
	} {
		a := answered(transaction.Accepted, "", "")
		wrong(&a)
		if found := pack().Answerable(supplier(), a); len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

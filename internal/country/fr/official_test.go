package fr_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/needs"
)

// Every document of this package is judged by the official rules, in one run: CII,
// which Factur-X carries, by those of flow 2; what is plain EN 16931 in it also by
// those of Factur-X, of which the gate asks a few. The rules of flow 2 for UBL need
// another engine than Saxon 9.9: of UBL the schema and EN 16931 are judged here.
func TestTheOfficialRulesTakeEveryDocument(t *testing.T) {
	t.Parallel()
	ch := open(t, country.Endpoint{})
	french := needs.Schemas(t, "fr-ctc", "xslt", "20260804_BR-FR-Flux2-Schematron-CII_V1.4.0.03.xslt")
	hybrid := needs.Schemas(t, "factur-x", "xslt", "FACTUR-X_EN16931.xslt")
	european := needs.Schemas(t, "en16931", "ubl", "xslt", "EN16931-UBL-validation.xslt")
	reports := packtest.Reports(t, ch, cases(), situations())
	reports = append(reports, packtest.RandomReports(t, pack(), ch, func(number string, seed int) country.Draft {
		return draft(number, business(), packtest.RandomItems(seed, "20", "5.5")...)
	})...)
	broken := strings.Replace(string(reports[0]), `schemeID="0225">552100554<`, `schemeID="0225">999999998<`, 1)
	trials := []packtest.Trial{{Rules: french, Document: []byte(broken)}}
	bySchema := map[string][][]byte{}
	for i, r := range reports {
		schema := needs.Schemas(t, "factur-x", "xsd", "en16931", "FACTUR-X_EN16931.xsd")
		switch text := string(r); {
		case strings.Contains(text, "<rsm:CrossIndustryInvoice "):
			trials = append(trials, packtest.Trial{Rules: french, Document: r})
			if needs.Conformance() || i%12 == 0 {
				trials = append(trials, packtest.Trial{Rules: hybrid, Document: r})
			}
		case strings.Contains(text, "<CreditNote "):
			schema = needs.Schemas(t, "ubl21", "maindoc", "UBL-CreditNote-2.1.xsd")
			trials = append(trials, packtest.Trial{Rules: european, Document: r})
		default:
			schema = needs.Schemas(t, "ubl21", "maindoc", "UBL-Invoice-2.1.xsd")
			trials = append(trials, packtest.Trial{Rules: european, Document: r})
		}
		bySchema[schema] = append(bySchema[schema], r)
	}
	packtest.Takes(t, trials)
	packtest.Conform(t, bySchema)
}

// The official rules of messages take what we say of an invoice.
func TestTheOfficialRulesTakeAStatus(t *testing.T) {
	t.Parallel()
	rules := needs.Schemas(t, "fr-ctc", "xslt", "20260804_BR-FR-CDV-Schematron-CDAR_V1.4.0.03.xslt")
	ch := open(t, country.Endpoint{})
	sold := draft("PAID-9", business(), service(item("Pose", 1, 10000, vat("10"))), service(item("Conseil", 1, 5000, vat("20"))))
	d := paymentOf("P-9", sold.Totals.Gross, sold)
	d.Shares[0].Report = packtest.Prepared(t, ch, sold).Report
	text := packtest.Prepared(t, ch, d).Report
	broken := strings.ReplaceAll(string(text), "<ram:ValuePercent>10</ram:ValuePercent>", "")
	packtest.Takes(t, []packtest.Trial{{Rules: rules, Document: []byte(broken)}, {Rules: rules, Document: text}})
}

// open is a channel to an endpoint; without one, to nobody.
func open(t testing.TB, at country.Endpoint) country.Channel { return packtest.Open(t, pack(), at) }

package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/transaction"
)

func TestAnOutageIsSeenFromEverywhere(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Unavailable, Times: 100_000, On: authority.OnAny})
	h.run()
	id := h.submit("INV-1")
	b := h.as(operator.Acting)
	b.await("/transactions/"+id, "1 failed call", "Retry now")
	for failed := 2; failed <= 4; failed++ { // an outage is a string of calls that fail alike
		_, err := h.service.Retry(t.Context(), id, nil)
		must(t, err)
		b.await("/transactions/"+id, fmt.Sprintf("%d failed calls in a row", failed))
	}
	for path, wants := range map[string][]string{
		"/": {"authority error since", "nothing was taken",
			"/console/transactions?country=XX&amp;status=PROCESSING"},
		"/queues": {"authority error since", "/console/transactions?status=PROCESSING&amp;stage="},
		"/authorities": {"Recent calls", "nothing was taken", "/console/transactions?reason=authority_error&amp;country=XX",
			"send"},
		"/transactions?status=PROCESSING&country=XX": {id},
	} {
		page := b.get(path)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %q:\n%s", path, want, gist(page))
			}
		}
	}
	page := b.await("/transactions/"+id, "What to do:", "authority_error", " out, ")
	if n := strings.Count(page, `<li class="bad">`); n != 1 || !strings.Contains(page, "4 × submission failed") {
		t.Errorf("4 calls failed alike, and %d lines say so:\n%s", n, gist(page))
	}
	if strings.Contains(page, "does not respond") {
		t.Errorf("an error of the authority's is taken for silence:\n%s", gist(page))
	}
}

func TestAReceiverThatFailsOpensItsBreakerOnThePages(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.refuse.Store(true)
	h.run()
	for i := range 25 {
		h.submit(fmt.Sprintf("INV-%d", i))
	}
	b := h.as(operator.Viewer)
	page := b.await("/deliveries", "paused: failing")
	if !strings.Contains(page, "next attempt <time") {
		t.Errorf("the page does not say when the next probe goes out:\n%s", gist(page))
	}
	if n := strings.Count(page, `data-name="URL"`); n != 1 {
		t.Errorf("one address of a client stands %d times on the page:\n%s", n, gist(page))
	}
	acting := h.as(operator.Acting)
	event := upTo(t, page, `href="/console/deliveries/events/`)
	answer := acting.noticed(acting.post("/deliveries/events/"+event+"/redeliver", url.Values{}), "behind-breaker")
	if strings.Contains(answer, "is being sent again") || !strings.Contains(answer, "Its receiver is failing") {
		t.Errorf("a redelivery behind an open breaker is promised:\n%s", gist(answer))
	}
	if page := b.get("/"); !strings.Contains(page, "paused: failing") {
		t.Errorf("the overview does not show it:\n%s", gist(page))
	}
	b.await("/alerts", "Webhooks paused: receiver failing")
	if page := b.get("/queues"); !strings.Contains(page, "status=pending") {
		t.Errorf("the queue does not show what waits:\n%s", gist(page))
	}
}

// A login is good today; the page says until when the authority takes it, and
// what is needed then.
func TestLoginsThatAnAuthorityStopsTakingShowTheirEnd(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	_, err := h.companies.Ensure(t.Context(), clientID, onboarding.NewCompany{
		ExternalID: "shop-3", CountryCode: "IE", LanguageCode: "en", LegalName: "Signed In Ltd", TaxNumber: "IE6388047V",
		TaxRegime: transaction.VAT,
		Address: transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D01 F5P2",
			AddressLine1: "2 Sample Street"},
		Credentials: country.Credentials{Secret: "a-token-of-theirs"},
	})
	must(t, err)
	page := h.as(operator.Admin).get("/suppliers?ending=3650&country=IE") // it is among those that end
	if !strings.Contains(page, "Signed In Ltd") || !strings.Contains(page, "until 2035-12-31") ||
		!strings.Contains(page, "a certificate is required afterwards") || strings.Contains(page, "a-token") {
		t.Errorf("a login's end is not shown:\n%s", gist(page))
	}
}

func TestCredentialsShowTheirEndAndNothingElse(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	file, secretWord, err := identity.Test("XX987654321", "Certified Ltd", time.Now())
	must(t, err)
	_, err = h.companies.Ensure(t.Context(), clientID, onboarding.NewCompany{
		ExternalID: "shop-2", CountryCode: "XX", LanguageCode: "en", LegalName: "Certified Ltd", TaxNumber: "XX987654321",
		TaxRegime: transaction.VAT,
		Address: transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345",
			AddressLine1: "2 Sample Street"},
		Credentials: country.Credentials{PKCS12: file, Password: secretWord},
	})
	must(t, err)
	b := h.as(operator.Admin)
	page := b.get("/suppliers?ending=3650&country=XX")
	if !strings.Contains(page, "Certified Ltd") ||
		!strings.Contains(page, "until 20") && !strings.Contains(page, "expires in") ||
		strings.Contains(page, "Reference Trading") {
		t.Errorf("certificates that end are not listed with their end:\n%s", gist(page))
	}
	if strings.Contains(page, secretWord) {
		t.Error("the page shows the password of a certificate")
	}
	if page := b.get("/suppliers?q=nobody"); !strings.Contains(page, "No suppliers found") {
		t.Errorf("an unknown supplier:\n%s", gist(page))
	}
}

func TestCorrectionsAreLinkedBothWaysAndAttemptsToEachOther(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.script(authority.Step{Outcome: authority.Reject, Times: 1})
	h.run()
	b := h.as(operator.Viewer)
	failed := h.submit("INV-1")
	b.await("/transactions/"+failed, "Rejected: ")
	original := h.submit("INV-1")
	page := b.await("/transactions/"+original, "Succeeded after")
	if !strings.Contains(page, "/console/transactions/"+failed) || !strings.Contains(page, "Attempt 2: this one") {
		t.Errorf("the attempts do not know each other:\n%s", gist(page))
	}
	body := fmt.Sprintf(`{"country_code":"XX","transaction_date":"2026-04-03T10:00:00Z","transaction_number":"CRE-1","transaction_id":"credit-1","reference_transaction_id":%q,"note":"returned"}`, "order-INV-1")
	credit, err := h.service.Submit(t.Context(),
		filing.Caller{Scope: clientID, UseCase: func(string) (country.UseCase, bool) {
			return country.Both, true
		}}, transaction.Credit, []byte(body))
	must(t, err)
	if page := b.await("/transactions/"+credit, "Succeeded after"); !strings.Contains(page,
		`Corrects <a href="/console/transactions/`+original) {
		t.Errorf("the credit does not lead to its original:\n%s", gist(page))
	}
	if page := b.get("/transactions/" + original); !strings.Contains(page,
		`Corrected by <a href="/console/transactions/`+credit) {
		t.Errorf("the original does not lead to its credit:\n%s", gist(page))
	}
}

func TestALookupIsFollowedToItsAnswers(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	h.run()
	batch, err := h.lookups.CreateBatch(t.Context(), clientID,
		[]byte(`{"batch_name":"<u>spring</u>","validations":[{"country_iso_code":"IE","tax_identification_number":"IE6388047V"},{"country_iso_code":"IE","tax_identification_number":"<i>7</i>"}]}`))
	must(t, err)
	b := h.as(operator.Viewer)
	page := b.await("/lookups/"+clientID+"/"+batch.BatchID, "completed")
	if !strings.Contains(page, "IE6388047V") || strings.Contains(page, "<i>7</i>") || strings.Contains(page, "<u>") {
		t.Errorf("the batch:\n%s", gist(page))
	}
	if page := b.get("/lookups?status=completed&client=" + clientID); !strings.Contains(page, batch.BatchID) {
		t.Errorf("the list:\n%s", gist(page))
	}
	if page := b.get("/lookups?status=running"); strings.Contains(page, batch.BatchID) {
		t.Error("a completed batch is listed as running")
	}
}

func TestTheLogShowsWhatWasRefused(t *testing.T) {
	t.Parallel()
	h := build(t, dbtest.SQLite(t))
	b := h.as(operator.Admin)
	b.post("/clients/acme/look", url.Values{"display_name": {"Acme"}, "accent": {"red"}}).Body.Close()
	b.post("/clients/acme/look", url.Values{"display_name": {"Acme"}, "accent": {"#00AA00"}}).Body.Close()
	page := b.get("/audit?action=client.look_changed&client=acme&actor=admin&subject=acme&from=2020-01-01&to=2999-12-31")
	if strings.Count(page, "client.look_changed") < 2 || !strings.Contains(page, "not done") ||
		!strings.Contains(page, "#00AA00") {
		t.Errorf("the log:\n%s", gist(page))
	}
	if page := b.get("/audit?actor=nobody"); !strings.Contains(page, "Nothing found") {
		t.Errorf("a log of nobody:\n%s", gist(page))
	}
	for query, want := range map[string]string{"from=soon": "from must be", "to=late": "to must be",
		"before=x": "before must be"} {
		if page := b.get("/audit?" + query); !strings.Contains(page, want) {
			t.Errorf("%s:\n%s", query, gist(page))
		}
	}
}

package server_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/server"
	"tributary/internal/transaction"
)

// madeUp is Iceland with an authority that it does not have: rules, document,
// channel and double of its own, known to nobody but this test.
func madeUp() country.Pack {
	p := world.Reference("IS", country.ByNumber)
	p.Name, p.Version = "Made-up Iceland", "made-up-1"
	p.Facts.Currency, p.Facts.TimeZone, p.Facts.TaxNumberName = "ISK", "Atlantic/Reykjavik", "VSK-NR"
	p.Facts.Required = []country.FieldRule{{Field: "note", Reason: "every document says thanks there"}}
	p.Checks = []country.Check{{Reads: []string{"transaction_number"}, Find: func(c country.Case) []fault.Fault {
		if strings.HasPrefix(c.Transaction.Number, "13") {
			return []fault.Fault{fault.At("transaction_number", fault.FieldNotValid,
				"must not begin with 13: an unlucky number")}
		}
		return nil
	}}}
	p.Example = &country.Example{
		Company: country.Supplier{LegalName: "Dæmi ehf.", TaxNumber: "IS123456",
			Address: transaction.Address{CountryCode: "IS", City: "Reykjavík", PostalCode: "101", AddressLine1: "Dæmigata 1"}},
		Sale: `{"currency_code": "ISK", "note": "Takk", "customer": {"legal_name": "Jón Jónsson", "type": "INDIVIDUAL"},
			"items": [{"number": 1, "name": "Te", "quantity": 2, "unit_price": 1240, "tax_breakdowns": [{"rate": 24, "regime": "VAT"}]}]}`,
	}
	return p
}

// A country is one folder and one line: a pack that is handed to the program
// is validated, filed, printed, listed and simulated without any other edit.
func TestACountryAddedAtRunTimeIsServedInFull(t *testing.T) {
	t.Parallel()
	pack := madeUp()
	p := &program{dir: t.TempDir(), inbox: newInbox(), ended: make(chan error, 1)}
	t.Cleanup(p.inbox.server.Close)
	p.inbox.trust(demoKey)
	seeded(t, p.dir, "")
	var err error
	p.Server, err = open(t.Context(), server.Config{
		Demo: true, API: true, Worker: true, Listen: "127.0.0.1:0", Simulators: "127.0.0.1:0", Data: p.dir, Version: "test",
		APIKey: secret.New([]byte(demoKey)), WebhookURL: p.inbox.server.URL, Packs: []country.Pack{pack},
		WebhookRetryBase: 50 * time.Millisecond, AuthorityRetryBase: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.run(t)
	c := p.as(demoKey)
	a := realAuthority{pack}

	listed := c.want(t, http.StatusOK, "GET", "/v1/countries/IS", nil).json(t)
	if listed["name"] != pack.Name || listed["authority"] == nil || listed["tax_number_name"] != "VSK-NR" {
		t.Errorf("listed as %v", listed)
	}
	wrong := p.abroad(t, a, "IS-0")
	delete(wrong, "note")
	refused := string(c.want(t, http.StatusBadRequest, "POST", "/v1/transactions", wrong).body)
	if !strings.Contains(refused, "note must not be empty") {
		t.Errorf("its facts do not count: %s", refused)
	}
	if refused := string(c.want(t, http.StatusBadRequest, "POST", "/v1/transactions",
		p.abroad(t, a, "13-1")).body); !strings.Contains(refused, "unlucky") {
		t.Errorf("its check does not count: %s", refused)
	}
	got := c.outcome(t, c.submit(t, "/v1/transactions", p.abroad(t, a, "IS-1")))
	if got["status"] != "SUCCESS" || got["tax_authority_id_1"] == nil {
		t.Fatalf("%v %v", got["status"], got["errors"])
	}
	if lost := c.outcome(t, c.submit(t, "/v1/transactions", p.abroad(t, a, "IS-2-LOST"))); lost["status"] != "SUCCESS" {
		t.Errorf("its double does not play scripts: %v", lost)
	}
	if held := p.book(t, "IS"); len(held) != 2 {
		t.Errorf("its authority holds %v", held)
	}
	checkPrinted(t, c, got, "VSK-NR IS123456", "Dæmi ehf.")
	others := c.want(t, http.StatusOK, "GET", "/v1/transactions?country_code=IS", nil).json(t)
	if rows := others["data"].([]any); len(rows) != 2 {
		t.Errorf("listed %d transactions", len(rows))
	}
}

// checkPrinted reads the document for people.
func checkPrinted(t *testing.T, c *caller, got object, words ...string) {
	t.Helper()
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		if at["kind"] != "VISUAL" {
			continue
		}
		read := exec.CommandContext(t.Context(), "pdftotext", "-layout", "-", "-")
		read.Stdin = strings.NewReader(string(c.want(t, http.StatusOK, "GET",
			"/invoicing/v1/invoices/"+at["resource_id"].(string)+"/pdf", nil).body))
		text, err := read.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !strings.Contains(string(text), w) {
				t.Errorf("%q is not printed:\n%s", w, text)
			}
		}
		return
	}
	all, _ := json.Marshal(got["attachments"])
	t.Errorf("no document for people: %s", all)
}

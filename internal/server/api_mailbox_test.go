package server_test

import (
	"net/http"
	"strings"
	"testing"

	"tributary/internal/official/xxwire"
)

// A company whose decisions lie in its mailbox at the authority: they are fetched,
// each once although each lies there twice, and so is what the buyer says later.
func TestDecisionsAreFetchedFromAMailbox(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		p := demoAt(t, url, nil)
		c := p.as(demoKey)
		body := example(t, "company", object{"settings": object{"mailbox": true}, "tax_credentials": nil})
		body["meta"].(object)["country_code"], body["meta"].(object)["external_id"] = "XX", "reads its mail"
		body["tax_information"].(object)["tax_number"] = "XX888000111"
		company, _ := c.onboard(t, body)
		by := object{"id": company}
		good := c.submit(t, "/v1/transactions",
			p.sale(t, "MB-1", object{"supplier": by, "transaction_number": "MB-1" + xxwire.SuffixMailbox}))
		bad := c.submit(t, "/v1/transactions",
			p.sale(t, "MB-2", object{"supplier": by, "transaction_number": "MB-2" + xxwire.SuffixMailboxRefused}))
		if got := c.outcome(t, good); got["status"] != "SUCCESS" || got["tax_authority_id_1"] == nil {
			t.Errorf("%v %v", got["status"], got["errors"])
		}
		if got := c.outcome(t, bad); got["status"] != "FAILURE" || !strings.Contains(text(t, got["errors"]),
			"authority_rejected") {
			t.Errorf("%v %v", got["status"], got["errors"])
		}
		p.speaks(t, "XX", xxwire.Notice{Key: "n1", Code: "205", Name: "Approved", Source: "BUYER", Severity: "INFO"})
		if entries := c.lifecycle(t, good, 1); len(entries) != 1 || entries[0].(object)["code"] != "205" {
			t.Errorf("life cycle %v", entries)
		}
		p.settles(t, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL AND company_id = '"+company+"'", 3)
		if held := p.book(t, "XX"); len(held) != 1 {
			t.Errorf("the authority holds %v", held)
		}
		c.want(t, http.StatusNoContent, "DELETE", "/onboarding/v2/companies/"+company, nil)
		p.settles(t, "SELECT count(*) FROM inbox_mailboxes WHERE due_at IS NULL", 1)
	})
}

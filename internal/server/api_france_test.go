package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// A French sale is deposited, made available and approved; what the platform got is
// inside of the PDF, and a sale to a buyer that no directory has is told by period, with a warning.
func TestAFrenchSalePassesFromDepositedToApproved(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["FR"]
	id := c.submit(t, "/v1/transactions", p.abroad(t, a, "FR-LIFE-205"))
	got := c.outcome(t, id)
	a.checkSuccess(t, c, "FR", got)
	for _, entry := range got["attachments"].([]any) {
		at := entry.(object)
		if at["kind"] == "REPORT" {
			report := string(c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml", nil).body)
			if !strings.Contains(report, ">FR-LIFE-205<") || !strings.Contains(report, ">801234568<") {
				t.Errorf("filed: %s", report)
			}
		}
	}
	entries := c.lifecycle(t, id, 2)
	for i, want := range []string{"203 Mise à disposition", "205 Approuvée"} {
		if e := entries[i].(object); e["code"].(string)+" "+e["name"].(string) != want {
			t.Errorf("entry %d is %v instead of %s", i, e, want)
		}
	}
	sale := p.abroad(t, a, "FR-UNLISTED")
	buyer := sale["customer"].(object)
	buyer["entity_number"] = "999000003"
	delete(buyer, "tax_information")
	told := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	if words := text(t, told["errors"]); told["status"] != "SUCCESS" || !strings.Contains(words, "waits_for_period") ||
		!strings.Contains(words, "999000003") {
		t.Errorf("%v %v", told["status"], told["errors"])
	}
}

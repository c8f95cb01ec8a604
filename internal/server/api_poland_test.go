package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A Polish sale of ten days ago is issued on the day it is filed, with its own
// day as the day of supply, and the client is told; the program is the whole one.
func TestLateSaleInPolandIsIssuedWhenItIsFiled(t *testing.T) {
	p := busy(t)
	c := p.as(demoKey)
	a := realAuthorities(t)["PL"]
	zone, err := time.LoadLocation("Europe/Warsaw")
	if err != nil {
		t.Fatal(err)
	}
	sale := p.abroad(t, a, "PL-LATE")
	then := time.Now().AddDate(0, 0, -10)
	sale["transaction_date"] = then.UTC().Format(time.RFC3339)
	first := time.Now().In(zone).Format(time.DateOnly)
	got := c.outcome(t, c.submit(t, "/v1/transactions", sale))
	last := time.Now().In(zone).Format(time.DateOnly)
	a.checkSuccess(t, c, "PL", got)
	told := false
	for _, e := range got["errors"].([]any) {
		told = told || e.(object)["code"] == "date_moved"
	}
	if !told {
		t.Errorf("the client is not told: %v", got["errors"])
	}
	for _, entry := range got["attachments"].([]any) {
		if at := entry.(object); at["kind"] == "REPORT" {
			report := string(c.want(t, 200, http.MethodGet, "/invoicing/v1/invoices/"+at["resource_id"].(string)+"/xml", nil).body)
			if !strings.Contains(report, "<P_1>"+first+"<") && !strings.Contains(report, "<P_1>"+last+"<") || !strings.Contains(report, "<P_6>"+then.In(zone).Format(time.DateOnly)+"<") {
				t.Errorf("filed: %s", report)
			}
			return
		}
	}
	t.Error("there is no report")
}

// A zero that does not say which is refused before anything is stored.
func TestZeroThatDoesNotSayWhichIsRefusedInPoland(t *testing.T) {
	p := busy(t)
	c := p.as(demoKey)
	sale := p.abroad(t, realAuthorities(t)["PL"], "PL-ZERO")
	line := sale["items"].([]any)[0].(object)
	line["tax_breakdowns"] = []any{object{"rate": 0, "regime": "VAT"}}
	delete(sale, "payments")
	got := c.want(t, http.StatusBadRequest, http.MethodPost, "/v1/transactions", sale)
	if !strings.Contains(string(got.body), "items.0.tax_breakdowns.0.type") {
		t.Errorf("%s", got.body)
	}
}

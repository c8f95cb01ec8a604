package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/world"
)

// A report is annulled by an operator's hand: NAV is asked once, the transaction
// keeps its SUCCESS, and the audit log says who asked for what.
func TestAReportIsAnnulledByAnOperator(t *testing.T) {
	t.Parallel()
	o := &observatory{t: t, root: t}
	s := o.common("annul")
	reference := s.operation
	packs, err := world.Packs()
	if err != nil {
		t.Fatal(err)
	}
	var company struct{ ID string }
	s.json(http.MethodGet, "/onboarding/v2/companies/demo-HU?external-id=true", "", &company)
	for _, p := range packs {
		if p.Code != "HU" {
			continue
		}
		body, err := p.ExampleSale(country.SaleID{Transaction: "annulled", Number: "ANNUL-1", Supplier: company.ID,
			Date: time.Now().Add(-time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		var accepted struct {
			OperationID string `json:"operation_id"`
		}
		if status := s.json(http.MethodPost, "/v1/transactions", string(body), &accepted); status != http.StatusAccepted {
			t.Fatalf("a sale in Hungary is answered %d", status)
		}
		s.operation = accepted.OperationID
	}
	if result := s.settled(); result.Status != "SUCCESS" {
		t.Fatalf("%+v", result)
	}
	annul := func(operation string, more ...string) (int, string, string) {
		return call(t, append([]string{"annul", operation, "--data", s.dir, "--simulators", "http://" + s.sims, "--json",
			"--reason", "the wrong address was reported"}, more...)...)
	}
	if code, out, errs := annul(s.operation); code != 0 || !strings.Contains(out, "VERIFICATION_PENDING") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	if code, out, _ := annul(s.operation); code != exitFailed || !strings.Contains(out, "ANNULMENT_IN_PROGRESS") {
		t.Errorf("a second one: %d %s", code, out)
	}
	for operation, why := range map[string]string{reference: "does not support annulment",
		"nothing": "nothing was filed"} {
		if code, _, errs := annul(operation); code == 0 || !strings.Contains(errs, why) {
			t.Errorf("%s: %d %s", operation, code, errs)
		}
	}
	if code, _, errs := annul(s.operation, "--code", "OTHER"); code == 0 || !strings.Contains(errs, "ERRATIC_DATA") {
		t.Errorf("another code: %d %s", code, errs)
	}
	if log := o.must("operator", "audit", "--data", s.dir,
		"--json"); strings.Count(log, "report.annulment_answered") != 2 ||
		!strings.Contains(log, "the wrong address was reported") {
		t.Errorf("the audit log: %s", log)
	}
	if result := s.settled(); result.Status != "SUCCESS" {
		t.Errorf("the transaction changed: %+v", result)
	}
}

package console_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/transaction"
)

// Periods are listed with what is in them, and lead to their documents and sales.
func TestPeriodsShowWhatIsInThemAndWhatIsDue(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		h := build(t, d)
		var err error
		h.supplier, err = h.companies.Ensure(t.Context(), clientID, onboarding.NewCompany{
			ExternalID: "shop-2", CountryCode: "XX", LanguageCode: "en", LegalName: "Counter Ltd", TaxNumber: "XX2",
			TaxRegime: transaction.VAT, Settings: country.Settings{"period": "daily"},
			Address: transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345",
				AddressLine1: "1 Sample Street"},
		})
		must(t, err)
		h.run()
		id := h.submit("P<1>")
		b := h.as(operator.Viewer)
		b.await("/transactions/"+id, "Succeeded after")
		page := b.await("/periods", "2026-04-02", "227.10", ">open<", "overdue")
		at := page[strings.Index(page, `href="/console/periods/`)+len(`href="/console`):]
		at = at[:strings.Index(at, `"`)]
		b.await(at, "P&lt;1&gt;", "Documents are created after the period ends", "none yet")
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("periods")
			return tx.Exec("UPDATE periods SET due_at = 1")
		}))
		page = b.await(at, "D20260402-EUR-1", ">accepted<", ">filed<")
		if strings.Contains(page, "overdue") || strings.Contains(page, "P<1>") {
			t.Errorf("what is filed is not overdue, and numbers are text:\n%s", gist(page))
		}
		b.await("/transactions?kind=PERIOD", "D20260402-EUR-1")
		if resp := b.do("GET", "/periods/nothing", nil); resp.StatusCode != 404 {
			t.Errorf("a period that is not there: %d", resp.StatusCode)
		}
	})
}

package onboarding_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

func (w *world) anyOf(f onboarding.AnyFilter) (names []string) {
	w.t.Helper()
	for {
		page, next, err := w.ListAny(context.Background(), f)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range page {
			names = append(names, c.ClientID+"/"+c.Meta.ExternalID)
		}
		if f.Cursor = next; next == "" {
			return names
		}
	}
}

func TestTheOperatorSeesCompaniesOfAllClients(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		id := w.onboard(company("tax_credentials", credentials(sample{password: "p"}.file(), "p")))
		w.onboard(company("meta.country_code", "ie", "meta.external_id", "shop-2", "tax_information.tax_number", "IE-77",
			"tax_credentials.password", "token"))
		for i := range 3 {
			_, err := w.Ensure(t.Context(), "c_two",
				onboarding.NewCompany{ExternalID: fmt.Sprint("other-", i), CountryCode: "IE", LegalName: "Other",
					Address:   transaction.Address{CountryCode: "IE", City: "Dublin", AddressLine1: "1 Quay"},
					TaxNumber: fmt.Sprint("IE-", i), TaxRegime: "VAT"})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"c_two/other-2", "c_two/other-1", "c_two/other-0", client + "/shop-2", client + "/shop-1"}
		for _, limit := range []int{0, 1, 2, 100} {
			if got := w.anyOf(onboarding.AnyFilter{Limit: limit}); !slices.Equal(got, want) {
				t.Errorf("by %d: %v", limit, got)
			}
		}
		for what, f := range map[string]onboarding.AnyFilter{
			"client and country":            {ClientID: client, Country: "ES"},
			"tax number":                    {Text: "B98602642"},
			"tax number with country":       {Text: "es b-98602642"},
			"external id":                   {Text: "shop-1"},
			"id":                            {Text: id},
			"certificates that end in time": {EndingBefore: today.AddDate(1, 0, 1), Limit: 1},
		} {
			if got := w.anyOf(f); !slices.Equal(got, want[4:]) {
				t.Errorf("%s: %v", what, got)
			}
		}
		if got := w.anyOf(onboarding.AnyFilter{EndingBefore: today}); len(got) != 0 {
			t.Errorf("certificates that ended: %v", got)
		}
		if got := w.anyOf(onboarding.AnyFilter{Text: "nobody"}); len(got) != 0 {
			t.Errorf("nobody is %v", got)
		}
		page, _, err := w.ListAny(t.Context(), onboarding.AnyFilter{Text: id})
		if err != nil || len(page[0].Credentials) == 0 || page[0].Credentials[0].ExpiresAt == nil {
			t.Errorf("%+v, %v", page, err)
		}
		for _, f := range []onboarding.AnyFilter{{Limit: 101}, {Limit: -1}, {Cursor: "x"}} {
			if _, _, err := w.ListAny(t.Context(), f); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%+v: %v", f, err)
			}
		}
	})
}

func TestExpiriesAreListedByTheirEnd(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	d := dbtest.SQLite(t)
	w := newWorld(t, d)
	w.onboard(company("meta.external_id", "s0", "tax_credentials", credentials(sample{password: "p"}.file(), "p")))
	for i, days := range []int{20, 5, 5, 300} { // four clients with the same company
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			if i > 0 {
				for table, columns := range map[string]string{
					"companies":           "external_id, country, tax_key, live, profile, created_at, updated_at",
					"company_credentials": "sealed, login, subject, fingerprint, expires_at",
				} {
					if err := tx.Exec("INSERT INTO "+table+" (client_id, company_id, "+columns+") SELECT $1, $2, "+columns+" FROM "+table+" WHERE client_id = $3",
						fmt.Sprint("c", i), fmt.Sprintf("%032x", i), client); err != nil {
						return err
					}
				}
			}
			return tx.Exec("UPDATE company_credentials SET expires_at = $1 WHERE client_id = $2",
				db.Micros(today.Add(time.Duration(days)*24*time.Hour)), []string{client, "c1", "c2", "c3"}[i])
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := w.anyOf(onboarding.AnyFilter{EndingBefore: today.AddDate(0, 0, 30), Limit: 1})
	if !slices.Equal(got, []string{"c1/s0", "c2/s0", client + "/s0"}) {
		t.Errorf("%v", got)
	}
}

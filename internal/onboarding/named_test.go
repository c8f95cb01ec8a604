package onboarding_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

// A country's own secrets are members of tax_credentials like the four of every
// country; an enrolment may add to them and to the settings.
func TestACountrysOwnSecretsAreTakenKeptAndTakenBack(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		hungarian := func(changes ...any) map[string]any {
			return company(append([]any{"meta.country_code", "hu", "tax_information.tax_number", "12892312-2-42",
				"address.country_code", "HU"}, changes...)...)
		}
		_, err := w.Create(t.Context(), client, false, encode(hungarian("tax_credentials", map[string]any{"username": "u"})))
		if faults := faultsOf(err); !slices.Contains(faults, "field_required tax_credentials.sign_key") {
			t.Fatalf("without a secret that the country needs: %v", faults)
		}
		if _, err := w.Create(t.Context(), client, false,
			encode(hungarian("tax_credentials", map[string]any{"sign_key": 7}))); !slices.Contains(faultsOf(err),
			"field_not_valid tax_credentials.sign_key") {
			t.Errorf("a number as a secret: %v", err)
		}
		long := strings.Repeat("x", 4001)
		if _, err := w.Create(t.Context(), client, false,
			encode(hungarian("tax_credentials", map[string]any{"sign_key": long}))); !slices.Contains(faultsOf(err),
			"field_not_valid tax_credentials.sign_key") {
			t.Errorf("a secret that is too long: %v", err)
		}
		id := w.onboard(hungarian("tax_credentials",
			map[string]any{"sign_key": "s-1", "exchange_key": "x-1", "stranger": "?"}))
		wantNamed(t, w, id, map[string]string{"sign_key": "s-1", "exchange_key": "x-1", "station_key": "of s-1"})
		if got, err := w.Company(t.Context(), client, id, false); err != nil || got.Settings["level"] != int64(7) {
			t.Errorf("the setting of the enrolment: %v, %v", got.Settings, err)
		}
		if e := w.patch(id, map[string]any{"tax_credentials": map[string]any{"sign_key": "s-2",
			"exchange_key": nil}}); e.Status != onboarding.Success {
			t.Fatalf("%+v", e)
		}
		wantNamed(t, w, id, map[string]string{"sign_key": "s-2", "station_key": "of s-2"})
		if e := w.patch(id, map[string]any{"tax_credentials": nil}); e.Status == onboarding.Success {
			t.Error("what the country needs was taken away")
		}
		if strings.Contains(w.log.String(), "s-1") || strings.Contains(w.log.String(), "x-1") {
			t.Error("a secret is in the log")
		}
	})
}

// A name that only another country has is no secret here.
func TestANameOfAnotherCountryIsIgnored(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company("tax_credentials", map[string]any{"username": "u", "sign_key": "s-1"}))
	wantNamed(t, w, id, nil)
}

func wantNamed(t *testing.T, w *world, id string, want map[string]string) {
	t.Helper()
	got, err := w.Credentials(t.Context(), client, id)
	if err != nil || !maps.Equal(got.Named, want) {
		t.Errorf("named secrets %v, want %v (%v)", got.Named, want, err)
	}
}

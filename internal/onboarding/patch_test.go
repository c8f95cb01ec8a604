package onboarding_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

func TestAPatchChangesWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		id := w.onboard(company("settings.level", 5, "settings.loud", true, "tax_credentials.username", "u"))
		before, err := w.Company(t.Context(), client, id, false)
		if err != nil {
			t.Fatal(err)
		}
		e := w.patch(id, map[string]any{
			"legal_name": "Tienda Dos SL", "company_number": nil,
			"meta":            map[string]any{"country_code": "ES", "external_id": "shop-1", "language_code": "en"},
			"tax_information": map[string]any{"tax_number": "ES B-98602642"},
			"address":         map[string]any{"city": "Toledo", "postal_code": nil},
			"settings":        map[string]any{"level": nil, "office": "south"},
		})
		if e.Status != onboarding.Success || e.Data.ID != id {
			t.Fatalf("%+v", e)
		}
		after, err := w.Company(t.Context(), client, id, false)
		if err != nil {
			t.Fatal(err)
		}
		want := before
		want.UpdatedAt = after.UpdatedAt
		want.LegalName, want.CompanyNumber = "Tienda Dos SL", nil
		english := "en"
		want.Meta.LanguageCode = &english
		want.Address.City, want.Address.PostalCode = "Toledo", ""
		want.Settings["level"], want.Settings["office"] = int64(3), "south"
		if asJSON(t, after) != asJSON(t, want) {
			t.Errorf("after\n%s\nwant\n%s", asJSON(t, after), asJSON(t, want))
		}
		if w.changed.Load() != 0 || w.office.calls.Load() != 1 {
			t.Errorf("credentials were not touched: %d hooks, %d calls", w.changed.Load(), w.office.calls.Load())
		}
	})
}

func TestTheIdentityOfACompanyCannotChange(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company())
	_, err := w.Patch(t.Context(), client, id, encode(map[string]any{
		"meta":            map[string]any{"country_code": "it", "external_id": "shop-2"},
		"tax_information": map[string]any{"tax_number": "54387763P"},
	}))
	want := []string{"conflict meta.country_code", "conflict meta.external_id", "conflict tax_information.tax_number"}
	if fault.KindOf(err) != fault.Conflict || !slices.Equal(faultsOf(err), want) {
		t.Errorf("%v", err)
	}
}

func TestAPatchThatLeavesNoCompanyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company())
	_, err := w.Patch(t.Context(), client, id, encode(map[string]any{
		"legal_name": nil, "address": map[string]any{"city": ""}, "settings": map[string]any{"level": "high", "nothing": 1},
	}))
	want := []string{"field_required legal_name", "field_required address.city", "field_not_valid settings.level",
		"unsupported_field settings.nothing"}
	got := faultsOf(err)
	slices.Sort(got)
	slices.Sort(want)
	if fault.KindOf(err) != fault.Invalid || !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestNewCredentialsReplaceTheOldOnesInOneCommit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var inCommit string
		w := newWorld(t, d, func(cfg *onboarding.Config) {
			inner := cfg.CredentialsChanged
			cfg.CredentialsChanged = func(tx *db.Tx, clientID, companyID string) error {
				// The new ones are already there for whoever goes on with them.
				if err := tx.Row("SELECT fingerprint FROM company_credentials WHERE client_id = $1 AND company_id = $2", clientID,
					companyID).Scan(&inCommit); err != nil && !errors.Is(err, db.ErrNoRows) {
					return err
				}
				return inner(tx, clientID, companyID)
			}
		})
		old := sample{password: "old"}.file()
		id := w.onboard(company("tax_credentials", credentials(old, "old"), "tax_credentials.username", "user",
			"tax_credentials.password", "token"))
		fresh := sample{key: otherKey(), password: "new"}.file()
		if e := w.patch(id, map[string]any{"tax_credentials": credentials(fresh, "new")}); e.Status != onboarding.Success {
			t.Fatalf("%+v", e)
		}
		c, err := w.Credentials(t.Context(), client, id)
		if err != nil || string(c.PKCS12) != string(fresh) || c.Password != "new" || c.Username != "user" ||
			c.Secret != "token" {
			t.Errorf("the new certificate beside the old login: %v", err)
		}
		shown, _ := w.Company(t.Context(), client, id, false)
		if w.changed.Load() != 1 || w.office.calls.Load() != 2 || len(shown.Credentials) != 2 ||
			*shown.Credentials[0].Fingerprint != inCommit {
			t.Errorf("%d hooks, %d calls, %+v, in the commit %s", w.changed.Load(), w.office.calls.Load(), shown.Credentials,
				inCommit)
		}
		if shown.Credentials[1].Kind != onboarding.LoginCredential || shown.Credentials[1].Subject != nil ||
			shown.Credentials[1].Fingerprint != nil {
			t.Errorf("a login shows more than that it exists: %+v", shown.Credentials[1])
		}

		bad := w.patch(id, map[string]any{"tax_credentials": credentials(sample{password: "x"}.file(), "y")})
		if got := list(bad.Errors); !slices.Equal(got, []string{"credentials_invalid tax_credentials.certificate_password"}) {
			t.Errorf("%+v", bad)
		}
		if c, err := w.Credentials(t.Context(), client, id); err != nil || c.Password != "new" || w.changed.Load() != 1 {
			t.Errorf("a refused patch changed the credentials: %v", err)
		}

		if e := w.patch(id, map[string]any{"tax_credentials": nil}); e.Status != onboarding.Success {
			t.Fatalf("%+v", e)
		}
		if c, err := w.Credentials(t.Context(), client, id); err != nil || c.PKCS12 != nil || c.Username != "" ||
			w.changed.Load() != 2 {
			t.Errorf("credentials remain: %v", err)
		}
		if shown, _ := w.Company(t.Context(), client, id, false); len(shown.Credentials) != 0 {
			t.Errorf("%+v", shown.Credentials)
		}
	})
}

func TestAHookThatFailsKeepsTheOldCredentials(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	fail := true
	w := newWorld(t, dbtest.SQLite(t), func(cfg *onboarding.Config) {
		cfg.CredentialsChanged = func(*db.Tx, string, string) error {
			if fail {
				return context.DeadlineExceeded
			}
			return nil
		}
	})
	id := w.onboard(company("tax_credentials.password", "old"))
	e, err := w.Patch(t.Context(), client, id,
		encode(map[string]any{"tax_credentials": map[string]any{"password": "new"}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WorkNow(t.Context(), e.Data.JobID); err == nil {
		t.Error("no error")
	}
	if c, _ := w.Credentials(t.Context(), client, id); c.Secret != "old" {
		t.Error("half of the commit was stored")
	}
	fail = false
	if e := w.settle(e.Data.JobID); e.Status != onboarding.Success {
		t.Errorf("it does not go on: %+v", e)
	}
}

func TestCredentialsTheCountryNeedsCannotBeTakenAway(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	body := company("meta.country_code", "mx", "tax_information.tax_number", "AAA010101AAA", "settings.fiscal_regime",
		"601")
	_, err := w.Create(t.Context(), client, false, encode(body))
	want := []string{"field_required tax_credentials.certificate_base64",
		"field_required tax_credentials.certificate_password",
		"field_required tax_credentials.username", "field_required tax_credentials.password"}
	if !slices.Equal(faultsOf(err), want) {
		t.Errorf("%v", err)
	}
	subject := sample{password: "p"}
	subject.subject.SerialNumber = "AAA010101AAA"
	set(body, "tax_credentials", credentials(subject.file(), "p"))
	set(body, "tax_credentials.username", "pac")
	set(body, "tax_credentials.password", "pac-secret")
	id := w.onboard(body)
	e := w.patch(id, map[string]any{"tax_credentials": map[string]any{"username": nil}})
	if got := list(e.Errors); !slices.Equal(got, []string{"field_required tax_credentials.username"}) {
		t.Errorf("%+v", e)
	}
}

func TestOneChangeOfACompanyAtATime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		id := w.onboard(company())
		change := encode(map[string]any{"legal_name": "A", "company_number": nil})
		first, err := w.Patch(t.Context(), client, id, change)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.Patch(t.Context(), client, id, change); err != nil || again.Data.JobID != first.Data.JobID {
			t.Errorf("the same change: %+v %v", again, err)
		}
		for _, other := range []string{`{"legal_name":"B"}`, `{"legal_name":"A"}`} {
			if _, err := w.Patch(t.Context(), client, id, []byte(other)); fault.KindOf(err) != fault.Conflict {
				t.Errorf("another change: %v", err)
			}
		}
		w.settle(first.Data.JobID)
		if again, err := w.Patch(t.Context(), client, id, change); err != nil || again.Data.JobID == first.Data.JobID {
			t.Errorf("after the first ended: %+v %v", again, err)
		}
		// A POST of the original body still answers the job that made the company.
		if e, err := w.Create(t.Context(), client, false, encode(company())); err != nil ||
			w.settle(e.Data.JobID).Data.ID != id {
			t.Errorf("%+v %v", e, err)
		}
	})
}

func TestAFailedPatchLeavesTheCompanyAndItsAuthorityAlone(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company("tax_credentials.password", "old"))
	w.office.answers(func(int64, string) int { return http.StatusUnprocessableEntity })
	e := w.patch(id, map[string]any{"legal_name": "New", "tax_credentials": map[string]any{"password": "new"}})
	shown, err := w.Company(t.Context(), client, id, false)
	if e.Status != onboarding.Failed || err != nil || shown.LegalName != "Tienda Uno SL" ||
		!strings.HasPrefix(asJSON(t, e), `{"status":"failed","data":null,"message":"`) {
		t.Errorf("%+v, %+v %v", e, shown, err)
	}
	if c, _ := w.Credentials(t.Context(), client, id); c.Secret != "old" {
		t.Error("the credentials changed")
	}
}

package onboarding_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
)

func TestExpiryAlarmsComeAt30And7And1Days(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		end := today.AddDate(1, 0, 0)
		id := w.onboard(company("tax_credentials", credentials(sample{password: "p"}.file(), "p")))
		w.onboard(company("meta.country_code", "ie", "meta.external_id", "no-certificate", "tax_credentials.password",
			"token"))
		day := 24 * time.Hour
		for _, step := range []struct {
			before time.Duration
			want   string // alarms since the last step
		}{
			{31 * day, ""},
			{30 * day, ""}, // at the limit it is not within
			{30*day - time.Second, "credentials_expiring_30d"},
			{20 * day, ""},
			{7*day - time.Second, "credentials_expiring_7d"},
			{2 * day, ""},
			{day - time.Second, "credentials_expiring_1d"},
			{-day, ""}, // once is enough
		} {
			w.setNow(end.Add(-step.before))
			before := strings.Count(w.log.String(), "alert=credentials_expiring")
			n, err := w.RaiseExpiryAlarms(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fresh := strings.Count(w.log.String(), "alert=credentials_expiring") - before
			if (step.want == "") != (n == 0) || n != fresh ||
				step.want != "" && !strings.Contains(w.log.String(), "alert="+step.want+" subject="+id) {
				t.Errorf("%s before the end: %d alarms, %d lines, want %q", step.before, n, fresh, step.want)
			}
		}
		for _, name := range []alert.Name{alert.CredentialsExpiring30d, alert.CredentialsExpiring7d,
			alert.CredentialsExpiring1d} {
			if n := w.raised(name); n != 1 {
				t.Errorf("the metric counts %v of %s", n, name)
			}
		}
	})
}

func TestANewCertificateIsWatchedAnew(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	id := w.onboard(company("tax_credentials", credentials(sample{password: "p"}.file(), "p")))
	w.setNow(today.AddDate(1, 0, -3))
	if n, err := w.RaiseExpiryAlarms(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d %v: a certificate that ends in 3 days has one alarm, not one per stage passed", n, err)
	}
	w.patch(id, map[string]any{"tax_credentials": credentials(sample{from: today, to: today.AddDate(2, 0, 0), password: "q"}.file(), "q")})
	if n, err := w.RaiseExpiryAlarms(t.Context()); n != 0 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	w.setNow(today.AddDate(2, 0, -3))
	if n, err := w.RaiseExpiryAlarms(t.Context()); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

func TestManyCertificatesThatEndTogetherAllRaise(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	const n = 450 // more than one write takes
	end := db.Micros(today.AddDate(0, 0, 5))
	err := w.d.Write(t.Context(), func(tx *db.Tx) error {
		for i := range n {
			id := strings.Repeat("0", 29) + string([]byte{'0' + byte(i/100), '0' + byte(i/10%10), '0' + byte(i%10)})
			if err := tx.Exec("INSERT INTO companies (client_id, company_id, external_id, country, tax_key, live, profile, created_at, updated_at) VALUES ('c', $1, $1, 'ES', $1, false, '{}', 1, 1)", id); err != nil {
				return err
			}
			if err := tx.Exec("INSERT INTO company_credentials (client_id, company_id, sealed, login, subject, fingerprint, expires_at) VALUES ('c', $1, $2, false, 's', 'f', $3)", id, []byte{1}, end); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if raised, err := w.RaiseExpiryAlarms(t.Context()); raised != n || err != nil {
		t.Errorf("%d %v", raised, err)
	}
}

// raised is what the metric of alerts says.
func (w *world) raised(name alert.Name) float64 {
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == string(name) {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return -1
}

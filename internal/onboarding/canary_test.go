package onboarding_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
)

// planted are values that must be found nowhere.
var planted = []string{"canary-pfx-password", "canary-user-name", "canary-token-value"}

func search(t *testing.T, where, text string) {
	t.Helper()
	for _, canary := range planted {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)),
			base64.RawStdEncoding.EncodeToString([]byte(canary)), fmt.Sprintf("%x", canary)} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %q", where, canary)
			}
		}
	}
}

func plantedCompany(country string, file []byte) map[string]any {
	body := company("meta.country_code", country, "tax_credentials", credentials(file, planted[0]))
	set(body, "tax_credentials.username", planted[1])
	set(body, "tax_credentials.password", planted[2])
	return body
}

func TestCredentialsAreInNoAnswerLogOrFile(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	dir := t.TempDir()
	d := dbtest.Open(t, db.Config{URL: "sqlite:" + filepath.Join(dir, "tributary.db")})
	w := newWorld(t, d)
	w.start()
	file := sample{password: planted[0]}.file()
	var answers []string
	say := func(v any, err error) { answers = append(answers, fmt.Sprintf("%s %+v %v", encode(v), v, err)) }

	body := plantedCompany("es", file)
	queued, err := w.Create(t.Context(), client, false, encode(body))
	say(queued, err)
	<-w.ended
	job, err := w.Job(t.Context(), client, queued.Data.JobID)
	say(job, err)
	shown, err := w.Company(t.Context(), client, job.Data.ID, false)
	say(shown, err)
	page, _, err := w.List(t.Context(), client, 10, "")
	say(page, err)

	set(body, "legal_name", "Other")
	e, err := w.Create(t.Context(), client, false, encode(body)) // a conflict
	say(e, err)
	set(body, "meta.external_id", "second")
	set(body, "tax_information.tax_number", "54387763P")
	set(body, "tax_credentials.certificate_base64", base64.StdEncoding.EncodeToString(file[:200]))
	e, err = w.Create(t.Context(), client, false, encode(body)) // a damaged certificate
	say(e, err)
	<-w.ended
	failed, err := w.Job(t.Context(), client, e.Data.JobID)
	say(failed, err)
	set(body, "tax_credentials.username", strings.Repeat(planted[1], 20)) // too long
	e, err = w.Create(t.Context(), client, false, encode(body))
	say(e, err)
	e, err = w.Create(t.Context(), client, false,
		[]byte(`{"tax_credentials":{"password":"`+planted[2]+`","password":"`+planted[2]+`"}}`))
	say(e, err)
	patched, err := w.Patch(t.Context(), client, job.Data.ID,
		encode(map[string]any{"tax_credentials": map[string]any{"password": planted[2] + "2"}}))
	say(patched, err)
	<-w.ended

	if failed.Status != onboarding.Failed || shown.Credentials[0].Fingerprint == nil {
		t.Errorf("the planted path was not taken: %+v %+v", failed, shown)
	}
	search(t, "an answer", strings.Join(answers, "\n"))
	search(t, "the log", w.log.String())
	if err := d.Read(t.Context(), func(r db.Reader) error {
		var n int
		return r.Row("SELECT count(*) FROM company_credentials").Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		search(t, entry.Name(), string(content))
		if strings.Contains(string(content), string(file[len(file)/2:len(file)/2+32])) {
			t.Errorf("%s holds the certificate file in the open", entry.Name())
		}
	}
	if c, err := w.Credentials(t.Context(), client, job.Data.ID); err != nil || c.Password != planted[0] ||
		c.Secret != planted[2]+"2" {
		t.Errorf("the canaries were not stored: %v", err)
	}
}

func TestAPanickingPackTellsNoSecretAndFailsTheJob(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	e := w.settle(w.create(plantedCompany("pl", sample{password: planted[0]}.file())))
	if e.Status != onboarding.Failed || len(e.Errors) != 1 || e.Errors[0].Code != "internal_error" {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(w.log.String(), "a country pack panicked") {
		t.Error("the operator is not told")
	}
	search(t, "the answer", string(encode(e)))
	search(t, "the log", w.log.String())
}

func TestCredentialsOfAnotherCompanyDoNotOpen(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	one := w.onboard(company("tax_credentials.password", "a"))
	two := w.onboard(company("meta.external_id", "two", "tax_information.tax_number", "54387763P",
		"tax_credentials.password", "b"))
	err := w.d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE company_credentials SET sealed = (SELECT sealed FROM company_credentials WHERE company_id = $1) WHERE company_id = $2", one, two)
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := w.Credentials(t.Context(), client, two); err == nil || c.Secret != "" {
		t.Errorf("a copied row opens: %v", err)
	}
}

package onboarding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

// clean forgets everything, so that cases of one table do not meet.
func clean(t testing.TB, w *world) {
	t.Helper()
	err := w.d.Write(t.Context(), func(tx *db.Tx) error {
		for _, table := range []string{"companies", "company_credentials", "onboarding_jobs"} {
			if err := tx.Exec("DELETE FROM " + table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestACompanyIsOnboardedByTheQueueAndReadBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.start()
		file := sample{password: "clave"}.file()
		queued, err := w.Create(t.Context(), client, false,
			encode(company("tax_credentials", credentials(file, "clave"), "settings.level", 5)))
		if err != nil {
			t.Fatal(err)
		}
		job := queued.Data.JobID
		want := `{"status":"success","data":{"job_id":"` + job + `","job_status_location":"` + base +
			`/onboarding/v2/jobs/` + job +
			`"},"message":"The onboarding job was queued.","errors":null}`
		if got := asJSON(t, queued); got != want {
			t.Errorf("answer\n%s\nwant\n%s", got, want)
		}
		if ended := <-w.ended; ended != job {
			t.Fatalf("job %s ended", ended)
		}
		done, err := w.Job(t.Context(), client, job)
		if err != nil || done.Status != onboarding.Success {
			t.Fatalf("%+v %v", done, err)
		}
		id := done.Data.ID
		if got := asJSON(t, done); got != `{"status":"success","data":{"id":"`+id+`","location":"`+base+`/onboarding/v2/companies/`+id+`"},"message":null,"errors":null}` {
			t.Errorf("job %s", got)
		}
		readBack(t, w, id, file)
	})
}

func readBack(t *testing.T, w *world, id string, file []byte) {
	shown, err := w.Company(t.Context(), client, id, false)
	if err != nil {
		t.Fatal(err)
	}
	got := asJSON(t, shown)
	prefix := `{"id":"` + id +
		`","status":"active","meta":{"country_code":"es","language_code":"es","external_id":"shop-1"},"legal_name":"Tienda Uno SL","type":"BUSINESS",` +
		`"company_number":"M-1","address":{"country_code":"ES","city":"Madrid","postal_code":"28001","address_line_1":"Calle Mayor 1"},` +
		`"tax_information":{"tax_number":"B98602642","regime":"VAT"},"settings":{"level":5,"loud":false,"office":"north","software":"tributary"},` +
		`"credentials":[{"kind":"certificate","subject":"CN=Tienda Uno, serialNumber=IDCES-B98602642","fingerprint":"`
	if !strings.HasPrefix(got, prefix) || !strings.Contains(got,
		`"expires_at":"2027-05-01T12:00:00Z"}],"created_at":"20`) || strings.Contains(got, "tax_credentials") {
		t.Errorf("company %s", got)
	}
	byName, err := w.Company(t.Context(), client, "shop-1", true)
	if err != nil || byName.ID != id {
		t.Errorf("by external id: %+v %v", byName, err)
	}
	var s country.Supplier
	err = w.d.Read(t.Context(), func(r db.Reader) error {
		var err error
		s, err = w.Supplier(r, client, id)
		return err
	})
	if err != nil || s.ID != id || s.CountryCode != "ES" || s.LanguageCode != "ES" || s.TaxNumber != spanish ||
		s.Settings["level"] != int64(5) || s.Settings.Text("software") != "tributary" {
		t.Errorf("supplier %+v %v", s, err)
	}
	c, err := w.Credentials(t.Context(), client, id)
	if err != nil || string(c.PKCS12) != string(file) || c.Password != "clave" {
		t.Errorf("credentials differ: %v", err)
	}
	for _, stranger := range []string{"c_other", client + ".test", ""} {
		_, missing := w.Company(t.Context(), stranger, id, false)
		_, secret := w.Credentials(t.Context(), stranger, id)
		supplier := w.d.Read(t.Context(), func(r db.Reader) error { _, err := w.Supplier(r, stranger, id); return err })
		_, patch := w.Patch(t.Context(), stranger, id, []byte(`{}`))
		for _, err := range []error{missing, secret, supplier, patch} {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("client %q reads another's company: %v", stranger, err)
			}
		}
	}
}

func TestAnotherClientsJobIsUnknown(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	job := w.create(company())
	if _, err := w.Job(t.Context(), "c_other", job); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	e, err := w.Job(t.Context(), client, job)
	if err != nil || asJSON(t, e) != `{"status":"pending","data":{"job_id":"`+job+`","job_status_location":"`+base+`/onboarding/v2/jobs/`+job+`"},"message":null,"errors":null}` {
		t.Errorf("%+v %v", e, err)
	}
}

func TestExternalIDIsTheIdempotencyKey(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		body := company("tax_credentials", credentials(sample{password: "one"}.file(), "one"))
		job := w.create(body)
		reordered := `  {"tax_credentials":` + asJSON(t, body["tax_credentials"]) + `,"trade_name":null,` +
			strings.TrimPrefix(asJSON(t, company()), "{")
		same := func(stage string) {
			t.Helper()
			for _, again := range [][]byte{encode(body), []byte(reordered)} {
				if e, err := w.Create(t.Context(), client, false, again); err != nil || e.Data.JobID != job {
					t.Errorf("%s: the same body: %+v %v", stage, e, err)
				}
			}
			for name, other := range map[string]map[string]any{
				"a name":         company("legal_name", "Other", "tax_credentials", body["tax_credentials"]),
				"no credentials": company(),
				"only the password": company("tax_credentials",
					map[string]any{"certificate_base64": body["tax_credentials"].(map[string]any)["certificate_base64"],
						"certificate_password": "two"}),
			} {
				if _, err := w.Create(t.Context(), client, false, encode(other)); fault.KindOf(err) != fault.Conflict ||
					!slices.Equal(faultsOf(err), []string{"conflict meta.external_id"}) {
					t.Errorf("%s: another body (%s): %v", stage, name, err)
				}
			}
			if _, err := w.Create(t.Context(), client+".test", false, encode(company())); err != nil {
				t.Errorf("%s: another scope: %v", stage, err)
			}
		}
		same("pending")
		if claimed, err := w.Abandon(t.Context(), job); err != nil || !claimed {
			t.Fatal(claimed, err)
		}
		same("processing")
		if _, err := w.WorkNow(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		expire(t, w)
		if e := w.settle(job); e.Status != onboarding.Success {
			t.Fatalf("%+v", e)
		}
		same("success")
	})
}

// expire lets every lease run out.
func expire(t *testing.T, w *world) {
	t.Helper()
	if err := w.d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE onboarding_jobs SET due_at = 1, lease_until = 1 WHERE lease_until IS NOT NULL")
	}); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedOnboardingCanBeRepeatedWithAnyBody(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		bad := company("tax_information.tax_number", "B00000001")
		first := w.create(bad)
		e := w.settle(first)
		if got := list(e.Errors); e.Status != onboarding.Failed || e.Data != nil ||
			!slices.Equal(got, []string{"field_not_valid tax_information.tax_number"}) {
			t.Fatalf("%+v", e)
		}
		second := w.create(bad)
		if second == first {
			t.Fatal("a failed job was answered again")
		}
		w.settle(second)
		third := w.create(company())
		if e := w.settle(third); e.Status != onboarding.Success {
			t.Fatalf("%+v", e)
		}
		if e, _ := w.Job(t.Context(), client, first); e.Status != onboarding.Failed {
			t.Error("the first job changed")
		}
		if w.office.calls.Load() != 1 {
			t.Errorf("the authority was asked %d times: a refused company was enrolled", w.office.calls.Load())
		}
	})
}

func TestASecondCompanyWithTheSameNumberIsToldTheFirst(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.onboard(company())
		e := w.settle(w.create(company("meta.external_id", "shop-2", "tax_information.tax_number", "ES-b98602642")))
		if got := list(e.Errors); !slices.Equal(got, []string{"already_onboarded tax_information.tax_number"}) ||
			!strings.Contains(e.Errors[0].Message, `"shop-1"`) {
			t.Fatalf("%+v", e)
		}
		if w.office.calls.Load() != 1 {
			t.Error("the second was enrolled")
		}
		other, err := w.Create(t.Context(), "c_other", false, encode(company()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WorkNow(t.Context(), other.Data.JobID); err != nil {
			t.Fatal(err)
		}
		if e, err := w.Job(t.Context(), "c_other", other.Data.JobID); err != nil || e.Status != onboarding.Success {
			t.Errorf("another client may onboard the same company: %+v %v", e, err)
		}
	})
}

func TestOfManyJobsForOneNumberOneEnrols(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		const n = 8
		jobs := make([]string, n)
		for i := range jobs {
			jobs[i] = w.create(company("meta.external_id", fmt.Sprint("shop-", i)))
		}
		entered, leave := make(chan string, n), make(chan struct{})
		w.office.answers(func(_ int64, supplier string) int { entered <- supplier; <-leave; return http.StatusOK })
		var wg sync.WaitGroup
		waiting := make(chan string, n)
		for _, id := range jobs {
			wg.Go(func() {
				if again, err := w.WorkNow(t.Context(), id); err != nil {
					t.Error(err)
				} else if again > 0 {
					waiting <- id
				}
			})
		}
		<-entered // one is at the authority; the others must not be
		var others []string
		for range n - 1 {
			select {
			case id := <-waiting:
				others = append(others, id)
			case <-entered:
				t.Error("two jobs enrol the same number at the same time")
			}
		}
		close(leave)
		wg.Wait()
		for _, id := range others {
			if e := w.settle(id); len(e.Errors) != 1 || e.Errors[0].Code != fault.AlreadyOnboarded {
				t.Errorf("%+v", e)
			}
		}
		if page, _, err := w.List(t.Context(), client, 0, ""); err != nil || len(page) != 1 || w.office.calls.Load() != 1 {
			t.Errorf("%d companies, the authority was asked %d times: %v", len(page), w.office.calls.Load(), err)
		}
	})
}

// Ensure does not wait for rivals, so it can overtake a job that is enrolling.
func TestACompanyMadeWhileAJobEnrolsIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.office.answers(func(call int64, _ string) int {
			if call > 1 {
				return http.StatusOK
			}
			_, err := w.Ensure(t.Context(), client, onboarding.NewCompany{
				ExternalID: "faster", CountryCode: "ES", LegalName: "Tienda", TaxNumber: spanish,
				Address: transaction.Address{CountryCode: "ES", City: "Madrid", AddressLine1: "Calle Mayor 1"},
			})
			if err != nil {
				t.Error(err)
			}
			return http.StatusOK
		})
		e := w.settle(w.create(company()))
		if len(e.Errors) != 1 || e.Errors[0].Code != fault.AlreadyOnboarded ||
			!strings.Contains(e.Errors[0].Message, `"faster"`) {
			t.Errorf("%+v", e)
		}
		if page, _, err := w.List(t.Context(), client, 0, ""); err != nil || len(page) != 1 {
			t.Errorf("%d companies %v", len(page), err)
		}
	})
}

func TestManyEqualPostsAtOnceMakeOneJob(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		var wg sync.WaitGroup
		jobs := make([]string, 50)
		for i := range jobs {
			wg.Go(func() {
				name := "Tienda Uno SL"
				if i%2 == 1 {
					name = "Tienda Dos SL"
				}
				e, err := w.Create(t.Context(), client, false, encode(company("legal_name", name)))
				if err == nil {
					jobs[i] = e.Data.JobID
				} else if fault.KindOf(err) != fault.Conflict {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		distinct := map[string]bool{}
		for _, id := range jobs {
			if id != "" {
				distinct[id] = true
			}
		}
		if len(distinct) != 1 {
			t.Errorf("%d jobs", len(distinct))
		}
	})
}

func TestEverythingThatIsWrongIsListedAtOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "keys and certificates")
	w := newWorld(t, dbtest.SQLite(t))
	file := sample{key: weakKey(), usage: 4, from: today.AddDate(-2, 0, 0), to: today.AddDate(-1, 0, 0)}.file()
	e := w.settle(w.create(company("meta.country_code", "ES", "tax_information.tax_number", "B00000001",
		"tax_credentials", credentials(file, ""))))
	want := []string{"field_not_valid tax_information.tax_number"}
	for range 4 { // expired, key usage, weak key, another number
		want = append(want, "credentials_invalid tax_credentials.certificate_base64")
	}
	if got := list(e.Errors); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	for _, f := range e.Errors {
		if f.Type != fault.Validation || !strings.HasPrefix(f.Message, f.Field) {
			t.Errorf("%+v", f)
		}
	}
	if w.office.calls.Load() != 0 {
		t.Error("a company with faults was enrolled")
	}
}

func TestThePacksOwnCheckDecides(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	e := w.settle(w.create(company("meta.country_code", "it", "company_number", absent{})))
	if got := list(e.Errors); !slices.Equal(got, []string{"field_required company_number"}) {
		t.Errorf("%v", got)
	}
	if e := w.settle(w.create(company("meta.country_code", "it"))); e.Status != onboarding.Success {
		t.Errorf("%+v", e)
	}
}

func TestWrongCheckDigitsPassWhereNobodyEnforcesThem(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	w.onboard(company("meta.country_code", "IE", "tax_information.tax_number", "6388047A"))
}

func TestAnAuthorityThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	w.office.answers(func(call int64, _ string) int {
		if call < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	job := w.create(company())
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 0} {
		again, err := w.WorkNow(t.Context(), job)
		if err != nil || again != want {
			t.Fatalf("try %d: wait %s %v", i, again, err)
		}
		if e, _ := w.Job(t.Context(), client, job); want > 0 && e.Status != onboarding.Pending {
			t.Errorf("try %d: %+v", i, e)
		}
	}
	if e, _ := w.Job(t.Context(), client, job); e.Status != onboarding.Success {
		t.Errorf("%+v", e)
	}
}

func TestAnAuthorityThatNeverAnswersFailsTheJobInTheEnd(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	w.office.answers(func(int64, string) int { return http.StatusServiceUnavailable })
	e := w.settle(w.create(company()))
	if got := list(e.Errors); !slices.Equal(got, []string{"authority_unavailable "}) ||
		w.office.calls.Load() != onboarding.EnrolTries {
		t.Errorf("%+v after %d calls", e, w.office.calls.Load())
	}
	if _, err := w.Company(t.Context(), client, "shop-1", true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the company exists: %v", err)
	}
}

func TestARejectionOfTheAuthorityIsFinal(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	w.office.answers(func(int64, string) int { return http.StatusUnprocessableEntity })
	e := w.settle(w.create(company()))
	if got := list(e.Errors); !slices.Equal(got, []string{"authority_rejected "}) || w.office.calls.Load() != 1 {
		t.Errorf("%+v after %d calls", e, w.office.calls.Load())
	}
}

func TestALiveKeyWithoutALiveAddressFailsClearly(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t))
	e, err := w.Create(t.Context(), client, true, encode(company()))
	if err != nil {
		t.Fatal(err)
	}
	if e := w.settle(e.Data.JobID); !slices.Equal(list(e.Errors), []string{"authority_unavailable "}) ||
		w.office.calls.Load() != 0 {
		t.Errorf("%+v: %d calls", e, w.office.calls.Load())
	}
}

func TestACountryThatIsNotEnabledIsRefused(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	w := newWorld(t, dbtest.SQLite(t), func(cfg *onboarding.Config) {
		cfg.Enabled = func(_ context.Context, _, code string) (bool, error) { return code == "IE", nil }
	})
	if _, err := w.Create(t.Context(), client, false, encode(company())); !slices.Equal(faultsOf(err),
		[]string{"unsupported_country meta.country_code"}) {
		t.Errorf("%v", err)
	}
	w.onboard(company("meta.country_code", "ie"))
}

func TestPagesOfCompaniesCoverEachOnce(t *testing.T) {
	t.Parallel()
	needs.NotRaced(t, "one goroutine after another")
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		const n = 7
		for i := range n {
			w.onboard(company("meta.country_code", "ie", "meta.external_id", fmt.Sprint("s", i), "tax_information.tax_number",
				fmt.Sprint("100000", i)))
		}
		rapid.Check(t, func(t *rapid.T) {
			limit := rapid.IntRange(1, n+1).Draw(t, "limit")
			var seen []string
			for cursor := ""; ; {
				page, next, err := w.List(w.t.Context(), client, limit, cursor)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range page {
					seen = append(seen, c.Meta.ExternalID)
				}
				if cursor = next; cursor == "" {
					break
				}
				if len(page) != limit {
					t.Fatalf("a page of %d before the last", len(page))
				}
			}
			want := []string{"s6", "s5", "s4", "s3", "s2", "s1", "s0"}
			if !slices.Equal(seen, want) {
				t.Fatalf("%v", seen)
			}
		})
		if page, next, err := w.List(t.Context(), "c_other", 0, ""); err != nil || len(page) != 0 || page == nil ||
			next != "" {
			t.Errorf("another client: %v %q %v", page, next, err)
		}
		for name, call := range map[string]func() error{
			"limit":  func() error { _, _, err := w.List(t.Context(), client, 101, ""); return err },
			"cursor": func() error { _, _, err := w.List(t.Context(), client, 20, "MTIzNA"); return err },
		} {
			if err := call(); !slices.Equal(faultsOf(err), []string{"field_not_valid " + name}) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestEnsureMakesACompanyOnceAndFindsItAfterwards(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		file := sample{password: "p"}.file()
		n := onboarding.NewCompany{
			ExternalID: "demo-es", CountryCode: "ES", LegalName: "Tienda", TaxNumber: spanish,
			Address:     transaction.Address{CountryCode: "ES", City: "Madrid", AddressLine1: "Calle Mayor 1"},
			Credentials: country.Credentials{PKCS12: file, Password: "p"}, Settings: country.Settings{"level": 4},
		}
		var wg sync.WaitGroup
		ids := make([]string, 4)
		for i := range ids {
			wg.Go(func() {
				var err error
				if ids[i], err = w.Ensure(t.Context(), client, n); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n.LegalName = "Another name changes nothing"
		again, err := w.Ensure(t.Context(), client, n)
		if err != nil || slices.ContainsFunc(ids, func(id string) bool { return id != again }) || w.office.calls.Load() != 1 {
			t.Errorf("%v, then %s %v; enrolled %d times", ids, again, err, w.office.calls.Load())
		}
		n.ExternalID, n.TaxNumber = "demo-2", "B00000001"
		if _, err := w.Ensure(t.Context(), client, n); fault.KindOf(err) != fault.Invalid || len(faultsOf(err)) != 2 {
			t.Errorf("a bad company: %v", err)
		}
	})
}

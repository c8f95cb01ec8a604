package ro_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/authority/anaf"
	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/ro"
	"tributary/internal/fault"
	"tributary/internal/transaction"
)

// Counties and sectors are read as people write them.
func TestCountiesAndSectorsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"Cluj": "RO-CJ", "județul Timiș": "RO-TM", "RO-AB": "RO-AB", "bv": "RO-BV",
		"Bistrița-Năsăud": "RO-BN", "SATU MARE": "RO-SM", "Municipiul București": "RO-B", "Bucharest": "RO-B", "Bavaria": "Bavaria", "": ""} {
		if got := ro.County(text); got != want {
			t.Errorf("%q is %q instead of %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"Sector 3": "SECTOR3", "București, sectorul 6": "SECTOR6", "SECTOR1": "SECTOR1",
		"Sector 7": "", "Sector 12": "", "București": ""} {
		if got := ro.Sector(text); got != want {
			t.Errorf("%q is %q instead of %q", text, got, want)
		}
	}
}

// front sees the calls, and lets some be answered otherwise.
type front struct {
	next http.Handler

	mu     sync.Mutex
	last   string // the last upload: service and parameters
	limits string // the call that meets a limit
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	call := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if strings.HasPrefix(call, "upload") {
		f.last = call + " " + r.URL.Query().Encode()
	}
	limited := f.limits == call
	f.mu.Unlock()
	if limited {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	f.next.ServeHTTP(w, r)
}

// limit lets a call meet a limit; "": none does.
func (f *front) limit(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits = call
}

func (f *front) uploaded() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// beside is the double, with a front before it.
func beside(t *testing.T) (*front, country.Endpoint) {
	t.Helper()
	f := &front{}
	return f, packtest.Fronted(t, pack(), func(next http.Handler) http.Handler { f.next = next; return f })
}

func send(t *testing.T, ch country.Channel, f country.Filing) (country.Receipt, error) {
	t.Helper()
	all, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
	if err != nil {
		return country.Receipt{}, err
	}
	return all[0], nil
}

// now is a draft of today: the list is asked for since it was prepared.
func now(d country.Draft) country.Draft {
	d.Now = time.Now()
	return d
}

// What was uploaded and whose answer was lost is found by list and archive; the
// list may lag, and then the same bytes go again and the first index is adopted.
func TestALostUploadIsAdoptedUnderItsFirstIndex(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"LOST-1", "LOST-2-LAG"} {
		_, at := beside(t)
		ch := open(t, at)
		f := packtest.Prepared(t, ch, now(invoice(number)))
		first, err := send(t, ch, f)
		if err != nil || first.Outcome != country.Pending {
			t.Fatalf("%s: %+v %v", number, first, err)
		}
		found, err := ch.Find(t.Context(), f, credentials())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(number, "-LAG") {
			if found.Outcome != country.Absent {
				t.Fatalf("the list should lag: %+v", found)
			}
			again, err := send(t, ch, f)
			if err != nil || again.AuthorityID1 == first.AuthorityID1 {
				t.Fatalf("a second upload has an index of its own: %+v %v", again, err)
			}
			if found, err = ch.Poll(t.Context(), f, again, credentials()); err != nil {
				t.Fatal(err)
			}
		}
		if found.Outcome != country.Accepted || found.AuthorityID1 != first.AuthorityID1 || found.SHA256 != f.SHA256 ||
			found.Format != "ZIP" || len(found.Document) == 0 {
			t.Errorf("%s: index %s is not adopted: %+v", number, first.AuthorityID1, found)
		}
	}
}

// Another document under the number is no success of ours.
func TestAnotherDocumentUnderTheNumberIsNotAdopted(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	first := packtest.Prepared(t, ch, now(invoice("SAME-1")))
	if r, err := send(t, ch, first); err != nil || r.Outcome != country.Pending {
		t.Fatalf("%+v %v", r, err)
	}
	second := packtest.Prepared(t, ch, now(draft("SAME-1", business(), item("Altceva", 1, 999, vat("21")))))
	r, err := send(t, ch, second)
	if err == nil {
		r, err = ch.Poll(t.Context(), second, r, credentials())
	}
	if err != nil || r.Outcome != country.Rejected || !r.Duplicate || r.SHA256 != first.SHA256 ||
		r.Faults[0].Code != fault.AuthorityNumberUsed {
		t.Errorf("%+v %v", r, err)
	}
}

// ANAF's words with status 200 are told apart.
func TestWordsWithStatus200AreToldApart(t *testing.T) {
	t.Parallel()
	calls, at := beside(t)
	ch := open(t, at)
	calls.limit("stareMesaj")
	asked := packtest.Prepared(t, ch, now(invoice("W0")))
	if r, err := send(t, ch, asked); err != nil {
		t.Fatal(err)
	} else if r, err = ch.Poll(t.Context(), asked, r, credentials()); err != nil || r.Outcome != country.Pending || r.Wait <= 0 {
		t.Errorf("a limit of questions: %+v %v", r, err)
	}
	calls.limit("")
	limited := packtest.Prepared(t, ch, now(invoice("W1-LIMIT")))
	if r, err := send(t, ch, limited); err != nil || r.Outcome != country.NotTaken || r.Wait <= 0 {
		t.Errorf("a limit: %+v %v", r, err)
	}
	page := packtest.Prepared(t, ch, now(invoice("W2-FIREWALL")))
	if _, err := send(t, ch, page); err == nil || errors.Is(err, country.ErrNotTaken) || errors.Is(err, country.ErrCredentials) {
		t.Errorf("a page of the firewall: %v", err)
	}
	if r, err := ch.Find(t.Context(), page, credentials()); err != nil || r.Outcome != country.Absent {
		t.Errorf("an empty list spelt as an error: %+v %v", r, err)
	}
	d := now(invoice("W-3"))
	d.Supplier.TaxNumber = "RO999999999"
	foreign := packtest.Prepared(t, ch, d)
	if _, err := send(t, ch, foreign); !errors.Is(err, country.ErrCredentials) || !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("no right in SPV: %v", err)
	}
	ungranted := country.Credentials{Named: map[string]string{"access_token": "expired"}}
	if _, err := ch.Send(t.Context(), []country.Filing{page}, ungranted); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("a token that is not taken: %v", err)
	}
	if _, err := ch.Send(t.Context(), []country.Filing{page}, country.Credentials{}); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("no token: %v", err)
	}
}

// Each kind of sale goes to its own service, with its own parameters.
func TestEverySaleGoesToItsService(t *testing.T) {
	t.Parallel()
	calls, at := beside(t)
	ch := open(t, at)
	plain := invoice("S-1")
	for service, d := range map[string]country.Draft{
		"upload cif=18547290&standard=UBL":                plain,
		"uploadb2c cif=18547290&standard=UBL":             draft("S-2", person(), item("Carte", 1, 5000, vat("11"))),
		"upload cif=18547290&standard=CN":                 correct("CREDIT", draft("S-3", nil, plain.Transaction.Items...), plain),
		"upload cif=18547290&extern=DA&standard=UBL":      euros(draft("S-4", abroad("DE", "DE136695976", "BUSINESS"), item("M", 1, 100, typed("INTRA_EU")))),
		"upload autofactura=DA&cif=18547290&standard=UBL": with(invoice("S-5"), func(d *country.Draft) { d.Transaction.Issuer = business() }),
	} {
		r, err := send(t, ch, packtest.Prepared(t, ch, now(d)))
		if err != nil || r.Outcome != country.Pending {
			t.Fatalf("%s: %+v %v", service, r, err)
		}
		if got := calls.uploaded(); got != service {
			t.Errorf("%s instead of %s", got, service)
		}
	}
}

// An archive is verified where the ministry's certificate is given.
func TestTheMinistrysSignatureIsVerifiedWhereItsCertificateIsGiven(t *testing.T) {
	t.Parallel()
	own, err := anaf.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, certificate string
		good              bool
	}{{"the double's own", own, true}, {"another's", otherCertificate(t), false}, {"none", "", true}} {
		_, at := beside(t)
		at.Identity.Secrets = map[string]string{"ministry_certificate": x.certificate}
		ch := open(t, at)
		f := packtest.Prepared(t, ch, now(invoice("M-1")))
		r, err := send(t, ch, f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ch.Poll(t.Context(), f, r, credentials())
		if x.good != (err == nil && got.Outcome == country.Accepted) {
			t.Errorf("%s: %+v %v", x.name, got.Outcome, err)
		}
	}
}

// A person agrees in a browser; what is handed over is exchanged at once; both
// tokens rotate, and the old one is worth nothing.
func TestAGrantIsGivenExchangedAndRotated(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	bare := country.Credentials{Named: map[string]string{"client_id": "client", "client_secret": "secret"}}
	in := country.Enrolment{At: at, Supplier: supplier(), Credentials: bare, State: "state-1"}
	if got := pack().Enrol(t.Context(), in); len(got.Faults) == 0 {
		t.Error("nobody can return, and a person is sent away")
	}
	in.At.Callback = "http://127.0.0.1:1/authorities/ro/test"
	asked := pack().Enrol(t.Context(), in)
	if !strings.Contains(asked.Visit, "state=state-1") || len(asked.Faults) > 0 {
		t.Fatalf("%+v", asked)
	}
	in.Grant = agree(t, at, asked.Visit, "no")
	if got := pack().Enrol(t.Context(), in); len(got.Faults) != 1 || got.Faults[0].Code != fault.CredentialsInvalid {
		t.Errorf("a person who does not agree: %+v", got)
	}
	in.Grant = agree(t, at, asked.Visit, "yes")
	done := pack().Enrol(t.Context(), in)
	if len(done.Faults) > 0 || done.Keep["access_token"] == "" || done.Keep["refresh_token"] == "" {
		t.Fatalf("%+v", done)
	}
	if got := pack().Enrol(t.Context(), in); len(got.Faults) != 1 {
		t.Errorf("a code that was used: %+v", got)
	}
	holder := bare
	holder.Named = map[string]string{"client_id": "client", "client_secret": "secret", "refresh_token": done.Keep["refresh_token"]}
	renewed, err := ro.Renew(t.Context(), at, holder)
	if err != nil || renewed["refresh_token"] == done.Keep["refresh_token"] {
		t.Fatalf("%v", err)
	}
	if _, err := ro.Renew(t.Context(), at, holder); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("a refresh token that was used: %v", err)
	}
	access, grant := ro.Until(renewed, time.Now())
	if access.Before(time.Now().Add(30*time.Minute)) || grant.Before(time.Now().Add(300*24*time.Hour)) {
		t.Errorf("ends of the tokens: %s %s", access, grant)
	}
	d := packtest.Prepared(t, open(t, at), now(invoice("G-1")))
	with := country.Credentials{Named: renewed}
	if all, err := open(t, at).Send(t.Context(), []country.Filing{d}, with); err != nil || all[0].Outcome != country.Pending {
		t.Errorf("%+v %v", all, err)
	}
}

// agree is a person's browser at the address.
func agree(t *testing.T, at country.Endpoint, address, answer string) url.Values {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader("agree="+answer))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := at.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return back.Query()
}

// The deadline is the fifth working day, around Orthodox holidays.
func TestTheDeadlineIsTheFifthWorkingDay(t *testing.T) {
	t.Parallel()
	for issued, want := range map[string]string{
		"2026-10-06T10:00:00Z": "2026-10-13T20:59:59Z",
		"2026-04-08T10:00:00Z": "2026-04-17T20:59:59Z", // Good Friday and Easter Monday between
		"2026-11-29T22:30:00Z": "2026-12-08T21:59:59Z", // 00:30 on St Andrew's day, with Union day behind
		"2026-12-30T10:00:00Z": "2027-01-11T21:59:59Z", // New Year, Epiphany, St John
	} {
		at, err := time.Parse(time.RFC3339, issued)
		if err != nil {
			t.Fatal(err)
		}
		if got := pack().LatestBy(at).UTC().Format(time.RFC3339); got != want {
			t.Errorf("issued %s: until %s instead of %s", issued, got, want)
		}
	}
}

// What ANAF holds of a day is read from its archives.
func TestTheDocumentsOfADayAreListed(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	today := time.Now().In(packtest.Zone("Europe/Bucharest"))
	plain := invoice("D-1")
	credit := correct(transaction.Credit, draft("D-2", business(), plain.Transaction.Items...), plain)
	for _, d := range []country.Draft{plain, credit} {
		d.Transaction.Date = today
		if r, err := send(t, ch, packtest.Prepared(t, ch, now(d))); err != nil || r.Outcome != country.Pending {
			t.Fatalf("%+v %v", r, err)
		}
	}
	register := ch.(country.Register)
	day := country.Day{Year: today.Year(), Month: today.Month(), Day: today.Day()}
	all, err := register.Registered(t.Context(), supplier(), day, credentials())
	if err != nil || len(all) != 2 || all[0].Number != "D-1" || *all[0].Gross != 36300 || *all[0].Net != 30000 ||
		all[1].Kind != transaction.Credit || all[1].Reference != "D-1" || all[0].SHA256 == "" || all[0].AuthorityID1 == "" {
		t.Errorf("%+v %v", all, err)
	}
	if others, err := register.Registered(t.Context(), supplier(), country.Day{Year: today.Year() - 1, Month: 1, Day: 1},
		credentials()); !errors.Is(err, country.ErrNoList) {
		t.Errorf("a day that the list does not reach: %v %v", others, err)
	}
}

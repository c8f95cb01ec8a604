package fr_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/fr"
	"tributary/internal/country/packtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

func TestEverydaySituations(t *testing.T) {
	t.Parallel()
	ch, send := packtest.Beside(t, pack(), packtest.Options{Cases: cases(), Credentials: credentials()})
	bench := packtest.Bench{Pack: pack(), Page: "../../../docs/countries/fr.md", Channel: ch, Send: send}
	bench.Try(t, situations())
}

// front counts the calls, and lets some be answered otherwise.
type front struct {
	next http.Handler

	mu    sync.Mutex
	calls map[string]int
	deny  int // so many calls with a token are told that it has ended
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls[r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]++
	denied := f.deny > 0 && r.Header.Get("Authorization") != "" && !strings.HasSuffix(r.URL.Path, "/token")
	if denied {
		f.deny--
	}
	f.mu.Unlock()
	if denied {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f.next.ServeHTTP(w, r)
}

func (f *front) denies(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deny = n
}

func (f *front) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// beside is the double, with a front before it.
func beside(t *testing.T) (*front, country.Endpoint) {
	t.Helper()
	f := &front{calls: map[string]int{}}
	return f, packtest.Fronted(t, pack(), func(next http.Handler) http.Handler { f.next = next; return f })
}

func send(t *testing.T, ch country.Channel, f country.Filing) country.Receipt {
	t.Helper()
	all, err := ch.Send(t.Context(), []country.Filing{f}, credentials())
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// A token that has ended is fetched anew, once; a client that is not taken is told
// as the company's or as the operator's.
func TestTokensAreFetchedAnewOnce(t *testing.T) {
	t.Parallel()
	calls, at := beside(t)
	ch := open(t, at)
	if r := send(t, ch, packtest.Prepared(t, ch, invoice("TK-1"))); r.Outcome != country.Pending || calls.count("POST token") != 1 {
		t.Fatalf("%+v with %d tokens", r, calls.count("POST token"))
	}
	calls.denies(1)
	if r := send(t, ch, packtest.Prepared(t, ch, invoice("TK-2"))); r.Outcome != country.Pending || calls.count("POST token") != 2 {
		t.Errorf("%+v with %d tokens", r, calls.count("POST token"))
	}
	calls.denies(2)
	f := packtest.Prepared(t, ch, invoice("TK-3"))
	if _, err := ch.Send(t.Context(), []country.Filing{f}, credentials()); !errors.Is(err, country.ErrCredentials) || !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("twice refused: %v", err)
	}
	wrong := country.Credentials{Named: map[string]string{"client_id": "client", "client_secret": "wrong"}}
	if _, err := ch.Send(t.Context(), []country.Filing{f}, wrong); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("a secret that is wrong: %v", err)
	}
	if _, err := ch.Send(t.Context(), []country.Filing{f}, country.Credentials{}); !errors.Is(err, country.ErrNoIdentity) {
		t.Errorf("nobody's client: %v", err)
	}
	at.Identity.Secrets = map[string]string{"client_id": "operator", "client_secret": "wrong"}
	if _, err := open(t, at).Send(t.Context(), []country.Filing{f}, country.Credentials{}); !errors.Is(err, country.ErrNoIdentity) {
		t.Errorf("the operator's client is not taken: %v", err)
	}
	in := country.Enrolment{At: at, Supplier: supplier(), Credentials: wrong}
	if got := pack().Enrol(t.Context(), in); len(got.Faults) != 1 || got.Faults[0].Code != fault.CredentialsInvalid {
		t.Errorf("onboarding with a secret that is wrong: %+v", got)
	}
	in.Credentials = credentials()
	if got := pack().Enrol(t.Context(), in); len(got.Faults) > 0 {
		t.Errorf("onboarding: %+v", got)
	}
}

// A flow whose answer was lost is found by its tracking id; sent again, it is
// followed to the first one.
func TestALostFlowIsAdopted(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	f := packtest.Prepared(t, ch, invoice("LOST-1"))
	if r, err := ch.Find(t.Context(), f, credentials()); err != nil || r.Outcome != country.Absent {
		t.Fatalf("before: %+v %v", r, err)
	}
	first := send(t, ch, f)
	found, err := ch.Find(t.Context(), f, credentials())
	if err != nil || found.Outcome != country.Accepted || found.AuthorityID1 != first.AuthorityID1 || found.SHA256 != f.SHA256 {
		t.Fatalf("%+v %v", found, err)
	}
	again := send(t, ch, f)
	followed, err := ch.Poll(t.Context(), f, again, credentials())
	if err != nil || again.Handle == first.Handle || followed.Outcome != country.Accepted || followed.AuthorityID1 != first.AuthorityID1 {
		t.Errorf("%+v %v", followed, err)
	}
}

// Limits are a pause; acknowledgements come when they come.
func TestThePlatformTakesItsTime(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	f := packtest.Prepared(t, ch, invoice("W-LIMIT"))
	if r := send(t, ch, f); r.Outcome != country.NotTaken || r.Wait != 2*time.Second {
		t.Errorf("%+v", r)
	}
	f = packtest.Prepared(t, ch, invoice("W-WORKING"))
	r := send(t, ch, f)
	for n, want := range []country.Outcome{country.Pending, country.Pending, country.Accepted} {
		got, err := ch.Poll(t.Context(), f, r, credentials())
		if err != nil || got.Outcome != want {
			t.Errorf("question %d: %+v %v", n+1, got.Outcome, err)
		}
	}
}

// What is said behind 200 is news with the official names; a refusal is a problem.
func TestLaterStatusesAreNews(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	for ending, want := range map[string]country.Severity{"205": country.Info, "207": country.Caution, "210": country.Problem, "213": country.Problem} {
		f := packtest.Prepared(t, ch, invoice("N-"+ending))
		r := send(t, ch, f)
		if got, err := ch.Poll(t.Context(), f, r, credentials()); err != nil || got.Outcome != country.Accepted || got.Format != "XML" {
			t.Fatalf("%s: %+v %v", ending, got.Outcome, err)
		}
		got, err := pack().Fetch.Look(t.Context(), country.Inquiry{Channel: ch, Supplier: supplier(), Credentials: credentials(), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		got.Messages = slices.DeleteFunc(got.Messages, func(m country.Message) bool { return m.Handle != f.Aliases[0] })
		if len(got.Messages) != 2 || got.Messages[0].Receipt.News[0].Name != "Mise à disposition" {
			t.Fatalf("%s: %+v", ending, got.Messages)
		}
		if n := got.Messages[1].Receipt.News[0]; n.Code != ending || n.Severity != want || n.Name == "" || got.Messages[1].Receipt.Outcome != "" {
			t.Errorf("%+v", n)
		}
	}
	other := supplier()
	other.CompanyNumber, other.TaxNumber = "404833048", "FR83404833048"
	if got, err := pack().Fetch.Look(t.Context(), country.Inquiry{Channel: ch, Supplier: other, Credentials: credentials(), Limit: 100}); err != nil || len(got.Messages) > 0 {
		t.Errorf("another company sees %+v %v", got.Messages, err)
	}
}

// The directory says where a buyer receives, and whether it does.
func TestTheDirectoryIsAskedBeforeADraftIsMade(t *testing.T) {
	t.Parallel()
	calls, at := beside(t)
	ch := open(t, at)
	ask := func(number string, change func(*transaction.Party)) country.Learned {
		t.Helper()
		b := business()
		b.EntityNumber, b.TaxNumber = number, ""
		change(b)
		got, err := ch.(country.Learner).Learn(t.Context(), coffee("L-1", b), credentials())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := func(*transaction.Party) {}
	for number, want := range map[string]string{"552100554": `{"address":"552100554"}`, "43210987400026": `{"address":"432109874_43210987400026"}`,
		"999000003": `{"unlisted":true}`, "999000011": `{"unlisted":true}`} {
		got := ask(number, same)
		if got.Text != want || (len(got.Warnings) > 0) != strings.Contains(want, "unlisted") {
			t.Errorf("%s: %+v", number, got)
		}
	}
	before := calls.count("POST search")
	if ask("552100554", same); calls.count("POST search") != before {
		t.Error("a SIREN that is known is asked for again")
	}
	routed := ask("552100554", func(b *transaction.Party) {
		b.Electronic = &transaction.ElectronicAddress{Scheme: "0225", ID: "552100554_ACHATS"}
	})
	if !strings.Contains(routed.Text, "552100554_ACHATS") || len(routed.Warnings) != 1 {
		t.Errorf("an address that the directory does not have: %+v", routed)
	}
	if got := ask("", func(b *transaction.Party) { b.Type = transaction.Individual }); got.Text != "" {
		t.Errorf("a consumer is looked up: %+v", got)
	}
}

// The official samples of messages are understood.
func TestTheOfficialSamplesOfStatusesAreRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(needs.Schemas(t, "fr-ctc", "examples", "cdar"), "*.xml"))
	if err != nil || len(files) < 5 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code, handle, news, err := fr.Said(text)
		if err != nil || !strings.Contains(filepath.Base(path), "CDV-"+code) || !strings.HasPrefix(handle, "fr|100000009|380|F20250") {
			t.Errorf("%s: %s %s %v", filepath.Base(path), code, handle, err)
		}
		if code != "200" && (len(news) != 1 || news[0].Name == "" || news[0].At.IsZero()) {
			t.Errorf("%s: %+v", filepath.Base(path), news)
		}
	}
}

// A report names the platform: without its number, or with one that is none, nothing
// is made, and it is the operator who is asked.
func TestAReportWaitsForThePlatformsNumber(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	for number, want := range map[string]bool{"": false, "12": false, "12345": false, "A123": false, "0042": true} {
		at.Identity.Secrets = map[string]string{"client_id": "operator", "client_secret": "secret"}
		if number != "" {
			at.Identity.Secrets["platform_number"] = number
		}
		f, err := open(t, at).Prepare(reported(t, coffee("PN-1", person())))
		switch {
		case want && (err != nil || !strings.Contains(string(f.Report), `schemeId="0238">0042<`)):
			t.Errorf("%q: %v\n%s", number, err, f.Report)
		case !want && (!errors.Is(err, country.ErrNoIdentity) || !strings.Contains(err.Error(), "platform_number")):
			t.Errorf("%q: %v", number, err)
		}
	}
}

// reported is the report of the period of one sale.
func reported(t *testing.T, sale country.Draft) country.Draft {
	t.Helper()
	g, err := pack().Periods.Gather(sale)
	if err != nil {
		t.Fatal(packtest.Explain(err))
	}
	sum, err := pack().Periods.Sum(func(yield func(country.PeriodSale, error) bool) {
		yield(country.PeriodSale{TransactionID: sale.Transaction.ID, Data: g.Data}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return country.Draft{OperationID: "report", Transaction: transaction.Transaction{Kind: transaction.Period}, Supplier: sale.Supplier,
		Location: packtest.Zone("Europe/Paris"), Now: day, Period: &country.Period{Span: g.Span, Number: "T20261001-EUR-1", Sum: sum, Count: 1}}
}

// paymentOf is money received for a sale.
func paymentOf(number string, amount int64, sales ...country.Draft) country.Draft {
	d := draft(number, nil)
	d.Transaction.Kind, d.Transaction.Items, d.Transaction.Customer = transaction.PaymentReport, nil, nil
	d.Transaction.Payments = []transaction.Payment{{Type: "TRANSFER", Amount: amount, Date: "2026-11-08"}}
	for _, s := range sales {
		d.Shares = append(d.Shares, country.Share{Amount: amount, Original: country.Original{Transaction: s.Transaction, Totals: s.Totals}})
	}
	return d
}

// What was paid of an invoice is a status by rate (212), which the platform takes once
// it has the invoice, up to what the invoice comes to.
func TestMoneyForAnInvoiceIsAStatus(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	ch := open(t, at)
	sold := draft("PAID-1", business(), item("Pièces", 1, 10000, vat("20")), service(item("Pose", 1, 10000, vat("10"))), service(item("Conseil", 1, 5000, vat("20"))))
	invoice := packtest.Prepared(t, ch, sold)
	pay := func(number string, amount int64) country.Filing {
		t.Helper()
		d := paymentOf(number, amount, sold)
		d.OperationID, d.Shares[0].Report = "op-"+number, invoice.Report
		if g, err := pack().Periods.Gather(d); g != nil || err != nil {
			t.Fatalf("gathered: %+v %v", g, err)
		}
		return packtest.Prepared(t, ch, d)
	}
	whole := sold.Totals.Gross
	early := pay("P-0", whole)
	r := send(t, ch, early)
	if r, err := ch.Poll(t.Context(), early, r, credentials()); err != nil || r.Outcome != country.Rejected || !strings.Contains(r.Faults[0].Message, "InvoiceLCStatusError") {
		t.Errorf("before the invoice: %+v %v", r.Faults, err)
	}
	if r, err := ch.Poll(t.Context(), invoice, send(t, ch, invoice), credentials()); err != nil || r.Outcome != country.Accepted {
		t.Fatal(r.Faults, err)
	}
	half := pay("P-1", whole/2)
	for _, want := range []string{">PAID-1<", ">380<", "20261007", ">212<", ">Encaissée<", ">552100554<", `>9998<`, ">10<", ">20<", "20261108120000",
		`currencyID="EUR">55.00<`, `currencyID="EUR">30.00<`} {
		if !strings.Contains(string(half.Report), want) {
			t.Errorf("%s is not in %s", want, half.Report)
		}
	}
	got, err := ch.Poll(t.Context(), half, send(t, ch, half), credentials())
	if err != nil || got.Outcome != country.Accepted || got.AuthorityID1 == "" {
		t.Errorf("%+v %v", got, err)
	}
	found, err := ch.Find(t.Context(), half, credentials())
	if err != nil || found.Outcome != country.Accepted || found.AuthorityID1 != got.AuthorityID1 {
		t.Errorf("looked up: %+v %v", found, err)
	}
	much := pay("P-2", 4*whole)
	if r, err := ch.Poll(t.Context(), much, send(t, ch, much), credentials()); err != nil || r.Outcome != country.Rejected || !strings.Contains(r.Faults[0].Message, "InvoiceLCAmountError") {
		t.Errorf("too much: %+v %v", r.Faults, err)
	}
}

// Money for what was reported is reported, by the day of its coming; what needs no
// report, or no report alone, is refused and says why.
func TestMoneyForWhatWasReportedIsReported(t *testing.T) {
	t.Parallel()
	haircut := draft("PB-1", person(), service(item("Coupe", 1, 3000, packtest.VAT("20", transaction.Included))))
	abroad := with(draft("PI-1", german(), service(item("Formation à Paris", 1, 10000, vat("20")))), func(*country.Draft) {})
	g, err := pack().Periods.Gather(paymentOf("P-1", 3000, haircut))
	if err != nil {
		t.Fatal(packtest.Explain(err))
	}
	if g.Span.Report != "payments" || g.Span.First.Format(time.DateOnly) != "2026-11-01" || g.Gross != 3000 || !strings.Contains(string(g.Data), `"paid":[{"day":"20261108"`) {
		t.Errorf("%+v %s", g.Span, g.Data)
	}
	if g, err = pack().Periods.Gather(paymentOf("P-2", 12000, abroad)); err != nil || !strings.Contains(string(g.Data), `"settled":[{"number":"PI-1"`) {
		t.Errorf("abroad: %+v %v", g, err)
	}
	goods := coffee("PG-1", person())
	filedOne := paymentOf("P-3", 3000, haircut, haircut)
	filedOne.Shares[1].Report = []byte("<x/>")
	early := haircut
	early.Transaction.Date = time.Date(2026, 8, 30, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		d    country.Draft
		want string
	}{
		"debits":      {set(paymentOf("P-4", 3000, haircut), "vat_on_debits", true), "vat_on_debits"},
		"franchise":   {set(paymentOf("P-5", 3000, haircut), "vat_regime", "franchise"), "franchise"},
		"goods":       {paymentOf("P-6", 1000, goods), "no services"},
		"mixed":       {filedOne, "by itself"},
		"before 2026": {paymentOf("P-7", 3000, early), "obliged_since"},
		"of no sale":  {paymentOf("P-8", 3000), "must name"},
	} {
		if g, err := pack().Periods.Gather(c.d); g != nil || err == nil || !strings.Contains(packtest.Explain(err), c.want) {
			t.Errorf("%s: %+v %v", name, g, err)
		}
	}
}

// What the administration says of a report is read: 300 for the books, 301 has it made
// anew. A report that replaces nothing, or comes twice, is refused.
func TestWhatIsSaidOfAReportIsRead(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	at.Identity.Secrets = map[string]string{"platform_number": "0042"}
	ch := open(t, at)
	said := ""
	told := func(operation, number, replaces string) country.News {
		t.Helper()
		d := reported(t, coffee("R-1", person()))
		d.OperationID, d.Period.Number, d.Period.Replaces, d.Period.Refused = operation, number, replaces, said
		f := packtest.Prepared(t, ch, d)
		if r, err := ch.Poll(t.Context(), f, send(t, ch, f), credentials()); err != nil || r.Outcome != country.Accepted {
			t.Fatalf("%s: %+v %v", number, r.Faults, err)
		}
		got, err := pack().Fetch.Look(t.Context(), country.Inquiry{Channel: ch, Supplier: supplier(), Credentials: credentials(), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			if m.Handle == f.Aliases[0] {
				return m.Receipt.News[0]
			}
		}
		t.Fatalf("nothing was said of %s: %+v", number, got.Messages)
		return country.News{}
	}
	if n := told("o0", "T-0", "T-none"); n.Code != "301" || !n.Refuses || n.Severity != country.Problem || !strings.Contains(n.Message, "REJ_PER") {
		t.Errorf("replaces nothing: %+v", n)
	}
	if n := told("o1", "T-1", ""); n.Code != "300" || n.Refuses || n.Severity != country.Info {
		t.Errorf("the first: %+v", n)
	}
	if n := told("o3", "T-3", "T-1"); n.Code != "300" {
		t.Errorf("one that replaces: %+v", n)
	}
	second := told("o2", "T-2", "") // as after a restored backup, which knows of no first one
	if second.Code != "301" || !strings.Contains(second.Message, "REJ_UNI") {
		t.Errorf("a second first one: %+v", second)
	}
	said = second.Code + " " + second.Message
	if n := told("o4", "T-4", ""); n.Code != "300" {
		t.Errorf("made anew as one that replaces: %+v", n)
	}
}

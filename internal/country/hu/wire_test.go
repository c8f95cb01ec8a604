package hu_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/gobl/num"

	"tributary/internal/authority"
	"tributary/internal/authority/nav"
	"tributary/internal/country"
	"tributary/internal/country/hu"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/transaction"
)

// office is NAV's double over HTTP.
type office struct {
	t       *testing.T
	desk    *authority.Desk
	channel country.Channel
	at      country.Endpoint
}

func open(t *testing.T) *office {
	t.Helper()
	desk, err := authority.OpenDesk(t.TempDir(), "HU")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(nav.New(desk))
	client := server.Client()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &office{t: t, desk: desk, at: country.Endpoint{BaseURL: server.URL, HTTP: client}}
	if o.channel, err = pack().Connect(o.at); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) prepare(d country.Draft) country.Filing {
	o.t.Helper()
	f, err := o.channel.Prepare(d)
	if err != nil {
		o.t.Fatal(err)
	}
	return f
}

// settle sends and polls until there is a decision.
func (o *office) settle(f country.Filing) country.Receipt {
	o.t.Helper()
	receipts, err := o.channel.Send(o.t.Context(), []country.Filing{f}, credentials())
	if err != nil {
		o.t.Fatal(err)
	}
	return o.decided(f, receipts[0])
}

func (o *office) decided(f country.Filing, r country.Receipt) country.Receipt {
	o.t.Helper()
	for r.Outcome == country.Pending {
		next, err := o.channel.Poll(o.t.Context(), f, r, credentials())
		if err != nil {
			o.t.Fatal(err)
		}
		r = next
	}
	return r
}

// The signature is that of NAV's own example (specification, chapter 1.5), and of
// every call among its samples.
func TestSignaturesAreThoseOfNAVsExamples(t *testing.T) {
	at, err := time.Parse(time.RFC3339, "2017-12-30T18:25:45Z")
	if err != nil {
		t.Fatal(err)
	}
	got := hu.Sign("TSTKFT1222564", at, "ce-8f5e-215119fa7dd621DLMRHRLH2S", [2]string{"CREATE", "QWJjZDEyMzQ="},
		[2]string{"MODIFY", "RGNiYTQzMjE="})
	if want := "60BC80609EE3B8F42FE904200A49A1921A1DADA08D55319ACD40C59F626514B74EEA49011D372600A10DBCF8199D590DA9C2841D987308F2D83DAE17C2470C42"; got != want {
		t.Errorf("signed %s", got)
	}
	folder := needs.Schemas(t, "hu-nav", "sample", "API sample")
	files, err := filepath.Glob(filepath.Join(folder, "*.xml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	part := func(text, name string) string {
		m := regexp.MustCompile(`<(?:common:)?` + name + `[^>]*>([^<]*)<`).FindStringSubmatch(text)
		if m == nil {
			return ""
		}
		return m[1]
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		at, err := time.Parse(time.RFC3339, part(text, "timestamp"))
		if err != nil {
			t.Fatal(err)
		}
		var entries [][2]string
		for _, m := range regexp.MustCompile(
			`(?s)<invoiceOperation>(\w+)</invoiceOperation>\s*<invoiceData>([^<]*)<`).FindAllStringSubmatch(text, -1) {
			entries = append(entries, [2]string{m[1], m[2]})
		}
		for _, m := range regexp.MustCompile(
			`(?s)<annulmentOperation>(\w+)</annulmentOperation>\s*<invoiceAnnulment>([^<]*)<`).FindAllStringSubmatch(text, -1) {
			entries = append(entries, [2]string{m[1], m[2]})
		}
		if got := hu.Sign(part(text, "requestId"), at, part(text, "signKey"),
			entries...); got != part(text, "requestSignature") {
			t.Errorf("%s: signed %s", filepath.Base(file), got)
		}
	}
}

// Tokens are opened as openssl sealed them: printf … | openssl enc -aes-128-ecb -K <hex of the key> -base64.
func TestTokensAreOpenedAsOthersSealThem(t *testing.T) {
	sealed, err := base64.StdEncoding.DecodeString(sealedToken)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := hu.Opened(sealed, "ExchangeKey12345"); !ok || got != plainToken {
		t.Errorf("opened %q %t", got, ok)
	}
	for _, key := range []string{"ExchangeKey12346", "short", ""} {
		if got, ok := hu.Opened(sealed, key); ok {
			t.Errorf("%q opened it: %q", key, got)
		}
	}
	if _, ok := hu.Opened(sealed[:30], "ExchangeKey12345"); ok {
		t.Error("a part was opened")
	}
}

// OPERATION_FAILED may hide an invoice that was taken: it is found and never sent again.
func TestOperationFailedIsNotNothingTaken(t *testing.T) {
	o := open(t)
	f := o.prepare(invoice("A-OPFAILED"))
	_, err := o.channel.Send(t.Context(), []country.Filing{f}, credentials())
	if err == nil || errors.Is(err, country.ErrNotTaken) || !strings.Contains(err.Error(), "OPERATION_FAILED") {
		t.Fatalf("sent: %v", err)
	}
	r, err := o.channel.Find(t.Context(), f, credentials())
	if err != nil || r.Outcome != country.Accepted || r.SHA256 != f.SHA256 || r.AuthorityID1 == "" {
		t.Fatalf("found %+v %v", r, err)
	}
	if all, _ := o.desk.Registrations(); len(all) != 1 {
		t.Errorf("%d registrations", len(all))
	}
}

// While NAV reads, its lists lack the invoice: that is no proof, and VisibleAfter
// says how long; later it is found in the list of transactions.
func TestWhatListsDoNotShowYetIsFoundLater(t *testing.T) {
	o := open(t)
	f := o.prepare(invoice("B-LAG"))
	if _, err := o.channel.Send(t.Context(), []country.Filing{f}, credentials()); err != nil {
		t.Fatal(err)
	}
	r, err := o.channel.Find(t.Context(), f, credentials())
	if err != nil || r.Outcome != country.Absent {
		t.Fatalf("found %+v %v", r, err)
	}
	for range 3 {
		if r, err = o.channel.Find(t.Context(), f, credentials()); err != nil {
			t.Fatal(err)
		}
	}
	if r.Outcome != country.Accepted || r.SHA256 != f.SHA256 {
		t.Errorf("found %+v", r)
	}
	real, err := pack().Connect(country.Endpoint{BaseURL: "https://api.onlineszamla.nav.gov.hu", HTTP: o.at.HTTP})
	if err != nil || real.Limits().VisibleAfter < 6*time.Minute || real.Limits().CallTimeout < 65*time.Second {
		t.Errorf("limits of NAV itself: %+v %v", real.Limits(), err)
	}
}

// An invoice that is still in work is found in its transaction, among others.
func TestWhatIsInWorkIsFoundAmongOthers(t *testing.T) {
	o := open(t)
	for i := range 5 {
		o.settle(o.prepare(invoice(fmt.Sprintf("W-%d", i))))
	}
	f := o.prepare(invoice("W-9"))
	if err := o.desk.SetScript([]authority.Step{{Outcome: authority.Suspend, Times: 3}}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.channel.Send(t.Context(), []country.Filing{f}, credentials()); err != nil {
		t.Fatal(err)
	}
	r, err := o.channel.Find(t.Context(), f, credentials())
	if err != nil || r.Outcome != country.Pending || r.Handle == "" || r.SHA256 != f.SHA256 {
		t.Fatalf("found %+v %v", r, err)
	}
	if r = o.decided(f, r); r.Outcome != country.Accepted {
		t.Errorf("decided %+v", r)
	}
}

// NAV has no remark on any document that the suite files.
func TestDocumentsAreTakenWithoutARemark(t *testing.T) {
	o := open(t)
	for _, c := range cases() {
		if r := o.settle(o.prepare(c.Draft)); r.Outcome != country.Accepted || len(r.Faults) > 0 {
			t.Errorf("%s: %s %+v", c.Name, r.Outcome, r.Faults)
		}
	}
}

func TestRemarksAreWarnings(t *testing.T) {
	o := open(t)
	r := o.settle(o.prepare(invoice("C-WARN")))
	if r.Outcome != country.Accepted || len(r.Faults) != 1 || r.Faults[0].Type != fault.Warning ||
		r.Faults[0].Code != fault.AuthorityRemark ||
		!strings.Contains(r.Faults[0].Message, "LINE_SUMMARY_GROSS_AMOUNT_MISMATCH") {
		t.Errorf("%+v", r)
	}
}

// Wrong secrets are told apart where NAV does.
func TestWrongSecretsAreToldApart(t *testing.T) {
	o := open(t)
	for field, change := range map[string]func(*country.Enrolment){
		"":                              func(*country.Enrolment) {},
		"tax_credentials.username":      func(e *country.Enrolment) { e.Credentials.Secret = "wrong" },
		"tax_credentials.signature_key": func(e *country.Enrolment) { e.Credentials.Named["signature_key"] = "other" },
		"tax_credentials.exchange_key": func(e *country.Enrolment) {
			e.Credentials.Named["exchange_key"] = "0123456789abcdef"
		},
		"tax_information.tax_number": func(e *country.Enrolment) { e.Supplier.TaxNumber = "99999999" },
	} {
		in := country.Enrolment{At: o.at, Supplier: supplier(), Credentials: credentials()}
		change(&in)
		got := pack().Enrol(t.Context(), in)
		switch {
		case field == "" && len(got.Faults) > 0:
			t.Errorf("right secrets: %+v", got.Faults)
		case field == "tax_information.tax_number" && len(got.Faults) == 0: // readNumber has nothing to ask with
		case field != "" && (len(got.Faults) != 1 || got.Faults[0].Field != field ||
			got.Faults[0].Code != fault.CredentialsInvalid):
			t.Errorf("%s: %+v", field, got.Faults)
		}
	}
	gone := country.Enrolment{At: country.Endpoint{BaseURL: "http://127.0.0.1:1", HTTP: http.DefaultClient},
		Supplier: supplier(), Credentials: credentials()}
	if got := pack().Enrol(t.Context(), gone); len(got.Faults) > 0 {
		t.Errorf("NAV away: %+v", got.Faults)
	}
}

// A call has room for ten megabytes: what does not fit goes with the next.
func TestACallIsBoundedByBytes(t *testing.T) {
	o := open(t)
	items := make([]transaction.Item, 2600)
	for i := range items {
		items[i] = item(strings.Repeat("hosszú név ", 40), num.MakeAmount(1, 0), 100000, vat("27", transaction.Added))
	}
	var filings []country.Filing
	size := 0
	for i := range 4 {
		filings = append(filings, o.prepare(draft(fmt.Sprintf("L-%d", i), homeBuyer(), items...)))
		size += len(filings[i].Report)
	}
	if size < 10<<20 {
		t.Fatalf("only %d bytes", size)
	}
	receipts, err := o.channel.Send(t.Context(), filings, credentials())
	if err != nil || len(receipts) != len(filings) {
		t.Fatalf("%d receipts %v", len(receipts), err)
	}
	taken := 0
	for _, r := range receipts {
		if r.Outcome == country.Pending {
			taken++
		} else if r.Outcome != country.NotTaken {
			t.Errorf("%+v", r)
		}
	}
	if taken == 0 || taken == len(filings) {
		t.Errorf("%d of %d were taken", taken, len(filings))
	}
}

func TestNAVListsWhatItHoldsOfADay(t *testing.T) {
	o := open(t)
	plain := invoice("D-1")
	o.settle(o.prepare(plain))
	o.settle(o.prepare(correct(transaction.Credit, draft("D-2", homeBuyer(), plain.Transaction.Items...), plain)))
	local := day.In(budapest())
	got, err := o.channel.(country.Register).Registered(t.Context(), supplier(),
		country.Day{Year: local.Year(), Month: local.Month(), Day: local.Day()}, credentials())
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v %v", got, err)
	}
	if got[0].Number != "D-1" || got[0].Kind != transaction.Invoice || got[1].Kind != transaction.Credit ||
		got[1].Reference != "D-1" || got[1].AuthorityID1 == "" {
		t.Errorf("%+v", got)
	}
	reads := o.channel.(country.LineReader)
	lines, err := reads.Lines(t.Context(), supplier(), got[0], credentials())
	var ours []int64
	for _, l := range plain.Totals.Lines {
		ours = append(ours, l.Net)
	}
	if err != nil || len(ours) == 0 || !slices.Equal(lines, ours) {
		t.Errorf("lines %v, want %v: %v", lines, ours, err)
	}
	if lines, err := reads.Lines(t.Context(), supplier(), country.Entry{Number: "D-9"}, credentials()); err == nil {
		t.Errorf("an invoice that NAV does not show has lines %v", lines)
	}
}

// What cannot be written is refused when it is prepared, with the place.
func TestCorrectionsThatCannotBeWritten(t *testing.T) {
	o := open(t)
	plain := invoice("E-1")
	adjusted := correct(transaction.Adjustment,
		draft("E-2", homeBuyer(), item("x", one(), -1000, vat("27", transaction.Added))), plain)
	for name, d := range map[string]country.Draft{
		"credit of what was adjusted": correct(transaction.Credit, draft("E-3", homeBuyer(), plain.Transaction.Items...),
			plain, adjusted),
		"cancellation": correct(transaction.Cancellation, draft("E-4", homeBuyer(), plain.Transaction.Items...), plain),
		"no tax for the buyer": with(correct(transaction.Adjustment,
			draft("E-5", nil, item("x", one(), -1000, typed(transaction.TaxIntraEU, ""))), plain),
			func(d *country.Draft) { d.Transaction.Customer = nil }),
	} {
		_, err := o.channel.Prepare(d)
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != fault.Invalid || len(known.Faults) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const (
	plainToken  = "abcdefgh-0123-4567-89ab-cdef01234567ABCDEFGHIJKL"
	sealedToken = "pKqj0nM20MEH4jUjZo/jr2jPu+J21pEq/T3McT7uf5OB/Ga+KEufaTpTNYKsbQYH4VSQ1QTmEhpw9FMKwfbr/A=="
)

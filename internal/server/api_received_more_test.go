package server_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db/dbtest"
	"tributary/internal/ledger"
	"tributary/internal/received"
)

// take hands a document over as a source that names it would.
func (p *program) take(t *testing.T, name, company string, document []byte) (operation string, fresh bool) {
	t.Helper()
	operation, fresh, err := p.Received().Take(t.Context(), received.Arrival{Scope: p.Demo().ClientID, Media: received.XML, Bytes: document,
		Source: "DE.test", AuthorityID: name, CompanyID: company})
	if err != nil {
		t.Fatal(err)
	}
	return operation, fresh
}

// Another document under an id that one has already is kept aside, and stays so; the first is not touched.
func TestAnIDThatComesTwiceWithOtherBytesIsKeptAside(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	seller, buyer := trader(t, c, "seller of two", "DE200000056"), trader(t, c, "buyer of two", "DE200000064")
	_, document := sold(t, c, seller, "two-1", "DE200000064")
	_, other := sold(t, c, seller, "two-2", "DE200000064")
	first, fresh := p.take(t, "A-1", buyer, document)
	if r := c.read(t, first); !fresh || r["status"] != "SUCCESS" || r["tax_authority_id_1"] != "A-1" {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	second, fresh := p.take(t, "A-1", buyer, other)
	r := c.read(t, second)
	if !fresh || second == first || r["status"] != "FAILURE" || !strings.Contains(fmt.Sprint(r["errors"]), "conflict") ||
		attachmentsOf(r)["ORIGINAL/XML"] == nil {
		t.Errorf("other bytes: %v %v", r["status"], r["errors"])
	}
	if n := p.count(t, "SELECT count(*) FROM alerts WHERE name = 'received_aside' AND message LIKE $1", "%"+second); n != 1 {
		t.Errorf("%d alerts", n)
	}
	for i, again := range [][]byte{document, other} {
		if id, fresh := p.take(t, "A-1", buyer, again); fresh || id != []string{first, second}[i] {
			t.Errorf("%d again: %s, fresh %v", i, id, fresh)
		}
	}
	if id := c.upload(t, "application/xml", other); id != second || c.read(t, second)["status"] != "FAILURE" {
		t.Error("an upload decides for the person who has to")
	}
	if id, fresh := p.take(t, "A-9", buyer, document); fresh || id != first {
		t.Error("the same bytes under a second id are a second document")
	}
}

// A document that refers to another names it, and is named by it, on both sides.
func TestDocumentsThatReferToOneAnotherAreLinked(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	seller := trader(t, c, "seller of links", "DE200000072")
	trader(t, c, "buyer of links", "DE200000080")
	sent, document := sold(t, c, seller, "links-1", "DE200000080")
	credit := c.submit(t, "/v1/transactions/credit", object{"country_code": "DE", "transaction_date": "2026-11-16T10:00:00Z",
		"transaction_id": "links-2", "transaction_number": "C-links", "reference_transaction_id": "links-1", "note": "all of it"})
	credited := c.report(t, c.outcome(t, credit))
	invoice, note := c.upload(t, "application/xml", document), c.upload(t, "application/xml", credited)
	c.read(t, invoice)
	r := c.read(t, note)
	if r["kind"] != "CREDIT" || fmt.Sprint(r["references"]) != fmt.Sprint([]any{object{"transaction_id": nil, "amount": 0,
		"transaction_number": "N-links-1", "transaction_date": "2026-11-15"}}) {
		t.Errorf("%v names %v", r["kind"], r["references"])
	}
	links := func(operation string) (list []string) {
		of := c.want(t, 200, "GET", "/v1/transactions/"+operation, nil).json(t)
		related, _ := of["related"].([]any)
		for _, one := range related {
			list = append(list, fmt.Sprint(one.(object)["relation"], " ", one.(object)["operation_id"]))
		}
		slices.Sort(list)
		return list
	}
	for of, want := range map[string][]string{
		invoice: {"REFERRED_BY " + note, "SAME_DOCUMENT " + sent}, note: {"REFERS_TO " + invoice, "SAME_DOCUMENT " + credit},
		sent: {"SAME_DOCUMENT " + invoice}, credit: {"SAME_DOCUMENT " + note}} {
		if got := links(of); !slices.Equal(got, want) {
			t.Errorf("%s is linked to %v, want %v", of, got, want)
		}
	}
	// Who answers an invoice of ours with a document of their own refers to what we sent.
	answer := bytes.ReplaceAll(credited, []byte("DE200000072"), []byte("DE2000000XX"))
	answer = bytes.ReplaceAll(answer, []byte("DE200000080"), []byte("DE200000072"))
	answer = bytes.ReplaceAll(answer, []byte("DE2000000XX"), []byte("DE200000080"))
	theirs := c.upload(t, "application/xml", answer)
	if r := c.read(t, theirs); r["status"] != "SUCCESS" || r["customer"].(object)["id"] != seller {
		t.Fatalf("%v %v", r["status"], r["errors"])
	}
	if got := links(theirs); !slices.Contains(got, "REFERS_TO "+sent) ||
		c.want(t, 200, "GET", "/v1/transactions/"+theirs, nil).json(t)["reference_transaction_id"] != "links-1" {
		t.Errorf("the answer is linked to %v", got)
	}
	if got := links(sent); !slices.Contains(got, "REFERRED_BY "+theirs) {
		t.Errorf("what it answers is linked to %v", got)
	}
	foundByPeople(t, p, invoice, seller)
}

// foundByPeople looks for a received document as the console does.
func foundByPeople(t *testing.T, p *program, operation, sender string) {
	t.Helper()
	for _, q := range []ledger.Query{{Number: "N-links-1"}, {Text: "N-links-1"}, {Supplier: sender, Status: "SUCCESS"}} {
		q.Direction, q.ClientID = ledger.Received, p.Demo().ClientID
		page, err := p.Ledger().Search(t.Context(), q)
		if err != nil || !slices.ContainsFunc(page.List, func(s ledger.Summary) bool { return s.OperationID == operation }) {
			t.Errorf("%+v finds %d others: %v", q, len(page.List), err)
		}
	}
	life, err := p.Ledger().Life(t.Context(), operation)
	if err != nil {
		t.Fatal(err)
	}
	var what []string
	for _, m := range life.Moments {
		what = append(what, m.What)
	}
	if !slices.Contains(what, "accepted") || !slices.Contains(what, "settled") {
		t.Errorf("its timeline is %v", what)
	}
}

// Files inside of a document are a stranger's: each is a download, whatever it claims to be, and what could be shown by
// a browser stays in the original.
func TestFilesInsideAreDownloadsOnly(t *testing.T) {
	t.Parallel()
	p := busy(t)
	c := receives(t, p)
	seller := trader(t, c, "seller of files", "DE200000099")
	trader(t, c, "buyer of files", "DE200000101")
	_, document := sold(t, c, seller, "files-1", "DE200000101")
	const script = "<script>alert(1)</script>"
	inside := func(id, media, name string) string {
		return `<ram:AdditionalReferencedDocument><ram:IssuerAssignedID>` + id + `</ram:IssuerAssignedID><ram:TypeCode>916</ram:TypeCode>` +
			`<ram:AttachmentBinaryObject mimeCode="` + media + `" filename="` + name + `">` +
			base64.StdEncoding.EncodeToString([]byte(script)) + `</ram:AttachmentBinaryObject></ram:AdditionalReferencedDocument>`
	}
	const before = "</ram:ApplicableHeaderTradeAgreement>"
	document = bytes.Replace(document, []byte(before), []byte(inside("1", "text/csv", "../../a&lt;b&gt;.csv")+
		inside("2", "text/csv", "../../a&lt;b&gt;.csv")+inside("3", "text/html", "page.html")+before), 1)
	r := c.read(t, c.upload(t, "application/xml", document))
	if r["status"] != "SUCCESS" || !strings.Contains(fmt.Sprint(r["errors"]), "page.html") {
		t.Errorf("%v %v", r["status"], r["errors"])
	}
	var names []string
	for _, a := range r["attachments"].([]any) {
		one := a.(object)
		if one["kind"] != "CLIENT" {
			continue
		}
		names = append(names, one["name"].(string))
		got := c.want(t, 200, "GET", "/invoicing/v1/invoices/"+one["resource_id"].(string)+"/csv", nil)
		if string(got.body) != script || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment;") ||
			got.header.Get("Content-Security-Policy") != "sandbox" || got.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %v", one["name"], got.header)
		}
	}
	slices.Sort(names)
	if want := []string{".._.._a<b>.csv", "2-.._.._a<b>.csv"}; !slices.Equal(names, want) {
		t.Errorf("the files are %q", names)
	}
}

// unread is a body of which nobody reads much.
type unread struct{ read int }

func (u *unread) Read(p []byte) (int, error) {
	u.read += len(p)
	return len(p), nil
}

func TestTooLargeAnUploadIsRefusedUnread(t *testing.T) {
	t.Parallel()
	p := quiet(t)
	body := &unread{}
	r := httptest.NewRequest("POST", "/v1/transactions/received", io.NopCloser(body))
	r.ContentLength = 50 << 20
	r.Header.Set("Content-Type", "application/pdf")
	r.Header.Set("Authorization", "Bearer "+demoKey)
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || body.read > 1<<20 {
		t.Errorf("%d after %d bytes", w.Code, body.read)
	}
}

// The record of a received document goes after its years, its name stays; a hold keeps it.
func TestReceivedDocumentsGoAfterTheirYears(t *testing.T) {
	t.Parallel()
	p := startAged(t, dbtest.SQLiteURL(t))
	c := receives(t, p.program)
	seller, buyer := trader(t, c, "seller", "DE200000013"), trader(t, c, "buyer", "DE200000021")
	_, document := sold(t, c, seller, "aged-1", "DE200000021")
	op := c.upload(t, "application/xml", document)
	file := "/invoicing/v1/invoices/" + attachmentsOf(c.read(t, op))["ORIGINAL/XML"]["resource_id"].(string) + "/xml"
	there := func(why string) {
		t.Helper()
		p.round(t)
		c.want(t, http.StatusOK, "GET", "/v1/transactions/"+op, nil)
		c.want(t, http.StatusOK, "GET", file, nil)
	}
	p.newYear(8)
	there("the years of the law are not over")
	p.newYear(12)
	p.configure(t, func(c *account.Config) { c.LegalHold = true })
	there("a client on hold")
	_, err := maintenance(p.program).HoldCompany(t.Context(), audit.Actor{Name: "test"}, buyer, true)
	must(t, err)
	p.configure(t, func(c *account.Config) { c.LegalHold = false })
	there("a company on hold")
	_, err = maintenance(p.program).HoldCompany(t.Context(), audit.Actor{Name: "test"}, buyer, false)
	must(t, err)
	p.round(t)
	if got := c.want(t, http.StatusGone, "GET", "/v1/transactions/"+op, nil); got.code(t) != "expired" {
		t.Errorf("%s", got.body)
	}
	c.want(t, http.StatusNotFound, "GET", file, nil)
	if n := p.count(t, "SELECT count(*) FROM received WHERE operation_id = $1 AND result IS NULL AND number = '' AND sender_key = ''", op); n != 1 {
		t.Error("more is left than its name")
	}
	if again := c.upload(t, "application/xml", document); again != op {
		t.Errorf("the same bytes are %s, want %s", again, op)
	}
	c.want(t, http.StatusGone, "GET", "/v1/transactions/"+op, nil)
}

package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/needs"
)

// spain sells and corrects for the demo's Spanish company.
type spain struct {
	*caller
	sale object
}

// document is a body like the example's sale, with one line of 21 %.
func (s spain) document(id string, price int, more object) object {
	body := maps.Clone(s.sale)
	body["transaction_id"], body["transaction_number"] = id, id
	body["items"] = []any{object{"number": 1, "name": "Té", "quantity": 1, "unit_price": price, "type": "GOODS",
		"tax_breakdowns": []any{object{"rate": 21, "regime": "VAT"}}}}
	for name, value := range more {
		body[name] = value
		if value == nil {
			delete(body, name)
		}
	}
	return body
}

func (s spain) adjust(t *testing.T, body object) string {
	return s.submit(t, "/v1/transactions/adjustment", body)
}

func (s spain) credit(t *testing.T, id, of string) string {
	return s.submit(t, "/v1/transactions/credit",
		object{"country_code": "ES", "transaction_date": time.Now().UTC().Format(time.RFC3339), "transaction_id": id,
			"transaction_number": id, "reference_transaction_id": of, "note": "devolución"})
}

// ends compares what an operation ended with: SUCCESS, or the code of its failure.
func (s spain) ends(t *testing.T, what, operation, want string) object {
	t.Helper()
	got := s.outcome(t, operation)
	said := fmt.Sprint(got["status"])
	if list, _ := got["errors"].([]any); said == "FAILURE" && len(list) > 0 {
		said = fmt.Sprint(list[0].(object)["code"])
	}
	if said != want {
		t.Errorf("%s: %s instead of %s: %v", what, said, want, got["errors"])
	}
	return got
}

func spanish(t *testing.T) spain {
	p := busy(t)
	return spain{caller: p.as(demoKey), sale: p.abroad(t, realAuthorities(t)["ES"], "ES-SUMS")}
}

// A substitution counts as new minus old, and has still taken its original back
// after it was itself credited.
func TestSpanishSubstitutionsCountAsTheDifference(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	sale := s.submit(t, "/v1/transactions", s.document("SUM-1", 12100, nil))
	s.ends(t, "the sale", sale, "SUCCESS")
	s.ends(t, "121.00 becomes 60.50", s.adjust(t,
		s.document("SUM-2", 6050, object{"reason": "R4-S", "reference_transaction_id": "SUM-1"})), "SUCCESS")
	ops := map[string]string{
		"reference_exceeded": s.credit(t, "SUM-3", "SUM-1"),
		"reference_already_corrected": s.adjust(t,
			s.document("SUM-4", 3025, object{"reason": "R4-S", "reference_transaction_id": "SUM-1"})),
	}
	for want, op := range ops {
		s.ends(t, "after a substitution", op, want)
	}
	s.ends(t, "the substitution is credited", s.credit(t, "SUM-5", "SUM-2"), "SUCCESS")
	s.ends(t, "nothing is left", s.adjust(t, s.document("SUM-6", -121, object{"reference_transaction_id": "SUM-1"})),
		"reference_exceeded")
}

// A full invoice takes the place of a ticket once, with all that is left of it.
func TestSpanishFullInvoiceClosesItsTicket(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	s.ends(t, "the ticket", s.submit(t, "/v1/transactions", s.document("TICKET-1", 12100, object{"customer": nil})),
		"SUCCESS")
	s.ends(t, "a part is returned", s.adjust(t,
		s.document("TICKET-2", -1210, object{"customer": nil, "reference_transaction_id": "TICKET-1"})), "SUCCESS")
	s.ends(t, "a full invoice of another amount",
		s.adjust(t, s.document("TICKET-3", 12100, object{"reason": "F3", "reference_transaction_id": "TICKET-1"})),
		"reference_exceeded")
	got := s.ends(t, "a full invoice of what is left",
		s.adjust(t, s.document("TICKET-4", 10890, object{"reason": "F3", "reference_transaction_id": "TICKET-1"})), "SUCCESS")
	if report := string(s.report(t, got)); !strings.Contains(report, "<sf:TipoFactura>F3<") ||
		!strings.Contains(report, "<sf:NumSerieFactura>TICKET-1<") {
		t.Errorf("%s", report)
	}
	s.ends(t, "the ticket is credited as well", s.credit(t, "TICKET-5", "TICKET-1"), "reference_already_corrected")
	s.ends(t, "the full invoice is credited", s.credit(t, "TICKET-6", "TICKET-4"), "SUCCESS")
	s.ends(t, "the ticket is closed for good", s.credit(t, "TICKET-7", "TICKET-1"), "reference_already_corrected")
}

// AEAT's census does not have a customer: its record is mended, and nothing is
// printed anew.
func TestSpanishRecordIsMended(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	customer := func(regime string) object {
		return object{"legal_name": "Ana No Censado", "type": "INDIVIDUAL",
			"tax_information": object{"tax_number": "12345678Z", "regime": regime},
			"address":         object{"country_code": "ES", "postal_code": "28001"}}
	}
	taken := s.ends(t, "the sale", s.submit(t, "/v1/transactions",
		s.document("MEND-1", 12100, object{"customer": customer("VAT")})), "SUCCESS")
	if list := taken["errors"].([]any); len(list) != 1 || list[0].(object)["code"] != "tax_number_doubtful" {
		t.Errorf("%v", taken["errors"])
	}
	body := s.document("MEND-2", 12100, object{"customer": customer("07"), "transaction_number": "MEND-1", "reason": "S",
		"reference_transaction_id": "MEND-1"})
	got := s.ends(t, "the record is mended", s.adjust(t, body), "SUCCESS")
	if list := got["errors"].([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}
	for _, entry := range got["attachments"].([]any) {
		if entry.(object)["kind"] == "VISUAL" {
			t.Error("something was printed")
		}
	}
	if report := string(s.report(t, got)); !strings.Contains(report, "<sf:Subsanacion>S<") ||
		!strings.Contains(report, "<sf:IDType>07<") || !strings.Contains(report, "<sf:NumSerieFactura>MEND-1<") {
		t.Errorf("%s", report)
	}
	s.ends(t, "the mending is corrected", s.credit(t, "MEND-3", "MEND-2"), "unsupported_operation")
	credit := s.ends(t, "the invoice is credited", s.credit(t, "MEND-4", "MEND-1"), "SUCCESS")
	if report := string(s.report(t, credit)); !strings.Contains(report, "<sf:IDType>07<") {
		t.Errorf("the credit names the customer as before: %s", report)
	}
	// What was credited still has a record, which can be wrong.
	again := maps.Clone(body)
	again["transaction_id"] = "MEND-5"
	if report := string(s.report(t, s.ends(t, "the record of what was credited is mended", s.adjust(t, again),
		"SUCCESS"))); !strings.Contains(report, "<sf:Subsanacion>S<") {
		t.Errorf("%s", report)
	}
	s.ends(t, "it is credited twice", s.credit(t, "MEND-6", "MEND-1"), "reference_already_corrected")
	s.ends(t, "the wrong sale", s.submit(t, "/v1/transactions", s.document("MEND-7", 12100, nil)), "SUCCESS")
	s.ends(t, "it is cancelled", s.submit(t, "/v1/transactions/cancellation",
		object{"country_code": "ES", "transaction_date": time.Now().UTC().Format(time.RFC3339), "transaction_id": "MEND-8",
			"reference_transaction_id": "MEND-7", "note": "error"}), "SUCCESS")
	s.ends(t, "what was cancelled is mended",
		s.adjust(t, s.document("MEND-9", 12100,
			object{"transaction_number": "MEND-7", "reason": "S", "reference_transaction_id": "MEND-7"})),
		"reference_already_corrected")
}

// AEAT refuses a VAT number that nobody holds. What comes again under the same
// number says that it was refused; under another it is another invoice.
func TestSpanishRecordAfterARefusal(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	german := func(name string) object {
		return object{"legal_name": name, "type": "BUSINESS", "tax_information": object{"tax_number": "DE111111125"},
			"address": object{"country_code": "DE", "address_line_1": "Lange Gasse 1"}}
	}
	goods := []any{object{"number": 1, "name": "Aceite", "quantity": 1, "unit_price": 10000, "type": "GOODS",
		"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT"}}}}
	sale := func(id, number, name string) object {
		return s.document(id, 0, object{"transaction_number": number, "customer": german(name), "items": goods})
	}
	first, second := s.submit(t, "/v1/transactions", sale("AGAIN-1", "AGAIN-1", "Müller NO CENSADO")),
		s.submit(t, "/v1/transactions", sale("AGAIN-2", "AGAIN-2", "Müller NO CENSADO"))
	s.ends(t, "nobody holds the number", first, "authority_rejected")
	s.ends(t, "nobody holds the number", second, "authority_rejected")
	again, other := s.submit(t, "/v1/transactions", sale("AGAIN-1", "AGAIN-1", "Müller GmbH")),
		s.submit(t, "/v1/transactions", sale("AGAIN-2", "AGAIN-2B", "Müller GmbH"))
	for op, said := range map[string]bool{again: true, other: false} {
		report := string(s.report(t, s.ends(t, "the next attempt", op, "SUCCESS")))
		if strings.Contains(report, "<sf:Subsanacion>S<") != said ||
			strings.Contains(report, "<sf:RechazoPrevio>X<") != said {
			t.Errorf("expected %v: %s", said, report)
		}
	}
}

// A corrective invoice is numbered in a series of its own: a credit brings its
// number, or the supplier has such a series.
func TestSpanishCreditNeedsItsNumber(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	s.ends(t, "the sale", s.submit(t, "/v1/transactions", s.document("SERIES-1", 12100, nil)), "SUCCESS")
	credit := object{"country_code": "ES", "transaction_date": time.Now().UTC().Format(time.RFC3339),
		"transaction_id": "SERIES-2", "reference_transaction_id": "SERIES-1", "note": "devolución"}
	if refused := string(s.want(t, 400, "POST", "/v1/transactions/credit", credit).body); !strings.Contains(refused,
		"field_required") || !strings.Contains(refused, "transaction_number") {
		t.Errorf("%s", refused)
	}
	s.want(t, 201, "POST", "/v1/series", object{"supplier_id": s.sale["supplier"].(object)["id"], "kind": "CREDIT",
		"country_code": "ES", "pattern": "REC-{YYYY}-{N:4}", "yearly": true})
	got := s.ends(t, "the credit", s.submit(t, "/v1/transactions/credit", credit), "SUCCESS")
	if number := fmt.Sprint(got["transaction_number"]); !strings.HasPrefix(number, "REC-") ||
		!strings.HasSuffix(number, "-0001") {
		t.Errorf("numbered %s", number)
	}
}

// The words of the law are Spanish on a document in English, and whoever reads
// it aloud is told so.
func TestSpanishWordsOfTheLawHaveTheirLanguage(t *testing.T) {
	t.Parallel()
	qpdf := needs.Tool(t, "qpdf", "qpdf")
	s := spanish(t)
	operation := s.submit(t, "/v1/transactions", s.document("WORDS-1", 12100, object{
		"language_code": "EN",
		"customer": object{"legal_name": "Müller GmbH", "type": "BUSINESS",
			"tax_information": object{"tax_number": "DE111111125"},
			"address":         object{"country_code": "DE", "address_line_1": "Lange Gasse 1"}},
		"items": []any{object{"number": 1, "name": "Oil", "quantity": 1, "unit_price": 10000, "type": "GOODS",
			"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT"}}}}}))
	s.ends(t, "in English", operation, "SUCCESS")
	file := filepath.Join(t.TempDir(), "words.pdf")
	if err := os.WriteFile(file, s.visual(t, operation), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, err := exec.CommandContext(t.Context(), qpdf, "--qdf", "--object-streams=disable", file, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(plain, []byte("/Lang (en")) || !bytes.Contains(plain, []byte("/Lang (es)")) {
		t.Errorf("languages of the document: %q", regexp.MustCompile(`/Lang[^\n]*`).FindAll(plain, -1))
	}
}

// What is taxed on its margin is printed with its price alone: no rate, no net, no
// tax, and the words of the scheme.
func TestASpanishMarginShowsNoTax(t *testing.T) {
	t.Parallel()
	s := spanish(t)
	got := s.ends(t, "a used car", s.submit(t, "/v1/transactions", s.document("MARGIN-1", 0, object{"items": []any{object{
		"number": 1, "name": "Coche usado", "quantity": 1, "unit_price": 1_000_000,
		"tax_breakdowns": []any{object{"rate": 0, "regime": "VAT", "code": "03"}},
		"classification": []any{object{"scheme": "MARGIN", "code": "200000@21"}}}}})), "SUCCESS")
	if report := string(s.report(t, got)); !strings.Contains(report, "<sf:CuotaTotal>347.11<") ||
		!strings.Contains(report, "<sf:ImporteTotal>10000.00<") {
		t.Errorf("%s", report)
	}
	checkPrinted(t, s.caller, got, "Coche usado", "10.000,00", "Régimen especial de los bienes usados")
	words := onPaperWords(t, s.caller, got)
	for _, hidden := range []string{"347,11", "1.652,89", "IVA", "%", "Base", "imponible", "Neto", "Impuestos", "MARGIN", "200000@21"} {
		if slices.ContainsFunc(words, func(w string) bool { return w == hidden }) {
			t.Errorf("%s is on the page: %v", hidden, words)
		}
	}
}

package es_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

func TestFindKnowsAnAltaAndItsCancellationByHuella(t *testing.T) {
	o := open(t, patient(0, 100))
	invoice := byName(t, "business")
	alta := o.prepare(invoice, country.Link{})
	cancellation := fresh(correction(transaction.Cancellation, "C-1", invoice, line("x", 1, "21")))
	annuls := o.prepare(cancellation, alta.Link)
	expect := func(f country.Filing, outcome country.Outcome, ours bool) {
		t.Helper()
		r, err := o.channel.Find(t.Context(), f, credentials())
		if err != nil || r.Outcome != outcome || (r.SHA256 == f.SHA256) != ours {
			t.Errorf("%s: %s %v", f.Number, asJSON(r), err)
		}
	}
	expect(alta, country.Absent, false)
	expect(annuls, country.Absent, false)
	o.send(alta)
	expect(alta, country.Accepted, true)
	expect(annuls, country.Absent, false) // the invoice stands
	if r := o.send(annuls)[0]; r.Outcome != country.Accepted || r.AuthorityID1 == "" {
		t.Fatalf("%s", asJSON(r))
	}
	expect(annuls, country.Accepted, true)
	other := cancellation
	other.Now = other.Now.Add(time.Minute)
	expect(o.prepare(other, annuls.Link), country.Accepted, false) // cancelled, but not by this record
	o.script(`[{"outcome":"unavailable","on":"query"}]`)
	if _, err := o.channel.Find(t.Context(), alta, credentials()); err == nil {
		t.Error("no answer and no error")
	}
	// The same cancellation again is taken again, and registered once.
	o.send(annuls)
	if held := o.registrations(); len(held) != 2 || held[1].Number != "C-1" || held[1].SHA256 != annuls.SHA256 {
		t.Errorf("registered %+v", held)
	}
}

func TestRegisteredListsADayOverAllPages(t *testing.T) {
	o := open(t, patient(0, 7))
	var filings []country.Filing
	var last country.Link
	for i := range 25 {
		d := fresh(draft(fmt.Sprintf("L-%d", i), nil, line("Café", 121, "21")))
		if i >= 20 {
			d.Transaction.Date = d.Transaction.Date.AddDate(0, 0, 1)
		}
		f := o.prepare(d, last)
		filings, last = append(filings, f), f.Link
	}
	cancelled := fresh(correction(transaction.Cancellation, "C-1", draft("L-3", nil, line("Café", 121, "21")),
		line("x", 1, "21")))
	filings = append(filings, o.prepare(cancelled, last))
	o.send(filings...)
	register, ok := o.channel.(country.Register)
	if !ok {
		t.Fatal("AEAT can be asked for a list")
	}
	s := draft("x", nil, line("x", 1, "21")).Supplier
	for on, want := range map[country.Day]int{{Year: 2026, Month: 4, Day: 1}: 20, {Year: 2026, Month: 4, Day: 2}: 5,
		{Year: 2026, Month: 4, Day: 3}: 0, {Year: 2026, Month: 5, Day: 1}: 0} {
		list, err := register.Registered(t.Context(), s, on, credentials())
		if err != nil || len(list) != want {
			t.Fatalf("%s: %d entries, %v", on, len(list), err)
		}
		seen := map[string]bool{}
		for _, e := range list {
			if seen[e.Number] || e.AuthorityID2 == "" || e.At.IsZero() || e.Cancelled != (e.Number == "L-3") {
				t.Errorf("%s: %+v", on, e)
			}
			seen[e.Number] = true
		}
	}
	o.script(`[{"outcome":"accept","on":"query","times":2},{"outcome":"garbage","on":"query"}]`)
	if list, err := register.Registered(t.Context(), s, country.Day{Year: 2026, Month: 4, Day: 1},
		credentials()); err == nil {
		t.Errorf("a list with a page missing: %d", len(list))
	}
	s.TaxNumber = "nobody"
	if _, err := register.Registered(t.Context(), s, country.Day{Year: 2026, Month: 4, Day: 1},
		credentials()); err == nil {
		t.Error("a list of nobody")
	}
}

// The wire of a query is AEAT's, on both sides.
func TestQueriesAreValidByTheOfficialSchema(t *testing.T) {
	xsd := schema(t)
	o := open(t, patient(0, 1))
	a := o.prepare(byName(t, "business"), country.Link{})
	b := o.prepare(byName(t, "several rates"), a.Link)
	o.send(a, b)
	var calls, answers [][]byte
	ch := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status, answer := o.post(body, credentials())
		calls, answers = append(calls, inner(t, body)), append(answers, inner(t, []byte(answer)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	if _, err := ch.Find(t.Context(), a, credentials()); err != nil {
		t.Fatal(err)
	}
	list, err := ch.(country.Register).Registered(t.Context(), country.Supplier{LegalName: supplier, TaxNumber: nif},
		country.Day{Year: 2026, Month: 4, Day: 1}, credentials())
	if err != nil || len(list) != 2 || len(calls) != 3 {
		t.Fatalf("%d entries by %d calls, %v", len(list), len(calls), err)
	}
	xsd.AllConform(t, calls, func(r []byte) []byte {
		return bytes.Replace(r, []byte("Ejercicio>2026"), []byte("Ejercicio>26"), 1)
	})
	xsd.AllConform(t, answers, func(r []byte) []byte { return bytes.Replace(r, []byte("ConDatos"), []byte("Algo"), 1) })
}

// inner is the element of a SOAP body.
func inner(t *testing.T, envelope []byte) []byte {
	t.Helper()
	_, rest, ok := strings.Cut(string(envelope), "<soapenv:Body>")
	body, _, whole := strings.Cut(rest, "</soapenv:Body>")
	if !ok || !whole {
		t.Fatalf("no SOAP body in %s", envelope)
	}
	return []byte(body)
}

func TestWrongListsAreErrors(t *testing.T) {
	o := open(t, patient(0, 100))
	f := o.prepare(byName(t, "business"), country.Link{})
	o.send(f)
	var good string
	ch := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, good = o.post(body, credentials())
		_, _ = io.WriteString(w, good)
	})
	if _, err := ch.Find(t.Context(), f, credentials()); err != nil {
		t.Fatal(err)
	}
	for _, spoil := range [][2]string{
		{"ResultadoConsulta>ConDatos<", "ResultadoConsulta>Quizas<"},
		{"<sfLRRC:EstadoRegistro>Correcto<", "<sfLRRC:EstadoRegistro>Quizas<"},
		{"IndicadorPaginacion>N<", "IndicadorPaginacion>S<"},
		{"RespuestaConsultaFactu", "RespuestaOtra"},
		{"<sf:TimestampPresentacion>", "<sf:TimestampPresentacion>x"},
	} {
		text := strings.ReplaceAll(good, spoil[0], spoil[1])
		if text == good {
			t.Fatalf("no %q", spoil[0])
		}
		ch := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		if r, err := ch.Find(t.Context(), f, credentials()); err == nil || errors.Is(err, country.ErrNotTaken) {
			t.Errorf("%s: %s %v", spoil[1], asJSON(r), err)
		}
	}
	// Without a huella nobody can say whose it is.
	text := cut(good, "<sfLRRC:Huella>", "</sfLRRC:Huella>\n")
	ch = answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	if r, err := ch.Find(t.Context(), f, credentials()); err != nil || r.Outcome != country.Accepted || r.SHA256 != "" {
		t.Errorf("%s %v", asJSON(r), err)
	}
}

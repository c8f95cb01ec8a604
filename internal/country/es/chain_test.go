package es_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/country"
	"tributary/internal/transaction"
)

// link is what a report says of its place in the chain.
type link struct {
	own, previous string
	first         bool
}

func linkOf(t *rapid.T, report []byte) link {
	var doc struct {
		Records []struct {
			Alta      *recordXML `xml:"RegistroAlta"`
			Anulacion *recordXML `xml:"RegistroAnulacion"`
		} `xml:"RegistroFactura"`
	}
	if err := xml.Unmarshal(report, &doc); err != nil || len(doc.Records) != 1 {
		t.Fatalf("a report with %d records: %v", len(doc.Records), err)
	}
	r := doc.Records[0].Alta
	if r == nil {
		r = doc.Records[0].Anulacion
	}
	return link{own: r.Huella, previous: r.Chain.Previous.Huella, first: r.Chain.First == "S"}
}

type recordXML struct {
	Huella string
	Chain  struct {
		First    string `xml:"PrimerRegistro"`
		Previous struct {
			Huella string
		} `xml:"RegistroAnterior"`
	} `xml:"Encadenamiento"`
}

// shop is a sender that keeps what the transaction package keeps: prepared
// filings and the chain's head. It survives when the authority restarts and
// forgets everything else when it restarts itself.
type shop struct {
	pack    country.Pack
	dir     string
	office  *office
	head    country.Link
	waiting []country.Filing // prepared, not settled, in order
	doubt   bool             // whether an answer was lost since
	done    []country.Filing
	states  map[string]string // by operation
	remarks []string
}

// step sends what waits, by the protocol of docs/hard-cases.md.
func (s *shop) step(t *rapid.T, batch int) {
	if len(s.waiting) == 0 {
		return
	}
	ctx, creds := s.office.t.Context(), credentials()
	if s.doubt {
		found, err := s.office.channel.Find(ctx, s.waiting[0], creds)
		switch {
		case err != nil:
			return
		case found.Outcome == country.Accepted && found.SHA256 == s.waiting[0].SHA256:
			s.settle(0, "accepted", found)
			return
		case found.Outcome != country.Absent:
			t.Fatalf("%s is held by another: %+v", s.waiting[0].Number, found)
		}
	}
	batch = min(batch, len(s.waiting))
	receipts, err := s.office.channel.Send(ctx, s.waiting[:batch], creds)
	if err != nil {
		s.doubt = s.doubt || !errors.Is(err, country.ErrNotTaken)
		return
	}
	s.doubt = false
	for _, r := range receipts {
		switch {
		case r.Outcome == country.NotTaken:
			return
		case r.Outcome == country.Accepted && r.Duplicate && r.SHA256 != s.waiting[0].SHA256:
			t.Fatalf("%s is a duplicate of another's: %+v", s.waiting[0].Number, r)
		}
		s.settle(0, string(r.Outcome), r)
	}
}

func (s *shop) settle(i int, state string, r country.Receipt) {
	f := s.waiting[i]
	s.states[f.OperationID] = state
	for _, w := range r.Faults {
		if state == "accepted" && !strings.Contains(w.Message, "CSV") {
			s.remarks = append(s.remarks, f.Number+": "+w.Message)
		}
	}
	s.done = append(s.done, f)
	s.waiting = s.waiting[1:]
	s.doubt = s.doubt && len(s.waiting) > 0
}

// However outages, lost answers, garbage, rejections, batches and restarts of
// either side follow each other: every record is linked to the one prepared
// before it, no two to the same, each accepted one is registered exactly once,
// and the authority has nothing to remark about the chain.
func TestChainIsUnbrokenUnderAnyRunOfMishaps(t *testing.T) {
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		s := &shop{pack: patient(0, 100), dir: t.TempDir(), states: map[string]string{}}
		s.office = openAt(t, s.pack, s.dir)
		defer func() { s.office.close() }()
		var last *country.Draft
		for i := range rapid.IntRange(3, 18).Draw(rt, "actions") {
			switch rapid.SampledFrom([]string{"issue", "issue", "issue", "send", "mishap", "restart", "restart all"}).Draw(rt,
				"action") {
			case "issue":
				d := issued(rt, i, last, s.states)
				f := s.office.prepare(d, s.head)
				s.head, s.waiting = f.Link, append(s.waiting, f)
				if d.Transaction.Kind == transaction.Invoice && !strings.HasSuffix(f.Number, "-REJECT") {
					last = &d
				} else {
					last = nil
				}
			case "send":
				s.step(rt, rapid.IntRange(1, 4).Draw(rt, "batch"))
			case "mishap":
				outcome := rapid.SampledFrom([]string{"unavailable", "drop_answer", "garbage", "reject"}).Draw(rt, "outcome")
				s.office.script(`[{"outcome":"` + outcome + `"}]`)
			case "restart all":
				s.doubt = len(s.waiting) > 0 // nobody knows what was under way
				fallthrough
			case "restart":
				s.office.close()
				s.office = openAt(t, s.pack, s.dir)
			}
		}
		s.office.script("[]")
		for range 60 {
			s.step(rt, 3)
		}
		s.verify(rt)
	})
	if runs == 0 {
		t.Error("nothing was run")
	}
}

// issued is the next document: an invoice, one that the double rejects, or the
// cancellation of the last accepted one.
func issued(rt *rapid.T, i int, last *country.Draft, states map[string]string) country.Draft {
	number := fmt.Sprintf("N-%d", i)
	kind := rapid.SampledFrom([]string{"invoice", "invoice", "rejected", "cancellation"}).Draw(rt, "document")
	if kind == "cancellation" && last != nil && states[last.OperationID] == "accepted" {
		return fresh(correction(transaction.Cancellation, number, *last, line("x", 1, "21")))
	}
	if kind == "rejected" {
		number += "-REJECT"
	}
	d := fresh(draft(number, business("Acme Ibérica, S.A.", "ES", "A28015865"), line("Café", 12100, "21")))
	if rapid.Bool().Draw(rt, "refused before") {
		d = refusedBefore(d)
	}
	d.Late = rapid.Bool().Draw(rt, "late")
	d.Now = d.Now.Add(time.Duration(i) * time.Millisecond)
	return d
}

func (s *shop) verify(t *rapid.T) {
	if len(s.waiting) > 0 {
		t.Fatalf("%d records are still under way", len(s.waiting))
	}
	previous := ""
	accepted := map[string]int{}
	for i, f := range s.done {
		l := linkOf(t, f.Report)
		if l.previous != previous || l.first != (i == 0) || l.own != f.Link.Hash || f.Link.Position != int64(i+1) {
			t.Fatalf("record %d (%s): %+v after %q, link %+v", i, f.Number, l, previous, f.Link)
		}
		previous = l.own
		if s.states[f.OperationID] == "accepted" {
			accepted[f.SHA256]++
		}
	}
	held := s.office.registrations()
	for _, r := range held {
		if accepted[r.SHA256]--; accepted[r.SHA256] < 0 {
			t.Fatalf("%s is registered and was not accepted, or twice", r.Number)
		}
	}
	for sum, n := range accepted {
		if n != 0 {
			t.Fatalf("%s was accepted and is not registered", sum)
		}
	}
	if len(s.remarks) > 0 {
		t.Fatalf("the authority remarks: %v", s.remarks)
	}
}

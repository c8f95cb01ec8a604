package es_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/fault"
)

// resealed is a record with another text and the huella that belongs to it.
func resealed(t *testing.T, f country.Filing, old, new, tax, total string) []byte {
	t.Helper()
	text := string(record(t, f))
	changed := strings.Replace(text, old, new, 1)
	if changed == text {
		t.Fatalf("no %q in the record", old)
	}
	_, rest, _ := strings.Cut(text, "<sf:FechaHoraHusoGenRegistro>")
	stamp, _, _ := strings.Cut(rest, "<")
	return []byte(strings.Replace(changed, f.AuthorityID,
		es.Huella(nif, "A-1", "01-04-2026", "F1", tax, total, "", stamp), 1))
}

// What AEAT takes with errors is a success with a warning that carries its code.
func TestRecordsTakenWithErrorsSucceedWithAWarning(t *testing.T) {
	for _, row := range []struct {
		code  string
		spoil func(o *office, first, second country.Draft, link country.Link) []byte
	}{
		{"2003", func(o *office, _, second country.Draft, link country.Link) []byte {
			link.Hash = strings.Repeat("A", 64)
			return record(o.t, o.prepare(second, link))
		}},
		{"2007", func(o *office, _, second country.Draft, _ country.Link) []byte {
			return record(o.t, o.prepare(second, country.Link{}))
		}},
		{"2004", func(o *office, _, second country.Draft, link country.Link) []byte {
			second.Now = time.Now().Add(-5 * time.Minute)
			return record(o.t, o.prepare(second, link))
		}},
	} {
		t.Run(row.code, func(t *testing.T) {
			o := open(t, patient(0, 100))
			first, second := byName(t, "business"), byName(t, "several rates")
			f := o.prepare(first, country.Link{})
			if r := o.send(f)[0]; len(r.Faults) > 0 {
				t.Fatalf("the first record: %s", asJSON(r))
			}
			_, answer := o.post(es.Envelope(supplier, nif, false, row.spoil(o, first, second, f.Link)), credentials())
			if !strings.Contains(answer, "<sfR:CodigoErrorRegistro>"+row.code+"<") ||
				!strings.Contains(answer, "AceptadoConErrores") || !strings.Contains(answer, aeat.Message(row.code)) {
				t.Errorf("%s", answer)
			}
			if held := o.registrations(); len(held) != 2 {
				t.Errorf("%d registrations", len(held))
			}
		})
	}
}

func TestSumsThatDoNotFitAreRemarked(t *testing.T) {
	for code, row := range map[string][4]string{
		"2005": {"ImporteTotal>121.00<", "ImporteTotal>131.01<", "21.00", "131.01"},
		"2006": {"CuotaTotal>21.00<", "CuotaTotal>31.01<", "31.01", "121.00"},
	} {
		o := open(t, patient(0, 100))
		f := o.prepare(byName(t, "business"), country.Link{})
		_, answer := o.post(es.Envelope(supplier, nif, false, resealed(t, f, row[0], row[1], row[2], row[3])), credentials())
		if !strings.Contains(answer, "<sfR:CodigoErrorRegistro>"+code+"<") {
			t.Errorf("%s: %s", code, answer)
		}
	}
}

func TestChannelTellsOfErrorsInAnAcceptedRecord(t *testing.T) {
	o := open(t, patient(0, 100))
	first := o.prepare(byName(t, "business"), country.Link{})
	second := o.prepare(byName(t, "several rates"), country.Link{}) // as if it were the first
	o.send(first)
	r := o.send(second)[0]
	if r.Outcome != country.Accepted || r.AuthorityID1 == "" || len(r.Faults) != 1 || !r.ChainBroken {
		t.Fatalf("%s", asJSON(r))
	}
	if w := r.Faults[0]; w.Type != fault.Warning || w.Code != fault.AuthorityRemark ||
		!strings.Contains(w.Message, "2007: No debe informarse como primer registro") {
		t.Errorf("%+v", w)
	}
	found, err := o.channel.Find(t.Context(), second, credentials())
	if err != nil || found.SHA256 != second.SHA256 || len(found.Faults) != 1 || !found.ChainBroken ||
		!strings.Contains(found.Faults[0].Message, "2007") {
		t.Errorf("found %s, %v", asJSON(found), err)
	}
}

// A call with an old record says Incidencia by itself, so nothing is remarked.
func TestOldRecordsAreSentAsAnIncident(t *testing.T) {
	o := open(t, patient(0, 100))
	old := byName(t, "business")
	old.Now = time.Now().Add(-10 * time.Minute)
	prompt := o.prepare(old, country.Link{})
	if strings.Contains(string(prompt.Report), "Incidencia") {
		t.Error("a report made in time speaks of an incident")
	}
	r := o.send(prompt)[0]
	if r.Outcome != country.Accepted || len(r.Faults) > 0 || !strings.Contains(string(r.Document), "<sf:Incidencia>S<") {
		t.Errorf("%s", r.Document)
	}
	late := byName(t, "several rates")
	late.Late = true
	f := o.prepare(late, prompt.Link)
	if !strings.Contains(string(f.Report), "<sf:Incidencia>S<") {
		t.Error("the report of a late record does not say so")
	}
	if r := o.send(f)[0]; r.Outcome != country.Accepted || len(r.Faults) > 0 {
		t.Errorf("%s", asJSON(r))
	}
	held := o.registrations()
	if len(held) != 2 || held[0].SHA256 != prompt.SHA256 || held[1].SHA256 != f.SHA256 {
		t.Errorf("registered %+v", held)
	}
}

package es_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/authority"
	"tributary/internal/authority/aeat"
	"tributary/internal/country"
	"tributary/internal/country/es"
	"tributary/internal/country/identity"
	"tributary/internal/official/aeatwire"
)

// within calls the double inside a bubble of simulated time, without a network.
func within(t *testing.T, double http.Handler, body []byte, leaf []byte) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, aeatwire.ServicePath, bytes.NewReader(body))
	r.Header.Set("Client-Cert", ":"+base64.StdEncoding.EncodeToString(leaf)+":")
	w := httptest.NewRecorder()
	double.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// sender files with a double inside a bubble of simulated time.
type sender struct {
	t      *testing.T
	ch     country.Channel
	leaf   []byte
	dir    string
	desk   *authority.Desk
	double http.Handler
	last   country.Link
	count  int
}

// restart opens the double on its book, again or for the first time.
func (s *sender) restart() {
	s.t.Helper()
	if s.desk != nil {
		if err := s.desk.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	desk, err := authority.OpenDesk(s.dir, "ES")
	if err != nil {
		s.t.Fatal(err)
	}
	s.desk, s.double = desk, aeat.New(desk)
}

// expect makes a call of an installation and says whether it must be taken.
func (s *sender) expect(name string, records int, installation string, taken bool) string {
	s.t.Helper()
	var all [][]byte
	for range records {
		d := fresh(draft(fmt.Sprintf("W-%d", s.count), nil, line("Café", 121, "21")))
		d.Supplier.ID, d.Previous = installation, s.last
		f, err := s.ch.Prepare(d)
		if err != nil {
			s.t.Fatal(err)
		}
		all, s.last = append(all, record(s.t, f)), f.Link
		s.count++
	}
	status, answer := within(s.t, s.double, es.Envelope(supplier, nif, false, all...), s.leaf)
	if taken != (status == http.StatusOK && strings.Contains(answer, "<sfR:TiempoEsperaEnvio>")) {
		s.t.Errorf("%s: %d %.300s", name, status, answer)
	}
	if !taken && !strings.Contains(answer, "Codigo[4141]") {
		s.t.Errorf("%s: refused with %s", name, answer)
	}
	return answer
}

// AEAT's TiempoEsperaEnvio is stated in every answer and enforced, also after a
// restart; a full call may come at any time; other installations are not concerned.
func TestDoubleEnforcesTheWaitItStates(t *testing.T) {
	real, err := identity.NewKeeper().Open(credentials().Certificate(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	now, dir := time.Now(), t.TempDir()
	ch, err := es.Pack().Connect(country.Endpoint{BaseURL: "http://unused", HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now)) // the bubble's clock begins in the year 2000
		s := &sender{t: t, ch: ch, leaf: real.Leaf.Raw, dir: dir}
		s.restart()
		defer func() { _ = s.desk.Close() }()
		if answer := s.expect("first call", 1, "one", true); !strings.Contains(answer, "<sfR:TiempoEsperaEnvio>2<") {
			t.Errorf("the wait is not 2 s: %s", answer)
		}
		s.expect("at once", 1, "one", false)
		time.Sleep(1900 * time.Millisecond)
		s.expect("a moment too early", 1, "one", false)
		s.expect("another installation", 1, "two", true)
		time.Sleep(100 * time.Millisecond)
		if err := s.desk.SetScript([]authority.Step{{Outcome: authority.Accept, Wait: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		if answer := s.expect("in time", 1, "one", true); !strings.Contains(answer, "<sfR:TiempoEsperaEnvio>60<") {
			t.Errorf("the script's wait is not stated: %s", answer)
		}
		s.restart()
		time.Sleep(59 * time.Second)
		s.expect("too early after a restart", 1, "one", false)
		s.expect("a full call", 1000, "one", true)
		time.Sleep(2 * time.Second)
		s.expect("after the wait", 1, "one", true)
	})
}

// The channel hands the wait on, and takes a call that came too early for not taken.
func TestWaitIsPartOfEveryReceipt(t *testing.T) {
	o := open(t, patient(time.Minute, 100))
	a := o.prepare(byName(t, "business"), country.Link{})
	b := o.prepare(byName(t, "several rates"), a.Link)
	if r := o.send(a)[0]; r.Wait != time.Minute {
		t.Errorf("wait %s", r.Wait)
	}
	if receipts, err := o.channel.Send(t.Context(), []country.Filing{b}, credentials()); !isNotTaken(err) {
		t.Errorf("%s %v", asJSON(receipts), err)
	}
	if r, err := o.channel.Find(t.Context(), a, credentials()); err != nil || r.Outcome != country.Accepted {
		t.Errorf("a question must wait as well: %s %v", asJSON(r), err)
	}
	if len(o.registrations()) != 1 {
		t.Error("something came in too early")
	}
}

// After a lost answer nobody knows the wait it stated: what the answer before
// it said is kept to, so that the next call does not come too early.
func TestWaitOfALostAnswerIsKeptToAllTheSame(t *testing.T) {
	o := open(t, patient(0, 100))
	a := o.prepare(byName(t, "business"), country.Link{})
	o.send(a)
	o.script(`[{"outcome":"accept","wait":"30s"}]`)
	b := o.prepare(byName(t, "several rates"), a.Link)
	o.send(b)
	found, err := o.channel.Find(t.Context(), b, credentials())
	if err != nil || found.Wait > 31*time.Second || found.Wait < 25*time.Second {
		t.Errorf("wait %s, %v", found.Wait, err)
	}
	other := openAt(t, patient(0, 100), t.TempDir())
	c := other.prepare(byName(t, "business"), country.Link{})
	other.script(`[{"outcome":"drop_answer"}]`)
	if _, err := other.channel.Send(t.Context(), []country.Filing{c}, credentials()); err == nil {
		t.Fatal("the answer was not lost")
	}
	if found, err = other.channel.Find(t.Context(), c, credentials()); err != nil || found.Wait <= 0 ||
		found.Wait > 3*time.Second {
		t.Errorf("without an answer before: %s, %v", found.Wait, err)
	}
}

package hu_test

import (
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
)

func (o *office) annul(f country.Filing, a country.Annulment) (country.Annulled, error) {
	return o.channel.(country.Annuller).Annul(o.t.Context(), f, a, credentials())
}

func TestAReportIsAnnulledOnceAndWaitsForAPerson(t *testing.T) {
	o := open(t)
	f := o.prepare(invoice("A-1"))
	o.settle(f)
	said, err := o.annul(f, country.Annulment{Reason: "The buyer's address was wrong"})
	if err != nil || said.State != navwire.VerificationPending || said.ID == "" || len(said.Faults) > 0 {
		t.Fatalf("%+v %v", said, err)
	}
	said, err = o.annul(f, country.Annulment{Code: navwire.ErraticDate, Reason: "again"})
	if err != nil || said.State != navwire.Aborted || len(said.Faults) != 1 || !strings.Contains(said.Faults[0].Message,
		navwire.AnnulmentInProgress) {
		t.Fatalf("a second one: %+v %v", said, err)
	}
	if held, err := o.desk.Registrations(); err != nil || len(held) != 1 {
		t.Errorf("%d registered, %v", len(held), err)
	}
	said, err = o.annul(o.prepare(invoice("A-2")), country.Annulment{Reason: "never reported"})
	if err != nil || said.State != navwire.Aborted || !strings.Contains(said.Faults[0].Message,
		navwire.AnnulmentReference) {
		t.Errorf("of what NAV does not have: %+v %v", said, err)
	}
}

func TestAnAnnulmentThatNAVWouldNotReadIsNotSent(t *testing.T) {
	o := open(t)
	f := o.prepare(invoice("A-1"))
	for _, a := range []country.Annulment{{}, {Reason: "  "}, {Reason: strings.Repeat("x", navwire.ReasonMax+1)},
		{Code: "OTHER", Reason: "x"}} {
		if _, err := o.annul(f, a); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if said, err := o.annul(f, country.Annulment{Reason: strings.Repeat("ő", navwire.ReasonMax)}); err != nil ||
		said.State != navwire.Aborted {
		t.Errorf("the longest reason: %+v %v", said, err)
	}
	wrong := credentials()
	wrong.Secret = "wrong"
	if _, err := o.channel.(country.Annuller).Annul(t.Context(), f, country.Annulment{Reason: "x"}, wrong); err == nil {
		t.Error("a wrong password is believed")
	}
}

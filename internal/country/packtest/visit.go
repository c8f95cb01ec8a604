package packtest

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tributary/internal/country"
	"tributary/internal/fault"
)

// visitState stands in the address that a person is sent to.
const visitState = "state-of-the-suite"

// visit asks of a pack whose authority wants a person's word: without an address
// of ours nobody is sent anywhere; the person's refusal and a grant that was used
// are faults; what an agreement brings is kept under names that the pack
// declares, and the authority takes filings with it and not without.
func (s suite) visit(t *testing.T) {
	if s.o.Abilities.Agree == nil {
		t.Fatal("the suite is not told how a person agrees")
	}
	w := s.wired(t)
	in := country.Enrolment{Supplier: *s.o.Abilities.Visitor, Credentials: w.creds, State: visitState}
	in.At = s.reachable(t, w, "")
	if got := s.pack.Enrol(t.Context(), in); len(got.Faults) == 0 || got.Visit != "" {
		t.Errorf("nobody can return, and a person is sent to %q", got.Visit)
	}
	in.At = s.reachable(t, w, "http://127.0.0.1:1/authorities/"+strings.ToLower(s.pack.Code)+"/test")
	asked := s.pack.Enrol(t.Context(), in)
	if len(asked.Faults) > 0 || len(asked.Keep) > 0 || !strings.Contains(asked.Visit, visitState) {
		t.Fatalf("the first time: %+v", asked)
	}
	if again := s.pack.Enrol(t.Context(), in); again.Visit == "" || len(again.Faults) > 0 {
		t.Errorf("asked again before anybody went: %+v", again)
	}
	in.Grant = s.returns(t, asked.Visit, false)
	if got := s.pack.Enrol(t.Context(), in); !refusedGrant(got) {
		t.Errorf("a person who does not agree: %+v", got)
	}
	in.Grant = s.returns(t, asked.Visit, true)
	done := s.pack.Enrol(t.Context(), in)
	if len(done.Faults) > 0 || done.Visit != "" || len(done.Keep) == 0 {
		t.Fatalf("a person who agrees: %v", done.Faults)
	}
	for name := range done.Keep {
		if !slices.ContainsFunc(s.pack.Facts.Secrets, func(r country.SecretRule) bool { return r.Name == name }) {
			t.Errorf("%q is kept, and is no secret that the pack declares", name)
		}
	}
	if got := s.pack.Enrol(t.Context(), in); !refusedGrant(got) {
		t.Errorf("a grant that was used: %+v", got)
	}
	s.filesWith(t, w, done.Keep)
}

func refusedGrant(got country.Enrolled) bool {
	return len(got.Keep) == 0 && slices.ContainsFunc(got.Faults, func(f fault.Fault) bool {
		return f.Code == fault.CredentialsInvalid
	})
}

// reachable is the endpoint with an address of ours to return to.
func (s suite) reachable(t *testing.T, w *wiring, callback string) country.Endpoint {
	t.Helper()
	w.atlas.Configure(map[country.Environment]country.Setup{{Code: s.pack.Code}: {Version: 50 + int64(len(callback)),
		Identity: s.o.Identity, Callback: callback}})
	at, err := w.atlas.Endpoint(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// returns sends a person to the address; what the browser brings back has the state.
func (s suite) returns(t *testing.T, address string, agree bool) url.Values {
	t.Helper()
	brought := s.o.Abilities.Agree(t, address, agree)
	if brought.Get("state") != visitState {
		t.Fatalf("the browser brings back %v", brought)
	}
	return brought
}

// filesWith sees that what was granted is needed and used.
func (s suite) filesWith(t *testing.T, w *wiring, kept map[string]string) {
	t.Helper()
	filing := s.prepare(t, w, s.o.Cases[0].Draft)
	if _, err := w.channel.Send(t.Context(), []country.Filing{filing}, w.creds); !errors.Is(err, country.ErrCredentials) {
		t.Errorf("without what was granted: %v", err)
	}
	with := w.creds
	with.Named = maps.Clone(kept)
	maps.Copy(with.Named, w.creds.Named)
	receipts, err := w.channel.Send(t.Context(), []country.Filing{filing}, with)
	if err != nil || receipts[0].Outcome != country.Accepted {
		t.Errorf("with what was granted: %+v %v", receipts, err)
	}
}

package packtest

import (
	"errors"
	"testing"

	"tributary/internal/country"
)

// configure stores an operator's identity, as package endpoint would.
func configure(atlas *country.Atlas, pack country.Pack, id country.Identity) {
	atlas.Configure(map[country.Environment]country.Setup{{Code: pack.Code}: {Version: 1 + int64(len(id.Secrets)),
		Identity: id}})
}

// identity asks of a pack that needs the operator's identity: without it nothing
// is sent, it is said whose fault that is, and the same bytes go once it is set.
func (s suite) identity(t *testing.T) {
	names := make([]string, 0, len(s.o.Identity.Secrets))
	for name := range s.o.Identity.Secrets {
		names = append(names, name)
	}
	if missing := s.pack.Identity.Missing(names, len(s.o.Identity.Certificate.File) > 0); len(missing) > 0 {
		t.Fatalf("the suite's identity lacks %q", missing)
	}
	if len(s.pack.Identity.Missing(nil, false)) == 0 {
		t.Skip("the authority asks for none")
	}
	w := s.wired(t)
	filing, err := w.channel.Prepare(s.o.Cases[0].Draft)
	if err != nil {
		t.Fatal(err)
	}
	configure(w.atlas, s.pack, country.Identity{})
	bare, err := w.atlas.Channel(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	if bare == w.channel {
		t.Error("a changed setup does not connect anew")
	}
	_, err = bare.Send(t.Context(), []country.Filing{filing}, w.creds)
	if !errors.Is(err, country.ErrNoIdentity) || !errors.Is(err, country.ErrNotTaken) {
		t.Errorf("without an identity: %v", err)
	}
	if n := len(w.registrations(t)); n != 0 {
		t.Errorf("%d registered without an identity", n)
	}
	configure(w.atlas, s.pack, s.o.Identity)
	again, err := w.atlas.Channel(s.pack.Code, false)
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := again.Send(t.Context(), []country.Filing{filing}, w.creds)
	if err != nil || receipts[0].Outcome != country.Accepted {
		t.Errorf("with the identity: %+v %v", receipts, err)
	}
	if n := len(w.registrations(t)); n != 1 {
		t.Errorf("%d registered with the identity", n)
	}
}

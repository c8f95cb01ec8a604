package xx_test

import (
	"errors"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/packtest"
	"tributary/internal/country/world"
	"tributary/internal/official/xxwire"
	"tributary/internal/transaction"
)

// operators is the identity of a platform with a name.
func operators(t *testing.T, name string) country.Identity {
	t.Helper()
	file, password, err := identity.Test("XX-PLATFORM", name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return country.Identity{
		Secrets:     map[string]string{"platform_key": xxwire.PlatformKey(name)},
		Certificate: identity.PKCS12{File: file, Password: password},
	}
}

func TestAuthorityThatAsksForAPlatformPassesTheSuite(t *testing.T) {
	packtest.Exercise(t, world.Platform("XP"), packtest.Options{
		Name: "platform", Cases: cases()[:1], Identity: operators(t, "Gateway"),
		Abilities: packtest.Abilities{Mailbox: xxwire.SuffixMailbox, Gathers: counter()},
	})
}

// A supplier with a certificate and a key of its own is not filed for in the
// operator's name, and needs no operator's at all.
func TestASuppliersOwnIdentityWins(t *testing.T) {
	_, _, atlas := open(t, world.Platform("XP"))
	own := operators(t, "Own Platform")
	supplier := country.Credentials{PKCS12: own.Certificate.File, Password: own.Certificate.Password, Named: own.Secrets}
	wrong := operators(t, "Gateway")
	wrong.Secrets = map[string]string{"platform_key": "not the key"}
	for version, operators := range []country.Identity{{}, wrong} {
		atlas.Configure(map[country.Environment]country.Setup{{Code: "XP"}: {Version: int64(version + 1),
			Identity: operators}})
		ch, err := atlas.Channel("XP", false)
		if err != nil {
			t.Fatal(err)
		}
		filing := prepare(t, ch, draft("A-1"))
		if _, err := ch.Send(t.Context(), []country.Filing{filing}, country.Credentials{}); !errors.Is(err,
			country.ErrNoIdentity) || !errors.Is(err, country.ErrNotTaken) {
			t.Errorf("the operator's identity %d: %v", version, err)
		}
		receipts, err := ch.Send(t.Context(), []country.Filing{filing}, supplier)
		if err != nil || receipts[0].Outcome != country.Accepted {
			t.Errorf("the supplier's own identity beside %d: %+v %v", version, receipts, err)
		}
	}
}

// Where no identity is needed, a set one is shown and checked all the same.
func TestAnIdentityThatNeedNotBeIsStillChecked(t *testing.T) {
	_, desk, atlas := open(t, world.Reference(transaction.ReferenceCode, country.ByNumber))
	set := func(version int64, id country.Identity) country.Channel {
		atlas.Configure(map[country.Environment]country.Setup{{Code: "XX"}: {Version: version, Identity: id}})
		ch, err := atlas.Channel("XX", false)
		if err != nil {
			t.Fatal(err)
		}
		return ch
	}
	ch := set(1, country.Identity{Secrets: map[string]string{"platform_key": "stale"}})
	filing := prepare(t, ch, draft("A-1"))
	if _, err := ch.Send(t.Context(), []country.Filing{filing}, country.Credentials{}); !errors.Is(err,
		country.ErrNoIdentity) || count(t, desk) != 0 {
		t.Errorf("a wrong key: %v", err)
	}
	ch = set(2, country.Identity{Secrets: map[string]string{"platform_key": xxwire.PlatformKey("")}})
	if receipts := send(t, ch, filing); receipts[0].Outcome != country.Accepted {
		t.Errorf("%+v", receipts)
	}
}

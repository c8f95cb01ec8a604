package identity_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country/identity"
	"tributary/internal/leaks"
	"tributary/internal/mutate"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var today = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func made(t testing.TB) identity.PKCS12 {
	t.Helper()
	file, password, err := identity.Test("VATES-B12345674", "Ejemplo SL", today)
	if err != nil {
		t.Fatal(err)
	}
	return identity.PKCS12{File: file, Password: password}
}

func TestKeeperOpensCredentialsThatSign(t *testing.T) {
	id, err := identity.NewKeeper().Open(made(t), today)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("a document"))
	signature, err := id.Key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Leaf.CheckSignature(x509.SHA256WithRSA, []byte("a document"), signature); err != nil {
		t.Errorf("the key is not the certificate's: %v", err)
	}
	if shown := id.TLS(); !bytes.Equal(shown.Certificate[0], id.Leaf.Raw) || shown.PrivateKey == nil {
		t.Error("TLS does not show the certificate with its key")
	}
}

func TestKeeperRefusesWhatOnlyNewCredentialsCanMend(t *testing.T) {
	good := made(t)
	for name, c := range map[string]struct {
		credentials identity.PKCS12
		now         time.Time
		says        string
	}{
		"none": {identity.PKCS12{}, today, "there is none"},
		"wrong password": {identity.PKCS12{File: good.File, Password: good.Password + "x"}, today,
			"the password does not open"},
		"not a file": {identity.PKCS12{File: []byte("hello")}, today, "is not a PKCS#12"},
		"expired":    {good, today.AddDate(3, 0, 0), "expired on"},
		"too early":  {good, today.AddDate(-1, 0, 0), "not valid before"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := identity.NewKeeper().Open(c.credentials, c.now)
			if !errors.Is(err, identity.ErrUnusable) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want ErrCredentials with %q", err, c.says)
			}
		})
	}
}

func TestKeeperTellsAnExpiryWhileItHoldsTheIdentity(t *testing.T) {
	keeper, c := identity.NewKeeper(), made(t)
	id, err := keeper.Open(c, today)
	if err != nil {
		t.Fatal(err)
	}
	last := id.Leaf.NotAfter
	if _, err := keeper.Open(c, last); err != nil {
		t.Errorf("at its last instant: %v", err)
	}
	if _, err := keeper.Open(c, last.Add(time.Second)); !errors.Is(err, identity.ErrUnusable) {
		t.Errorf("a second later: %v", err)
	}
}

func TestKeeperOpensOneFileOnceForManyAtATime(t *testing.T) {
	keeper, c := identity.NewKeeper(), made(t)
	var wg sync.WaitGroup
	ids := make([]*identity.Identity, 32)
	for i := range ids {
		wg.Go(func() { ids[i], _ = keeper.Open(c, today) })
	}
	wg.Wait()
	for _, id := range ids {
		if id == nil || id != ids[0] {
			t.Fatal("the file was opened again while its identity was held")
		}
	}
	later, err := keeper.Open(c, today.Add(10*time.Minute))
	if err != nil || later == ids[0] {
		t.Errorf("after ten minutes the old identity is still given: %v", err)
	}
}

func TestNamesFindsATaxNumberHoweverItIsWritten(t *testing.T) {
	id, err := identity.NewKeeper().Open(made(t), today)
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[string]bool{"B12345674": true, "b-12345674": true, "ESB12345674": true,
		"B1234567": false, "12345674": false, "": false} {
		if got := identity.Names(id.Leaf, "ES", number); got != want {
			t.Errorf("%q: %v, want %v", number, got, want)
		}
	}
}

// FuzzRead opens whatever can be read: no file panics, and none that is
// refused is opened.
func FuzzRead(f *testing.F) {
	file, password, err := identity.Test("B12345674", "Ejemplo SL", today)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, password)
	f.Add([]byte{0x30, 0x80}, "")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, der []byte, password string) {
		read, reason := identity.Read(der)
		if (read == nil) == (reason == "") {
			t.Fatalf("a file and a reason at once, or neither: %q", reason)
		}
		if read == nil || len(der) > 1<<13 {
			return
		}
		if id, problem := read.Open(password); (id == nil) == (problem == nil) {
			t.Fatal("an identity and a problem at once, or neither")
		}
	})
}

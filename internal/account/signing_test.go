package account_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

func TestTheMasterKeyIsRotatedUnderLoadWithoutAFailedSignature(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		path := filepath.Join(t.TempDir(), "master")
		if err := secret.CreateMasterFile(path); err != nil {
			t.Fatal(err)
		}
		n := open(t, d, func(o *account.Options) { o.Master = openMaster(t, path) })
		const clients = 4
		body := []byte(`{"event_type":"x"}`)
		want := map[string]string{}
		for i := range clients {
			id := fmt.Sprint("c", i)
			_, key := n.create(t, id)
			want[id] = must[string](t)(secret.HMACHex(key, body))
		}
		stop := make(chan struct{})
		var signed atomic.Int64
		var wg sync.WaitGroup
		// Another process: its own master key object, and nothing in memory, again and again.
		cold := openMaster(t, path)
		for w := range 3 {
			wg.Go(func() {
				for i := w; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					id := fmt.Sprint("c", i%clients)
					if got, err := coldSignature(d, cold, id, body); err != nil || got != want[id] {
						t.Errorf("sign for %s: wrong signature %v, %v", id, got != want[id], err)
						return
					}
					signed.Add(1)
				}
			})
		}
		for round := range 3 {
			old := must[string](t)(n.master.KeyID())
			id := must[string](t)(n.master.Rotate())
			if id == old {
				t.Fatal("not rotated")
			}
			moved, err := n.Rewrap(t.Context(), operator())
			if err != nil || moved != clients {
				t.Fatalf("round %d: moved %d, %v", round, moved, err)
			}
			if again, err := n.Rewrap(t.Context(), operator()); again != 0 || err != nil {
				t.Fatalf("moved %d again, %v", again, err)
			}
			wrappedBy(t, d, id)
		}
		close(stop)
		wg.Wait()
		t.Logf("%d cold signatures meanwhile", signed.Load())
		if signed.Load() == 0 {
			t.Error("nothing was signed meanwhile")
		}
		for i := range clients {
			if v := n.verdict(t, fmt.Sprint("c", i)); v.Broken != nil {
				t.Errorf("audit: %+v", v.Broken)
			}
		}
	})
}

// coldSignature signs like a process that has just started.
func coldSignature(d *db.DB, m *secret.Master, id string, body []byte) (string, error) {
	a, err := account.Open(context.Background(), account.Options{DB: d, Master: m, CheckURL: checkURL})
	if err != nil {
		return "", err
	}
	key, _, err := a.SigningKeys(context.Background(), id)
	if err != nil {
		return "", err
	}
	return secret.HMACHex(key.Text, body)
}

func wrappedBy(t *testing.T, d *db.DB, id string) {
	t.Helper()
	err := d.Read(t.Context(), func(r db.Reader) error {
		all, err := db.Collect(r, func(scan func(...any) error) (b []byte, err error) {
			return b, scan(&b)
		}, "SELECT wrapped FROM client_data_keys")
		for _, w := range all {
			if got, err := secret.KeyID(w); err != nil || got != id {
				t.Errorf("a data key is under %s, want %s: %v", got, id, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDataKeysMoveToAnotherMasterKey(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	old := open(t, d)
	_, key := old.create(t, "acme")
	fresh := func() *node { return open(t, d, func(o *account.Options) { o.Master = masterFile(t) }) }
	next := fresh()
	if _, _, err := next.SigningKeys(t.Context(), "acme"); !errors.Is(err, secret.ErrUnknownKey) {
		t.Fatalf("a foreign master key opens: %v", err)
	}
	if moved, err := next.Adopt(t.Context(), operator(), old.master); moved != 1 || err != nil {
		t.Fatalf("moved %d, %v", moved, err)
	}
	got, _, err := next.SigningKeys(t.Context(), "acme")
	if err != nil || !got.Text.Equal(key) {
		t.Error(err)
	}
	late := open(t, d, func(o *account.Options) { o.Master = old.master })
	if _, _, err := late.SigningKeys(t.Context(), "acme"); !errors.Is(err, secret.ErrUnknownKey) {
		t.Errorf("the old master key still opens: %v", err)
	}
}

func TestRowsSwappedBetweenClientsDoNotOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		a, _ := n.create(t, "a")
		b, stolen := n.create(t, "b")
		swap := func(sql string, args ...any) {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.ExecOne(sql, args...) }); err != nil {
				t.Fatal(err)
			}
		}
		// Somebody who can write to the database gives a's row the sealed text of b.
		swap("UPDATE api_keys SET sealed = (SELECT sealed FROM api_keys WHERE kid = $1) WHERE kid = $2", b.Keys[0].Kid,
			a.Keys[0].Kid)
		cold := open(t, d, func(o *account.Options) { o.Master = n.master })
		if _, _, err := cold.SigningKeys(t.Context(), "a"); !errors.Is(err, secret.ErrBroken) {
			t.Errorf("another client's key signs: %v", err)
		}
		// And its data key.
		swap("UPDATE client_data_keys SET wrapped = (SELECT wrapped FROM client_data_keys WHERE client_id = 'b') WHERE client_id = 'a'")
		cold = open(t, d, func(o *account.Options) { o.Master = n.master })
		if _, _, err := cold.SigningKeys(t.Context(), "a"); !errors.Is(err, secret.ErrBroken) {
			t.Errorf("another client's data key opens: %v", err)
		}
		if v := n.verdict(t, "a"); v.Broken == nil {
			t.Error("the audit log does not notice the exchanged data key")
		}
		// A digest that is not of the sealed key.
		swap("UPDATE api_keys SET digest = $1 WHERE kid = $2", make([]byte, 32), b.Keys[0].Kid)
		cold = open(t, d, func(o *account.Options) { o.Master = n.master })
		if _, _, err := cold.SigningKeys(t.Context(), "b"); !errors.Is(err, secret.ErrBroken) {
			t.Errorf("a key signs whose digest was exchanged: %v", err)
		}
		if cold.auth(t, stolen) {
			t.Error("accepted by another digest")
		}
		if v := n.verdict(t, "b"); v.Broken == nil {
			t.Error("the audit log does not notice the exchanged digest")
		}
	})
}

// Both keys of one client are under one data key: only the kid that is bound in tells them apart.
func TestRowsSwappedBetweenKeysOfOneClientDoNotOpen(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	c, _ := n.create(t, "acme")
	next, _, err := n.RotateKey(t.Context(), operator(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	err = n.d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec(`UPDATE api_keys SET (digest, sealed) = (SELECT o.digest, o.sealed FROM api_keys o WHERE o.kid <> api_keys.kid) WHERE kid IN ($1, $2)`,
			c.Keys[0].Kid, next.Kid)
	})
	if err != nil {
		t.Fatal(err)
	}
	cold := open(t, n.d, func(o *account.Options) { o.Master = n.master })
	if _, _, err := cold.SigningKeys(t.Context(), "acme"); !errors.Is(err, secret.ErrBroken) {
		t.Errorf("a key opens as another: %v", err)
	}
}

func TestARevokedKeyLeavesMemory(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	c, _ := n.create(t, "acme")
	first := func() weak.Pointer[byte] {
		older, _, err := n.SigningKeys(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(&older.Text.Reveal()[0])
	}()
	runtime.GC()
	if first.Value() == nil {
		t.Fatal("an opened key is not kept: each signature would open it again")
	}
	if _, err := n.RevokeKey(t.Context(), operator(), "acme", c.Keys[0].Kid); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if first.Value() != nil {
		t.Error("a revoked key is still held in memory")
	}
}

func TestEachPurposeHasADataKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		n.create(t, "acme")
		var wg sync.WaitGroup
		sealers := make([]*secret.Sealer, 8)
		nodes := []*node{n, open(t, d, func(o *account.Options) { o.Master = n.master })}
		for i := range sealers { // two processes meet a purpose that has no data key yet
			wg.Go(func() {
				var err error
				if sealers[i], err = nodes[i%2].Sealer(context.Background(), "acme", account.PurposeTaxCredentials); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		bound := secret.Context{Client: "acme", Purpose: "p12", Version: 1}
		sealed := must[[]byte](t)(sealers[0].Seal(secret.FromText("pin"), bound))
		for i, s := range sealers {
			if plain, err := s.Open(sealed, bound); err != nil || plain.RevealText() != "pin" {
				t.Errorf("sealer %d has another key: %v", i, err)
			}
		}
		keys := must[*secret.Sealer](t)(n.Sealer(t.Context(), "acme", account.PurposeAPIKeys))
		if _, err := keys.Open(sealed, bound); !errors.Is(err, secret.ErrBroken) {
			t.Errorf("the data key of API keys opens credentials: %v", err)
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}

func TestWithoutAMasterKeyNothingIsSealedAndTheRestWorks(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := open(t, d)
	c, key := n.create(t, "acme")
	bare := &node{d: d}
	var err error
	if bare.Accounts, err = account.Open(t.Context(), account.Options{DB: d, CheckURL: checkURL}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, _, e1 := bare.CreateClient(ctx, operator(), account.NewClient{Config: account.Config{DisplayName: "x"}})
	_, _, e2 := bare.CreateKey(ctx, operator(), "acme")
	_, _, e3 := bare.SigningKeys(ctx, "acme")
	_, e4 := bare.Rewrap(ctx, operator())
	for i, err := range []error{e1, e2, e3, e4} {
		if err == nil || fault.KindOf(err) != fault.Internal {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := bare.RevokeKey(ctx, operator(), "acme", c.Keys[0].Kid); err != nil || bare.auth(t, key) {
		t.Errorf("an emergency revoke needs no master key: %v", err)
	}
}

package server_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// The audit key is renewed while the service runs: what the older one made is still
// proven, it makes nothing any more, and who only has the older one forges nothing:
// not behind an entry of the newer one, and not behind heads that it signed.
func TestARenewedAuditKeyProvesBothAndTheOlderOneNothingMore(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, url string) {
		heads, path := "file://"+t.TempDir(), t.TempDir()+"/master.key"
		must(t, secret.CreateMasterFile(path))
		s, _ := adminOf(t, func(c *server.Config) { c.AuditHeads, c.Database, c.MasterKey = heads, url, "file:"+path })
		master, err := secret.OpenMaster("file:" + path)
		must(t, err)
		keys := account.ServiceKeys{DB: s.DB(), Master: master}
		other := keys.AuditKey() // of another process, which has not heard of it
		must(t, other.Load(t.Context()))
		hire(t, s, "ana")
		_, _, err = s.Accounts().CreateClient(t.Context(), audit.Actor{Name: "test"}, account.NewClient{ID: "acme", Config: account.Config{DisplayName: "Acme"}})
		must(t, err)
		must(t, s.WriteHeads(t.Context()))
		before, err := server.ReadLastHeads(t.Context(), heads)
		must(t, err)

		renew := func(reason, address string) error {
			_, err := s.Logs().Renew(t.Context(), address, [][]byte{before}, audit.Actor{Name: "test"}, reason)
			return err
		}
		for _, said := range [][2]string{{"", heads}, {"a copy was lost", ""}, {"a copy was lost", "none"}} {
			if err := renew(said[0], said[1]); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%q: %v", said, err)
			}
		}
		must(t, renew("a copy was lost", heads))
		after, err := server.ReadLastHeads(t.Context(), heads)
		must(t, err)
		if text := string(after); !strings.Contains(text, `"reason":"a copy was lost"`) || !strings.Contains(text, other.PublicKey()) ||
			other.PublicKey() == s.Logs().Key.PublicKey() {
			t.Errorf("the new heads: %s", text)
		}
		hire(t, s, "bea")
		whole(t, s, before, after)

		stale := operator.New(operator.Config{DB: s.DB(), Audit: other, Log: slog.New(slog.DiscardHandler)})
		act := operator.Act{Action: "key.revoked", Subject: "cid"}
		if err := stale.Record(t.Context(), audit.Actor{Name: "test"}, act); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a process that does not know the new key writes: %v", err)
		}
		if _, err := stale.CheckAudit(t.Context()); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a process that does not know the new key verifies: %v", err)
		}
		must(t, other.Follow(t.Context(), s.DB()))
		must(t, stale.Record(t.Context(), audit.Actor{Name: "test"}, act))
		whole(t, s, before, after)

		forge(t, s, keys)
		_, wrong, err := s.Logs().VerifyLogs(t.Context())
		if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "operators is broken") || !strings.Contains(wrong[0], "replaced before") {
			t.Errorf("forged with the older key: %v %q", err, wrong)
		}
		_, wrong, err = s.Logs().VerifyLogs(t.Context(), after)
		if err != nil || len(wrong) != 2 || !strings.Contains(strings.Join(wrong, ";"), "client acme is broken") {
			t.Errorf("forged with the older key behind heads of the newer one: %v %q", err, wrong)
		}
		if err := renew("once more", heads); fault.KindOf(err) != fault.Conflict {
			t.Errorf("the key of logs that do not hold is renewed: %v", err)
		}
	})
}

// whole fails where a log does not hold, by itself or against heads.
func whole(t *testing.T, s *server.Server, kept ...[]byte) {
	t.Helper()
	if _, wrong, err := s.Logs().VerifyLogs(t.Context(), kept...); err != nil || len(wrong) > 0 {
		t.Errorf("logs that nobody touched: %v %q", err, wrong)
	}
}

// forge writes into the operators' log and into a client's as who owns the database
// and has the key that was replaced.
func forge(t *testing.T, s *server.Server, keys account.ServiceKeys) {
	t.Helper()
	old, err := keys.Key(t.Context(), account.AuditLogs+".1")
	must(t, err)
	key := audit.NewKey(func(context.Context) (audit.Ring, error) {
		return audit.Ring{Keys: []secret.Secret{old.Current}}, nil
	}, func(db.Reader) (int64, error) { return 0, nil })
	must(t, key.Load(t.Context()))
	by, log := audit.Actor{Name: "ana"}, slog.New(slog.DiscardHandler)
	must(t, operator.New(operator.Config{DB: s.DB(), Audit: key, Log: log}).Record(t.Context(), by, operator.Act{Action: "key.revoked", Subject: "dan"}))
	accounts, err := account.Open(t.Context(), account.Options{DB: s.DB(), Master: keys.Master, Audit: key, Log: log,
		CheckURL: func(address string, _ []netip.Prefix) (string, error) { return address, nil }})
	must(t, err)
	_, _, err = accounts.RotateKey(t.Context(), by, "acme")
	must(t, err)
}

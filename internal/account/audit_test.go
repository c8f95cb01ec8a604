package account_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

// eventful is a client with a few entries of every kind.
func eventful(t *testing.T, n *node, id string) {
	t.Helper()
	n.create(t, id)
	if _, err := n.Configure(t.Context(), operator(), id, func(c *account.Config) error {
		c.Font = account.Serif
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.RotateKey(t.Context(), operator(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.PromoteKey(t.Context(), operator(), id, ""); err != nil {
		t.Fatal(err)
	}
}

func TestEveryChangeIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		eventful(t, n, "acme")
		c := n.client(t, "acme")
		all := n.audit(t, "acme")
		var got []string
		for i, e := range all {
			got = append(got, e.Action+"/"+e.Subject)
			if e.Seq != int64(i+1) || e.Actor != operator() || e.At.IsZero() || e.ClientID != "acme" {
				t.Errorf("entry %+v", e)
			}
		}
		k1, k2 := c.Keys[0].Kid, c.Keys[1].Kid
		want := "client.created/config data_key.created/data key api_keys key.created/key " + k1 +
			" client.configured/config key.created/key " + k2 +
			" key.retired/key " + k1 + " key.promoted/key " + k2
		if strings.Join(got, " ") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
		}
		v := n.verdict(t, "acme")
		if v.Broken != nil || v.Entries != 7 || v.Head != all[6].Hash() || len(v.Head) != 64 {
			t.Errorf("got %+v", v)
		}
		text, err := json.Marshal(all[6])
		if err != nil || !strings.Contains(string(text), `"hash":"`+v.Head+`"`) ||
			!strings.Contains(string(text), `"ip":"192.0.2.7"`) {
			t.Errorf("%s %v", text, err)
		}
	})
}

func TestTheAuditLogRefusesToBeChanged(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		eventful(t, n, "acme")
		tries := []string{"UPDATE account_audit SET actor = 'nobody' WHERE seq = 2",
			"DELETE FROM account_audit WHERE seq = 2", "DELETE FROM account_audit"}
		again := `INTO account_audit (client_id, seq, at, actor, actor_kid, actor_ip, action, subject, before_hash, after_hash, prev_hash, hash)
			SELECT client_id, seq, at, 'nobody', actor_kid, actor_ip, action, subject, before_hash, after_hash, prev_hash, hash FROM account_audit WHERE seq = 2`
		if d.Engine() == "sqlite" {
			tries = append(tries, "INSERT OR REPLACE "+again, "REPLACE "+again)
		} else {
			tries = append(tries, "TRUNCATE account_audit",
				"INSERT "+again+" ON CONFLICT (client_id, seq) DO UPDATE SET actor = excluded.actor")
		}
		for _, sql := range tries {
			err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(sql) })
			if err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if v := n.verdict(t, "acme"); v.Broken != nil || v.Entries != 7 {
			t.Errorf("got %+v", v)
		}
	})
}

func TestAClientsLogNeedsTheAuditKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		disarm(t, d)
		master := masterFile(t)
		key := account.ServiceKeys{DB: d, Master: master}.AuditKey()
		if err := key.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := open(t, d, func(o *account.Options) { o.Master, o.Audit = master, key })
		eventful(t, n, "acme")
		eventful(t, n, "other")
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Fatalf("before: %+v", v.Broken)
		}
		for sql, why := range map[string]string{
			"UPDATE account_audit SET mac = NULL WHERE client_id = 'acme' AND seq = 3":                                                                          "with the audit key",
			"UPDATE account_audit SET mac = (SELECT o.mac FROM account_audit o WHERE o.client_id = 'other' AND o.seq = 3) WHERE client_id = 'acme' AND seq = 3": "a different key",
		} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(sql) }); err != nil {
				t.Fatal(err)
			}
			if v := n.verdict(t, "acme"); v.Broken == nil || v.Broken.Seq != 3 || !strings.Contains(v.Broken.Reason, why) {
				t.Errorf("%s: %+v", sql, v.Broken)
			}
		}
	})
}

// Somebody with every right on the database removes the triggers first.
func TestTamperingIsFoundAtItsPlace(t *testing.T) {
	t.Parallel()
	const forged = `INSERT INTO account_audit SELECT client_id, 8, at, actor, actor_kid, actor_ip, action, subject, after_hash,
		after_hash, hash, hash, mac FROM account_audit WHERE client_id = 'acme' AND seq = 7`
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		disarm(t, d)
		for name, c := range map[string]struct {
			sql string
			seq int64
		}{
			"changed actor":              {"UPDATE account_audit SET actor = 'nobody' WHERE seq = 3", 3},
			"changed time":               {"UPDATE account_audit SET at = at + 1 WHERE seq = 1", 1},
			"changed address":            {"UPDATE account_audit SET actor_ip = '' WHERE seq = 5", 5},
			"exchanged link":             {"UPDATE account_audit SET prev_hash = hash WHERE seq = 4", 4},
			"removed entry":              {"DELETE FROM account_audit WHERE seq = 4", 5},
			"removed beginning":          {"DELETE FROM account_audit WHERE seq = 1", 2},
			"cut tail":                   {"DELETE FROM account_audit WHERE seq = 7", 7},
			"removed all":                {"DELETE FROM account_audit", 1},
			"forged entry at the end":    {forged, 8},
			"entry far behind":           {"UPDATE account_audit SET seq = 20 WHERE seq = 7", 20},
			"configuration past the log": {"UPDATE clients SET config = '{\"display_name\":\"Mallory\"}'", 0},
			"environment past the log":   {"UPDATE clients SET live = NOT live", 0},
			"revived key":                {"UPDATE api_keys SET state = 'revoked' WHERE state = 'active'", 0},
			"planted digest":             {"UPDATE api_keys SET digest = (SELECT hash FROM account_audit WHERE seq = 1)", 0},
			"planted key": {
				"INSERT INTO api_keys SELECT 'mallory', client_id, 'retiring', digest, sealed, created_at, NULL, NULL FROM api_keys WHERE state = 'active'", 0},
			"removed key":      {"DELETE FROM api_keys WHERE state = 'retiring'", 0},
			"removed data key": {"DELETE FROM client_data_keys", 0},
			"head set back":    {"UPDATE clients SET audit_seq = 6", 8},
		} {
			empty(t, d)
			n := open(t, d)
			eventful(t, n, "acme")
			if err := n.d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec(c.sql) }); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			v := n.verdict(t, "acme")
			if v.Broken == nil || v.Broken.Seq != c.seq || v.Broken.Reason == "" {
				t.Errorf("%s: %+v", name, v.Broken)
			}
			verdicts, err := n.VerifyAudits(t.Context())
			if err != nil || len(verdicts) != 1 || verdicts[0].Broken == nil ||
				!strings.Contains(n.log.String(), "alert="+string(alert.AuditBroken)) {
				t.Errorf("%s: no alert: %+v, %v", name, verdicts, err)
			}
		}
	})
}

// empty removes every client, so that one database serves many cases: they are costly to make.
func empty(t *testing.T, d *db.DB) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, table := range []string{"account_audit", "api_keys", "client_data_keys", "clients"} {
			if err := tx.Exec("DELETE FROM " + table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func disarm(t *testing.T, d *db.DB) {
	t.Helper()
	drops := []string{"ALTER TABLE account_audit DISABLE TRIGGER account_audit_no_update",
		"ALTER TABLE account_audit DISABLE TRIGGER account_audit_no_delete"}
	if d.Engine() == "sqlite" {
		drops = []string{"DROP TRIGGER account_audit_no_update", "DROP TRIGGER account_audit_no_delete",
			"DROP TRIGGER account_audit_no_replace"}
	}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, sql := range drops {
			if err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAWholeLogRaisesNoAlert(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	eventful(t, n, "a")
	eventful(t, n, "b")
	verdicts, err := n.VerifyAudits(t.Context())
	if err != nil || len(verdicts) != 2 || verdicts[0].Broken != nil || verdicts[1].Broken != nil {
		t.Errorf("%+v, %v", verdicts, err)
	}
	if strings.Contains(n.log.String(), "alert=") {
		t.Errorf("raised: %s", n.log)
	}
}

// A forger who knows the encoding hashes right and moves the head as well; the
// state from which the entry claims to start was still never recorded.
func TestAConsistentForgeryFromAnInventedStateIsFound(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		eventful(t, n, "acme")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			var prev, after []byte
			var subject string
			row := tx.Row("SELECT hash, after_hash, subject FROM account_audit WHERE client_id = 'acme' AND seq = 7")
			if err := row.Scan(&prev, &after, &subject); err != nil {
				return err
			}
			invented := bytes.Repeat([]byte{7}, 32)
			hash := entryHash("acme", int64(8), int64(99), "mallory", "", "", "key.promoted", subject, string(invented),
				string(after), string(prev))
			if err := tx.Insert("account_audit",
				"client_id, seq, at, actor, actor_kid, actor_ip, action, subject, before_hash, after_hash, prev_hash, hash",
				[]any{"acme", int64(8), int64(99), "mallory", "", "", "key.promoted", subject, invented, after, prev,
					hash}); err != nil {
				return err
			}
			return tx.ExecOne("UPDATE clients SET audit_seq = 8, audit_hash = $1 WHERE client_id = 'acme'", hash)
		})
		if err != nil {
			t.Fatal(err)
		}
		if v := n.verdict(t, "acme"); v.Broken == nil || v.Broken.Seq != 8 {
			t.Errorf("got %+v", v.Broken)
		}
	})
}

// entryHash is the documented encoding: every field with its length, numbers as eight bytes.
func entryHash(fields ...any) []byte {
	text := binary.BigEndian.AppendUint32(nil, uint32(len("tributary account audit v1")))
	text = append(text, "tributary account audit v1"...)
	for _, f := range fields {
		field, isText := f.(string)
		if !isText {
			field = string(binary.BigEndian.AppendUint64(nil, uint64(f.(int64))))
		}
		text = append(binary.BigEndian.AppendUint32(text, uint32(len(field))), field...)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// The encoding is stored for ever, so it is written down here a second time.
func TestTheHashIsOfTheDocumentedEncoding(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	eventful(t, n, "acme")
	entries := 0
	err := n.d.Read(t.Context(), func(r db.Reader) error {
		rows, err := r.Query("SELECT client_id, seq, at, actor, actor_kid, actor_ip, action, subject, before_hash, after_hash, prev_hash, hash FROM account_audit ORDER BY seq")
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var client, actor, kid, ip, action, subject string
			var seq, at int64
			var before, after, prev, hash []byte
			if err := scan(&client, &seq, &at, &actor, &kid, &ip, &action, &subject, &before, &after, &prev, &hash); err != nil {
				return err
			}
			sum := entryHash(client, seq, at, actor, kid, ip, action, subject, string(before), string(after), string(prev))
			if !bytes.Equal(sum, hash) {
				t.Errorf("entry %d hashes to %x, stored is %x", seq, sum, hash)
			}
			entries++
			return nil
		})
	})
	if err != nil || entries != 7 {
		t.Errorf("%d entries, %v", entries, err)
	}
}

func TestActorsOfAnyContentAreRecorded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		n.create(t, "acme")
		odd := audit.Actor{Name: strings.Repeat("é", 300) + "\x00\xff", Kid: "\x00", IP: strings.Repeat("x", 1000)}
		if _, err := n.Configure(t.Context(), odd, "acme", func(c *account.Config) error {
			c.Font = account.Sans
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		all := n.audit(t, "acme")
		last := all[len(all)-1].Actor
		if last.Name != strings.Repeat("é", 100) || last.Kid != "" || len(last.IP) != 200 {
			t.Errorf("got %d, %q, %d", len(last.Name), last.Kid, len(last.IP))
		}
		if v := n.verdict(t, "acme"); v.Broken != nil {
			t.Errorf("audit: %+v", v.Broken)
		}
	})
}

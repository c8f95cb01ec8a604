package account_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/schema"
	"tributary/internal/secret"
)

// traces are what a leaked key would look like: any 12 letters of its secret,
// and its usual encodings.
func traces(key secret.Secret) []string {
	text := key.RevealText()
	part := text[strings.LastIndexByte(text, '_')+1:]
	all := []string{hex.EncodeToString([]byte(part)), strings.ToUpper(hex.EncodeToString([]byte(part)))}
	for i := range len(part) - 11 {
		all = append(all, part[i:i+12])
	}
	for shift := range 3 {
		all = append(all, strings.Trim(base64.StdEncoding.EncodeToString([]byte(part[shift:])), "=")[:40])
	}
	return all
}

func search(t *testing.T, where, content string, keys ...secret.Secret) {
	t.Helper()
	for i, key := range keys {
		for _, trace := range traces(key) {
			if strings.Contains(content, trace) {
				t.Errorf("%s shows planted key %d", where, i)
				break
			}
		}
	}
}

func TestThePlantedKeyIsInNoFileNoLogAndNoError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tributary.db")
	d, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Migrate(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	n := open(t, d)
	ctx, by := t.Context(), operator()
	c, first := n.create(t, "canary")
	_, second, err := n.RotateKey(ctx, by, "canary")
	if err != nil {
		t.Fatal(err)
	}
	fixed := secret.NewAPIKey(false).Text()
	given, _, err := n.CreateClient(ctx, by,
		account.NewClient{ID: "given", Config: account.Config{DisplayName: "Given"}, Key: fixed})
	if err != nil {
		t.Fatal(err)
	}
	keys := []secret.Secret{first, second, fixed}
	older, newer, err := n.SigningKeys(ctx, "canary")
	if err != nil || !older.Text.Equal(first) || !newer.Text.Equal(second) {
		t.Fatal("the canary does not sing: ", err)
	}

	var texts []string // everything that was printed or said
	note := func(values ...any) { texts = append(texts, fmt.Sprintf("%v %+v %#v", values, values, values)) }
	refused := func(err error) {
		if err == nil {
			t.Error("a call that should be refused was not")
		}
		note(err, errors.Unwrap(err))
	}
	for _, key := range keys {
		text := key.RevealText()
		for _, wrong := range []string{text + "!", text[:len(text)-1], "trb_live" + text[8:], " " + text} {
			_, err := n.Authenticate(ctx, wrong, nowhere())
			refused(err)
		}
		_, err := n.FixKey(ctx, by, "canary", secret.FromText(text+"_"))
		refused(err)
		_, _, err = n.CreateClient(ctx, by, account.NewClient{ID: "late", Config: account.Config{DisplayName: "L"},
			Key: secret.FromText("x" + text)})
		refused(err)
	}
	_, err = n.FixKey(ctx, by, "given", secret.FromText(
		"trb_test_"+c.Keys[0].Kid+"_"+first.RevealText()[strings.LastIndexByte(first.RevealText(), '_')+1:]))
	refused(err)
	caller, err := n.Authenticate(ctx, second.RevealText(), nowhere())
	if err != nil {
		t.Fatal(err)
	}
	note(c, given, caller, older, newer, n.audit(t, "canary"))
	asJSON, err := json.Marshal([]any{n.client(t, "canary"), n.audit(t, "canary"), caller, older})
	if err != nil {
		t.Fatal(err)
	}

	sealed := sealedText(t, d, c.Keys[0].Kid) // what must be found, so that the search is known to search
	files := readAll(t, dir)
	if !strings.Contains(files, c.Keys[0].Kid) || !strings.Contains(files, sealed) {
		t.Fatal("the database files do not even hold the kid and the sealed key")
	}
	search(t, "a database file in use", files, keys...)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = n.RevokeKey(ctx, by, "canary", c.Keys[0].Kid)
	refused(err)
	search(t, "a closed database file", readAll(t, dir), keys...)
	search(t, "the log", n.log.String(), keys...)
	search(t, "an error or a printed value", strings.Join(texts, "\n"), keys...)
	search(t, "JSON", string(asJSON), keys...)
	if !strings.Contains(string(asJSON), c.Keys[0].Kid) || !strings.Contains(strings.Join(texts, " "), "[redacted]") {
		t.Error("the output is not what this test thinks it searches")
	}
}

func sealedText(t *testing.T, d *db.DB, kid string) string {
	t.Helper()
	var sealed []byte
	err := d.Read(t.Context(), func(r db.Reader) error {
		return r.Row("SELECT sealed FROM api_keys WHERE kid = $1", kid).Scan(&sealed)
	})
	if err != nil || len(sealed) == 0 {
		t.Fatal("no sealed key", err)
	}
	return string(sealed)
}

// readAll returns every byte of every file of a folder: database, log and shared memory.
func readAll(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}

func TestThePlantedKeyIsInNoColumnOfPostgres(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	n := open(t, d)
	_, key := n.create(t, "canary")
	err := d.Read(t.Context(), func(r db.Reader) error {
		for _, table := range []string{"clients", "api_keys", "client_data_keys", "account_audit", "alerts"} {
			rows, err := db.Collect(r, func(scan func(...any) error) (text string, err error) { return text, scan(&text) },
				"SELECT x::text FROM "+table+" x")
			if err != nil {
				return err
			}
			if table == "api_keys" && len(rows) != 1 {
				t.Errorf("%d rows in %s", len(rows), table)
			}
			search(t, table, strings.Join(rows, "\n"), key)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

package server_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// A migration that takes longer than a database may take to answer at the start
// is waited for: here somebody holds a table that a step must change.
func TestServeMigratesForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	url, dir := dbtest.PostgresURL(t), t.TempDir()
	ctx := context.Background()
	other, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(ctx) }() // a test's own connection
	const begun = "CREATE TABLE schema_version (version BIGINT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, applied_at BIGINT NOT NULL)"
	// one by one: the table is there before it is locked
	for _, sql := range []string{begun, "BEGIN", "LOCK TABLE schema_version IN SHARE MODE"} {
		if _, err := other.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "master.key")
	if err := secret.CreateMasterFile(key); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := server.Open(ctx, server.Config{API: true, Listen: "127.0.0.1:0", Database: url, Data: dir, Migrate: true,
			MasterKey: "file:" + key})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select { // the time is what is tested
	case err := <-opened:
		t.Fatalf("the start did not wait for the table: %v", err)
	case <-time.After(server.OpenTimeout + time.Second):
	}
	if _, err := other.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("after a migration that took long the start says: %v", err)
	}
}

// Whoever submits hears 503 from us before the connection is closed on him.
func TestStorageGivesUpBeforeTheCallerDoes(t *testing.T) {
	if left := server.ExchangeTimeout - db.WriteTimeout; left < 2*time.Second {
		t.Errorf("a write may take %s, an exchange %s", db.WriteTimeout, server.ExchangeTimeout)
	}
	if left := server.ExchangeTimeout - db.ReadBudget; left < 5*time.Second {
		t.Errorf("a read may take %s, an exchange %s", db.ReadBudget, server.ExchangeTimeout)
	}
}

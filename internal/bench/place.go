package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ownDatabase makes a database for one phase on the server, or beside the file,
// that --database names, so that a run begins empty and leaves nothing behind.
func ownDatabase(ctx context.Context, address, phase string) (own string, drop func() error, err error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		path += "-" + phase
		return "sqlite:" + path, func() error { return removeSQLite(path) }, nil
	}
	if !strings.HasPrefix(address, "postgres") {
		// none: the server makes one in its data folder; another kind: it will say so
		return address, func() error { return nil }, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, fmt.Errorf("--database: %w", err)
	}
	name := fmt.Sprintf("tributary_bench_%s_%x", strings.ReplaceAll(phase, "-", "_"), time.Now().UnixNano())
	command := func(text string) error { return command(context.WithoutCancel(ctx), address, text) }
	if err := command("CREATE DATABASE " + name); err != nil {
		return "", nil, fmt.Errorf("create a database for the benchmark: %w", err)
	}
	u.Path = "/" + name
	return u.String(), func() error { return command("DROP DATABASE " + name + " WITH (FORCE)") }, nil
}

// command says one thing to a server.
func command(ctx context.Context, address, text string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // one command
	_, err = conn.Exec(ctx, text)
	return err
}

// atRest lets a server do at once what loading left it to do: a million rows that
// came over years are vacuumed and on disk, and nobody pays for them today.
func atRest(ctx context.Context, database string) error {
	if !strings.HasPrefix(database, "postgres") {
		return nil
	}
	if err := command(ctx, database, "VACUUM (ANALYZE)"); err != nil {
		return err
	}
	err := command(ctx, database, "CHECKPOINT")
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "42501" {
		return nil // a role that may not: it comes by itself
	}
	return err
}

func removeSQLite(path string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if gone := os.Remove(path + suffix); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

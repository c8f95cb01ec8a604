package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/secret"
)

// Nodes of one PostgreSQL see one folder, or do not start: each would serve only
// what it has drawn itself.
func TestNodesOfOneDatabaseShareTheirFolder(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	open := func(dir string) error {
		s, err := files.OpenStore(t.Context(),
			files.Config{DB: d, URL: "file://" + dir, BaseURL: "https://x.example",
				SigningKey: secret.New([]byte(strings.Repeat("k", 32)))})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	check := func(dir string) error {
		return d.Read(t.Context(), func(r db.Reader) error { return files.CheckShared(r, "file://"+dir) })
	}
	shared, other := t.TempDir(), t.TempDir()
	must(t, check(other)) // nothing is registered yet
	must(t, open(shared))
	must(t, open(shared))
	err := open(other)
	wantKind(t, err, fault.Invalid)
	wantKind(t, check(other), fault.Invalid)
	must(t, check(shared))
	must(t, d.Read(t.Context(), func(r db.Reader) error { return files.CheckShared(r, "s3://docs") }))

	// The documents were lost, and a person says so.
	_, path, _ := strings.Cut(err.Error(), "--documents: ")
	path, _, _ = strings.Cut(path, " is missing")
	if filepath.Dir(path) != other {
		t.Fatalf("%v names no folder in %s", err, other)
	}
	must(t, os.Mkdir(path, 0o700))
	must(t, open(other))
}

package server_test

import (
	"slices"
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/server"
)

// Whatever table gets a wrapped data key must be moved by rewrap and be asked
// before a master key is retired.
func TestEveryTableWithWrappedKeysIsAskedBeforeAKeyIsRetired(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var found []string
	err := d.Read(t.Context(), func(r db.Reader) (err error) {
		found, err = db.Collect(r, func(scan func(...any) error) (name string, err error) { return name, scan(&name) },
			"SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name LIKE '%wrapped%' ORDER BY m.name")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	known := server.WrappedTables()
	slices.Sort(known)
	if !slices.Equal(found, known) {
		t.Errorf("tables with wrapped keys: %q, asked are %q", found, known)
	}
}

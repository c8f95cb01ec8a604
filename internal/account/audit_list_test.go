package account_test

import (
	"testing"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

func TestTheLatestEntriesComeFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := open(t, d)
		a.create(t, "acme")
		if err := d.Read(t.Context(), func(r db.Reader) error {
			all, err := a.Audit(r, "acme", 0, 100)
			if err != nil {
				return err
			}
			newest, err := a.AuditLatest(r, "acme", 0, 1)
			if err != nil || len(newest) != 1 || newest[0].Seq != int64(len(all)) {
				t.Errorf("%+v, %v", newest, err)
			}
			rest, err := a.AuditLatest(r, "acme", newest[0].Seq, 100)
			if err != nil || len(rest) != len(all)-1 || rest[len(rest)-1].Seq != 1 {
				t.Errorf("%+v, %v", rest, err)
			}
			other, err := a.AuditLatest(r, "nobody", 0, 100)
			if len(other) != 0 {
				t.Errorf("%+v", other)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

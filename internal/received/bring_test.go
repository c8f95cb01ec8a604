package received_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/files"
	"tributary/internal/filing/filingtest"
	"tributary/internal/incoming"
	"tributary/internal/leaks"
	"tributary/internal/received"
	"tributary/internal/secret"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const client = filingtest.Client

// taking is where documents are brought to; nobody reads them.
type taking struct {
	t    *testing.T
	db   *db.DB
	docs *received.Documents
}

func open(t *testing.T, d *db.DB) *taking {
	t.Helper()
	return reading(t, d, "mem://", nil)
}

// reading is where documents are brought to and read in a way of the test's own.
func reading(t *testing.T, d *db.DB, at string, read func([]byte) (*incoming.Document, error)) *taking {
	t.Helper()
	n := filingtest.NewNode(t, d, filingtest.Setup{Packs: filingtest.Variants()})
	store, err := files.OpenStore(t.Context(), files.Config{DB: d, URL: at, BaseURL: "https://api.example.test", Alerts: n.Alerts,
		SigningKey: secret.New([]byte(strings.Repeat("k", 32))), Log: slog.New(slog.DiscardHandler)})
	filingtest.Must(t, err)
	return &taking{t, d, received.New(received.Config{DB: d, Companies: n.Companies, Files: store, Hooks: n.Hooks, Alerts: n.Alerts,
		Log: slog.New(slog.DiscardHandler), Read: read})}
}

func paper(id, text string) received.Arrival {
	return received.Arrival{Scope: client, Media: received.XML, Bytes: []byte("<paper>" + text + "</paper>"), Source: "XX.test", AuthorityID: id,
		CompanyID: "company"}
}

// brought is what a source was told of its documents.
type brought struct {
	operations []string
	fresh      int
}

func (k *taking) bring(list ...received.Arrival) (got brought, err error) {
	err = k.docs.Bring(k.t.Context(), list, func(_ *db.Tx, operations []string, fresh int) error {
		got = brought{operations, fresh}
		return nil
	})
	return got, err
}

func (k *taking) count(query string, args ...any) (n int) {
	k.t.Helper()
	filingtest.Must(k.t, k.db.Read(context.Background(), func(r db.Reader) error { return r.Row(query, args...).Scan(&n) }))
	return n
}

// What is here is known by its source's name and its company, so that it need not be got again.
func TestWhatIsStoredIsKnownByItsName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		k := open(t, d)
		if _, err := k.bring(paper("1", "a"), paper("2", "b")); err != nil {
			t.Fatal(err)
		}
		ask := func(scope, source, company string) map[string]bool {
			stored, err := k.docs.Stored(t.Context(), scope, source, company, []string{"2", "3", "1"})
			filingtest.Must(t, err)
			return stored
		}
		if got := ask(client, "XX.test", "company"); len(got) != 2 || !got["1"] || !got["2"] {
			t.Errorf("stored are %v, want 1 and 2", got)
		}
		if n := len(ask("another", "XX.test", "company")) + len(ask(client, "XX.live", "company")) + len(ask(client, "XX.test", "another")); n != 0 {
			t.Errorf("%d are those of another client, source or company", n)
		}
	})
}

// Each document of a look is one operation, in the look's order; the same look again brings nothing. One id of two companies is
// two names, the same bytes are one document, and other bytes under an id are kept aside.
func TestWhatASourceBringsIsOneOperationEach(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		k := open(t, d)
		list := []received.Arrival{paper("1", "a"), paper("2", "b"), paper("3", "c")}
		first, err := k.bring(list...)
		if err != nil || first.fresh != 3 || len(first.operations) != 3 {
			t.Fatalf("%+v %v", first, err)
		}
		again, err := k.bring(list...)
		if err != nil || again.fresh != 0 || fmt.Sprint(again.operations) != fmt.Sprint(first.operations) {
			t.Errorf("again: %+v %v", again, err)
		}
		elsewhere := paper("1", "a")
		elsewhere.CompanyID = "another company"
		mixed, err := k.bring(paper("4", "b"), elsewhere, paper("5", "d"), paper("2", "other bytes"))
		if err != nil || mixed.fresh != 2 || mixed.operations[0] != first.operations[1] || mixed.operations[1] != first.operations[0] {
			t.Errorf("mixed: %+v of %+v, %v", mixed, first, err)
		}
		if n := k.count("SELECT count(*) FROM received"); n != 5 {
			t.Errorf("%d operations", n)
		}
		if n := k.count("SELECT count(*) FROM received WHERE aside AND operation_id = $1 AND status = 'FAILURE'", mixed.operations[3]); n != 1 {
			t.Error("other bytes under an id are not kept aside")
		}
		if n := k.count("SELECT count(*) FROM alerts WHERE name = $1", string(alert.ReceivedAside)); n != 1 {
			t.Errorf("%d alerts", n)
		}
	})
}

// A mark that is not stored leaves no document: the source brings all of them again.
func TestWithoutItsMarkNothingOfALookIsStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		k := open(t, d)
		lost := errors.New("the lease is somebody else's")
		err := k.docs.Bring(t.Context(), []received.Arrival{paper("1", "a"), paper("2", "b")}, func(*db.Tx, []string, int) error { return lost })
		if !errors.Is(err, lost) {
			t.Fatal(err)
		}
		for _, table := range []string{"received", "received_names", "attachments"} {
			if n := k.count("SELECT count(*) FROM " + table); n != 0 {
				t.Errorf("%d rows of %s", n, table)
			}
		}
		if got, err := k.bring(paper("1", "a"), paper("2", "b")); err != nil || got.fresh != 2 {
			t.Errorf("brought again: %+v %v", got, err)
		}
	})
}

// One document of a look that no source may bring stops the whole of it: a mark behind it would lose it.
func TestALookWithADocumentThatIsNoneStoresNothing(t *testing.T) {
	t.Parallel()
	k := open(t, dbtest.SQLite(t))
	sized := func(n int) received.Arrival {
		a := paper("9", "")
		a.Bytes = make([]byte, n)
		return a
	}
	nobody, nameless := paper("9", "x"), paper("", "x")
	nobody.CompanyID = ""
	for name, wrong := range map[string]received.Arrival{"empty": sized(0), "past the most": sized(received.BytesMax + 1),
		"for nobody": nobody, "without an id": nameless} {
		if got, err := k.bring(paper("1", "a"), wrong); err == nil {
			t.Errorf("%s is taken: %+v", name, got)
		}
	}
	if n := k.count("SELECT count(*) FROM received"); n != 0 {
		t.Errorf("%d operations", n)
	}
	if got, err := k.bring(sized(received.BytesMax)); err != nil || got.fresh != 1 {
		t.Errorf("as large as may be: %+v %v", got, err)
	}
}

// Where the shelf on which documents were kept is closed before they are stored, they are kept anew, and stored once.
func TestDocumentsOnAClosedShelfAreKeptAnew(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		k := open(t, d)
		ahead := time.Now().UTC().Add(3 * time.Hour).Format("2006-01-02T15")
		filingtest.Must(t, d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("UPDATE document_store SET open_from = $1", ahead) }))
		got, err := k.bring(paper("1", "a"), paper("2", "b"))
		if err != nil || got.fresh != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		if n := k.count("SELECT count(*) FROM attachments"); n != 2 {
			t.Errorf("%d originals", n)
		}
	})
}

// Two nodes that bring the same documents at once, in any order, make one operation of each.
func TestTwoWhoBringTheSameAtOnceAreOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		nodes := []*taking{open(t, d), open(t, d)}
		const n = 20
		list := make([]received.Arrival, n)
		for i := range list {
			list[i] = paper(fmt.Sprint(i), fmt.Sprint("text ", i))
		}
		var all sync.WaitGroup
		fresh, errs := make([]int, len(nodes)), make([]error, len(nodes))
		for i, k := range nodes {
			all.Go(func() {
				for at := range list {
					if i == 1 {
						at = n - 1 - at
					}
					got, err := k.bring(list[at])
					fresh[i], errs[i] = fresh[i]+got.fresh, errors.Join(errs[i], err)
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil || fresh[0]+fresh[1] != n || nodes[0].count("SELECT count(*) FROM received") != n {
			t.Errorf("%v were new, %v", fresh, err)
		}
	})
}

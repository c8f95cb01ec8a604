package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/files/filestest"
	"tributary/internal/needs"
)

// anotherServer is a PostgreSQL without anything, until the test ends.
func anotherServer(t *testing.T) *dbtest.Server {
	t.Helper()
	s, err := dbtest.StartServer(os.TempDir(), "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() }) // a test may have done it
	return s
}

// as is the address of a database of a server for a role.
func as(s *dbtest.Server, role, database string) string {
	address := strings.Replace(s.URL(), "://tributary@", "://"+role+"@", 1)
	return strings.Replace(address, "/postgres", "/"+database, 1)
}

// A backup is restored on another server as the page prints it: nothing that came
// after it is destroyed, every sale is registered once, and the audit heads go on.
func TestABackupIsRestoredAsPrinted(t *testing.T) {
	t.Parallel() // it waits for workers that look around every few seconds
	restoredAsPrinted(t, restoredStore{})
}

func TestABackupWithDocumentsInABucketIsRestoredAsPrinted(t *testing.T) {
	bucket, _ := filestest.S3(t, "docs")
	restoredAsPrinted(t, restoredStore{address: bucket})
}

// The documents are put back as well, as they were at a time between the backup and its loss,
// to another place: the first store, which another program may still use, stays as it is.
func TestABackupIsRestoredWithAnotherStoreAsPrinted(t *testing.T) {
	t.Parallel()
	was, other := filepath.Join(t.TempDir(), "documents"), filepath.Join(t.TempDir(), "documents")
	restoredAsPrinted(t, restoredStore{"file://" + was, was, "file://" + other, other})
}

func TestABackupWithDocumentsInABucketAtAPointInTimeIsRestoredAsPrinted(t *testing.T) {
	bucket, was := filestest.S3(t, "docs")
	restoredAsPrinted(t, restoredStore{bucket, was, strings.Replace(bucket, "//docs?", "//other?", 1),
		filepath.Join(filepath.Dir(was), "other")})
}

// restoredStore is where documents are before a restore, and where they are put back to: as an
// address and as a folder. Empty: the node's own folder; the same place.
type restoredStore struct{ address, folder, other, otherFolder string }

// putBack copies the store as the page prints it.
func (s restoredStore) putBack(t *testing.T, place *checkout) {
	t.Helper()
	if s.other == "" {
		return
	}
	lines := walkedLines(t, "Restoring with another store", "/backup/documents", s.folder, "/srv/documents", s.otherFolder)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "cp -a ") || !strings.Contains(lines[1], "--documents file://"+s.otherFolder) {
		t.Fatalf("the page prints %q", lines)
	}
	place.shell(t, lines[0])
}

// summed are the digests of the files of a store.
func summed(t *testing.T, folder string) string {
	t.Helper()
	if folder == "" {
		return ""
	}
	var all strings.Builder
	for _, name := range filesBelow(t, folder) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %x\n", name, sha256.Sum256(data))
	}
	return all.String()
}

func restoredAsPrinted(t *testing.T, store restoredStore) {
	needs.Tool(t, "pg_restore", "postgresql-client")
	old, fresh := anotherServer(t), anotherServer(t)
	alter(t, old.URL(), "CREATE ROLE keeper LOGIN CREATEROLE")
	alter(t, old.URL(), "CREATE DATABASE books OWNER keeper")
	succeeds(t, "migrate", "--database", as(old, "keeper", "books"), "--serve-role", "walk_serve")
	dir, heads, dump := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "dump")
	more := []string{"--audit-heads", "file://" + heads}
	if store.address != "" {
		more = append(more, "--documents", store.address)
	}
	node := spawn(t, demoArgs(t, dir, append(more[2:], "--database", as(old, "walk_serve", "books"))...)...)
	serving(t, node.waitReady(), "walk-1")
	tool(t, "pg_dump", "--format=custom", "--file="+dump, as(old, "keeper", "books"))
	node.stop()
	place := newCheckout(t)
	place.env = append(place.env, "TRIBUTARY_DATA="+dir, "TRIBUTARY_MASTER_KEY=file:"+filepath.Join(dir, "master.key"))
	place.shell(t, "tributary operator create late --database "+as(old, "walk_serve", "books"))
	node = spawn(t, demoArgs(t, dir, append(more, "--database", as(old, "walk_serve", "books"))...)...)
	base := node.waitReady()
	swept(t, as(old, "keeper", "books")) // the store is marked anew
	store.putBack(t, place)
	serving(t, base, "walk-2")
	eventually(t, "heads are exported", func() bool { return len(entries(t, heads)) > 0 })
	node.stop()
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}
	before := summed(t, store.folder)

	served := as(fresh, "walk_serve", "books")
	steps := walkedLines(t, "Restoring on PostgreSQL", "postgres://ADMINISTRATOR@HOST/postgres", "'"+fresh.URL()+"'",
		"postgres://tributary@HOST/tributary", "'"+as(fresh, "keeper", "books")+"'",
		"postgres://tributary_serve@HOST/tributary", served, "tributary_serve", "walk_serve", "ROLE tributary LOGIN",
		"ROLE keeper LOGIN", "DATABASE tributary OWNER tributary", "DATABASE books OWNER keeper",
		"DUMP", dump, "--serve-password-file FILE", "", "file:///mnt/worm/tributary", "file://"+heads)
	if len(steps) != 9 {
		t.Fatalf("the page prints %q", steps)
	}
	if roles := place.shell(t, steps[0]); !strings.Contains(roles, "\nwalk_serve\twalk_serve_read\n") {
		t.Errorf("the backup does not say which roles there were: %s", roles)
	}
	steps = steps[1:]
	for _, step := range steps[:4] {
		place.shell(t, step)
	}
	folder := filepath.Join(dir, "documents")
	if store.other != "" {
		folder, more = store.otherFolder, append(more[:2:2], "--documents", store.other)
	}
	files := ageDocuments(t, as(fresh, "keeper", "books"), folder)
	// by a demo: a service with simulators and a client
	flags := strings.Fields(strings.TrimPrefix(steps[4], "tributary serve"))
	node = spawn(t, demoArgs(t, dir, append(more, flags...)...)...)
	base = node.waitReady()
	swept(t, as(fresh, "keeper", "books"))
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a document is gone: %v", err)
		}
	}
	place.env = append(place.env, "TRIBUTARY_DATABASE="+served)
	if out := place.shell(t, "tributary recovery documents"); !strings.Contains(out, "contested") {
		t.Errorf("whose are the documents: %s", out)
	}
	if out, err := place.command("tributary audit verify --audit-heads file://" + heads).CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "operators is broken") {
		t.Errorf("the heads fit a restored database: %s", out)
	}
	place.shell(t, steps[5])
	place.shell(t, steps[6])
	place.shell(t, "tributary audit verify --audit-heads file://"+heads)
	swept(t, as(fresh, "keeper", "books"))
	if out := place.shell(t, "tributary recovery documents"); !strings.Contains(out, "ours") ||
		!strings.Contains(out, "nothing is removed") {
		t.Errorf("whose are the documents, once claimed: %s", out)
	}
	serving(t, base, "walk-2") // submitted again: adopted, not registered twice
	serving(t, base, "walk-3")
	if held := registered(t, "http://"+flagOf(node.cmd.Args, "--simulators")); held["walk-1"] != 1 || held["walk-2"] != 1 {
		t.Errorf("registered: %v", held)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("claimed, and a document is gone: %v", err)
		}
	}
	place.shell(t, steps[7])
	swept(t, as(fresh, "keeper", "books"))
	left := 0
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			left++
		}
	}
	switch { // in a bucket nothing is made to look old
	case store.address == "" && (left == 0 || left == len(files)):
		t.Errorf("released, and %d of %d documents are left: the first sale's stay, the lost second one's go", left,
			len(files))
	case store.other != "" && left != len(files):
		t.Errorf("released, and %d of %d documents are left: all are the first sale's", left, len(files))
	}
	if store.other != "" && summed(t, store.folder) != before {
		t.Error("the first store has changed")
	}
	documented(t, base)
}

// documented checks that the documents of all sales are served.
func documented(t *testing.T, base string) {
	t.Helper()
	var list struct {
		Data []struct {
			Operation string `json:"operation_id"`
			ID        string `json:"transaction_id"`
		}
	}
	get(t, base+"/v1/transactions", &list)
	if len(list.Data) != 3 {
		t.Fatalf("%+v", list)
	}
	for _, sold := range list.Data {
		var shown struct {
			Attachments []struct {
				URL string `json:"resource_url"`
			}
		}
		if get(t, base+"/v1/transactions/"+sold.Operation, &shown); len(shown.Attachments) == 0 {
			t.Errorf("%s has no documents", sold.ID)
		}
		for _, a := range shown.Attachments {
			answer, err := http.Get(a.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close() // it was read
			if err != nil || answer.StatusCode != http.StatusOK || len(body) == 0 {
				t.Errorf("%s: %s: %d, %d bytes, %v", sold.ID, a.URL, answer.StatusCode, len(body), err)
			}
		}
	}
}

// entries are the files of a folder.
func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) { // it has no signal to give
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// ageDocuments has what a folder holds look five hours old, to a database that knows some of it, so that it may be
// swept.
func ageDocuments(t *testing.T, database, folder string) (files []string) {
	t.Helper()
	const layout, age = "2006-01-02T15", 5 * time.Hour
	shelves := map[string]string{}
	store := query(t, database, "SELECT store_id FROM document_store")
	for _, below := range []string{filepath.Join(folder, store), filepath.Join(folder, store, "archives")} {
		list, err := os.ReadDir(below)
		if err != nil {
			continue // in a bucket, or nothing was archived
		}
		for _, e := range list {
			at, err := time.Parse(layout, e.Name())
			if err != nil {
				continue
			}
			shelves[e.Name()] = at.Add(-age).Format(layout)
			aged := filepath.Join(below, shelves[e.Name()])
			if err := os.Rename(filepath.Join(below, e.Name()), aged); err != nil {
				t.Fatal(err)
			}
			files = append(files, filesBelow(t, aged)...)
		}
	}
	for now, then := range shelves {
		alter(t, database, fmt.Sprintf("UPDATE attachments SET shelf = '%s' WHERE shelf = '%s'", then, now))
	}
	alter(t, database, fmt.Sprintf("UPDATE document_store SET open_from = '%[1]s', swept_to = '%[1]s'",
		time.Now().UTC().Add(-age-time.Hour).Format(layout)))
	return files
}

func filesBelow(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// swept has the sweeper run once more, and waits for it.
func swept(t *testing.T, database string) {
	t.Helper()
	const ran = "SELECT coalesce(max(ran_at), 0)::text FROM periodic_tasks WHERE name = 'document_sweep' AND lease_until IS NULL"
	before := query(t, database, ran)
	d := dbtest.Open(t, db.Config{URL: database, NoWorkers: true})
	eventually(t, "the sweeper has run", func() bool {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("periodic_tasks")
			return tx.Exec("UPDATE periodic_tasks SET due_at = 1 WHERE name = 'document_sweep' AND lease_until IS NULL AND coalesce(ran_at, 0) <= " + before)
		})
		if err != nil {
			t.Fatal(err)
		}
		now := query(t, database, ran)
		return now != before && now != "0"
	})
	if failed := query(t, database, "SELECT error FROM periodic_tasks WHERE name = 'document_sweep'"); failed != "" {
		t.Errorf("the sweeper: %s", failed)
	}
}

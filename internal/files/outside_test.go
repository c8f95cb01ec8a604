package files_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/files"
)

func outside(t *testing.T, dir string) *files.Outside {
	t.Helper()
	o, err := files.OpenOutside((&url.URL{Scheme: "file", Path: dir}).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// What is written outside is whole or absent, never replaced, and found again
// whatever the folder is called.
func TestWhatIsOutsideIsWrittenOnceAndFoundAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a[b")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o, ctx := outside(t, dir), context.Background()
	if text, err := o.Last(ctx, "head-", 100); text != nil || err != nil {
		t.Fatalf("of an empty folder: %q %v", text, err)
	}
	for _, name := range []string{"head-2", "head-1", "other-9"} {
		if err := o.Put(ctx, name, []byte("text of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := o.Last(ctx, "head-", 100); string(text) != "text of head-2" || err != nil {
		t.Errorf("the last one: %q %v", text, err)
	}
	if err := o.Put(ctx, "head-2", []byte("another")); err == nil {
		t.Error("a name was written twice")
	}
	if text, err := o.Last(ctx, "head-", 100); string(text) != "text of head-2" || err != nil {
		t.Errorf("after a second try: %q %v", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// A crash in the middle leaves a file aside that nobody takes for one of ours.
func TestATornFileOutsideIsNotTheLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, ctx := outside(t, dir), context.Background()
	if err := o.Put(ctx, "head-1", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".new-7"), []byte("hal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := o.Last(ctx, "head-", 100); string(text) != "whole" || err != nil {
		t.Errorf("the last one: %q %v", text, err)
	}
}

// A folder that is gone is trouble, not an empty one: who asks for the last head
// must not hear that there is none.
func TestAFolderOutsideThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mounted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := outside(t, dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Last(context.Background(), "head-", 100); err == nil || !strings.Contains(err.Error(), "mounted") {
		t.Errorf("answered %v", err)
	}
}

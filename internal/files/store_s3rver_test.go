package files_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/files/filestest"
)

// The protocol of S3 is judged by a server of others.
func TestAnS3ServerStoresServesAndSweeps(t *testing.T) {
	address, _ := filestest.S3(t, "docs")
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = address })
	ctx := t.Context()
	content := []files.File{files.NewFile([]byte("one")), files.NewFile([]byte("")),
		files.NewFile([]byte(strings.Repeat("long ", 400_000)))}
	must(t, s.Keep(ctx, content...))
	must(t, s.Keep(ctx, content...))
	must(t, s.attach(visual("a", "0", content[0]), visual("a", "2", content[2])))
	for id, want := range map[string]files.File{"0": content[0], "2": content[2]} {
		if got, err := s.fetch(s.of("a", id)[0]); err != nil || string(got) != string(want.Bytes) {
			t.Errorf("%s: served %d bytes, want %d: %v", id, len(got), len(want.Bytes), err)
		}
	}
	s.clock.pass(5 * time.Hour)
	if n := s.sweep(0); n != 1 {
		t.Errorf("swept %d, want the one that nothing mentions", n)
	}
	must(t, files.Probe(ctx, address))

	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	stranger := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = address })
	wantKind(t, stranger.Keep(ctx, content[0]), fault.Unavailable)
	if err := files.Probe(ctx, address); err == nil {
		t.Error("an unknown key was let in")
	}
}

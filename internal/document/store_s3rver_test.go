package document_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/fault"
)

// s3rver starts a server of S3 that is not ours, and returns its address.
func s3rver(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../.cache/s3rver/node_modules/s3rver/bin/s3rver.js")
	must(t, err)
	_, err = os.Stat(program)
	node, missing := exec.LookPath("node")
	if err := errors.Join(err, missing); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
			t.Fatal(err)
		}
		t.Skipf("no server of S3: run scripts/setup (%v)", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, program, "--directory", t.TempDir(), "--address", "127.0.0.1", "--port", "0", "--configure-bucket", "docs")
	out, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
			return "http://" + strings.TrimSpace(at)
		}
	}
	t.Fatalf("the server of S3 does not say where it listens: %v", lines.Err())
	return ""
}

// The protocol of S3 is judged by a server of others. It knows its keys by name;
// signatures of version 4 it does not compute.
func TestAnS3ServerStoresServesAndSweeps(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "S3RVER")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
	address := "s3://docs?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(s3rver(t))
	s := openShop(t, dbtest.SQLite(t), func(c *document.Config) { c.URL = address })
	ctx := t.Context()
	files := []document.File{document.NewFile([]byte("one")), document.NewFile([]byte("")), document.NewFile([]byte(strings.Repeat("long ", 400_000)))}
	must(t, s.Keep(ctx, files...))
	must(t, s.Keep(ctx, files...))
	must(t, s.attach(visual("a", "0", files[0]), visual("a", "2", files[2])))
	for id, want := range map[string]document.File{"0": files[0], "2": files[2]} {
		if got, err := s.fetch(s.of("a", id)[0]); err != nil || string(got) != string(want.Bytes) {
			t.Errorf("%s: served %d bytes, want %d: %v", id, len(got), len(want.Bytes), err)
		}
	}
	s.clock.pass(5 * time.Hour)
	if n := s.sweep(0); n != 1 {
		t.Errorf("swept %d, want the one that nothing mentions", n)
	}
	must(t, document.Probe(ctx, address))

	t.Setenv("AWS_ACCESS_KEY_ID", "nobody")
	stranger := openShop(t, dbtest.SQLite(t), func(c *document.Config) { c.URL = address })
	wantKind(t, stranger.Keep(ctx, files[0]), fault.Unavailable)
	if err := document.Probe(ctx, address); err == nil {
		t.Error("an unknown key was let in")
	}
}

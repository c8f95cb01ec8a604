// Package documenttest holds what tests of stores need.
//
// It owns a server of S3 that is not ours. It refuses to own any double of one:
// those belong to the tests that want them to misbehave.
package documenttest

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
)

// S3 starts a server of S3 with a bucket, and returns the address of the bucket
// as the program takes it. The server knows its keys by name; signatures of
// version 4 it does not compute.
func S3(t *testing.T, bucket string) string {
	t.Helper()
	program, err := filepath.Abs("../../.cache/s3rver/node_modules/s3rver/bin/s3rver.js")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(program)
	node, missing := exec.LookPath("node")
	if err := errors.Join(err, missing); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
			t.Fatal(err)
		}
		t.Skipf("no server of S3: run scripts/setup (%v)", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "S3RVER")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, program, "--directory", t.TempDir(), "--address", "127.0.0.1", "--port", "0", "--configure-bucket", bucket)
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // killed
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
			return "s3://" + bucket + "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape("http://"+strings.TrimSpace(at))
		}
	}
	t.Fatal("the server of S3 does not say where it listens")
	return ""
}

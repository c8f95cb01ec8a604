// Package documenttest holds what tests of stores need.
//
// It owns a server of S3 that is not ours. It refuses to own any double of one:
// those belong to the tests that want them to misbehave.
package filestest

import (
	"bufio"
	"context"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/needs"
)

// S3 starts a server of S3 with a bucket, and returns the address of the bucket
// as the program takes it, and the folder of its files: a copy beside it is another bucket. The server knows its keys by name; signatures of
// version 4 it does not compute.
func S3(t *testing.T, bucket string) (address, files string) {
	t.Helper()
	folder := needs.Npm(t, "s3rver")
	t.Setenv("AWS_ACCESS_KEY_ID", "S3RVER")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3RVER")
	kept := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "node", filepath.Join(folder, "node_modules", "s3rver", "bin", "s3rver.js"),
		"--directory", kept, "--address", "127.0.0.1", "--port", "0", "--configure-bucket", bucket)
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
			return "s3://" + bucket + "?region=us-east-1&use_path_style=true&endpoint=" +
				url.QueryEscape("http://"+strings.TrimSpace(at)), filepath.Join(kept, bucket)
		}
	}
	t.Fatal("the server of S3 does not say where it listens")
	return "", ""
}

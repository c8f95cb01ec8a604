package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programBytesMax is what the program may weigh, stripped: docs/decisions/0087.
const programBytesMax = 60_000_000

func TestTheProgramWeighsLessThan60MB(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tributary")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	about, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(about.Size())/1e6)
	if about.Size() > programBytesMax {
		t.Errorf("the program weighs %d bytes, %d too many: docs/decisions/0087 says what weighs what", about.Size(), about.Size()-programBytesMax)
	}
}

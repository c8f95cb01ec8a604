package client_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tributary/internal/client"
)

func TestOutcomesAreInColourOnTerminalsAlone(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if _, err := client.Painter(&out).Write([]byte("a SUCCESS\tFAILURE\n{\"status\":\"SUCCESS\"} XSUCCESS")); err != nil {
		t.Fatal(err)
	}
	if want := "a \x1b[32mSUCCESS\x1b[0m\t\x1b[31mFAILURE\x1b[0m\n{\"status\":\"SUCCESS\"} XSUCCESS"; out.String() !=
		want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	if client.InColour(file) != file || client.InColour(&out) != &out {
		t.Error("what is no terminal gets colours")
	}
}

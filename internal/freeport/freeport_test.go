package freeport

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	if path := os.Getenv("FREEPORT_TAKE"); path != "" {
		var port int
		if _, err := fmt.Sscan(filepath.Base(path), &port); err != nil {
			panic(err)
		}
		free, err := take(path, port)
		fmt.Println(free, err)
		return
	}
	os.Exit(m.Run())
}

func TestAPortBelongsToOneProcess(t *testing.T) {
	port, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if port < lowest || port >= highest {
		t.Errorf("port %d is outside %d to %d", port, lowest, highest)
	}
	path := locks[len(locks)-1].Name()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "FREEPORT_TAKE="+path)
	out, err := other.Output()
	if err != nil || strings.TrimSpace(string(out)) != "false <nil>" {
		t.Errorf("another process took port %d, too: %s, %v", port, out, err)
	}
	if free, err := take(path, port); free || err != nil {
		t.Errorf("the same process was given port %d twice: %v", port, err)
	}
}

func TestAPortSomebodyListensOnIsNotFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if free, err := take(filepath.Join(t.TempDir(), "port"), l.Addr().(*net.TCPAddr).Port); free || err != nil {
		t.Errorf("free: %v, %v", free, err)
	}
}

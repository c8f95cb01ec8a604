package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"tributary/internal/killpoint"
)

// fastBinary is the program at the speed at which it is shipped, with its kill
// points if the tests have them: what tests start as a process of its own. Races
// are looked for by those that run the program in this process, by a soak under
// load, which starts the test binary itself, and by the tests of internal/server.
func fastBinary(t *testing.T) string {
	t.Helper()
	if !raceDetector {
		return os.Args[0]
	}
	path, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built is the folder of the binary, removed by TestMain.
var built string

var builtOnce = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "tributary-program-"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "tributary")
	args := []string{"build", "-trimpath", "-o", path}
	if killpoint.Armed {
		args = append(args, "-tags=killpoints")
	}
	build := exec.Command("go", append(args, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // as the release is built
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program without the race detector: %w\n%s", err, out)
	}
	return path, nil
})

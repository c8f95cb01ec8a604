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
// points if the tests have them. Most tests of this package start it: their
// subject is what a flag, a command or a page does, and with the race detector
// they made up half of the suite's time. Races of the running program are
// looked for where most happens at once, by those that start the test binary
// itself (a soak under load, a client whose keys are rotated under load), and by
// the tests of internal/server, which run the whole of it.
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

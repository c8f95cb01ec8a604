// Package needs says what a test needs of the machine it runs on: programs of
// the distribution, official schemas, packages of npm, a long time.
//
// It owns the one way in which a test is left out. Law: whoever lacks something
// reads one line that says what, and everything else still runs. Where
// TRIBUTARY_TEST_REQUIRED is set, as in .ci/run, nothing may lack: what would
// have been skipped fails.
package needs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	requiredVariable    = "TRIBUTARY_TEST_REQUIRED" // a missing tool or schema is a failure
	schemasVariable     = "TRIBUTARY_SCHEMAS"       // the folder of official schemas
	conformanceVariable = "TRIBUTARY_CONFORMANCE"   // make conformance: programs that judge from outside
	longVariable        = "TRIBUTARY_LONG"          // make long
)

// Missing skips a test for what the machine lacks, or fails it where nothing may lack.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(requiredVariable) != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool is the path of a program, which a Debian package brings.
func Tool(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is not installed (Debian package %s): this check did not run", name, pkg)
	}
	return path
}

// File is a file that a Debian package brings: a font, a library of Java.
func File(t testing.TB, path, pkg string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		Missing(t, "%s is not there (Debian package %s): this check did not run", path, pkg)
	}
	return path
}

// Schemas is a path below the folder of official schemas: TRIBUTARY_SCHEMAS, or
// shared/schemas beside the repository. Where the folder is absent the test is
// skipped; where it is there but lacks the path, the test fails: a check that is
// promised may not vanish.
func Schemas(t testing.TB, path ...string) string {
	t.Helper()
	dir := schemas(t)
	if _, err := os.Stat(dir); err != nil {
		Missing(t, "no official schemas at %s: set %s to run this check", dir, schemasVariable)
	}
	full := filepath.Join(append([]string{dir}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("the folder of official schemas lacks %s", filepath.Join(path...))
	}
	return full
}

// HasSchemas is for tests that check more where official schemas are there.
func HasSchemas(t testing.TB) bool {
	t.Helper()
	_, err := os.Stat(schemas(t))
	return err == nil || os.Getenv(requiredVariable) != ""
}

func schemas(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(schemasVariable); dir != "" {
		return dir
	}
	return filepath.Join(Root(t), "..", "shared", "schemas")
}

// Conformance reports whether programs of others judge us in this run.
func Conformance() bool { return os.Getenv(conformanceVariable) != "" }

// Npm is the folder of a set of npm packages that judge us from outside. They run
// in make conformance only: there they must be installed.
func Npm(t testing.TB, name string) string {
	t.Helper()
	if !Conformance() {
		t.Skipf("%s of npm judges this in make conformance", name)
	}
	folder := filepath.Join(Root(t), ".cache", name)
	_, err := os.Stat(filepath.Join(folder, "installed"))
	_, missing := exec.LookPath("node")
	if err := errors.Join(err, missing); err != nil {
		t.Fatalf("%s of npm is not installed: run scripts/setup conformance (%v)", name, err)
	}
	return folder
}

// Unpacked is a program of a Debian package that scripts/setup conformance unpacks. It judges us in make conformance only.
func Unpacked(t testing.TB, pkg, program string) string {
	t.Helper()
	if !Conformance() {
		t.Skipf("%s judges this in make conformance", filepath.Base(program))
	}
	path := filepath.Join(Root(t), ".cache", pkg, program)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not there: run scripts/setup conformance (%v)", pkg, err)
	}
	return path
}

// Long leaves a test to make long; what says what makes it long.
func Long(t testing.TB, what string) {
	t.Helper()
	if !IsLong() {
		t.Skipf("left to make long: %s", what)
	}
}

// NotInTheGate leaves a test to make conformance and make long; what says what makes it costly.
func NotInTheGate(t testing.TB, what string) {
	t.Helper()
	if !Conformance() && !IsLong() {
		t.Skipf("left to make conformance: %s", what)
	}
}

// IsLong reports whether this is make long, where seeds are free and runs are long.
func IsLong() bool { return os.Getenv(longVariable) != "" }

// NotRaced leaves a test out of the race run of make test, which is
// go test -race -short: it costs much there and adds no meeting of goroutines.
func NotRaced(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s: the race run leaves it out", why)
	}
}

// Root is the folder of go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

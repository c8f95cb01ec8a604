package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tributary/internal/minisign"
	"tributary/internal/needs"
)

// programBytesMax is what the program may weigh, stripped: docs/decisions/0041.
const programBytesMax = 80_000_000

func TestTheProgramWeighsLessThan80MB(t *testing.T) {
	needs.Long(t, "it builds the program")
	t.Parallel()
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
		t.Errorf("the program weighs %d bytes, %d too many: docs/decisions/0041 says what weighs what", about.Size(),
			about.Size()-programBytesMax)
	}
}

// copied is the project's files in a folder of their own, as they are now.
func copied(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	script := `git ls-files -co --exclude-standard -z | while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done | tar -c --null -T - | tar -x -C "$0"`
	pack := exec.Command("bash", "-euo", "pipefail", "-c", script, to)
	pack.Dir = "../.."
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// release runs scripts/release as a maintainer does.
func release(t *testing.T, at, key string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "out")
	run := exec.Command(filepath.Join(at, "scripts/release"))
	run.Env = append(os.Environ(), "RELEASE_VERSION=v9.8.7", "RELEASE_BUILDVCS=false",
		"RELEASE_TARGETS=linux/"+runtime.GOARCH, "RELEASE_DIR="+dir, "RELEASE_KEY="+key)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestAReleaseIsReproducibleSignedAndVerifiesItself(t *testing.T) {
	needs.Long(t, "it builds two releases")
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program of the release must run here")
	}
	keys := t.TempDir()
	secret, err := minisign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(keys, "release.key")
	write(t, key, string(secret.File()))
	first, second := release(t, copied(t), key), release(t, copied(t), key)
	files, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		if a, b := text(t, first, f.Name()), text(t, second, f.Name()); a != b {
			t.Errorf("%s differs between two folders", f.Name())
		}
	}
	program := "tributary-v9.8.7-linux-" + runtime.GOARCH
	for _, want := range []string{"SHA256SUMS", "SHA256SUMS.minisig", program, program + ".cdx.json",
		"tributary-v9.8.7.provenance.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not part of the release: %v", want, names)
		}
	}
	checkProvenance(t, text(t, first, "tributary-v9.8.7.provenance.json"), program, text(t, first, "SHA256SUMS"))
	verifies(t, first, program, secret)
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// checkProvenance holds the statement against the specifications of in-toto
// (Statement v1) and SLSA (Provenance v1), and against the checksums.
func checkProvenance(t *testing.T, statement, program, sums string) {
	t.Helper()
	var s struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				BuildType            string
				ExternalParameters   map[string]string
				ResolvedDependencies []struct{ URI string }
			}
			RunDetails struct{ Builder struct{ ID string } }
		}
	}
	if err := json.Unmarshal([]byte(statement), &s); err != nil {
		t.Fatal(err)
	}
	d := s.Predicate.BuildDefinition
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" ||
		d.BuildType == "" || s.Predicate.RunDetails.Builder.ID == "" {
		t.Errorf("the statement's head is %+v", s)
	}
	if len(s.Subject) != 1 || s.Subject[0].Name != program ||
		!strings.Contains(sums, s.Subject[0].Digest["sha256"]+"  "+program+"\n") {
		t.Errorf("subject %+v, checksums\n%s", s.Subject, sums)
	}
	if d.ExternalParameters["version"] != "v9.8.7" || len(d.ResolvedDependencies) < 30 {
		t.Errorf("%v, %d dependencies", d.ExternalParameters, len(d.ResolvedDependencies))
	}
}

// verifies runs the program of a release, whole and tampered with.
func verifies(t *testing.T, dir, name string, secret minisign.SecretKey) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tributary") // installed under another name, elsewhere
	if err := os.WriteFile(program, []byte(text(t, dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(dir, "SHA256SUMS")
	stranger, err := minisign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(want string, good bool, args ...string) {
		t.Helper()
		out, err := exec.Command(program, append([]string{"version", "--verify"}, args...)...).CombinedOutput()
		if (err == nil) != good || !strings.Contains(string(out), want) || !strings.Contains(string(out), "v9.8.7") {
			t.Errorf("%v: %v, want %q in\n%s", args, err, want, out)
		}
	}
	changed := func(file, from, to string) string {
		at := filepath.Join(t.TempDir(), "SHA256SUMS")
		for _, suffix := range []string{"", ".minisig"} {
			content := text(t, dir, "SHA256SUMS"+suffix)
			if "SHA256SUMS"+suffix == file {
				content = strings.Replace(content, from, to, 1)
			}
			write(t, at+suffix, content)
		}
		return at
	}
	ask("verified: this program is "+name+` of the release "tributary v9.8.7", signed with key `+secret.Public().ID()+
		" (built in", true, "--checksums", sums)
	ask("(given)", true, "--checksums", sums, "--key", secret.Public().Text())
	ask("SHA256SUMS does not exist", false)
	ask("made with key "+secret.Public().ID()+", not with key "+stranger.Public().ID(), false, "--checksums", sums,
		"--key", stranger.Public().Text())
	ask("no public key of minisign", false, "--checksums", sums, "--key", "nonsense")
	ask("the signature does not hold", false, "--checksums", changed("SHA256SUMS", "tributary", "Tributary"))
	ask("comment has been changed", false, "--checksums", changed("SHA256SUMS.minisig", "v9.8.7", "v9.8.8"))
	ask("no signature of minisign", false, "--checksums", changed("SHA256SUMS.minisig", "trusted", "believed"))
	lone := changed("", "", "")
	if err := os.Remove(lone + ".minisig"); err != nil {
		t.Fatal(err)
	}
	ask("the signature of the checksums", false, "--checksums", lone)
	f, err := os.OpenFile(program, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("one byte more")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	ask("none matches this binary", false, "--checksums", sums)
}

// What is not committed is not released, and nothing is signed before it was compared.
func TestADirtyTreeIsNotReleased(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	script := `cd "$0" && git init -q && mkdir scripts && cp "$1" scripts/release && git add -A && git -c user.name=t -c user.email=t@example.com commit -qm one && echo more >file`
	source, err := filepath.Abs("../../scripts/release")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", "-euc", script, at, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(at, "scripts", "release")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the tree is dirty") {
		t.Errorf("%v\n%s", err, out)
	}
	text := text(t, filepath.Dir(source), "release")
	if compared, signed := strings.Index(text, "cmp "),
		strings.Index(text, `sign" file`); compared < 0 || signed < compared {
		t.Error("it is signed before two builds were compared")
	}
}

// A stand-in for docker shows what would be built, that nothing is without digest, and that the image is asked whether
// it is genuine.
func TestAnImageIsBuiltFromDigestsAlone(t *testing.T) {
	t.Parallel()
	tools, made := t.TempDir(), t.TempDir()
	program := "tributary-v9.8.7-linux-" + runtime.GOARCH
	write(t, filepath.Join(made, program), "the program")
	sum := sha256.Sum256([]byte("the program"))
	write(t, filepath.Join(made, "SHA256SUMS"), fmt.Sprintf("%x  %s\n", sum, program))
	if err := os.WriteFile(filepath.Join(tools, "docker"), []byte("#!/bin/sh\necho called \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	digest := "golang:1.26-trixie@sha256:" + strings.Repeat("ab", 32)
	image := func(image, at string) (string, error) {
		run := exec.Command(filepath.Join(at, "scripts/image"))
		run.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "GO_IMAGE="+image, "RELEASE_VERSION=v9.8.7",
			"RELEASE_DIR="+made)
		out, err := run.CombinedOutput()
		return string(out), err
	}
	at := t.TempDir() // as it copies into bin/
	if err := os.MkdirAll(filepath.Join(at, "scripts"), 0o700); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "../../scripts/image", filepath.Join(at, "scripts/image"))
	if err := os.Chmod(filepath.Join(at, "scripts/image"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := image(digest, at); err == nil || !strings.Contains(out, "SHA256SUMS.minisig is missing") {
		t.Errorf("a release that is not signed: %v\n%s", err, out)
	}
	write(t, filepath.Join(made, "SHA256SUMS.minisig"), "signed")
	for name, good := range map[string]bool{"": false, "golang:1.26-trixie": false, "golang@sha256:abcd": false,
		"@" + digest: false, digest + "0": false, digest: true} {
		out, err := image(name, at)
		if (err == nil) != good || strings.Contains(out, "called") != good ||
			good && (!strings.Contains(out, "GO_IMAGE="+digest) || !strings.Contains(out, "RELEASE="+program) ||
				!strings.Contains(out, "called run --rm --network=none tributary:v9.8.7 version --verify")) {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
	}
	write(t, filepath.Join(made, program), "another program")
	if out, err := image(digest, at); err == nil || !strings.Contains(out, "is not what SHA256SUMS says") {
		t.Errorf("another binary: %v\n%s", err, out)
	}
}

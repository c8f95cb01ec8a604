// Command licences lists the modules that the program is made of, with their licences.
//
//	go run -C tools ./licences notice > NOTICE
//	go run -C tools ./licences report > tributary-VERSION.licences.txt
//
// The notice names modules and licences; the report, which goes with every
// release, has their whole texts, as most of these licences want it. Both are
// read from the sources that are built in: no network, equal bytes for equal
// sources. A module without a licence that is known, or with one that nobody
// decided about, ends it with an error.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// systems are those that scripts/release builds for: each may take other modules.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// accepted are the licences whose conditions a release keeps by handing their
// texts on. MPL-2.0 asks besides that changed files are published: none is changed.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "OFL-1.1", "Unlicense",
	"Zlib", "BSD-0-Clause", "0BSD", "CC0-1.0", "GooglePatentsFile"}

func main() {
	if len(os.Args) != 2 || os.Args[1] != "notice" && os.Args[1] != "report" {
		fmt.Fprintln(os.Stderr, "usage: licences notice|report")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	err := run(os.Args[1] == "report", out)
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(whole bool, out io.Writer) error {
	list, err := modules()
	if err != nil {
		return err
	}
	fmt.Fprint(out, "Tributary\nLicensed under the Apache License, Version 2.0: see LICENSE.\n\nThe program contains these modules, each under its own licence:\n\n")
	for _, m := range list {
		fmt.Fprintf(out, "%s: %s\n", strings.TrimSpace(m.Path+" "+m.Version), strings.Join(m.kinds, ", "))
	}
	if !whole {
		fmt.Fprint(out, "\nTheir texts are in the licences file of each release.\n")
		return nil
	}
	for _, m := range list {
		for _, t := range m.texts {
			fmt.Fprintf(out, "\n%s\n%s %s, %s\n\n%s\n", strings.Repeat("=", 80), m.Path, m.Version, t.name, bytes.TrimSpace(t.content))
		}
	}
	return nil
}

type module struct {
	Path, Version, Dir string

	packages []string // folders that are built in
	texts    []text
	kinds    []string
}

type text struct {
	name    string
	content []byte
}

// modules are those whose packages are built into the program, and Go itself.
func modules() ([]*module, error) {
	byPath := map[string]*module{}
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/tributary")
		cmd.Dir = ".." // the product's module
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=")
		cmd.Stderr = os.Stderr
		listed, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages for %s: %w", system, err)
		}
		for in := json.NewDecoder(bytes.NewReader(listed)); in.More(); {
			var p struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := in.Decode(&p); err != nil {
				return nil, fmt.Errorf("read the packages for %s: %w", system, err)
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := byPath[p.Module.Path]
			if m == nil {
				m = &module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir}
				byPath[m.Path] = m
			}
			m.packages = append(m.packages, p.Dir)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("ask where Go is: %w", err)
	}
	byPath["the Go standard library"] = &module{Path: "the Go standard library", Dir: strings.TrimSpace(string(root))}
	list := make([]*module, 0, len(byPath))
	for _, m := range byPath {
		if err := m.read(); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense|ofl)([-_.].*)?$`)

// read finds the texts of a module: at its root, and on the way to every package that is built in.
func (m *module) read() error {
	folders := []string{m.Dir}
	for _, dir := range m.packages {
		for ; len(dir) > len(m.Dir); dir = filepath.Dir(dir) {
			if !slices.Contains(folders, dir) {
				folders = append(folders, dir)
			}
		}
	}
	slices.Sort(folders)
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("look for the licence of %s: %w", m.Path, err)
		}
		for _, e := range entries {
			if e.IsDir() || !named.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return fmt.Errorf("read the licence of %s: %w", m.Path, err)
			}
			name, err := filepath.Rel(m.Dir, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			m.texts = append(m.texts, text{name, content})
			for _, match := range licensecheck.Scan(content).Match {
				if !match.IsURL && !slices.Contains(m.kinds, match.ID) {
					m.kinds = append(m.kinds, match.ID)
				}
			}
		}
	}
	slices.Sort(m.kinds)
	if len(m.kinds) == 0 {
		return fmt.Errorf("%s %s has no licence that is known", m.Path, m.Version)
	}
	for _, kind := range m.kinds {
		if !slices.Contains(accepted, kind) {
			return fmt.Errorf("%s %s is under %s: decide whether a release may contain it", m.Path, m.Version, kind)
		}
	}
	return nil
}

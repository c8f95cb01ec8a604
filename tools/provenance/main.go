// Command provenance says how the binaries of a release came about, as an
// in-toto statement (https://in-toto.io/Statement/v1) with SLSA's predicate
// (https://slsa.dev/provenance/v1). It reads what the linker put into them, so
// that it cannot say anything else, and gives equal bytes for equal binaries:
// no time, no machine.
//
//	go run -C tools ./provenance VERSION BINARY… > tributary-VERSION.provenance.json
//
// The statement is not signed by itself: its checksum is in SHA256SUMS, which is.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The kinds of things that the statement names.
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "urn:tributary:scripts-release:v1"
	builderID     = "urn:tributary:scripts-release"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: provenance VERSION BINARY…")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "provenance:", err)
		os.Exit(1)
	}
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	Definition struct {
		BuildType    string            `json:"buildType"`
		External     map[string]string `json:"externalParameters"`
		Internal     map[string]string `json:"internalParameters"`
		Dependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	Run struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

func run(version string, paths []string, w io.Writer) error {
	s := statement{Type: statementType, PredicateType: predicateType}
	d := &s.Predicate.Definition
	d.BuildType, s.Predicate.Run.Builder.ID = buildType, builderID
	d.External, d.Internal = map[string]string{"version": version}, map[string]string{}
	for _, path := range paths {
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(binary)
		s.Subject = append(s.Subject, resource{Name: filepath.Base(path),
			Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
		settings := map[string]string{"go": info.GoVersion}
		for _, one := range info.Settings {
			settings[one.Key] = one.Value
		}
		for _, key := range []string{"go", "CGO_ENABLED", "-trimpath", "vcs.revision", "vcs.modified"} { // alike in all: one build
			if before, there := d.Internal[key]; there && before != settings[key] {
				return fmt.Errorf("%s was built with %s=%s, the one before with %s", path, key, settings[key], before)
			}
			d.Internal[key] = settings[key]
		}
		for _, key := range []string{"GOAMD64", "GOARM64"} { // the least processor that runs it
			if level := settings[key]; level != "" {
				d.Internal[key] = level
			}
		}
		if len(d.Dependencies) > 0 {
			continue
		}
		if commit := settings["vcs.revision"]; commit != "" {
			d.Dependencies = append(d.Dependencies,
				resource{URI: "git+" + info.Main.Path, Digest: map[string]string{"gitCommit": commit}})
		}
		for _, m := range info.Deps {
			d.Dependencies = append(d.Dependencies,
				resource{URI: "pkg:golang/" + m.Path + "@" + m.Version, Digest: map[string]string{"goModuleH1": m.Sum}})
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(s)
}

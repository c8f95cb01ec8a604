// Command sbom lists what a Go binary is made of, as CycloneDX 1.6 in JSON, from
// the build information that the linker put into it. It needs no network and
// gives equal bytes for equal binaries.
//
//	go run -C tools ./sbom BINARY [VERSION] > BINARY.cdx.json
//
// The version is the module's unless given: -trimpath leaves the linker's flags,
// and so the version they set, out of the build information.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY [VERSION]")
		os.Exit(2)
	}
	if err := run(os.Args[1], strings.Join(os.Args[2:], ""), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bom is the part of CycloneDX 1.6 that describes a binary.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"` // of the commit: a build time would make every run differ
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []digest   `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type digest struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func run(path, version string, w io.Writer) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(binary)
	if version != "" {
		info.Main.Version = version
	}
	list, err := describe(filepath.Base(path), sum, info)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}

// describe makes the list: the binary, the Go toolchain's library and every module.
func describe(name string, sum [sha256.Size]byte, info *debug.BuildInfo) (*bom, error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	root := component{
		Type: "application", Ref: "binary:" + name, Name: info.Main.Path, Version: info.Main.Version,
		Hashes: []digest{{"SHA-256", hex.EncodeToString(sum[:])}},
	}
	for _, key := range []string{"GOOS", "GOARCH", "CGO_ENABLED", "-trimpath", "vcs.revision", "vcs.modified"} {
		if v := settings[key]; v != "" {
			root.Properties = append(root.Properties, property{"go:build:" + key, v})
		}
	}
	list := &bom{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).String(),
		Metadata:     metadata{Timestamp: timestamp(settings["vcs.time"]), Component: root},
		Components: []component{{Type: "library", Ref: "pkg:golang/std@" + info.GoVersion, Name: "std",
			Version: info.GoVersion, Scope: "required", PURL: "pkg:golang/std@" + info.GoVersion}},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, Scope: "required",
			PURL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version}
		c.Ref = c.PURL
		if h, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			raw, err := base64.StdEncoding.DecodeString(h)
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("the sum of %s cannot be read: %q", m.Path, m.Sum)
			}
			c.Hashes = []digest{{"SHA-256", hex.EncodeToString(raw)}} // of the module's files, as in go.sum
		}
		list.Components = append(list.Components, c)
	}
	all := dependency{Ref: root.Ref}
	for _, c := range list.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	list.Dependencies = []dependency{all}
	return list, nil
}

func timestamp(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

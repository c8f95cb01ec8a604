package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestABinaryIsDescribedWholeAndAlwaysAlike describes this very test's binary.
func TestABinaryIsDescribedWholeAndAlwaysAlike(t *testing.T) {
	var first, second bytes.Buffer
	if err := run(os.Args[0], "v1.2.3", &first); err != nil {
		t.Fatal(err)
	}
	if err := run(os.Args[0], "v1.2.3", &second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two runs differ")
	}
	var list bom
	d := json.NewDecoder(&first)
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		t.Fatal(err)
	}
	if list.Format != "CycloneDX" || list.Metadata.Component.Version != "v1.2.3" || list.SpecVersion != "1.6" ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(
			list.SerialNumber) {
		t.Errorf("head %+v", list)
	}
	refs := map[string]bool{list.Metadata.Component.Ref: true}
	names := map[string]component{}
	for _, c := range list.Components {
		if refs[c.Ref] {
			t.Errorf("%s is there twice", c.Ref)
		}
		refs[c.Ref], names[c.Name] = true, c
		if c.PURL == "" || c.Version == "" || c.Name != "std" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("component %+v", c)
		}
	}
	if !strings.HasPrefix(names["std"].Version, "go1.") || names["github.com/google/uuid"].Version == "" {
		t.Errorf("components %v", names)
	}
	for _, of := range list.Dependencies {
		for _, ref := range append(of.DependsOn, of.Ref) {
			if !refs[ref] {
				t.Errorf("%s is depended on and not described", ref)
			}
		}
	}
}

func TestWhatIsNoBinaryIsRefused(t *testing.T) {
	if err := run("main.go", "", &bytes.Buffer{}); err == nil {
		t.Error("a source file was described")
	}
}

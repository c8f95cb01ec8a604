package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The NOTICE of the repository is that of the modules that are built in.
func TestTheNoticeIsCurrent(t *testing.T) {
	t.Chdir("..")
	var made, report bytes.Buffer
	if err := run(false, &made); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../NOTICE")
	if err != nil || !bytes.Equal(kept, made.Bytes()) {
		t.Errorf("NOTICE is not current (%v): go run -C tools ./licences notice > NOTICE", err)
	}
	if err := run(true, &report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Mozilla Public License", "SIL OPEN FONT LICENSE",
		"Permission is hereby granted, free of charge", "Redistributions in binary form"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report has no %q", want)
		}
	}
}

// A module whose licence nobody decided about, or that has none, stops a release.
func TestALicenceThatNobodyDecidedAboutIsRefused(t *testing.T) {
	for want, content := range map[string]string{
		"decide whether":               "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.",
		"has no licence that is known": "All rights reserved.",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		m := &module{Path: "example.org/other", Version: "v1.0.0", Dir: dir}
		if err := m.read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: %v", content, err)
		}
	}
}

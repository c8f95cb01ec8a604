package main

import (
	"fmt"
	"os"

	"tributary/internal/doctor"
	"tributary/internal/fault"
)

type versionCommand struct {
	Verify    bool   `help:"Verify this binary against the release: its checksum and the signature of the checksums." setting:"-"`
	Checksums string `help:"The release's SHA256SUMS, with SHA256SUMS.minisig in the same folder." placeholder:"FILE" setting:"-"`
	Key       string `help:"minisign public key, or a file with it; default: the built-in one." placeholder:"KEY" setting:"-"`
}

// Run prints the version, and says whether this program is genuine.
func (v versionCommand) Run(c *command) error {
	fmt.Fprintln(c.out, versionText())
	if !v.Verify {
		if v.Checksums != "" || v.Key != "" {
			return fault.New(fault.Invalid, "--checksums and --key require --verify")
		}
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	found, err := doctor.Genuine{Program: program, Checksums: v.Checksums, Key: v.Key, BuiltIn: releaseKey}.Verify()
	if err == nil {
		fmt.Fprintln(c.out, "verified:", found)
	}
	return err
}

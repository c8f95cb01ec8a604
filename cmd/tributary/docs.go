package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/fault"
	"tributary/internal/server"
)

type docsCommand struct {
	Out string `help:"Output folder; created if missing." placeholder:"DIR" setting:"docs-out"`
	URL string `help:"Base URL of the service." default:"http://127.0.0.1:8080" placeholder:"URL" name:"url"`
}

// Run writes the documentation as a folder of files, to be opened as they are
// or served by anything that serves files.
func (cmd *docsCommand) Run(c *command) error {
	if cmd.Out == "" {
		return fault.New(fault.Invalid, "--out is required: the output folder")
	}
	files, err := server.Pages(strings.TrimSuffix(cmd.URL, "/"), versionText())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cmd.Out, 0o755); err != nil {
		return fault.New(fault.Invalid, "--out %s: %v", cmd.Out, err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(cmd.Out, f.Name), f.Content, 0o644); err != nil {
			return fault.New(fault.Invalid, "--out %s: %v", cmd.Out, err)
		}
	}
	fmt.Fprintf(c.out, "wrote %d files to %s; start with %s\n", len(files), cmd.Out, filepath.Join(cmd.Out, "index.html"))
	return nil
}

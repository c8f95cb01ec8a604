package main

import (
	"fmt"
	"os"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// backupCommand copies a SQLite database while it is served.
type backupCommand struct {
	Database string `help:"sqlite:PATH or postgres://USER@HOST/NAME." placeholder:"URL"`
	Data     string `help:"Folder of database, documents, keys and simulated authorities." placeholder:"DIR"`
	To       string `arg:"" help:"File to create. An existing file is never overwritten."`
}

// Run makes the copy.
func (b *backupCommand) Run(c *command) error {
	if b.Database == "" && b.Data == "" {
		return fault.New(fault.Invalid, "--database is required: --database sqlite:PATH, or --data DIR")
	}
	from := databaseOf(&accountFlags{databaseFlags: databaseFlags{Database: b.Database}, dataFlags: dataFlags{Data: b.Data}})
	if err := db.Backup(c.ctx, from, b.To); err != nil {
		return err
	}
	info, err := os.Stat(b.To)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s has %d bytes and passed the integrity check\n", b.To, info.Size())
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/server"
)

type masterKeyCommand struct {
	Create masterKeyCreate `cmd:"" help:"Make a master key file, readable by its owner only."`
	Rotate masterKeyRotate `cmd:"" help:"Add a new key to the file and move every client's data key to it; nothing stops."`
	Rewrap masterKeyRewrap `cmd:"" help:"Move every client's data key to the current master key."`
}

type masterKeyCreate struct {
	File string `arg:"" help:"Where to put it. An existing file is never touched."`
}

// Run makes the file.
func (cmd *masterKeyCreate) Run(c *command) error {
	err := secret.CreateMasterFile(cmd.File)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Invalid, "%s exists: a master key that is overwritten is lost, and with it every secret it sealed", cmd.File)
	}
	if err != nil {
		return fmt.Errorf("make the master key: %w", err)
	}
	fmt.Fprintf(c.out, "%s is made. Keep a copy apart from the database's backups; without it nothing can be signed.\n", cmd.File)
	return nil
}

type masterKeyRotate struct {
	bookFlags
	FileOnly bool `help:"Add the new key to the file and stop: for nodes with copies of the file, or its content in a variable. Distribute it, then rewrap."`
}

// rotated is what a script reads after a rotation.
type rotated struct {
	KeyID string `json:"key_id"`
	Moved int    `json:"data_keys_moved"`
}

// Run rotates. Interrupted between the two steps it leaves data keys under the
// older key, which stays in the file; rewrap moves them.
func (cmd *masterKeyRotate) Run(c *command) error {
	source := masterOf(&cmd.bookFlags)
	if !strings.HasPrefix(source, "file:") {
		return fault.New(fault.Invalid, "--master-key: only file:PATH can be rotated here; for env: rotate the file it was made from, for a KMS rotate the key there, then rewrap")
	}
	if cmd.FileOnly {
		id, err := rotateFile(source)
		if err != nil {
			return err
		}
		return cmd.tell(c, rotated{KeyID: id})
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		id, err := rotateFile(source)
		if err != nil {
			return err
		}
		moved, err := rewrapAll(ctx, c, source, d, a)
		if err != nil {
			return err
		}
		return cmd.tell(c, rotated{id, moved})
	})
}

// rewrapAll moves the data keys of clients and those of authorities' identities.
func rewrapAll(ctx context.Context, c *command, source string, d *db.DB, a *account.Accounts) (moved int, err error) {
	if moved, err = a.Rewrap(ctx, actor()); err != nil {
		return moved, err
	}
	master, err := secret.OpenMaster(source)
	if err != nil {
		return moved, err
	}
	e, err := server.OpenEndpoints(server.Config{Log: c.log}, d, master)
	if err != nil {
		return moved, err
	}
	more, err := e.Rewrap(ctx)
	return moved + more, err
}

func rotateFile(source string) (keyID string, err error) {
	master, err := secret.OpenMaster(source)
	if err != nil {
		return "", err
	}
	return master.Rotate()
}

func (f *bookFlags) tell(c *command, r rotated) error {
	return f.show(c, r, func(w *tabwriter.Writer) { fmt.Fprintf(w, "key\t%s\ndata keys moved\t%d\n", r.KeyID, r.Moved) })
}

type masterKeyRewrap struct{ bookFlags }

// Run moves every data key that is not under the current master key.
func (cmd *masterKeyRewrap) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		moved, err := rewrapAll(ctx, c, masterOf(&cmd.bookFlags), d, a)
		if err != nil {
			return err
		}
		master, err := secret.OpenMaster(masterOf(&cmd.bookFlags))
		if err != nil {
			return err
		}
		id, err := master.KeyID()
		if err != nil {
			return err
		}
		return cmd.tell(c, rotated{id, moved})
	})
}

// databaseOf is the flag, or the file that serve would take.
func databaseOf(f *bookFlags) string {
	if f.Database == "" {
		return "sqlite:" + filepath.Join(f.Data, "tributary.db")
	}
	return f.Database
}

// masterOf is the flag, or the file that serve would take.
func masterOf(f *bookFlags) string {
	if f.MasterKey != "" {
		return f.MasterKey
	}
	dir := f.Data
	if dir == "" {
		dir = filepath.Dir(strings.TrimPrefix(f.Database, "sqlite:"))
	}
	return "file:" + filepath.Join(dir, "master.key")
}

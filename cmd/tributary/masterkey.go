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
	Rewrap masterKeyRewrap `cmd:"" help:"Move every data key to the current master key."`
	Renew  masterKeyRenew  `cmd:"" help:"Give every client a fresh data key for what is sealed from now on, and document addresses a fresh key."`
	Retire masterKeyRetire `cmd:"" help:"Take an old key out of the file, once nothing in the database needs it."`
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

// rewrapAll moves the data keys of clients, of authorities' identities and of the service itself.
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
	if moved += more; err != nil {
		return moved, err
	}
	more, err = account.ServiceKeys{DB: d, Master: master}.Rewrap(ctx)
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

type masterKeyRenew struct{ bookFlags }

// renewed is what a script reads after a renewal.
type renewed struct {
	DataKeys int `json:"data_keys_renewed"`
}

// Run renews what the master key wraps.
func (cmd *masterKeyRenew) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		master, err := secret.OpenMaster(masterOf(&cmd.bookFlags))
		if err != nil {
			return err
		}
		n, err := a.RenewDataKeys(ctx, actor())
		if err != nil {
			return err
		}
		if err := (account.ServiceKeys{DB: d, Master: master}).Renew(ctx, account.DocumentAddresses); err != nil {
			return err
		}
		return cmd.show(c, renewed{n}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "data keys renewed\t%d\ndocument addresses\ta fresh key signs within seconds; those signed before stay valid until they end\n", n)
		})
	})
}

type masterKeyRetire struct {
	bookFlags
	KeyID string `arg:"" name:"key-id" help:"Of the key, as rotate and doctor print it."`
}

// retired is what a script reads after a retirement.
type retired struct {
	KeyID string `json:"key_id"`
	Taken bool   `json:"taken_out"` // false: it is kept elsewhere, and nothing here needs it
}

// Run proves that nothing needs a key and takes it out of its file.
func (cmd *masterKeyRetire) Run(c *command) error {
	source := masterOf(&cmd.bookFlags)
	return cmd.with(c, func(ctx context.Context, d *db.DB, _ *account.Accounts) error {
		master, err := secret.OpenMaster(source)
		if err != nil {
			return err
		}
		if current, err := master.KeyID(); err != nil || current == cmd.KeyID {
			return errors.Join(err, fault.New(fault.Invalid, "%s is the key that wraps now: rotate first", cmd.KeyID))
		}
		uses, err := server.KeysInUse(ctx, d)
		if err != nil {
			return err
		}
		for _, use := range uses {
			if use.KeyID == cmd.KeyID {
				return fault.New(fault.Conflict, "%d data keys of %s are wrapped by %s: run tributary master-key rewrap first", use.Count, use.Of, cmd.KeyID)
			}
		}
		told := retired{KeyID: cmd.KeyID, Taken: strings.HasPrefix(source, "file:")}
		if told.Taken {
			if err := master.Retire(cmd.KeyID); err != nil {
				return fault.New(fault.Invalid, "%v", err)
			}
		}
		return cmd.show(c, told, func(w *tabwriter.Writer) { fmt.Fprintf(w, "%s\t%s\n", cmd.KeyID, retirement(told.Taken)) })
	})
}

func retirement(taken bool) string {
	if taken {
		return "is taken out of the file; backups of the database made before the last rewrap need a copy of the old file"
	}
	return "is needed by nothing in this database; end it where it is kept (Vault: min_decryption_version), and keep it for older backups as long as you keep those"
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

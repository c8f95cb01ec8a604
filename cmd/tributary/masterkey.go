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
	"tributary/internal/operator"
	"tributary/internal/secret"
	"tributary/internal/server"
)

type masterKeyCommand struct {
	Create masterKeyCreate `cmd:"" help:"Create a master key file, readable by its owner only."`
	Rotate masterKeyRotate `cmd:"" help:"Add a new key to the file and rewrap every client's data key with it, without downtime."`
	Rewrap masterKeyRewrap `cmd:"" help:"Rewrap every data key with the current master key."`
	Renew  masterKeyRenew  `cmd:"" help:"Create a new data key per client for new secrets, and new keys for document URLs, operators' second factors and remembered browsers."`
	Retire masterKeyRetire `cmd:"" help:"Remove an old key from the file once nothing in the database needs it."`
}

type masterKeyCreate struct {
	File string `arg:"" help:"File to create. An existing file is never overwritten."`
}

// Run makes the file.
func (cmd *masterKeyCreate) Run(c *command) error {
	err := secret.CreateMasterFile(cmd.File)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Invalid, "%s exists: overwriting a master key loses every secret encrypted with it", cmd.File)
	}
	if err != nil {
		return fmt.Errorf("create the master key: %w", err)
	}
	fmt.Fprintf(c.out, "created %s. Keep a copy separate from the database backups; without it no secret can be read.\n",
		cmd.File)
	return nil
}

type masterKeyRotate struct {
	accountFlags
	FileOnly bool `help:"Only add the new key to the file: for nodes with copies of the file, or its content in a variable. Distribute it, then rewrap."`
}

// rotated is what a script reads after a rotation.
type rotated struct {
	KeyID string `json:"key_id"`
	Moved int    `json:"data_keys_moved"`
}

// Run rotates. Interrupted between the two steps it leaves data keys under the
// older key, which stays in the file; rewrap moves them.
func (cmd *masterKeyRotate) Run(c *command) error {
	source := masterOf(&cmd.accountFlags)
	if !strings.HasPrefix(source, "file:") {
		return fault.New(fault.Invalid,
			"--master-key: only file:PATH can be rotated here; for env: rotate the original file, for a KMS rotate the key there, then rewrap")
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
	e, err := server.OpenEndpoints(ctx, server.Config{Log: c.log}, d, master)
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

func (f *accountFlags) tell(c *command, r rotated) error {
	return f.show(c, r, func(w *tabwriter.Writer) { fmt.Fprintf(w, "key\t%s\ndata keys rewrapped\t%d\n", r.KeyID, r.Moved) })
}

type masterKeyRewrap struct{ accountFlags }

// Run moves every data key that is not under the current master key.
func (cmd *masterKeyRewrap) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		moved, err := rewrapAll(ctx, c, masterOf(&cmd.accountFlags), d, a)
		if err != nil {
			return err
		}
		master, err := secret.OpenMaster(masterOf(&cmd.accountFlags))
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

type masterKeyRenew struct{ accountFlags }

// renewed is what a script reads after a renewal.
type renewed struct {
	DataKeys int `json:"data_keys_renewed"`
}

// Run renews what the master key wraps.
func (cmd *masterKeyRenew) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		master, err := secret.OpenMaster(masterOf(&cmd.accountFlags))
		if err != nil {
			return err
		}
		n, err := a.RenewDataKeys(ctx, actor())
		if err != nil {
			return err
		}
		keys := account.ServiceKeys{DB: d, Master: master}
		err = errors.Join(keys.Renew(ctx, account.DocumentAddresses), keys.Renew(ctx, account.OperatorDevices),
			keys.Reseal(ctx, account.OperatorFactors, operator.ResealFactors))
		if err != nil {
			return err
		}
		return cmd.show(c, renewed{n}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "data keys renewed\t%d\ndocument URLs\tsigned with a new key within seconds; earlier ones stay valid until they expire\nsecond factors of operators\tencrypted with a new key\nremembered browsers of operators\tforgotten\n", n)
		})
	})
}

type masterKeyRetire struct {
	accountFlags
	KeyID string `arg:"" name:"key-id" help:"Key id, as printed by rotate and doctor."`
}

// retired is what a script reads after a retirement.
type retired struct {
	KeyID string `json:"key_id"`
	Taken bool   `json:"taken_out"` // false: it is kept elsewhere, and nothing here needs it
}

// Run proves that nothing needs a key and takes it out of its file.
func (cmd *masterKeyRetire) Run(c *command) error {
	source := masterOf(&cmd.accountFlags)
	return cmd.with(c, func(ctx context.Context, d *db.DB, _ *account.Accounts) error {
		master, err := secret.OpenMaster(source)
		if err != nil {
			return err
		}
		if current, err := master.KeyID(); err != nil || current == cmd.KeyID {
			return errors.Join(err, fault.New(fault.Invalid, "%s is the current key: rotate first", cmd.KeyID))
		}
		uses, err := server.KeysInUse(ctx, d)
		if err != nil {
			return err
		}
		for _, use := range uses {
			if use.KeyID == cmd.KeyID {
				return fault.New(fault.Conflict, "%d data keys of %s are wrapped by %s: run tributary master-key rewrap first",
					use.Count, use.Of, cmd.KeyID)
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
		return "was removed from the file; database backups from before the last rewrap need a copy of the old file"
	}
	return "is no longer needed by this database; retire it where it is kept (Vault: min_decryption_version), but keep it as long as you keep older backups"
}

// databaseOf is the flag, or the file that serve would take.
func databaseOf(f *accountFlags) string {
	if f.Database == "" {
		return "sqlite:" + filepath.Join(f.Data, "tributary.db")
	}
	return f.Database
}

// masterOf is the flag, or the file that serve would take.
func masterOf(f *accountFlags) string {
	if f.MasterKey != "" {
		return f.MasterKey
	}
	dir := f.Data
	if dir == "" {
		dir = filepath.Dir(strings.TrimPrefix(f.Database, "sqlite:"))
	}
	return "file:" + filepath.Join(dir, "master.key")
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

type keyCommand struct {
	Create  keyCreate  `cmd:"" help:"Add a key alongside the current one."`
	Rotate  keyRotate  `cmd:"" help:"Start a rotation: add the next key; webhooks are signed with both."`
	Promote keyPromote `cmd:"" help:"Sign with the next key; the old one retires."`
	Revoke  keyRevoke  `cmd:"" help:"Revoke a key immediately."`
}

// createdKey is what a script reads after making a key.
type createdKey struct {
	account.Key
	Text string `json:"api_key"` // shown once
}

type keyCreate struct {
	accountFlags
	Client  string   `arg:"" help:"Client id."`
	Scopes  []string `help:"Create a restricted key, which never signs webhooks, with these scopes: submit, read, onboard, lookup, webhooks." placeholder:"SCOPE" setting:"key-scopes"`
	Expires string   `help:"Expiry of a restricted key: a time such as 2027-01-31T00:00:00Z, or a duration such as 720h." placeholder:"WHEN" setting:"key-expires"`
	CIDR    []string `help:"Networks from which a restricted key may be used." placeholder:"CIDR" name:"cidr" setting:"key-cidr"`
	Name    string   `help:"Name of a restricted key." placeholder:"NAME" setting:"key-name"`
}

// createdLimitedKey is what a script reads after making a key with limits.
type createdLimitedKey struct {
	account.LimitedKey
	Text string `json:"api_key"` // shown once
}

// limits reads the flags; false: none was given.
func (cmd *keyCreate) limits() (l account.Limits, limited bool, err error) {
	for _, s := range cmd.Scopes {
		l.Scopes = append(l.Scopes, account.Scope(s))
	}
	for _, text := range cmd.CIDR {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return l, true, fault.New(fault.Invalid, "--cidr: %q is not a network such as 10.1.0.0/16", text)
		}
		l.Networks = append(l.Networks, network)
	}
	if cmd.Expires != "" {
		if l.ExpiresAt, err = time.Parse(time.RFC3339, cmd.Expires); err != nil {
			while, wrong := time.ParseDuration(cmd.Expires)
			if wrong != nil {
				return l, true, fault.New(fault.Invalid,
					"--expires: %q is neither a time such as 2027-01-31T00:00:00Z nor a duration such as 720h", cmd.Expires)
			}
			l.ExpiresAt = time.Now().Add(while)
		}
	}
	l.Name = cmd.Name
	return l, len(l.Scopes)+len(l.Networks) > 0 || cmd.Expires != "" || cmd.Name != "", nil
}

func (cmd *keyCreate) runLimited(ctx context.Context, c *command, a *account.Accounts, l account.Limits) error {
	key, text, err := a.CreateLimitedKey(ctx, actor(), cmd.Client, l)
	if err != nil {
		return err
	}
	return cmd.show(c, createdLimitedKey{key, text.RevealText()}, func(w *tabwriter.Writer) {
		networks := "anywhere"
		if len(key.Networks) > 0 {
			networks = fmt.Sprint(key.Networks)
		}
		fmt.Fprintf(w, "kid\t%s\nname\t%s\nscopes\t%v\nexpires\t%s\nfrom\t%s\nAPI key\t%s\n\nThe key is shown only once. It never signs webhooks.\n",
			key.Kid, fault.Printable(key.Name), key.Scopes, orDash(key.ExpiresAt), networks, text.RevealText())
	})
}

// Run adds a key.
func (cmd *keyCreate) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		limits, limited, err := cmd.limits()
		if err != nil {
			return err
		}
		if limited {
			return cmd.runLimited(ctx, c, a, limits)
		}
		key, text, err := a.CreateKey(ctx, actor(), cmd.Client)
		return cmd.made(c, key, text, err)
	})
}

func (f *accountFlags) made(c *command, key account.Key, text secret.Secret, err error) error {
	if err != nil {
		return err
	}
	return f.show(c, createdKey{key, text.RevealText()}, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "kid\t%s\nstate\t%s\nAPI key\t%s\n\nThe key is shown only once.\n", key.Kid, key.State, text.RevealText())
	})
}

type keyRotate struct {
	accountFlags
	Client string `arg:"" help:"Client id."`
}

// Run begins a rotation.
func (cmd *keyRotate) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		key, text, err := a.RotateKey(ctx, actor(), cmd.Client)
		return cmd.made(c, key, text, err)
	})
}

// kidArgs name a key; the client follows from it.
type kidArgs struct {
	Kid string `arg:"" help:"Key id, the third part of the key."`
}

func (k kidArgs) change(ctx context.Context, d *db.DB, a *account.Accounts,
	do func(ctx context.Context, by audit.Actor, clientID, kid string) (account.Key, error)) (key account.Key, err error) {
	var client string
	if err := d.Read(ctx, func(r db.Reader) (err error) { client, err = a.ClientOf(r, k.Kid); return err }); err != nil {
		return key, err
	}
	return do(ctx, actor(), client, k.Kid)
}

func (f *accountFlags) changed(c *command, key account.Key, err error) error {
	if err != nil {
		return err
	}
	return f.show(c, key, func(w *tabwriter.Writer) { fmt.Fprintf(w, "key %s is %s\n", key.Kid, key.State) })
}

type keyPromote struct {
	accountFlags
	kidArgs
}

// Run promotes the next key.
func (cmd *keyPromote) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		key, err := cmd.change(ctx, d, a, a.PromoteKey)
		return cmd.changed(c, key, err)
	})
}

type keyRevoke struct {
	accountFlags
	kidArgs
	StopWebhooks bool `help:"Revoke the key that signs webhooks without asking; webhooks wait until another one is promoted." name:"stop-webhooks"`
}

// Run revokes a key. The one that signs webhooks is asked for: nothing of the
// client's is delivered afterwards.
func (cmd *keyRevoke) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		if err := cmd.agree(ctx, c, d, a); err != nil {
			return err
		}
		key, err := cmd.change(ctx, d, a, a.RevokeKey)
		return cmd.changed(c, key, err)
	})
}

// agree asks a person on a terminal; elsewhere the flag has to say it.
func (cmd *keyRevoke) agree(ctx context.Context, c *command, d *db.DB, a *account.Accounts) error {
	if cmd.StopWebhooks {
		return nil
	}
	var client string
	if err := d.Read(ctx, func(r db.Reader) (err error) { client, err = a.ClientOf(r, cmd.Kid); return err }); err != nil {
		return err
	}
	signing, _, err := a.SigningKeys(ctx, client)
	if err != nil || signing.Kid != cmd.Kid {
		return nil // it signs nothing
	}
	refusal := fault.New(fault.Conflict, "%s signs the webhooks of %s: promote another key first, or use --stop-webhooks",
		cmd.Kid, client)
	if f, ok := c.in.(*os.File); !ok || !terminal(f) {
		return refusal
	}
	fmt.Fprintf(c.err, "%s signs the webhooks of %s, which wait until another key is promoted. Revoke it? [y/N] ",
		cmd.Kid, client)
	line, err := bufio.NewReader(io.LimitReader(c.in, 64)).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return refusal
	}
	return nil
}

// terminal reports whether a person may be at the other end.
func terminal(f *os.File) bool {
	about, err := f.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

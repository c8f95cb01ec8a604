package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
)

// receiverFlags are what a client's configuration says of its receivers beside
// their addresses.
type receiverFlags struct {
	WebhookCIDR     []string `help:"Private networks allowed for this client's receivers; 'none' removes them." placeholder:"CIDR" name:"webhook-cidr"`
	SignatureHeader string   `help:"Signature header of webhooks; 'none': the default." placeholder:"NAME" name:"webhook-signature-header"`
}

func (f *receiverFlags) apply(c *account.Config) error {
	if len(f.WebhookCIDR) > 0 {
		c.WebhookCIDRs = nil
	}
	for _, text := range f.WebhookCIDR {
		if strings.EqualFold(text, "none") {
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return fault.New(fault.Invalid, "--webhook-cidr: %q is not a network such as 10.1.0.0/16", text)
		}
		c.WebhookCIDRs = append(c.WebhookCIDRs, network)
	}
	switch {
	case strings.EqualFold(f.SignatureHeader, "none"):
		c.SignatureHeader = ""
	case f.SignatureHeader != "":
		c.SignatureHeader = f.SignatureHeader
	}
	return nil
}

type webhookSecretCommand struct {
	Create webhookSecretCreate `cmd:"" help:"Add a secret and sign webhooks as Standard Webhooks as well."`
	Revoke webhookSecretRevoke `cmd:"" help:"Revoke a secret; without any, the Standard Webhooks headers are omitted."`
}

// createdWebhookSecret is what a script reads after making a secret.
type createdWebhookSecret struct {
	account.WebhookSecret
	Text string `json:"webhook_secret"` // shown once
}

type webhookSecretCreate struct {
	accountFlags
	Client string `arg:"" help:"Client id."`
	File   string `help:"File with an existing whsec_… secret; default: generate one." placeholder:"FILE" name:"secret-file"`
}

// Run makes a secret and shows it, once.
func (cmd *webhookSecretCreate) Run(c *command) error {
	var fixed secret.Secret
	if cmd.File != "" {
		text, err := os.ReadFile(cmd.File)
		if err != nil {
			return fault.New(fault.Invalid, "--secret-file: %v", err)
		}
		fixed = secret.FromText(strings.TrimSpace(string(text)))
	}
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		made, text, err := a.CreateWebhookSecret(ctx, actor(), cmd.Client, fixed)
		if err != nil {
			return err
		}
		return cmd.show(c, createdWebhookSecret{made, text.RevealText()}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "id\t%s\nsecret\t%s\n\nThe secret is shown only once. Older ones keep signing until they are revoked.\n", made.ID, text.RevealText())
		})
	})
}

type webhookSecretRevoke struct {
	accountFlags
	Client string `arg:"" help:"Client id."`
	ID     string `arg:"" help:"Secret id, as listed by client show."`
}

// Run ends a secret.
func (cmd *webhookSecretRevoke) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		one, err := a.RevokeWebhookSecret(ctx, actor(), cmd.Client, cmd.ID)
		if err != nil {
			return err
		}
		return cmd.show(c, one, func(w *tabwriter.Writer) { fmt.Fprintf(w, "%s is revoked\n", one.ID) })
	})
}

func printWebhookSecrets(w *tabwriter.Writer, all []account.WebhookSecret) {
	if len(all) > 0 {
		fmt.Fprintln(w, "\nWEBHOOK SECRET\tSTATE\tCREATED")
	}
	for _, s := range all {
		state := "signs"
		if !s.RevokedAt.IsZero() {
			state = "revoked"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.ID, state, s.CreatedAt.Format(time.RFC3339))
	}
}

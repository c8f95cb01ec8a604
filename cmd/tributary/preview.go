package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/fault"
)

type previewCommand struct {
	accountFlags
	ID       string   `arg:"" help:"Client id."`
	Out      string   `help:"Output file; default standard output." placeholder:"FILE"`
	Country  string   `help:"Country whose appearance is shown, two letters." placeholder:"CC" setting:"preview-country"`
	Language string   `help:"Language of the labels, two letters." default:"EN"`
	Template string   `help:"Template instead of the client's: classic, modern or receipt." placeholder:"TEMPLATE" setting:"preview-template"`
	Fonts    []string `help:"Folders with fonts for documents, searched before the system's." placeholder:"DIR" setting:"preview-fonts"`
}

// Run makes a sample document in a client's look: what the console shows, for
// whoever works on a command line.
func (cmd *previewCommand) Run(c *command) error {
	if cmd.Template != "" && !slices.Contains(document.Templates(), document.Template(cmd.Template)) {
		return fault.New(fault.Invalid, "--template: %q is not one of %v", cmd.Template, document.Templates())
	}
	if !slices.Contains(document.Languages(), strings.ToUpper(cmd.Language)) {
		return fault.New(fault.Invalid, "--language: %q is not one of %s", cmd.Language, strings.Join(document.Languages(), ", "))
	}
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		var one account.Client
		if err := d.Read(ctx, func(r db.Reader) (err error) { one, err = a.Client(r, cmd.ID); return err }); err != nil {
			return err
		}
		look, err := cmd.look(ctx, a, &one)
		if err != nil {
			return err
		}
		renderer, err := document.NewRenderer(typeset.WithSystem(cmd.Fonts...))
		if err != nil {
			return err
		}
		if _, err := renderer.Scripts(); len(cmd.Fonts) > 0 && err != nil {
			return fault.New(fault.Invalid, "--fonts: %v", err)
		}
		made, err := renderer.Render(ctx, document.Sample{Name: one.Config.DisplayName, Language: cmd.Language,
			Branding: look, At: time.Now()}.Visual())
		if err != nil {
			return err
		}
		if len(made.Missing) > 0 {
			fmt.Fprintf(c.err, "no font for %s: install one, or give a folder with --fonts\n", strings.Join(made.Missing, ", "))
		}
		if cmd.Out == "" {
			_, err = c.out.Write(made.PDF)
			return err
		}
		if err := os.WriteFile(cmd.Out, made.PDF, 0o600); err != nil {
			return fmt.Errorf("write the sample: %w", err)
		}
		fmt.Fprintf(c.err, "wrote %s\n", cmd.Out)
		return nil
	})
}

// look is the client's look in the country, with the template that was asked for.
func (cmd *previewCommand) look(ctx context.Context, a *account.Accounts, one *account.Client) (document.Branding, error) {
	stored := one.Config.AppearanceIn(strings.ToUpper(cmd.Country))
	look := document.Branding{
		Placement: document.Placement(stored.LogoPlacement), Accent: stored.Colours.Accent, Ink: stored.Colours.Ink,
		Font:     string(stored.Font),
		Template: document.Template(stored.Template), Footer: stored.Footer,
	}
	if cmd.Template != "" {
		look.Template = document.Template(cmd.Template)
	}
	if stored.Logo == nil {
		return look, nil
	}
	var err error
	look.Logo, err = a.Logo(ctx, one.ID)
	return look, err
}

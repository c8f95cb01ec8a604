package main

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/account"
	"tributary/internal/server"
)

// initCommand makes an installation for production in one call.
type initCommand struct {
	databaseFlags
	Folder     string            `arg:"" help:"Installation folder: configuration, master key, documents and, without --database, a SQLite database."`
	Operator   string            `help:"Name of the first operator, an admin." default:"admin" placeholder:"NAME"`
	Client     string            `help:"First client's id." default:"first" placeholder:"ID"`
	Live       bool              `help:"File with real authorities; keys are trb_live_…"`
	Country    map[string]string `help:"Enable countries with a use case each: ES=BOTH;MX=REPORTING; * for all." placeholder:"CC=USECASE"`
	PublicURL  string            `help:"Public base URL; default http:// and the listen address." placeholder:"URL" name:"public-url"`
	Simulators simulatorsAt      `help:"URL or listen address of the simulated authorities, for test keys." default:"127.0.0.1:8090"`
}

const initPatience = 2 * time.Minute

// Run makes it and says how to go on.
func (cmd *initCommand) Run(c *command) error {
	look := clientConfigFlags{Country: cmd.Country}
	var cfg account.Config
	if err := look.applyCountries(&cfg); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, initPatience)
	defer cancel()
	made, err := server.Install(ctx, server.Installation{
		Folder: cmd.Folder, Database: cmd.Database, Password: cmd.DatabasePasswordFile, PublicURL: cmd.PublicURL,
		Simulators: cmd.Simulators.url(),
		Operator:   cmd.Operator, Client: cmd.Client, Live: cmd.Live, Countries: cfg.Countries, By: actor(), Log: c.log,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "configuration  %s\n", made.ConfigFile)
	if made.Password.IsZero() {
		fmt.Fprintf(c.out, "operator       %s (exists; tributary operator password %s sets a new password)\n", cmd.Operator,
			cmd.Operator)
	} else {
		fmt.Fprintf(c.out, "operator       %s, password %s (shown only once)\n", cmd.Operator, made.Password.RevealText())
	}
	if len(cfg.Countries) == 0 {
		fmt.Fprintf(c.out, "countries      none: tributary client configure %s --country CC=BOTH --config %s\n", cmd.Client,
			made.ConfigFile)
	}
	fmt.Fprintf(c.out, "client         %s, API key in %s\n\nCheck it, then start it:\n\n  tributary doctor --config %s\n  tributary serve --config %s\n",
		cmd.Client, made.KeyFile, made.ConfigFile, made.ConfigFile)
	return nil
}

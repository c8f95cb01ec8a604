package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"tributary/internal/doctor"
)

// doctorCommand takes the flags of serve, so that it sees what serve would.
type doctorCommand struct {
	serveCommand
	JSON    bool          `help:"Print one JSON object." name:"json"`
	Timeout time.Duration `help:"Timeout of one check." default:"10s"`
}

// Run examines and prints. Exit code 0: nothing is broken; 1: something is; 2:
// the configuration is not valid.
func (cmd *doctorCommand) Run(c *command) error {
	cfg, err := cmd.config(c)
	if err != nil {
		return err
	}
	cfg.API, cfg.Worker, cfg.SimulatorsURL = true, true, cmd.Simulators.url()
	if cfg.Authorities, err = authorities(cmd.Authority); err != nil {
		return err
	}
	findings, err := doctor.Examine(c.ctx,
		doctor.Options{Config: cfg, Timeout: cmd.Timeout, Arguments: c.args, Files: cmd.secretFiles()})
	if err != nil {
		return err
	}
	if err := cmd.print(c, findings); err != nil {
		return err
	}
	if n := doctor.Failed(findings); n > 0 {
		return fmt.Errorf("%d of %d checks failed", n, len(findings))
	}
	return nil
}

// secretFiles are the files with secrets that are named, by flag.
func (f *commonFlags) secretFiles() map[string]string {
	files := map[string]string{"--admin-token-file": f.AdminTokenFile,
		"--oidc-client-secret-file": f.OIDCClientSecretFile, "--database-password-file": f.DatabasePasswordFile}
	maps.DeleteFunc(files, func(_, path string) bool { return path == "" })
	return files
}

func (cmd *doctorCommand) print(c *command, findings []doctor.Finding) error {
	if !cmd.JSON {
		return doctor.Print(c.out, findings)
	}
	out := json.NewEncoder(c.out)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		Version  string           `json:"version"`
		Findings []doctor.Finding `json:"findings"`
	}{versionText(), findings})
}

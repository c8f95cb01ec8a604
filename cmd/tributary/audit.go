package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
	"tributary/internal/server"
)

type auditCommand struct {
	Verify auditVerify `cmd:"" help:"Verify all audit logs against their key and exported heads."`
}

type auditVerify struct {
	accountFlags
	AuditHeads string   `help:"Where to export the signed heads of the audit logs daily: file:///FOLDER, s3://BUCKET or https://LISTENER; a place that writers of the database cannot change." placeholder:"URL" name:"audit-heads"`
	Heads      []string `arg:"" optional:"" name:"heads" help:"Files with exported heads." type:"path"`
}

// verified is what a script reads after a verification.
type verified struct {
	Entries int64    `json:"entries"`
	Heads   int      `json:"heads"` // kept outside, held against the logs
	Wrong   []string `json:"wrong"`
}

// Run verifies the logs. What does not hold ends it with 1.
func (cmd *auditVerify) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		kept, err := cmd.kept(ctx)
		if err != nil {
			return err
		}
		master, err := secret.OpenMaster(masterOf(&cmd.accountFlags))
		if err != nil {
			return fmt.Errorf("--master-key: %w", err)
		}
		key := account.ServiceKeys{DB: d, Master: master}.AuditKey()
		logs := server.Logs{DB: d, Accounts: a, Operators: operator.New(operator.Config{DB: d, Audit: key, Log: c.log}), Key: key}
		entries, wrong, err := logs.VerifyLogs(ctx, kept...)
		if err != nil {
			return err
		}
		err = cmd.show(c, verified{entries, len(kept), append([]string{}, wrong...)}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "entries\t%d\nexported heads\t%d\n", entries, len(kept))
			for _, one := range wrong {
				fmt.Fprintf(w, "broken\t%s\n", one)
			}
		})
		if err == nil && len(wrong) > 0 {
			err = fmt.Errorf("the audit logs are broken: %s", strings.Join(wrong, "; "))
		}
		return err
	})
}

// kept reads the heads that are named.
func (cmd *auditVerify) kept(ctx context.Context) (all [][]byte, err error) {
	for _, path := range cmd.Heads {
		text, err := readHeadsFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	if cmd.AuditHeads == "" {
		return all, nil
	}
	last, err := server.ReadLastHeads(ctx, cmd.AuditHeads)
	if err == nil && last == nil {
		err = fault.New(fault.Invalid, "--audit-heads: no heads found")
	}
	return append(all, last), err
}

func readHeadsFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, audit.HeadsBytesMax))
}

package main

import (
	"cmp"
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
	Accept auditAccept `cmd:"" help:"Accept logs that differ from exported heads because a backup was restored; new heads are signed with the reason."`
	Renew  auditRenew  `cmd:"" help:"Replace the key that proves entries and signs heads; new heads are signed with the new one and the reason."`
}

// headsFlags name logs and the heads that were exported of them.
type headsFlags struct {
	accountFlags
	AuditHeads string   `help:"Where to export the signed heads of the audit logs daily: file:///FOLDER, file:///NAME.jsonl (one file), s3://BUCKET, https://LISTENER or none; a place that writers of the database cannot change. Default: audit-heads.jsonl beside the file of the master key." placeholder:"URL" name:"audit-heads"`
	Heads      []string `arg:"" optional:"" name:"heads" help:"Files with exported heads." type:"path"`
}

type auditVerify struct{ headsFlags }

// verified is what a script reads after a verification.
type verified struct {
	Entries  int64    `json:"entries"`
	Heads    int      `json:"heads"` // kept outside, held against the logs
	Wrong    []string `json:"wrong"`
	Unproven []string `json:"unproven"` // entries for which nobody can vouch
}

// Run verifies the logs. What does not hold ends it with 1.
func (cmd *auditVerify) Run(c *command) error {
	return cmd.withLogs(c, func(ctx context.Context, logs server.Logs, kept [][]byte) error {
		found, err := logs.Examine(ctx, kept...)
		if err != nil {
			return err
		}
		said := verified{Entries: found.Entries, Heads: len(kept), Wrong: append([]string{}, found.Wrong...),
			Unproven: append([]string{}, found.Unproven...)}
		err = cmd.show(c, said, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "entries\t%d\nexported heads\t%d\n", said.Entries, said.Heads)
			for _, one := range said.Wrong {
				fmt.Fprintf(w, "broken\t%s\n", one)
			}
			for _, one := range said.Unproven {
				fmt.Fprintf(w, "not proven\t%s\n", one)
			}
		})
		if err == nil && len(said.Wrong) > 0 {
			err = fmt.Errorf("the audit logs are broken: %s", strings.Join(said.Wrong, "; "))
		}
		return err
	})
}

type auditAccept struct {
	headsFlags
	Reason string `help:"Why the logs differ from the exported heads or their key is renewed, for example which backup was restored; signed with the new heads." placeholder:"TEXT"`
}

// Run accepts logs that a restored backup made shorter.
func (cmd *auditAccept) Run(c *command) error {
	return cmd.withLogs(c, func(ctx context.Context, logs server.Logs, kept [][]byte) error {
		broken, err := logs.Accept(ctx, cmp.Or(cmd.AuditHeads, cmd.usual()), kept, actor(), cmd.Reason)
		if err != nil {
			return err
		}
		return cmd.show(c, map[string][]string{"accepted": broken}, func(w *tabwriter.Writer) {
			for _, one := range broken {
				fmt.Fprintf(w, "accepted\t%s\n", one)
			}
		})
	})
}

type auditRenew struct {
	headsFlags
	Reason string `help:"Why the logs differ from the exported heads or their key is renewed, for example which backup was restored; signed with the new heads." placeholder:"TEXT"`
}

// Run renews the audit key.
func (cmd *auditRenew) Run(c *command) error {
	return cmd.withLogs(c, func(ctx context.Context, logs server.Logs, kept [][]byte) error {
		renewed, err := logs.Renew(ctx, cmp.Or(cmd.AuditHeads, cmd.usual()), kept, actor(), cmd.Reason)
		if err != nil {
			return err
		}
		return cmd.show(c, map[string]string{"public_key": logs.Key.PublicKey(), "public_key_before": renewed.Before}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "public key\t%s\nbefore\t%s\n", logs.Key.PublicKey(), renewed.Before)
		})
	})
}

// withLogs opens the logs and the heads that are named.
func (cmd *headsFlags) withLogs(c *command, do func(ctx context.Context, logs server.Logs, kept [][]byte) error) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		kept, err := cmd.kept(ctx)
		if err != nil {
			return err
		}
		master, err := secret.OpenMaster(masterOf(&cmd.accountFlags))
		if err != nil {
			return fmt.Errorf("--master-key: %w", err)
		}
		keys := account.ServiceKeys{DB: d, Master: master}
		key := keys.AuditKey()
		return do(ctx, server.Logs{DB: d, Accounts: a,
			Operators: operator.New(operator.Config{DB: d, Audit: key, Log: c.log}), Key: key, Keys: keys}, kept)
	})
}

// kept reads the heads that are named. Those of a listener cannot be asked for.
func (cmd *headsFlags) kept(ctx context.Context) (all [][]byte, err error) {
	for _, path := range cmd.Heads {
		text, err := readHeadsFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	if strings.HasPrefix(cmd.AuditHeads, "http") && len(all) > 0 || cmd.AuditHeads == "" && cmd.usual() == "" {
		return all, nil
	}
	last, err := server.ReadLastHeads(ctx, cmp.Or(cmd.AuditHeads, cmd.usual()))
	switch {
	case err == nil && last == nil && cmd.AuditHeads == "":
		return all, nil
	case err == nil && last == nil:
		err = fault.New(fault.Invalid, "--audit-heads: no heads found")
	}
	return append(all, last), err
}

// usual is where the service keeps heads unless it is told otherwise.
func (cmd *headsFlags) usual() string { return server.DefaultHeads(masterOf(&cmd.accountFlags)) }

func readHeadsFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, audit.HeadsBytesMax))
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

type operatorCommand struct {
	Create   operatorCreate   `cmd:"" help:"Create an operator."`
	List     operatorList     `cmd:"" help:"List operators."`
	Disable  operatorDisable  `cmd:"" help:"Disable an operator and end their sessions."`
	Enable   operatorEnable   `cmd:"" help:"Enable a disabled operator."`
	Unbind   operatorUnbind   `cmd:"" help:"Unbind an operator's identity and end their sessions; the next identity with the same e-mail address is bound."`
	ResetMFA operatorResetMFA `cmd:"" name:"reset-mfa" help:"Remove all second factors of an operator and end their sessions."`
	Role     operatorRole     `cmd:"" help:"Change an operator's role."`
	Password operatorPassword `cmd:"" help:"Set a new password for an operator and end their sessions."`
	Audit    operatorAudit    `cmd:"" help:"Verify and print the operators' audit log."`
}

// operatorFlags say which database a command works on.
type operatorFlags struct {
	accountFlags
}

// with opens the operators for a command that changes something: what it does is
// authenticated in the log, so it needs the master key.
func (f *operatorFlags) with(c *command, do func(ctx context.Context, d *db.DB, o *operator.Operators) error) error {
	return f.withDatabase(c, func(ctx context.Context, d *db.DB) error {
		master, err := secret.OpenMaster(masterOf(&f.accountFlags))
		if err != nil {
			return fmt.Errorf("--master-key: the audit log is written with it: %w", err)
		}
		return f.do(ctx, c, d, master, do)
	})
}

// reading opens them for a command that changes nothing. Without the master key
// the log can be read, and not proven.
func (f *operatorFlags) reading(c *command, do func(ctx context.Context, d *db.DB, o *operator.Operators) error) error {
	return f.withDatabase(c, func(ctx context.Context, d *db.DB) error {
		master, err := secret.OpenMaster(masterOf(&f.accountFlags))
		if err != nil && f.MasterKey != "" {
			return fmt.Errorf("--master-key: %w", err)
		}
		if err != nil {
			master = nil
		}
		return f.do(ctx, c, d, master, do)
	})
}

func (f *operatorFlags) do(ctx context.Context, c *command, d *db.DB, master *secret.Master,
	do func(ctx context.Context, d *db.DB, o *operator.Operators) error) error {
	var key *audit.Key
	if master != nil {
		key = account.ServiceKeys{DB: d, Master: master}.AuditKey()
		if err := key.Load(ctx); err != nil {
			return err
		}
	}
	return do(ctx, d, operator.New(operator.Config{DB: d, Audit: key, Log: c.log}))
}

// passwordFlag says where a password comes from. It is never an argument:
// those are in the shell's history and in the list of processes.
type passwordFlag struct {
	PasswordStdin bool `help:"Read the password from the first line of standard input; default: generate one." name:"password-stdin"`
}

func (f *passwordFlag) read(c *command) (secret.Secret, error) {
	if !f.PasswordStdin {
		return secret.Secret{}, nil
	}
	line, err := bufio.NewReader(io.LimitReader(c.in, 4096)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return secret.Secret{}, fmt.Errorf("read the password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return secret.Secret{}, fault.New(fault.Invalid, "--password-stdin: the first line of standard input is empty")
	}
	return secret.FromText(line), nil
}

// createdOperator is what a script reads after making a password.
type createdOperator struct {
	operator.Operator
	Secret string `json:"new_password,omitempty"` // shown once
}

func (f *operatorFlags) showPassword(c *command, one operator.Operator, password secret.Secret, given bool) error {
	if given {
		password = secret.Secret{} // whoever gave it knows it
	}
	return f.show(c, createdOperator{one, password.RevealText()}, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "operator\t%s\nrole\t%s\n", one.Name, one.Role)
		if !password.IsZero() {
			fmt.Fprintf(w, "password\t%s\n\nThe password is shown only once.\n", password.RevealText())
		}
	})
}

type operatorCreate struct {
	operatorFlags
	passwordFlag
	Name string `arg:"" help:"Sign-in name; the e-mail address with an identity provider."`
	Role string `help:"Role: viewer reads, operator acts, admin manages clients, keys and operators." enum:"viewer,operator,admin" default:"viewer" setting:"operator-role"`
	OIDC bool   `help:"No password: sign in through the identity provider." name:"oidc"`
}

// Run creates the operator and shows its password, once.
func (cmd *operatorCreate) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		password, err := cmd.read(c)
		if err != nil {
			return err
		}
		made, shown, err := o.Create(ctx, actor(),
			operator.NewOperator{Name: cmd.Name, Role: operator.Role(cmd.Role), Password: password, WithoutPassword: cmd.OIDC})
		if err != nil {
			return err
		}
		return cmd.showPassword(c, made, shown, cmd.PasswordStdin)
	})
}

type operatorList struct{ operatorFlags }

// Run lists operators.
func (cmd *operatorList) Run(c *command) error {
	return cmd.reading(c, func(ctx context.Context, d *db.DB, o *operator.Operators) error {
		var list []operator.Operator
		if err := d.Read(ctx, func(r db.Reader) (err error) { list, err = o.List(r); return err }); err != nil {
			return err
		}
		return cmd.show(c, append([]operator.Operator{}, list...), func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "NAME\tROLE\tSIGNS IN WITH\tLAST SIGN-IN\tSTATE")
			for _, p := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Role, signsInWith(p), orDash(p.SignedInAt), stateOf(p))
			}
		})
	})
}

func signsInWith(p operator.Operator) string {
	first := firstFactor(p)
	if p.App {
		first += ", app"
	}
	if p.Passkeys > 0 {
		first += ", " + fault.Count(p.Passkeys, "passkey")
	}
	return first
}

func firstFactor(p operator.Operator) string {
	switch {
	case p.Password && p.Issuer != "":
		return "password, " + p.Issuer
	case p.Password:
		return "password"
	case p.Issuer != "":
		return p.Issuer
	}
	return "identity provider"
}

func orDash(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func stateOf(p operator.Operator) string {
	if p.DisabledAt.IsZero() {
		return "enabled"
	}
	return "disabled " + p.DisabledAt.Format(time.RFC3339)
}

type operatorDisable struct {
	operatorFlags
	Name string `arg:"" help:"Operator name."`
}

// Run disables an operator.
func (cmd *operatorDisable) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		one, err := o.Disable(ctx, actor(), cmd.Name)
		return cmd.showState(c, one, err)
	})
}

type operatorEnable struct {
	operatorFlags
	Name string `arg:"" help:"Operator name."`
}

// Run enables an operator.
func (cmd *operatorEnable) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		one, err := o.Enable(ctx, actor(), cmd.Name)
		return cmd.showState(c, one, err)
	})
}

type operatorUnbind struct {
	operatorFlags
	Name string `arg:"" help:"Operator name."`
}

// Run unbinds an operator from its identity at the provider.
func (cmd *operatorUnbind) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		one, err := o.Unbind(ctx, actor(), cmd.Name)
		return cmd.showState(c, one, err)
	})
}

type operatorResetMFA struct {
	operatorFlags
	Name string `arg:"" help:"Operator name."`
}

// Run takes an operator's second factors.
func (cmd *operatorResetMFA) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		one, err := o.Reset(ctx, actor(), cmd.Name)
		return cmd.showState(c, one, err)
	})
}

type operatorRole struct {
	operatorFlags
	Name string `arg:"" help:"Operator name."`
	Role string `arg:"" help:"Role: viewer, operator or admin." enum:"viewer,operator,admin"`
}

// Run changes a role.
func (cmd *operatorRole) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, o *operator.Operators) error {
		one, err := o.SetRole(ctx, actor(), cmd.Name, operator.Role(cmd.Role))
		return cmd.showState(c, one, err)
	})
}

func (f *operatorFlags) showState(c *command, one operator.Operator, err error) error {
	if err != nil {
		return err
	}
	return f.show(c, one, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "operator\t%s\nrole\t%s\nstate\t%s\n", one.Name, one.Role, stateOf(one))
	})
}

type operatorPassword struct {
	operatorFlags
	passwordFlag
	Name string `arg:"" help:"Operator name."`
}

// Run sets a password and shows it, once, where it was made here.
func (cmd *operatorPassword) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, o *operator.Operators) error {
		password, err := cmd.read(c)
		if err != nil {
			return err
		}
		shown, err := o.SetPassword(ctx, actor(), cmd.Name, password)
		if err != nil {
			return err
		}
		var one operator.Operator
		if err := d.Read(ctx, func(r db.Reader) (err error) { one, err = o.Operator(r, cmd.Name); return err }); err != nil {
			return err
		}
		return cmd.showPassword(c, one, shown, cmd.PasswordStdin)
	})
}

type operatorAudit struct {
	operatorFlags
	Limit int `help:"Number of entries, newest first." default:"100"`
}

// Run verifies the log and prints its newest entries.
func (cmd *operatorAudit) Run(c *command) error {
	return cmd.reading(c, func(ctx context.Context, d *db.DB, o *operator.Operators) error {
		var list []operator.Entry
		var verdict audit.Verdict
		err := d.Read(ctx, func(r db.Reader) (err error) {
			if verdict, err = o.VerifyAudit(r); err != nil {
				return err
			}
			list, _, err = o.Audit(r, operator.AuditFilter{Limit: cmd.Limit})
			return err
		})
		if err != nil {
			return err
		}
		if verdict.Broken != nil {
			return fmt.Errorf("the operators' audit log is broken: %+v", *verdict.Broken)
		}
		return cmd.show(c, append([]operator.Entry{}, list...), func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "SEQ\tAT\tWHO\tFROM\tACTION\tSUBJECT\tOUTCOME")
			for _, e := range list {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Seq, e.At.Format(time.RFC3339), e.Actor.Name, e.Actor.IP,
					e.Action, e.Subject, e.Outcome)
			}
			fmt.Fprintf(w, "the log is intact; entries: %d\n", verdict.Entries)
		})
	})
}

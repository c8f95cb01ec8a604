// Command tributary is the whole service in one binary: API, workers,
// webhooks, console, simulated authorities and the client's tools.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the binary is static: it brings the time zones along

	"github.com/alecthomas/kong"

	"tributary/internal/fault"
)

// versionOfTree is what a plain build says; CHANGELOG.md begins with it.
const versionOfTree = "v0.9.0"

// version and releaseKey, the public key that verifies the release, are set by
// the release build.
var version, releaseKey = "", ""

// program is the command line. Every flag but --version is also an environment
// variable (--listen is TRIBUTARY_LISTEN) and a key of the configuration file.
type program struct {
	Config  string           `help:"Read flags from a JSON file." placeholder:"FILE"`
	Log     string           `help:"Log format." enum:"text,json" default:"text" name:"log-format"`
	Level   string           `help:"Log level." enum:"debug,info,warn,error" default:"info" name:"log-level"`
	Version kong.VersionFlag `help:"Print the version." setting:"-"`

	Demo          demoCommand          `cmd:"" help:"Run everything locally, without configuration."`
	Init          initCommand          `cmd:"" help:"Create a production installation: folder, master key, database, operator, client, configuration."`
	Serve         serveCommand         `cmd:"" help:"Run the service in production."`
	Migrate       migrateCommand       `cmd:"" help:"Migrate the database schema."`
	Client        clientCommand        `cmd:"" help:"Manage clients and their configuration."`
	Preview       previewCommand       `cmd:"" help:"Render a sample document with a client's appearance."`
	Company       companyCommand       `cmd:"" help:"Manage legal holds of companies."`
	Key           keyCommand           `cmd:"" help:"Manage API keys of a client."`
	WebhookSecret webhookSecretCommand `cmd:"" name:"webhook-secret" help:"Manage a client's Standard Webhooks secrets."`
	Authority     authorityCommand     `cmd:"" help:"Manage authorities: addresses and our credentials there."`
	Audit         auditCommand         `cmd:"" help:"Verify the audit logs of clients and operators."`
	Operator      operatorCommand      `cmd:"" help:"Manage console operators."`
	MasterKey     masterKeyCommand     `cmd:"" name:"master-key" help:"Manage the master key, which encrypts all other secrets."`
	Simulate      simulateCommand      `cmd:"" help:"Run only the simulated authorities."`
	Submit        submitCommand        `cmd:"" help:"Submit files or folders and collect the results."`
	Get           getCommand           `cmd:"" help:"Show the state of a transaction and the reason for it."`
	List          listCommand          `cmd:"" help:"List transactions, newest first."`
	Companies     companiesCommand     `cmd:"" help:"List onboarded companies."`
	Events        eventsCommand        `cmd:"" help:"List webhook events, newest first."`
	Trigger       triggerCommand       `cmd:"" help:"Submit a real test transaction with a chosen outcome."`
	Series        seriesCommand        `cmd:"" help:"Manage number series of a client."`
	Verify        verifyCommand        `cmd:"" help:"Verify the signature of a webhook."`
	Listen        listenCommand        `cmd:"" help:"Receive, verify, print and forward webhooks."`
	Doctor        doctorCommand        `cmd:"" help:"Check a deployment and report what to fix. Takes the flags of serve."`
	Annul         annulCommand         `cmd:"" help:"Request technical annulment of a report (Hungary)."`
	Reconcile     reconcileCommand     `cmd:"" help:"Compare our records with the authority's, per supplier and day."`
	Periods       periodsCommand       `cmd:"" help:"List periods of summary documents: their sales and due dates."`
	Backup        backupCommand        `cmd:"" help:"Back up a SQLite database while the service runs."`
	Recovery      recoveryCommand      `cmd:"" aliases:"restored" help:"Manage suppliers held after a restore."`
	Docs          docsCommand          `cmd:"" help:"Write the documentation as HTML pages."`
	Bench         benchCommand         `cmd:"" help:"Run benchmarks on this machine."`
	Completion    completionCommand    `cmd:"" help:"Print a shell completion script."`
	Man           manCommand           `cmd:"" help:"Print the manual page."`
	Explain       helpCommand          `cmd:"" name:"help" help:"Show help for a command."`
	ShowVersion   versionCommand       `cmd:"" name:"version" help:"Print the version, or verify this program."`
}

// BeforeResolve reads the configuration file, once it is known which.
func (p *program) BeforeResolve(c *kong.Context, from *settings) error {
	for _, flag := range c.Model.Flags {
		if flag.Name == "config" {
			path, _ := c.FlagValue(flag).(string)
			return from.load(c.Model, path)
		}
	}
	return nil
}

// streams are where a command reads and writes.
type streams struct {
	out, err io.Writer
	in       io.Reader
}

// Exit codes: 1 something went wrong while running, 2 the call or the configuration is not valid.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr, os.Stdin}))
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args []string, io streams) int {
	cli := &program{}
	parser, err := newParser(cli, kong.Writers(io.out, io.err), kong.UsageOnError(), kong.Exit(func(code int) {
		panic(exited(code))
	}))
	if err != nil {
		fmt.Fprintln(io.err, "tributary:", err)
		return exitFailed
	}
	code := 0
	func() {
		defer func() {
			if p := recover(); p != nil {
				e, ok := p.(exited)
				if !ok {
					panic(p)
				}
				code = int(e)
				err = nil
				parser = nil
			}
		}()
		var parsed *kong.Context
		if parsed, err = parser.Parse(args); err != nil {
			code = exitUsage
			return
		}
		err = parsed.Run(&command{ctx: ctx, streams: io, log: cli.logger(io.err), args: args})
	}()
	if err == nil {
		return code
	}
	explain(io.err, err)
	if code == exitUsage || fault.KindOf(err) == fault.Invalid {
		return exitUsage
	}
	return exitFailed
}

// newParser reads the grammar of the command line.
func newParser(cli *program, more ...kong.Option) (*kong.Kong, error) {
	from := &settings{}
	return kong.New(cli, append([]kong.Option{
		kong.Name("tributary"), kong.Description("Transaction reporting and e-invoicing, self-hosted."),
		kong.Vars{"version": versionText()},
		kong.Resolvers(from), kong.Bind(from), kong.ValueFormatter(settingHelp),
	}, more...)...)
}

// exited carries kong's wish to exit (help, version) out of Parse.
type exited int

// command is what every subcommand gets.
type command struct {
	ctx context.Context
	streams
	log  *slog.Logger
	args []string // as they were given
}

// explain prints an error for a person: every fault on its own line, then what to
// do about each kind of them; of a wrong command line, where its help is.
func explain(w io.Writer, err error) {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		name := "tributary"
		if at := wrong.Context.Selected(); at != nil {
			name = at.FullPath()
		}
		fmt.Fprintf(w, "tributary: %v\n  See %s --help.\n", err, name)
		return
	}
	var e *fault.Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		fmt.Fprintln(w, "tributary:", err)
		return
	}
	fmt.Fprintln(w, "tributary:", e.Message)
	for _, f := range e.Faults {
		fmt.Fprintln(w, "  "+f.Message)
	}
	for _, m := range fault.Advice(e.Faults) {
		fmt.Fprintf(w, "%s: %s\n", m.Code, m.Action)
	}
}

func (p *program) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(p.Level)) // the flag's enum allows only levels
	options := &slog.HandlerOptions{Level: level}
	if p.Log == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func versionText() string { return cmp.Or(version, versionOfTree) }

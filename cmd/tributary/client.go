package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// accountFlags say which database a command works on. It may be in use by a
// running server at the same time; the server notices changes within a second.
type accountFlags struct {
	databaseFlags
	dataFlags
	JSON bool `help:"Print JSON." name:"json"`
	Demo bool `help:"Allow webhook URLs as the demo does: loopback and plain http."`
}

// withDatabase opens the database for one command.
func (f *accountFlags) withDatabase(c *command, do func(ctx context.Context, d *db.DB) error) (err error) {
	if f.Database == "" && f.Data == "" {
		return fault.New(fault.Invalid, "--database is required: --database URL, or --data DIR of a SQLite installation")
	}
	if f.Database == "" {
		f.Database = "sqlite:" + filepath.Join(f.Data, "tributary.db")
	}
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	password, err := f.password()
	if err != nil {
		return err
	}
	d, err := db.Open(ctx, db.Config{URL: f.Database, Password: password, Log: c.log, NoWorkers: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := schema.Check(ctx, d); err != nil {
		return err
	}
	return do(ctx, d)
}

// with opens the accounts for one command.
func (f *accountFlags) with(c *command, do func(ctx context.Context, d *db.DB, a *account.Accounts) error) error {
	return f.withDatabase(c, func(ctx context.Context, d *db.DB) error {
		master := f.MasterKey
		if master == "" {
			dir := f.Data
			if dir == "" {
				dir = filepath.Dir(strings.TrimPrefix(f.Database, "sqlite:"))
			}
			master = "file:" + filepath.Join(dir, "master.key")
		}
		key, err := secret.OpenMaster(master)
		if err != nil {
			return fmt.Errorf("--master-key: %w", err)
		}
		a, err := server.OpenAccounts(ctx, server.Config{Demo: f.Demo, Log: c.log}, d, key)
		if err != nil {
			return err
		}
		return do(ctx, d, a)
	})
}

// actor is who the audit log names for changes from the command line.
func actor() audit.Actor {
	name := os.Getenv("USER")
	if name == "" {
		name = "unknown"
	}
	return audit.Actor{Name: "command line (" + name + ")"}
}

// show prints a value as JSON, or what plain prints.
func (f *accountFlags) show(c *command, v any, plain func(w *tabwriter.Writer)) error {
	if f.JSON {
		return printJSON(c.out, v)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	plain(w)
	return w.Flush()
}

type clientCommand struct {
	Create    clientCreate    `cmd:"" help:"Create a client and its first key."`
	List      clientList      `cmd:"" help:"List clients."`
	Show      clientShow      `cmd:"" help:"Show one client."`
	Configure clientConfigure `cmd:"" help:"Change a client's configuration."`
	Audit     clientAudit     `cmd:"" help:"Verify and print a client's audit log."`
}

// clientConfigFlags are the parts of the configuration that have a flag of their own.
type clientConfigFlags struct {
	receiverFlags
	Name          string            `help:"Display name." placeholder:"NAME"`
	Country       map[string]string `help:"Enable countries with a use case each: ES=BOTH;MX=REPORTING; * for all." placeholder:"CC=USECASE"`
	WebhookURL    string            `help:"URL for all events; 'none' removes it." placeholder:"URL" name:"webhook-url" setting:"client-webhook-url"`
	Webhook       map[string]string `help:"URL for one event type; 'all': the URL for all events, 'none': off." placeholder:"EVENT=URL"`
	Logo          string            `help:"Logo on documents, PNG or JPEG; 'none' removes it." placeholder:"FILE"`
	LogoPlacement string            `help:"Logo position: left, center or right." placeholder:"PLACE"`
	Accent        string            `help:"Accent colour, #RRGGBB." placeholder:"COLOUR"`
	Ink           string            `help:"Colour of the text, #RRGGBB." placeholder:"COLOUR"`
	Font          string            `help:"Font: sans or serif." placeholder:"FONT"`
	Template      map[string]string `help:"Document template: all=classic, modern or receipt (80 mm roll, for simplified documents); ES=modern for one country, ES=none resets it." placeholder:"CC=TEMPLATE"`
	Footer        string            `help:"Footer text of documents, up to three lines; 'none' removes it." placeholder:"TEXT"`
	Rate          int               `help:"Requests per second; 0: unchanged, -1: no limit." placeholder:"N"`
	Burst         int               `help:"Burst limit." placeholder:"N"`
	Totals        string            `help:"Mismatched totals: refuse or warn." placeholder:"WORD"`
	Years         int               `help:"Retention in years, beyond the legal minimum; 0: unchanged, -1: the legal minimum." placeholder:"N" name:"retention-years"`
	Days          int               `help:"Days to keep call and delivery logs, at most 90; 0: unchanged, -1: 90." placeholder:"N" name:"diagnostic-days"`
	LegalHold     string            `help:"Legal hold: while on, retention deletes nothing." placeholder:"WORD"`
	File          string            `help:"Full configuration as JSON; flags override it." placeholder:"FILE"`
}

// apply edits a configuration by the flags that were given.
func (l *clientConfigFlags) apply(c *account.Config) error {
	if l.File != "" {
		text, err := os.ReadFile(l.File)
		if err != nil {
			return fault.New(fault.Invalid, "--file: %v", err)
		}
		logo := c.Logo
		if *c, err = account.DecodeConfig(text); err != nil {
			return err
		}
		c.Logo = logo
	}
	if l.Name != "" {
		c.DisplayName = l.Name
	}
	if err := l.applyCountries(c); err != nil {
		return err
	}
	l.applyWebhooks(&c.Webhooks)
	set := func(flag string, to *string) {
		if flag != "" {
			*to = flag
		}
	}
	set(l.LogoPlacement, (*string)(&c.LogoPlacement))
	set(l.Accent, &c.Colours.Accent)
	set(l.Ink, &c.Colours.Ink)
	set(l.Font, (*string)(&c.Font))
	set(l.Totals, (*string)(&c.Totals))
	set(l.Footer, &c.Footer)
	if strings.EqualFold(l.Footer, "none") {
		c.Footer = ""
	}
	l.applyTemplates(c)
	switch {
	case l.Rate < 0:
		c.Rate = account.Rate{}
	case l.Rate > 0:
		c.Rate.PerSecond = l.Rate
	}
	if l.Burst > 0 {
		c.Rate.Burst = l.Burst
	}
	if err := l.applyRetention(c); err != nil {
		return err
	}
	return l.receiverFlags.apply(c)
}

func (l *clientConfigFlags) applyRetention(c *account.Config) error {
	for _, set := range []struct {
		flag int
		to   *int
	}{{l.Years, &c.Retention.Years}, {l.Days, &c.Retention.DiagnosticDays}} {
		switch {
		case set.flag < 0:
			*set.to = 0
		case set.flag > 0:
			*set.to = set.flag
		}
	}
	switch l.LegalHold {
	case "":
	case "on", "off":
		c.LegalHold = l.LegalHold == "on"
	default:
		return fault.New(fault.Invalid, "--legal-hold: %q is not on or off", l.LegalHold)
	}
	return nil
}

func (l *clientConfigFlags) applyCountries(c *account.Config) error {
	said := map[string]bool{}
	for _, given := range slices.Sorted(maps.Keys(l.Country)) {
		code, use := strings.ToUpper(given), l.Country[given]
		if said[code] {
			return fault.New(fault.Invalid, "--country: %s is given twice, once as %q", code, given)
		}
		said[code] = true
		if c.Countries == nil {
			c.Countries = map[string]country.UseCase{}
		}
		if use == "" || strings.EqualFold(use, "none") {
			delete(c.Countries, code)
			continue
		}
		c.Countries[code] = country.UseCase(strings.ToUpper(use))
	}
	return nil
}

// applyTemplates sets the client's template, and those of single countries.
func (l *clientConfigFlags) applyTemplates(c *account.Config) {
	for given, name := range l.Template {
		template := account.Template(strings.ToLower(name))
		if template == "none" {
			template = ""
		}
		if strings.EqualFold(given, "all") {
			c.Template = template
			continue
		}
		if c.Looks == nil {
			c.Looks = map[string]account.CountryAppearance{}
		}
		look := c.Looks[strings.ToUpper(given)]
		look.Template = template
		c.Looks[strings.ToUpper(given)] = look
	}
}

// applyWebhooks changes what is said and keeps the rest: a receiver for all
// events and receivers of single ones stand side by side.
func (l *clientConfigFlags) applyWebhooks(w *account.Webhooks) {
	switch {
	case strings.EqualFold(l.WebhookURL, account.WebhookNone):
		w.All = ""
	case l.WebhookURL != "":
		w.All = l.WebhookURL
	}
	for event, address := range l.Webhook {
		if w.ByEvent == nil {
			w.ByEvent = map[string]string{}
		}
		w.ByEvent[event] = address
	}
}

func (l *clientConfigFlags) logo() ([]byte, error) {
	if l.Logo == "" || l.Logo == "none" {
		return nil, nil
	}
	raw, err := os.ReadFile(l.Logo)
	if err != nil {
		return nil, fault.New(fault.Invalid, "--logo: %v", err)
	}
	return raw, nil
}

type clientCreate struct {
	accountFlags
	clientConfigFlags
	ID      string `arg:"" optional:"" help:"Client id; default random."`
	Live    bool   `help:"File with real authorities; keys are trb_live_…"`
	Key     string `help:"Use this key; prefer a file." placeholder:"KEY"`
	KeyFile string `help:"File with the key." placeholder:"FILE"`
}

// createdClient is what a script reads after creating a client.
type createdClient struct {
	account.Client
	Key string `json:"api_key"` // shown once
}

// Run creates the client and shows its key, once.
func (cmd *clientCreate) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		cfg := account.Config{Rate: account.Rate{PerSecond: account.RatePerSecondDefault, Burst: account.RateBurstDefault}}
		if err := cmd.apply(&cfg); err != nil {
			return err
		}
		logo, err := cmd.logo()
		if err != nil {
			return err
		}
		fixed, err := secretFrom("key", cmd.Key, cmd.KeyFile)
		if err != nil {
			return err
		}
		made, key, err := a.CreateClient(ctx, actor(),
			account.NewClient{ID: cmd.ID, Live: cmd.Live, Config: cfg, Logo: logo, Key: fixed})
		if err != nil {
			return err
		}
		return cmd.show(c, createdClient{made, key.RevealText()}, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "client\t%s\nAPI key\t%s\n\nThe key is shown only once. It is also the secret that signs webhooks.\n", made.ID, key.RevealText())
		})
	})
}

type clientList struct{ accountFlags }

// Run lists clients.
func (cmd *clientList) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		var list []account.Client
		if err := d.Read(ctx, func(r db.Reader) (err error) { list, err = a.List(r); return err }); err != nil {
			return err
		}
		return cmd.show(c, append([]account.Client{}, list...), func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "CLIENT\tENVIRONMENT\tNAME\tKEYS\tCREATED")
			for _, l := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", l.ID, l.Environment(), l.Config.DisplayName, len(l.Keys),
					l.CreatedAt.Format(time.RFC3339))
			}
		})
	})
}

type clientShow struct {
	accountFlags
	ID string `arg:"" help:"Client id."`
}

// Run shows a client.
func (cmd *clientShow) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		var one account.Client
		if err := d.Read(ctx, func(r db.Reader) (err error) { one, err = a.Client(r, cmd.ID); return err }); err != nil {
			return err
		}
		return cmd.print(c, one)
	})
}

func (f *accountFlags) print(c *command, one account.Client) error {
	return f.show(c, one, func(w *tabwriter.Writer) {
		text, _ := json.MarshalIndent(one.Config, "", "  ") // plain data always encodes
		fmt.Fprintf(w, "client\t%s (%s)\nconfiguration\t%s\n\nKID\tSTATE\tCREATED\n", one.ID, one.Environment(), text)
		for _, k := range one.Keys {
			fmt.Fprintf(w, "%s\t%s\t%s\n", k.Kid, k.State, k.CreatedAt.Format(time.RFC3339))
		}
		for _, k := range one.LimitedKeys {
			state := "limited"
			if !k.RevokedAt.IsZero() {
				state = "revoked"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\n", k.Kid, state, k.CreatedAt.Format(time.RFC3339), k.Name, k.Scopes)
		}
		printWebhookSecrets(w, one.WebhookSecrets)
	})
}

type clientConfigure struct {
	accountFlags
	clientConfigFlags
	ID string `arg:"" help:"Client id."`
}

// Run changes a configuration.
func (cmd *clientConfigure) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, _ *db.DB, a *account.Accounts) error {
		one, err := a.Configure(ctx, actor(), cmd.ID, cmd.apply)
		if err != nil {
			return err
		}
		if cmd.Logo != "" {
			raw, err := cmd.logo()
			if err != nil {
				return err
			}
			if one, err = a.SetLogo(ctx, actor(), cmd.ID, raw); err != nil {
				return err
			}
		}
		return cmd.print(c, one)
	})
}

type clientAudit struct {
	accountFlags
	ID string `arg:"" help:"Client id."`
}

const auditPage = 1000

// Run verifies the chain and prints the entries.
func (cmd *clientAudit) Run(c *command) error {
	return cmd.with(c, func(ctx context.Context, d *db.DB, a *account.Accounts) error {
		var entries []account.Entry
		var verdict audit.Verdict
		err := d.Read(ctx, func(r db.Reader) (err error) {
			if verdict, err = a.VerifyAudit(r, cmd.ID); err != nil {
				return err
			}
			entries, err = a.Audit(r, cmd.ID, 0, auditPage)
			return err
		})
		if err != nil {
			return err
		}
		if verdict.Broken != nil {
			return fmt.Errorf("the audit log of %s is broken: %+v", cmd.ID, *verdict.Broken)
		}
		return cmd.show(c, entries, func(w *tabwriter.Writer) {
			for _, e := range entries {
				text, _ := json.Marshal(e) // plain data always encodes
				fmt.Fprintf(w, "%s\n", text)
			}
			fmt.Fprintln(w, "the log is intact")
		})
	})
}

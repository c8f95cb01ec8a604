package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/recovery"
	"tributary/internal/schema"
	"tributary/internal/secret"
	"tributary/internal/server"
)

// databaseFlags say which database.
type databaseFlags struct {
	Database             string `help:"sqlite:PATH or postgres://USER@HOST/NAME." placeholder:"URL"`
	DatabasePasswordFile string `help:"File with the password of the database." placeholder:"FILE"`
}

func (f *databaseFlags) password() (secret.Secret, error) {
	return secretFrom("database-password", "", f.DatabasePasswordFile)
}

// dataFlags say where this machine keeps things.
type dataFlags struct {
	Data      string `help:"Folder of database, documents, keys and simulated authorities." placeholder:"DIR"`
	MasterKey string `help:"Key that seals all secrets: file:PATH, env:NAME or hcvault://HOST/MOUNT/keys/NAME." placeholder:"SOURCE"`
}

// commonFlags are known to demo and serve alike.
type commonFlags struct {
	databaseFlags
	dataFlags
	Listen               string        `help:"Address of the public API." default:"127.0.0.1:8080"`
	Admin                string        `help:"Address of console, metrics and pprof; loopback unless you mean it." default:"127.0.0.1:8081"`
	Documents            string        `help:"Store of documents: file:///DIR or s3://BUCKET." placeholder:"URL"`
	Fonts                []string      `help:"Folders with fonts for documents, before the system's." placeholder:"DIR"`
	PublicURL            string        `help:"Base of every address handed out; default http:// and the listen address." placeholder:"URL" name:"public-url"`
	WebhookRetryBase     time.Duration `help:"First retry of a webhook; then doubling." default:"5s"`
	WebhookCA            string        `help:"Trusted CA for receivers, PEM." placeholder:"FILE" name:"webhook-ca"`
	WebhookAllow         []string      `help:"Private networks that receivers may stand in, as CIDRs." placeholder:"CIDR" name:"webhook-allow"`
	WebhookProxy         string        `help:"HTTP proxy for webhooks; the environment is never asked." placeholder:"URL"`
	AuthorityRetryBase   time.Duration `help:"First retry to an authority; then doubling up to 5 minutes." default:"1s"`
	AuthoritySlots       int           `help:"Suppliers of one country and environment that are filed for at the same time; a country whose authority hangs takes no slots from others." default:"32"`
	Backlog              int           `help:"Transactions that could be worked and wait; past it submits are answered 503. What waits for an authority does not count." default:"2000000"`
	DocumentTTL          time.Duration `help:"How long a document's address works." default:"15m" name:"document-ttl"`
	TLSCert              string        `help:"Certificate of the public API, PEM." placeholder:"FILE" name:"tls-cert"`
	TLSKey               string        `help:"Its private key, PEM." placeholder:"FILE" name:"tls-key"`
	AdminToken           string        `help:"Bearer token for metrics and pprof, needed when the admin listener is not on loopback; better in a file." placeholder:"TOKEN"`
	AdminTokenFile       string        `help:"File with that token." placeholder:"FILE"`
	AdminURL             string        `help:"Where browsers reach the console: its one name besides loopback's, for OIDC and secure cookies." placeholder:"URL" name:"admin-url"`
	TrustProxy           bool          `help:"Take the caller's address from X-Forwarded-For."`
	OIDCIssuer           string        `help:"OpenID Connect provider that may sign operators in." placeholder:"URL" name:"oidc-issuer"`
	OIDCClientID         string        `help:"Our id at the provider." placeholder:"ID" name:"oidc-client-id"`
	OIDCClientSecret     string        `help:"Our secret at the provider; better in a file." placeholder:"SECRET" name:"oidc-client-secret"`
	OIDCClientSecretFile string        `help:"File with that secret." placeholder:"FILE" name:"oidc-client-secret-file"`
	OperatorMFA          string        `help:"Second factor of operators who sign in with a password: off asks those who have one, required lets nobody in without." enum:"off,required" default:"off" name:"operator-mfa"`
	AuditHeads           string        `help:"Where the signed heads of the audit logs are kept, once a day: file:///FOLDER, s3://BUCKET or https://LISTENER, out of reach of who writes the database." placeholder:"URL" name:"audit-heads"`
	CallbacksURL         string        `help:"Where authorities reach the listener of --callbacks, on this node or another; default: the name that authority set gave it." placeholder:"URL" name:"callbacks-url"`
	VIES                 string        `help:"Base address of the VAT register." placeholder:"URL" name:"vies"`
	Restored             bool          `help:"The database is a restored backup: accept transactions only after the authorities were asked what it does not know."`
	RestoredSince        string        `help:"First document date to ask the authorities for; default: decided by what the backup knows." placeholder:"YYYY-MM-DD"`
}

func (f *commonFlags) config(c *command) (server.Config, error) {
	cfg := server.Config{
		Listen: f.Listen, Admin: f.Admin, Data: f.Data, Database: f.Database, Documents: f.Documents, Fonts: f.Fonts, PublicURL: f.PublicURL, MasterKey: f.MasterKey,
		WebhookRetryBase: f.WebhookRetryBase, WebhookCA: f.WebhookCA, WebhookProxy: f.WebhookProxy, AuthorityRetryBase: f.AuthorityRetryBase, AuthoritySlots: f.AuthoritySlots, Backlog: f.Backlog,
		DocumentTTL: f.DocumentTTL, TLSCert: f.TLSCert, TLSKey: f.TLSKey, TrustProxy: f.TrustProxy, AdminURL: f.AdminURL,
		VIES: f.VIES, CallbacksURL: f.CallbacksURL, Log: c.log, Version: versionText(), Restored: f.Restored,
		OIDC: server.OIDC{Issuer: f.OIDCIssuer, ClientID: f.OIDCClientID}, MFA: f.OperatorMFA == "required", AuditHeads: f.AuditHeads,
	}
	var err error
	if cfg.AdminToken, err = secretFrom("admin-token", f.AdminToken, f.AdminTokenFile); err != nil {
		return cfg, err
	}
	if cfg.OIDC.ClientSecret, err = secretFrom("oidc-client-secret", f.OIDCClientSecret, f.OIDCClientSecretFile); err != nil {
		return cfg, err
	}
	if cfg.Password, err = f.password(); err != nil {
		return cfg, err
	}
	if f.RestoredSince != "" {
		if cfg.RestoredSince, err = recovery.Day(f.RestoredSince); err != nil {
			return cfg, fault.New(fault.Invalid, "--restored-since: %q is not a day of the form YYYY-MM-DD", f.RestoredSince)
		}
		if !f.Restored {
			return cfg, fault.New(fault.Invalid, "--restored-since belongs to --restored")
		}
	}
	for _, text := range f.WebhookAllow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return cfg, fault.New(fault.Invalid, "--webhook-allow: %q is not a network such as 10.1.0.0/16", text)
		}
		cfg.WebhookAllow = append(cfg.WebhookAllow, prefix)
	}
	return cfg, nil
}

type serveCommand struct {
	commonFlags
	Role       []string          `help:"What this node does: api, worker." default:"api,worker"`
	Callbacks  string            `help:"Address on which authorities call us; none unless given." placeholder:"ADDR"`
	Migrate    bool              `help:"Bring the schema up to date before serving."`
	Authority  map[string]string `help:"Addresses of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"Address of the simulated authorities: where test keys file, or where they listen." placeholder:"URL"`
}

// Run serves until a signal.
func (s *serveCommand) Run(c *command) error {
	cfg, err := s.config(c)
	if err != nil {
		return err
	}
	for _, role := range s.Role {
		switch role {
		case "api":
			cfg.API = true
		case "worker":
			cfg.Worker = true
		default:
			return fault.New(fault.Invalid, "--role: %q is not api or worker", role)
		}
	}
	cfg.Callbacks = s.Callbacks
	cfg.Migrate, cfg.SimulatorsURL = s.Migrate, s.Simulators.url()
	if cfg.Authorities, err = authorities(s.Authority); err != nil {
		return err
	}
	return serve(c, cfg, func(srv *server.Server) {
		fmt.Fprintln(c.out, "ready", srv.URL())
	})
}

// authorities reads the addresses by country and environment. Two spellings of
// one country are an error: which of them counted would be left to chance.
func authorities(flags map[string]string) (map[string]country.Addresses, error) {
	all := map[string]country.Addresses{}
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		given, environment, _ := strings.Cut(key, ".")
		code := strings.ToUpper(given)
		at := all[code]
		place := &at.Live
		switch environment {
		case "live":
		case "test":
			place = &at.Test
		default:
			return nil, fault.New(fault.Invalid, "--authority: %q is not of the form CC.live=URL or CC.test=URL", key)
		}
		if *place != "" {
			return nil, fault.New(fault.Invalid, "--authority: %s.%s is given twice, once as %q", code, environment, key)
		}
		*place = flags[key]
		all[code] = at
	}
	return all, nil
}

func serve(c *command, cfg server.Config, ready func(*server.Server)) error {
	roomForGarbage()
	withinMemory()
	srv, err := server.Open(c.ctx, cfg)
	if err != nil {
		return err
	}
	go func() {
		for _, reached := range []<-chan struct{}{srv.Ready(), srv.Opened()} {
			select {
			case <-reached:
			case <-c.ctx.Done():
				return
			}
		}
		ready(srv)
	}()
	err = srv.Run(c.ctx)
	if closing := srv.Close(); err == nil {
		err = closing
	}
	return err
}

type demoCommand struct {
	commonFlags
	keyFlags
	Simulators simulatorsAt `help:"Address of the simulated authorities: where test keys file, or where they listen." default:"127.0.0.1:8090"`
	Callbacks  string       `help:"Address on which authorities call us; none unless given." default:"127.0.0.1:8091"`
	WebhookURL string       `help:"Where the demo client receives webhooks." placeholder:"URL" name:"webhook-url"`
}

// Run shows the whole product until Ctrl-C.
func (d *demoCommand) Run(c *command) error {
	cfg, err := d.config(c)
	if err != nil {
		return err
	}
	cfg.Demo, cfg.API, cfg.Worker = true, true, true
	if cfg.APIKey, err = d.key(); err != nil {
		return err
	}
	cfg.Simulators, cfg.WebhookURL, cfg.Callbacks = d.Simulators.address(), d.WebhookURL, d.Callbacks
	return serve(c, cfg, func(srv *server.Server) { d.welcome(c, srv) })
}

// welcome prints what a newcomer needs, with a line that can be pasted.
func (d *demoCommand) welcome(c *command, srv *server.Server) {
	demo := srv.Demo()
	fmt.Fprintf(c.out, "\nTributary demo\n\n  API          %s\n  reference    %s/docs\n  API key      %s\n  console      %s (operator %s, password %s)\n  metrics      %s/metrics\n  simulators   %s\n\n  suppliers\n",
		srv.URL(), srv.URL(), demo.APIKey, srv.ConsoleURL(), demo.Operator, demo.Password, srv.AdminURL(), srv.SimulatorsURL())
	codes := make([]string, 0, len(demo.Suppliers))
	for code := range demo.Suppliers {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		fmt.Fprintf(c.out, "    %s  %s\n", code, demo.Suppliers[code])
	}
	fmt.Fprintf(c.out, `
  submit a sale:

    curl -sS %[1]s/v1/transactions -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -d '{"country_code":"XX","currency_code":"EUR","transaction_date":"%[4]s","transaction_number":"INV-1","transaction_id":"sale-1","supplier":{"id":"%[3]s"},"items":[{"number":1,"name":"Tea","quantity":3,"unit_price":7570,"tax_breakdowns":[{"rate":25,"regime":"VAT"}]}]}'

  then GET %[1]s/v1/transactions/OPERATION_ID with the same key. Ctrl-C stops.

`, srv.URL(), demo.APIKey, demo.Suppliers["XX"], time.Now().UTC().Format("2006-01-02T15:04:05Z"))
	fmt.Fprintln(c.out, "ready", srv.URL())
}

type migrateCommand struct {
	databaseFlags
	ServeRole         string `help:"PostgreSQL: the role with which nodes will connect. It is made where it is missing, serves without changing schema or logs, and is remembered: later migrations give it what they add." placeholder:"NAME"`
	ReadRole          string `help:"The role with which clients' requests read, behind row security; default: the other's name and _read." placeholder:"NAME"`
	ServePassword     string `help:"The password that the serving role gets; better in a file." placeholder:"PASSWORD"`
	ServePasswordFile string `help:"File with that password." placeholder:"FILE"`
}

// Run applies the schema.
func (m *migrateCommand) Run(c *command) error {
	if m.Database == "" {
		return fault.New(fault.Invalid, "--database is missing: give --database sqlite:PATH or --database postgres://USER@HOST/NAME")
	}
	password, err := m.password()
	if err != nil {
		return err
	}
	roles := schema.Roles{Serve: m.ServeRole, Read: m.ReadRole}
	if roles.Password, err = secretFrom("serve-password", m.ServePassword, m.ServePasswordFile); err != nil {
		return err
	}
	if roles.Serve == "" && (roles.Read != "" || !roles.Password.IsZero()) {
		return fault.New(fault.Invalid, "--read-role and --serve-password belong to --serve-role")
	}
	opening, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	d, err := db.Open(opening, db.Config{URL: m.Database, Password: password, Log: c.log})
	if err != nil {
		return err
	}
	steps, err := schema.Migrate(c.ctx, d)
	if err == nil && roles.Serve != "" {
		err = schema.Grant(c.ctx, d, roles)
	}
	if closing := d.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "the schema is up to date (%d steps applied)\n", steps)
	if roles.Serve != "" {
		fmt.Fprintf(c.out, "%s serves: give its address to serve and to all other commands\n", roles.Serve)
	}
	return nil
}

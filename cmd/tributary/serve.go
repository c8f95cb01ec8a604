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
	DatabasePasswordFile string `help:"File with the database password." placeholder:"FILE"`
}

func (f *databaseFlags) password() (secret.Secret, error) {
	return secretFrom("database-password", "", f.DatabasePasswordFile)
}

// dataFlags say where this machine keeps things.
type dataFlags struct {
	Data      string `help:"Folder of database, documents, keys and simulated authorities." placeholder:"DIR"`
	MasterKey string `help:"Key that encrypts all secrets: file:PATH, env:NAME or hcvault://HOST/MOUNT/keys/NAME." placeholder:"SOURCE"`
}

// commonFlags are known to demo and serve alike.
type commonFlags struct {
	databaseFlags
	dataFlags
	Listen               string        `help:"Listen address of the public API." default:"127.0.0.1:8080"`
	Admin                string        `help:"Listen address of console, metrics and pprof; keep it on loopback unless needed." default:"127.0.0.1:8081"`
	Documents            string        `help:"Document storage: file:///DIR or s3://BUCKET." placeholder:"URL"`
	Fonts                []string      `help:"Folders with fonts for documents, searched before the system's." placeholder:"DIR"`
	PublicURL            string        `help:"Public base URL; default http:// and the listen address." placeholder:"URL" name:"public-url"`
	WebhookRetryBase     time.Duration `help:"Delay before the first retry of a webhook; then doubling." default:"5s"`
	WebhookCA            string        `help:"Trusted CA for receivers, PEM." placeholder:"FILE" name:"webhook-ca"`
	WebhookAllow         []string      `help:"Private networks allowed for receivers, as CIDRs." placeholder:"CIDR" name:"webhook-allow"`
	WebhookProxy         string        `help:"HTTP proxy for webhooks; proxy environment variables are ignored." placeholder:"URL"`
	AuthorityRetryBase   time.Duration `help:"Delay before the first retry to an authority; then doubling up to 5 minutes." default:"1s"`
	AuthoritySlots       int           `help:"Suppliers filed in parallel per country and environment; a hanging authority takes no slots from other countries." default:"32"`
	Backlog              int           `help:"Maximum backlog of transactions ready to process; beyond it submissions get 503. Those waiting for an authority do not count." default:"2000000"`
	DocumentTTL          time.Duration `help:"Lifetime of document URLs." default:"15m" name:"document-ttl"`
	TLSCert              string        `help:"Certificate of the public API, PEM." placeholder:"FILE" name:"tls-cert"`
	TLSKey               string        `help:"Its private key, PEM." placeholder:"FILE" name:"tls-key"`
	AdminToken           string        `help:"Bearer token for metrics and pprof, required when the admin listener is not on loopback; prefer a file." placeholder:"TOKEN"`
	AdminTokenFile       string        `help:"File with the token." placeholder:"FILE"`
	AdminURL             string        `help:"Public URL of the console, for OIDC and secure cookies; the only host name allowed besides loopback." placeholder:"URL" name:"admin-url"`
	TrustProxy           bool          `help:"Trust X-Forwarded-For for the caller's address."`
	Drain                time.Duration `help:"How long a stopping node still serves while /readyz is 503, so that load balancers notice; up to 30s." placeholder:"DURATION"`
	OIDCIssuer           string        `help:"OpenID Connect provider for operators." placeholder:"URL" name:"oidc-issuer"`
	OIDCClientID         string        `help:"OIDC client id." placeholder:"ID" name:"oidc-client-id"`
	OIDCClientSecret     string        `help:"OIDC client secret; prefer a file." placeholder:"SECRET" name:"oidc-client-secret"`
	OIDCClientSecretFile string        `help:"File with the secret." placeholder:"FILE" name:"oidc-client-secret-file"`
	OperatorMFA          string        `help:"Second factor for password sign-in: off (used if set up) or required." enum:"off,required" default:"off" name:"operator-mfa"`
	AuditHeads           string        `help:"Where to export the signed heads of the audit logs daily: file:///FOLDER, file:///NAME.jsonl (one file), s3://BUCKET, https://LISTENER or none; a place that writers of the database cannot change. Default: audit-heads.jsonl beside the file of the master key." placeholder:"URL" name:"audit-heads"`
	CallbacksURL         string        `help:"Public URL of the --callbacks listener, on this node or another; default: the host name set with authority set." placeholder:"URL" name:"callbacks-url"`
	SimulatorsFrom       []string      `help:"Networks from which simulated authorities may call back, as CIDRs; default: this machine only." placeholder:"CIDR" name:"simulators-from"`
	VIES                 string        `help:"Base URL of the VAT register (VIES)." placeholder:"URL" name:"vies"`
	Restored             bool          `help:"The database is a restored backup: accept transactions only after querying the authorities for what it lacks."`
	RestoredSince        string        `help:"First document date to query the authorities for; default: derived from the backup." placeholder:"YYYY-MM-DD"`
}

func (f *commonFlags) config(c *command) (server.Config, error) {
	cfg := server.Config{
		Listen: f.Listen, Admin: f.Admin, Data: f.Data, Database: f.Database, Documents: f.Documents, Fonts: f.Fonts,
		PublicURL: f.PublicURL, MasterKey: f.MasterKey,
		WebhookRetryBase: f.WebhookRetryBase, WebhookCA: f.WebhookCA, WebhookProxy: f.WebhookProxy,
		AuthorityRetryBase: f.AuthorityRetryBase, AuthoritySlots: f.AuthoritySlots, Backlog: f.Backlog,
		DocumentTTL: f.DocumentTTL, TLSCert: f.TLSCert, TLSKey: f.TLSKey, TrustProxy: f.TrustProxy, Drain: f.Drain,
		AdminURL: f.AdminURL,
		VIES:     f.VIES, CallbacksURL: f.CallbacksURL, Log: c.log, Version: versionText(), Restored: f.Restored,
		OIDC: server.OIDC{Issuer: f.OIDCIssuer, ClientID: f.OIDCClientID}, MFA: f.OperatorMFA == "required",
		AuditHeads: f.AuditHeads,
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
			return cfg, fault.New(fault.Invalid, "--restored-since: %q is not a date of the form YYYY-MM-DD", f.RestoredSince)
		}
		if !f.Restored {
			return cfg, fault.New(fault.Invalid, "--restored-since requires --restored")
		}
	}
	if cfg.WebhookAllow, err = networks("webhook-allow", f.WebhookAllow); err != nil {
		return cfg, err
	}
	cfg.SimulatorsFrom, err = networks("simulators-from", f.SimulatorsFrom)
	return cfg, err
}

func networks(flag string, texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "--%s: %q is not a network such as 10.1.0.0/16", flag, text)
		}
		all = append(all, prefix)
	}
	return all, nil
}

type serveCommand struct {
	commonFlags
	Role       []string          `help:"Roles of this node: api, worker." default:"api,worker"`
	Callbacks  string            `help:"Listen address for callbacks of authorities; default none." placeholder:"ADDR"`
	Migrate    bool              `help:"Migrate the schema before serving."`
	Authority  map[string]string `help:"URLs of authorities: ES.live=https://…;ES.test=https://…" placeholder:"CC.ENV=URL"`
	Simulators simulatorsAt      `help:"URL or listen address of the simulated authorities, for test keys." placeholder:"URL"`
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
	Simulators simulatorsAt `help:"URL or listen address of the simulated authorities, for test keys." default:"127.0.0.1:8090"`
	Callbacks  string       `help:"Listen address for callbacks of authorities; default none." default:"127.0.0.1:8091"`
	WebhookURL string       `help:"Webhook URL of the demo client." placeholder:"URL" name:"webhook-url"`
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
	ServeRole         string `help:"PostgreSQL role for the nodes. Created if missing; it cannot change the schema or the audit logs. It is remembered: later migrations grant it what they add." placeholder:"NAME"`
	ReadRole          string `help:"PostgreSQL role for reads on behalf of clients, with row-level security; default: the serving role with _read." placeholder:"NAME"`
	ServePassword     string `help:"Password of the serving role; prefer a file." placeholder:"PASSWORD"`
	ServePasswordFile string `help:"File with the password." placeholder:"FILE"`
	DropRole          string `help:"Serving role to end: its policies and rights go, then the role. Refused while somebody is connected as it, and for the only one." placeholder:"NAME"`
}

// Run applies the schema.
func (m *migrateCommand) Run(c *command) error {
	if m.Database == "" {
		return fault.New(fault.Invalid, "--database is required: --database sqlite:PATH or --database postgres://USER@HOST/NAME")
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
		return fault.New(fault.Invalid, "--read-role and --serve-password require --serve-role")
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
	var left string
	if err == nil && m.DropRole != "" {
		left, err = schema.Drop(c.ctx, d, m.DropRole)
	}
	if closing := d.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "the schema is up to date (%s applied)\n", fault.Count(steps, "step"))
	if roles.Serve != "" {
		fmt.Fprintf(c.out, "serving role %s: use it in --database of serve and all other commands\n", roles.Serve)
	}
	if m.DropRole != "" {
		fmt.Fprintf(c.out, "serving role %s ended\n%s", m.DropRole, left)
	}
	return nil
}

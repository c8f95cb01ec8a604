package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tributary/internal/account"
	"tributary/internal/console"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// Config is everything that decides how the program runs. The command line
// fills it; tests fill it by hand.
type Config struct {
	Demo    bool // simulators, a client and suppliers; loopback receivers
	API     bool // serve the public API
	Worker  bool // process operations, deliver webhooks, work jobs
	Migrate bool // bring the schema up to date at start

	Restored      bool        // the database is a restored backup: the authorities are asked before transactions are accepted
	RestoredSince country.Day // first document date to ask for; zero: decided by what the backup knows

	Listen     string        // of the public API
	Admin      string        // of console, metrics and pprof
	AdminURL   string        // where browsers reach the console, for OIDC and secure cookies; empty: http:// and Admin
	OIDC       OIDC          // zero: operators sign in with passwords alone
	AuditHeads string        // where the heads of audit logs are kept: file:///DIR, s3://BUCKET, https://…; empty: nowhere
	MFA        bool          // operators who sign in with a password need a second factor
	Simulators string        // of the simulated authorities; demo only
	Callbacks  string        // where authorities call us; empty: nowhere
	Data       string        // folder of database, documents, key and simulators
	Database   string        // sqlite:PATH or postgres://…; default: a file in Data
	Password   secret.Secret // of the database, where its address has none
	Documents  string        // address of the blob store; default: a folder in Data
	Fonts      []string      // folders with fonts for documents, before the system's
	PublicURL  string        // {base_url} in every address handed out; default: http:// + Listen
	MasterKey  string        // file:PATH, env:NAME or hcvault://…; default: a file in Data, made in the demo
	TLSCert    string
	TLSKey     string
	AdminToken secret.Secret // asked for metrics and pprof; needed when Admin is not on loopback
	TrustProxy bool
	Drain      time.Duration // how long /readyz says no, and requests are still served, before the listeners close

	APIKey      secret.Secret   // demo: the client's key
	WebhookURL  string          // demo: the client's receiver
	DemoUseCase country.UseCase // demo: of every country; default both
	Packs       []country.Pack  // countries beside those of the world, in place of one with the same code
	NoGroups    bool            // benchmarks: one commit per write

	WebhookRetryBase   time.Duration
	WebhookCA          string
	WebhookAllow       []netip.Prefix
	WebhookProxy       string
	AuthorityRetryBase time.Duration
	AuthoritySlots     int // suppliers of one country and environment in work at the same time; default 32
	Backlog            int // operations that could be worked and wait; past it submits are answered 503; default 2,000,000
	DocumentTTL        time.Duration
	Authorities        map[string]country.Addresses
	CallbacksURL       string         // where authorities reach the listener; default: by the name they call, or its address
	SimulatorsURL      string         // serve: where test keys file, if at all
	SimulatorsFrom     []netip.Prefix // where simulated authorities may call back from, besides this machine
	VIES               string         // base URL of the register; default the real one, in the demo the simulated

	Log     *slog.Logger
	Version string

	retentionNow func() time.Time // nil: the clock. Tests move it
	passwordCost operator.Cost    // of operators' passwords; zero: the default. Tests, which start dozens of demos, lower it
}

// check completes the configuration and reports what is wrong with it: each
// fault names the key and the fix.
func (c *Config) check() error {
	var faults []fault.Fault
	wrong := func(key, format string, args ...any) {
		faults = append(faults, fault.At("--"+key, fault.FieldNotValid, format, args...))
	}
	for key, address := range map[string]string{"listen": c.Listen, "admin": c.Admin, "simulators": c.Simulators,
		"callbacks": c.Callbacks} {
		if address == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			wrong(key, "%q is not HOST:PORT, for example 127.0.0.1:8080", address)
		}
	}
	for _, folder := range c.Fonts {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			wrong("fonts", "%q is not a readable folder", folder)
		}
	}
	if !c.API && !c.Worker {
		wrong("role", "must be api, worker or both, for example --role api,worker")
	}
	if c.API && c.Listen == "" {
		wrong("listen", "is required, for example --listen 127.0.0.1:8080")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		wrong("tls-cert", "and --tls-key must be set together")
	}
	c.checkAddresses(wrong)
	if !c.API && c.Worker && c.PublicURL == "" {
		wrong("public-url", "is required on a worker-only node, for example --public-url https://api.example.com")
	}
	if !c.Demo && c.Database == "" && c.Data == "" {
		wrong("database", "is required: --database sqlite:PATH or --database postgres://USER@HOST/NAME")
	}
	if c.AuthoritySlots < 0 || c.AuthoritySlots > slotsMost {
		wrong("authority-slots", "must be 1 to %d, for example --authority-slots 32", slotsMost)
	}
	if c.Drain < 0 || c.Drain > drainMost {
		wrong("drain", "must be 0 to %s, for example --drain 5s", drainMost)
	}
	if c.Backlog < 0 {
		wrong("backlog", "must not be negative, for example --backlog 2000000")
	}
	for key, d := range map[string]time.Duration{"webhook-retry-base": c.WebhookRetryBase,
		"authority-retry-base": c.AuthorityRetryBase, "document-ttl": c.DocumentTTL} {
		if d < 0 {
			wrong(key, "must not be negative, for example --%s 5s", key)
		}
	}
	for _, key := range []struct{ name, path string }{{"tls-cert", c.TLSCert}, {"tls-key", c.TLSKey},
		{"webhook-ca", c.WebhookCA}} {
		if key.path != "" {
			if _, err := os.Stat(key.path); err != nil {
				wrong(key.name, "cannot be read: %v", err)
			}
		}
	}
	if len(faults) > 0 {
		return fault.New(fault.Invalid, "invalid configuration").With(faults...)
	}
	return c.complete()
}

// slotsMost bounds --authority-slots: each may hold a connection to an authority.
const slotsMost = 1024

// checkAddresses looks at where others find us, and at who signs operators in.
func (c *Config) checkAddresses(wrong func(key, format string, args ...any)) {
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			strings.ContainsAny(c.PublicURL, "?#") {
			wrong("public-url", "%q is not of the form https://HOST", c.PublicURL)
		}
		c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	}
	if c.AdminURL != "" {
		c.AdminURL = strings.TrimSuffix(c.AdminURL, "/")
		u, err := url.Parse(c.AdminURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" ||
			strings.ContainsAny(c.AdminURL, "?#") {
			wrong("admin-url", "%q is not of the form https://HOST; the console is served below it at %s", c.AdminURL, console.Root)
		}
		if c.Admin == "" {
			wrong("admin-url", "needs the admin listener: set --admin HOST:PORT")
		}
	}
	c.OIDC.check(c, wrong)
}

// check looks at the identity provider's flags. Its address must be HTTPS:
// whoever stands in between could sign in as anybody.
func (o OIDC) check(c *Config, wrong func(key, format string, args ...any)) {
	if o.Issuer == "" && o.ClientID == "" && o.ClientSecret.IsZero() {
		return
	}
	switch u, err := url.Parse(o.Issuer); {
	case o.Issuer == "":
		wrong("oidc-issuer", "is required with --oidc-client-id and --oidc-client-secret")
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		wrong("oidc-issuer", "%q is not of the form https://HOST", o.Issuer)
	case u.Scheme != "https" && !(u.Scheme == "http" && account.LoopbackName(u.Hostname())):
		wrong("oidc-issuer", "%q must be https", o.Issuer)
	}
	if o.ClientID == "" {
		wrong("oidc-client-id", "is required: the client id of this console at the provider")
	}
	host, _, err := net.SplitHostPort(c.Admin)
	if at, parsed := netip.ParseAddr(host); err == nil && c.AdminURL == "" &&
		(host == "" || parsed == nil && at.IsUnspecified()) {
		wrong("admin-url", "is required: the provider redirects browsers to it, for example --admin-url https://console.example.com")
	}
}

// stateFolder is where a node of PostgreSQL keeps files when nobody says where:
// the folder that systemd gives a service, or one below the current folder.
func stateFolder() string {
	if given := os.Getenv("STATE_DIRECTORY"); given != "" {
		return given
	}
	return defaultFolder
}

const defaultFolder = "tributary-data"

// folder makes the demo's folder and the one that nobody named. Another one of
// production exists: one named by a slip of the pen would begin with an empty
// database and keys of its own.
func (c *Config) folder() error {
	if c.Demo || c.Data == defaultFolder {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return fmt.Errorf("create the folder --data: %w", err)
		}
		return nil
	}
	if c.Database != "" && !strings.HasPrefix(c.Database, "sqlite:") && !strings.HasPrefix(c.Database, "postgres") {
		return nil // opening it tells what a database's address looks like
	}
	about, err := os.Stat(c.Data)
	if err == nil && !about.IsDir() {
		return fault.New(fault.Invalid, "%s is not a folder: correct --data or --database", c.Data)
	}
	if err != nil {
		return fault.New(fault.Invalid,
			"%s does not exist: correct --data or --database, or create an installation with tributary init", c.Data)
	}
	return nil
}

// complete fills in what follows from the rest.
func (c *Config) complete() error {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Data == "" && c.Demo {
		dir, err := os.MkdirTemp("", "tributary-demo-")
		if err != nil {
			return fmt.Errorf("create the demo's folder: %w", err)
		}
		c.Data = dir
	}
	said := c.Data != ""
	if !said {
		c.Data = filepath.Dir(strings.TrimPrefix(c.Database, "sqlite:"))
		if strings.HasPrefix(c.Database, "postgres") {
			c.Data = stateFolder()
		}
	}
	if err := c.folder(); err != nil {
		return err
	}
	if !said && strings.HasPrefix(c.Database, "postgres") && c.Documents == "" {
		c.Log.Warn("documents need a folder or a store: set --data or --documents", "folder", c.Data)
	}
	var err error
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		return err
	}
	if c.Database == "" {
		c.Database = "sqlite:" + filepath.Join(c.Data, "tributary.db")
	}
	if c.Documents == "" {
		c.Documents = "file://" + filepath.ToSlash(filepath.Join(c.Data, "documents"))
	}
	if c.MasterKey == "" {
		c.MasterKey = "file:" + filepath.Join(c.Data, "master.key")
	}
	return nil
}

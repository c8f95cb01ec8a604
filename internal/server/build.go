package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/api"
	"tributary/internal/audit"
	"tributary/internal/authority/vies"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/document/typeset"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/guard"
	"tributary/internal/ledger"
	"tributary/internal/lifecycle"
	"tributary/internal/lookup"
	"tributary/internal/onboarding"
	"tributary/internal/quota"
	"tributary/internal/received"
	"tributary/internal/recovery"
	"tributary/internal/retention"
	"tributary/internal/secret"
	"tributary/internal/site"
	"tributary/internal/webhook"
)

// build makes every part, from left to right on the staircase.
func (s *Server) build(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.buildCountries, s.tellFailure, s.buildAccounts, s.buildAudit, s.buildEndpoints, s.buildWebhooks, s.buildDocuments,
		s.buildParties, s.buildTransactions, s.buildInbox, s.buildRestore, s.buildAPI, s.buildConsole, s.buildRetention,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) buildCountries(context.Context) (err error) {
	packs, err := world.Packs(s.cfg.Packs...)
	if err != nil {
		return err
	}
	s.packs = packs
	abroad, err := s.abroad()
	if err != nil {
		return err
	}
	if s.atlas, err = country.NewAtlas(country.AtlasConfig{Packs: packs, Addresses: s.cfg.Authorities,
		Simulators: s.cfg.SimulatorsURL, Abroad: abroad}); err != nil {
		return err
	}
	s.atlas.Keep(quota.New(s.db).Of, lifecycle.Names(s.db))
	if s.sims != nil {
		if s.simulators, err = openSimulators(filepath.Join(s.cfg.Data, "simulators"), packs); err != nil {
			return err
		}
	}
	s.writes.db = s.db
	s.alerts, err = alert.New(s.db, s.cfg.Log, s.metrics)
	return err
}

// guard is the webhook address guard; accounts use it when a URL is saved.
func (s *Server) guard() (*guard.Guard, error) {
	return guard.New(guard.Config{Allow: s.cfg.WebhookAllow, Demo: s.cfg.Demo, Own: []string{s.cfg.PublicURL}})
}

// abroad is how addresses are called that strangers name and no client does:
// through the guard and the proxy of webhooks.
func (s *Server) abroad() (d guard.Dialer, err error) {
	if d.Guard, err = s.guard(); err == nil && s.cfg.WebhookProxy != "" {
		d.Proxy, err = url.Parse(s.cfg.WebhookProxy)
	}
	if err != nil {
		return d, fmt.Errorf("create the guard: %w", err)
	}
	return d, nil
}

// checkURL is what accounts ask when a webhook address is saved: the rules that
// hold when it is called, with what the operator opened to the client.
func checkURL(g *guard.Guard) func(string, []netip.Prefix) (string, error) {
	return func(address string, allow []netip.Prefix) (string, error) { return g.With(allow).CheckURL(address) }
}

func (s *Server) master() (*secret.Master, error) {
	path, isFile := strings.CutPrefix(s.cfg.MasterKey, "file:")
	if isFile && s.cfg.Demo {
		if err := secret.CreateMasterFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create the master key: %w", err)
		}
	}
	return secret.OpenMaster(s.cfg.MasterKey)
}

func (s *Server) buildAccounts(ctx context.Context) (err error) {
	if s.masterKey, err = s.master(); err != nil {
		return fmt.Errorf("--master-key: %w", err)
	}
	guarded, err := s.guard()
	if err != nil {
		return err
	}
	s.auditKey = s.serviceKeys().AuditKey()
	if s.heads, err = s.headsPlace(); err != nil {
		return err
	}
	s.accounts, err = account.Open(ctx, account.Options{
		DB: s.db, Master: s.masterKey, Audit: s.auditKey, Alerts: s.alerts, Log: s.cfg.Log, Metrics: s.metrics, Atlas: s.atlas,
		CheckURL: checkURL(guarded), Events: webhook.EventTypes(), Failures: failureLimit(s.cfg.Demo),
	})
	return err
}

// buildAudit opens the key of the audit logs, or makes it. Who only looks does
// without: it writes nothing, and must say more of a wrong master key than that.
func (s *Server) buildAudit(ctx context.Context) error { return s.auditKey.Load(ctx) }

// OpenAccounts opens the register of clients alone, for the command line.
func OpenAccounts(ctx context.Context, cfg Config, d *db.DB, master *secret.Master) (*account.Accounts, error) {
	packs, err := world.Packs(cfg.Packs...)
	if err != nil {
		return nil, err
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs})
	if err != nil {
		return nil, err
	}
	guarded, err := guard.New(guard.Config{Allow: cfg.WebhookAllow, Demo: cfg.Demo})
	if err != nil {
		return nil, err
	}
	var audit *audit.Key
	if master != nil {
		audit = account.ServiceKeys{DB: d, Master: master}.AuditKey()
		if err := audit.Load(ctx); err != nil {
			return nil, err
		}
	}
	return account.Open(ctx, account.Options{DB: d, Master: master, Audit: audit, Log: cfg.Log, Atlas: atlas,
		CheckURL: checkURL(guarded), Events: webhook.EventTypes()})
}

func (s *Server) buildWebhooks(context.Context) error {
	guarded, err := s.guard()
	if err != nil {
		return err
	}
	sending := webhook.SenderConfig{Guard: guarded}
	if s.cfg.WebhookCA != "" {
		pem, err := os.ReadFile(s.cfg.WebhookCA)
		if err != nil {
			return fmt.Errorf("--webhook-ca: %w", err)
		}
		if sending.Roots, err = webhook.LoadRoots(pem); err != nil {
			return fmt.Errorf("--webhook-ca %s: %w", s.cfg.WebhookCA, err)
		}
	}
	if s.cfg.WebhookProxy != "" {
		if sending.Proxy, err = url.Parse(s.cfg.WebhookProxy); err != nil {
			return fmt.Errorf("--webhook-proxy: %w", err)
		}
	}
	if s.sender, err = webhook.NewSender(sending); err != nil {
		return err
	}
	s.hooks, err = webhook.New(webhook.Config{
		DB: s.db, Alerts: s.alerts, Log: s.cfg.Log, BaseURL: s.cfg.PublicURL, Sender: s.sender, Metrics: s.metrics,
		Ladder: webhook.Ladder{Base: s.cfg.WebhookRetryBase},
		Target: s.webhookTarget, Keys: s.webhookKeys, Changed: s.accounts.Changed,
	})
	return err
}

// webhookTarget answers from memory where events of a type go.
func (s *Server) webhookTarget(ctx context.Context, clientID, event string) (webhook.Target, bool, error) {
	p, err := s.accounts.Profile(ctx, clientID)
	if err != nil {
		return webhook.Target{}, false, err
	}
	address, ok := p.Config.WebhookURL(event)
	return webhook.Target{URL: address, Allow: p.Config.WebhookCIDRs}, ok, nil
}

func (s *Server) webhookKeys(ctx context.Context, clientID string) (webhook.Keys, error) {
	main, beside, err := s.accounts.SigningKeys(ctx, clientID)
	if err != nil {
		return webhook.Keys{}, err
	}
	standard, err := s.accounts.WebhookSecrets(ctx, clientID)
	if err != nil {
		return webhook.Keys{}, err
	}
	p, err := s.accounts.Profile(ctx, clientID)
	if err != nil {
		return webhook.Keys{}, err
	}
	return webhook.Keys{Header: p.Config.SignatureHeader, Standard: standard,
		Current: webhook.Key{ID: main.Kid, Text: main.Text}, Next: webhook.Key{ID: beside.Kid, Text: beside.Text}}, nil
}

func (s *Server) buildDocuments(ctx context.Context) (err error) {
	key, beside, err := s.documentKeys(ctx)
	if err != nil {
		return fmt.Errorf("read the key of document URLs: %w", err)
	}
	s.docs, err = files.OpenStore(ctx, files.Config{
		DB: s.db, URL: s.cfg.Documents, BaseURL: s.cfg.PublicURL, TTL: s.cfg.DocumentTTL, SigningKey: key,
		PreviousKey: beside, Log: s.cfg.Log, Alerts: s.alerts, Fatal: s.documentsFailed,
		Record: func(r db.Reader, a files.Attachment) ([]byte, error) { return s.service.Stored(r, a) },
	})
	return err
}

func (s *Server) buildParties(context.Context) (err error) {
	s.company = onboarding.New(onboarding.Config{
		DB: s.db, Atlas: s.atlas, BaseURL: s.cfg.PublicURL, Alerts: s.alerts, Log: s.cfg.Log,
		Sealer: func(ctx context.Context, clientID string) (*secret.Sealer, error) {
			return s.accounts.Sealer(ctx, clientID, "tax_credentials")
		},
		Enabled: func(ctx context.Context, clientID, code string) (bool, error) {
			p, err := s.accounts.Profile(ctx, clientID)
			if err != nil {
				return false, err
			}
			_, ok := p.Config.UseCase(code)
			return ok, nil
		},
		CredentialsChanged: func(tx *db.Tx, clientID, companyID string) error {
			return errors.Join(filing.CredentialsChanged(tx, clientID, companyID),
				recovery.CredentialsChanged(tx, clientID, companyID))
		},
		Stored: func(tx *db.Tx, clientID string, live bool, c country.Supplier) error {
			return s.inbox.Follow(tx, clientID, live, c)
		},
	})
	base := s.cfg.VIES
	if base == "" {
		base = lookup.VIESBaseURL
		if s.sims != nil {
			base = s.cfg.SimulatorsURL + vies.Path
		}
	}
	if s.vies, err = lookup.NewVIES(lookup.VIESConfig{BaseURL: base,
		HTTP: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}}); err != nil {
		return err
	}
	s.lookups = lookup.New(lookup.Config{DB: s.db, Hooks: s.hooks, Validator: lookup.NewValidator(s.vies, s.cfg.Demo),
		BaseURL: s.cfg.PublicURL, Log: s.cfg.Log})
	return nil
}

func (s *Server) buildTransactions(context.Context) (err error) {
	if s.renderer, err = document.NewRenderer(typeset.WithSystem(s.cfg.Fonts...)); err != nil {
		return err
	}
	tally := ledger.NewTally(s.db, s.cfg.Log)
	s.service = filing.New(filing.Config{
		DB: s.db, Atlas: s.atlas, Companies: s.company, Documents: s.docs, Hooks: s.hooks, Alerts: s.alerts, Log: s.cfg.Log,
		RetryBase: s.cfg.AuthorityRetryBase, Slots: s.cfg.AuthoritySlots, Backlog: s.cfg.Backlog, Render: s.render,
		Count: tally.OnCommit,
	})
	s.recovery = recovery.New(recovery.Config{DB: s.db, Atlas: s.atlas, Companies: s.company, Filing: s.service,
		Alerts: s.alerts, Log: s.cfg.Log})
	s.received = received.New(received.Config{DB: s.db, Companies: s.company, Files: s.docs, Hooks: s.hooks, Alerts: s.alerts,
		Renderer: s.renderer, Log: s.cfg.Log, Read: readIncoming(s.packs)})
	s.ledger = ledger.New(ledger.Config{
		DB: s.db, Atlas: s.atlas, Companies: s.company, Documents: s.docs, Hooks: s.hooks, Filing: s.service, Tally: tally,
		Log: s.cfg.Log,
	})
	return nil
}

func (s *Server) buildRetention(context.Context) error {
	s.retention = retention.New(retention.Config{
		DB: s.db, Atlas: s.atlas, Accounts: s.accounts, Operators: s.operators, Documents: s.docs, Hooks: s.hooks,
		Lookups: s.lookups,
		Filing:  s.service, Ledger: s.ledger, Alerts: s.alerts, Log: s.cfg.Log, Now: s.cfg.retentionNow,
	})
	return nil
}

func (s *Server) buildAPI(context.Context) (err error) {
	if !s.cfg.API {
		return nil
	}
	var tried func() *site.Demo
	if s.cfg.Demo {
		tried = func() *site.Demo {
			if s.demo == nil {
				return nil
			}
			return &site.Demo{Key: s.demo.APIKey, Suppliers: s.demo.Suppliers}
		}
	}
	s.api, err = api.New(api.Config{
		Accounts: s.accounts, Demo: tried, Atlas: s.atlas, Transactions: s.service, Ledger: s.ledger, Companies: s.company,
		Lookups: s.lookups, Documents: s.docs, Hooks: s.hooks, Received: s.received,
		BaseURL: s.cfg.PublicURL, Version: s.cfg.Version, Ready: s.readiness, Writable: s.writes.possible,
		Log: s.cfg.Log, Metrics: s.metrics,
		TrustProxy: s.cfg.TrustProxy,
	})
	return err
}

// Pages are the documentation as files of a folder, for a service at an address.
func Pages(url, version string) ([]site.File, error) {
	a, err := api.New(api.Config{BaseURL: url, Version: version, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return a.Pages()
}

// failureLimit slows down who guesses keys; the demo has nothing to guess.
func failureLimit(demo bool) account.FailureLimit {
	if demo {
		return account.FailureLimit{}
	}
	return account.ServeFailureLimit()
}

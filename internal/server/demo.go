package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// Demo is what a newcomer needs to begin.
type Demo struct {
	APIKey    string
	ClientID  string
	Suppliers map[string]string // company ids by country

	Operator string // of the console
	Password string
}

const demoClient = "demo"

// demoNote is the file by which doctor recognises the demo's data.
const demoNote = "demo.json"

// DemoNote is what a demo says about itself in its folder.
type DemoNote struct {
	Simulators string `json:"simulators"` // their address
}

// ReadDemoNote answers what the demo that owns a folder says; false: no demo does.
func ReadDemoNote(folder string) (note DemoNote, is bool) {
	text, err := os.ReadFile(filepath.Join(folder, demoNote))
	if err != nil {
		return note, false
	}
	return note, json.Unmarshal(text, &note) == nil
}

func (s *Server) leaveNote() error {
	text, err := json.Marshal(DemoNote{Simulators: s.cfg.SimulatorsURL})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.cfg.Data, demoNote), append(text, '\n'), 0o600)
}

// seed makes the demo's client and suppliers, or finds them from last time.
func (s *Server) seed(ctx context.Context) (*Demo, error) {
	if err := s.leaveNote(); err != nil {
		return nil, err
	}
	by := audit.Actor{Name: "demo"}
	use := country.Both
	if s.cfg.DemoUseCase != "" {
		use = s.cfg.DemoUseCase
	}
	if _, err := s.accounts.Profile(ctx, demoClient); fault.KindOf(err) == fault.NotFound {
		_, _, err := s.accounts.CreateClient(ctx, by, account.NewClient{ID: demoClient, Key: s.cfg.APIKey, Config: account.Config{
			DisplayName: "Demo client", Countries: map[string]country.UseCase{account.AllCountries: use},
		}})
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	} else if !s.cfg.APIKey.IsZero() {
		if _, err := s.accounts.FixKey(ctx, by, demoClient, s.cfg.APIKey); err != nil {
			return nil, err
		}
	}
	if err := s.configureDemo(ctx, by, use); err != nil {
		return nil, err
	}
	key, _, err := s.accounts.SigningKeys(ctx, demoClient)
	if err != nil {
		return nil, err
	}
	demo := &Demo{APIKey: key.Text.RevealText(), ClientID: demoClient, Suppliers: map[string]string{}}
	if demo.Password, err = s.seedOperator(ctx, by); err != nil {
		return nil, err
	}
	demo.Operator = demoOperator
	for _, p := range s.packs {
		if p.Example == nil {
			continue
		}
		if demo.Suppliers[p.Code], err = s.seedCompany(ctx, p); err != nil {
			return nil, fmt.Errorf("onboard the example of %s: %w", p.Code, err)
		}
	}
	return demo, nil
}

// seedCompany onboards the company of a pack's example, or finds it from
// last time. Its certificate, where the authority wants one, is made now and
// never committed.
func (s *Server) seedCompany(ctx context.Context, p country.Pack) (id string, err error) {
	of := p.Example.Company
	c := onboarding.NewCompany{
		ExternalID: "demo-" + p.Code, CountryCode: p.Code, LanguageCode: "en", LegalName: of.LegalName,
		CompanyNumber: cmp.Or(of.CompanyNumber, "demo-"+p.Code),
		Address:       of.Address, TaxNumber: of.TaxNumber, TaxRegime: transaction.VAT, Settings: of.Settings,
	}
	known, err := s.company.Company(ctx, demoClient, c.ExternalID, true)
	if err == nil {
		return known.ID, nil
	}
	if fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	if c.Credentials, err = p.Example.Open(time.Now()); err != nil {
		return "", err
	}
	return s.company.Ensure(ctx, demoClient, c)
}

// configureDemo applies the flags to a client that may be from last time.
func (s *Server) configureDemo(ctx context.Context, by audit.Actor, use country.UseCase) error {
	if s.cfg.WebhookURL == "" && s.cfg.DemoUseCase == "" {
		return nil
	}
	_, err := s.accounts.Configure(ctx, by, demoClient, func(c *account.Config) error {
		if s.cfg.DemoUseCase != "" {
			c.Countries = map[string]country.UseCase{account.AllCountries: use}
		}
		if s.cfg.WebhookURL != "" {
			c.Webhooks.All = s.cfg.WebhookURL
			if _, said := c.Webhooks.ByEvent[webhook.TransactionReceived]; !said {
				c.Webhooks.ByEvent = maps.Clone(c.Webhooks.ByEvent)
				if c.Webhooks.ByEvent == nil {
					c.Webhooks.ByEvent = map[string]string{}
				}
				c.Webhooks.ByEvent[webhook.TransactionReceived] = account.WebhookCommon // a demo shows everything
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("--webhook-url: %w", err)
	}
	return nil
}

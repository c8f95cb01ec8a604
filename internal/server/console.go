package server

import (
	"context"
	"fmt"
	"strings"

	"tributary/internal/account"
	"tributary/internal/console"
	"tributary/internal/fault"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// OIDC is the provider that may sign operators in besides their passwords.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Secret
}

// buildConsole makes the operator's pages. They are served by the admin
// listener, so a node without one has none.
func (s *Server) buildConsole(ctx context.Context) (err error) {
	s.operators = operator.New(operator.Config{DB: s.db, Alerts: s.alerts, Log: s.cfg.Log})
	if s.admin == nil {
		return nil
	}
	if s.cfg.AdminURL == "" {
		s.cfg.AdminURL = urlOf(s.admin)
	}
	cfg := console.Config{
		DB: s.db, Operators: s.operators, Accounts: s.accounts, Atlas: s.atlas, Transactions: s.service, Companies: s.company, Lookups: s.lookups,
		Documents: s.docs, Hooks: s.hooks, Renderer: s.renderer, Version: s.cfg.Version, Log: s.cfg.Log, Metrics: s.metrics,
		TrustProxy: s.cfg.TrustProxy, Secure: strings.HasPrefix(s.cfg.AdminURL, "https://"), Simulators: urlOf(s.sims),
	}
	if s.cfg.OIDC.Issuer != "" {
		cfg.OIDC, err = operator.OpenOIDC(ctx, s.operators, operator.OIDCConfig{
			Issuer: s.cfg.OIDC.Issuer, ClientID: s.cfg.OIDC.ClientID, ClientSecret: s.cfg.OIDC.ClientSecret,
			RedirectURL: strings.TrimSuffix(s.cfg.AdminURL, "/") + "/console/oidc/finish",
		})
		if err != nil {
			return fmt.Errorf("--oidc-issuer: %w", err)
		}
	}
	s.console, err = console.New(cfg)
	return err
}

// demoOperator may do everything in the demo.
const demoOperator = "demo"

// furnishOperator gives the demo's operator a fresh password at every start.
func (s *Server) furnishOperator(ctx context.Context, by account.Actor) (password string, err error) {
	_, made, err := s.operators.Create(ctx, by, operator.NewOperator{Name: demoOperator, Role: operator.Admin})
	if fault.KindOf(err) == fault.Conflict { // from last time
		made, err = s.operators.SetPassword(ctx, by, demoOperator, secret.Secret{})
	}
	if err != nil {
		return "", fmt.Errorf("make the demo's operator: %w", err)
	}
	return made.RevealText(), nil
}

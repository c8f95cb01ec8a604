package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tributary/internal/audit"
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
func (s *Server) buildConsole(context.Context) (err error) {
	if s.admin == nil {
		return nil
	}
	cfg := console.Config{
		DB: s.db, Operators: s.operators, Accounts: s.accounts, Endpoints: s.endpoints, Atlas: s.atlas,
		Transactions: s.service, Ledger: s.ledger, Recovery: s.recovery, Companies: s.company, Lookups: s.lookups,
		Documents: s.docs, Hooks: s.hooks, Renderer: s.renderer, Version: s.cfg.Version, Log: s.cfg.Log, Metrics: s.metrics,
		TrustProxy: s.cfg.TrustProxy, Secure: strings.HasPrefix(s.cfg.AdminURL, "https://"), Simulators: urlOf(s.sims),
	}
	if s.cfg.OIDC.Issuer != "" {
		s.oidc = operator.NewOIDC(s.operators, operator.OIDCConfig{
			Issuer: s.cfg.OIDC.Issuer, ClientID: s.cfg.OIDC.ClientID, ClientSecret: s.cfg.OIDC.ClientSecret,
			RedirectURL: s.cfg.AdminURL + console.OIDCFinish,
		})
		cfg.OIDC = s.oidc
	}
	s.console, err = console.New(cfg)
	return err
}

// reachProvider looks once for the identity provider, so that the log of the
// start tells about a wrong address. The service does not wait for it: who signs
// in looks again.
func (s *Server) reachProvider(ctx context.Context) error {
	if s.oidc == nil {
		return nil
	}
	if err := s.oidc.Reach(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("--oidc-issuer: the identity provider is unreachable", "error", errors.Unwrap(err))
	}
	return nil
}

// demoOperator may do everything in the demo.
const demoOperator = "demo"

// seedOperator gives the demo's operator a fresh password at every start.
func (s *Server) seedOperator(ctx context.Context, by audit.Actor) (password string, err error) {
	_, made, err := s.operators.Create(ctx, by, operator.NewOperator{Name: demoOperator, Role: operator.Admin})
	if fault.KindOf(err) == fault.Conflict { // from last time
		made, err = s.operators.SetPassword(ctx, by, demoOperator, secret.Secret{})
	}
	if err != nil {
		return "", fmt.Errorf("create the demo's operator: %w", err)
	}
	return made.RevealText(), nil
}

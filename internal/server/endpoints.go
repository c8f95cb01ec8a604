package server

import (
	"context"
	"errors"
	"fmt"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// buildEndpoints reads what operators have set for authorities, before anybody
// calls one.
func (s *Server) buildEndpoints(ctx context.Context) error {
	s.operators = operator.New(operator.Config{DB: s.db, Audit: s.auditKey, Alerts: s.alerts, Log: s.cfg.Log,
		Cost: s.cfg.passwordCost, Device: func(ctx context.Context) (secret.Secret, error) {
			key, err := s.serviceKeys().Key(ctx, account.OperatorDevices)
			return key.Current, err
		}, Second: operator.Second{Required: s.cfg.MFA, AdminURL: s.cfg.AdminURL,
			Sealer: func(ctx context.Context) (*secret.Sealer, error) {
				return s.serviceKeys().Sealer(ctx, account.OperatorFactors)
			}}})
	s.endpoints = endpoint.New(endpoint.Config{
		DB: s.db, Atlas: s.atlas, Master: s.masterKey, Operators: s.operators, Alerts: s.alerts, Log: s.cfg.Log,
		Changed: s.endpointsChanged, Callback: s.callbackURL,
	})
	return s.endpoints.Refresh(ctx)
}

// endpointsChanged ends the pauses of lanes that wait for what was just set.
func (s *Server) endpointsChanged(ctx context.Context, changed []country.Environment) {
	if s.inbox == nil || !s.cfg.Worker { // the last part that stands on them
		return
	}
	for _, at := range changed {
		s.cfg.Log.Info("an authority's endpoint has changed", "authority", at.String())
		if err := errors.Join(s.service.EndpointChanged(ctx, at), s.inbox.EndpointChanged(ctx, at)); err != nil {
			s.cfg.Log.Warn("transactions wait for their next retry", "authority", at.String(), "error", err)
		}
	}
}

// What the command line needs of authorities' endpoints.
type (
	Authorities     = endpoint.Endpoints
	Authority       = endpoint.Shown
	AuthorityChange = endpoint.Change
)

// AuthorityFileBytesMax is how large a file for an authority may be: a CA or a PKCS#12.
const AuthorityFileBytesMax = min(endpoint.CABytesMax, identity.FileBytesMax)

// OpenEndpoints opens the authorities' endpoints alone, for the command line.
// Without a master key nothing sealed is read.
func OpenEndpoints(ctx context.Context, cfg Config, d *db.DB, master *secret.Master) (*endpoint.Endpoints, error) {
	packs, err := world.Packs(cfg.Packs...)
	if err != nil {
		return nil, err
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs})
	if err != nil {
		return nil, fmt.Errorf("list the authorities: %w", err)
	}
	var key *audit.Key
	if master != nil {
		key = account.ServiceKeys{DB: d, Master: master}.AuditKey()
		if err := key.Load(ctx); err != nil {
			return nil, err
		}
	}
	return endpoint.New(endpoint.Config{DB: d, Atlas: atlas, Master: master,
		Operators: operator.New(operator.Config{DB: d, Audit: key, Log: cfg.Log}), Log: cfg.Log}), nil
}

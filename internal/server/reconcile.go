package server

import (
	"context"
	"fmt"

	"tributary/internal/filing"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
	"tributary/internal/secret"
)

// Reconcile compares our successes of a supplier and day with its authority's
// list, for the command line. A server may run on the same database meanwhile.
func Reconcile(ctx context.Context, cfg Config, d *db.DB, accounts *account.Accounts, supplierID string, day country.Day) (found filing.Reconciliation, err error) {
	err = atDesk(ctx, cfg, d, accounts, supplierID, func(s *filing.Service, clientID string, live country.Live) error {
		found, err = s.Reconcile(ctx, clientID, supplierID, live, day)
		return err
	})
	return found, err
}

// ReleaseRestored lets a supplier file again whose authority could not be
// asked after a backup was restored: somebody has looked by other means.
func ReleaseRestored(ctx context.Context, cfg Config, d *db.DB, accounts *account.Accounts, supplierID string, by account.Actor) error {
	log := operator.New(operator.Config{DB: d, Log: cfg.Log})
	return atDesk(ctx, cfg, d, accounts, supplierID, func(s *filing.Service, clientID string, _ country.Live) error {
		return s.Release(ctx, clientID, supplierID, func(tx *db.Tx) error {
			return log.RecordIn(tx, by, operator.Act{Action: "restored.released", Subject: supplierID, ClientID: clientID})
		})
	})
}

// ResumeChain lets a chain go on that stood elsewhere than we knew.
// The zero link asks the authority where it stands.
func ResumeChain(ctx context.Context, cfg Config, d *db.DB, accounts *account.Accounts, supplierID string, head country.Link, by account.Actor) (chain filing.Chain, err error) {
	log := operator.New(operator.Config{DB: d, Log: cfg.Log})
	err = atDesk(ctx, cfg, d, accounts, supplierID, func(s *filing.Service, clientID string, _ country.Live) error {
		chain, err = s.ResumeChain(ctx, clientID, supplierID, head, func(tx *db.Tx, c filing.Chain) error {
			return log.RecordIn(tx, by, operator.Act{Action: "restored.chain_resumed", Subject: supplierID, ClientID: clientID, After: c})
		})
		return err
	})
	return chain, err
}

// atDesk does one thing about a supplier's filings, beside a running server.
func atDesk(ctx context.Context, cfg Config, d *db.DB, accounts *account.Accounts, supplierID string, do func(s *filing.Service, clientID string, live country.Live) error) error {
	packs, err := world.Packs(cfg.Packs...)
	if err != nil {
		return err
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs, Addresses: cfg.Authorities, Simulators: cfg.SimulatorsURL})
	if err != nil {
		return err
	}
	defer atlas.Close()
	companies := onboarding.New(onboarding.Config{
		DB: d, Atlas: atlas, Log: cfg.Log,
		Sealer: func(ctx context.Context, clientID string) (*secret.Sealer, error) {
			return accounts.Sealer(ctx, clientID, "tax_credentials")
		},
	})
	clientID, live, err := clientOf(ctx, d, accounts, companies, supplierID)
	if err != nil {
		return err
	}
	service := filing.New(filing.Config{DB: d, Atlas: atlas, Companies: companies, Log: cfg.Log})
	defer service.Close()
	return do(service, clientID, live)
}

// clientOf finds the client of a company: its id is unique in the service.
func clientOf(ctx context.Context, d *db.DB, accounts *account.Accounts, companies *onboarding.Companies, supplierID string) (clientID string, live country.Live, err error) {
	err = d.Read(ctx, func(r db.Reader) error {
		clients, err := accounts.List(r)
		if err != nil {
			return err
		}
		for _, client := range clients {
			_, err := companies.Supplier(r, client.ID, supplierID)
			if fault.KindOf(err) == fault.NotFound {
				continue
			}
			clientID, live = client.ID, country.Live(client.Live)
			return err
		}
		return fault.New(fault.NotFound, "no company has the id %q", supplierID)
	})
	if err != nil {
		return "", false, fmt.Errorf("look for the supplier: %w", err)
	}
	return clientID, live, nil
}

package server

import (
	"context"
	"fmt"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/secret"
	"tributary/internal/transaction"
)

// Reconcile compares our successes of a supplier and day with its authority's
// list, for the command line. A server may run on the same database meanwhile.
func Reconcile(ctx context.Context, cfg Config, d *db.DB, accounts *account.Accounts, supplierID string, day country.Day) (transaction.Reconciliation, error) {
	packs, err := world.Packs()
	if err != nil {
		return transaction.Reconciliation{}, err
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs, Addresses: cfg.Authorities, Simulators: cfg.SimulatorsURL})
	if err != nil {
		return transaction.Reconciliation{}, err
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
		return transaction.Reconciliation{}, err
	}
	service := transaction.New(transaction.Config{DB: d, Atlas: atlas, Companies: companies, Log: cfg.Log})
	defer service.Close()
	return service.Reconcile(ctx, clientID, supplierID, live, day)
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

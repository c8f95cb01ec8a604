package server

import (
	"context"
	"fmt"

	"tributary/internal/account"
	"tributary/internal/audit"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/operator"
	"tributary/internal/quota"
	"tributary/internal/recovery"
	"tributary/internal/secret"
)

// Maintenance is where a person at the command line does something about one
// supplier's filings. A server may run on the same database meanwhile.
type Maintenance struct {
	Config     Config
	DB         *db.DB
	Accounts   *account.Accounts
	SupplierID string
}

// operators keeps the log of what is done here.
func (x Maintenance) operators() *operator.Operators {
	return operator.New(operator.Config{DB: x.DB, Audit: x.Accounts.AuditKey(), Log: x.Config.Log})
}

// Reconcile compares our successes of a day with the authority's list.
func (x Maintenance) Reconcile(ctx context.Context, day country.Day) (found recovery.Reconciliation, err error) {
	err = x.open(ctx, func(s *recovery.Recovery, at filing.Place) error {
		found, err = s.Reconcile(ctx, at, day)
		return err
	})
	return found, err
}

// Release lets a supplier file again whose authority could not be asked after a
// backup was restored: somebody has looked by other means.
func (x Maintenance) Release(ctx context.Context, by audit.Actor) error {
	log := x.operators()
	return x.open(ctx, func(s *recovery.Recovery, at filing.Place) error {
		return s.Release(ctx, at.Scope, at.SupplierID, func(tx *db.Tx) error {
			return log.RecordIn(tx, by, operator.Act{Action: "restored.released", Subject: at.SupplierID, ClientID: at.Scope})
		})
	})
}

// Decide ends the wait of an operation that may be registered since before a
// backup was restored: somebody has looked.
func (x Maintenance) Decide(ctx context.Context, operationID string, said recovery.Word, by audit.Actor) error {
	log := x.operators()
	return x.open(ctx, func(s *recovery.Recovery, _ filing.Place) error {
		return s.Decide(ctx, operationID, said, func(tx *db.Tx, h recovery.Held) error {
			return log.RecordIn(tx, by, operator.Act{Action: "restored.decided", Subject: operationID, ClientID: h.ClientID,
				After: said})
		})
	})
}

// ResumeChain lets a chain go on that stood elsewhere than we knew.
// The zero value asks the authority where it stands.
func (x Maintenance) ResumeChain(ctx context.Context, from recovery.From, by audit.Actor) (chain recovery.Chain, err error) {
	log := x.operators()
	err = x.open(ctx, func(s *recovery.Recovery, at filing.Place) error {
		chain, err = s.ResumeChain(ctx, at, from, func(tx *db.Tx, c recovery.Chain) error {
			return log.RecordIn(tx, by, operator.Act{Action: "restored.chain_resumed", Subject: at.SupplierID,
				ClientID: at.Scope, After: c})
		})
		return err
	})
	return chain, err
}

// Annul asks the authority to forget the report of an operation. That it was
// asked, and what was answered, is in the audit log.
func (x Maintenance) Annul(ctx context.Context, operationID string, why country.Annulment,
	by audit.Actor) (said country.Annulled, err error) {
	err = x.DB.Read(ctx, func(r db.Reader) error {
		of, err := operation.FiledOf(r, operationID)
		x.SupplierID = of.Place.SupplierID
		return err
	})
	if err != nil {
		return said, err
	}
	log := x.operators()
	err = x.open(ctx, func(s *recovery.Recovery, _ filing.Place) error {
		said, err = s.Annul(ctx, operationID, why, func(tx *db.Tx, of operation.Filed, said *country.Annulled) error {
			act := operator.Act{Action: "report.annulment_requested", Subject: operationID, ClientID: of.Place.Scope, After: why}
			if said != nil {
				act.Action, act.After = "report.annulment_answered", said
			}
			return log.RecordIn(tx, by, act)
		})
		return err
	})
	return said, err
}

// open puts together what the desk needs.
func (x Maintenance) open(ctx context.Context, do func(s *recovery.Recovery, at filing.Place) error) error {
	packs, err := world.Packs(x.Config.Packs...)
	if err != nil {
		return err
	}
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: packs, Addresses: x.Config.Authorities,
		Simulators: x.Config.SimulatorsURL})
	if err != nil {
		return err
	}
	defer atlas.Close()
	atlas.Keep(quota.New(x.DB).Of, nil)
	companies := onboarding.New(onboarding.Config{
		DB: x.DB, Atlas: atlas, Log: x.Config.Log,
		Sealer: func(ctx context.Context, clientID string) (*secret.Sealer, error) {
			return x.Accounts.Sealer(ctx, clientID, "tax_credentials")
		},
	})
	clientID, live, err := x.clientOf(ctx, companies)
	if err != nil {
		return err
	}
	service := filing.New(filing.Config{DB: x.DB, Atlas: atlas, Companies: companies, Log: x.Config.Log})
	defer service.Close()
	s := recovery.New(recovery.Config{DB: x.DB, Atlas: atlas, Companies: companies, Filing: service, Log: x.Config.Log})
	return do(s, filing.Place{Scope: clientID, Live: live, SupplierID: x.SupplierID})
}

// clientOf finds the client of a company: its id is unique in the service.
func (x Maintenance) clientOf(ctx context.Context,
	companies *onboarding.Companies) (clientID string, live country.Live, err error) {
	err = x.DB.Read(ctx, func(r db.Reader) error {
		clients, err := x.Accounts.List(r)
		if err != nil {
			return err
		}
		for _, client := range clients {
			_, err := companies.Supplier(r, client.ID, x.SupplierID)
			if fault.KindOf(err) == fault.NotFound {
				continue
			}
			clientID, live = client.ID, country.Live(client.Live)
			return err
		}
		return fault.New(fault.NotFound, "unknown company %q", x.SupplierID)
	})
	if err != nil {
		return "", false, fmt.Errorf("find the supplier: %w", err)
	}
	return clientID, live, nil
}

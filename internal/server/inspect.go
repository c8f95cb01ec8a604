package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/endpoint"
	"tributary/internal/onboarding"
	"tributary/internal/webhook"
)

// Completed checks a configuration and fills in what follows from the rest, as
// Open does.
func (c Config) Completed() (Config, error) {
	err := c.check()
	return c, err
}

// Inspection is what a check of a deployment looks at: the parts a server
// would run with, opened beside it, of which none runs.
type Inspection struct {
	Atlas     *country.Atlas
	Endpoints *endpoint.Endpoints
	Accounts  *account.Accounts
	Companies *onboarding.Companies
	Sender    *webhook.Sender

	server *Server
}

// Inspect builds the parts of a completed configuration on an open database. It
// changes nothing.
func Inspect(ctx context.Context, cfg Config, d *db.DB) (*Inspection, error) {
	if cfg.PublicURL == "" {
		cfg.PublicURL = "http://" + cfg.Listen
	}
	s := &Server{cfg: cfg, db: d, metrics: prometheus.NewRegistry()}
	for _, step := range []func(context.Context) error{s.buildCountries, s.buildAccounts, s.buildEndpoints,
		s.buildWebhooks, s.buildParties} {
		if err := step(ctx); err != nil {
			s.db = nil
			return nil, errors.Join(err, s.Close())
		}
	}
	return &Inspection{Atlas: s.atlas, Endpoints: s.endpoints, Accounts: s.accounts, Companies: s.company,
		Sender: s.sender, server: s}, nil
}

// Close gives back what Inspect took; the database stays open.
func (i *Inspection) Close() error {
	i.server.db = nil
	return i.server.Close()
}

// ProbeWrite commits one write that leaves nothing behind.
func ProbeWrite(ctx context.Context, d *db.DB) error {
	err := d.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec("INSERT INTO service_keys (name, wrapped, sealed, created_at) VALUES ('probe', $1, $1, $2) ON CONFLICT (name) DO NOTHING", []byte{0}, db.Micros(tx.Now())); err != nil {
			return err
		}
		return tx.Exec("DELETE FROM service_keys WHERE name = 'probe'")
	})
	if err != nil {
		return fmt.Errorf("commit a write: %w", err)
	}
	return nil
}

// Country is a pack of the world by its code.
func Country(code string) (country.Pack, bool, error) {
	packs, err := world.Packs()
	if err != nil {
		return country.Pack{}, false, err
	}
	i := slices.IndexFunc(packs, func(p country.Pack) bool { return p.Code == code })
	if i < 0 {
		return country.Pack{}, false, nil
	}
	return packs[i], true, nil
}

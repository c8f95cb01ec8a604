package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/ledger"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
	"tributary/internal/webhook"
)

// What the benchmark needs beyond the public API.

// DemoClient is the client of the demo.
const DemoClient = demoClient

// Engine is the database's engine.
func (s *Server) Engine() string { return s.db.Engine() }

// Notify stores events as a settling commit would.
func (s *Server) Notify(ctx context.Context, events ...webhook.Event) error {
	return s.db.Write(ctx, func(tx *db.Tx) error { return s.hooks.Notify(tx, events...) })
}

// WaitSettled returns when no operation is on its way.
func (s *Server) WaitSettled(ctx context.Context) error {
	for {
		open, err := s.ledger.Unsettled(ctx)
		if err != nil || !open {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Search looks for something as an operator does.
func (s *Server) Search(ctx context.Context, q ledger.Query) error {
	_, err := s.ledger.Search(ctx, q)
	return err
}

// AddSuppliers onboards that many suppliers of the demo's client with the reference authority.
func (s *Server) AddSuppliers(ctx context.Context, n int) (ids []string, err error) {
	example := s.packs[slices.IndexFunc(s.packs, func(p country.Pack) bool {
		return p.Code == transaction.ReferenceCode
	})].Example.Company
	ids = make([]string, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16) // commits in groups
	for i := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			name := fmt.Sprintf("bench-%05d", i)
			ids[i], errs[i] = s.company.Ensure(ctx, demoClient, onboarding.NewCompany{
				ExternalID: name, CountryCode: transaction.ReferenceCode, LanguageCode: "en", LegalName: example.LegalName,
				CompanyNumber: name,
				Address:       example.Address, TaxNumber: fmt.Sprintf("XX%09d", 200_000_000+i), TaxRegime: transaction.VAT,
			})
		})
	}
	wg.Wait()
	return ids, errors.Join(errs...)
}

// LoadSettled fills the demo's store with settled transactions.
func (s *Server) LoadSettled(ctx context.Context, n int, body func(i int) []byte) error {
	profile, err := s.accounts.Profile(ctx, demoClient)
	if err != nil {
		return err
	}
	return s.service.LoadSettled(ctx, filing.Caller{Scope: demoClient, Live: country.Live(profile.Live),
		UseCase: profile.Config.UseCase}, n, body)
}

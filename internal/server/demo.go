package server

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/transaction"

	"tributary/internal/account"
	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
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

// furnish makes the demo's client and suppliers, or finds them from last time.
func (s *Server) furnish(ctx context.Context) (*Demo, error) {
	by := account.Actor{Name: "demo"}
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
	if demo.Password, err = s.furnishOperator(ctx, by); err != nil {
		return nil, err
	}
	demo.Operator = demoOperator
	for _, c := range demoCompanies {
		if demo.Suppliers[c.CountryCode], err = s.furnishCompany(ctx, c); err != nil {
			return nil, fmt.Errorf("onboard %s: %w", c.ExternalID, err)
		}
	}
	return demo, nil
}

// furnishCompany onboards a supplier, or finds it from last time. Where the
// authority knows suppliers by certificate it gets one of its own, made now and
// never committed.
func (s *Server) furnishCompany(ctx context.Context, c onboarding.NewCompany) (id string, err error) {
	known, err := s.company.Company(ctx, demoClient, c.ExternalID, true)
	if err == nil {
		return known.ID, nil
	}
	if fault.KindOf(err) != fault.NotFound {
		return "", err
	}
	if demoCertified[c.CountryCode] {
		if c.Credentials.PKCS12, c.Credentials.Password, err = identity.Test(c.TaxNumber, c.LegalName, time.Now()); err != nil {
			return "", err
		}
	}
	if c.CountryCode == "MX" {
		c.Credentials.Username, c.Credentials.Secret = "demo", "demo" // the simulated provider takes any
	}
	return s.company.Ensure(ctx, demoClient, c)
}

// configureDemo applies the flags to a client that may be from last time.
func (s *Server) configureDemo(ctx context.Context, by account.Actor, use country.UseCase) error {
	if s.cfg.WebhookURL == "" && s.cfg.DemoUseCase == "" {
		return nil
	}
	_, err := s.accounts.Configure(ctx, by, demoClient, func(c *account.Config) error {
		c.Countries = map[string]country.UseCase{account.AllCountries: use}
		c.Webhooks = account.Webhooks{All: s.cfg.WebhookURL}
		return nil
	})
	if err != nil {
		return fmt.Errorf("--webhook-url: %w", err)
	}
	return nil
}

// demoCertified are the countries whose authorities know suppliers by certificate.
var demoCertified = map[string]bool{"ES": true, "MX": true, "PL": true}

// demoCompanies are suppliers with valid, invented identities.
var demoCompanies = []onboarding.NewCompany{
	demoCompany("XX", "Reference Trading Ltd", "XX123456789", transaction.Address{CountryCode: "XX", City: "Exampleton", PostalCode: "12345", AddressLine1: "1 Sample Street"}),
	demoCompany("IE", "Liffey Books Limited", "IE6388047V", transaction.Address{CountryCode: "IE", City: "Dublin", PostalCode: "D02 X285", AddressLine1: "5 Example Quay"}),
	demoCompany("GB", "Thames Tea Company Ltd", "GB980780684", transaction.Address{CountryCode: "GB", City: "London", PostalCode: "SE1 9SG", AddressLine1: "8 Sample Lane"}),
	demoCompany("ES", "Comercial Ejemplo SL", "B98602642", transaction.Address{CountryCode: "ES", City: "Valencia", PostalCode: "46001", AddressLine1: "Calle Muestra 3"}),
	demoCompany("MX", "ESCUELA KEMPER URGATE", "EKU9003173C9", transaction.Address{CountryCode: "MX", City: "Ciudad de México", PostalCode: "06000", AddressLine1: "Avenida Muestra 10"}),
	demoCompany("PL", "Przykład Sp. z o.o.", "PL5260001246", transaction.Address{CountryCode: "PL", City: "Warszawa", PostalCode: "00-001", AddressLine1: "ul. Przykładowa 1"}),
	demoCompany("DE", "Muster Handel GmbH", "DE111111125", transaction.Address{CountryCode: "DE", City: "Berlin", PostalCode: "10115", AddressLine1: "Musterstraße 7"}),
	demoCompany("FR", "Exemple SARL", "FR44732829320", transaction.Address{CountryCode: "FR", City: "Paris", PostalCode: "75001", AddressLine1: "1 rue de l'Exemple"}),
	demoCompany("IT", "Esempio S.r.l.", "IT12345670785", transaction.Address{CountryCode: "IT", City: "Roma", PostalCode: "00184", AddressLine1: "Via Esempio 2"}),
}

func demoCompany(code, name, taxNumber string, at transaction.Address) onboarding.NewCompany {
	return onboarding.NewCompany{
		ExternalID: "demo-" + code, CountryCode: code, LanguageCode: "en", LegalName: name, CompanyNumber: "demo-" + code,
		Address: at, TaxNumber: taxNumber, TaxRegime: transaction.VAT,
	}
}

package country

import (
	"tributary/internal/transaction"
)

// Supplier is the onboarded company in whose name a transaction is issued.
type Supplier struct {
	ID            string
	ExternalID    string
	CountryCode   string // upper case
	LanguageCode  string
	LegalName     string
	Type          string // transaction.Business or Individual; empty is Business
	CompanyNumber string
	Address       transaction.Address
	TaxNumber     string
	TaxRegime     string
	Settings      Settings // the country's own keys, defaults filled in
	Branding      Branding // how its documents look; what is empty is the client's
	Closed        bool     // nothing more is issued in its name
}

// Branding is a company's own look of documents.
type Branding struct {
	LogoSHA256 string // whoever keeps the companies has its bytes
	Placement  string
	Accent     string // #RRGGBB
	Ink        string // #RRGGBB
	Font       string
	Template   string
	Footer     string
}

// Settings are a company's values for the keys that a pack's Facts list.
type Settings map[string]any

// Text returns a setting as text, or "" when it is absent or of another type.
func (s Settings) Text(key string) string {
	text, _ := s[key].(string)
	return text
}

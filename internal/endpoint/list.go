package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/identity"
	"tributary/internal/db"
)

// Shown is what is stored of an environment, without a secret in it.
type Shown struct {
	Country     string       `json:"country_code"`
	Environment string       `json:"environment"` // live, test
	URL         string       `json:"url"`
	Host        string       `json:"host"`
	Secrets     []string     `json:"secrets"` // names of those that are set
	Missing     []string     `json:"missing"` // names of what is not set and must be before anything can be filed
	Command     string       `json:"command"` // that sets it; empty: nothing is missing
	Certificate *Certificate `json:"certificate"`
	CA          []string     `json:"ca"` // subjects
	UpdatedAt   *time.Time   `json:"updated_at"`
}

// Certificate is what people may know of one.
type Certificate struct {
	Subject     string    `json:"subject"`
	Fingerprint string    `json:"fingerprint"` // SHA-256, lower-case hex
	ExpiresAt   time.Time `json:"expires_at"`
}

// Name is the environment as CC.live or CC.test.
func (s Shown) Name() string { return s.Country + "." + s.Environment }

// Set reports whether anything of an identity is there.
func (s Shown) Set() bool { return len(s.Secrets) > 0 || s.Certificate != nil }

// List reads every environment of an authority that clients may use, by name.
func (e *Endpoints) List(r db.Reader) (list []Shown, err error) {
	rows, err := readRows(r)
	if err != nil {
		return nil, err
	}
	stored := map[country.Environment]bool{}
	for _, one := range rows {
		stored[one.at] = true
		list = append(list, e.shown(one))
	}
	for _, code := range e.cfg.Atlas.Codes() {
		pack, _ := e.cfg.Atlas.Pack(code)
		for _, live := range []country.Live{false, true} {
			at := country.Environment{Code: code, Live: live}
			if pack.Connect != nil && e.cfg.Atlas.Offers(code, live) && !stored[at] {
				list = append(list, e.shown(row{at: at}))
			}
		}
	}
	slices.SortFunc(list, func(a, b Shown) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func (e *Endpoints) shown(one row) Shown {
	s := Shown{Country: one.at.Code, Environment: strings.TrimPrefix(one.at.String(), one.at.Code+"."), URL: one.url,
		Host:    one.host,
		Secrets: append([]string{}, one.secrets...), CA: append([]string{}, subjectsOf(one.ca)...)}
	if one.fingerprint != nil {
		s.Certificate = &Certificate{Subject: *one.subject, Fingerprint: *one.fingerprint, ExpiresAt: one.expiresAt}
	}
	pack, _ := e.cfg.Atlas.Pack(one.at.Code)
	s.Missing = []string{}
	if address, _ := e.cfg.Atlas.Address(one.at); one.url == "" && address == "" {
		s.Missing = append(s.Missing, country.AddressName)
	}
	s.Missing = append(s.Missing, pack.Identity.Missing(one.secrets, one.fingerprint != nil)...)
	s.Command = country.SetCommand(one.at, s.Missing)
	if !one.updatedAt.IsZero() {
		s.UpdatedAt = &one.updatedAt
	}
	return s
}

func subjectsOf(text string) (subjects []string) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			subjects = append(subjects, identity.Subject(cert))
		}
	}
	return subjects
}

// Trust is the pool against which client certificates of an authority that
// calls us are verified; nil: none is believed.
func (e *Endpoints) Trust(at country.Environment) *x509.CertPool {
	if o := e.known.Load().all[at]; o != nil {
		return o.trust
	}
	return nil
}

// ServerCertificate is the certificate under which a name is served to
// authorities; nil: the name is not ours.
func (e *Endpoints) ServerCertificate(host string, keeper *identity.Keeper, now time.Time) (*tls.Certificate, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, o := range e.known.Load().all {
		if o.host == "" || o.host != host {
			continue
		}
		id, err := keeper.Open(o.identity.Certificate, now)
		if err != nil {
			return nil, err
		}
		cert := id.TLS()
		return &cert, nil
	}
	return nil, nil
}

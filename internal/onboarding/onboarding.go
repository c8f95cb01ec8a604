// Package onboarding makes companies known: the client's own and, for
// marketplaces, its sellers.
//
// It owns companies, the jobs that check and enrol them, their settings and
// their tax credentials. It does not own clients and their keys, the rules of
// countries (packs do), HTTP, or what is filed in a company's name. Law of
// [Companies.Create]: when it answers, the job is on disk and will end in
// success or in a list of everything that is wrong; one external_id has at
// most one job that did not fail.
//
// A clientID is opaque here. A client is live or test as a whole, so companies
// with test credentials never meet live ones.
//
// Failure policy: a job is a leased row (see [lease.Queue]): it ends in one commit
// that carries the lease's token, so a job that runs twice, on one node or on two,
// ends once. One that was begun crashesMax times without an end is failed with
// internal_error, so that a poisonous certificate cannot stop the service.
// Enrolling at an authority comes before that commit and is therefore
// repeatable by contract.
//
// What a body is judged by: check digits decide only where the country's authority
// would refuse the number. A PKCS#12 has at most 64 KiB and 600,000 rounds, looked
// at before any key is derived from its password; its subject must name the tax
// number wherever the country has an authority. Unknown members are ignored and
// named in the answer, unknown settings refused: a setting that does nothing is a
// mistake that shows only in what is filed. Country, tax number and external_id are
// identity and never change: what was issued hangs on them.
//
// A look of its own (branding) lets a marketplace's sellers have their own paper;
// what a company leaves out is its client's. A picture is decoded once when it
// arrives, so that no document fails on it later, kept by its digest, and never
// shown again.
package onboarding

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/secret"
	"tributary/internal/turnstile"
)

// Config is what Companies stand on. DB, Atlas and BaseURL are required;
// Sealer as soon as a company has credentials.
type Config struct {
	DB      *db.DB
	Atlas   *country.Atlas
	BaseURL string // {base_url} of every address handed out, without a slash at the end

	// Sealer answers the sealer of a client's tax credentials. It is called
	// outside of writes and should keep what it made.
	Sealer func(ctx context.Context, clientID string) (*secret.Sealer, error)

	// Enabled reports whether a client may onboard companies of a country
	// (upper case). Nil: every country of the atlas.
	Enabled func(ctx context.Context, clientID, countryCode string) (bool, error)

	// CredentialsChanged is called in the commit that replaces a company's
	// credentials, so that what waits for them goes on. It may run twice.
	CredentialsChanged func(tx *db.Tx, clientID, companyID string) error

	// Stored is called in the commit that stores a company or a change of it. It
	// may run twice. Nil: nobody wants to know.
	Stored func(tx *db.Tx, clientID string, live bool, s country.Supplier) error

	Alerts *alert.Alerts    // nil: alarms are logged only
	Log    *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now; certificates are compared with it
}

// Companies is the onboarding slice of a running program. It is safe for concurrent use.
type Companies struct {
	cfg     Config
	db      *db.DB
	log     *slog.Logger
	now     func() time.Time
	openFor time.Duration      // the constant, unless a test has all the time
	opening *turnstile.Gate    // of certificates: pure computing, so as many at a time as there are cores but one
	ended   func(jobID string) // tests wait for it; nil otherwise

	logosMu sync.Mutex
	logos   map[string][]byte // by digest, see Logo
}

// New returns the companies of a database. It starts nothing: see
// [Companies.Workers], [Companies.Periodic] and [Companies.Resume].
func New(cfg Config) *Companies {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sealer == nil {
		cfg.Sealer = func(context.Context, string) (*secret.Sealer, error) { return nil, errNoSealer }
	}
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/")
	return &Companies{
		cfg: cfg, db: cfg.DB, log: cfg.Log, now: cfg.Now,
		openFor: openFor, opening: turnstile.New(int64(max(1, runtime.GOMAXPROCS(0)-1)), 2*workedAtOnce),
		logos: map[string][]byte{},
	}
}

// errNoSealer is the operator's mistake: credentials came, and nothing can keep them.
var errNoSealer = fault.New(fault.Internal, "no sealer of tax credentials is configured")

func notFound(what string) *fault.Error {
	return fault.New(fault.NotFound, "unknown %s", what).
		With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "the " + what + " is unknown"})
}

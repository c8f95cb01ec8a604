// Package recovery brings filings back into step with authorities: after a
// restored backup, after a broken chain, and whenever somebody asks for a
// comparison.
//
// It owns restorations and restored_suppliers: which supplier's authority has to
// be asked, and how far that has come. It writes nothing of filing's; it speaks
// to it in five verbs: hold a supplier, release it, relink a chain, leave
// documents for adoption, close the intake (and open it again). Law: nothing is
// filed for a supplier of whom its authority may hold what we do not know.
//
// A document that an authority lists and we do not know is a gap if it was
// registered after the backup's last acceptance, less an hour for clocks; what is
// older is somebody else's. Where a list shows cancellations only as a mark on the
// original, the mark is a gap of its own. Two clients that onboarded the same tax
// number see each other's documents as gaps until one submits such a number itself:
// nothing tells them apart.
package recovery

import (
	"log/slog"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/filing"
	"tributary/internal/onboarding"
)

// Config is what a Recovery stands on.
type Config struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
	Filing    *filing.Service
	Alerts    *alert.Alerts
	Log       *slog.Logger
}

// Recovery is the slice of a running program that asks authorities what they hold.
type Recovery struct {
	cfg   Config
	db    *db.DB
	log   *slog.Logger
	asked chan struct{} // a supplier's question has an answer
	poll  time.Duration // tests only: between looks at idle questions, see lease.Pump
}

// New returns a recovery; [Recovery.Run] asks.
func New(cfg Config) *Recovery {
	return &Recovery{cfg: cfg, db: cfg.DB, log: cfg.Log, asked: make(chan struct{}, 1)}
}

// LookEvery sets how often idle questions are looked at, for tests. Before Run.
func (s *Recovery) LookEvery(d time.Duration) { s.poll = d }

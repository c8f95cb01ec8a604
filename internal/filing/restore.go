package filing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
)

// A restored backup is older than what the authorities hold. Until each of them
// was asked, the intake is closed and nothing is filed; what an authority holds
// and the backup does not know is a gap, which the operation that comes for it
// adopts instead of being filed a second time (see batch.fillGap).
//
// Failure policy: that a backup was restored is a row, not a flag of a process:
// it outlives crashes and binds every node. A supplier whose authority could
// not be asked stays held for as long as that lasts, while the others go on:
// late filings can be made good, a second registration cannot.

// askState is where the question about a supplier stands.
type askState string

const (
	stateAsking   askState = "asking"   // not answered yet; the intake stays closed
	stateUnasked  askState = "unasked"  // the authority did not answer; it is asked on, and the intake does not wait for it
	stateUnlisted askState = "unlisted" // the authority cannot be asked; a person decides
	stateChain    askState = "chain"    // the authority's chain is not ours, after a backup or without one; a person decides
	stateAsked    askState = "asked"    // everything is known
)

const (
	asksAtOnce      = 8           // suppliers asked at the same time on this node
	asksBeforeOpen  = 3           // failures in a row after which the intake no longer waits for a supplier
	marginDays      = 3           // before the first day that a lost document can be expected on
	restoredLook    = time.Second // between looks at the restoration of another node
	closedFor       = 30 * time.Second
	registeredSlack = time.Hour // between the authority's clock and ours
	companiesPage   = 100
)

// BeginRestore closes the intake and lists what has to be asked: every
// supplier with an authority, from the first day on which a document that the
// backup does not know can be expected. since replaces that day where it is not
// zero. A restoration that is under way goes on as it is. Call it before
// anything is served or worked.
func (s *Service) BeginRestore(ctx context.Context, since country.Day) error {
	under, err := s.restoring(ctx)
	if err != nil {
		return fmt.Errorf("look for a restoration: %w", err)
	}
	if under {
		return s.LearnRestore(ctx)
	}
	known, err := s.habits(ctx)
	if err != nil {
		return fmt.Errorf("learn what the backup knows: %w", err)
	}
	companies, err := s.filers(ctx)
	if err != nil {
		return fmt.Errorf("list the suppliers: %w", err)
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error { return s.storeRestore(tx, known, companies, since) })
	if err != nil {
		return fmt.Errorf("begin a restoration: %w", err)
	}
	return s.LearnRestore(ctx)
}

func (s *Service) storeRestore(tx *db.Tx, known habits, companies []onboarding.AnyCompany, since country.Day) error {
	now := db.Micros(tx.Now())
	rows := make([][]any, len(companies))
	for i, c := range companies {
		first, ahead := known.expected(c, tx.Now(), s.zoneOf(c))
		if since != (country.Day{}) {
			first = since.String()
		}
		rows[i] = []any{c.ID, c.ClientID, strings.ToUpper(c.Meta.CountryCode), c.Live, string(stateAsking), first, first, ahead, now}
	}
	steps := []func() error{
		func() error {
			return tx.Exec(`INSERT INTO restorations (one, started_at, known_to) VALUES (1, $1, $2)
				ON CONFLICT (one) DO UPDATE SET started_at = excluded.started_at, known_to = excluded.known_to, ended_at = NULL`, now, db.Micros(known.to))
		},
		func() error { return tx.Exec("DELETE FROM restored_suppliers") },
		func() error {
			return tx.Insert("restored_suppliers", "supplier_id,client_id,country,live,state,first_day,next_day,ahead,due_at", rows...)
		},
		// Provably unsent when the backup was made is not provably unsent now.
		func() error {
			return tx.Exec("UPDATE operations SET stage = 'sent', sent_at = coalesce(sent_at, $1) WHERE stage = 'prepared'", now)
		},
		func() error {
			knows := "no transaction"
			if !known.to.IsZero() {
				knows = "everything accepted until " + Stamp(known.to)
			}
			return s.cfg.Alerts.RaiseIn(tx, alert.Restoring, "service",
				fmt.Sprintf("a backup was restored that knows %s; the intake is closed until the authorities were asked about %d suppliers", knows, len(rows)))
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// habits is what the backup says about when documents come.
type habits struct {
	to      time.Time // the last acceptance
	of      map[[2]string]habit
	clients map[string]habit
}

// habit is how far from their date the documents of one supplier, or of all
// suppliers of a client, were accepted.
type habit struct {
	late, early time.Duration
	open        time.Time // the earliest date of an operation that has not ended; zero: none
}

func (h habit) or(more habit) habit {
	h.late, h.early = max(h.late, more.late), max(h.early, more.early)
	return h
}

// habits reads every operation once. Backfills are left out: nobody filed them.
func (s *Service) habits(ctx context.Context) (known habits, err error) {
	known = habits{of: map[[2]string]habit{}, clients: map[string]habit{}}
	err = s.db.Read(ctx, func(r db.Reader) error {
		rows, err := r.Query(`SELECT client_id, supplier_id, max(accepted_at), max(accepted_at - dated_at), max(dated_at - accepted_at),
			min(CASE WHEN status = 'PROCESSING' THEN dated_at END) FROM operations WHERE kind <> 'BACKFILL' GROUP BY client_id, supplier_id`)
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var key [2]string
			var last, late, early int64
			var h habit
			if err := scan(&key[0], &key[1], &last, &late, &early, db.NullInstant(&h.open)); err != nil {
				return err
			}
			h.late, h.early = time.Duration(late)*time.Microsecond, time.Duration(early)*time.Microsecond
			known.of[key], known.clients[key[0]] = h, known.clients[key[0]].or(h)
			if at := db.FromMicros(last); at.After(known.to) {
				known.to = at
			}
			return nil
		})
	})
	return known, err
}

// expected is the first day on which a lost document of a supplier may be
// dated, and how many days after today may be.
func (k habits) expected(c onboarding.AnyCompany, now time.Time, zone *time.Location) (first string, ahead int64) {
	h, ok := k.of[[2]string{c.ClientID, c.ID}]
	if !ok {
		h = k.clients[c.ClientID] // its first sale may be among the lost ones
	}
	from := k.to
	if from.IsZero() || from.After(now) {
		from = now
		if at := time.Time(c.CreatedAt); !at.IsZero() && at.Before(now) {
			from = at // the backup knows no sale at all
		}
	}
	from = from.Add(-max(0, h.late)).AddDate(0, 0, -marginDays)
	if !h.open.IsZero() && h.open.Before(from) {
		from = h.open
	}
	return from.In(zone).Format(time.DateOnly), int64(max(0, h.early)/(24*time.Hour)) + 1
}

// filers lists the companies of countries with an authority, of all clients.
func (s *Service) filers(ctx context.Context) (all []onboarding.AnyCompany, err error) {
	for cursor := ""; ; {
		page, next, err := s.cfg.Companies.ListAny(ctx, onboarding.AnyFilter{Limit: companiesPage, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(page, func(c onboarding.AnyCompany) bool {
			pack, ok := s.cfg.Atlas.Pack(c.Meta.CountryCode)
			return !ok || pack.Connect == nil
		})...)
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}

func (s *Service) zoneOf(c onboarding.AnyCompany) *time.Location {
	pack, _ := s.cfg.Atlas.Pack(c.Meta.CountryCode)
	return locate(s.cfg.Atlas, country.Supplier{Address: c.Address}, pack)
}

// restoring reports whether the intake is closed.
func (s *Service) restoring(ctx context.Context) (under bool, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT count(*) > 0 FROM restorations WHERE ended_at IS NULL").Scan(&under)
	})
	return under, err
}

// LearnRestore closes the intake of this process while a restoration is under
// way, whoever began it. Call it before anything is served.
func (s *Service) LearnRestore(ctx context.Context) error {
	under, err := s.restoring(ctx)
	if err != nil {
		return fmt.Errorf("look for a restoration: %w", err)
	}
	if under && s.closed.CompareAndSwap(false, true) {
		s.opened = make(chan struct{})
	}
	return nil
}

// Opened is closed when the intake is open.
func (s *Service) Opened() <-chan struct{} { return s.opened }

// errClosed is the answer to submissions until the authorities were asked.
func errClosed() error {
	return &fault.Error{Kind: fault.Unavailable, RetryAfter: closedFor,
		Message: "the service was restored from a backup and is asking the tax authorities what they hold; submit again later",
		Faults:  []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "transactions are not accepted until the restoration ends; reading works"}}}
}

// RunRestore asks until everything that can be asked was, and opens the intake
// in between; then it waits for companies that are onboarded again. A node that
// is no worker only waits for those that are. It returns when nothing can come
// any more, or ctx ends.
func (s *Service) RunRestore(ctx context.Context, worker bool) error {
	left, err := s.restoreLeft(ctx)
	if err != nil || left.none() && !s.closed.Load() {
		return err
	}
	asks, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if worker {
			pump := &db.Pump[askRow]{DB: s.db, Queue: askQueue, Log: s.log, InFlight: asksAtOnce, Work: s.ask, Poll: s.poll}
			pump.Run(asks) //nolint:errcheck // it has none
		}
	}()
	defer func() {
		stop()
		<-done
	}()
	for ctx.Err() == nil {
		left, err := s.restoreLeft(ctx)
		if err == nil && left.asking == 0 && s.closed.Load() {
			err = s.endRestore(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("watch the restoration", "error", err)
		}
		if err == nil && !s.closed.Load() && (left.none() || !worker) {
			return nil
		}
		s.pauseRestore(ctx)
	}
	return nil
}

// pauseRestore waits for news of a question.
func (s *Service) pauseRestore(ctx context.Context) {
	t := time.NewTimer(restoredLook)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.asked:
	case <-t.C:
	}
}

// restoreCount is what is left of a restoration.
type restoreCount struct {
	asking, due int
	recent      bool // companies may still be onboarded that it lost
}

func (c restoreCount) none() bool { return c.due == 0 && !c.recent }

func (s *Service) restoreLeft(ctx context.Context) (left restoreCount, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		began, err := restoredAt(r)
		if err != nil {
			return err
		}
		left.recent = !began.IsZero()
		return r.Row("SELECT coalesce(sum(CASE WHEN state = 'asking' THEN 1 ELSE 0 END), 0), count(due_at) FROM restored_suppliers").Scan(&left.asking, &left.due)
	})
	if err != nil {
		return left, fmt.Errorf("look what is left of the restoration: %w", err)
	}
	return left, nil
}

// endRestore opens the intake, unless a new restoration began meanwhile.
func (s *Service) endRestore(ctx context.Context) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec(`UPDATE restorations SET ended_at = $1 WHERE ended_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM restored_suppliers WHERE state = 'asking')`, db.Micros(tx.Now()))
	})
	if err != nil {
		return fmt.Errorf("end the restoration: %w", err)
	}
	under, err := s.restoring(ctx)
	if err != nil || under {
		return err
	}
	s.log.Info("the authorities were asked; the intake is open")
	s.closed.Store(false)
	close(s.opened)
	return nil
}

// RestoredSupplier is where a restoration stands with one supplier.
type RestoredSupplier struct {
	ClientID   string `json:"client_id"`
	SupplierID string `json:"supplier_id"`
	Country    string `json:"country_code"`
	State      string `json:"state"` // asking, unasked, unlisted, chain, asked
	FirstDay   string `json:"first_day"`
	NextDay    string `json:"next_day"` // days before it were asked for
	Found      int64  `json:"found"`    // documents that the authority holds and the backup did not
	Adopted    int64  `json:"adopted"`  // of these
	Trouble    string `json:"trouble"`
}

// Restored lists where the latest restoration stands, and suppliers whose chain
// was stopped without one. closed tells whether the intake is.
func Restored(r db.Reader) (list []RestoredSupplier, closed bool, err error) {
	if err := r.Row("SELECT count(*) > 0 FROM restorations WHERE ended_at IS NULL").Scan(&closed); err != nil {
		return nil, false, fmt.Errorf("read the restoration: %w", err)
	}
	list, err = db.Collect(r, func(scan func(...any) error) (v RestoredSupplier, err error) {
		return v, scan(&v.ClientID, &v.SupplierID, &v.Country, &v.State, &v.FirstDay, &v.NextDay, &v.Trouble, &v.Found, &v.Adopted)
	}, `SELECT s.client_id, s.supplier_id, s.country, s.state, s.first_day, s.next_day, s.trouble, count(a.supplier_id), count(a.operation_id)
		FROM restored_suppliers s LEFT JOIN adoptions a ON a.client_id = s.client_id AND a.supplier_id = s.supplier_id
		GROUP BY s.client_id, s.supplier_id, s.country, s.state, s.first_day, s.next_day, s.trouble ORDER BY s.client_id, s.supplier_id`)
	if err != nil {
		return nil, false, fmt.Errorf("read the restoration: %w", err)
	}
	return list, closed, nil
}

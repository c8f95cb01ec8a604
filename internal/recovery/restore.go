package recovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/inbox"
	"tributary/internal/lease"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/series"
)

// A restored backup is older than what the authorities hold. Until each of them
// was asked, the intake is closed and nothing is filed; what an authority holds
// and the backup does not know is a gap, which the operation that comes for it
// adopts instead of being filed a second time.
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
	registeredSlack = time.Hour   // between the authority's clock and ours
	companiesPage   = 100
)

// Begin closes the intake and lists what has to be asked: every
// supplier with an authority, from the first day on which a document that the
// backup does not know can be expected. since replaces that day where it is not
// zero. A restoration that is under way goes on as it is. Call it before
// anything is served or worked.
func (s *Recovery) Begin(ctx context.Context, since country.Day) error {
	under, err := s.restoring(ctx)
	if err != nil {
		return fmt.Errorf("find a restore: %w", err)
	}
	if under {
		return s.learn(ctx)
	}
	known, err := s.habits(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the backup: %w", err)
	}
	companies, err := s.filers(ctx)
	if err != nil {
		return fmt.Errorf("list the suppliers: %w", err)
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error { return s.storeRestore(tx, known, companies, since) })
	if err != nil {
		return fmt.Errorf("start a restore: %w", err)
	}
	return s.learn(ctx)
}

func (s *Recovery) storeRestore(tx *db.Tx, known habits, companies []onboarding.AnyCompany, since country.Day) error {
	now := db.Micros(tx.Now())
	rows := make([][]any, len(companies))
	for i, c := range companies {
		first, ahead := known.expected(c, tx.Now(), s.zoneOf(c))
		if since != (country.Day{}) {
			first = since.String()
		}
		rows[i] = []any{c.ID, c.ClientID, strings.ToUpper(c.Meta.CountryCode), c.Live, string(stateAsking), first, first,
			ahead, now}
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
		func() error { return s.holdAll(tx, companies) },
		func() error { return s.cfg.Filing.Intake.Close(tx, tx.Now().Add(reonboardedWithin)) },
		func() error { return s.cfg.Filing.TakeForSent(tx) },
		func() error { return series.Leap(tx, s.cfg.Atlas, s.cfg.DB.Wall()) },
		func() error { return files.Hold(tx) },
		func() error { return rewind(tx, known.to) },
		func() error {
			knows := "no transaction"
			if !known.to.IsZero() {
				knows = "everything accepted until " + result.Stamp(known.to)
			}
			return s.cfg.Alerts.RaiseIn(tx, alert.Restoring, "service",
				fmt.Sprintf("a backup was restored that contains %s; the intake is closed until the authorities have been queried for %s",
					knows, fault.Count(len(rows), "supplier")))
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// rewind has documents that others sent brought again: those of the lost time, and of
// some days before, because files may come from an older backup than the records.
func rewind(tx *db.Tx, to time.Time) error {
	if to.IsZero() {
		to = tx.Now()
	}
	return inbox.Rewind(tx, to.AddDate(0, 0, -marginDays))
}

// holdAll lets nothing be filed for suppliers whose authority has not been asked.
func (s *Recovery) holdAll(tx *db.Tx, companies []onboarding.AnyCompany) error {
	for _, c := range companies {
		err := hold.Hold{Place: placeOf(c), Reason: fault.Held, Why: unaskedWhy}.Store(tx)
		if err != nil {
			return err
		}
	}
	return nil
}

func placeOf(c onboarding.AnyCompany) filing.Place {
	return filing.Place{Scope: c.ClientID, Code: strings.ToUpper(c.Meta.CountryCode), Live: country.Live(c.Live),
		SupplierID: c.ID}
}

// unaskedWhy is why a supplier is held until its authority has answered.
const unaskedWhy = "a backup was restored, and the authority has not been queried yet"

// habits is what the backup says about when documents come.
type habits struct {
	to      time.Time // the last acceptance
	of      map[[2]string]operation.FilingLag
	clients map[string]operation.FilingLag
}

func (s *Recovery) habits(ctx context.Context) (known habits, err error) {
	known = habits{of: map[[2]string]operation.FilingLag{}, clients: map[string]operation.FilingLag{}}
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err := operation.Lags(r)
		for _, h := range list {
			known.of[[2]string{h.ClientID, h.SupplierID}] = h
			all := known.clients[h.ClientID]
			all.Late, all.Early = max(all.Late, h.Late), max(all.Early, h.Early)
			known.clients[h.ClientID] = all
			if h.Last.After(known.to) {
				known.to = h.Last
			}
		}
		return err
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
	from = from.Add(-max(0, h.Late)).AddDate(0, 0, -marginDays)
	if !h.Open.IsZero() && h.Open.Before(from) {
		from = h.Open
	}
	return from.In(zone).Format(time.DateOnly), int64(max(0, h.Early)/(24*time.Hour)) + 1
}

// filers lists the companies of countries with an authority, of all clients.
func (s *Recovery) filers(ctx context.Context) (all []onboarding.AnyCompany, err error) {
	for cursor := ""; ; {
		page, next, err := s.cfg.Companies.ListAny(ctx, onboarding.AnyFilter{Limit: companiesPage, Cursor: cursor})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(page, func(c onboarding.AnyCompany) bool {
			pack, ok := s.cfg.Atlas.Pack(c.Meta.CountryCode)
			return !ok || pack.Connect == nil || pack.Keeps(&country.Supplier{CountryCode: pack.Code, Settings: c.Settings})
		})...)
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}

func (s *Recovery) zoneOf(c onboarding.AnyCompany) *time.Location {
	pack, _ := s.cfg.Atlas.Pack(c.Meta.CountryCode)
	return s.cfg.Atlas.Zone(c.Address, pack)
}

// restoring reports whether the intake is closed.
func (s *Recovery) restoring(ctx context.Context) (under bool, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		return r.Row("SELECT count(*) > 0 FROM restorations WHERE ended_at IS NULL").Scan(&under)
	})
	return under, err
}

// learn closes the intake of this process.
func (s *Recovery) learn(ctx context.Context) error {
	_, err := s.cfg.Filing.Intake.Learn(ctx)
	return err
}

// Run asks until everything that can be asked was, and opens the intake
// in between; then it waits for companies that are onboarded again. A node that
// is no worker only waits for those that are. It returns when nothing can come
// any more, or ctx ends.
func (s *Recovery) Run(ctx context.Context, worker bool) error {
	open, err := s.cfg.Filing.Intake.Learn(ctx)
	if err != nil {
		return err
	}
	left, err := s.left(ctx)
	if err != nil || left.none() && open {
		return err
	}
	asks, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if worker {
			pump := &lease.Pump[askRow]{DB: s.db, Queue: askQueue, Log: s.log, InFlight: asksAtOnce, Work: s.ask, Poll: s.poll}
			_ = pump.Run(asks) // it has none
		}
	}()
	defer func() {
		stop()
		<-done
	}()
	for ctx.Err() == nil {
		if s.watch(ctx, worker) {
			return nil
		}
		s.pause(ctx)
	}
	return nil
}

// watch lists newcomers, opens the intake when everybody was asked, and reports
// whether nothing can come any more.
func (s *Recovery) watch(ctx context.Context, worker bool) (done bool) {
	var open bool
	var left leftover
	err := s.enlist(ctx, worker)
	if err == nil {
		left, err = s.left(ctx)
	}
	if err == nil && left.asking == 0 {
		err = s.end(ctx)
	}
	if err == nil {
		open, err = s.cfg.Filing.Intake.Learn(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("watch the restore", "error", err)
	}
	return err == nil && open && (left.none() || !worker)
}

// pause waits for news of a question.
func (s *Recovery) pause(ctx context.Context) {
	t := time.NewTimer(restoredLook)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.asked:
	case <-t.C:
	}
}

// leftover is what is left of a restoration.
type leftover struct {
	asking, due int
	recent      bool // companies may still be onboarded that it lost
}

func (c leftover) none() bool { return c.due == 0 && !c.recent }

func (s *Recovery) left(ctx context.Context) (left leftover, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		began, err := restoredAt(r)
		if err != nil {
			return err
		}
		left.recent = !began.IsZero()
		return r.Row("SELECT coalesce(sum(CASE WHEN state = 'asking' THEN 1 ELSE 0 END), 0), count(due_at) FROM restored_suppliers").Scan(&left.asking, &left.due)
	})
	if err != nil {
		return left, fmt.Errorf("read the progress of the restore: %w", err)
	}
	return left, nil
}

// end opens the intake, unless a new restoration began meanwhile.
func (s *Recovery) end(ctx context.Context) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		var ended bool
		err := tx.Row(`SELECT count(*) > 0 FROM restorations WHERE ended_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM restored_suppliers WHERE state = 'asking')`).Scan(&ended)
		if err != nil || !ended {
			return err
		}
		tx.OnCommit(func() { s.log.Info("the authorities were queried; the intake is open") })
		if err := tx.Exec("UPDATE restorations SET ended_at = $1 WHERE ended_at IS NULL", db.Micros(tx.Now())); err != nil {
			return err
		}
		if err := files.EndHold(tx, tx.Now()); err != nil {
			return err
		}
		return s.cfg.Filing.Intake.Open(tx)
	})
	if err != nil {
		return fmt.Errorf("finish the restore: %w", err)
	}
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
		return nil, false, fmt.Errorf("read the restore: %w", err)
	}
	list, err = db.Collect(r, func(scan func(...any) error) (v RestoredSupplier, err error) {
		return v, scan(&v.ClientID, &v.SupplierID, &v.Country, &v.State, &v.FirstDay, &v.NextDay, &v.Trouble)
	}, "SELECT client_id, supplier_id, country, state, first_day, next_day, trouble FROM restored_suppliers ORDER BY client_id, supplier_id")
	if err != nil {
		return nil, false, fmt.Errorf("read the restore: %w", err)
	}
	adoptions, err := adoption.Counts(r)
	if err != nil {
		return nil, false, err
	}
	for i := range list {
		n := adoptions[[2]string{list[i].ClientID, list[i].SupplierID}]
		list[i].Found, list[i].Adopted = n[0], n[1]
	}
	list, err = withStopped(r, list)
	return list, closed, err
}

// withStopped adds, or shows as such, suppliers whose chain is stopped.
func withStopped(r db.Reader, list []RestoredSupplier) ([]RestoredSupplier, error) {
	holds, err := hold.List(r)
	for _, h := range holds {
		if h.Reason != fault.ChainStopped {
			continue
		}
		i := slices.IndexFunc(list, func(v RestoredSupplier) bool { return v.SupplierID == h.SupplierID && v.ClientID == h.Scope })
		if i < 0 {
			i, list = len(list), append(list, RestoredSupplier{ClientID: h.Scope, SupplierID: h.SupplierID, Country: h.Code})
		}
		list[i].State, list[i].Trouble = string(stateChain), h.Why
	}
	return list, err
}

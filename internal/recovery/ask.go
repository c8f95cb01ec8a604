package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/lease"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/transaction"
)

// askQueue leases suppliers whose authority must be asked.
var askQueue = &lease.Queue[askRow]{
	Table: "restored_suppliers", ID: "supplier_id", Key: "client_id", Columns: "country, live, next_day, ahead, found, failures",
	Scan: func(scan func(...any) error) (row askRow, err error) {
		var live bool
		err = scan(&row.code, &live, &row.nextDay, &row.ahead, &row.found, &row.failures)
		row.live = country.Live(live)
		return row, err
	},
}

// askRow is a supplier as the claim reads it.
type askRow struct {
	code     string
	live     country.Live
	nextDay  string
	ahead    int64
	found    int64
	failures int64
}

const (
	askTimeout    = 5 * time.Minute // for one day of one supplier, all pages
	daysPerRecord = 30              // days asked between two records of progress, where they show no gap
)

// question is one holder's turn at asking about one supplier.
type question struct {
	r        *Recovery
	lease    *lease.Lease[askRow] // nil where a person asks
	at       filing.Place
	supplier country.Supplier
	creds    country.Credentials
	channel  country.Channel
	zone     *time.Location
	knownTo  time.Time // everything accepted until then is in the backup
	began    time.Time // the restoration
	next     string    // the next day to ask for
	found    int64
}

// ask reads an authority's list of one supplier, day by day, and stores the gaps.
//
// Failure policy: each day's gaps are stored before the day counts as asked; a
// crash asks some days again, which finds the same gaps. What could not be read
// whole is asked again, and meanwhile nothing of the supplier is filed.
func (s *Recovery) ask(ctx context.Context, lease *lease.Lease[askRow]) {
	q := &question{r: s, lease: lease, next: lease.Row.nextDay, found: lease.Row.found,
		at: filing.Place{Scope: lease.Key, Code: lease.Row.code, Live: lease.Row.live, SupplierID: lease.ID}}
	state, err := q.run(ctx)
	var early *tooEarly
	var used *country.Exhausted
	switch {
	case errors.Is(err, db.ErrStale):
		return // somebody else asks now
	case errors.As(err, &early):
		err = s.db.Write(ctx, func(tx *db.Tx) error { return q.wait(tx, early.until, early) })
	case errors.As(err, &used):
		until := s.db.Now().Add(used.Until.Sub(s.db.Wall()))
		err = s.db.Write(ctx, func(tx *db.Tx) error { return q.wait(tx, until, used) })
	case ctx.Err() != nil:
		err = s.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error { return lease.Finish(tx, tx.Now()) })
	case err != nil:
		err = s.db.Write(ctx, func(tx *db.Tx) error { return q.fail(tx, err) })
	default:
		err = s.db.Write(ctx, func(tx *db.Tx) error { return q.end(tx, state) })
	}
	if err != nil && !errors.Is(err, db.ErrStale) {
		s.log.Error("release a restored supplier", "supplier", lease.ID, "error", err)
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

func (q *question) run(ctx context.Context) (state askState, err error) {
	if err := q.open(ctx); err != nil {
		return "", err
	}
	register, ok := q.channel.(country.Register)
	if !ok {
		return stateUnlisted, nil
	}
	if shown := q.began.Add(q.channel.Limits().VisibleAfter); shown.After(q.r.db.Now()) {
		return "", &tooEarly{shown}
	}
	switch err := q.days(ctx, register); {
	case errors.Is(err, country.ErrNoList):
		return stateUnlisted, nil
	case err != nil:
		return "", err
	}
	if !q.channel.Limits().Chain {
		return stateAsked, nil
	}
	return q.compareChain(ctx)
}

// tooEarly says that an authority may not show yet what it took shortly before
// the backup was restored.
type tooEarly struct{ until time.Time }

func (e *tooEarly) Error() string {
	return "the authority may not list before " + result.Stamp(e.until) + " everything that it holds"
}

// wait asks later. The intake does not wait for it; the supplier stays held.
func (q *question) wait(tx *db.Tx, until time.Time, why error) error {
	if err := q.lease.Finish(tx, until); err != nil {
		return err
	}
	return tx.Exec("UPDATE restored_suppliers SET state = 'unasked', trouble = $1 WHERE supplier_id = $2",
		why.Error(), q.lease.ID)
}

func (q *question) open(ctx context.Context) (err error) {
	pack, ok := q.r.cfg.Atlas.Pack(q.at.Code)
	if !ok || pack.Connect == nil {
		return fmt.Errorf("country %s has no authority in this program", q.at.Code)
	}
	if q.channel, err = q.r.cfg.Atlas.Channel(pack.Code, q.at.Live); err != nil {
		return err
	}
	var known, began int64
	err = q.r.db.Read(ctx, func(r db.Reader) error {
		if q.supplier, err = q.r.cfg.Companies.Supplier(r, q.at.Scope, q.at.SupplierID); err != nil {
			return err
		}
		return r.Row("SELECT coalesce(max(known_to), 0), coalesce(max(started_at), 0) FROM restorations").Scan(&known, &began)
	})
	if err != nil {
		return fmt.Errorf("read the supplier: %w", err)
	}
	q.knownTo, q.began, q.zone = db.FromMicros(known), db.FromMicros(began), q.r.cfg.Atlas.Zone(q.supplier.Address, pack)
	if q.creds, err = q.r.cfg.Companies.Credentials(ctx, q.at.Scope, q.at.SupplierID); err != nil {
		return fmt.Errorf("open the supplier's credentials: %w", err)
	}
	return nil
}

// days asks for every day from where the last holder stopped to the last on
// which a document may be dated.
func (q *question) days(ctx context.Context, register country.Register) error {
	at, err := time.Parse(time.DateOnly, q.next)
	if err != nil {
		return fmt.Errorf("read the next day: %w", err)
	}
	last := q.r.db.Now().In(q.zone).AddDate(0, 0, int(q.lease.Row.ahead)).Format(time.DateOnly)
	for n := 1; at.Format(time.DateOnly) <= last; n++ {
		day := country.Day{Year: at.Year(), Month: at.Month(), Day: at.Day()}
		call, cancel := context.WithTimeout(ctx, askTimeout)
		theirs, err := register.Registered(call, q.supplier, day, q.creds)
		cancel()
		if err != nil {
			return fmt.Errorf("query the authority's documents: %w", err)
		}
		gaps, err := q.unknown(ctx, day, theirs)
		if err != nil {
			return err
		}
		at = at.AddDate(0, 0, 1)
		q.next = at.Format(time.DateOnly)
		if len(gaps) > 0 || n%daysPerRecord == 0 {
			if err := q.record(ctx, gaps); err != nil {
				return err
			}
		}
	}
	return nil
}

// record leaves the gaps of a day for adoption, and stores which day comes next.
func (q *question) record(ctx context.Context, gaps []adoption.Gap) error {
	found := q.found
	err := q.r.db.Write(ctx, func(tx *db.Tx) error {
		if err := q.lease.Guard(tx); err != nil {
			return err
		}
		added, err := adoption.Leave(tx, q.at, gaps)
		if err != nil {
			return err
		}
		found = q.found + added
		return tx.Exec("UPDATE restored_suppliers SET next_day = $1, found = $2 WHERE supplier_id = $3", q.next, found, q.lease.ID)
	})
	if err != nil {
		return fmt.Errorf("store gaps: %w", err)
	}
	q.found = found
	return nil
}

func gapOf(e country.Entry, day country.Day) adoption.Gap {
	return adoption.Gap{Number: e.Number, Reference: e.Reference, ID1: e.AuthorityID1, ID2: e.AuthorityID2, Kind: e.Kind,
		Day:   day.String(),
		Gross: e.Gross, Net: e.Net, Tax: e.Tax, Currency: e.Currency, Customer: e.Customer, Sales: e.Sales, Lines: e.Lines, SHA256: e.SHA256, QRCode: e.QRCode, At: e.At}
}

// unknown leaves of a day's list what the backup does not know as SUCCESS.
// What was registered before the backup's last acceptance is not lost but
// somebody else's: it stays the authority's to refuse.
func (q *question) unknown(ctx context.Context, day country.Day, theirs []country.Entry) (gaps []adoption.Gap, err error) {
	var rest []country.Entry
	for _, e := range theirs {
		if q.afterBackup(e) || e.Cancelled {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return nil, nil
	}
	ours, err := q.ours(ctx, rest)
	if err != nil {
		return nil, err
	}
	if !ours.covers(rest) {
		// Some countries' numbers at the authority differ from the client's own.
		near, err := q.r.held(ctx, q.at, [2]time.Time{
			time.Date(day.Year, day.Month, day.Day-1, 0, 0, 0, 0, q.zone),
			time.Date(day.Year, day.Month, day.Day+2, 0, 0, 0, 0, q.zone)})
		if err != nil {
			return nil, err
		}
		ours.add(near)
	}
	for _, e := range rest {
		own, known := ours.find(e)
		lost := !known && q.afterBackup(e)
		if lost {
			gaps = append(gaps, gapOf(e, day))
		}
		if e.Cancelled && e.Kind == "" && (lost || known && !own.Cancelled) {
			gaps = append(gaps, adoption.Gap{Kind: transaction.Cancellation, Reference: e.Number, Day: day.String()})
		}
	}
	return gaps, nil
}

// afterBackup reports whether an entry may have been registered after the
// backup's last acceptance.
func (q *question) afterBackup(e country.Entry) bool {
	return e.At.IsZero() || !e.At.Before(q.knownTo.Add(-registeredSlack))
}

// ownByNumber are our successes under the authority's numbers.
type ownByNumber map[string][]operation.Own

func (m ownByNumber) add(list []operation.Own) {
	for _, own := range list {
		if own.Status == filing.Success && own.Number != "" {
			m[own.Number] = append(m[own.Number], own)
		}
	}
}

// find looks for the document of an entry: the same number and, where both
// sides have one, the same id.
func (m ownByNumber) find(e country.Entry) (operation.Own, bool) {
	for _, own := range m[e.Number] {
		if own.AuthorityID == "" || e.AuthorityID1 == "" || own.AuthorityID == e.AuthorityID1 {
			return own, true
		}
	}
	return operation.Own{}, false
}

func (m ownByNumber) covers(list []country.Entry) bool {
	for _, e := range list {
		if _, known := m.find(e); !known {
			return false
		}
	}
	return true
}

// ours reads our successes under the numbers of a list.
func (q *question) ours(ctx context.Context, theirs []country.Entry) (ownByNumber, error) {
	var numbers []string
	for _, e := range theirs {
		numbers = append(numbers, e.Number)
	}
	found := ownByNumber{}
	err := q.r.db.Read(ctx, func(r db.Reader) error {
		list, err := operation.OwnUnder(r, q.r.cfg.DB, q.at, numbers)
		found.add(list)
		return err
	})
	return found, err
}

// fail stores that an authority did not answer. The intake waits for three
// tries; the supplier is held until one succeeds.
func (q *question) fail(tx *db.Tx, cause error) error {
	failures, state := q.lease.Row.failures+1, stateAsking
	if failures >= asksBeforeOpen {
		state = stateUnasked
	}
	if err := q.lease.Finish(tx, tx.Now().Add(q.r.cfg.Filing.Pause(failures))); err != nil {
		return err
	}
	if failures == asksBeforeOpen {
		if err := q.r.cfg.Alerts.RaiseIn(tx, alert.RestoredUnasked, q.subject(),
			"filing resumes when the authority has been queried: "+cause.Error()); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		q.r.log.Warn("the authority could not be queried after a restored backup", "supplier", q.lease.ID, "failures",
			failures, "error", cause)
	})
	return tx.Exec("UPDATE restored_suppliers SET state = $1, failures = $2, trouble = $3 WHERE supplier_id = $4",
		string(state), failures, cause.Error(), q.lease.ID)
}

// subject names the supplier in alerts, as lanes do.
func (q *question) subject() string { return q.at.Scope + "/" + q.at.SupplierID }

// end stores what the answers mean for the supplier.
func (q *question) end(tx *db.Tx, state askState) error {
	if err := q.lease.Finish(tx, time.Time{}); err != nil {
		return err
	}
	trouble, name, reason := "", alert.Name(""), fault.Held
	switch state {
	case stateUnlisted:
		if err := adoption.Unlisted(tx, q.at, q.began); err != nil {
			return err
		}
		name, trouble = alert.RestoredUnasked,
			"nothing is filed: this authority cannot list its documents; compare with its portal, then release the supplier"
	case stateChain:
		reason = fault.ChainStopped
		name, trouble = alert.ChainMismatch, fmt.Sprintf(
			"nothing is filed: the chain at the authority differs from the restored backup, which lacks %d documents", q.found)
	}
	if name != "" {
		if err := q.r.cfg.Alerts.RaiseIn(tx, name, q.subject(), trouble); err != nil {
			return err
		}
		if err := (hold.Hold{Place: q.at, Reason: reason, Why: trouble}).Store(tx); err != nil {
			return err
		}
	}
	if q.found > 0 {
		text := fmt.Sprintf("documents at the authority that the restored backup lacks: %d; each is adopted when the client submits it again", q.found)
		if err := q.r.cfg.Alerts.RaiseIn(tx, alert.RestoredGaps, q.subject(), text); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		q.r.log.Info("the authority was queried after a restored backup", "supplier", q.lease.ID, "state", string(state),
			"gaps", q.found)
	})
	err := tx.Exec("UPDATE restored_suppliers SET state = $1, failures = 0, trouble = $2, next_day = $3 WHERE supplier_id = $4", string(state), trouble, q.next, q.lease.ID)
	if err != nil || state != stateAsked {
		return err
	}
	return q.r.cfg.Filing.Release(tx, q.at)
}

// Release lets a supplier file whose authority could not be asked: a person has
// made sure, at its portal or with the client, that what waits is not
// registered. It is fault.Conflict for one that is not held, and for a chain,
// which [Recovery.ResumeChain] goes on. also joins the commit, for whoever keeps
// a log; it may be nil.
func (s *Recovery) Release(ctx context.Context, scope, supplierID string, also func(tx *db.Tx) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		hold, err := s.holdOf(tx, scope, supplierID)
		if err != nil {
			return err
		}
		state, err := stateOf(tx, supplierID)
		if err != nil {
			return err
		}
		if state != stateUnasked && state != stateUnlisted {
			return fault.New(fault.Conflict, "the supplier cannot be released: it is %q", cmp.Or(string(state), string(hold.Reason)))
		}
		if err := tx.Exec("UPDATE restored_suppliers SET state = 'asked', due_at = NULL, lease_until = NULL, lease_node = NULL, trouble = 'released' WHERE supplier_id = $1", supplierID); err != nil {
			return err
		}
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		return s.cfg.Filing.Release(tx, hold.Place)
	})
}

// holdOf is why a supplier is held: fault.NotFound for one that the client does
// not have, fault.Conflict for one that is not held.
func (s *Recovery) holdOf(r db.Reader, scope, supplierID string) (hold.Hold, error) {
	if _, err := s.cfg.Companies.Supplier(r, scope, supplierID); err != nil {
		return hold.Hold{}, err
	}
	hold, held, err := hold.Of(r, scope, supplierID)
	if err == nil && !held {
		err = fault.New(fault.Conflict, "this supplier is not on hold")
	}
	return hold, err
}

// stateOf is where the question about a supplier stands; "" when nobody asks.
func stateOf(r db.Reader, supplierID string) (askState, error) {
	var state string
	err := r.Row("SELECT state FROM restored_suppliers WHERE supplier_id = $1", supplierID).Scan(&state)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return askState(state), err
}

// CredentialsChanged lets an authority that refused the old credentials say at
// once what it holds.
func CredentialsChanged(tx *db.Tx, clientID, companyID string) error {
	tx.Wake(askQueue.Table)
	return tx.Exec("UPDATE restored_suppliers SET due_at = $1 WHERE supplier_id = $2 AND client_id = $3 AND state = 'unasked' AND lease_until IS NULL",
		db.Micros(tx.Now()), companyID, clientID)
}

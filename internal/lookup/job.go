package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/webhook"
)

const (
	singlesAtOnce = 8  // of one client on one node
	batchesAtOnce = 4  // on one node: the register's own limits allow no more speed, and others want their turn
	workedMax     = 64 // on one node; most of them wait for the register
	flushEntries  = 500
	flushEvery    = time.Second
	crashesMax    = 3
	slotWait      = time.Second
	waitMax       = time.Hour       // longer than any pause here
	retryOwn      = 5 * time.Second // after a trouble of ours
	giveBackFor   = 5 * time.Second
)

// errHalted ends the work on a batch that was canceled.
var errHalted = errors.New("the batch was canceled")

const (
	lookupsTable = "lookups"
	laneOwnerEnd = "/"
)

// queue has a lane for each client and kind: somebody who waits for one number
// does not wait for batches.
var queue = &lease.Queue[header]{Table: lookupsTable, ID: "lookup_id", Key: "lane", Group: laneOwnerEnd,
	Columns: "client_id, kind", Longest: fmt.Sprint(waitMax.Microseconds()),
	Scan: func(scan func(...any) error) (h header, err error) { return h, scan(&h.clientID, &h.kind) }}

func (h *header) lane() string { return h.clientID + laneOwnerEnd + string(h.kind) }

// Run works lookups until ctx ends, clients in turns.
func (l *Lookups) Run(ctx context.Context) error {
	room := func(lane string) int {
		if strings.HasSuffix(lane, laneOwnerEnd+string(kindBatch)) {
			return 1
		}
		return singlesAtOnce
	}
	pump := &lease.Pump[header]{DB: l.db, Queue: queue, Log: l.log, Grace: l.cfg.Grace, InFlight: workedMax, Room: room,
		Work: func(ctx context.Context, lease *lease.Lease[header]) {
			if err := l.work(ctx, lease); err != nil && ctx.Err() == nil {
				l.log.Warn("retrying a lookup", "lookup_id", lease.ID, "error", err)
			}
		}}
	return pump.Run(ctx)
}

// Depth is how much there is to do.
func Depth(r db.Reader) (lease.Depth, error) { return queue.Depth(r) }

// turnLock orders what decides whose turn it is among a client's batches:
// without it a batch could find the one before it still running while that one
// ends without seeing who waits.
func turnLock(clientID string) string { return "lookup-turn:" + clientID }

// nextTurn lets the oldest batch of a client that has not ended be worked.
func nextTurn(tx *db.Tx, clientID string) error {
	tx.Wake(lookupsTable)
	return tx.Exec(turnSQL, db.Micros(tx.Now()), clientID)
}

// claimed is a lookup in our hands.
type claimed struct {
	header
	lease   *lease.Lease[header]
	crashes int64 // this time included
}

// work brings a lookup to its end, unless somebody else does.
func (l *Lookups) work(ctx context.Context, lease *lease.Lease[header]) error {
	if lease.Row.kind == kindBatch {
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		default:
			return l.giveBack(ctx, lease, slotWait)
		}
	}
	job := &claimed{header: lease.Row, lease: lease}
	job.id = lease.ID
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		if err := lease.Guard(tx); err != nil {
			return err
		}
		return tx.Row(beginSQL, job.id).Scan(&job.entries, &job.crashes)
	})
	if errors.Is(err, db.ErrStale) {
		return nil // canceled, or somebody else's
	}
	if err != nil {
		return fmt.Errorf("begin lookup %s: %w", job.id, err)
	}
	return l.carryOut(ctx, job)
}

// giveBack lets a lookup wait.
func (l *Lookups) giveBack(ctx context.Context, lease *lease.Lease[header], wait time.Duration) error {
	err := l.db.Write(ctx, func(tx *db.Tx) error { return lease.Finish(tx, tx.Now().Add(wait)) })
	if errors.Is(err, db.ErrStale) {
		return nil
	}
	return err
}

// carryOut asks what has no answer yet and ends the lookup.
func (l *Lookups) carryOut(parent context.Context, job *claimed) error {
	notes := &recorder{l: l, job: job}
	rest, err := l.load(parent, job)
	if err != nil {
		return l.leave(parent, notes, err)
	}
	notes.rows = rest.known
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	l.watch(job.id, stop)
	defer l.unwatch(job.id)

	var keeper sync.WaitGroup
	keeping, done := context.WithCancel(ctx)
	keeper.Go(func() {
		if err := notes.keep(keeping); err != nil {
			stop(err)
		}
	})
	if job.crashes > crashesMax {
		err = l.giveUp(ctx, job, rest, notes)
	} else {
		err = l.cfg.Validator.ValidateAll(ctx, rest.entries, func(i int, r Result) error {
			return notes.add(ctx, rest.positions[i], r)
		})
	}
	done()
	keeper.Wait()
	if err == nil {
		err = l.complete(ctx, job, notes.rows)
	}
	return l.leave(parent, notes, err)
}

// leave decides what becomes of a lookup that could not be brought to its end.
func (l *Lookups) leave(ctx context.Context, notes *recorder, err error) error {
	if err == nil || errors.Is(err, errHalted) || errors.Is(err, db.ErrStale) {
		return nil // ended, here or by somebody else
	}
	wait := retryOwn
	if ctx.Err() != nil {
		wait, err = 0, nil // the node stops; another goes on
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackFor)
	defer cancel()
	switch stored := notes.giveBack(back, wait); {
	case errors.Is(stored, db.ErrStale):
		return nil
	case stored != nil: // the lease runs out
		return errors.Join(err, stored)
	case err == nil:
		return nil
	}
	return fmt.Errorf("work on lookup %s: %w", notes.job.id, err)
}

// giveUp answers what could not be answered because the program died of it.
func (l *Lookups) giveUp(ctx context.Context, job *claimed, rest *remainder, notes *recorder) error {
	l.log.Error("a lookup was discarded after its workers crashed", "alert", "job_discarded", "lookup_id", job.id,
		"crashes", job.crashes-1)
	for _, position := range rest.positions {
		r := Result{Format: FormatValid, Status: StatusUnknown, IsBusiness: BusinessUnknown, ErrorCode: string(fault.InternalError)}
		if err := notes.add(ctx, position, r); err != nil {
			return err
		}
	}
	return nil
}

// complete stores the last answers, the end and the event in one commit.
func (l *Lookups) complete(ctx context.Context, job *claimed, rows [][]any) error {
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		if job.kind == kindBatch {
			if err := tx.Lock(turnLock(job.clientID)); err != nil {
				return err
			}
		}
		// The lease first: whoever lost it changes nothing.
		if err := job.lease.Finish(tx, time.Time{}); err != nil {
			return err
		}
		if err := tx.ExecOne(completeSQL, db.Micros(tx.Now()), job.id); err != nil {
			return err
		}
		if err := tx.Insert("lookup_answers", answerColumns, rows...); err != nil {
			return err
		}
		if err := l.cfg.Hooks.Notify(tx, webhook.Event{
			ClientID: job.clientID, Type: job.kind.event(), ResourceID: job.id, ResourcePath: job.kind.path(job.id),
		}); err != nil {
			return err
		}
		if job.kind == kindSingle {
			return nil
		}
		return nextTurn(tx, job.clientID)
	})
	if err != nil {
		return fmt.Errorf("complete lookup %s: %w", job.id, err)
	}
	return nil
}

// remainder is what a lookup still has to learn.
type remainder struct {
	entries   []Entry
	positions []int   // of entries
	known     [][]any // answers to store: an equal entry was answered before the last interruption
}

// load reads the entries that have no answer. Entries that mean the same
// number as an answered one get its answer, so that even a lookup that was
// interrupted between two of them asks once.
func (l *Lookups) load(ctx context.Context, job *claimed) (*remainder, error) {
	rest := &remainder{}
	err := l.db.Read(ctx, func(r db.Reader) error {
		*rest = remainder{}
		answers, err := readAnswers(r, job.id, 0, job.entries)
		if err != nil {
			return err
		}
		learnt := map[string]*Result{}
		var open []int
		var asked []Entry
		err = eachEntry(r, span{job.id, 0, job.entries}, func(position int, e storedEntry) {
			entry := Entry{Country: e.Country, Number: e.Number}
			switch answer := answers[position]; {
			case e.Status != "":
			case answer != nil:
				learnt[l.key(entry)] = answer
			default:
				open, asked = append(open, position), append(asked, entry)
			}
		})
		delete(learnt, "")
		for i, position := range open {
			if len(learnt) > 0 {
				if answer := learnt[l.key(asked[i])]; answer != nil {
					rest.known = append(rest.known, answerRow(job.id, position, *answer))
					continue
				}
			}
			rest.entries, rest.positions = append(rest.entries, asked[i]), append(rest.positions, position)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load lookup %s: %w", job.id, err)
	}
	return rest, nil
}

// key is equal for entries that are one question to the register; empty for those that are none.
func (l *Lookups) key(e Entry) string {
	_, q := l.cfg.Validator.local(e)
	return q.state + q.number
}

// watch lets a cancel on this node reach the work at once.
func (l *Lookups) watch(id string, stop context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop[id] = stop
}

func (l *Lookups) unwatch(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stop, id)
}

func (l *Lookups) halt(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stop := l.stop[id]; stop != nil {
		stop(errHalted)
	}
}

// recorder gathers answers and stores them in groups: the writer is scarce.
type recorder struct {
	l    *Lookups
	job  *claimed
	mu   sync.Mutex
	rows [][]any
}

func (n *recorder) add(ctx context.Context, position int, r Result) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rows = append(n.rows, answerRow(n.job.id, position, r))
	if len(n.rows) < flushEntries {
		return nil
	}
	return n.flush(ctx, n.job.lease.Guard)
}

// keep stores what has gathered every second. It returns when the lease is lost,
// the batch canceled or ctx done.
func (n *recorder) keep(ctx context.Context) error {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := n.tick(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

func (n *recorder) tick(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.rows) > 0 {
		return n.flush(ctx, n.job.lease.Guard)
	}
	// A cancel on another node is noticed without troubling the writer.
	held := 0
	err := n.l.db.Read(ctx, func(r db.Reader) error { return r.Row(heldSQL, n.job.id, n.job.lease.Token).Scan(&held) })
	if err == nil && held == 0 {
		err = db.ErrStale
	}
	return err
}

// giveBack stores what has gathered and lets another go on after a while.
func (n *recorder) giveBack(ctx context.Context, wait time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flush(ctx, func(tx *db.Tx) error { return n.job.lease.Finish(tx, tx.Now().Add(wait)) })
}

// flush stores the rows together with a change of the lease. n.mu is held.
func (n *recorder) flush(ctx context.Context, lease func(tx *db.Tx) error) error {
	err := n.l.db.Write(ctx, func(tx *db.Tx) error {
		if err := lease(tx); err != nil {
			return err
		}
		if err := tx.ExecOne(progressSQL, n.job.id); err != nil {
			return err
		}
		return tx.Insert("lookup_answers", answerColumns, n.rows...)
	})
	if err != nil {
		return fmt.Errorf("store answers of lookup %s: %w", n.job.id, err)
	}
	n.rows = nil
	return nil
}

package lookup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

const (
	singlesAtOnce = 8 // of one client on one node
	batchesAtOnce = 4 // on one node: the register's own limits allow no more speed, and other jobs want their turn
	flushEntries  = 500
	flushEvery    = time.Second
	crashesMax    = 3
	startPatience = 2 * time.Minute // a job that was not looked at by then is believed lost
	slotWait      = time.Second
	giveBackFor   = 5 * time.Second
	resumeEvery   = 15 * time.Second
	resumeAtOnce  = 1000
)

// errHalted ends the work on a batch that was canceled.
var errHalted = errors.New("the batch was canceled")

// workArgs is what a version before this one enqueued with River.
type workArgs struct {
	LookupID string `json:"lookup_id"`
	Of       kind   `json:"kind"`
}

// Kind is stable: it is stored with every job.
func (workArgs) Kind() string { return "lookup_work" }

// resumeArgs is the periodic River job that finds lost lookups.
type resumeArgs struct{}

// Kind is stable: it is stored with every job.
func (resumeArgs) Kind() string { return "lookup_resume" }

// job is what lets a lookup be looked at. Its kind is stable: it is stored.
func (k kind) job(clientID, id string) db.ClientJob {
	return db.ClientJob{Client: clientID, Kind: k.jobKind(), Subject: id}
}

func (k kind) jobKind() string { return "lookup_" + string(k) }

// ClientJobs is what works lookups, clients in turns. Somebody who waits for one
// number does not wait for batches: they have slots of their own.
func (l *Lookups) ClientJobs() map[string]db.ClientWorker {
	worker := func(k kind, room int) db.ClientWorker {
		return db.ClientWorker{Room: room, Work: func(ctx context.Context, id string) (time.Duration, error) {
			return l.work(ctx, workArgs{LookupID: id, Of: k})
		}}
	}
	return map[string]db.ClientWorker{
		kindSingle.jobKind(): worker(kindSingle, singlesAtOnce),
		kindBatch.jobKind():  worker(kindBatch, 1),
	}
}

// Workers registers what works our River jobs.
func (l *Lookups) Workers(w *river.Workers) {
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, j *river.Job[workArgs]) error {
		again, err := l.work(ctx, j.Args)
		if err == nil && (again > 0 || ctx.Err() != nil) {
			return river.JobSnooze(again)
		}
		return err
	}))
	river.AddWorker(w, river.WorkFunc(func(ctx context.Context, _ *river.Job[resumeArgs]) error {
		_, err := l.Resume(ctx)
		return err
	}))
}

// Periodic lists our periodic River jobs.
func (l *Lookups) Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(resumeEvery),
		func() (river.JobArgs, *river.InsertOpts) { return resumeArgs{}, nil }, &river.PeriodicJobOpts{RunOnStart: true})}
}

// Resume hands on what a killed process left behind and returns how many
// lookups that were. Call it once after starting the job engine: on SQLite,
// where no other process can hold a claim, a restart then goes on at once;
// elsewhere claims run out. The periodic job alone would first have to wait
// until the job engine has noticed that its old leader is gone.
func (l *Lookups) Resume(ctx context.Context) (int, error) {
	alone := ""
	if l.db.Engine() == "sqlite" {
		alone = l.db.Node()
	}
	found := 0
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		type lost struct {
			id, clientID string
			kind         kind
			claim        int64
		}
		all, err := db.Collect(tx, func(scan func(...any) error) (o lost, err error) {
			return o, scan(&o.id, &o.clientID, &o.kind, &o.claim)
		}, lostSQL, db.Micros(tx.Now()), alone, resumeAtOnce)
		if err != nil {
			return err
		}
		until := db.Micros(tx.Now().Add(startPatience))
		for _, o := range all {
			if err := tx.Exec(requeueSQL, until, o.id, o.claim); err != nil {
				return err
			}
			if err := tx.EnqueueFor(o.kind.job(o.clientID, o.id)); err != nil {
				return err
			}
		}
		found = len(all)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("resume lookups: %w", err)
	}
	if found > 0 {
		l.log.Warn("lookups were left behind and go on", "lookups", found)
	}
	return found, nil
}

// turnLock orders what decides whose turn it is among a client's batches:
// without it a batch could find the one before it still running while that one
// ends without seeing who waits.
func turnLock(clientID string) string { return "lookup-turn:" + clientID }

// nextTurn wakes the oldest batch of a client that has not ended.
func nextTurn(tx *db.Tx, clientID string) error {
	first := ""
	err := tx.Row(turnSQL, clientID).Scan(&first)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.EnqueueFor(kindBatch.job(clientID, first))
}

// claimed is a lookup in our hands.
type claimed struct {
	header
	claim   int64
	crashes int64 // this claim included
}

// work brings a lookup to its end, unless somebody else does or it is not its turn.
func (l *Lookups) work(ctx context.Context, args workArgs) (again time.Duration, err error) {
	if args.Of == kindBatch {
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		default:
			return l.waitForSlot(ctx, args)
		}
	}
	job, err := l.claim(ctx, args)
	if err != nil || job == nil {
		return 0, err
	}
	return 0, l.carryOut(ctx, job)
}

// waitForSlot lets the first batch of a client come again; those behind it are
// woken when it ends.
func (l *Lookups) waitForSlot(ctx context.Context, args workArgs) (again time.Duration, err error) {
	var clientID, first string
	err = l.db.Read(ctx, func(r db.Reader) error {
		if err := r.Row(subjectSQL, args.LookupID).Scan(&clientID); err != nil {
			return err
		}
		return r.Row(turnSQL, clientID).Scan(&first)
	})
	switch {
	case errors.Is(err, db.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("look at batch %s: %w", args.LookupID, err)
	case first != args.LookupID:
		return 0, nil
	}
	return slotWait, nil
}

// claim takes a lookup; nil when there is nothing to do, or nothing yet.
func (l *Lookups) claim(ctx context.Context, args workArgs) (job *claimed, err error) {
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		job = nil
		found := &claimed{header: header{id: args.LookupID, kind: args.Of}}
		if err := tx.Row(subjectSQL, found.id).Scan(&found.clientID); err != nil {
			return err
		}
		if found.kind == kindBatch {
			if err := tx.Lock(turnLock(found.clientID)); err != nil {
				return err
			}
		}
		now := tx.Now()
		if err := tx.Row(claimSQL, l.db.Node(), db.Micros(now.Add(l.cfg.ClaimFor)), found.id, db.Micros(now)).
			Scan(&found.entries, &found.claim, &found.crashes); err != nil {
			return err
		}
		job = found
		return nil
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim lookup %s: %w", args.LookupID, err)
	}
	return job, nil
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
		err = l.cfg.Validator.ValidateAll(ctx, rest.entries, func(i int, r Result) error { return notes.add(ctx, rest.positions[i], r) })
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
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackFor)
	defer cancel()
	switch stored := notes.giveBack(back); {
	case errors.Is(stored, db.ErrStale):
		return nil
	case stored != nil: // the claim runs out
		return errors.Join(err, stored)
	case ctx.Err() != nil:
		return nil // the engine stops; whoever starts next goes on
	}
	return fmt.Errorf("work on lookup %s: %w", notes.job.id, err)
}

// giveUp answers what could not be answered because the program died of it.
func (l *Lookups) giveUp(ctx context.Context, job *claimed, rest *remainder, notes *recorder) error {
	l.log.Error("a lookup was given up after its workers died", "alert", "job_discarded", "lookup_id", job.id, "crashes", job.crashes-1)
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
		// The claim first: whoever lost it changes nothing.
		if err := tx.ExecOne(completeSQL, db.Micros(tx.Now()), job.id, job.claim); err != nil {
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
	return n.flush(ctx, progressSQL, n.l.cfg.ClaimFor)
}

// keep stores what has gathered every second, and renews the claim where
// nothing has. It returns when the claim is lost, the batch canceled or ctx done.
func (n *recorder) keep(ctx context.Context) error {
	ticker := time.NewTicker(min(flushEvery, n.l.cfg.ClaimFor/4))
	defer ticker.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		wrote, err := n.tick(ctx, time.Since(renewed) > n.l.cfg.ClaimFor/4)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case wrote:
			renewed = time.Now()
		}
	}
}

func (n *recorder) tick(ctx context.Context, renew bool) (wrote bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case len(n.rows) > 0:
		return true, n.flush(ctx, progressSQL, n.l.cfg.ClaimFor)
	case renew:
		return true, n.flush(ctx, renewSQL, n.l.cfg.ClaimFor)
	}
	// A cancel on another node is noticed without troubling the writer.
	held := 0
	err = n.l.db.Read(ctx, func(r db.Reader) error { return r.Row(heldSQL, n.job.id, n.job.claim).Scan(&held) })
	if err == nil && held == 0 {
		err = db.ErrStale
	}
	return false, err
}

// giveBack stores what has gathered and lets the next worker begin at once.
func (n *recorder) giveBack(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flush(ctx, giveBackSQL, startPatience)
}

// flush stores the rows together with a change of the claim. n.mu is held.
func (n *recorder) flush(ctx context.Context, claimText string, lasts time.Duration) error {
	err := n.l.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.ExecOne(claimText, db.Micros(tx.Now().Add(lasts)), n.job.id, n.job.claim); err != nil {
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

package db

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"
)

// ClientJob is work that one client caused. Whatever number of them one client
// has, others wait for no more than those that are under way: clients take
// turns, as suppliers do in lanes. River would work them in order of arrival.
//
// Failure policy: as with River, a job exists if and only if its write commits,
// and is worked at least once. The record is a row of the owner's, which the
// worker looks at first; several jobs with one subject do no harm.
type ClientJob struct {
	Client  string
	Kind    string
	Subject string // id of the owner's row
}

// ClientWorker works the client jobs of one kind.
type ClientWorker struct {
	// Work does what there is to do. again is how long it must wait to be
	// looked at once more; 0: it is done. An error is tried again later. When ctx
	// ends, the job is worked by whoever starts next.
	Work func(ctx context.Context, subject string) (again time.Duration, err error)

	// Room is how many of one client this node works at the same time.
	Room int
}

const (
	clientJobsTable   = "client_jobs"
	clientJobsAtOnce  = 64 // of all clients on one node; most of them wait for somebody outside
	clientJobRetry    = time.Second
	clientJobRetryMax = 5 * time.Minute
	clientJobStoreFor = 5 * time.Second
	laneOwnerEnd      = "/"
)

// clientJob is what a claim reads of a row.
type clientJob struct {
	subject  string
	failures int64
}

var clientJobQueue = &Queue[clientJob]{
	Table: clientJobsTable, ID: "job_id", Key: "lane", Columns: "subject, failures", Group: laneOwnerEnd,
	Scan: func(scan func(...any) error) (j clientJob, err error) { return j, scan(&j.subject, &j.failures) },
}

// EnqueueFor adds jobs of clients that exist if and only if the write commits.
func (t *Tx) EnqueueFor(jobs ...ClientJob) error {
	now := Micros(t.Now())
	rows := make([][]any, len(jobs))
	for i, j := range jobs {
		var id [16]byte
		rand.Read(id[:]) // never fails: the runtime ends the program instead
		rows[i] = []any{hex.EncodeToString(id[:]), j.Client + laneOwnerEnd + j.Kind, j.Subject, now, now}
	}
	t.Wake(clientJobsTable)
	return t.Insert(clientJobsTable, "job_id,lane,subject,created_at,due_at", rows...)
}

// clientJobs works the jobs of clients until it is stopped.
type clientJobs struct {
	d       *DB
	workers map[string]ClientWorker

	stop func()          // takes no new ones
	hard context.Context // ends what is under way
	kill context.CancelFunc
	done sync.WaitGroup
}

func startClientJobs(ctx context.Context, d *DB, workers map[string]ClientWorker) *clientJobs {
	c := &clientJobs{d: d, workers: workers}
	c.hard, c.kill = context.WithCancel(context.WithoutCancel(ctx))
	run, stop := context.WithCancel(c.hard)
	c.stop = stop
	pump := &Pump[clientJob]{DB: d, Queue: clientJobQueue, Work: c.work, Room: c.room, InFlight: clientJobsAtOnce, Grace: time.Hour} // halt has the last word
	c.done.Go(func() {
		if err := pump.Run(run); err != nil {
			d.log.Error("work the jobs of clients", "error", err)
		}
	})
	return c
}

// halt lets running jobs finish until ctx ends, then cancels them.
func (c *clientJobs) halt(ctx context.Context) {
	c.stop()
	defer context.AfterFunc(ctx, c.kill)()
	c.done.Wait()
	c.kill()
}

func (c *clientJobs) room(lane string) int { return c.workers[kindOf(lane)].Room }

func kindOf(lane string) string {
	_, kind, _ := strings.Cut(lane, laneOwnerEnd)
	return kind
}

// work does one job and stores when it is to be looked at again, or that it is done.
func (c *clientJobs) work(ctx context.Context, l *Lease[clientJob]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.hard, cancel)()
	again, err := c.workers[kindOf(l.Key)].Work(ctx, l.Row.subject)
	failures := int64(0)
	switch {
	case ctx.Err() != nil:
		again = time.Nanosecond // whoever starts next goes on at once
	case err != nil:
		failures = l.Row.failures + 1
		again = min(clientJobRetryMax, clientJobRetry<<min(l.Row.failures, 16))
		c.d.log.Warn("a job is tried again later", "kind", kindOf(l.Key), "subject", l.Row.subject, "failures", failures, "in", again, "error", err)
	}
	store, end := context.WithTimeout(context.WithoutCancel(ctx), clientJobStoreFor)
	defer end()
	err = c.d.Write(store, func(tx *Tx) error {
		if again == 0 {
			return tx.ExecOne("DELETE FROM client_jobs WHERE job_id = $1 AND lease_token = $2", l.ID, l.Token)
		}
		if err := tx.Exec("UPDATE client_jobs SET failures = $1 WHERE job_id = $2 AND lease_token = $3", failures, l.ID, l.Token); err != nil {
			return err
		}
		return l.Finish(tx, tx.Now().Add(again))
	})
	if err != nil && !errors.Is(err, ErrStale) {
		c.d.log.Warn("a job is worked once more", "kind", kindOf(l.Key), "subject", l.Row.subject, "error", err)
	}
}

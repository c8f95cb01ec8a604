// Package received is what others send to companies of ours: invoices and credit notes, read and shown beside what
// these companies send.
//
// It owns the tables received, received_names and received_references, the taking of a document and the reading of
// it. It does not own how a format is read (packs and standards do), how documents are listed (the ledger shows them)
// or how long they are kept (retention). Law of [Documents.Take]: when it answers, the bytes are on disk, and the same
// document has one operation, however often it comes.
//
// A document is the same when its source's own name of it is, for one company; without such a name when its bytes
// are. What comes under a name that other bytes have already is kept as an operation of its own, which ends in
// FAILURE, and the operator is told; so it is with a document that is addressed to no company of the client.
//
// Failure policy: the file is kept before the commit that names it; reading is leased work that writes nothing but its
// outcome, so a process that dies has read nothing. What was read when a process ended is read alone from then on, and
// given up after three of them: those that were beside it go on.
// A document that cannot be read ends in FAILURE with its original kept; uploaded again it is read again, under the
// same operation, because a company may have been onboarded and a reader may have learned. SUCCESS stays.
package received

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/document"
	"tributary/internal/files"
	"tributary/internal/incoming"
	"tributary/internal/lease"
	"tributary/internal/onboarding"
	"tributary/internal/webhook"
)

// BytesMax is the largest document that is taken.
const BytesMax = 20 << 20

// Media is what the bytes of a document are.
type Media string

// The kinds of bytes.
const (
	XML    Media = "XML"
	PDF    Media = "PDF"
	Signed Media = "P7M" // XML in a signed envelope
)

// Upload is the source of what clients bring themselves.
const Upload = "upload"

// Config is what received documents stand on.
type Config struct {
	DB        *db.DB
	Companies *onboarding.Companies
	Files     *files.Store
	Hooks     *webhook.Hooks
	Alerts    *alert.Alerts
	Renderer  *document.Renderer
	Log       *slog.Logger

	// Read reads a document of any known format. Its error says, for whoever sent the document, why it is none.
	Read func([]byte) (*incoming.Document, error)
}

// Documents takes and reads what is received. It is safe for concurrent use.
type Documents struct {
	cfg   Config
	db    *db.DB
	log   *slog.Logger
	alone sync.RWMutex  // held whole by who reads a document that was in work when a process ended
	large chan struct{} // held by who reads a large one

	grownUp time.Time // from when on it reads what was in work when a process ended
}

// New makes it ready; [Documents.Run] reads.
func New(cfg Config) *Documents {
	return &Documents{cfg: cfg, db: cfg.DB, log: cfg.Log, large: make(chan struct{}, largeMost), grownUp: cfg.DB.Now().Add(suspectsAfter)}
}

const (
	table     = "received"
	readsMax  = 8 // at a time on one node, most of them waiting for a disk
	largeMost = 2 // of which so many large ones: a document of 20 MiB takes some hundred when it is read
	largeSize = 1 << 20
	retryOwn  = 5 * time.Second
	waitMax   = time.Hour // longer than any pause here
	crashMost = 3

	// suspectsAfter is how long a process must have lived before it reads what was in work
	// when one ended: of those that somebody else kills again and again none gets so far,
	// and a document that happens to come first is not taken for the cause.
	suspectsAfter = 5 * time.Second
)

// queue has a key for each client: they take turns.
var queue = &lease.Queue[row]{Table: table, ID: "operation_id", Key: "client_id",
	Columns: rowColumns, Scan: scanRow, Longest: fmt.Sprint(waitMax.Microseconds())}

// Run reads documents until ctx ends, clients in turns.
func (d *Documents) Run(ctx context.Context) error {
	pump := &lease.Pump[row]{DB: d.db, Queue: queue, Log: d.log, InFlight: readsMax,
		Work: func(ctx context.Context, l *lease.Lease[row]) {
			if err := d.work(ctx, l); err != nil && ctx.Err() == nil {
				d.log.Warn("retrying to read a received document", "operation_id", l.ID, "error", err)
			}
		}}
	return pump.Run(ctx)
}

// room waits until a document may be read beside the others, or alone.
func (d *Documents) room(w *row) (leave func()) {
	if w.crashes > 0 {
		d.alone.Lock()
		return d.alone.Unlock
	}
	d.alone.RLock()
	if w.bytes < largeSize {
		return d.alone.RUnlock
	}
	d.large <- struct{}{}
	return func() {
		<-d.large
		d.alone.RUnlock()
	}
}

// Depth is how much there is to read.
func Depth(r db.Reader) (lease.Depth, error) { return queue.Depth(r) }

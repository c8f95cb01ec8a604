package lookup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/webhook"
)

// Limits of stored lookups.
const (
	entriesMax       = 10_000 // of one batch
	openBatchesMax   = 100    // of one client that have not ended; past it the client is told to come back
	openBatchesRetry = 30 * time.Second
	pageDefault      = 20
	pageMax          = 100
	graceDefault     = 2 * time.Second
)

// Config is what Lookups stand on. DB, Hooks, Validator and BaseURL are required.
type Config struct {
	DB        *db.DB
	Hooks     *webhook.Hooks
	Validator *Validator
	BaseURL   string        // {base_url} of every address handed out
	Log       *slog.Logger  // nil: nothing is logged
	Grace     time.Duration // for work under way when the node stops; default 2 s
}

// Lookups keeps what clients asked and what was learnt. It is safe for
// concurrent use.
//
// The law of [Lookups.CreateBatch]: when it answers, the request is on disk
// and will end, with exactly one event, unless the client cancels it. What the
// text of a number decides is decided before the answer; the rest is asked by
// a job. A cancel is the client's own act and answered on the spot: it has no
// event. Batches of one client run one after the other in order of arrival, so
// that one client's backlog never keeps another's from the register.
//
// Failure policy: a lookup is a leased row (see [lease.Queue]). A worker stores
// answers as they come (every 500 or every second) and ends it in one commit
// with the last answers and the event. All its writes carry the lease's token, so
// a worker that was believed dead, or whose batch was canceled, stores nothing
// more, and entries that have an answer are not asked again. At most the answers
// of one second are lost and asked twice. A request whose workers die again and
// again without progress ends with internal_error in the entries that have no answer.
type Lookups struct {
	cfg   Config
	db    *db.DB
	log   *slog.Logger
	slots chan struct{} // batches at work on this node

	mu   sync.Mutex
	stop map[string]context.CancelCauseFunc // of each batch at work on this node
}

// New returns the lookups of a database. It starts nothing: see [Lookups.Run].
func New(cfg Config) *Lookups {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Grace <= 0 {
		cfg.Grace = graceDefault
	}
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/")
	return &Lookups{
		cfg: cfg, db: cfg.DB, log: cfg.Log,
		slots: make(chan struct{}, batchesAtOnce), stop: map[string]context.CancelCauseFunc{},
	}
}

// kind is what a row of lookups is to the client.
type kind string

const (
	kindBatch  kind = "batch"
	kindSingle kind = "single"
)

// path is the address of a lookup below the base URL.
func (k kind) path(id string) string { return "/lookup/v2/" + string(k) + "-validations/" + id }

func (k kind) event() string {
	if k == kindSingle {
		return webhook.LookupSingleCompleted
	}
	return webhook.LookupBatchCompleted
}

// Progress is how far a request has come.
type Progress string

// The statuses of a batch.
const (
	Running   Progress = "running"
	Completed Progress = "completed"
	Canceled  Progress = "canceled"
)

// Validation is one entry as the client reads it. Members without a value are null.
type Validation struct {
	ValidationID            string   `json:"validation_id"`
	CountryISOCode          string   `json:"country_iso_code"`
	TaxIdentificationNumber string   `json:"tax_identification_number"`
	Format                  Format   `json:"format"`
	Status                  Status   `json:"status"`
	IsBusiness              Business `json:"is_business"`
	BusinessName            *string  `json:"business_name"`
	BusinessAddress         *string  `json:"business_address"`
	ErrorCode               *string  `json:"error_code"`
}

// validationID names an entry. It is not stored: the batch and the position
// give it, and it gives them back to whoever looks for the row. Of the batch's
// 128 random bits 96 are left, enough to keep two batches apart.
func validationID(lookupID string, k kind, position int) string {
	if k == kindSingle {
		return lookupID
	}
	return fmt.Sprintf("%s%08x", lookupID[:24], position)
}

func validationOf(head *header, position int, e storedEntry, answer *Result) Validation {
	v := Validation{
		ValidationID: validationID(head.id, head.kind, position), CountryISOCode: e.Country, TaxIdentificationNumber: e.Number,
		Format: e.Format, Status: StatusPending, IsBusiness: BusinessUnknown,
	}
	switch {
	case e.Status != "":
		v.Status, v.IsBusiness, v.ErrorCode = e.Status, e.IsBusiness, orNull(e.ErrorCode)
	case answer != nil:
		v.Format, v.Status, v.IsBusiness = answer.Format, answer.Status, answer.IsBusiness
		v.BusinessName, v.BusinessAddress, v.ErrorCode = orNull(answer.BusinessName), orNull(answer.BusinessAddress),
			orNull(answer.ErrorCode)
	case head.status == Canceled:
		v.Status = StatusCanceled
	}
	return v
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// create stores a request and its job in one commit.
func (l *Lookups) create(ctx context.Context, head *header, entries []Entry) ([]storedEntry, error) {
	stored := make([]storedEntry, len(entries))
	for i, e := range entries {
		stored[i] = l.decide(e)
	}
	rows, err := segments(head.id, stored)
	if err != nil {
		return nil, err
	}
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		now := tx.Now()
		head.requestedAt = now
		due := any(db.Micros(now))
		if head.kind == kindBatch {
			if err := tx.Lock(turnLock(head.clientID)); err != nil {
				return err
			}
			if err := l.admit(tx, head); err != nil {
				return err
			}
			due = nil // until its turn
		}
		if err := tx.Insert(lookupsTable, "lookup_id,client_id,kind,lane,name,status,entries,requested_at,due_at",
			[]any{head.id, head.clientID, string(head.kind), head.lane(), db.Null(head.name), string(Running), len(entries),
				db.Micros(now), due}); err != nil {
			return err
		}
		if err := tx.Insert("lookup_entries", "lookup_id,first,entries", rows...); err != nil {
			return err
		}
		if head.kind == kindBatch {
			return nextTurn(tx, head.clientID)
		}
		tx.Wake(lookupsTable)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("store a %s validation: %w", head.kind, err)
	}
	return stored, nil
}

// decide settles what the text of an entry settles. The rest is left to the job.
func (l *Lookups) decide(e Entry) storedEntry {
	r, q := l.cfg.Validator.local(e)
	if q.state != "" {
		return storedEntry{Country: e.Country, Number: e.Number, Format: FormatValid}
	}
	return storedEntry{Country: e.Country, Number: e.Number, Format: r.Format, Status: r.Status, IsBusiness: r.IsBusiness,
		ErrorCode: r.ErrorCode}
}

// admit refuses a batch of a client that has too many open.
func (l *Lookups) admit(tx *db.Tx, head *header) error {
	var open int
	if err := tx.Row(openBatchesSQL, head.clientID).Scan(&open); err != nil {
		return err
	}
	if open < openBatchesMax {
		return nil
	}
	e := fault.New(fault.Limited, "%d batches are still running: wait for them", open)
	e.RetryAfter = openBatchesRetry
	return e.With(fault.Fault{Code: fault.RateLimited, Type: fault.General, Message: "too many batches are running"})
}

// header is a row of lookups as readers need it.
type header struct {
	id          string
	clientID    string
	kind        kind
	name        string
	status      Progress
	entries     int
	requestedAt time.Time
}

// find reads a client's own request; anything else is unknown.
func find(r db.Reader, k kind, clientID, id string) (*header, error) {
	head := &header{id: id, clientID: clientID, kind: k}
	var name *string
	var at int64
	err := r.Row(findSQL, id, clientID, string(k)).Scan(&name, &head.status, &head.entries, &at)
	if errors.Is(err, db.ErrNoRows) {
		return nil, notFound(k)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s validation %s: %w", k, id, err)
	}
	head.name, head.requestedAt = orEmpty(name), db.FromMicros(at)
	return head, nil
}

func notFound(k kind) *fault.Error {
	return fault.New(fault.NotFound, "unknown %s validation", k).
		With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "the " + string(k) + " validation is unknown"})
}

// wireTime is an instant as it is printed: YYYY-MM-DDTHH:mm:ssZ.
func wireTime(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

package filing

import (
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"tributary/internal/adoption"
	"tributary/internal/correction"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/period"
)

// op is an operation in the hands of its lane's holder.
type op struct {
	*operation.Operation
	progress
	refs   correction.References
	gather period.Gathering
	learns string // what the channel learned for its draft

	notBefore time.Time // the authority grants no more calls about it until then

	filing     country.Filing
	receipt    country.Receipt
	word       *country.Receipt    // the decision, where it came by itself
	structured *country.Structured // the invoice as data, where nothing is filed
	unfiled    bool                // its supplier chose a document alone, where the law leaves the choice
	gap        *adoption.Gap       // what the authority holds of it since before a backup was restored
}

// progress is how far an operation has come.
type progress struct {
	stage     Stage
	tries     int64
	crashes   int64
	startedAt time.Time
	sentAt    time.Time
	dueAt     time.Time

	counted  bool // its crash count is raised for the visit and not yet taken back
	doubtful bool // sent before, unresolved, and sent again: "not taken" speaks of the last time only
	told     bool // the authority was asked about it in this visit, and does not hold it
	unasked  bool // nobody can be asked about it: a person decides
}

const opFields = operation.Fields + ", stage, tries, crashes, coalesce(started_at, 0), sent_at, due_at"

func scanOp(scan func(...any) error) (*op, error) {
	o := &op{Operation: &operation.Operation{}}
	var live bool
	var accepted, started int64
	err := scan(append(o.Targets(&live, &accepted), &o.stage, &o.tries, &o.crashes, &started, db.NullInstant(&o.sentAt), db.NullInstant(&o.dueAt))...)
	o.Live, o.AcceptedAt, o.startedAt = country.Live(live), db.FromMicros(accepted), db.FromMicros(started)
	return o, err
}

// outcome is how an operation ends.
type outcome struct {
	op      *op
	status  Status
	faults  []fault.Fault
	receipt country.Receipt
}

// ending is an outcome with everything the settling commit writes.
type ending struct {
	outcome
	result      string // JSON
	attachments []files.Attachment
}

// internal is why an operation ends that we could not work.
func internal() fault.Fault {
	return fault.Fault{Code: fault.InternalError, Type: fault.General, Message: "the transaction could not be processed; nothing was registered"}
}

// hindrance is the published reason that the authority gave for not taking this
// one document, while it takes others, and its words; "" where it gave none: it
// was left out of the call, or a pause is asked for.
func (o *op) hindrance() (code string, said any) {
	if o.receipt.Outcome != country.NotTaken || len(o.receipt.Faults) == 0 {
		return "", nil
	}
	why := o.receipt.Faults[0]
	if why.Code == "" {
		why.Code = fault.AuthorityError
	}
	return string(why.Code), operation.EncodeFaults([]fault.Fault{why})
}

// notTakenFor is why nothing behind an operation goes on either.
func notTakenFor(o *op) error {
	if len(o.receipt.Faults) == 0 {
		return country.ErrNotTaken
	}
	return fmt.Errorf("%w: %s", country.ErrNotTaken, o.receipt.Faults[0].Message)
}

// chainDue makes links due in the order of the chain, before everything that
// is not yet in it: an instant long ago, as many microseconds as its position.
func chainDue(o *op) time.Time { return db.FromMicros(o.filing.Link.Position) }

func sortByID(ops []*op) {
	sort.Slice(ops, func(i, j int) bool { return ops[i].ID < ops[j].ID })
}

// inOrder sorts filings as they are sent: along the chain, else by age.
func inOrder(ops []*op) {
	sort.Slice(ops, func(i, j int) bool {
		if a, b := ops[i].filing.Link.Position, ops[j].filing.Link.Position; a != b {
			return a < b
		}
		return ops[i].ID < ops[j].ID
	})
}

func idsOf(ops []*op) []string {
	ids := make([]string, len(ops))
	for i, o := range ops {
		ids[i] = o.ID
	}
	return ids
}

// load reads the bodies and, where there are any, the filings. speaks: the
// authority may have decided by itself.
func load(r db.Reader, d *db.DB, ops []*op, speaks bool) error {
	byID := make(map[string]*op, len(ops))
	var filed []string
	for _, o := range ops {
		byID[o.ID] = o
		if o.stage != Received {
			filed = append(filed, o.ID)
		}
	}
	rows, err := r.Query("SELECT operation_id, body, warnings, coalesce(digest, ''), coalesce(customer, '') FROM bodies WHERE "+d.In("operation_id", "$1"), db.Strings(idsOf(ops)))
	if err != nil {
		return fmt.Errorf("load bodies: %w", err)
	}
	if err := rows.Each(func(scan func(...any) error) error {
		var id string
		var read operation.Content
		var warnings *string
		err := scan(&id, &read.Body, &warnings, &read.Digest, &read.Customer)
		read.Warnings = operation.ReadFaults(warnings)
		if err == nil {
			byID[id].Content = read
		}
		return err
	}); err != nil {
		return err
	}
	if len(filed) > 0 {
		if err := loadFilings(r, d, byID, filed); err != nil {
			return err
		}
	}
	if len(filed) > 0 && speaks {
		words, err := lifecycle.Decisions(r, d, filed)
		if err != nil {
			return err
		}
		for id, word := range words {
			byID[id].word = word
		}
	}
	for _, o := range ops {
		if len(o.Body) == 0 {
			return fmt.Errorf("the body of %s %w", o.ID, correction.ErrMissing)
		}
	}
	return nil
}

// loadFilings reads the stored bytes of operations that have them.
func loadFilings(r db.Reader, d *db.DB, byID map[string]*op, ids []string) error {
	rows, err := r.Query("SELECT operation_id, report, filing, receipt FROM filings WHERE "+d.In("operation_id", "$1"), db.Strings(ids))
	if err != nil {
		return fmt.Errorf("load filings: %w", err)
	}
	return rows.Each(func(scan func(...any) error) error {
		var id, text string
		var report []byte
		var receipt *string
		if err := scan(&id, &report, &text, &receipt); err != nil {
			return err
		}
		o := byID[id]
		if o.filing, err = operation.ReadFiling(text, report); err != nil {
			return err
		}
		if receipt != nil {
			return json.Unmarshal([]byte(*receipt), &o.receipt)
		}
		return nil
	})
}

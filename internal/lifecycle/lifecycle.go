// Package lifecycle is what is said of a document beside its outcome, which it
// never changes: by the authority, a platform, an access point, the buyer. It is
// learned in three ways: a receipt carries it, Poll is asked on after SUCCESS (see
// listen.go), or the authority calls us ([Cycle.Judge]).
//
// It owns lifecycle, listening, told and filing_handles; told are decisions that
// came by themselves, until filing has acted on them.
//
// Failure policy: an entry is stored in the commit that learned of it, once per
// message of its source, whoever says it again; its event is in the same commit.
package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/onboarding"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/webhook"
)

// Bounds of what is kept of an entry; longer texts are cut.
const (
	keyMax     = 200
	textMax    = 200 // code, name
	messageMax = 2000
)

// Cycle keeps the life cycles of documents.
type Cycle struct {
	DB        *db.DB
	Atlas     *country.Atlas
	Companies *onboarding.Companies
	Hooks     *webhook.Hooks
	Alerts    *alert.Alerts
	Log       *slog.Logger
	Pauses    exchange.Ladder // between looks that brought nothing

	// OfSales passes on what is said of the document of a period to its sales; false: it is none.
	OfSales func(tx *db.Tx, about Subject, news []country.News) (bool, error)
}

// Subject is the operation of which something is said.
type Subject struct {
	ID, Scope, TransactionID string
	Succeeded                bool
}

// Of is an operation as a subject that has not succeeded yet.
func Of(o *operation.Accepted) Subject {
	return Subject{ID: o.ID, Scope: o.Scope, TransactionID: o.TransactionID}
}

// Read is what was said of an operation's document, oldest first.
func Read(r db.Reader, operationID string) ([]result.LifecycleEntry, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (e result.LifecycleEntry, err error) {
		var at int64
		err = scan(&at, &e.Code, &e.Name, &e.Source, &e.Severity, &e.Message)
		e.At = result.Stamp(db.FromMicros(at))
		return e, err
	}, "SELECT at, code, name, source, severity, message FROM lifecycle WHERE operation_id = $1 ORDER BY at, learned_at, message_key", operationID)
	if err != nil {
		return nil, fmt.Errorf("read the life cycle of %s: %w", operationID, err)
	}
	return append([]result.LifecycleEntry{}, list...), nil
}

var insertNews = db.Insert{
	Table: "lifecycle", Columns: "operation_id,source,message_key,client_id,at,code,name,severity,message,learned_at",
	Suffix: "ON CONFLICT (operation_id, source, message_key) DO NOTHING RETURNING operation_id",
}

// Append stores what is new of what was said, and answers how much that was. A
// problem with a success is told to a person; of what has not ended yet nobody knows
// whether it is one: see Said.
func (c *Cycle) Append(tx *db.Tx, about Subject, news []country.News) (added int, err error) {
	list, err := c.append(tx, about, news)
	return len(list), err
}

// append answers what is new.
func (c *Cycle) append(tx *db.Tx, about Subject, news []country.News) (added []country.News, err error) {
	for _, n := range news {
		n = c.kept(n)
		fresh, err := c.insert(tx, []Subject{about}, n)
		if err != nil {
			return added, err
		}
		if !fresh[about.ID] {
			continue
		}
		added = append(added, n)
		if n.Severity == country.Problem && about.Succeeded {
			if err := c.contested(tx, about.ID, n.Source, n.Code, n.Name, n.Message); err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// contested tells a person of a problem with a registered document.
func (c *Cycle) contested(tx *db.Tx, id string, who country.Source, said ...string) error {
	return c.Alerts.RaiseIn(tx, alert.OutcomeContested, id,
		strings.TrimSpace(fmt.Sprintf("%s says of operation %s: %s", who, id, strings.Join(said, " "))))
}

// Count counts the entries of a code that an operation's life cycle got after an instant.
func Count(r db.Reader, operationID, code string, after time.Time) (n int64, err error) {
	err = r.Row("SELECT count(*) FROM lifecycle WHERE operation_id = $1 AND code = $2 AND learned_at > $3", operationID, code,
		db.Micros(after)).Scan(&n)
	return n, err
}

// TellAll adds one entry, of the authority's where it says nothing else, to the life cycles of several
// operations, once, and answers their events. One that has not ended yet tells
// with its end.
func (c *Cycle) TellAll(tx *db.Tx, subjects []Subject, n country.News) (events []webhook.Event, err error) {
	fresh, err := c.insert(tx, subjects, c.kept(n))
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		if fresh[s.ID] && s.Succeeded {
			events = append(events, Updated(s, 1)...)
		}
	}
	return events, nil
}

// insert stores an entry of each of the subjects, and answers for whom it is new.
func (c *Cycle) insert(tx *db.Tx, subjects []Subject, n country.News) (fresh map[string]bool, err error) {
	rows := make([][]any, len(subjects))
	for i, s := range subjects {
		rows[i] = []any{s.ID, string(n.Source), n.Key, s.Scope, db.Micros(n.At), n.Code, n.Name, string(n.Severity),
			n.Message, db.Micros(tx.Now())}
	}
	fresh = map[string]bool{}
	err = tx.InsertReturning(insertNews, rows, func(r *db.Rows) error {
		var id string
		err := r.Scan(&id)
		fresh[id] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store news of %d operations: %w", len(subjects), err)
	}
	return fresh, nil
}

// kept is an entry as it is stored. Whatever a pack leaves out has a meaning:
// no key is the content's own, no time is now.
func (c *Cycle) kept(n country.News) country.News {
	if n.Key == "" || len(n.Key) > keyMax {
		text, _ := json.Marshal([]any{n.Key, n.At.UnixMicro(), n.Code, n.Name, n.Message}) // plain data always encodes
		sum := sha256.Sum256(text)
		n.Key = "sha256:" + hex.EncodeToString(sum[:])
	}
	if n.At.IsZero() {
		n.At = c.DB.Wall()
	}
	if !slices.Contains([]country.Source{country.FromAuthority, country.FromPlatform, country.FromAccessPoint,
		country.FromBuyer, country.FromService}, n.Source) {
		n.Source = country.FromAuthority
	}
	if !slices.Contains([]country.Severity{country.Info, country.Caution, country.Problem}, n.Severity) {
		n.Severity = country.Info
	}
	n.Code, n.Name, n.Message = fault.Clip(n.Code, textMax), fault.Clip(n.Name, textMax), fault.Clip(n.Message, messageMax)
	return n
}

// Completed is the event of a settled operation. Events of one transaction are
// a series: their first tries keep the order of the attempts.
func Completed(scope, transactionID, operationID string) webhook.Event {
	return webhook.Event{
		ClientID: scope, Type: webhook.TransactionCompleted, ResourceID: operationID,
		ResourcePath: "/v1/transactions/" + operationID, Series: scope + "/" + transactionID,
	}
}

// Updated are the events of so many new entries. They are of the series of the
// completed events: none is tried before the completed event was.
func Updated(about Subject, entries int) (list []webhook.Event) {
	for range entries {
		e := Completed(about.Scope, about.TransactionID, about.ID)
		e.Type = webhook.TransactionUpdated
		list = append(list, e)
	}
	return list
}

// Announce stores news and, of a success, its events.
func (c *Cycle) Announce(tx *db.Tx, about Subject, news []country.News) error {
	added, err := c.append(tx, about, news)
	if err != nil {
		return err
	}
	if c.OfSales != nil && len(added) > 0 { // nobody is told of a period's document by itself
		if of, err := c.OfSales(tx, about, added); of || err != nil {
			return err
		}
	}
	if !about.Succeeded {
		return nil
	}
	return c.Hooks.Notify(tx, Updated(about, len(added))...)
}

// Said answers the events of everything that was said so far of operations that
// have just succeeded, and tells a person of the problems among it.
func (c *Cycle) Said(tx *db.Tx, about map[string]Subject) (events []webhook.Event, err error) {
	ids := slices.Sorted(maps.Keys(about))
	type count struct {
		id          string
		n, problems int
	}
	counts, err := db.Collect(tx, func(scan func(...any) error) (k count, err error) { return k, scan(&k.id, &k.n, &k.problems) },
		"SELECT operation_id, count(*), count(CASE severity WHEN $2 THEN 1 END) FROM lifecycle WHERE "+c.DB.In("operation_id", "$1")+
			" GROUP BY operation_id ORDER BY operation_id", db.Strings(ids), string(country.Problem))
	if err != nil {
		return nil, fmt.Errorf("count news: %w", err)
	}
	for _, k := range counts {
		events = append(events, Updated(about[k.id], k.n)...)
		if k.problems == 0 {
			continue
		}
		list, err := Read(tx, k.id)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if e.Severity == country.Problem {
				if err := c.contested(tx, k.id, e.Source, e.Code, e.Name, e.Message); err != nil {
					return nil, err
				}
			}
		}
	}
	return events, nil
}

// Rejection is never silent: a refusal without reasons still says that it was one.
func Rejection(r country.Receipt) []fault.Fault {
	for _, f := range r.Faults {
		if f.Type != fault.Warning {
			return r.Faults
		}
	}
	return append(r.Faults, fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
		Message: "the tax authority refused the document"})
}

// contradiction is the entry of an authority that takes back what it said.
func contradiction(r country.Receipt) []country.News {
	if r.Outcome != country.Rejected || r.Duplicate {
		return nil
	}
	return []country.News{{Key: "outcome", At: r.At, Code: string(country.Rejected), Name: "Rejected after acceptance",
		Source:   country.FromAuthority,
		Severity: country.Problem, Message: Rejection(r)[0].Message}}
}

// Forget destroys what was said of operations. On PostgreSQL that is left to the
// owner of the tables: the role that serves deletes nothing from a log.
func Forget(tx *db.Tx, d *db.DB, list string) error {
	in := d.In("operation_id", "$1")
	log := "DELETE FROM lifecycle WHERE " + in
	if d.Engine() == "postgres" {
		log = "SELECT forget_lifecycle($1)"
	}
	for _, statement := range []string{log, "DELETE FROM told WHERE " + in, "DELETE FROM listening WHERE " + in} {
		if err := tx.Exec(statement, list); err != nil {
			return fmt.Errorf("destroy life cycles: %w", err)
		}
	}
	return nil
}

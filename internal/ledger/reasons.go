package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// Meaning explains a reason for a wait to an operator.
type Meaning struct {
	Code fault.Code
	Text string // what is the matter
	Do   string // what a person can do about it
}

// Meanings are all reasons for which a transaction waits, as results, console,
// alerts, metrics and doctor name them.
func Meanings() []Meaning { return slices.Clone(meanings) }

// Advice is what an operator can do about a reason; "" where nothing is to be done.
func (w Why) Advice() string {
	for _, m := range meanings {
		if Why(m.Code) == w {
			return m.Do
		}
	}
	return ""
}

// AdviceAt is the advice for an environment: what it lacks is named, with the
// command that sets it.
func (w Why) AdviceAt(atlas *country.Atlas, at country.Environment) string {
	if command := country.SetCommand(at, atlas.Missing(at)); w == WhyUnconfigured && command != "" {
		return "`" + command + "`. Filing resumes within seconds."
	}
	return w.Advice()
}

var meanings = []Meaning{
	{fault.AuthorityNotConfigured,
		"Nothing was sent: the authority has no address in this environment, or needs an identity that is not set.",
		"`tributary authority list` shows what is missing; set it with `tributary authority set CC.live --url https://…`. Filing resumes within seconds."},
	{fault.AuthorityUnreachable,
		"The authority does not respond: no connection, a timeout, or a call that takes longer than eight seconds.",
		"Check its notices, then the network: address, firewall, DNS. `tributary doctor` tests the connection. It retries automatically."},
	{fault.AuthorityError, "The authority returned an error that says nothing about the document, for example HTTP 503.",
		"Read the last error and the authority's notices; a wrong address can answer like this too. It retries automatically."},
	{fault.AuthorityWait, "The authority asked for a pause between calls, or grants no more of them for now; mailboxes, looks for news and a " +
		"restored supplier wait the same way.", "No action needed; it goes on at the time it gave, or when more is granted."},
	{fault.CredentialsInvalid, "The authority rejected the supplier's credentials.",
		"Ask the client for new ones; filing resumes when they are uploaded (`PATCH` of the company)."},
	{fault.ChainStopped, "The last link of the supplier's chain at the authority is not ours; nothing is filed, so that the chain cannot fork.",
		"Find out who else files for the supplier, then `tributary recovery resume`."},
	{fault.AwaitingAcceptance, "Another party must accept first, for example the buyer a cancellation.",
		"No action needed, or ask the client to remind the buyer."},
	{fault.OutcomeUnknown, "It was sent, and the authority has not confirmed it.",
		"If it persists, look it up in the authority's portal; do not file it again elsewhere. Where possible the authority is queried automatically."},
	{fault.DocumentsUnavailable, "Document storage is unavailable.",
		"Check disk space or the object store; `tributary doctor` writes a test file. It retries automatically."},
	{fault.BehindAnother, "An earlier attempt, its original or another correction of that has not finished.",
		"See what it waits for: the reason is shown there."},
	{fault.Held, "An operator must act first: after a restored backup, or because the service crashed repeatedly while processing it.",
		"After a restore see `tributary recovery`; release a single transaction with *Release* on its page."},
	{fault.InternalError, "The service failed while processing it; nothing is known to be wrong with the document or the authority.",
		"Read the log for the operation and report the error. It retries automatically; after repeated failures it is held."},
}

// Waiting is how much waits at one environment of an authority for one reason.
type Waiting struct {
	At         country.Environment
	Code       fault.Code
	Operations int
	Suppliers  int
	OldestAt   time.Time // acceptance of the one that waits longest
}

// Waits counts, by environment and published reason, what is not settled and
// waits for something; what merely has its turn to come is not counted. At most
// twice [queueScanMax] operations are looked at.
func Waits(r db.Reader) ([]Waiting, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (w Waiting, err error) {
		var live bool
		err = scan(&w.At.Code, &live, &w.Code, &w.Operations, &w.Suppliers, db.NullInstant(&w.OldestAt))
		w.At.Live = country.Live(live)
		return w, err
	}, waitsSQL(), queueScanMax, db.Micros(r.Now()))
	if err != nil {
		return nil, fmt.Errorf("read what waits: %w", err)
	}
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.At.String(), b.At.String()), cmp.Compare(a.Code, b.Code))
	})
	return list, nil
}

// Waits counts what waits, by environment and reason.
func (s *Ledger) Waits(ctx context.Context) (list []Waiting, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err = Waits(r)
		return err
	})
	return list, err
}

// reasonSQL is the reason of an operation in lane l at an instant, the same as
// waitOf tells. One whose lane is held is being worked on: without a reason from
// before it waits for nothing.
func reasonSQL(operation, now string) string {
	return strings.NewReplacer("o.", operation+".", "NOW", now, "CRASHES", strconv.Itoa(filing.AsideFrom),
		"UNANSWERED", strconv.FormatInt(unansweredAfter.Microseconds(), 10)).Replace(`CASE
	WHEN o.stage IN ('waiting', 'blocked') THEN 'behind_another'
	WHEN o.stage = 'quarantined' OR o.crashes > CRASHES OR o.due_at IS NULL AND o.doubts = '' AND o.stage <> 'pending' THEN 'held'
	WHEN l.reason <> '' THEN l.reason
	WHEN l.lease_until > NOW AND o.stage = 'sent' AND o.sent_at <= NOW - UNANSWERED AND o.due_at <= NOW
		THEN 'authority_unreachable'
	WHEN o.doubts <> '' THEN o.doubts
	WHEN l.lease_until > NOW THEN ''
	WHEN o.stage = 'sent' THEN 'outcome_unknown'
	WHEN l.asked_until > NOW AND o.stage <> 'pending' THEN 'authority_wait'
	ELSE '' END`)
}

// waitsSQL looks at what is open by its two indexes, the longest waiting first.
func waitsSQL() string {
	const columns = "operation_id, country, live, supplier_id, accepted_at, stage, crashes, doubts, lane, due_at, sent_at"
	return `SELECT country, live, reason, count(*), count(DISTINCT supplier_id), min(accepted_at) FROM (
	SELECT u.country, u.live, u.supplier_id, u.accepted_at, ` + reasonSQL("u", "$2") + ` AS reason FROM
		(SELECT * FROM (SELECT ` + columns + ` FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1) AS due UNION ALL
		SELECT * FROM (SELECT ` + columns + ` FROM operations WHERE status = 'PROCESSING' AND due_at IS NULL ORDER BY operation_id LIMIT $1) AS idle) AS u
	LEFT JOIN lanes l ON l.lane = u.lane) AS w WHERE reason <> '' GROUP BY country, live, reason`
}

package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
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
		if Why(m.Code) == w || w == WhyQuarantine && m.Code == fault.Held {
			return m.Do
		}
	}
	return ""
}

var meanings = []Meaning{
	{fault.AuthorityNotConfigured, "The country's authority has no address for this kind of key, or asks for an identity of ours that is not set. No call was made.",
		"`tributary authority list` says what is missing; set it with `tributary authority set CC.live --url https://…`. Filing goes on within seconds."},
	{fault.AuthorityUnreachable, "The authority was called and gave no answer: no connection, or none in time.",
		"Check its own notices, then the way to it: the address, the firewall, DNS. `tributary doctor` tries the connection. It is tried again by itself."},
	{fault.AuthorityError, "The authority answered, but with an error of its own that says nothing about the document, for example HTTP 503.",
		"Read the last error and the authority's notices; an address of another system answers like this too. It is tried again by itself."},
	{fault.AuthorityWait, "The authority asked for a pause between calls, which is obeyed.",
		"Nothing; filing goes on at the time it named."},
	{fault.CredentialsInvalid, "The authority refuses the supplier's credentials.",
		"Ask the client for new ones; `PATCH` of the company with them lets filing go on at once."},
	{fault.ChainStopped, "The authority's last link of the supplier's chain is not ours; nothing is filed, so that the chain cannot fork.",
		"Find out who else files for the supplier, then `tributary restored resume`."},
	{fault.AwaitingAcceptance, "Somebody else must agree first, for example the buyer to a cancellation.",
		"Nothing, or ask the client to remind the buyer."},
	{fault.OutcomeUnknown, "It was sent, and the authority has not said whether it holds it.",
		"Look it up at the authority's portal if it stays; do not file it again elsewhere. The authority is asked by itself where it can be."},
	{fault.DocumentsUnavailable, "The document store takes nothing.",
		"Check disk space or the object store; `tributary doctor` writes a probe. It is made again by itself."},
	{fault.BehindAnother, "An earlier attempt, its original or another correction of that has not ended.",
		"Look at what it waits for: that one has the reason."},
	{fault.Held, "Somebody must look first: after a restored backup, or because the operation was in work each time the process ended.",
		"After a restore see `tributary restored`; a single transaction is released with its button *Retry now*."},
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
// twice [queueLook] operations are looked at.
func Waits(r db.Reader) ([]Waiting, error) {
	list, err := db.Collect(r, func(scan func(...any) error) (w Waiting, err error) {
		var live bool
		err = scan(&w.At.Code, &live, &w.Code, &w.Operations, &w.Suppliers, db.NullInstant(&w.OldestAt))
		w.At.Live = country.Live(live)
		return w, err
	}, waitsSQL(), queueLook, db.Micros(r.Now()))
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
// waitOf tells. One whose lane is held is being worked on and waits for nothing.
func reasonSQL(operation, now string) string {
	return strings.NewReplacer("o.", operation+".", "NOW", now).Replace(`CASE
	WHEN o.stage IN ('waiting', 'blocked') THEN 'behind_another'
	WHEN o.stage = 'quarantined' OR o.due_at IS NULL AND o.doubts = '' THEN 'held'
	WHEN l.reason <> '' THEN l.reason
	WHEN l.lease_until > NOW THEN ''
	WHEN o.doubts <> '' THEN o.doubts
	WHEN o.stage = 'sent' THEN 'outcome_unknown'
	WHEN l.asked_until > NOW THEN 'authority_wait'
	ELSE '' END`)
}

// waitsSQL looks at what is open by its two indexes, the longest waiting first.
func waitsSQL() string {
	const columns = "operation_id, country, live, supplier_id, accepted_at, stage, doubts, lane, due_at"
	return `SELECT country, live, reason, count(*), count(DISTINCT supplier_id), min(accepted_at) FROM (
	SELECT u.country, u.live, u.supplier_id, u.accepted_at, ` + reasonSQL("u", "$2") + ` AS reason FROM
		(SELECT * FROM (SELECT ` + columns + ` FROM operations WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1) AS due UNION ALL
		SELECT * FROM (SELECT ` + columns + ` FROM operations WHERE status = 'PROCESSING' AND due_at IS NULL ORDER BY operation_id LIMIT $1) AS idle) AS u
	LEFT JOIN lanes l ON l.lane = u.lane) AS w WHERE reason <> '' GROUP BY country, live, reason`
}

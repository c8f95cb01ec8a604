package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/exchange"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/filing"
	"tributary/internal/operation"
	"tributary/internal/result"
	"tributary/internal/webhook"
)

// Bounds of what is shown of one operation.
const (
	exchangesMax   = 200 // the newest
	attemptsMax    = 1100
	correctionsMax = 200
	saidMax        = 500
)

// Life is everything that is known of one operation, for the operator.
type Life struct {
	Summary
	Result      *result.Result     // as the client sees it
	Attempts    []Summary          // of the same transaction, oldest first, this one among them
	Moments     []Moment           // what happened when, oldest first
	Exchanges   []Exchange         // every call to the authority, oldest first
	Filing      *Filed             // nil: nothing was prepared, or nothing is filed
	Documents   []files.Attachment // their addresses are in Result.Attachments
	Original    *Summary           // what this one corrects
	Corrections []Summary          // what corrects this one, failed ones included
	Body        []byte             // as the client sent it
	Warnings    []fault.Fault      // of the intake
	Wait        *Wait              // nil when settled
	Events      []webhook.EventRow // the notifications of its end
	Said        []Said             // what was said about its document, oldest first
}

// Moment is one point of the timeline.
type Moment struct {
	At       time.Time
	What     string // accepted, started, prepared, sent, exchange, settled, news; next: what is planned
	Text     string
	Exchange *Exchange        // of an exchange
	Severity country.Severity // of news
}

// Said is one entry of the life cycle, and when it was learned.
type Said struct {
	result.LifecycleEntry
	LearnedAt time.Time
}

// Exchange is one call to an authority.
type Exchange struct {
	ID, Lane, Verb string
	At             time.Time
	Took           time.Duration
	Filings        int64 // that were in the call
	Outcome        string
	Answered       bool   // else Outcome says what went wrong
	Decision       string // about this operation's filing, of an answer: see [country.Outcome] and [exchange.Duplicate]
	Said           string // about it, in the authority's words
	Reply          []byte // what came back, cut to its first 16 KiB
	Counted        bool   // the bytes of the bodies are known
	Out, In        int64
}

// Refused reports whether the call was answered with a no.
func (x Exchange) Refused() bool {
	return x.Decision == string(country.Rejected) || x.Decision == exchange.Duplicate
}

// calls are the names of what is asked of an authority.
var calls = map[string]string{"send": "submission", "poll": "status query", "find": "lookup", "head": "chain query",
	"read": "document query", "listen": "status query", "told": "callback"}

// text says in one line how a call ended.
func (x Exchange) text() string {
	call, said := cmp.Or(calls[x.Verb], x.Verb), x.Said
	if said != "" {
		said = ": " + said
	}
	switch {
	case !x.Answered:
		return call + " failed: " + x.Outcome
	case x.Decision == string(country.NotTaken):
		return call + " refused" + cmp.Or(said, ": service unavailable")
	case x.Decision != "":
		return call + " " + strings.ReplaceAll(x.Decision, "_", " ") + said
	}
	return call + " " + x.Outcome + said
}

// Filed is what was made for the authority, byte for byte.
type Filed struct {
	Report                     []byte
	Format, SHA256, Number     string
	Link                       int64 // position in the chain; 0: none
	PreparedAt                 time.Time
	Receipt                    string           // JSON; empty: none yet
	Answer                     *country.Receipt // the same, read; nil: none yet
	AuthorityID1, AuthorityID2 string
}

// Life reads one operation of any client. Unknown: fault.NotFound.
func (s *Ledger) Life(ctx context.Context, operationID string) (life *Life, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		life, err = s.life(r, operationID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the life of %s: %w", operationID, err)
	}
	return life, nil
}

func (s *Ledger) life(r db.Reader, operationID string) (*Life, error) {
	one, err := summaryOf(r, operationID)
	if fault.KindOf(err) == fault.NotFound {
		return s.receivedLife(r, operationID)
	}
	if err != nil {
		return nil, err
	}
	l := &Life{Summary: one}
	for _, read := range []func(db.Reader, *Life) error{
		s.lifeResult, s.lifeBody, s.lifeAttempts, s.lifeExchanges, s.lifeFiling, s.lifeCorrections, s.lifeEvents, s.lifeWait,
		s.lifeSaid,
	} {
		if err := read(r, l); err != nil {
			return nil, err
		}
	}
	l.Moments = l.moments()
	return l, nil
}

// NumberOf is the number of an operation's document; "" of an unknown one.
func NumberOf(r db.Reader, operationID string) (number string, err error) {
	err = r.Row("SELECT number FROM operations WHERE operation_id = $1", operationID).Scan(&number)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return number, err
}

func summaryOf(r db.Reader, operationID string) (Summary, error) {
	one, err := scanSummary(r.Row("SELECT "+summaryColumns+" FROM operations o WHERE o.operation_id = $1", operationID).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return one, filing.Unknown()
	}
	return one, err
}

func (s *Ledger) lifeResult(r db.Reader, l *Life) (err error) {
	if l.Result, err = s.read(r, l.ClientID, l.OperationID); err != nil {
		return err
	}
	winner := l.OperationID
	if l.SettledBy != "" {
		winner = l.SettledBy
	}
	l.Documents, err = s.cfg.Documents.Of(r, l.ClientID, winner)
	return err
}

func (s *Ledger) lifeBody(r db.Reader, l *Life) error {
	var warnings *string
	err := r.Row("SELECT body, warnings FROM bodies WHERE operation_id = $1", l.OperationID).Scan(&l.Body, &warnings)
	l.Warnings = operation.ReadFaults(warnings)
	return err
}

func (s *Ledger) lifeAttempts(r db.Reader, l *Life) (err error) {
	l.Attempts, err = db.Collect(r, scanSummary, "SELECT "+summaryColumns+
		" FROM operations o WHERE o.client_id = $1 AND o.transaction_id = $2 ORDER BY o.attempt LIMIT "+
		strconv.Itoa(attemptsMax), l.ClientID, l.TransactionID)
	return err
}

func (s *Ledger) lifeExchanges(r db.Reader, l *Life) (err error) {
	l.Exchanges, err = db.Collect(r, func(scan func(...any) error) (x Exchange, err error) {
		var at, took int64
		err = scan(&x.ID, &x.Lane, &x.Verb, &at, &took, &x.Filings, &x.Outcome, &x.Reply, &x.Counted, &x.Out, &x.In,
			&x.Decision, &x.Said)
		x.At, x.Took, x.Answered = db.FromMicros(at), time.Duration(took)*time.Microsecond, x.Outcome == "answered"
		return x, err
	}, `SELECT x.exchange_id, x.lane, x.verb, x.at, x.took, x.filings, x.outcome, x.reply, x.bytes_out IS NOT NULL, coalesce(x.bytes_out, 0), coalesce(x.bytes_in, 0), e.decision, e.said
		FROM exchange_operations e
		JOIN exchanges x ON x.exchange_id = e.exchange_id WHERE e.operation_id = $1 AND e.exchange_id >= $2
		ORDER BY e.exchange_id DESC LIMIT `+strconv.Itoa(exchangesMax), l.OperationID, exchange.From(l.AcceptedAt))
	slices.Reverse(l.Exchanges)
	return err
}

func (s *Ledger) lifeFiling(r db.Reader, l *Life) error {
	var report []byte
	var text string
	var receipt *string
	err := r.Row("SELECT report, filing, receipt FROM filings WHERE operation_id = $1", l.OperationID).Scan(&report,
		&text, &receipt)
	if errors.Is(err, db.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	filing, err := operation.ReadFiling(text, report)
	if err != nil {
		return err
	}
	l.Filing = &Filed{Report: report, Format: filing.Format, SHA256: filing.SHA256, Number: filing.Number,
		Link:       filing.Link.Position,
		PreparedAt: filing.PreparedAt, AuthorityID2: filing.AuthorityID}
	if receipt == nil {
		return nil
	}
	var got country.Receipt
	if err := json.Unmarshal([]byte(*receipt), &got); err != nil {
		return fmt.Errorf("read the receipt: %w", err)
	}
	l.Filing.Receipt, l.Filing.Answer, l.Filing.AuthorityID1 = *receipt, &got, got.AuthorityID1
	l.Filing.AuthorityID2 = cmp.Or(got.AuthorityID2, l.Filing.AuthorityID2)
	return nil
}

const correctionsSQL = "SELECT " + summaryColumns +
	" FROM operations o WHERE o.client_id = $1 AND o.reference_id = $2 LIMIT $3"

// sharedSQL are those that name the transaction beside another that comes first.
const sharedSQL = "SELECT " + summaryColumns + ` FROM corrections c JOIN operations o ON o.operation_id = c.operation_id
	WHERE c.client_id = $1 AND c.original_id = $2 AND o.reference_id <> $2 LIMIT $3`

func (s *Ledger) lifeCorrections(r db.Reader, l *Life) (err error) {
	for _, sql := range []string{correctionsSQL, sharedSQL} {
		list, err := db.Collect(r, scanSummary, sql, l.ClientID, l.TransactionID, correctionsMax)
		if err != nil {
			return err
		}
		l.Corrections = append(l.Corrections, list...)
	}
	// Sorted here: asked for an order, SQLite walks all of the client's operations in it.
	slices.SortFunc(l.Corrections, func(a, b Summary) int { return cmp.Compare(a.OperationID, b.OperationID) })
	if err != nil || l.ReferenceID == "" {
		return err
	}
	l.Original, err = standsFor(r, l.ClientID, l.ReferenceID)
	return err
}

// standsFor is the attempt that speaks for a transaction: the successful one, or the last. Nil: unknown.
func standsFor(r db.Reader, clientID, transactionID string) (*Summary, error) {
	one, err := scanSummary(r.Row("SELECT "+summaryColumns+` FROM operations o WHERE o.client_id = $1 AND o.transaction_id = $2
		ORDER BY CASE WHEN o.status = 'SUCCESS' AND o.settled_by IS NULL THEN 0 ELSE 1 END, o.attempt DESC LIMIT 1`, clientID, transactionID).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &one, err
}

// lifeEvents reads the notifications that the settling commit stored.
func (s *Ledger) lifeEvents(r db.Reader, l *Life) (err error) {
	if l.SettledAt.IsZero() {
		return nil
	}
	l.Events, err = s.cfg.Hooks.EventsAt(r, l.ClientID, l.OperationID, l.SettledAt)
	return err
}

// lifeSaid reads the life cycle of the document that the operation stands for.
func (s *Ledger) lifeSaid(r db.Reader, l *Life) (err error) {
	l.Said, err = db.Collect(r, func(scan func(...any) error) (e Said, err error) {
		var at, learned int64
		err = scan(&at, &e.Code, &e.Name, &e.Source, &e.Severity, &e.Message, &learned)
		e.At, e.LearnedAt = result.Stamp(db.FromMicros(at)), db.FromMicros(learned)
		return e, err
	}, `SELECT at, code, name, source, severity, message, learned_at FROM lifecycle WHERE operation_id = $1
		ORDER BY learned_at, at, message_key LIMIT `+strconv.Itoa(saidMax), cmp.Or(l.SettledBy, l.OperationID))
	return err
}

// moments puts everything that has a time in order.
func (l *Life) moments() []Moment {
	list := []Moment{{At: l.AcceptedAt, What: "accepted", Text: "accepted and stored"}}
	add := func(at time.Time, what, text string) {
		if !at.IsZero() {
			list = append(list, Moment{At: at, What: what, Text: text})
		}
	}
	add(l.StartedAt, "started", "picked up for filing")
	if l.Filing != nil {
		add(l.Filing.PreparedAt, "prepared", "document built and saved")
	}
	recorded := false
	for i, x := range l.Exchanges {
		recorded = recorded || x.Verb == "send" && !x.At.Before(l.SentAt)
		list = append(list, Moment{At: x.At, What: "exchange", Text: x.text(), Exchange: &l.Exchanges[i]})
	}
	switch { // the mark is of the last sending; a call that was recorded tells more of it
	case recorded:
	case l.SettledAt.IsZero():
		add(l.SentAt, "sent", "sent; no answer recorded")
	default:
		add(l.SentAt, "sent", "sent")
	}
	switch {
	case l.SettledBy != "":
		add(l.SettledAt, "settled", "finished with the result of attempt "+l.SettledBy)
	default:
		add(l.SettledAt, "settled", "finished: "+string(l.Status))
	}
	for _, e := range l.Said {
		text := fmt.Sprintf("%s: %s", strings.ToLower(strings.ReplaceAll(string(e.Source), "_", " ")),
			strings.Join(strings.Fields(e.Code+" "+e.Name+" "+e.Message), " "))
		list = append(list, Moment{At: e.LearnedAt, What: "news", Text: text, Severity: e.Severity})
	}
	slices.SortStableFunc(list, func(a, b Moment) int { return a.At.Compare(b.At) })
	if l.Wait != nil && !l.Wait.NextAt.IsZero() {
		list = append(list, Moment{At: l.Wait.NextAt, What: "next", Text: l.Wait.Text})
	}
	return list
}

package ledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tributary/internal/db"
	"tributary/internal/filing"
)

// IndexRound indexes once, as if it were now.
func (s *Ledger) IndexRound(ctx context.Context, now time.Time) error {
	x := s.newIndexer()
	x.now = func() time.Time { return now }
	return x.round(ctx)
}

// IndexNow indexes what is there, the settled ones included, again where the
// node's own indexer moved a cursor first.
func (s *Ledger) IndexNow(ctx context.Context) error {
	for {
		err := s.IndexRound(ctx, s.db.Now().Add(settledTrail+time.Second))
		if !errors.Is(err, db.ErrStale) {
			return err
		}
	}
}

// FlushCounts stores what was counted.
func (s *Ledger) FlushCounts(ctx context.Context) error { return s.tally.flush(ctx) }

// Statement is one query with its arguments.
type Statement struct {
	Text string
	Args []any
}

// SearchStatements are all queries that a search makes on this snapshot.
func (s *Ledger) SearchStatements(r db.Reader, q Query) (list []Statement, err error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	sources, err := s.sources(r, q)
	if err != nil {
		return nil, err
	}
	for _, src := range sources {
		if src.table != "" || src.walk != nil {
			text, args := src.text(span{from: "0", before: "f", after: "f"}, windows[0])
			list = append(list, Statement{text, args})
		}
	}
	text, args := s.pickText([]string{"0190c1f0-0000-7000-8000-000000000000"}, q, q.Limit)
	return append(list, Statement{text, args}), nil
}

// OverviewStatements are the queries of the overview.
func OverviewStatements() []Statement {
	return []Statement{{newestSQL, nil}, {openDueSQL, []any{openMax}}, {openIdleSQL, []any{openMax}},
		{queuedSQL, []any{queueScanMax}}, {failingSQL, []any{lanesLook}}, {depthsDueSQL, []any{queueScanMax}},
		{depthsIdleSQL, []any{queueScanMax}}, {waitsSQL(), []any{queueScanMax, int64(1)}}}
}

// PieceStatements are the queries of pieces.
func PieceStatements() []Statement {
	return []Statement{{piecesSQL, []any{"A", after("A"), piecesMax}},
		{namesakesSQL, []any{"A", after("A"), companiesMax}}, {changedSQL, []any{int64(1), "c", indexSet}},
		{lastCallsSQL + "20", nil}}
}

// PiecesMax is how many operations a piece may mean.
const PiecesMax = piecesMax

// CorrectionsStatement is the query of what corrects a transaction.
func CorrectionsStatement() Statement { return Statement{correctionsSQL, []any{"c", "t", 10}} }

// NextStatement is the query of the indexer.
func NextStatement() Statement { return Statement{nextSQL, []any{"0190", indexSet}} }

// Limits of the index and of searches.
const (
	SearchMax  = searchMax
	TextMax    = textMax
	OpenMax    = openMax
	TermMax    = termBytesMax
	IndexSet   = indexSet
	RoundMax   = indexSet * setsIdle
	TallyEvery = tallyEvery
)

// SearchWindow is how many candidates one page looks at.
func SearchWindow() (n int) {
	for _, w := range windows {
		n += w
	}
	return n
}

// TermOf is the form in which a text is looked for.
func TermOf(text string) string { return termOf(text) }

// OperationIn finds an operation id in a text.
func OperationIn(text string) (string, bool) { return operationIn(text) }

// CountCommit returns what a commit of one client costs the plots.
func CountCommit(d *db.DB) func() {
	t := NewTally(d, slog.New(slog.DiscardHandler))
	t.closed = true
	now, done := d.Now(), []filing.Tallied{{Country: "XX", ClientID: "c", Accepted: 256}}
	return func() { t.add(now, done) }
}

// FillReads reads as much at a time as may be, until leave is called.
func (s *Ledger) FillReads(ctx context.Context, owner string) (leave func()) {
	leave, err := s.reads.Enter(ctx, owner, 1<<62)
	if err != nil {
		panic(err) // nobody else reads yet
	}
	return leave
}

// Listed is List without the rows.
func (s *Ledger) Listed(ctx context.Context, scope string, f Filter) (ids []string, next string, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		ids, next, err = s.listed(r, scope, f)
		return err
	})
	return ids, next, err
}

// ListStatements are the queries of a page of a list: of each source, and what picks of them.
func (s *Ledger) ListStatements(r db.Reader, scope string, f Filter) (sources []Statement, pick Statement, err error) {
	list, err := s.listSources(r, scope, f)
	if err != nil {
		return nil, pick, err
	}
	for _, src := range list {
		if src.walk == nil {
			sources = append(sources, Statement{openOfDueSQL, []any{scope + "|", scope + "}", openMax}},
				Statement{openOfIdleSQL, []any{scope, openMax}})
			continue
		}
		text, args := src.text(span{after: f.After}, f.Limit+1)
		sources = append(sources, Statement{text, args})
	}
	pick.Text, pick.Args = f.pickText(s.db, []string{"0190c1f0-0000-7000-8000-000000000000"}, f.Limit+1)
	return sources, pick, nil
}

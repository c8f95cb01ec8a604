package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// sqliteTx is the engine's side of one transaction, reading or writing.
type sqliteTx struct {
	tx  *sql.Tx
	ctx context.Context
	instant
	cache *stmtCache
	stmts map[string]*sql.Stmt // of this transaction, by text
	fresh []string             // texts this transaction met first
	dirty bool                 // something may have been changed

	limited context.Context // of a read with a budget: ends its statements
}

// stmt returns a prepared statement. A text that is met for the first time is
// prepared on this transaction's connection now, and for later transactions
// once this one has ended: asking the pool for a second connection while
// holding one would wait for ever when all others do the same.
func (c *sqliteTx) stmt(text string) (*sql.Stmt, error) {
	if s := c.stmts[text]; s != nil {
		return s, nil
	}
	if c.stmts == nil {
		c.stmts = make(map[string]*sql.Stmt, 8)
	}
	if s := c.cache.get(text); s != nil {
		c.stmts[text] = c.tx.StmtContext(context.Background(), s)
		return c.stmts[text], nil
	}
	s, err := c.tx.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, text)
	}
	c.stmts[text], c.fresh = s, append(c.fresh, text)
	return s, nil
}

// learn prepares the texts of a transaction that has ended for those to come.
func (c *sqliteTx) learn(pool *sql.DB) {
	for _, text := range c.fresh {
		if s, err := pool.PrepareContext(context.Background(), text); err == nil {
			c.cache.put(text, s)
		}
	}
}

func (c *sqliteTx) query(text string, args []any) (*Rows, error) {
	c.dirty = c.dirty || !strings.HasPrefix(text, "SELECT")
	ctx := context.Background() // watching another one costs a goroutine
	if c.limited != nil {
		ctx = c.limited
	}
	s, err := c.stmt(text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return &Rows{std: rows}, nil
}

func (c *sqliteTx) exec(text string, args []any, want int64) error {
	c.dirty = true
	s, err := c.stmt(text)
	if err != nil {
		return err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil || want < 0 {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != want {
		return errors.Join(err, ErrStale)
	}
	return nil
}

func (c *sqliteTx) execEach(text string, rows [][]any, want int64) error {
	for _, args := range rows {
		if err := c.exec(text, args, want); err != nil {
			return err
		}
	}
	return nil
}

// updateEach is the same: statements cost no round trip here.
func (c *sqliteTx) updateEach(text string, rows [][]any, want int64) error {
	return c.execEach(text, rows, want)
}

// insertTogether are the numbers of rows that one statement inserts. Calling
// the driver costs as much as inserting a small row, so rows go in handfuls;
// few sizes keep the number of prepared statements small.
var insertTogether = [...]int{16, 4, 1}

func (c *sqliteTx) insert(in Insert, rows [][]any, each func(*Rows) error) error {
	for _, n := range insertTogether {
		for len(rows) >= n {
			if err := c.insertRows(in, rows[:n], each); err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}

func (c *sqliteTx) insertRows(in Insert, rows [][]any, each func(*Rows) error) error {
	columns := strings.Count(in.Columns, ",") + 1
	args := rows[0]
	if len(rows) > 1 {
		args = make([]any, 0, columns*len(rows))
		for i, row := range rows {
			if len(row) != columns {
				return fmt.Errorf("insert into %s: row %d has %d values for %d columns", in.Table, i, len(row), columns)
			}
			args = append(args, row...)
		}
	}
	text := c.cache.insertText(in, columns, len(rows))
	if each == nil {
		return c.exec(text, args, -1)
	}
	result, err := c.query(text, args)
	if err != nil {
		return err
	}
	return result.Each(func(func(...any) error) error { return each(result) })
}

func (c *sqliteTx) lock(string) error { return nil }

// Reader.
//
// The driver ends a statement only up to its first row. So the first row of many
// comes when all of them are there; one alone, which may be a large document, is not
// copied for it.
func (c *sqliteTx) Query(text string, args ...any) (*Rows, error) {
	if begins := strings.ToUpper(text[:min(len(text), 6)]); c.limited != nil && (begins == "SELECT" || strings.HasPrefix(begins, "WITH")) {
		text = "WITH answer AS MATERIALIZED (" + text + ") SELECT * FROM answer"
	}
	return c.query(text, args)
}
func (c *sqliteTx) Row(text string, args ...any) *Row {
	rows, err := c.query(text, args)
	return &Row{rows: rows, err: err}
}
func (c *sqliteTx) Context() context.Context { return c.ctx }

// insertText is the text of an insert of some rows, made once. The engine binds
// plain question marks faster than numbered parameters.
func (c *stmtCache) insertText(in Insert, columns, rows int) string {
	key := insertKey{in, rows}
	if text, ok := c.inserts.Load(key); ok {
		return text.(string)
	}
	row := "(?" + strings.Repeat(",?", columns-1) + ")"
	text := "INSERT INTO " + in.Table + " (" + in.Columns + ") VALUES " + row + strings.Repeat(","+row, rows-1) + " " + in.Suffix
	c.inserts.Store(key, text)
	return text
}

type insertKey struct {
	in   Insert
	rows int
}

// stmtCache keeps prepared statements for the life of the engine: the number
// of SQL texts in the program is small and fixed.
type stmtCache struct {
	inserts sync.Map // texts by insertKey

	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

func (c *stmtCache) get(text string) *sql.Stmt {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stmts[text]
}

// put keeps s, or closes it and returns the one that was first.
func (c *stmtCache) put(text string, s *sql.Stmt) *sql.Stmt {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first := c.stmts[text]; first != nil {
		_ = s.Close() // an unused statement
		return first
	}
	if c.stmts == nil {
		c.stmts = map[string]*sql.Stmt{}
	}
	c.stmts[text] = s
	return s
}

func (c *stmtCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, s := range c.stmts {
		err = errors.Join(err, s.Close())
	}
	return err
}

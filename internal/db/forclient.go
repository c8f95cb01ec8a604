package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tributary/internal/fault"
)

// ClientSetting is what the policies of PostgreSQL compare a row's client with.
const ClientSetting = "tributary.client_id"

type clientKey struct{}

// ForClient marks the reads of a caller who is a client. On PostgreSQL with
// roles (see package schema) they are made as the role that sees this client's rows
// and no others, whatever the statement forgets to say. Elsewhere it changes
// nothing: statements name their client all the same.
func ForClient(ctx context.Context, clientID string) context.Context {
	return context.WithValue(ctx, clientKey{}, clientID)
}

// AsService ends ForClient, for what the program asks on its own behalf while
// it answers a client: how much waits in all, which keys there are.
func AsService(ctx context.Context) context.Context {
	if _, ok := clientOf(ctx); !ok {
		return ctx
	}
	return context.WithValue(ctx, clientKey{}, nil)
}

func clientOf(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(clientKey{}).(string)
	return id, ok
}

// beginRead is how a snapshot begins: with its time limit, and behind the
// second wall where it is for a client. Everything goes in one round trip and
// ends with the snapshot, so that a connection never keeps it for somebody else.
func (e *pgEngine) beginRead(ctx context.Context, conn *pgx.Conn, b *budget) (pgx.TxOptions, error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	var set strings.Builder
	if b != nil {
		fmt.Fprintf(&set, "; set local statement_timeout = %d", max(b.limit.Milliseconds(), 1))
	}
	role := e.readRole.Load()
	if client, ok := clientOf(ctx); ok && role != nil {
		quoted, err := conn.PgConn().EscapeString(client)
		if err != nil {
			return options, fmt.Errorf("name the client of a read: %w", err)
		}
		fmt.Fprintf(&set, "; set local role %s; set local %s = '%s'", pgx.Identifier{*role}.Sanitize(), ClientSetting, quoted)
	}
	if set.Len() > 0 {
		options.BeginQuery = "begin isolation level repeatable read read only" + set.String()
	}
	return options, nil
}

// Becomes is what a role must have of another to SET ROLE: since PostgreSQL 16 who made a role is a member that may not.
const Becomes = "CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END"

// findRoles learns with which role clients read: the one that was granted beside the role of this session, or for the
// owner any that it may become.
func (e *pgEngine) findRoles(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.ConnConfig.ConnectTimeout+pgQuestionFor)
	defer cancel()
	var known bool
	if err := e.work.QueryRow(ctx,
		"SELECT coalesce(has_table_privilege(to_regclass('schema_roles'), 'SELECT'), false)").Scan(&known); err != nil || !known {
		return err
	}
	var role string
	err := e.work.QueryRow(ctx,
		"SELECT r.rolname FROM schema_roles s JOIN pg_roles r ON r.rolname = s.read WHERE pg_has_role(r.oid, "+Becomes+
			") ORDER BY s.serve <> current_user, s.serve LIMIT 1").Scan(&role)
	switch {
	case err == nil:
		e.readRole.Store(&role)
	case !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("look with which role clients read: %w", err)
	default:
		e.readRole.Store(nil)
	}
	return nil
}

// ReadBudget is how long a read for a client or an operator may take.
const ReadBudget = 5 * time.Second

type budgetKey struct{}

type budget struct {
	limit   time.Duration
	visitor bool // somebody from outside, with connections of their own
}

// WithReadBudget marks the reads of a caller from outside: each is ended after
// the budget and answers Unavailable, and all of them share connections of their
// own. Whatever they ask, commits, claims and the program's own reads go on.
func WithReadBudget(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, budgetKey{}, budget{limit, true})
}

// readsWaiting is how many reads of one caller from outside may wait for a connection.
const readsWaiting = 1024

// read has callers from outside take turns to the connections that they share, client
// by client: however many reads one of them asks for, another's is the next. The last
// connection is never that of one client alone.
func (d *DB) read(ctx context.Context, agree agreement, fn func(Reader) error) error {
	b := readBudget(ctx)
	if b == nil || !b.visitor {
		return d.eng.read(ctx, agree, fn)
	}
	wait, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	owner, _ := clientOf(ctx)
	leave, err := d.turns.Enter(wait, owner, 1)
	if err != nil {
		return err
	}
	defer leave()
	return d.eng.read(ctx, agree, fn)
}

// ReadSoon is Read for a question that is quickly answered or not at all: a claim
// must not hang on a server that says nothing. Its statements need not agree.
func (d *DB) ReadSoon(ctx context.Context, fn func(Reader) error) error {
	return d.ReadEach(context.WithValue(ctx, budgetKey{}, budget{limit: ReadBudget}), fn)
}

// readBudget is nil where there is none.
func readBudget(ctx context.Context) *budget {
	if b, limited := ctx.Value(budgetKey{}).(budget); limited {
		return &b
	}
	return nil
}

// overBudget is what a caller hears whose read took too long.
func overBudget(err error) error {
	return (&fault.Error{
		Kind: fault.Unavailable, Message: "reading took too long; please narrow the request or retry", RetryAfter: 2 * time.Second,
		Faults: []fault.Fault{{Code: fault.CodeOverloaded, Type: fault.General, Message: "reading took too long"}},
	}).Because(err)
}

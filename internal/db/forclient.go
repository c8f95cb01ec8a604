package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
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
	ctx, cancel := context.WithTimeout(ctx, pgConnectTimeout+pgQuestionFor)
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

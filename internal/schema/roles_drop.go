package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tributary/internal/db"
	"tributary/internal/fault"
)

const dependentObjects = "2BP01"

// Drop takes a serving role, and the role with which it read for clients, out of
// service: its policies and rights go, then the roles themselves.
//
// Failure policy: refused while somebody is connected as the role, or while it is
// the only one. A role that we may not drop, because an administrator made it or
// because another database of the server still gives it rights, is left without any
// rights here, and left says what remains to be done.
func Drop(ctx context.Context, d *db.DB, serve string) (left string, err error) {
	if d.Engine() != "postgres" {
		return "", fault.New(fault.Invalid, "roles belong to PostgreSQL: a SQLite file has one user")
	}
	ctx, cancel := context.WithTimeout(ctx, migrateFor)
	defer cancel()
	s, err := openPostgres(ctx, d)
	if err != nil {
		return "", fmt.Errorf("wait for other nodes that migrate: %w", err)
	}
	defer s.close()
	r, err := s.droppable(ctx, serve)
	if err != nil {
		return "", err
	}
	if err := s.exec(ctx, "DELETE FROM schema_roles WHERE serve = '"+quoted(serve)+"'"); err != nil {
		return "", fmt.Errorf("forget role %s: %w", serve, err)
	}
	if err := s.grantAgain(ctx); err != nil { // the policies of the others, without this one
		return "", err
	}
	return s.dismiss(ctx, r)
}

// droppable finds a serving role that nobody needs any more.
func (s *pgSession) droppable(ctx context.Context, serve string) (r Roles, err error) {
	var sessions, others int
	err = s.conn.QueryRow(ctx, `SELECT serve, read, (SELECT count(*) FROM pg_stat_activity a WHERE a.usename = r.serve AND a.datname = current_database()),
		(SELECT count(*) FROM schema_roles o WHERE o.serve <> r.serve) FROM schema_roles r WHERE serve = $1`, serve).Scan(&r.Serve, &r.Read, &sessions, &others)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r, fault.New(fault.Invalid, "no serving role %s is known here", serve)
	case err != nil:
		return r, fmt.Errorf("look for role %s: %w", serve, err)
	case others == 0:
		return r, fault.New(fault.Invalid, "%s is the only serving role: make another one first (tributary migrate --serve-role NAME)", serve)
	case sessions > 0:
		return r, fault.New(fault.Invalid, "sessions are connected as %[2]s (%[1]d): change --database of those nodes and commands first", sessions, serve)
	}
	return r, nil
}

// dismiss takes all rights from a role that no policy names, and drops it.
func (s *pgSession) dismiss(ctx context.Context, r Roles) (left string, err error) {
	tables, err := s.tables(ctx)
	if err != nil {
		return "", err
	}
	gone := []string{r.Serve}
	var shared bool
	if err := s.conn.QueryRow(ctx, "SELECT count(*) > 0 FROM schema_roles WHERE read = $1", r.Read).Scan(&shared); err != nil {
		return "", fmt.Errorf("look who else reads as %s: %w", r.Read, err)
	}
	if !shared {
		gone = append(gone, r.Read)
	}
	for _, role := range gone {
		script := "REVOKE ALL ON " + listed(tables) + " FROM " + ident(role) + ";REVOKE ALL ON FUNCTION " + functions +
			" FROM " + ident(role) +
			";DO $$ BEGIN EXECUTE format('REVOKE ALL ON SCHEMA %I FROM " + quoted(ident(role)) + "', current_schema()); " +
			"EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM " + quoted(ident(role)) + "', current_schema()); " +
			"EXECUTE format('REVOKE ALL ON DATABASE %I FROM " + quoted(ident(role)) + "', current_database()); END $$"
		if err := s.exec(ctx, script); err != nil {
			return "", fmt.Errorf("take the rights of role %s: %w", role, err)
		}
	}
	for _, role := range gone {
		switch err := s.run(ctx, "DROP ROLE "+ident(role)); db.SQLState(err) {
		case "":
			if err != nil {
				return "", fmt.Errorf("drop role %s: %w", role, err)
			}
		case db.InsufficientPrivilege, dependentObjects:
			left += fmt.Sprintf("role %s has no rights here any more but could not be dropped (%s); have an administrator run DROP ROLE %s\n", role, err, ident(role))
		default:
			return "", fmt.Errorf("drop role %s: %w", role, err)
		}
	}
	return left, nil
}

// Shows asks for a row that stands under the policies, as the role of the
// connection and as that of clients' reads: an answer without rows is no
// answer of this database.
func Shows(ctx context.Context, d *db.DB) error {
	for _, ctx := range []context.Context{ctx, db.ForClient(ctx, "anyone")} {
		var one int
		err := d.Read(ctx, func(r db.Reader) error { return r.Row("SELECT one FROM intake").Scan(&one) })
		if errors.Is(err, db.ErrNoRows) {
			return fmt.Errorf("the database hides its rows from this role: tributary migrate --serve-role NAME as the owner: %w", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

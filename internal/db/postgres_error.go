package db

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Codes of PostgreSQL that decide something here.
const (
	LockNotAvailable      = "55P03"
	ObjectInUse           = "55006"
	queryCanceled         = "57014"
	InsufficientPrivilege = "42501"
	undefinedFunction     = "42883"
	notSupported          = "0A000"
	DuplicateObject       = "42710"
	UniqueViolation       = "23505"
	deadlockDetected      = "40P01"
	serializationFailure  = "40001"
	readOnlyTransaction   = "25006"
	adminShutdown         = "57P01"
)

// SQLState is the server's code of an error, or "".
func SQLState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// repeatable reports errors after which the same write, alone, may succeed and was certainly not stored.
func repeatable(err error) bool {
	if errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	switch state := SQLState(err); state {
	case "":
		return connectionLost(err)
	case serializationFailure, deadlockDetected, adminShutdown:
		return true
	default:
		return strings.HasPrefix(state, "08")
	}
}

func connectionLost(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || (errors.Is(err, errLost))
}

// errLost marks an error of a connection that died before COMMIT was sent.
var errLost = errors.New("the connection to the database was lost")

// classify turns connection trouble into Unavailable and leaves the writer's own errors alone. A server that ends the
// session (FATAL, as the timers of one that was frozen do, or PANIC), that has become a standby, or that gave the
// transaction up beside others (class 40) is one that another try may find well; so is one that said nothing until a
// deadline, ours or the caller's.
func (e *pgEngine) classify(err error) error {
	if err == nil || errors.Is(err, ErrStale) {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code[:min(2, len(pg.Code))] {
		case "08", "40", "53", "57", "58":
			return unavailable(err)
		}
		if pg.Code == readOnlyTransaction || pg.Code == LockNotAvailable || pg.SeverityUnlocalized == "FATAL" ||
			pg.SeverityUnlocalized == "PANIC" {
			return unavailable(err)
		}
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err)
	}
	if errors.Is(err, errLost) || connectionLost(err) || pgconn.Timeout(err) || cutOff(err) {
		return unavailable(err)
	}
	return err
}

// cutOff: the line broke while rows were read. Nothing else in a write or a read talks to a network.
func cutOff(err error) bool {
	_, line := errors.AsType[*net.OpError](err)
	return line || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, os.ErrDeadlineExceeded)
}

package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
)

// A line that breaks while rows are read is a database that is not there for
// the moment; a writer's own error is not.
func TestABrokenLineIsUnavailable(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, err := range []error{reset, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, context.DeadlineExceeded,
		os.ErrDeadlineExceeded} {
		if got := db.ClassifyPostgres(fmt.Errorf("register transactions: %w",
			err)); fault.KindOf(got) != fault.Unavailable || !errors.Is(got, err) {
			t.Errorf("%v becomes %v (%v)", err, got, fault.KindOf(got))
		}
	}
	for _, err := range []error{errors.New("the writer's own"), db.ErrStale, context.Canceled} {
		if got := db.ClassifyPostgres(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// What a server says when it is lost, frozen or demoted is told apart from a defect of ours.
func TestALostLeaderIsUnavailableAndADefectIsNot(t *testing.T) {
	t.Parallel()
	for _, lost := range []pgconn.PgError{
		{Code: "57P01", SeverityUnlocalized: "FATAL"}, {Code: "57P02", SeverityUnlocalized: "FATAL"},
		{Code: "57P03", SeverityUnlocalized: "FATAL"}, {Code: "57014", SeverityUnlocalized: "ERROR"},
		// idle in a transaction: the timer of a server that was frozen
		{Code: "25P03", SeverityUnlocalized: "FATAL"},
		{Code: "25P04", SeverityUnlocalized: "FATAL"}, {Code: "25006", SeverityUnlocalized: "ERROR"}, // a standby now
		{Code: "40001", SeverityUnlocalized: "ERROR"}, {Code: "40001", SeverityUnlocalized: "FATAL"},
		{Code: "40P01", SeverityUnlocalized: "ERROR"},
		{Code: "XX000", SeverityUnlocalized: "FATAL"}, {Code: "XX000", SeverityUnlocalized: "PANIC"},
		{Code: "08006", SeverityUnlocalized: "FATAL"}, {Code: "53300", SeverityUnlocalized: "FATAL"},
		{Code: "58030", SeverityUnlocalized: "ERROR"}, {Code: "55P03", SeverityUnlocalized: "ERROR"},
	} {
		if got := db.ClassifyPostgres(fmt.Errorf("register transactions: %w", &lost)); fault.KindOf(got) !=
			fault.Unavailable {
			t.Errorf("%s %s becomes %v", lost.SeverityUnlocalized, lost.Code, fault.KindOf(got))
		}
	}
	for _, code := range []string{"23505", "42P01", "42501", "25P02", "22P02", "XX000", "P0001", ""} {
		err := error(&pgconn.PgError{Code: code, SeverityUnlocalized: "ERROR"})
		if got := db.ClassifyPostgres(err); got != err {
			t.Errorf("a defect %s becomes %v", code, got)
		}
	}
}

// A write that failed before it sent anything, by a question of its own on another connection, hears the same.
func TestAWriteThatAskedElsewhereIsUnavailable(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	lost := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	if err := d.Write(t.Context(), func(*db.Tx) error {
		return fmt.Errorf("read the columns: %w", lost)
	}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("it becomes %v", err)
	}
}

// A read with a deadline of its own that finds no connection is Unavailable too: an unknown key during a freeze is no
// defect.
func TestAReadThatFindsNoConnectionInTimeIsUnavailable(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	free, busy := make(chan struct{}), make(chan struct{})
	var readers sync.WaitGroup
	for range db.WorkConns {
		readers.Go(func() {
			err := d.Read(t.Context(), func(db.Reader) error {
				busy <- struct{}{}
				<-free
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range db.WorkConns {
		<-busy
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := d.Read(ctx, func(db.Reader) error { return nil })
	if fault.KindOf(err) != fault.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v (%v)", err, fault.KindOf(err))
	}
	close(free)
	readers.Wait()
}

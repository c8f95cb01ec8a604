package db_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// A line that breaks while rows are read is a database that is not there for
// the moment; a writer's own error is not.
func TestABrokenLineIsUnavailable(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, err := range []error{reset, io.ErrUnexpectedEOF, net.ErrClosed} {
		if got := db.ClassifyPostgres(fmt.Errorf("register transactions: %w", err)); fault.KindOf(got) != fault.Unavailable || !errors.Is(got, err) {
			t.Errorf("%v becomes %v (%v)", err, got, fault.KindOf(got))
		}
	}
	for _, err := range []error{errors.New("the writer's own"), db.ErrStale} {
		if got := db.ClassifyPostgres(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

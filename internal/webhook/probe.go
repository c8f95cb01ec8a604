package webhook

import (
	"context"
	"net"
	"strconv"
	"time"

	"tributary/internal/db"
	"tributary/internal/guard"
)

// Reach connects to a receiver as Send would, with the same guard, proxy and
// trusted certificates, up to the end of the TLS handshake, and sends nothing.
func (s *Sender) Reach(ctx context.Context, address string) error {
	target, err := s.guard.Parse(address)
	if err != nil {
		return err
	}
	port, err := guard.PortOf(target)
	if err != nil {
		return err
	}
	dial := s.transport.DialTLSContext
	if target.Scheme == "http" {
		dial = s.transport.DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(target.Hostname(), strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Backlog counts the events that wait for a try, of all clients, and tells when
// the oldest was made; the zero time when there is none.
func Backlog(r db.Reader) (n int, oldest time.Time, err error) {
	var since *int64
	err = r.Row("SELECT count(*), min(created_at) FROM webhook_events WHERE due_at IS NOT NULL").Scan(&n, &since)
	if since != nil {
		oldest = db.FromMicros(*since)
	}
	return n, oldest, err
}

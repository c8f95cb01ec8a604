package webhook

import (
	"context"
	"net"
	"tributary/internal/guard"
)

// Over makes the sender dial plain connections with fn instead of the network.
func (s *Sender) Over(fn func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
		defer cancel()
		conn, err := fn(ctx, network, address)
		if err != nil {
			err = guard.ClassifyDial(err)
			return nil, &dialFailure{classOf(err), err}
		}
		return &watchedConn{Conn: conn}, nil
	}
}

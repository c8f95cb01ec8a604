package db

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parsePostgres reads an address. Where it says nothing of TLS and leads to
// another machine, the server must prove its name: the driver's own default would
// speak to anybody, without TLS if they like. Who wants less says so
// (sslmode=disable), and doctor repeats it.
func parsePostgres(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil || strings.Contains(url, "sslmode=") || os.Getenv("PGSSLMODE") != "" || onlyHere(cfg) {
		return cfg, err
	}
	mark := "?"
	if strings.Contains(url, "?") {
		mark = "&"
	}
	return pgxpool.ParseConfig(url + mark + "sslmode=verify-full")
}

// onlyHere reports whether every host of an address is this machine.
func onlyHere(cfg *pgxpool.Config) bool {
	return !slices.ContainsFunc(servers(cfg.ConnConfig), func(at *pgconn.FallbackConfig) bool { return !isHere(at.Host) })
}

func isHere(host string) bool {
	at, err := netip.ParseAddr(host)
	return strings.HasPrefix(host, "/") || host == "" || strings.EqualFold(host, "localhost") || err == nil && at.IsLoopback()
}

// UnprovenServer reports whether the address of a database leads to another
// machine that need not prove its name.
func UnprovenServer(url string) bool {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return false
	}
	cfg, err := parsePostgres(url)
	if err != nil || onlyHere(cfg) {
		return false
	}
	return slices.ContainsFunc(servers(cfg.ConnConfig), func(at *pgconn.FallbackConfig) bool {
		return at.TLSConfig == nil || at.TLSConfig.InsecureSkipVerify
	})
}

// hosts remembers which of the servers that an address names was used last. Every new session asks it first: one that
// hangs, earlier in the address, would otherwise cost each of them the whole time for connecting.
type hosts struct {
	names sync.Map // of an IP address: the host it was found for
	last  atomic.Pointer[hostPort]
}

type hostPort struct {
	host string
	port uint16
}

func (h *hosts) lookup(by pgconn.LookupFunc) pgconn.LookupFunc {
	return func(ctx context.Context, host string) ([]string, error) {
		found, err := by(ctx, host)
		for _, ip := range found {
			h.names.Store(ip, host)
		}
		return found, err
	}
}

// used says that the server behind a connection is the one to use.
func (h *hosts) used(at net.Addr) {
	ip, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return // a socket of this machine's
	}
	host, ok := h.names.Load(ip)
	number, err := strconv.ParseUint(port, 10, 16)
	if ok && err == nil {
		h.last.Store(&hostPort{host.(string), uint16(number)})
	}
}

// order puts the server that was used last first. The others stay in the order of the address.
func (h *hosts) order(cfg *pgx.ConnConfig) {
	last := h.last.Load()
	if last == nil {
		return
	}
	rank := func(at *pgconn.FallbackConfig) int {
		if at.Host == last.host && at.Port == last.port {
			return 0
		}
		return 1
	}
	all := servers(cfg)
	slices.SortStableFunc(all, func(a, b *pgconn.FallbackConfig) int { return cmp.Compare(rank(a), rank(b)) })
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// servers are those that an address names, some twice: with TLS and without.
func servers(cfg *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, cfg.Fallbacks...)
}

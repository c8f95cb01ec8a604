package db

import (
	"net/netip"
	"os"
	"strings"

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
	here := isHere(cfg.ConnConfig.Host)
	for _, f := range cfg.ConnConfig.Fallbacks {
		here = here && isHere(f.Host)
	}
	return here
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
	weak := cfg.ConnConfig.TLSConfig == nil || cfg.ConnConfig.TLSConfig.InsecureSkipVerify
	for _, f := range cfg.ConnConfig.Fallbacks {
		weak = weak || f.TLSConfig == nil || f.TLSConfig.InsecureSkipVerify
	}
	return weak
}

package filing_test

import (
	"os"
	"sync/atomic"
	"testing"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing/filingtest"
	"tributary/internal/leaks"
	"tributary/internal/needs"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		workUntilKilled()
		return
	}
	leaks.Main(m)
}

type (
	node        = filingtest.Node
	paper       = filingtest.Paper
	setup       = filingtest.Setup
	office      = filingtest.Office
	authorities = filingtest.Authorities
)

const (
	client     = filingtest.Client
	byNumber   = filingtest.ByNumber
	byHash     = filingtest.ByHash
	byKey      = filingtest.ByKey
	byChain    = filingtest.ByChain
	byNothing  = filingtest.ByNothing
	stopping   = filingtest.Stopping
	anyOrder   = filingtest.AnyOrder
	sequenced  = filingtest.Sequenced
	numbered   = filingtest.Numbered
	officeCode = filingtest.OfficeCode
	patience   = filingtest.Patience
)

var (
	newNode        = filingtest.NewNode
	newAuthorities = filingtest.NewAuthorities
	newOffice      = filingtest.NewOffice
	newMaster      = filingtest.NewMaster
	variants       = filingtest.Variants
	invoice        = filingtest.Invoice
	correction     = filingtest.Correction
	item           = filingtest.Item
	taxNumber      = filingtest.TaxNumber
	caller         = filingtest.Caller
	codesOf        = filingtest.CodesOf
	must           = filingtest.Must
	execSQL        = filingtest.ExecSQL
	errLine        = filingtest.ErrLine
)

// sqlite is a database of the engine that the race detector makes ten times as
// dear: the race run is what runs on PostgreSQL, where more goroutines meet.
func sqlite(t testing.TB) *db.DB {
	t.Helper()
	needs.NotRaced(t, "on SQLite")
	return dbtest.SQLite(t)
}

// filer is a running node on SQLite with the simulated authorities.
func filer(t testing.TB) (*node, *authorities) {
	t.Helper()
	needs.NotRaced(t, "on SQLite")
	return filingtest.Filer(t)
}

func one[T any](t testing.TB, d *db.DB, sql string, args ...any) T {
	t.Helper()
	return filingtest.One[T](t, d, sql, args...)
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	filingtest.Same(t, what, got, want)
}

// outage makes an office take nothing until the answer is called with false.
func outage(o *office) (set func(down bool)) {
	var down atomic.Bool
	down.Store(true)
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if down.Load() {
			return country.Receipt{}, country.ErrNotTaken
		}
		return o.Take(f), nil
	}
	return down.Store
}

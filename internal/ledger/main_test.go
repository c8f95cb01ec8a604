package ledger_test

import (
	"testing"

	"tributary/internal/db"
	"tributary/internal/filing/filingtest"
	"tributary/internal/leaks"
)

func TestMain(m *testing.M) {
	leaks.Main(m)
}

type (
	node        = filingtest.Node
	paper       = filingtest.Paper
	setup       = filingtest.Setup
	authorities = filingtest.Authorities
)

const (
	client     = filingtest.Client
	byNumber   = filingtest.ByNumber
	byHash     = filingtest.ByHash
	byKey      = filingtest.ByKey
	byChain    = filingtest.ByChain
	officeCode = filingtest.OfficeCode
)

var (
	newNode        = filingtest.NewNode
	newAuthorities = filingtest.NewAuthorities
	newOffice      = filingtest.NewOffice
	invoice        = filingtest.Invoice
	correction     = filingtest.Correction
	item           = filingtest.Item
	taxNumber      = filingtest.TaxNumber
	caller         = filingtest.Caller
	filer          = filingtest.Filer
	must           = filingtest.Must
	execSQL        = filingtest.ExecSQL
)

func one[T any](t testing.TB, d *db.DB, sql string, args ...any) T {
	t.Helper()
	return filingtest.One[T](t, d, sql, args...)
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	filingtest.Same(t, what, got, want)
}

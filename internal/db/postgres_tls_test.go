package db_test

import (
	"strings"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
)

func TestAServerElsewhereMustProveItsName(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, weak := range map[string]bool{
		"sqlite:x.db":                                       false,
		"postgres://u@localhost/x":                          false,
		"postgres://u@127.0.0.1:5432/x":                     false,
		"postgres://u@[::1]/x?sslmode=disable":              false,
		"postgres:///x?host=/run/postgresql":                false,
		"postgres://u@db.example.test/x":                    false, // verify-full, because nothing is said
		"postgres://u@db.example.test/x?application_name=y": false,
		"postgres://u@a.example.test,b.example.test/x?target_session_attrs=read-write": false,
		"postgres://u@db.example.test/x?sslmode=verify-full":                           false,
		"postgres://u@db.example.test/x?sslmode=require":                               true,
		"postgres://u@db.example.test/x?sslmode=prefer":                                true,
		"postgres://u@db.example.test/x?sslmode=disable":                               true,
		"postgres://u@localhost,b.example.test/x?sslmode=prefer":                       true,
	} {
		if got := db.UnprovenServer(url); got != weak {
			t.Errorf("%s: %t, want %t", url, got, weak)
		}
	}
	t.Setenv("PGSSLMODE", "disable")
	if !db.UnprovenServer("postgres://u@db.example.test/x") {
		t.Error("PGSSLMODE is not heard")
	}
}

func TestTheAddressSaysHowLongConnectingTakes(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][2]time.Duration{
		"":                    {3 * time.Second, db.WriteTimeout},
		"&connect_timeout=30": {30 * time.Second, db.WriteTimeout + 27*time.Second},
		"&connect_timeout=2":  {2 * time.Second, db.WriteTimeout},
	} {
		d := dbtest.Open(t, db.Config{URL: strings.Replace(dbtest.MigratedURL(t), "&connect_timeout=30", said, 1)})
		connect, write := db.Waits(d)
		if got := [2]time.Duration{connect, write}; got != want {
			t.Errorf("%q: connecting and writing take %v, want %v", said, got, want)
		}
	}
}

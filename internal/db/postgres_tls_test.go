package db_test

import (
	"testing"

	"tributary/internal/db"
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

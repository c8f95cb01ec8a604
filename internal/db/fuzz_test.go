package db_test

import (
	"strings"
	"testing"

	"tributary/internal/db"
	"tributary/internal/mutate"
)

// However an operator mistypes the address of a database, its password is not shown.
func FuzzAddressIsShownWithoutItsPassword(f *testing.F) {
	const password = "correct-horse"
	f.Add("postgres://tributary", "db.example:5432/tributary")
	f.Add("postgres:tributary", "db.example/tributary")
	f.Add("postgres:/tributary", "db.example/x")
	f.Add("postgres://tributary", "db.example:port/x")
	f.Add("tributary", "db.example")
	f.Add("postgres://trib utary", "[::1/x")
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, password) {
			t.Skip("a password that is no secret")
		}
		if shown := db.RedactURL(before + ":" + password + "@" + after); strings.Contains(shown, password) {
			t.Errorf("%s:…@%s is shown as %s", before, after, shown)
		}
	})
}

func TestAddressesAreShownWithoutPasswordsInTheirQuery(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://u:p@h:5432/x?sslmode=disable":       "postgres://u@h:5432/x",
		"postgres://h/x?user=u&password=correct-horse":  "postgres://h/x",
		"postgres:u:correct-horse@h/x":                  "postgres:…",
		"mysql://u:correct-horse@h/x#correct-horse":     "mysql://u@h/x",
		"postgres://h/x:correct-horse@elsewhere/a?b=@c": "postgres:…",
	} {
		if got := db.RedactURL(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

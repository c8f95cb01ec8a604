package schema_test

import (
	"testing"

	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

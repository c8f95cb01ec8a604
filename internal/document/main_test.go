package document_test

import (
	"flag"
	"testing"

	"tributary/internal/leaks"
)

var update = flag.Bool("update", false, "rewrite golden files and the examples in docs")

func TestMain(m *testing.M) { leaks.Main(m) }

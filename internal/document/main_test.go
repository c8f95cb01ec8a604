package document_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files and the examples in docs")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

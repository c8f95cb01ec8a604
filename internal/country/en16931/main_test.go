package en16931_test

import (
	"flag"
	"testing"

	"tributary/internal/country/packtest"
)

func TestMain(m *testing.M) { packtest.Main(m) }

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

package authority_test

import (
	"testing"

	"tributary/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

package identity_test

import (
	"fmt"
	"testing"
	"time"

	"tributary/internal/country/identity"
)

// Thousands of suppliers file in turns, each once a minute: their keys are still
// open when they come again.
func TestKeeperHoldsThousandsWithinItsBytes(t *testing.T) {
	keeper, real := identity.NewKeeper(), made(t)
	first, err := keeper.Open(real, today)
	if err != nil {
		t.Fatal(err)
	}
	other := func(i int) identity.PKCS12 { // no file at all, which is held like one
		return identity.PKCS12{File: fmt.Appendf(make([]byte, 2500), "%d", i)}
	}
	for i := range 5000 {
		_, _ = keeper.Open(other(i), today) // it is refused
	}
	if again, err := keeper.Open(real, today.Add(time.Minute)); err != nil || again != first {
		t.Errorf("with 5,000 others the first file was opened again: %v", err)
	}
	for i := 5000; i < 8000; i++ {
		_, _ = keeper.Open(other(i), today) // likewise
	}
	held, bytes := keeper.Held()
	if bytes > identity.KeptBytesMax || bytes < identity.KeptBytesMax*9/10 || held < 5000 {
		t.Errorf("%d identities of %d bytes are held, at most %d may be", held, bytes, identity.KeptBytesMax)
	}
	// The last one is held: what is too old goes although there is room for it.
	_, _ = keeper.Open(other(7999), today.Add(time.Hour))
	if held, bytes := keeper.Held(); held != 1 || bytes > 10_000 {
		t.Errorf("an hour later %d identities of %d bytes are held", held, bytes)
	}
}

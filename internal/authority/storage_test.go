//go:build linux

package authority_test

import (
	"fmt"
	"testing"

	"tributary/internal/authority"
	"tributary/internal/simulation"
)

// A simulated authority whose disk is full confirms nothing that it cannot keep. It
// goes on by itself once there is room, and what it confirmed, and nothing else, is
// in its book when it is opened again.
func TestHardCase14ADeskOnAFullDiskForgetsNothingItConfirmed(t *testing.T) {
	t.Parallel()
	disk := simulation.SmallDisk(t, 1<<20)
	for n := range 8 { // another byte of a line each time
		code := fmt.Sprintf("X%c", 'A'+n)
		desk, err := authority.OpenDesk(disk.Dir, code)
		if err != nil {
			t.Fatal(err)
		}
		disk.Fill(4 << 10)
		confirmed := map[string]bool{}
		refused := 0
		for i := range 60 {
			number := fmt.Sprintf("%0*d", 40+7*n, i)
			err := desk.Write(func(b *authority.Book) {
				b.Register(authority.Registration{Supplier: "s", Number: number, AuthorityID: number})
			})
			if err == nil {
				confirmed[number] = true
			} else {
				refused++
			}
		}
		if refused == 0 || len(confirmed) == 0 {
			t.Fatalf("%d confirmed, %d refused", len(confirmed), refused)
		}
		disk.Empty()
		if err := desk.Write(func(b *authority.Book) {
			b.Register(authority.Registration{Supplier: "s", Number: "again"})
		}); err != nil {
			t.Errorf("%s has room again: %v", code, err)
		}
		confirmed["again"] = true
		if err := desk.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := authority.OpenDesk(disk.Dir, code)
		if err != nil {
			t.Fatal(err)
		}
		held, err := again.Registrations()
		if err != nil || len(held) != len(confirmed) {
			t.Errorf("%s holds %d, had confirmed %d: %v", code, len(held), len(confirmed), err)
		}
		for _, r := range held {
			delete(confirmed, r.Number)
		}
		if len(confirmed) > 0 {
			t.Errorf("%s has forgotten %v", code, confirmed)
		}
		if err := again.Write(func(b *authority.Book) {
			b.Register(authority.Registration{Supplier: "s", Number: "after"})
		}); err != nil {
			t.Error(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

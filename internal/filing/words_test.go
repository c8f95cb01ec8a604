package filing_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
)

// An authority that talks without end is cut short before anything of it is
// stored, logged or told: much in a refusal, more faults than are kept, much
// in an error, half a character at the cut.
func TestTheWordsOfAnAuthorityAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		long := strings.Repeat("ż\x00\xff", 1<<13)
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			switch f.Number {
			case "N-refused":
				faults := make([]fault.Fault, 150)
				for i := range faults {
					faults[i] = fault.Fault{Code: fault.AuthorityRejected, Type: fault.TaxAuthority, Message: long}
				}
				return country.Receipt{Outcome: country.Rejected, Faults: faults}, nil
			case "N-failed":
				return country.Receipt{}, errors.Join(errors.New(long), country.ErrNotTaken)
			}
			return o.Take(f), nil
		}
		s := o.Setup()
		s.RetryBase = time.Hour
		n := newNode(t, d, s).Start()
		r := n.Settled(n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "refused")))
		if len(r.Errors) == 0 || len(r.Errors) > 101 {
			t.Errorf("%d faults are told", len(r.Errors))
		}
		for _, f := range r.Errors {
			if len(f.Message) > 2000 || !utf8.ValidString(f.Message) || strings.Contains(f.Message, "\x00") {
				t.Fatalf("a fault has %d bytes: %.40q", len(f.Message), f.Message)
			}
		}
		n.File(invoice(officeCode, n.Supplier(officeCode, "s2"), "failed"))
		n.Until("its lane rests", func() bool {
			return one[int64](t, d, "SELECT count(*) FROM lanes WHERE failures = 1") == 1
		})
		if got := one[int64](t, d, "SELECT max(length(trouble)) FROM lanes"); got == 0 || got > 2200 {
			t.Errorf("the trouble of a lane has %d characters", got)
		}
		n.Until("the call is recorded", func() bool {
			return one[int64](t, d, "SELECT count(*) FROM exchanges WHERE outcome != 'answered'") == 1
		})
		if got := one[int64](t, d, "SELECT max(length(outcome)) FROM exchanges"); got > 2200 {
			t.Errorf("the record of a call has %d characters", got)
		}
		if got := len(n.Log.String()); got > 64<<10 {
			t.Errorf("the log has %d bytes", got)
		}
	})
}

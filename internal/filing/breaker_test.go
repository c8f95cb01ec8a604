package filing_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/breaker"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/transaction"
)

func openBreakers(t *testing.T, d *db.DB) (list []breaker.Open) {
	t.Helper()
	must(t, d.Read(context.Background(), func(r db.Reader) (err error) {
		list, err = breaker.All(r, d.Now())
		return err
	}))
	return list
}

// Twenty suppliers wait for an authority that takes no calls: ten of them try,
// the others know. Another authority is not concerned.
func TestWhereNothingGetsThroughNotEverybodyTries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		var calls atomic.Int64
		o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
			calls.Add(1)
			return country.Receipt{}, fmt.Errorf("connection refused: %w", country.ErrNotTaken)
		}
		s := newAuthorities(t).Setup()
		s.Packs, s.Slots, s.RetryBase = append(s.Packs, o.Setup().Packs...), 1, time.Hour
		n := newNode(t, d, s)
		const suppliers = 20
		for i := range suppliers {
			n.File(invoice(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("t", i)))
		}
		other := n.Supplier(byNumber, "other")
		n.Start()
		n.Until("every lane rests, with the reason", func() bool {
			return one[int64](t, d,
				"SELECT count(*) FROM lanes WHERE failures = 1 AND reason = 'authority_error' AND lease_until IS NULL") == suppliers
		})
		same(t, "calls", calls.Load(), 10)
		n.Succeeds(n.File(invoice(byNumber, other, "t-other")))
		open := openBreakers(t, d)
		if len(open) != 1 || open[0].At.Code != officeCode || open[0].Failures != 10 || open[0].Trouble == "" ||
			!open[0].ProbeAt.After(d.Now()) {
			t.Errorf("open breakers: %+v", open)
		}
		same(t, "operations that ended", one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'FAILURE'"), 0)
	})
}

// One call is made for all; when it is answered everybody goes on at once.
func TestAnAuthorityThatAnswersAgainIsToldToEverybody(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newOffice(country.ByNumber)
		var away atomic.Bool
		away.Store(true)
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if away.Load() {
				return country.Receipt{}, fmt.Errorf("connection refused: %w", country.ErrNotTaken)
			}
			return o.Take(f), nil
		}
		s := o.Setup()
		s.Slots, s.RetryBase = 4, 50*time.Millisecond
		n := newNode(t, d, s)
		const suppliers = 20
		for i := range suppliers {
			n.File(invoice(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("t", i)))
		}
		n.Start()
		n.Until("the breaker is open", func() bool { return len(openBreakers(t, d)) == 1 })
		away.Store(false)
		n.Until("all are settled", func() bool {
			return one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'") == suppliers
		})
		n.Until("the breaker is closed", func() bool { return len(openBreakers(t, d)) == 0 })
	})
}

// One supplier whose documents an authority cannot bear is no reason to keep others from calling.
func TestOneSupplierOpensNoBreaker(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	o := newOffice(country.ByNumber)
	var calls atomic.Int64
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		if f.Number == "N-t-good" {
			return o.Take(f), nil
		}
		calls.Add(1)
		return country.Receipt{}, fmt.Errorf("status 500: %w", country.ErrNotTaken)
	}
	s := o.Setup()
	s.RetryBase = time.Millisecond
	n := newNode(t, d, s)
	n.File(invoice(officeCode, n.Supplier(officeCode, "bad"), "t-bad"))
	good := n.Supplier(officeCode, "good")
	n.Start()
	n.Until("it was tried often", func() bool { return calls.Load() > 12 })
	if open := openBreakers(t, d); len(open) != 0 {
		t.Errorf("open: %+v", open)
	}
	n.Succeeds(n.File(invoice(officeCode, good, "t-good")))
}

// Calls that were under way when the breaker opened are no probes: however many
// of them fail afterwards, the first probe comes after the first pause.
func TestCallsUnderWayAreNoProbes(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	o := newOffice(country.ByNumber)
	var under sync.WaitGroup
	const suppliers = 16
	under.Add(suppliers)
	o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
		under.Done()
		under.Wait() // until all are under way
		return country.Receipt{}, fmt.Errorf("connection refused: %w", country.ErrNotTaken)
	}
	s := o.Setup()
	s.Slots, s.RetryBase = suppliers, time.Hour
	n := newNode(t, d, s)
	for i := range suppliers {
		n.File(invoice(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("t", i)))
	}
	n.Start()
	n.Until("every lane rests", func() bool {
		return one[int64](t, d, "SELECT count(*) FROM lanes WHERE failures = 1 AND lease_until IS NULL") == suppliers
	})
	open := openBreakers(t, d)
	if len(open) != 1 {
		t.Fatalf("open breakers: %+v", open)
	}
	if pause := open[0].ProbeAt.Sub(open[0].Since); pause > 90*time.Minute {
		t.Errorf("the first probe comes after %s, want about the first pause of one hour", pause)
	}
}

// Where nothing is to be called a breaker keeps nobody back, and nobody uses up a probe.
func TestABreakerDoesNotConcernThoseWhoCallNobody(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	o := newOffice(country.ByNumber)
	o.OnSend = func(*office, country.Filing) (country.Receipt, error) {
		return country.Receipt{}, fmt.Errorf("connection refused: %w", country.ErrNotTaken)
	}
	s := o.Setup()
	s.Slots, s.RetryBase = 4, time.Hour
	s.Packs[0].Files = country.Filed{By: country.ByCompany,
		Of: func(s *country.Supplier, t *transaction.Transaction, _ *country.Original) bool {
			chosen := s == nil || s.LegalName != "Company keeps"
			return chosen && (t == nil || t.Customer != nil)
		}}
	n := newNode(t, d, s)
	for i := range 12 {
		n.File(named(invoice(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("t", i))))
	}
	keeps := n.Supplier(officeCode, "keeps")
	sends := n.Supplier(officeCode, "sends")
	n.Start()
	n.Until("the breaker is open", func() bool { return len(openBreakers(t, d)) == 1 })
	probe := openBreakers(t, d)[0].ProbeAt
	n.Succeeds(n.File(named(invoice(officeCode, keeps, "kept"))))
	n.Succeeds(n.File(invoice(officeCode, sends, "to a consumer").With("customer", nil)))
	if now := openBreakers(t, d); len(now) != 1 || !now[0].ProbeAt.Equal(probe) {
		t.Errorf("the breaker changed: %+v, the probe was to come at %s", now, probe)
	}
}

package filing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// granting is an authority whose channel takes each call from a quota.
func granting(spend func(ctx context.Context, at country.Endpoint, f country.Filing) error) (*office, setup) {
	o := newOffice(country.ByNumber)
	o.Habits.Batch, o.Habits.PollEvery = 1, time.Minute
	s := o.Setup()
	s.Packs[0].Connect = func(at country.Endpoint) (country.Channel, error) {
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if err := spend(context.Background(), at, f); err != nil {
				return country.Receipt{}, err
			}
			return o.Take(f), nil
		}
		return o, nil
	}
	return o, s
}

// What an authority grants in a minute is sent; the rest waits for the next one, and
// says why. Nothing is a failure.
func TestWhatIsNotGrantedWaits(t *testing.T) {
	t.Parallel()
	minute := country.Quota{Name: "calls", Per: time.Minute, Most: 10}
	o, s := granting(func(ctx context.Context, at country.Endpoint, f country.Filing) error {
		return at.Spend(ctx, minute, "")
	})
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		var ids []string
		for i := range 12 {
			ids = append(ids, n.File(invoice(officeCode, supplier, fmt.Sprint("t", i))))
		}
		n.Start()
		time.Sleep(10 * time.Second)
		same(t, "sent in the first minute", len(o.Registered()), 9)
		waits := 0
		for _, id := range ids {
			if r := n.Show(id); r.Status == filing.Processing && slices.Contains(codesOf(r), fault.AuthorityWait) {
				waits++
			}
		}
		same(t, "that say why they wait", waits, 3)
		same(t, "failures of the lane", one[int64](t, n.DB, "SELECT max(failures) FROM lanes"), 0)
		time.Sleep(time.Minute)
		same(t, "sent in the second", len(o.Registered()), 12)
		for _, id := range ids {
			n.Succeeds(id)
		}
		n.Stop()
	})
}

// Where the calls about one document are used up it waits alone.
func TestADocumentWhoseCallsAreUsedUpWaitsAlone(t *testing.T) {
	t.Parallel()
	daily := country.Quota{Name: "state", Per: 24 * time.Hour, Most: 4, Alone: true}
	o, s := granting(func(context.Context, country.Endpoint, country.Filing) error { return nil })
	polls := map[string]int{}
	connect := s.Packs[0].Connect
	s.Packs[0].Connect = func(at country.Endpoint) (country.Channel, error) {
		ch, err := connect(at)
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			if f.Number == "N-slow" {
				return country.Receipt{Outcome: country.Pending, Handle: f.Number}, nil
			}
			return o.Take(f), nil
		}
		o.OnPoll = func(o *office, f country.Filing, last country.Receipt) (country.Receipt, error) {
			if err := at.Spend(context.Background(), daily, f.Number); err != nil {
				return country.Receipt{}, fmt.Errorf("polling: %w", err)
			}
			if polls[f.Number]++; polls[f.Number] > 4 {
				return o.Take(f), nil
			}
			return country.Receipt{Outcome: country.Pending, Handle: last.Handle}, nil
		}
		return ch, err
	}
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		slow := n.File(invoice(officeCode, supplier, "slow"))
		n.Start()
		time.Sleep(6 * time.Hour)
		same(t, "polls of the day", polls["N-slow"], 4)
		if r := n.Show(slow); r.Status != filing.Processing || !slices.Contains(codesOf(r), fault.AuthorityWait) {
			t.Errorf("%s %v", r.Status, r.Errors)
		}
		n.Succeeds(n.File(invoice(officeCode, supplier, "other")))
		time.Sleep(19 * time.Hour)
		n.Succeeds(slow)
		n.Stop()
	})
}

// Where the calls that look for lost answers are used up, what was lost waits until more are granted and is asked about once
// then; what has not been sent goes on.
func TestALostAnswerThatNobodyMayLookForWaitsAlone(t *testing.T) {
	t.Parallel()
	lists := country.Quota{Name: "lists", Per: 24 * time.Hour, Most: 1, Alone: true}
	o := newOffice(country.ByNumber)
	o.Habits.Batch = 1
	s := o.Setup()
	looks := 0
	s.Packs[0].Connect = func(at country.Endpoint) (country.Channel, error) {
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			r := o.Take(f)
			if strings.HasPrefix(f.Number, "N-lost") {
				return country.Receipt{}, errors.New("the answer is lost")
			}
			return r, nil
		}
		o.OnFind = func(o *office, f country.Filing) (country.Receipt, error) {
			looks++
			if err := at.Spend(context.Background(), lists, ""); err != nil {
				return country.Receipt{}, fmt.Errorf("looking: %w", err)
			}
			return o.Held(f), nil
		}
		return o, nil
	}
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		n.Succeeds(n.File(invoice(officeCode, supplier, "lost1")))
		lost := n.File(invoice(officeCode, supplier, "lost2"))
		time.Sleep(6 * time.Hour)
		if r := n.Show(lost); r.Status != filing.Processing || !slices.Contains(codesOf(r), fault.AuthorityWait) {
			t.Errorf("%s %v", r.Status, r.Errors)
		}
		n.Succeeds(n.File(invoice(officeCode, supplier, "other")))
		same(t, "looks before more are granted", looks, 2)
		time.Sleep(19 * time.Hour)
		n.Succeeds(lost)
		same(t, "looks", looks, 3)
		same(t, "documents", len(o.Registered()), 3)
		n.Stop()
	})
}

// asking is an office whose documents depend on what somebody else knows.
type asking struct {
	*office
	learn func() error
}

func (a asking) Learn(context.Context, country.Draft, country.Credentials) (country.Learned, error) {
	return country.Learned{}, a.learn()
}

// Where the calls of a directory are used up the company waits until more are granted.
func TestAQuestionThatIsNotGrantedIsNoFailure(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	s := o.Setup()
	s.Packs[0].Connect = func(at country.Endpoint) (country.Channel, error) {
		return asking{o, func() error {
			return at.Spend(context.Background(), country.Quota{Name: "questions", Per: time.Hour, Most: 1}, "")
		}}, nil
	}
	virtual(t, s, func(t *testing.T, n *node) {
		supplier := n.Supplier(officeCode, "s1")
		n.Start()
		n.Succeeds(n.File(invoice(officeCode, supplier, "t0")))
		id := n.File(invoice(officeCode, supplier, "t1"))
		time.Sleep(time.Minute)
		if r := n.Show(id); r.Status != filing.Processing || !slices.Contains(codesOf(r), fault.AuthorityWait) {
			t.Errorf("%s %v", r.Status, r.Errors)
		}
		same(t, "failures of the lane", one[int64](t, n.DB, "SELECT max(failures) FROM lanes"), 0)
		time.Sleep(time.Hour)
		n.Succeeds(id)
		n.Stop()
	})
}

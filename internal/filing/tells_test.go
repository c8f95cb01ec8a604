package filing_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
)

// teller is an authority that cannot be asked and tells what it decides by a
// call, within six days; of a file that it has it speaks within the hour.
func teller() *office {
	o := newOffice(country.ByKey)
	o.Habits.Batch, o.Habits.Tells, o.Habits.PendingMax, o.Habits.PollEvery, o.Habits.VisibleAfter = 1, true,
		6*24*time.Hour, 6*24*time.Hour, time.Hour
	o.OnPrepare = func(o *office, in country.Draft) (country.Filing, error) {
		f, err := o.Draft(in)
		f.DedupeKey = "file-" + f.Number
		return f, err
	}
	o.OnSend = func(_ *office, f country.Filing) (country.Receipt, error) {
		return country.Receipt{Outcome: country.Pending, Handle: f.DedupeKey}, nil
	}
	return o
}

func tellerSetup(o *office) setup {
	s := o.Setup()
	s.Packs[0].Callbacks = &country.Callbacks{}
	return s
}

// told hands a message over as the inbox does, and answers whose it was.
func told(t *testing.T, n *node, key, handle string, r country.Receipt) (operation string) {
	t.Helper()
	must(t, n.DB.Write(context.Background(), func(tx *db.Tx) (err error) {
		operation, err = n.Service.HandleMessage(tx, country.Environment{Code: officeCode}, country.Mailbox{},
			country.Message{Key: key, Handle: handle, Receipt: r})
		return err
	}))
	return operation
}

// Silence is no outcome: after six days a person is told, and the word that
// comes after all still counts. Nobody was asked meanwhile.
func TestAnAuthorityThatTellsIsWaitedForAndItsSilenceIsTold(t *testing.T) {
	t.Parallel()
	o := teller()
	o.OnPoll = func(*office, country.Filing, country.Receipt) (country.Receipt, error) {
		t.Error("it was asked")
		return country.Receipt{}, nil
	}
	virtual(t, tellerSetup(o), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(5*24*time.Hour + 23*time.Hour)
		if r := n.Show(id); r.Status != filing.Processing || len(n.Raised(alert.OutcomeUnknown48h)) != 0 ||
			slices.Contains(codesOf(r), fault.OutcomeUnknown) {
			t.Errorf("before six days are over: %s %v", r.Status, r.Errors)
		}
		time.Sleep(3 * time.Hour)
		if r := n.Show(id); r.Status != filing.Processing || !slices.Contains(codesOf(r), fault.OutcomeUnknown) {
			t.Errorf("after six days: %s %v", r.Status, r.Errors)
		}
		same(t, "alerts", n.Raised(alert.OutcomeUnknown48h)[id], 1)
		same(t, "whose", told(t, n, "rc", "file-N-t1", country.Receipt{Outcome: country.Accepted, AuthorityID1: "77"}), id)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := n.Show(id); r.Status != filing.Success || r.AuthorityID1 == nil || *r.AuthorityID1 != "77" {
			t.Errorf("it spoke after all: %s", r.Status)
		}
		same(t, "calls", o.Calls(), 1)
		n.Stop()
	})
}

// After a lost answer the same bytes go again once the authority had the time to
// speak. That it refuses the name of the second as used is the echo of the first.
func TestTheEchoOfAFileSentTwiceIsNoRefusal(t *testing.T) {
	t.Parallel()
	o := teller()
	first := true
	o.OnSend = func(_ *office, f country.Filing) (country.Receipt, error) {
		if first {
			first = false
			return country.Receipt{}, errLine
		}
		return country.Receipt{Outcome: country.Pending, Handle: f.DedupeKey}, nil
	}
	virtual(t, tellerSetup(o), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(50 * time.Minute)
		same(t, "calls within the hour", o.Calls(), 1)
		time.Sleep(time.Hour)
		same(t, "calls after it", o.Calls(), 2)
		same(t, "whose echo", told(t, n, "ns", "file-N-t1", country.Receipt{Outcome: country.Rejected, Duplicate: true}), id)
		time.Sleep(time.Hour)
		same(t, "status", n.Show(id).Status, filing.Processing)
		told(t, n, "rc", "file-N-t1", country.Receipt{Outcome: country.Accepted, AuthorityID1: "77"})
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "status", n.Show(id).Status, filing.Success)
		n.Stop()
	})
}

// Of a file that left once, a name refused as used is another's. It is believed
// after the hour in which the authority would have spoken of ours.
func TestANameThatSomebodyElseUsedIsARefusalAfterTheWait(t *testing.T) {
	t.Parallel()
	o := teller()
	virtual(t, tellerSetup(o), func(t *testing.T, n *node) {
		id := n.File(invoice(officeCode, n.Supplier(officeCode, "s1"), "t1"))
		n.Start()
		time.Sleep(10 * time.Minute)
		used := country.Receipt{Outcome: country.Rejected, Duplicate: true}
		same(t, "taken within the hour by", told(t, n, "ns", "file-N-t1", used), "")
		same(t, "of another file's bytes", told(t, n, "rc", "file-N-t1",
			country.Receipt{Outcome: country.Accepted, SHA256: strings.Repeat("0", 64)}), "")
		time.Sleep(time.Hour)
		same(t, "status", n.Show(id).Status, filing.Processing)
		same(t, "taken after it by", told(t, n, "ns", "file-N-t1", used), id)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "status", n.Show(id).Status, filing.Failure)
		n.Stop()
	})
}

package ro_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/packtest"
	"tributary/internal/country/ro"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/lifecycle"
	"tributary/internal/operation"
	"tributary/internal/quota"
)

// ANAF gives an archive ten times a day: two nodes and one that was started again
// stop together before it refuses, and only that document waits.
func TestAnArchiveIsFetchedNoMoreThanANAFGrants(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, at := beside(t)
		node := func() country.Channel {
			own := at
			own.Meter = quota.New(d).Of(country.Environment{Code: "RO"})
			return open(t, own)
		}
		nodes := []country.Channel{node(), node()}
		f := packtest.Prepared(t, nodes[0], now(invoice("Q-1")))
		last, err := send(t, nodes[0], f)
		if err != nil {
			t.Fatal(err)
		}
		fetched := 0
		for i := range 30 {
			if i == 6 {
				nodes[1] = node() // it was started again
			}
			r, err := nodes[i%2].Poll(t.Context(), f, last, credentials())
			var used *country.Exhausted
			switch {
			case err == nil && r.Outcome == country.Accepted:
				fetched++
			case errors.As(err, &used):
				if used.Quota != "descarcare" || !used.Alone || time.Until(used.Until) > 25*time.Hour {
					t.Errorf("%+v", used)
				}
			default:
				t.Fatalf("ANAF was asked once too often: %+v %v", r, err)
			}
		}
		if fetched < 9 { // more where midnight came meanwhile
			t.Errorf("fetched %d times instead of 9", fetched)
		}
		// Calls about another document are not used up.
		g := packtest.Prepared(t, nodes[0], now(invoice("Q-2")))
		next, err := send(t, nodes[1], g)
		if err == nil {
			next, err = nodes[0].Poll(t.Context(), g, next, credentials())
		}
		if err != nil || next.Outcome != country.Accepted {
			t.Errorf("%+v %v", next, err)
		}
	})
}

// A lost upload is looked for among those of nobody: what other filings were uploaded
// under is not downloaded, also after a restart.
func TestALostUploadIsLookedForAmongThoseOfNobody(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, at := beside(t)
		fetched := 0
		at.Meter = func(_ context.Context, q country.Quota, _ string) error {
			if q.Name == "descarcare" {
				fetched++
			}
			return nil
		}
		env := country.Environment{Code: "RO"}
		at.Names = lifecycle.Names(d)(env)
		ch := open(t, at)
		var lost country.Filing
		for i := range 5 {
			f := packtest.Prepared(t, ch, now(invoice(fmt.Sprintf("N-%d", i))))
			f.OperationID = fmt.Sprintf("op-%d", i)
			r, err := send(t, ch, f)
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				lost = f // the program was killed before it had stored the answer
				continue
			}
			of := &operation.Accepted{ID: f.OperationID, Code: env.Code, Live: env.Live}
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				return lifecycle.KeepHandles(tx, []lifecycle.Handle{{Name: r.Handle, Of: of}})
			}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := open(t, at).Find(t.Context(), lost, credentials())
		if err != nil || found.Outcome != country.Accepted || fetched != 1 {
			t.Errorf("after %d downloads: %+v %v", fetched, found, err)
		}
	})
}

// known are names that a store would keep, by the hashes of filings whose answers were lost.
type known struct {
	lost  map[string]string // operations by hash
	names map[string]string // operations by name
}

func (k known) Others(_ context.Context, operationID string, names []string) (map[string]bool, error) {
	others := map[string]bool{}
	for _, name := range names {
		of := k.names[name]
		others[name] = of != "" && of != operationID
	}
	return others, nil
}

func (k known) Belongs(_ context.Context, _, name, sha256 string) error {
	k.names[name] = k.lost[sha256]
	return nil
}

// Processes that are killed again and again, each with another lost upload to look for, use up no archive of one that
// they may not look for yet; and where one is used up the others are looked into all the same.
func TestManyProcessesUseUpNoArchive(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	keeps := known{map[string]string{}, map[string]string{}}
	at.Names = keeps
	fetched, refused := map[string]int{}, ""
	at.Meter = func(_ context.Context, q country.Quota, subject string) error {
		if q.Name != "descarcare" {
			return nil
		}
		if subject == refused {
			return &country.Exhausted{Quota: q.Name, Subject: subject, Until: time.Now().Add(time.Hour), Alone: q.Alone}
		}
		fetched[subject]++
		return nil
	}
	lose := func(ch country.Channel, number string) country.Filing {
		f := packtest.Prepared(t, ch, now(invoice(number)))
		f.OperationID = "op-" + number
		if _, err := send(t, ch, f); err != nil {
			t.Fatal(err)
		}
		keeps.lost[f.SHA256] = f.OperationID
		return f
	}
	find := func(ch country.Channel, f country.Filing) string {
		found, err := ch.Find(t.Context(), f, credentials())
		if err != nil || found.Outcome != country.Accepted {
			t.Errorf("%s: %+v %v", f.Number, found, err)
		}
		keeps.names[found.AuthorityID1] = f.OperationID // its handle is kept with its receipt
		return found.AuthorityID2
	}
	suspect := lose(open(t, at), "P-0")
	for i := range 12 {
		ch := open(t, at)
		find(ch, lose(ch, fmt.Sprintf("P-%d", i+1)))
	}
	if first := find(open(t, at), suspect); fetched[first] != 2 {
		t.Errorf("the archive of the first was fetched %d times", fetched[first])
	}
	stranger := lose(open(t, at), "P-98")
	delete(keeps.lost, stranger.SHA256) // another program's
	own := lose(open(t, at), "P-99")
	refused = find(open(t, at), stranger)
	delete(keeps.names, mapKey(keeps.names, stranger.OperationID))
	find(open(t, at), own)
	var used *country.Exhausted
	missing := packtest.Prepared(t, open(t, at), now(invoice("P-100")))
	if found, err := open(t, at).Find(t.Context(), missing, credentials()); !errors.As(err, &used) || !used.Alone {
		t.Errorf("what may be in an archive that is not given is taken for absent: %+v %v", found, err)
	}
}

func mapKey(of map[string]string, value string) string {
	for key, v := range of {
		if v == value {
			return key
		}
	}
	return ""
}

// One reading of the list is enough for all uploads that were lost before it; what was lost
// later, or was prepared before it begins, is looked for in another.
func TestLostUploadsOfACompanyShareAList(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	var mu sync.Mutex
	lists := 0
	at.Meter = func(_ context.Context, q country.Quota, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if q.Name == "listaMesaje" {
			lists++
		}
		return nil
	}
	ch := open(t, at)
	var lost []country.Filing
	for i := range 6 {
		f := packtest.Prepared(t, ch, now(invoice(fmt.Sprintf("S-%d", i))))
		if _, err := send(t, ch, f); err != nil {
			t.Fatal(err)
		}
		lost = append(lost, f)
	}
	find := func(f country.Filing, want country.Outcome) {
		found, err := ch.Find(t.Context(), f, credentials())
		if err != nil || found.Outcome != want {
			t.Errorf("%s: %+v %v", f.Number, found, err)
		}
	}
	since := time.Now()
	var all sync.WaitGroup
	for _, f := range lost {
		f.LostAt = since
		all.Go(func() { find(f, country.Accepted) })
	}
	all.Wait()
	if lists != 1 {
		t.Errorf("%d lists for %d uploads", lists, len(lost))
	}
	older := lost[0]
	older.LostAt, older.PreparedAt = since, older.PreparedAt.Add(-time.Hour)
	var wait *country.Exhausted
	if found, err := ch.Find(t.Context(), older, credentials()); !errors.As(err, &wait) || !wait.Alone || !wait.Until.After(since) || lists != 1 {
		t.Errorf("%d lists, none of them after a pause: %+v %v", lists, found, err)
	}
	lost[1].LostAt = since
	find(lost[1], country.Accepted) // what was read tells of it
	ch = ro.Unhurried(ch)
	find(older, country.Accepted)
	if lists != 2 {
		t.Errorf("%d lists after one for an earlier day", lists)
	}
	late := packtest.Prepared(t, ch, now(invoice("S-99")))
	late.LostAt = since // it was not: nobody has sent it
	find(late, country.Absent)
	if _, err := send(t, ch, late); err != nil {
		t.Fatal(err)
	}
	late.LostAt = time.Now()
	find(late, country.Accepted)
	late.LostAt = time.Time{}
	find(late, country.Accepted)
	if lists != 4 {
		t.Errorf("%d lists after what was lost later, and one that nobody dates", lists)
	}
}

// Lists are read for uploads whose answer was lost. Where they are used up those wait; what has not been sent goes on.
func TestUsedUpListsStopNoUpload(t *testing.T) {
	t.Parallel()
	_, at := beside(t)
	at.Meter = func(_ context.Context, q country.Quota, subject string) error {
		if q.Name != "listaMesaje" {
			return nil
		}
		return &country.Exhausted{Quota: q.Name, Subject: subject, Until: time.Now().Add(time.Hour), Alone: q.Alone}
	}
	ch := open(t, at)
	lost := packtest.Prepared(t, ch, now(invoice("L-1")))
	if _, err := send(t, ch, lost); err != nil {
		t.Fatal(err)
	}
	var used *country.Exhausted
	if found, err := ch.Find(t.Context(), lost, credentials()); !errors.As(err, &used) || !used.Alone {
		t.Errorf("%+v %v", found, err)
	}
	g := packtest.Prepared(t, ch, now(invoice("L-2")))
	r, err := send(t, ch, g)
	if err == nil {
		r, err = ch.Poll(t.Context(), g, r, credentials())
	}
	if err != nil || r.Outcome != country.Accepted {
		t.Errorf("%+v %v", r, err)
	}
}

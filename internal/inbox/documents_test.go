package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/inbox"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

// taker keeps documents as whoever reads them would: one for each name, in one write
// with the mark.
type taker struct {
	d  *db.DB
	mu sync.Mutex

	broken error
	got    map[string][]byte // by company and id
	calls  int
}

func (k *taker) take(ctx context.Context, list []inbox.Delivery, with func(*db.Tx, []string, int) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	return k.d.Write(ctx, func(tx *db.Tx) error {
		ids, fresh := make([]string, len(list)), 0
		for n, d := range list {
			name := d.CompanyID + "/" + d.Document.AuthorityID
			ids[n] = "op-" + name
			if k.got[name] == nil {
				fresh++
			}
		}
		if err := with(tx, ids, fresh); err != nil || k.broken != nil {
			return errors.Join(err, k.broken)
		}
		for _, d := range list {
			k.got[d.CompanyID+"/"+d.Document.AuthorityID] = d.Document.Bytes
		}
		return nil
	})
}

func (k *taker) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.got)
}

// receiving is a house whose companies are brought documents.
func receiving(t *testing.T, d *db.DB, every time.Duration) (*fetching, *taker) {
	t.Helper()
	k := &taker{d: d, got: map[string][]byte{}}
	f := buildFetchingOf(t, d, func(f *fetching) {
		f.pack.Fetch = nil
		f.pack.Receive = &country.Receive{Fetch: &country.Fetch{Look: f.office.look, Every: every}}
	}, func(c *inbox.Config) { c.TakeDocuments, c.Stored = k.take, k.stored })
	return f, k
}

// receiver onboards a company that wants documents from a day on.
func (f *fetching) receiver(client, number, from string) string {
	f.t.Helper()
	id, err := f.companies.Ensure(f.t.Context(), client,
		onboarding.NewCompany{ExternalID: number, CountryCode: "XX", LegalName: "Shop", TaxNumber: number,
			Settings: country.Settings{country.SettingReceive: map[string]any{"from": from}},
			Address:  transaction.Address{AddressLine1: "High Street 1", City: "Town", PostalCode: "1000", CountryCode: "XX"}})
	must(f.t, err)
	return id
}

func paper(id string) country.Document {
	return country.Document{AuthorityID: id, Format: "XML", Bytes: []byte("<" + id + "/>")}
}

// shelf brings so many documents, a few a page, one a minute after a day.
func shelf(n, page int) func(context.Context, country.Inquiry) (country.Fetched, error) {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	return func(_ context.Context, in country.Inquiry) (got country.Fetched, err error) {
		mark, err := in.Mark()
		if err != nil {
			return got, err
		}
		for i := range n {
			at := begin.Add(time.Duration(i) * time.Minute)
			if at.Before(mark.At) {
				continue
			}
			if len(got.Documents) == min(page, in.Limit) {
				got.More = true
				break
			}
			got.Documents = append(got.Documents, paper(fmt.Sprintf("d%d", i)))
			mark.At = at.Add(time.Minute)
		}
		got.Cursor = mark.String()
		return got, nil
	}
}

const lastMark = "2026-03-01T00:07:00.000000Z"

func TestTheMarkMovesWithTheDocumentsAndNeverWithoutThem(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f, k := receiving(t, d, time.Millisecond)
		f.office.set("A", shelf(7, 3))
		k.broken = errors.New("the disk is full")
		id := f.receiver("c1", "A", "2026-01-01")
		f.run()
		for k.tries() < 1 {
			<-f.office.done
		}
		if n := f.count("SELECT count(*) FROM inbox_mailboxes WHERE cursor = '' AND brought = 0"); n != 1 || k.count() != 0 {
			t.Errorf("the mark moved without documents, or %d are taken", k.count())
		}
		k.mu.Lock()
		k.broken = nil
		k.mu.Unlock()
		f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE documents AND brought = 7 AND cursor = '"+lastMark+"' AND company_id = '"+id+"'")
		// A restored backup goes back, and a day that is moved back begins again: what comes again is nothing.
		must(t, d.Write(t.Context(), func(tx *db.Tx) error { return inbox.Rewind(tx, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)) }))
		f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE brought = 7 AND cursor = '"+lastMark+"'")
		if k.count() != 7 {
			t.Errorf("%d documents are taken", k.count())
		}
	})
}

// A look can ask which documents of its company are here already, so that it need not get them again.
func TestALookKnowsWhatIsStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f, k := receiving(t, d, time.Millisecond)
		got := make(chan int, 100)
		all := shelf(7, 7)
		f.office.set("A", func(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
			stored, err := in.Stored(ctx, []string{"d0", "d6", "d7"})
			select {
			case got <- len(stored):
			default: // enough is known
			}
			if err != nil || len(stored) > 0 {
				return country.Fetched{Cursor: in.Cursor}, err
			}
			return all(ctx, in)
		})
		company := f.receiver("c1", "A", "2026-01-01")
		f.run()
		for _, want := range []int{0, 2} {
			if n := <-got; n != want {
				t.Errorf("%d of three are stored, want %d", n, want)
			}
		}
		if k.count() != 7 || k.got[company+"/d0"] == nil {
			t.Errorf("%d documents are taken", k.count())
		}
	})
}

func (k *taker) stored(_ context.Context, of country.Mailbox, source string, ids []string) (map[string]bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stored := map[string]bool{}
	for _, id := range ids {
		if k.got[of.SupplierID+"/"+id] != nil && source == "XX.test" {
			stored[id] = true
		}
	}
	return stored, nil
}

func (k *taker) tries() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

func TestARestorationMovesMarksBackAndNeverOn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f, _ := receiving(t, d, time.Hour)
		f.office.set("A", shelf(7, 10))
		f.receiver("c1", "A", "2026-01-01")
		f.run()
		f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE cursor = '"+lastMark+"' AND lease_until IS NULL")
		for _, c := range []struct {
			to   time.Time
			want string
		}{{time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC), lastMark},
			{time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), "2026-02-01T00:00:00.000000Z"},
			{time.Date(2026, 2, 5, 0, 0, 0, 0, time.UTC), "2026-02-01T00:00:00.000000Z"}} {
			must(t, d.Write(t.Context(), func(tx *db.Tx) error { return inbox.Rewind(tx, c.to) }))
			if n := f.count("SELECT count(*) FROM inbox_mailboxes WHERE cursor = '" + c.want + "'"); n != 1 {
				t.Errorf("to %s: the mark is not %s", c.to, c.want)
			}
		}
	})
}

// What a look may not bring leaves the mark where it was, with the reason beside it.
func TestLooksForDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	bring := func(list ...country.Document) func(context.Context, country.Inquiry) (country.Fetched, error) {
		return func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{Documents: list, Cursor: country.Mark{At: time.Unix(1, 0)}.String()}, nil
		}
	}
	sized := func(n int) country.Document {
		return country.Document{AuthorityID: "large", Format: "XML", Bytes: make([]byte, n)}
	}
	many := make([]country.Document, country.DocumentsMax+1)
	for n := range many {
		many[n] = paper(fmt.Sprint("m", n))
	}
	for name, c := range map[string]struct {
		look   func(context.Context, country.Inquiry) (country.Fetched, error)
		reason fault.Code
		words  string
	}{
		"too many":     {bring(many...), fault.AuthorityError, "were requested"},
		"no id":        {bring(country.Document{Format: "XML", Bytes: []byte("<a/>")}), fault.AuthorityError, "an id of 0 bytes"},
		"empty":        {bring(country.Document{AuthorityID: "e", Format: "XML"}), fault.AuthorityError, "has 0 bytes"},
		"too large":    {bring(sized(20<<20 + 1)), fault.AuthorityError, "20971521 bytes"},
		"all together": {bring(sized(country.DocumentsBytesMax/2), sized(country.DocumentsBytesMax/2), paper("x")), fault.AuthorityError, "of one look have"},
		"another form": {bring(country.Document{AuthorityID: "f", Format: "DOC", Bytes: []byte("x")}), fault.AuthorityError, "of the format"},
		"no time": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{Cursor: "page 2"}, nil
		}, fault.AuthorityError, "begins with no time"},
		"credentials": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, fmt.Errorf("who: %w", country.ErrCredentials)
		}, fault.CredentialsInvalid, "who"},
		"no answer": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, context.DeadlineExceeded
		}, fault.AuthorityUnreachable, "deadline"},
		"used up": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, &country.Exhausted{Quota: "exports", Until: time.Now().Add(time.Hour)}
		}, fault.AuthorityWait, "exports"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, k := receiving(t, dbtest.SQLite(t), time.Hour)
			f.office.set("L", c.look)
			f.receiver("c1", "L", "2026-01-01")
			f.run()
			failures := 1
			if c.reason == fault.AuthorityWait {
				failures = 0 // a pause
			}
			f.until(1, fmt.Sprintf("SELECT count(*) FROM inbox_mailboxes WHERE failures = %d AND lease_until IS NULL AND cursor = '' AND problem LIKE '%s: %%%s%%'",
				failures, c.reason, c.words))
			if k.tries() > 0 {
				t.Error("documents were taken")
			}
			want := 0
			if c.reason == fault.CredentialsInvalid {
				want = 1
			}
			if n := f.count("SELECT count(*) FROM alerts WHERE name = 'mailbox_unread' AND message LIKE '%received documents%'"); n != want {
				t.Errorf("told %d times", n)
			}
		})
	}
	t.Run("at every limit", func(t *testing.T) {
		t.Parallel()
		f, k := receiving(t, dbtest.SQLite(t), time.Hour)
		f.office.set("L", bring(append(many[:country.DocumentsMax-1:country.DocumentsMax-1], sized(20<<20))...))
		f.receiver("c1", "L", "2026-01-01")
		f.run()
		f.until(1, fmt.Sprintf("SELECT count(*) FROM inbox_mailboxes WHERE brought = %d", country.DocumentsMax))
		if k.count() != country.DocumentsMax {
			t.Errorf("%d documents are taken", k.count())
		}
	})
}

// A company asks for documents of a day that has not come: nobody is asked before. One that
// does not say the day, or more than that, is told.
func TestWhatACompanySaysOfReceiving(t *testing.T) {
	t.Parallel()
	f, _ := receiving(t, dbtest.SQLite(t), time.Millisecond)
	f.office.set("LATER", func(context.Context, country.Inquiry) (country.Fetched, error) {
		t.Error("somebody looked")
		return country.Fetched{}, nil
	})
	f.receiver("c1", "LATER", time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly))
	f.run()
	f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE looked_at IS NOT NULL AND failures = 0")
	for _, wrong := range []map[string]any{{}, {"from": "soon"}, {"from": "1999-12-31"}, {"from": "2026-01-01", "to": "2026-02-01"}} {
		_, err := f.companies.Ensure(t.Context(), "c1", onboarding.NewCompany{ExternalID: fmt.Sprint("wrong ", wrong), CountryCode: "XX",
			LegalName: "Shop", TaxNumber: fmt.Sprint("W", len(fmt.Sprint(wrong))), Settings: country.Settings{country.SettingReceive: wrong},
			Address: transaction.Address{AddressLine1: "High Street 1", City: "Town", PostalCode: "1000", CountryCode: "XX"}})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fmt.Sprint(err), "company") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	for _, good := range []string{"2000-01-01", "2026-02-28"} {
		f.receiver("c1", "G"+good[:4], good)
	}
}

// called is a house whose authority calls with documents.
func called(t *testing.T, d *db.DB) (*fetching, *taker) {
	t.Helper()
	k := &taker{d: d, got: map[string][]byte{}}
	f := buildFetchingOf(t, d, func(f *fetching) {
		f.pack.Fetch, f.pack.Receive = nil, &country.Receive{}
		f.pack.Callbacks = &country.Callbacks{Read: func(_ country.Endpoint, c country.Call) ([]country.Message, country.CallReply, error) {
			to, rest, _ := strings.Cut(string(c.Body), " ")
			return []country.Message{{Key: "RF/" + c.Query.Get("id"), Document: &country.Document{AuthorityID: c.Query.Get("id"), Format: "XML",
				Bytes: []byte(rest), To: transaction.Party{TaxNumber: to}}}}, country.CallReply{Status: 200}, nil
		}}
	}, func(c *inbox.Config) { c.TakeDocuments = k.take })
	return f, k
}

func TestDocumentsThatCallsBringAreDeliveredToEveryCompanyOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f, k := called(t, d)
		one, two := f.receiver("c1", "B1", "2026-01-01"), f.receiver("c2", "B1", "2026-01-01")
		f.company("c3", "B1") // has not switched it on
		f.run()
		for range 2 {
			if status := f.post("/authorities/xx/test/x?id=7", []byte("B1 <seven/>"), ""); status != 200 {
				t.Fatalf("answered %d", status)
			}
		}
		f.until(1, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL AND receipt = '{}' AND length(raw) = 0")
		k.mu.Lock()
		if len(k.got) != 2 || !bytes.Equal(k.got[one+"/7"], []byte("<seven/>")) || k.got[two+"/7"] == nil || k.calls != 1 {
			t.Errorf("taken %d times: %v", k.calls, k.got)
		}
		k.mu.Unlock()
		// Other bytes under the same id are no repetition: whoever takes them tells a person.
		f.post("/authorities/xx/test/x?id=7", []byte("B1 <other/>"), "")
		f.until(2, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL")
		// One for nobody is kept and told of once, and delivered when the company is there.
		f.post("/authorities/xx/test/x?id=8", []byte("B8 <eight/>"), "")
		f.until(1, "SELECT count(*) FROM alerts WHERE name = 'received_aside' AND message LIKE '%document 8%'")
		f.receiver("c1", "B8", "2026-01-01")
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("inbox_messages")
			return tx.Exec("UPDATE inbox_messages SET due_at = $1 WHERE taken_at IS NULL AND lease_until IS NULL", db.Micros(tx.Now()))
		}))
		f.until(3, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL")
		if n := f.count("SELECT count(*) FROM alerts WHERE name = 'received_aside'"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// A body that only an authority with documents may send, and one more than that.
func TestLargeCallsAreReadWhereDocumentsAreBrought(t *testing.T) {
	t.Parallel()
	f, k := called(t, dbtest.SQLite(t))
	f.receiver("c1", "B1", "2026-01-01")
	f.run()
	if status := f.post("/authorities/xx/test/x?id=1", append([]byte("B1 "), make([]byte, 20<<20)...), ""); status != 200 {
		t.Errorf("20 MiB: %d", status)
	}
	if status := f.post("/authorities/xx/test/x?id=2", append([]byte("B1 "), make([]byte, inbox.LargeBodyBytesMax)...), ""); status != 413 {
		t.Errorf("more than may be: %d", status)
	}
	f.until(1, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL")
	if k.count() != 1 {
		t.Errorf("%d documents are taken", k.count())
	}
	plain := build(t, dbtest.SQLite(t))
	if status := plain.post(receipts, make([]byte, inbox.BodyBytesMax+1), ""); status != 413 {
		t.Errorf("an authority without documents: %d", status)
	}
}

package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/country/world"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/endpoint"
	"tributary/internal/inbox"
	"tributary/internal/onboarding"
	"tributary/internal/transaction"
)

// postOffice is an authority whose mailboxes a test fills, by tax number.
type postOffice struct {
	mu    sync.Mutex
	boxes map[string]func(ctx context.Context, in country.Inquiry) (country.Fetched, error)
	looks map[string]int
	done  chan string // tax number of every look that ended
}

func (o *postOffice) look(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	number := in.Supplier.TaxNumber
	o.mu.Lock()
	box := o.boxes[number]
	o.looks[number]++
	o.mu.Unlock()
	defer func() {
		select {
		case o.done <- number:
		default: // nobody counts them
		}
	}()
	if box == nil {
		return country.Fetched{Cursor: in.Cursor}, nil
	}
	return box(ctx, in)
}

func (o *postOffice) set(number string, box func(context.Context, country.Inquiry) (country.Fetched, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.boxes[number] = box
}

// fetching is a house with companies whose mailboxes are looked into.
type fetching struct {
	*house
	office    *postOffice
	companies *onboarding.Companies
	pack      country.Pack
}

func buildFetching(t *testing.T, d *db.DB, every time.Duration) *fetching {
	t.Helper()
	return buildFetchingOf(t, d, func(f *fetching) { f.pack.Fetch = &country.Fetch{Look: f.office.look, Every: every} })
}

// buildFetchingOf is one with abilities of its pack, listening.
func buildFetchingOf(t *testing.T, d *db.DB, able func(*fetching), change ...func(*inbox.Config)) *fetching {
	t.Helper()
	f := &fetching{office: &postOffice{boxes: map[string]func(context.Context,
		country.Inquiry) (country.Fetched, error){}, looks: map[string]int{}, done: make(chan string, 1000)}}
	f.pack = world.Reference(transaction.ReferenceCode, country.ByNumber)
	f.pack.Enrol = nil // nobody is there to enrol at
	able(f)
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{f.pack}, Simulators: "http://127.0.0.1:1"})
	must(t, err)
	t.Cleanup(atlas.Close)
	f.house = &house{t: t, d: d, reg: prometheus.NewRegistry(), known: map[string]bool{}, told: make(chan struct{}, 1000)}
	log := slog.New(slog.DiscardHandler)
	alerts, err := alert.New(d, log, f.reg)
	must(t, err)
	f.companies = onboarding.New(onboarding.Config{DB: d, Atlas: atlas, BaseURL: "http://localhost",
		Stored: func(tx *db.Tx, clientID string, live bool, s country.Supplier) error {
			return f.Follow(tx, clientID, live, s)
		}})
	cfg := inbox.Config{DB: d, Atlas: atlas, Endpoints: endpoint.New(endpoint.Config{DB: d, Atlas: atlas}), Log: log, Metrics: f.reg,
		Companies: f.companies, Alerts: alerts, HandleMessage: f.hear}
	for _, fn := range change {
		fn(&cfg)
	}
	f.Inbox, err = inbox.New(cfg)
	must(t, err)
	server := httptest.NewServer(f.Inbox)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// company onboards one and answers its id.
func (f *fetching) company(client, number string) string {
	f.t.Helper()
	id, err := f.companies.Ensure(f.t.Context(), client,
		onboarding.NewCompany{ExternalID: number, CountryCode: "XX", LegalName: "Shop", TaxNumber: number,
			Address: transaction.Address{AddressLine1: "High Street 1", City: "Town", PostalCode: "1000", CountryCode: "XX"}})
	must(f.t, err)
	return id
}

// pages is a mailbox of so many messages, one a page.
func pages(number string, n int) func(context.Context, country.Inquiry) (country.Fetched, error) {
	return func(_ context.Context, in country.Inquiry) (country.Fetched, error) {
		at := 0
		if in.Cursor != "" {
			if _, err := fmt.Sscanf(in.Cursor, "%d", &at); err != nil {
				return country.Fetched{}, err
			}
		}
		if at >= n {
			return country.Fetched{Cursor: in.Cursor}, nil
		}
		at++
		return country.Fetched{Messages: []country.Message{letter(fmt.Sprintf("%s/%d", number, at), number)},
			Cursor: fmt.Sprint(at), More: at < n}, nil
	}
}

func letter(key, handle string) country.Message {
	return country.Message{Key: key, Handle: handle, Receipt: country.Receipt{Outcome: country.Accepted},
		Raw: []byte("as it came")}
}

// until waits for a count.
func (h *house) until(want int, sql string) {
	h.t.Helper()
	for late := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		n := h.count(sql)
		if n == want {
			return
		}
		if n > want || time.Now().After(late) {
			h.t.Fatalf("%s: %d, want %d", sql, n, want)
		}
	}
}

func TestWhatWaitsInMailboxesIsTakenOnceByTheCompanyItIsFor(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := buildFetching(t, d, time.Hour)
		f.known["A"], f.known["B"] = true, true
		f.office.set("A", pages("A", 5))
		f.office.set("B", pages("B", 3))
		a, b := f.company("c1", "A"), f.company("c2", "B")
		f.run()
		f.until(8, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL")
		f.until(2, "SELECT count(*) FROM inbox_mailboxes WHERE lease_until IS NULL AND brought = CASE company_id WHEN '"+a+"' THEN 5 ELSE 3 END AND cursor = CASE company_id WHEN '"+a+"' THEN '5' ELSE '3' END")
		if n := f.count("SELECT count(*) FROM inbox_messages WHERE client_id = 'c2' AND company_id = '" + b +
			"' AND handle = 'B'"); n != 3 {
			t.Errorf("%d messages are known to be B's", n)
		}
		// The cursor was lost, as by a restored backup: everything comes again, and is nothing.
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("inbox_mailboxes")
			return tx.Exec("UPDATE inbox_mailboxes SET cursor = '', due_at = $1", db.Micros(tx.Now()))
		}))
		f.until(2, "SELECT count(*) FROM inbox_mailboxes WHERE lease_until IS NULL AND cursor <> '' AND due_at > "+fmt.Sprint(db.Micros(d.Now().Add(time.Minute))))
		if n := f.count("SELECT count(*) FROM inbox_messages"); n != 8 {
			t.Errorf("%d messages after all was read again", n)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.heard) != 8 {
			t.Errorf("%d were heard", len(f.heard))
		}
	})
}

// Mailboxes of one authority may all hang: each holds one look for as long as a
// look may take, other clients' companies go on, and nothing of theirs is lost.
func TestMailboxesThatHangHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	f := buildFetching(t, dbtest.SQLite(t), 50*time.Millisecond)
	hung, release := make(chan string, 100), make(chan struct{})
	for n := range 6 {
		number := fmt.Sprintf("HANG%d", n)
		f.office.set(number, func(ctx context.Context, _ country.Inquiry) (country.Fetched, error) {
			hung <- number
			select {
			case <-ctx.Done():
			case <-release:
			}
			return country.Fetched{}, errors.New("no answer")
		})
		f.company("c1", number)
	}
	f.company("c2", "GOOD")
	f.known["GOOD"] = true
	f.office.set("GOOD", pages("GOOD", 20))
	f.run()
	t.Cleanup(func() { close(release) })
	f.until(20, "SELECT count(*) FROM inbox_messages WHERE taken_at IS NOT NULL")
	for range 6 {
		<-hung
	}
	f.office.mu.Lock()
	defer f.office.mu.Unlock()
	for number, looks := range f.office.looks {
		if number != "GOOD" && looks != 1 {
			t.Errorf("%d looks for %s at the same time", looks, number)
		}
	}
}

// A look that fails changes nothing but its pause; what is too much is a failure,
// asked for in smaller pieces; a person is told, once.
func TestALookThatFailsIsMadeAgainAndTold(t *testing.T) {
	t.Parallel()
	large := func(in country.Inquiry, bytes int) (country.Fetched, error) {
		m := letter("large", "L")
		m.Raw = make([]byte, bytes)
		return country.Fetched{Messages: []country.Message{m}, Cursor: "1"}, nil
	}
	for name, c := range map[string]struct {
		box   func(context.Context, country.Inquiry) (country.Fetched, error)
		told  int
		words string
	}{
		"no answer": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, errors.New("no answer")
		}, 0, "no answer"},
		"credentials": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, fmt.Errorf("who are you: %w", country.ErrCredentials)
		}, 1, "who are you"},
		"a panic": {func(context.Context, country.Inquiry) (country.Fetched, error) { panic("oh") }, 0, "panicked"},
		"too many": {func(_ context.Context, in country.Inquiry) (country.Fetched, error) {
			return country.Fetched{Messages: make([]country.Message, in.Limit+1)}, nil
		}, 0, "were requested"},
		"too large": {func(_ context.Context, in country.Inquiry) (country.Fetched, error) {
			return large(in, country.FetchBytesMax)
		}, 0, "bytes, more than"},
		"no name": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{Messages: []country.Message{letter("", "h")}}, nil
		}, 0, "names message"},
		"a long cursor": {func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{Cursor: strings.Repeat("c", 4001)}, nil
		}, 0, "is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := buildFetching(t, dbtest.SQLite(t), time.Millisecond)
			var limits []int
			f.office.set("L", func(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
				f.office.mu.Lock()
				limits = append(limits, in.Limit)
				f.office.mu.Unlock()
				return c.box(ctx, in)
			})
			f.company("c1", "L")
			f.run()
			f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE failures = 2 AND lease_until IS NULL AND cursor = '' AND problem LIKE '%"+c.words+"%'")
			if n := f.count("SELECT count(*) FROM inbox_messages"); n != 0 {
				t.Errorf("%d messages are stored", n)
			}
			if n := f.count("SELECT count(*) FROM alerts WHERE name = 'mailbox_unread'"); n != c.told {
				t.Errorf("told %d times", n)
			}
			f.office.mu.Lock()
			defer f.office.mu.Unlock()
			if limits[0] != country.FetchMessagesMax || limits[1] != country.FetchMessagesMax/2 {
				t.Errorf("asked for %v", limits)
			}
		})
	}
	t.Run("for an hour", func(t *testing.T) {
		t.Parallel()
		f := buildFetching(t, dbtest.SQLite(t), time.Millisecond)
		f.office.set("L", func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, errors.New("no answer")
		})
		f.company("c1", "L")
		must(t, f.d.Write(t.Context(), func(tx *db.Tx) error {
			return tx.Exec("UPDATE inbox_mailboxes SET failures = 1, failing_since = $1", db.Micros(tx.Now().Add(-time.Hour)))
		}))
		f.run()
		f.until(1, "SELECT count(*) FROM alerts WHERE name = 'mailbox_unread'")
		// It answers again: the failures are over.
		f.office.set("L", pages("L", 1))
		must(t, f.EndpointChanged(t.Context(), country.Environment{Code: "XX"}))
		f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE failures = 0 AND failing_since IS NULL AND problem IS NULL AND brought = 1")
	})
	t.Run("at the limit of bytes", func(t *testing.T) {
		t.Parallel()
		f := buildFetching(t, dbtest.SQLite(t), time.Hour)
		f.office.set("L", func(_ context.Context, in country.Inquiry) (country.Fetched, error) {
			return large(in, country.FetchBytesMax-1000) // the rest is what it says
		})
		f.company("c1", "L")
		f.run()
		f.until(1, "SELECT count(*) FROM inbox_messages")
	})
}

// Companies from before their country had mailboxes are found at the start; one
// that is closed is left alone from then on.
func TestMailboxesBeginAndEndWithTheirCompanies(t *testing.T) {
	t.Parallel()
	f := buildFetching(t, dbtest.SQLite(t), 5*time.Millisecond)
	id := f.company("c1", "OLD")
	must(t, f.d.Write(t.Context(), func(tx *db.Tx) error { return tx.Exec("DELETE FROM inbox_mailboxes") }))
	f.run()
	f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE looked_at IS NOT NULL AND company_id = '"+id+"'")
	must(t, f.companies.Close(t.Context(), "c1", id, func(db.Reader) (bool, error) { return false, nil }))
	f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE due_at IS NULL")
}

// Where the authority grants no more looks a mailbox waits until it does: that is no
// failure, and nobody is told of one.
func TestAMailboxWaitsForWhatIsGranted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := buildFetching(t, d, time.Millisecond)
		f.known["Q"] = true
		f.office.set("Q", func(context.Context, country.Inquiry) (country.Fetched, error) {
			return country.Fetched{}, fmt.Errorf("looking: %w", &country.Exhausted{Quota: "looks", Until: time.Now().Add(3 * time.Hour)})
		})
		f.company("c1", "Q")
		f.run()
		f.until(1, fmt.Sprint("SELECT count(*) FROM inbox_mailboxes WHERE lease_until IS NULL AND failures = 0 AND failing_since IS NULL AND problem LIKE 'authority_wait: %' AND due_at > ",
			db.Micros(d.Now().Add(2*time.Hour))))
		f.office.set("Q", pages("Q", 2))
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			tx.Wake("inbox_mailboxes")
			return tx.Exec("UPDATE inbox_mailboxes SET due_at = $1", db.Micros(tx.Now()))
		}))
		f.until(1, "SELECT count(*) FROM inbox_mailboxes WHERE problem IS NULL AND brought = 2")
		if n := f.count("SELECT count(*) FROM alerts"); n != 0 {
			t.Errorf("%d alerts", n)
		}
	})
}

package recovery_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/alert"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/filing/filingtest"
)

// library shows documents while no error is set, and counts how often it is asked.
type library struct {
	country.LineReader
	closed *atomic.Pointer[error]
	asked  *atomic.Int64
}

func (l library) Lines(ctx context.Context, s country.Supplier, e country.Entry, c country.Credentials) ([]int64, error) {
	l.asked.Add(1)
	if why := l.closed.Load(); *why != nil {
		return nil, *why
	}
	return l.LineReader.Lines(ctx, s, e, c)
}

// A document whose lines the authority does not show delays nothing but its own sale; no
// document is read that no sale asks for. After a day a person decides.
func TestADocumentThatIsNotShownDelaysItsOwnSaleAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why    error
		reason fault.Code
	}{
		"down":    {errors.New("it is being maintained"), fault.AuthorityError},
		"used up": {&country.Exhausted{Quota: "downloads", Until: time.Now().Add(time.Hour), Alone: true}, fault.AuthorityWait},
	} {
		for _, end := range []string{"shown", "a day passes"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				x := examplesOf(t, "HU")
				var closed atomic.Pointer[error]
				var asked atomic.Int64
				connect := x.pack.Connect
				x.pack.Connect = func(e country.Endpoint) (country.Channel, error) {
					c, err := connect(e)
					if reads, ok := c.(legible); ok {
						return legible{reads.prompt, library{reads.LineReader, &closed, &asked}}, err
					}
					return c, err
				}
				closed.Store(&c.why)
				a := newAuthorities(t, x.pack)
				m, supplier, again := loses(t, x, a)
				m.Until("its document was asked for", func() bool { return m.Stage(again) == string(filing.Received) && asked.Load() > 0 })
				m.Until("it says why it waits", func() bool {
					return one[string](t, m.DB, "SELECT doubts FROM operations WHERE operation_id = $1", again) == string(c.reason)
				})
				m.Succeeds(m.File(x.sale(t, supplier, "new", "M-new")))
				if end == "shown" {
					var none error
					closed.Store(&none)
				} else {
					old := db.Micros(time.Now().Add(-filing.DoubtfulAfter))
					execSQL(t, m.DB, "UPDATE operations SET started_at = $1 WHERE operation_id = $2", old, again)
					execSQL(t, m.DB, "UPDATE adoptions SET found_at = $1", old)
				}
				m.Until("it is asked again", func() bool {
					if m.Stage(again) == string(filing.Quarantined) || m.Show(again).Status != filing.Processing {
						return true
					}
					_, _ = m.Retry(t.Context(), again, nil) // refused while it is being worked
					return false
				})
				if end == "shown" {
					m.Succeeds(again, fault.AuthorityIDUnavailable) // its code is lost with the filing
				} else {
					same(t, "stage", m.Stage(again), string(filing.Quarantined))
					if m.Raised(alert.OperationHeld)[again] == 0 { // again after each retry that met it held
						t.Error("nobody is told that a person must decide")
					}
				}
				same(t, "documents", len(a.Registered("HU")), 3)
				same(t, "documents read", one[int64](t, m.DB, "SELECT count(*) FROM adoptions WHERE lines IS NOT NULL"), map[string]int64{"shown": 1}[end])
			})
		}
	}
}

// loses files two sales that a restored backup lacks, and submits the first again.
func loses(t *testing.T, x examples, a *authorities) (m *node, supplier, again string) {
	s := a.Setup()
	s.Master = filingtest.NewMaster(t)
	url := dbtest.SQLiteURL(t)
	n := newNode(t, dbtest.Open(t, db.Config{URL: url}), s).Start()
	supplier = n.Supplier(x.pack.Code, "s1", x.company)
	restored := photographed(t, n.DB, url)
	for _, id := range []string{"a", "b"} {
		n.Succeeds(n.File(x.sale(t, supplier, id, "M-"+id)))
	}
	n.Stop()
	m = restore(t, restored, s).Start()
	complete(m)
	return m, supplier, m.File(x.sale(t, supplier, "a", "M-a"))
}

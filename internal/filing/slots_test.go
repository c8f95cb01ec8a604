package filing_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/document"
	"tributary/internal/filing"
	"tributary/internal/transaction"
)

// Suppliers whose calls hang in one country, more of them than a node had slots
// in all, do not delay a sale in another; of their own country no more are in
// work than it has slots.
func TestACountryThatHangsTakesSlotsFromNobody(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"default": 0, "two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				o := newOffice(country.ByNumber)
				gate := make(chan struct{})
				var hanging, most atomic.Int64
				o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
					if now := hanging.Add(1); now > most.Load() {
						most.Store(now)
					}
					<-gate
					hanging.Add(-1)
					return o.Take(f), nil
				}
				a := newAuthorities(t)
				s := a.Setup()
				s.Packs, s.Slots = append(s.Packs, o.Setup().Packs...), slots
				n := newNode(t, d, s)
				other := n.Supplier(byNumber, "other")
				const suppliers = filing.LanesAtOnce + 8
				for i := range suppliers {
					n.File(invoice(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("h", i)))
				}
				want := int64(filing.LanesAtOnce)
				if slots > 0 {
					want = int64(slots)
				}
				n.Start()
				for late := time.Now().Add(patience); hanging.Load() < want && time.Now().Before(late); {
					time.Sleep(time.Millisecond)
				}
				n.Succeeds(n.File(invoice(byNumber, other, "t1")))
				same(t, "calls that hang", hanging.Load(), want)
				close(gate)
				n.Until("the backlog is done", func() bool {
					return one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0
				})
				same(t, "calls at the same time", most.Load(), want)
			})
		})
	}
}

// thick is a sale of so many lines of about 1800 bytes. Letters of four bytes
// make it large without making it long to read.
func thick(code, supplier, id string, lines int) paper {
	var items []any
	text := strings.Repeat("\U00020000", 200)
	for i := range lines {
		line := item(1, 100)
		line["number"], line["name"], line["description"] = i+1, text, text
		items = append(items, line)
	}
	return invoice(code, supplier, id).With("items", items)
}

// What is taken together is bounded by bytes: of one supplier, and of all of a node.
func TestBatchesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	n := newNode(t, sqlite(t), o.Setup())
	var mu sync.Mutex
	var most int64
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		var bytes int64
		err := n.DB.Read(context.Background(), func(r db.Reader) error {
			return r.Row("SELECT coalesce(sum(bytes), 0) FROM operations WHERE crashes > 0").Scan(&bytes)
		})
		mu.Lock()
		most = max(most, bytes)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond) // others come beside it
		return o.Take(f), err
	}
	var size, all int64
	for s := range 6 {
		supplier := n.Supplier(officeCode, fmt.Sprint("s", s))
		for i := range 3 {
			id := n.File(thick(officeCode, supplier, fmt.Sprintf("t%d-%d", s, i), 340))
			size = one[int64](t, n.DB, "SELECT bytes FROM operations WHERE operation_id = $1", id)
			all += size
		}
	}
	if all < 2*filing.EndpointBytesMax || size > filing.TakenBytesMax/2 {
		t.Fatalf("%d bytes in all, %d each: they prove nothing", all, size)
	}
	n.Start()
	n.Until("all are settled", func() bool {
		return one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'") == 18
	})
	if most > filing.EndpointBytesMax || most < filing.TakenBytesMax*3/4 {
		t.Errorf("%d bytes were in work at the same time, at most %d may be", most, filing.EndpointBytesMax)
	}
	if together := one[int64](t, n.DB, "SELECT max(filings) FROM exchanges WHERE verb = 'send'"); together !=
		filing.TakenBytesMax/size {
		t.Errorf("%d sales of %d bytes went together, %d bytes may", together, size, filing.TakenBytesMax)
	}
}

// Large sales are drawn on half of the processors at most; a small one is done meanwhile.
func TestLargeSalesLeaveProcessorsToSmallOnes(t *testing.T) {
	t.Parallel()
	most := max(1, runtime.GOMAXPROCS(0)/2)
	o := newOffice(country.ByNumber)
	s := o.Setup()
	begun, goOn := make(chan struct{}, most+2), make(chan struct{})
	var mu sync.Mutex
	inside, peak := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		inside += n
		peak = max(peak, inside)
	}
	s.Render = func(_ context.Context, in filing.Issued) (document.Rendering, error) {
		if len(in.Transaction.Items) > 1 {
			count(1)
			begun <- struct{}{}
			<-goOn
			count(-1)
		}
		return document.Rendering{PDF: []byte("%PDF")}, nil
	}
	d := sqlite(t)
	n := newNode(t, d, s)
	for i := range most + 2 {
		id := fmt.Sprint("large", i)
		n.File(thick(officeCode, n.Supplier(officeCode, id), id, 40))
	}
	n.Start()
	for range most {
		<-begun
	}
	n.Succeeds(n.File(invoice(officeCode, n.Supplier(officeCode, "small"), "small")))
	close(goOn)
	n.Until("all are settled", func() bool {
		return one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'") == int64(most+3)
	})
	same(t, "large sales that are drawn at a time", peak, most)
}

// A question about a large sale that nobody answers keeps no other large sale waiting.
func TestAQuestionThatHangsHoldsUpNoLargeSale(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	s := o.Setup()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var questions atomic.Int64
	s.Packs[0].Connect = func(country.Endpoint) (country.Channel, error) {
		return asking{o, func() error {
			if questions.Add(1) == 1 {
				close(asked)
				<-goOn
			}
			return nil
		}}, nil
	}
	n := newNode(t, sqlite(t), s)
	waits := n.File(thick(officeCode, n.Supplier(officeCode, "s1"), "waits", 40))
	n.Start()
	<-asked
	n.Succeeds(n.File(thick(officeCode, n.Supplier(officeCode, "s2"), "goes on", 40)))
	close(goOn)
	n.Succeeds(waits)
}

// A client whose backlog has the only slot leaves it after a batch to another client
// who waits, and is not done with all of its own first.
func TestABacklogGivesWayToAnotherClient(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const batch, many = 5, 60
		o := newOffice(country.ByNumber)
		o.Habits.Batch = batch
		begun, goOn := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		var order []string
		o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
			mu.Lock()
			first := len(order) == 0
			order = append(order, f.OperationID)
			mu.Unlock()
			if first {
				close(begun)
				<-goOn
			}
			return o.Take(f), nil
		}
		s := o.Setup()
		s.Slots = 1
		n := newNode(t, d, s)
		supplier := n.Supplier(officeCode, "s1")
		other := n.SupplierOf("other", officeCode, "s2")
		for i := range many {
			n.File(invoice(officeCode, supplier, fmt.Sprint("t", i)))
		}
		n.Start()
		<-begun
		id := n.HandAs("other", transaction.Invoice, invoice(officeCode, other, "one"))
		for late := time.Now().Add(patience); !n.SomebodyWaits(); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatal("nobody is seen to wait for the slot")
			}
		}
		close(goOn)
		n.Until("all are settled", func() bool {
			return one[int64](t, d, "SELECT count(*) FROM operations WHERE status = 'SUCCESS'") == many+1
		})
		if at := slices.Index(order, id); at < 0 || at > 2*batch {
			t.Errorf("the other client's sale is sent as number %d of %d", at, len(order))
		}
	})
}

// Where other clients are at work, too, each takes the less the more of them there are,
// but where the authority grants few calls.
func TestBatchesAreSmallerBesideOthers(t *testing.T) {
	t.Parallel()
	for working, want := range map[int]int{0: 1000, 1: 512, 7: 128, 31: 32, 63: 16, 999: 16} {
		same(t, fmt.Sprint("beside ", working), filing.BatchBeside(1000, working, false), want)
		same(t, fmt.Sprint("seldom called beside ", working), filing.BatchBeside(1000, working, true), 1000)
	}
	same(t, "never more than alone", filing.BatchBeside(10, 1, false), 10)
}

// Large bodies that wait for an authority that hangs leave room for those of others.
func TestLargeBodiesThatHangTakeNoRoomFromOtherCountries(t *testing.T) {
	t.Parallel()
	o := newOffice(country.ByNumber)
	gate := make(chan struct{})
	var hanging atomic.Int64
	o.OnSend = func(o *office, f country.Filing) (country.Receipt, error) {
		hanging.Add(1)
		<-gate
		return o.Take(f), nil
	}
	s := newAuthorities(t).Setup()
	s.Packs = append(s.Packs, o.Setup().Packs...)
	n := newNode(t, sqlite(t), s)
	other := n.Supplier(byNumber, "other")
	bytes := int64(0)
	for i := 0; bytes < filing.WorkBytesMax+filing.EndpointBytesMax; i++ {
		id := n.File(thick(officeCode, n.Supplier(officeCode, fmt.Sprint("s", i)), fmt.Sprint("t", i), 560))
		bytes += one[int64](t, n.DB, "SELECT bytes FROM operations WHERE operation_id = $1", id)
	}
	n.Start()
	for late := time.Now().Add(patience); hanging.Load() < filing.EndpointBytesMax/(1<<20); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("too few calls hang")
		}
	}
	n.Succeeds(n.File(thick(byNumber, other, "t-other", 560)))
	close(gate)
	n.Until("the backlog is done", func() bool {
		return one[int64](t, n.DB, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0
	})
}

// One body that is larger than everything that may be taken together goes alone.
func TestOneLargeBodyGoesAlone(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]int{0: 1, 9: 1, 10: 1, 20: 2, 29: 2, 30: 3, 1000: 3} {
		same(t, fmt.Sprint("within ", most), filing.Within(most, 10, 10, 10), want)
	}
}

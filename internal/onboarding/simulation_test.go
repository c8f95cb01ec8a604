package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/lease"
	"tributary/internal/onboarding"
	"tributary/internal/simulation"
)

// seedsHere is this machine's share of simulation.SeedsAll.
const seedsHere = 250

// bureau is an authority in memory that enrols companies, except those whose
// number it does not like. It hears of company and number.
type bureau struct {
	mu    sync.Mutex
	heard map[string]bool // company ids it has said yes to
}

func (b *bureau) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	id, number, ok := strings.Cut(string(body), " ")
	if err != nil || !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if strings.HasPrefix(number, "BAD") {
		fmt.Fprint(w, "refused ", id)
		return
	}
	b.mu.Lock()
	b.heard[id] = true
	b.mu.Unlock()
	fmt.Fprint(w, "enrolled ", id)
}

// enrolThere asks a bureau. Only its own words count: a page from a proxy says nothing.
func enrolThere(ctx context.Context, at country.Endpoint, s country.Supplier) []fault.Fault {
	said := ""
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.BaseURL+"/enrol",
		strings.NewReader(s.ID+" "+s.TaxNumber))
	if err == nil {
		var reply country.Reply
		reply, err = country.Exchange(at.HTTP, r, 1<<10)
		said = string(reply.Body)
	}
	switch {
	case err == nil && said == "enrolled "+s.ID:
		return nil
	case err == nil && said == "refused "+s.ID:
		return []fault.Fault{{Code: fault.AuthorityRejected, Type: fault.TaxAuthority,
			Message: "the authority does not know the company"}}
	}
	return []fault.Fault{{Code: fault.AuthorityUnavailable, Type: fault.TaxAuthority,
		Message: "the authority does not answer"}}
}

// enrol is enrolThere, except that now and then it stands still for longer than
// a lease lasts, as a process does whose machine was suspended.
func (g *registry) enrol(ctx context.Context, in country.Enrolment) country.Enrolled {
	s := in.Supplier
	g.mu.Lock()
	g.calls["enrol "+s.TaxNumber]++
	n := g.calls["enrol "+s.TaxNumber]
	g.mu.Unlock()
	if n <= 2 && g.dice.Chance(15, "stall", s.TaxNumber, n) {
		time.Sleep(simulation.Between(g.dice.Of("asleep", s.TaxNumber, n), lease.Term, 2*lease.Term))
		ctx = context.WithoutCancel(ctx) // it does not know how late it is
	}
	return country.Enrolled{Faults: enrolThere(ctx, in.At, s)}
}

// registry is a running simulation: one process after another that works jobs,
// and clients that want their companies onboarded.
type registry struct {
	t       *testing.T
	dice    simulation.Dice
	bureau  *bureau
	flights sync.WaitGroup
	calls   map[string]int
	lives   int

	mu   sync.Mutex // of the present process
	c    *onboarding.Companies
	d    *db.DB
	url  string
	wire *simulation.Wire
	halt context.CancelFunc
}

// wish is a company that a client wants to have onboarded.
type wish struct {
	external, number string
	at               time.Duration
	every            time.Duration // between two looks
}

// Onboarding under kills, work given out twice and an authority behind a bad
// network: every wish ends once, a number becomes one company, and the
// authority has enrolled exactly that.
func TestSimulation(t *testing.T) {
	t.Parallel()
	simulation.Run(t, seedsHere, func(t *testing.T, dice simulation.Dice) {
		g := &registry{t: t, dice: dice, bureau: &bureau{heard: map[string]bool{}}, calls: map[string]int{},
			url: "sqlite:" + t.TempDir() + "/tributary.db"}
		g.open()
		r := dice.Of("plan")
		var clients sync.WaitGroup
		ends := make([]onboarding.Envelope, 2+r.IntN(4))
		wishes := make([]wish, len(ends))
		for i := range wishes {
			wishes[i] = newWish(r, i)
			clients.Go(func() { ends[i] = g.want(wishes[i]) })
		}
		for range r.IntN(3) {
			time.Sleep(simulation.Between(r, 0, 20*time.Second))
			g.die()
		}
		clients.Wait()
		g.halt()
		g.flights.Wait()
		g.check(wishes, ends)
	})
}

// newWish draws a company; some share a number, some have one that is refused.
func newWish(r *rand.Rand, i int) wish {
	w := wish{external: fmt.Sprint("shop-", i), number: fmt.Sprint("N", i), at: simulation.Between(r, 0, 20*time.Second),
		every: simulation.Between(r, time.Second, 20*time.Second)}
	switch r.IntN(6) {
	case 0:
		w.number = "BAD" + w.number
	case 1, 2:
		w.number = "SHARED"
	}
	return w
}

// open starts a process on what the one before has left: workers that look for
// something to do at odd moments, several at the same job if it so happens.
func (g *registry) open() {
	wire := simulation.NewWire(g.bureau, g.fate, &g.flights)
	pack := wire.Through(filing("XX", func(p *country.Pack) { p.Enrol = g.enrol }))
	atlas, err := country.NewAtlas(country.AtlasConfig{Packs: []country.Pack{pack},
		Addresses: map[string]country.Addresses{"XX": {Test: "http://bureau.test"}}})
	if err != nil {
		g.t.Fatal(err)
	}
	d := dbtest.Open(g.t, db.Config{URL: g.url})
	c := onboarding.New(onboarding.Config{DB: d, Atlas: atlas, BaseURL: base})
	ctx, cancel := context.WithCancel(context.Background())
	g.mu.Lock()
	g.c, g.d, g.wire, g.halt = c, d, wire, cancel
	g.mu.Unlock()
	g.lives++
	for n := range 3 {
		r := g.dice.Of("worker", g.lives, n)
		g.flights.Go(func() { g.toil(ctx, c, d, r) })
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// toil is a worker of a job engine that gives work out at least once.
func (g *registry) toil(ctx context.Context, c *onboarding.Companies, d *db.DB, r *rand.Rand) {
	for ctx.Err() == nil {
		rest(ctx, simulation.Between(r, 0, 5*time.Second))
		var open []string
		err := d.Read(ctx, func(r db.Reader) (err error) {
			open, err = db.Collect(r, func(scan func(...any) error) (id string, err error) { return id, scan(&id) },
				"SELECT job_id FROM onboarding_jobs WHERE status IN ('pending', 'processing') ORDER BY external_id")
			return err
		})
		if err == nil && len(open) > 0 {
			_, err = c.WorkNow(ctx, open[r.IntN(len(open))])
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, db.ErrStale) { // another worker has it now
			g.t.Error(err)
		}
	}
}

// fate befalls the first three calls about a number.
func (g *registry) fate(_ *http.Request, body []byte) simulation.Fate {
	_, number, _ := strings.Cut(string(body), " ")
	g.mu.Lock()
	g.calls[number]++
	n := g.calls[number]
	g.mu.Unlock()
	if n > 3 {
		return simulation.Fate{}
	}
	return g.dice.Fate(number, n)
}

// die kills the process and starts the next on what it leaves.
func (g *registry) die() {
	g.mu.Lock()
	url, wire, halt := g.url, g.wire, g.halt
	g.mu.Unlock()
	left := simulation.Remains(g.t, url)
	wire.Cut()
	halt()
	g.url = left
	g.open()
}

func (g *registry) now() *onboarding.Companies {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.c
}

// want is a client: it asks for its company, asks again with the same words now
// and then, looks at the job, and begins anew when the authority was away.
func (g *registry) want(w wish) (end onboarding.Envelope) {
	time.Sleep(w.at)
	body := encode(company("meta.country_code", "xx", "meta.language_code", "en", "meta.external_id", w.external,
		"tax_information.tax_number", w.number))
	job := ""
	for range 500 {
		e, err := g.now().Create(context.Background(), client, false, body)
		if err != nil {
			g.t.Errorf("create %s: %v", w.external, err)
			return e
		}
		if job != "" && e.Data.JobID != job {
			if before := g.job(job); before.Status != onboarding.Failed {
				g.t.Errorf("%s has a second job while its first is %s", w.external, before.Status)
			}
		}
		job = e.Data.JobID
		time.Sleep(w.every)
		switch end = g.job(job); {
		case end.Status == onboarding.Success:
			return end
		case end.Status == onboarding.Failed && end.Errors[0].Code != fault.AuthorityUnavailable:
			return end
		}
	}
	g.t.Errorf("%s never ends: %+v", w.external, end)
	return end
}

func (g *registry) job(id string) onboarding.Envelope {
	e, err := g.now().Job(context.Background(), client, id)
	if err != nil {
		g.t.Errorf("job %s: %v", id, err)
	}
	return e
}

func (g *registry) check(wishes []wish, ends []onboarding.Envelope) {
	companies, want := map[string]string{}, map[string]bool{} // by number
	for i, w := range wishes {
		switch {
		case strings.HasPrefix(w.number, "BAD"):
			if ends[i].Status != onboarding.Failed || ends[i].Errors[0].Code != fault.AuthorityRejected {
				g.t.Errorf("a number that is refused ended as %+v", ends[i])
			}
			continue
		case ends[i].Status == onboarding.Success:
			if companies[w.number] != "" {
				g.t.Errorf("%s has two companies", w.number)
			}
			companies[w.number] = ends[i].Data.ID
			if !g.bureau.heard[ends[i].Data.ID] {
				g.t.Errorf("company %s of %s is onboarded and the authority has never enrolled it", ends[i].Data.ID, w.number)
			}
		case ends[i].Errors[0].Code != fault.AlreadyOnboarded || w.number != "SHARED":
			g.t.Errorf("%s of %s ended as %+v", w.external, w.number, ends[i])
		}
		want[w.number] = true
	}
	if len(companies) != len(want) {
		g.t.Errorf("companies %v, want one for each of %v", companies, want)
	}
	page, _, err := g.c.List(context.Background(), client, 100, "")
	if err != nil || len(page) != len(companies) {
		g.t.Errorf("%d companies are listed, %d were promised: %v", len(page), len(companies), err)
	}
	for _, c := range page {
		if companies[c.TaxInformation.TaxNumber] != c.ID {
			g.t.Errorf("company %s of %s was promised to nobody", c.ID, c.TaxInformation.TaxNumber)
		}
	}
}

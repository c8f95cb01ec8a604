package filing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tributary/internal/authority"
	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/filing"
	"tributary/internal/hold"
	"tributary/internal/operation"
	"tributary/internal/recovery"
	"tributary/internal/simulation"
	"tributary/internal/transaction"
)

// seedsHere is this machine's share of simulation.SeedsAll.
const seedsHere = 200

// deed is one submit of a plan.
type deed struct {
	at     time.Duration
	client string
	kind   transaction.Kind
	paper  paper
	id     string // transaction_id
	number string // what the authority would register
	code   string
	tax    string // the supplier's number at the authority
	refuse bool   // the authority rejects it
	times  int    // how often it is submitted in one instant
}

// death is one end of a process, and perhaps of the next one, too: where the
// n-th of its operations passes a point.
type death struct {
	at      time.Duration
	gentle  bool // a shutdown instead of a kill
	point   string
	passage int
}

// plan is everything that is going to happen; it follows from the seed.
type plan struct {
	deeds  []deed
	deaths []death
}

// points are the places of an operation's journey at which a process can die.
func points() []string { return []string{"prepared", "sent", "answered", "settled", "left"} }

type firm struct{ client, code, name string }

func (f firm) tax() string { return f.code + "-" + f.name }

// simulated are the authorities that plans draw from.
func simulated() []string {
	return []string{byNumber, byHash, byKey, byChain, stopping, anyOrder, sequenced, numbered}
}

// firms are the suppliers of a plan: of two clients, at authorities of two classes.
func firms(r *rand.Rand) []firm {
	codes := simulated()
	r.Shuffle(len(codes), func(i, j int) { codes[i], codes[j] = codes[j], codes[i] })
	all := []firm{{client, codes[0], "s1"}, {client, codes[1], "s2"}, {"c_two", codes[r.IntN(2)], "s3"}}
	return all[:1+r.IntN(3)]
}

// newPlan draws submits, resubmits with the same and with other bodies,
// corrections, and ends of the process.
func newPlan(dice simulation.Dice, suppliers map[firm]string) plan {
	r := dice.Of("plan")
	var p plan
	all := firms(dice.Of("firms"))
	for i := range 2 + r.IntN(5) {
		f := all[r.IntN(len(all))]
		d := deed{client: f.client, kind: transaction.Invoice, code: f.code, tax: f.tax(), id: fmt.Sprint("t", i), times: 1}
		d.at = simulation.Between(r, 0, 30*time.Second)
		first := d
		ending := []string{"", "", "", "-LOST", "-OUTAGE", "-SLOW", "-REJECT"}[r.IntN(7)]
		for n := range 1 + r.IntN(3) {
			d.number, d.refuse = fmt.Sprintf("N-%s-%d%s", d.id, n, ending), ending == "-REJECT"
			d.paper = invoice(f.code, suppliers[f], d.id).With("transaction_number", d.number)
			if d.times = 1; r.IntN(4) == 0 {
				d.times = 2 + r.IntN(3)
			}
			p.deeds = append(p.deeds, d)
			if n == 0 {
				first = d
			}
			d.at += simulation.Between(r, 0, 2*time.Minute)
			if r.IntN(2) == 0 {
				ending = "" // the next attempt has another body; else only another number
			}
		}
		if !first.refuse && r.IntN(2) == 0 {
			p.deeds = append(p.deeds, correctionOf(r, first, suppliers[f]))
		}
	}
	slices.SortStableFunc(p.deeds, func(a, b deed) int { return int(a.at - b.at) })
	for range r.IntN(3) {
		d := death{at: simulation.Between(r, 0, 2*time.Minute), gentle: r.IntN(4) == 0}
		if r.IntN(3) > 0 {
			d.point, d.passage = points()[r.IntN(len(points()))], 1+r.IntN(3)
		}
		p.deaths = append(p.deaths, d)
	}
	slices.SortFunc(p.deaths, func(a, b death) int { return int(a.at - b.at) })
	return p
}

// correctionOf corrects a transaction whose first attempt the authority takes,
// at a moment when it may not have been settled yet.
func correctionOf(r *rand.Rand, original deed, supplier string) deed {
	d := original
	d.id, d.number, d.times = "c-"+original.id, "N-c-"+original.id, 1
	d.at += simulation.Between(r, 0, time.Minute)
	switch r.IntN(3) {
	case 0:
		d.kind, d.paper = transaction.Credit, correction(d.code, original.id, d.id)
	case 1:
		d.kind, d.paper = transaction.Cancellation, correction(d.code, original.id, d.id)
	default:
		d.kind, d.paper = transaction.Adjustment, invoice(d.code, supplier, d.id).Adjusts(original.id, 100)
	}
	d.paper.With("transaction_number", d.number)
	return d
}

// play is a running simulation.
type play struct {
	t       *testing.T
	dice    simulation.Dice
	sims    *authority.Simulators
	flights sync.WaitGroup
	dir     string

	url  string
	node *node
	wire *simulation.Wire
	trap chan struct{} // closed when the process has reached the point of its death
	bury chan struct{} // closed when it is dead

	mu    sync.Mutex
	calls map[string]int

	answered map[string]int    // operations by how often their id was answered
	owner    map[string]string // operation → client
	wins     map[string]string // what was seen of an operation that succeeded
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	simulation.Run(t, seedsHere, simulate)
}

// simulate plays a plan and then holds everything against what must have come of it.
func simulate(t *testing.T, dice simulation.Dice) {
	g := &play{t: t, dice: dice, dir: t.TempDir(), calls: map[string]int{}, answered: map[string]int{},
		owner: map[string]string{}, wins: map[string]string{}}
	var err error
	g.sims, err = country.NewSimulators(g.dir+"/authorities", variants()...)
	must(t, err)
	g.url = "sqlite:" + g.dir + "/tributary.db"
	g.open(death{})
	suppliers := map[firm]string{}
	for _, f := range firms(dice.Of("firms")) {
		suppliers[f] = g.node.SupplierOf(f.client, f.code, f.name)
	}
	p := newPlan(dice, suppliers)
	g.run(p)
	g.settle()
	g.flights.Wait() // what is still on its way arrives, too late
	g.check(p)
	g.node.Stop()
	must(t, g.sims.Close())
}

// fate befalls the first three calls about a document; then the network is well.
func (g *play) fate(r *http.Request, body []byte) simulation.Fate {
	line, _, _ := strings.Cut(string(body), "\n")
	var about struct{ Number string }
	if json.Unmarshal([]byte(line), &about) != nil || about.Number == "" {
		about.Number = r.URL.Query().Get("number")
	}
	what := r.Method + " " + r.URL.Path + " " + about.Number
	g.mu.Lock()
	g.calls[what]++
	n := g.calls[what]
	g.mu.Unlock()
	if n > 3 || r.Method == http.MethodPut { // suppliers are enrolled before anything happens
		return simulation.Fate{}
	}
	return g.dice.Fate("call", what, n)
}

// open starts a process on what the one before has left.
func (g *play) open(next death) {
	g.wire = simulation.NewWire(g.sims, g.fate, &g.flights)
	packs := variants()
	for i := range packs {
		packs[i] = g.wire.Through(packs[i])
	}
	d := dbtest.Open(g.t, db.Config{URL: g.url})
	n := newNode(g.t, d, setup{Packs: packs, Simulators: "http://authority.test", RetryBase: filing.RetryBase,
		Documents: "file://" + g.dir + "/documents"})
	n.LookEvery(time.Minute)
	trap, bury, once, passed := make(chan struct{}), make(chan struct{}), sync.Once{}, 0
	if next.point != "" {
		n.When(next.point, func(string) {
			g.mu.Lock()
			passed++
			here := passed >= next.passage
			g.mu.Unlock()
			if here {
				once.Do(func() { close(trap) })
				<-bury // it never gets any further
			}
		})
	}
	g.node, g.trap, g.bury = n, trap, bury
	n.Start()
}

// run lets everything of the plan happen at its time.
func (g *play) run(p plan) {
	begun := time.Now()
	deeds, deaths := p.deeds, p.deaths
	for len(deeds) > 0 || len(deaths) > 0 {
		next := time.Hour
		if len(deeds) > 0 {
			next = deeds[0].at
		}
		if len(deaths) > 0 {
			next = min(next, deaths[0].at)
		}
		if !g.reach(next - time.Since(begun)) {
			continue
		}
		g.look()
		for len(deeds) > 0 && deeds[0].at <= time.Since(begun) {
			g.submit(deeds[0])
			deeds = deeds[1:]
		}
		if len(deaths) > 0 && deaths[0].at <= time.Since(begun) {
			g.die(deaths[0])
			deaths = deaths[1:]
		}
	}
}

// reach lets time pass; false: the process died on the way.
func (g *play) reach(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-g.trap:
		g.die(death{})
		return false
	case <-timer.C:
		return true
	}
}

func (g *play) trapped() bool {
	select {
	case <-g.trap:
		return true
	default:
		return false
	}
}

// die ends the process and starts the next one on what it leaves.
func (g *play) die(d death) {
	if synctest.Wait(); d.gentle && !g.trapped() {
		for _, point := range points() {
			g.node.When(point, nil)
		}
		g.node.Stop()
	}
	g.url = simulation.Remains(g.t, g.url)
	g.wire.Cut()
	close(g.bury)
	g.flights.Go(g.node.Stop) // it works on for a moment, on a database that nobody looks at again
	g.open(d)
}

// submit hands a body over as often as the plan says, all at once.
func (g *play) submit(d deed) {
	body := d.paper.Body(g.t)
	var wg sync.WaitGroup
	for range d.times {
		wg.Go(func() {
			id, err := g.node.Submit(context.Background(), caller(d.client), d.kind, body)
			if err != nil {
				g.t.Errorf("submit %s: %v", d.id, err)
				return
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.answered[id]++
			g.owner[id] = d.client
		})
	}
	wg.Wait()
}

// look notes what has succeeded, and finds what has changed since.
func (g *play) look() {
	for id, whose := range g.owner {
		r, err := g.node.Result(context.Background(), whose, id)
		must(g.t, err)
		if r.Status != filing.Success {
			if before, ok := g.wins[id]; ok {
				g.t.Errorf("%s was %s and is %s", id, before, r.Status)
			}
			continue
		}
		r.Corrections = nil
		for i := range r.Attachments {
			r.Attachments[i].ResourceURL = "" // signed anew each time
		}
		text, err := json.Marshal(r)
		must(g.t, err)
		if before, ok := g.wins[id]; ok && before != string(text) {
			g.t.Errorf("a success has changed from\n%s\nto\n%s", before, text)
		}
		g.wins[id] = string(text)
	}
}

// settle waits until nothing is open any more.
func (g *play) settle() {
	for range 120 {
		if one[int64](g.t, g.node.DB, "SELECT count(*) FROM operations WHERE status = 'PROCESSING'") == 0 {
			return
		}
		g.reach(time.Minute)
		g.resume()
	}
	g.t.Errorf("after two hours of a good network something is still open\n%s", g.node.Log)
}

// resume decides about chains that stopped at a refused link, as a person would.
// A network that is not well yet is tried again.
func (g *play) resume() {
	var holds []hold.Hold
	must(g.t, g.node.DB.Read(context.Background(), func(r db.Reader) (err error) {
		holds, err = hold.List(r)
		return err
	}))
	for _, h := range holds {
		if h.Code != stopping {
			g.t.Errorf("a chain of %s stopped: %s", h.Code, h.Why)
		}
		_, _ = g.node.ResumeChain(context.Background(), h.Place, recovery.From{}, nil)
	}
}

// check holds the end against the plan: bad luck changes no outcome.
func (g *play) check(p plan) {
	g.look()
	won := map[string]bool{}   // client and transaction
	want := map[string]int{}   // code, tax number and number → registrations
	stages := map[string]int{} // status → how many operations must have it
	for _, d := range p.deeds {
		key := d.client + " " + d.id
		if !won[key] && d.refuse {
			stages["FAILURE"] += d.times
			continue
		}
		if !won[key] {
			want[d.code+" "+d.tax+" "+d.number] = 1
		}
		won[key] = true
	}
	got := map[string]int{}
	for _, code := range simulated() {
		desk, _ := g.sims.Desk(code)
		held, err := desk.Registrations()
		must(g.t, err)
		for _, r := range held {
			got[code+" "+r.Supplier+" "+r.Number]++
		}
	}
	if !maps.Equal(got, want) {
		g.t.Errorf("registered\n%v\nwant\n%v", got, want)
	}
	d := g.node.DB
	same(g.t, "failures", one[int64](g.t, d, "SELECT count(*) FROM operations WHERE status = 'FAILURE'"),
		int64(stages["FAILURE"]))
	same(g.t, "operations", one[int64](g.t, d, "SELECT count(*) FROM operations"), int64(len(g.answered)))
	same(g.t, "transactions that won", one[int64](g.t, d, "SELECT count(success_id) FROM transactions"), int64(len(won)))
	same(g.t, "attempts counted open", one[int64](g.t, d, "SELECT coalesce(sum(open), 0) FROM transactions"), 0)
	same(g.t, "crash counts left", one[int64](g.t, d, "SELECT coalesce(max(crashes), 0) FROM operations"), 0)
	for id, times := range g.answered {
		if events := g.node.Events(id); events != int64(times) {
			g.t.Errorf("operation %s was answered %d times and has %d events", id, times, events)
		}
	}
	g.checkAttempts()
	g.checkChains()
}

// checkAttempts: of one transaction the attempts end in the order in which they came.
func (g *play) checkAttempts() {
	same(g.t, "attempts that ended before an earlier one", one[int64](g.t, g.node.DB, `SELECT count(*) FROM operations a JOIN operations b
		ON a.client_id = b.client_id AND a.transaction_id = b.transaction_id AND a.attempt < b.attempt
		WHERE a.settled_at > b.settled_at OR a.status = 'SUCCESS' AND b.status <> 'SUCCESS'`), 0)
}

// checkChains: links are numbered without gap or fork, and each names the one before it.
func (g *play) checkChains() {
	type link struct {
		Link struct {
			Position int64
			Hash     string
		}
	}
	chains := map[string]map[int64]string{}
	must(g.t, g.node.DB.Read(context.Background(), func(r db.Reader) error {
		rows, err := r.Query("SELECT o.lane, f.filing FROM filings f JOIN operations o ON o.operation_id = f.operation_id WHERE o.country IN ($1, $2) OR o.country = $3 AND o.status = 'SUCCESS'",
			byChain, anyOrder, stopping)
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var lane, text string
			var l link
			if err := scan(&lane, &text); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				return err
			}
			if chains[lane] == nil {
				chains[lane] = map[int64]string{}
			}
			if other, forked := chains[lane][l.Link.Position]; forked || l.Link.Position == 0 {
				g.t.Errorf("chain %s has two links at %d: %s and %s", lane, l.Link.Position, other, l.Link.Hash)
			}
			chains[lane][l.Link.Position] = l.Link.Hash
			return nil
		})
	}))
	for lane, links := range chains {
		for at := range int64(len(links)) {
			if links[at+1] == "" {
				g.t.Errorf("chain %s has no link %d of %d", lane, at+1, len(links))
			}
		}
		if at, err := operation.ParseLane(lane); err == nil && at.Code == stopping {
			continue // a refused link may stand at its end
		}
		same(g.t, "head of the chain", one[int64](g.t, g.node.DB, "SELECT position FROM chains WHERE lane = $1", lane),
			int64(len(links)))
	}
}

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/killpoint"
	"tributary/internal/needs"
	"tributary/internal/operation"
)

const (
	crashSeed     = 1   // of make test; every run of make long has another
	crashKills    = 3   // of make test, for each plan
	crashKillMany = 200 // of make long
)

// crashPlan is what a kill run does. Its random choices follow from the seed;
// what the machine does between them does not.
type crashPlan struct {
	postgres bool
	nodes    int
	country  string
	kills    int
	clients  int
	seed     uint64
}

// TestCrashRun kills the real program at random moments, at named places and
// by stopping it longer than a lease lasts, and audits what the authority, the
// receiver and the API say afterwards. make long and TRIBUTARY_CRASH_KILLS make it long,
// TRIBUTARY_CRASH_SEED repeats the choices of a run, TRIBUTARY_CRASH_COUNTRY
// takes another authority, TRIBUTARY_CRASH_LOG keeps a line per run.
func TestCrashRun(t *testing.T) {
	t.Parallel()
	kills, seed, clients := crashKills, crashSeed, 6
	if needs.IsLong() {
		kills, seed = crashKillMany, int(time.Now().UnixNano())
	}
	if kills = setting(t, "TRIBUTARY_CRASH_KILLS", kills); kills > crashKills {
		clients = 64
	}
	for name, plan := range map[string]crashPlan{
		"sqlite":         {nodes: 1, country: "XX"},
		"postgres":       {nodes: 2, postgres: true, country: "XX"},
		"sqlite chain":   {nodes: 1, country: "ES"},
		"postgres chain": {nodes: 2, postgres: true, country: "ES"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan.clients, plan.kills = clients, kills
			plan.seed = uint64(setting(t, "TRIBUTARY_CRASH_SEED", seed))
			if code := os.Getenv("TRIBUTARY_CRASH_COUNTRY"); code != "" {
				plan.country = code
			}
			runCrash(t, name, plan)
		})
	}
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// crashRun is a run under way.
type crashRun struct {
	*stage
	plan     crashPlan
	land     crashCountry
	supplier string
	receives bool // the buyer is a company of ours, too, and is brought what it is sold
	random   *rand.Rand
	next     atomic.Int64
	killed   map[string]int  // by how
	readied  time.Duration   // the longest start
	resumed  []time.Duration // from a start of the only node to its first announcement
	moved    time.Duration   // the longest from a node's death until another had announced everything accepted before
	open     map[string]bool // events whose delivery was not stored when a node was killed or stopped: they may come again

	mu       sync.Mutex
	accepted map[string][]string // operation ids by transaction id
	credited map[string]bool
	seen     map[string]string // authority ids of successes, as first seen
}

func runCrash(t *testing.T, name string, plan crashPlan) {
	t.Logf("%s, %s: %d kills, seed %d", name, plan.country, plan.kills, plan.seed)
	land := crashCountryOf(t, plan.country)
	c := &crashRun{
		plan: plan, land: land, stage: newStage(t, fastBinary(t), plan.nodes, plan.postgres),
		random: rand.New(rand.NewPCG(plan.seed, 1)),
		killed: map[string]int{}, open: map[string]bool{}, accepted: map[string][]string{}, credited: map[string]bool{},
		seen: map[string]string{},
	}
	for _, n := range c.nodes {
		n.process.waitReady()
	}
	c.supplier = c.onboard(land)
	c.receives = c.buys()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range min(plan.clients, cmp.Or(land.clients, plan.clients)) {
		clients.Go(func() { c.submit(stop, rand.New(rand.NewPCG(plan.seed, uint64(i)+2))) })
	}
	clients.Go(func() { c.watch(stop, rand.New(rand.NewPCG(plan.seed, 1<<32))) })
	began := time.Now()
	for n := 1; n <= plan.kills; n++ {
		c.strike()
		if n%50 == 0 {
			t.Logf("%d of %d kills after %s", n, plan.kills, time.Since(began).Round(time.Second))
		}
	}
	close(stop)
	clients.Wait()
	for _, n := range c.nodes {
		if n.process.gone() {
			c.launch(n, "")
			n.process.waitReady()
		}
	}
	c.audit(name)
}

// strike ends one node, in one of the ways in which nodes end, and brings it back.
func (c *crashRun) strike() {
	n := c.nodes[c.random.IntN(len(c.nodes))]
	switch way := c.random.IntN(10); {
	case way < 4 && killpoint.Armed:
		points := killpoint.Points()
		// no company is onboarded, no authority calls, no period ends, and only Poland takes batches meanwhile
		points = points[:len(points)-5]
		if c.receives {
			points = append(points, killpoint.Heard)
		}
		point := points[c.random.IntN(len(points))]
		c.kill(n)
		c.launch(n, fmt.Sprintf("%s:%d", point, 1+c.random.IntN(5)))
		if n.process.endsWithin(30 * time.Second) { // all are passed at once, unless the machine stands still
			c.noteOpen()
			c.leaveDead()
		} else {
			c.kill(n)
			point = "random"
		}
		c.killed[string(point)]++
		c.launch(n, "")
	case way == 4:
		c.stall(n)
		c.killed["after a stall"]++
		c.kill(n)
		c.launch(n, "")
	default:
		pause(time.Duration(30+c.random.IntN(500)) * time.Millisecond)
		c.kill(n)
		c.killed["random"]++
		c.launch(n, "")
	}
	// Now and then the next kill comes while it starts.
	if c.random.IntN(5) > 0 {
		n.process.waitReady()
		c.readied = max(c.readied, time.Since(n.started))
		if len(c.nodes) == 1 {
			c.resumed = append(c.resumed, c.receiver.firstAfter(n.started).Sub(n.started))
		}
	}
}

// leaveDead lets a node that died in the middle of its work stay dead, now and
// then, until the others have announced what was accepted before.
func (c *crashRun) leaveDead() {
	if len(c.nodes) == 1 || c.random.IntN(4) > 0 {
		return
	}
	died := time.Now()
	if missing := c.awaitTold(c.operations()); len(missing) > 0 {
		c.t.Errorf("%d operations were not taken over from a dead node, among them %s", len(missing), missing[0])
	}
	c.moved = max(c.moved, time.Since(died))
}

func (c *crashRun) kill(n *node) {
	if !n.process.gone() {
		n.process.halt()
		c.noteOpen() // while its rows are still its own
		n.process.kill()
	}
}

// noteOpen remembers the events that may be told twice: whoever was to store that
// they are delivered is dead, or stands still. What is stored comes once.
func (c *crashRun) noteOpen() {
	d, err := db.Open(c.t.Context(), db.Config{URL: c.looked(), NoWorkers: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = d.Close() }() // only read
	err = d.Read(c.t.Context(), func(r db.Reader) error {
		rows, err := r.Query("SELECT webhook_id FROM webhook_events WHERE status = 'pending'")
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			c.open[id] = true
			return err
		})
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, id := range c.receiver.repeated() { // taken over, sent again and stored before anybody looked
		c.open[id] = true
	}
}

// looked is the database's address, or that of a copy of a SQLite file: whoever
// opened the file itself would recover it in place of the node that was killed.
func (c *crashRun) looked() string {
	path, ok := strings.CutPrefix(c.database, "sqlite:")
	if !ok {
		return c.database
	}
	dir := c.t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		if _, err := os.Stat(path + suffix); err == nil {
			copyFile(c.t, path+suffix, filepath.Join(dir, "copy.db"+suffix))
		}
	}
	return "sqlite:" + filepath.Join(dir, "copy.db")
}

// stall stops a node for a while, now and then longer than its leases last, so
// that another one takes over and it wakes up in the middle of what it did.
func (c *crashRun) stall(n *node) {
	n.process.halt()
	c.noteOpen()
	wait := time.Duration(200+c.random.IntN(800)) * time.Millisecond
	if len(c.nodes) > 1 && c.random.IntN(4) == 0 && c.plan.kills > crashKills {
		wait = 12 * time.Second // make test has no time for it
	}
	pause(wait)
	_ = n.process.cmd.Process.Signal(syscall.SIGCONT) // it may have ended
	pause(time.Duration(c.random.IntN(300)) * time.Millisecond)
}

// pause lets other processes run: a kill run is about time passing.
func pause(d time.Duration) { time.Sleep(d) }

// submit posts sales until told to stop: some whose answer the authority will
// lose, some twice at once, some credited later.
func (c *crashRun) submit(stop <-chan struct{}, random *rand.Rand) {
	for {
		id := fmt.Sprintf("crash-%06d", c.next.Add(1))
		number := id
		if random.IntN(8) == 0 {
			number += "-LOST"
		}
		date := time.Now().UTC()
		body := c.land.body(id, number, c.supplier, date)
		path := "/v1/transactions"
		if original := c.toCredit(random); original != "" {
			body, path = c.land.creditOf(original, id, date), "/v1/transactions/credit"
		}
		copies := 1
		if random.IntN(10) == 0 {
			copies = 2
		}
		var both sync.WaitGroup
		for range copies {
			base := c.nodes[random.IntN(len(c.nodes))].base
			both.Go(func() { c.insist(stop, id, base, path, body) })
		}
		both.Wait()
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
		}
	}
}

// toCredit picks a sale nobody has credited, now and then.
func (c *crashRun) toCredit(random *rand.Rand) string {
	if !c.land.credit || random.IntN(12) > 0 {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.accepted {
		if !c.credited[id] {
			c.credited[id] = true
			return id
		}
	}
	return ""
}

// insist posts until it is answered, as a careful client does.
func (c *crashRun) insist(stop <-chan struct{}, id, base, path string, body []byte) {
	for try := 0; ; try++ {
		status, answer, err := c.post(base, path, body)
		var got struct {
			OperationID string `json:"operation_id"`
		}
		if err == nil && status == http.StatusAccepted && json.Unmarshal(answer, &got) == nil {
			c.mu.Lock()
			c.accepted[id] = append(c.accepted[id], got.OperationID)
			if path == "/v1/transactions/credit" {
				c.credited[id] = true // a credit is not credited
			}
			c.mu.Unlock()
			return
		}
		if err == nil && status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
			c.t.Errorf("%s: status %d: %s", id, status, answer)
			return
		}
		base = c.nodes[try%len(c.nodes)].base
		select {
		case <-stop:
			return
		case <-time.After(30 * time.Millisecond): // the program is down
		}
	}
}

// watch looks at results while everything falls: a success once seen must stay.
func (c *crashRun) watch(stop <-chan struct{}, random *rand.Rand) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		var operation string
		c.mu.Lock()
		for _, list := range c.accepted {
			operation = list[random.IntN(len(list))]
			break
		}
		c.mu.Unlock()
		if operation != "" {
			c.look(c.nodes[random.IntN(len(c.nodes))].base, operation)
		}
	}
}

// shown is what an audit reads of a result.
type shown struct {
	Status string `json:"status"`
	ID1    string `json:"tax_authority_id_1"`
	Errors []struct{ Code, Message string }
}

// look reads a result and remembers a success; nil when it could not be read.
func (c *crashRun) look(base, operation string) *shown {
	status, answer, err := c.fetch(base, "/v1/transactions/"+operation)
	if err != nil || status == http.StatusServiceUnavailable {
		return nil
	}
	var r shown
	if status != http.StatusOK || json.Unmarshal(answer, &r) != nil {
		c.t.Errorf("operation %s was answered with 202 and is now %d: %s", operation, status, answer)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.seen[operation]
	switch {
	case known && (r.Status != "SUCCESS" || r.ID1 != before):
		c.t.Errorf("operation %s was SUCCESS with %q and is now %s with %q", operation, before, r.Status, r.ID1)
	case r.Status == "SUCCESS":
		c.seen[operation] = r.ID1
	}
	return &r
}

// audit holds everybody's records against each other.
func (c *crashRun) audit(name string) {
	t := c.t
	operations := c.operations()
	if len(operations) == 0 {
		t.Fatal("nothing was accepted: the run proves nothing")
	}
	missing := c.awaitTold(operations)
	for _, id := range missing[:min(len(missing), 10)] {
		t.Errorf("operation %s was accepted and never announced: %+v", id, c.look(c.nodes[0].base, id))
	}
	for _, id := range operations {
		if r := c.look(c.nodes[0].base, id); r == nil || r.Status != "SUCCESS" {
			t.Errorf("operation %s ended %+v", id, r)
		}
	}
	registered := c.registrations()
	disordered := c.disordered()
	lost, twice := 0, 0
	for id := range c.accepted {
		switch n := registered[id]; {
		case n == 0:
			lost++
			t.Errorf("%s is not registered", id)
		case n > 1:
			twice++
			t.Errorf("%s is registered %d times", id, n)
		}
	}
	received := ""
	if c.receives {
		out, again := c.auditReceived()
		received = fmt.Sprintf(" received_lost=%d received_double=%d", out, again)
	}
	if len(c.receiver.wrong) > 0 {
		t.Errorf("%d notifications did not verify, the first: %s", len(c.receiver.wrong), c.receiver.wrong[0])
	}
	repeated := c.receiver.repeated()
	for _, id := range repeated {
		if c.open != nil && !c.open[id] {
			t.Errorf("notification %s was repeated, and no kill had met it under way", id)
		}
	}
	line := fmt.Sprintf("engine=%s nodes=%d country=%s seed=%d kills=%d (%s) accepted=%d operations=%d lost=%d double=%d out_of_order=%d%s repeated_webhooks=%d (open at kills %d) slowest_start=%s resumed=%s moved_within=%s failed=%v",
		name, len(c.nodes), c.plan.country, c.plan.seed, c.plan.kills, ways(c.killed), len(c.accepted), len(operations),
		lost, twice, disordered, received, len(repeated), len(c.open),
		c.readied.Round(time.Millisecond), spread(c.resumed), c.moved.Round(time.Millisecond), t.Failed())
	t.Log(line)
	keepLine(t, line)
}

// spread is the middle, the ninth of ten and the longest.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "-"
	}
	slices.Sort(times)
	show := func(i int) time.Duration { return times[i].Round(time.Millisecond) }
	return fmt.Sprintf("%s/%s/%s", show(len(times)/2), show(len(times)*9/10), show(len(times)-1))
}

func (c *crashRun) operations() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for _, ids := range c.accepted {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				list = append(list, id)
			}
		}
	}
	return list
}

// disordered counts documents that came to the authority out of the order of
// their chain, and complaints of the authority about it.
func (c *crashRun) disordered() (n int) {
	positions := map[string]int64{}
	d := dbtest.Open(c.t, db.Config{URL: c.database, NoWorkers: true})
	err := d.Read(c.t.Context(), func(r db.Reader) error {
		if err := r.Row("SELECT count(*) FROM alerts WHERE name IN ('chain_mismatch', 'chain_remarked')").Scan(&n); err !=
			nil {
			return err
		}
		rows, err := r.Query("SELECT filing FROM filings")
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var text string
			if err := scan(&text); err != nil {
				return err
			}
			f, err := operation.ReadFiling(text, nil)
			positions[f.Number] = f.Link.Position
			return err
		})
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if n > 0 {
		c.t.Errorf("%d alerts about a chain", n)
	}
	last := int64(0)
	for _, number := range c.registered() {
		if at := positions[number]; at > 0 && at < last {
			n++
			c.t.Errorf("%s has place %d in the chain and was registered after %d", number, at, last)
		} else {
			last = at
		}
	}
	return n
}

// registrations counts what the authority holds, by transaction.
func (c *crashRun) registrations() map[string]int {
	times := map[string]int{}
	for _, number := range c.registered() {
		times[strings.TrimSuffix(number, "-LOST")]++
	}
	return times
}

// registered lists the numbers that the authority holds, in its order.
func (c *crashRun) registered() (numbers []string) {
	var book struct {
		Registrations []struct{ Number string }
	}
	_, answer, err := c.fetch(c.sims, "/_control/"+strings.ToLower(c.plan.country)+"/registrations")
	if err == nil {
		err = json.Unmarshal(answer, &book)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range book.Registrations {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

func ways(killed map[string]int) string {
	var list []string
	for how, n := range killed {
		list = append(list, fmt.Sprintf("%s %d", how, n))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// keepLine adds a run to the record that docs/reliability.md sums up.
func keepLine(t *testing.T, line string) {
	path := os.Getenv("TRIBUTARY_CRASH_LOG")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }() // a record of a test
	fmt.Fprintf(file, "%s %s\n", time.Now().UTC().Format(time.RFC3339), line)
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
)

// TestHighAvailability runs two nodes on three PostgreSQL servers under Patroni
// and takes the leader away: by killing it, by a switchover, and by freezing it
// until others have gone on without it and it is fenced. What was answered 202
// is registered once, nothing fails, and the next 202 comes soon after the
// promotion. It takes about twenty minutes: make ha.
func TestHighAvailability(t *testing.T) {
	if os.Getenv("TRIBUTARY_HA") == "" {
		t.Skip("TRIBUTARY_HA is not set: make ha runs it")
	}
	etcd, err := filepath.Abs(os.Getenv("TRIBUTARY_ETCD"))
	if err != nil {
		t.Fatal(err)
	}
	plan := haPlan{kills: setting(t, "TRIBUTARY_HA_KILLS", 20), switchovers: setting(t, "TRIBUTARY_HA_SWITCHOVERS", 5),
		freezes: setting(t, "TRIBUTARY_HA_FREEZES", 5)}
	seed := uint64(setting(t, "TRIBUTARY_CRASH_SEED", int(time.Now().UnixNano())))
	cluster := dbtest.StartCluster(t, etcd)
	cluster.Create("tributary")
	must(t, "migrate", "--database", cluster.URL("tributary"))
	c := &crashRun{
		plan: crashPlan{nodes: 2, country: "XX", kills: plan.kills + plan.switchovers + plan.freezes, clients: 16,
			seed: seed}, land: crashCountryOf(t, "XX"),
		stage: newStageOn(t, fastBinary(t), 2, cluster.URL("tributary")), random: rand.New(rand.NewPCG(seed, 1)),
		killed: map[string]int{}, accepted: map[string][]string{}, credited: map[string]bool{}, seen: map[string]string{},
	}
	c.open = nil       // deliveries whose end could not be stored come again, whichever they were
	t.Cleanup(func() { // before the cluster's folder is removed, or kept
		for i, n := range c.nodes {
			write(t, filepath.Join(cluster.Dir(), fmt.Sprintf("node-%d.log", i+1)), n.process.stderr())
		}
	})
	for _, n := range c.nodes {
		n.process.waitReady()
	}
	c.supplier = c.onboard(c.land)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range c.plan.clients {
		clients.Go(func() { c.submit(stop, rand.New(rand.NewPCG(seed, uint64(i)+2))) })
	}
	clients.Go(func() { c.watch(stop, rand.New(rand.NewPCG(seed, 1<<32))) })

	faults := plan.faults()
	c.random.Shuffle(len(faults), func(i, k int) { faults[i], faults[k] = faults[k], faults[i] })
	var waits []time.Duration
	for i, fault := range faults {
		wait := c.takeLeader(cluster, fault, fmt.Sprintf("ha-%03d", i))
		waits = append(waits, wait)
		c.killed[fault]++
		t.Logf("%d of %d: %s; the next 202 came %s after the promotion", i+1, len(faults), fault,
			wait.Round(time.Millisecond))
		if wait > 10*time.Second {
			t.Errorf("%s: the next 202 came %s after the promotion, want 10 s at most", fault, wait)
		}
		cluster.Whole()
	}
	close(stop)
	clients.Wait()
	c.audit("patroni")
	t.Logf("next 202 after the promotion, median/p90/longest: %s", spread(slices.Clone(waits)))
}

type haPlan struct{ kills, switchovers, freezes int }

func (p haPlan) faults() (list []string) {
	for what, n := range map[string]int{"kill": p.kills, "switchover": p.switchovers, "freeze": p.freezes} {
		for range n {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return list
}

// takeLeader takes the leader away and answers how long after the promotion of
// another member the next 202 came.
func (c *crashRun) takeLeader(cluster *dbtest.Cluster, how, id string) time.Duration {
	leader := cluster.Leader()
	switch how {
	case "switchover":
		return c.nextAccepted(id, cluster.Switchover())
	case "kill":
		leader.Kill()
		wait := c.nextAccepted(id, cluster.Promoted(leader))
		leader.Start()
		return wait
	}
	thaw := time.Now().Add(time.Duration(20+c.random.IntN(41)) * time.Second)
	leader.Freeze()
	wait := c.nextAccepted(id, cluster.Promoted(leader))
	pause(time.Until(thaw))
	leader.Kill() // fenced: it never wakes up
	leader.Start()
	return wait
}

// nextAccepted posts until it is answered with 202, and answers how long after a time that was.
func (c *crashRun) nextAccepted(id string, since time.Time) time.Duration {
	stop := make(chan struct{})
	limit := time.AfterFunc(time.Minute, func() { close(stop) })
	defer limit.Stop()
	c.insist(stop, id, c.nodes[0].base, "/v1/transactions", c.land.body(id, id, c.supplier, time.Now().UTC()))
	return max(0, time.Since(since))
}

package webhook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/guard"
	"tributary/internal/simulation"
	"tributary/internal/webhook"
)

// seedsHere is this machine's share of simulation.SeedsAll.
const seedsHere = 200

// arrival is one request that a receiver has read.
type arrival struct {
	webhook.Notification
	at      time.Time
	settled bool // answered 2xx, in time, to a process that lived
}

// post is a running simulation of deliveries: receivers in memory, and one
// process after another that tells them.
type post struct {
	t       *testing.T
	dice    simulation.Dice
	calm    bool // connections are always had
	dir     string
	url     string
	office  *office
	stop    func()
	alive   *bool // of the present process
	flights sync.WaitGroup

	mu       sync.Mutex
	dials    map[string]int
	tries    map[string]int
	arrivals []arrival
	wrong    []error
	stubborn map[string]bool // resources whose receiver never takes them
	again    map[string]int  // redeliveries
	keyless  bool            // the client's key is away
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	simulation.Run(t, seedsHere, func(t *testing.T, dice simulation.Dice) {
		p := &post{t: t, dice: dice, calm: dice.Chance(50, "calm"), dir: t.TempDir(), dials: map[string]int{},
			tries: map[string]int{}, stubborn: map[string]bool{}, again: map[string]int{}}
		p.url = "sqlite:" + p.dir + "/tributary.db"
		p.open()
		series := p.run()
		p.settle()
		p.stop()
		p.flights.Wait()
		p.check(series)
	})
}

// open starts a process on what the one before has left.
func (p *post) open() {
	alive := true
	p.mu.Lock()
	p.alive = &alive
	p.mu.Unlock()
	sender := must(webhook.NewSender(webhook.SenderConfig{Guard: newGuard(p.t, guard.Config{Demo: true})}))(p.t)
	sender.Over(func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address, &alive) })
	p.office = newOffice(p.t, dbtest.Open(p.t, db.Config{URL: p.url}), nil, func(c *webhook.Config) {
		c.Sender, c.Ladder, c.Poll = sender, webhook.Ladder{}, time.Hour
		keys := c.Keys
		c.Keys = func(ctx context.Context, clientID string) (webhook.Keys, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.keyless {
				return webhook.Keys{}, webhook.ErrNoKey
			}
			return keys(ctx, clientID)
		}
	})
	p.t.Cleanup(sender.Close)
	p.office.setTarget(client, "http://127.0.0.1:8080/hook")
	p.stop = p.office.open(p.t)
}

// die ends the process, as a kill does unless it is gentle, and starts the next.
func (p *post) die(gentle bool) {
	if gentle {
		p.stop()
	}
	p.url = simulation.Remains(p.t, p.url)
	p.mu.Lock()
	*p.alive = false
	p.mu.Unlock()
	p.flights.Go(p.stop)
	p.open()
}

func (p *post) lives(alive *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *alive
}

// dial connects a process to a receiver, or does not.
func (p *post) dial(ctx context.Context, address string, alive *bool) (net.Conn, error) {
	if !p.lives(alive) {
		return nil, syscall.ENETDOWN
	}
	p.mu.Lock()
	p.dials[address]++
	n := p.dials[address]
	p.mu.Unlock()
	switch r := p.dice.Of("dial", address, n).IntN(12); {
	case p.calm || n > 40:
	case r == 0:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case r == 1: // nobody says no
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	p.flights.Go(func() { p.receive(theirs, alive) })
	return ours, nil
}

// receive is a receiver's side of a connection.
func (p *post) receive(c net.Conn, alive *bool) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		request, err := http.ReadRequest(in)
		if err != nil {
			return // the sender has closed it
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		note, err := webhook.VerifyHeaders(body, webhook.Signed{Header: request.Header}, keyText("k1"), webhook.Freshness{})
		if !p.lives(alive) {
			return
		}
		p.mu.Lock()
		if err != nil {
			p.wrong = append(p.wrong, err)
		}
		at := len(p.arrivals)
		p.arrivals = append(p.arrivals, arrival{Notification: note, at: time.Now()})
		p.tries[note.ResourceID]++
		n, stubborn := p.tries[note.ResourceID], p.stubborn[note.ResourceID]
		p.mu.Unlock()
		answer := p.answer(note.ResourceID, n, stubborn)
		time.Sleep(answer.delay)
		lived := p.lives(alive)
		heard, err := io.WriteString(c, answer.text)
		if answer.taken(heard) && lived {
			p.mu.Lock()
			p.arrivals[at].settled = true
			p.mu.Unlock()
		}
		if err != nil || !answer.keep {
			return
		}
	}
}

// reply is what a receiver does after it has read a request.
type reply struct {
	text  string
	delay time.Duration
	keep  bool // the connection stays
}

// taken: of the bytes that the sender has read, it must have learnt of a success.
func (r reply) taken(heard int) bool { return strings.HasPrefix(r.text[:heard], "HTTP/1.1 200 OK\r\n") }

// answer draws what the receiver does to the n-th request about a resource.
func (p *post) answer(resource string, n int, stubborn bool) reply {
	const good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	if stubborn {
		return reply{text: "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", keep: true}
	}
	if n > 3 {
		return reply{text: good, keep: true}
	}
	switch r := p.dice.Of("answer", resource, n); r.IntN(16) {
	case 0:
		return reply{text: "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", keep: true}
	case 1:
		return reply{text: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", keep: true}
	case 2: // read, and gone without a word
		return reply{delay: simulation.Between(r, 0, 20*time.Second)}
	case 3: // read and taken, and the sender has left
		return reply{text: good, delay: simulation.Between(r, webhook.ExchangeTimeout, time.Minute)}
	case 4:
		return reply{text: "HTTP/1.1 20", delay: time.Second}
	case 5: // the status line counts, whatever comes after
		return reply{text: "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\ncut", delay: time.Second}
	case 6:
		return reply{text: "<html>not HTTP at all</html>\r\n\r\n"}
	case 7:
		return reply{text: "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", keep: true}
	case 8:
		return reply{text: good, delay: simulation.Between(r, time.Second, 14*time.Second), keep: true}
	}
	return reply{text: good, keep: true}
}

// run lets events, redeliveries, a lost key and ends of the process happen; it
// returns the resources of each series in order.
func (p *post) run() (series map[string][]string) {
	r := p.dice.Of("plan")
	series = map[string][]string{}
	stubborn := 0
	if p.dice.Chance(8, "stubborn") { // seldom: days of virtual time are not free
		stubborn = 2
	}
	for i := range 4 + r.IntN(10) {
		time.Sleep(simulation.Between(r, 0, 20*time.Second))
		switch r.IntN(10) {
		case 0:
			p.die(r.IntN(4) == 0)
			continue
		case 1:
			p.setKeyless(!p.keyless)
			continue
		case 2:
			p.redeliver(r.IntN(100))
			continue
		}
		var batch []webhook.Event
		for n := range 1 + r.IntN(4) {
			e := event(fmt.Sprintf("op-%d-%d", i, n))
			if r.IntN(3) > 0 {
				e.Series = fmt.Sprint("s", r.IntN(3))
				series[e.Series] = append(series[e.Series], e.ResourceID)
			}
			if stubborn > 0 && r.IntN(10) == 0 {
				stubborn--
				p.mu.Lock()
				p.stubborn[e.ResourceID] = true
				p.mu.Unlock()
			}
			batch = append(batch, e)
		}
		if r.IntN(2) == 0 {
			p.office.notify(p.t, batch...)
			continue
		}
		for _, e := range batch {
			p.office.notify(p.t, e)
		}
	}
	p.setKeyless(false)
	return series
}

// setKeyless takes the client's key away, or gives it back.
func (p *post) setKeyless(away bool) {
	p.mu.Lock()
	p.keyless = away
	p.mu.Unlock()
	p.office.change(func(map[string]string, map[string]webhook.Keys) {})
}

// redeliver asks for one of the events that have come to their end once more.
func (p *post) redeliver(pick int) {
	rows := slices.DeleteFunc(p.office.list(p.t, webhook.Filter{}), func(r webhook.EventRow) bool {
		return r.Status == webhook.Pending
	})
	if len(rows) == 0 {
		return
	}
	row := rows[pick%len(rows)]
	if err := p.office.Redeliver(p.t.Context(), client, row.WebhookID); err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	p.again[row.WebhookID]++
	p.mu.Unlock()
}

// settle waits until nothing is pending any more; a whole ladder takes up to 98 hours.
func (p *post) settle() {
	for range 120 {
		if len(p.office.list(p.t, webhook.Filter{Status: "pending", Limit: 1})) == 0 {
			return
		}
		time.Sleep(time.Hour)
	}
	p.t.Errorf("still pending after five days: %+v\n%s", p.office.list(p.t, webhook.Filter{Status: "pending"}),
		p.office.logged())
}

// check: everything was told or given up by the rules, nothing again after it
// was taken, and the first tries of a series came in order.
func (p *post) check(series map[string][]string) {
	for _, err := range p.wrong {
		p.t.Errorf("a receiver refuses a notification: %v", err)
	}
	first := map[string]time.Time{} // try by resource
	for _, row := range p.office.list(p.t, webhook.Filter{}) {
		tries := p.office.tries(p.t, row.WebhookID)
		if len(tries) != row.Tries || len(tries) == 0 {
			p.t.Fatalf("%d tries of %d are recorded of %+v", len(tries), row.Tries, row)
		}
		first[row.ResourceID] = tries[0].At
		want := webhook.Delivered
		if p.stubborn[row.ResourceID] {
			want = webhook.Discarded
			if row.Tries < 21 || row.Tries > 21*(1+p.again[row.WebhookID]) {
				p.t.Errorf("given up after %d tries: %+v", row.Tries, row)
			}
		}
		if row.Status != want {
			p.t.Errorf("%+v, want it %s", row, want)
		}
		p.checkArrivals(row)
	}
	for name, resources := range series {
		for i := 1; i < len(resources); i++ {
			if first[resources[i]].Before(first[resources[i-1]]) {
				p.t.Errorf("series %s: %s was first tried at %s, %s before it at %s", name, resources[i], first[resources[i]],
					resources[i-1], first[resources[i-1]])
			}
		}
		if p.calm {
			p.checkOrder(name, resources)
		}
	}
}

// checkArrivals holds what the receivers saw of one event against its record.
func (p *post) checkArrivals(row webhook.EventRow) {
	taken, last := 0, time.Time{}
	for _, a := range p.arrivals {
		if a.WebhookID != row.WebhookID {
			continue
		}
		if a.ResourceID != row.ResourceID || a.DeliveredAt.Before(last) {
			p.t.Errorf("%s arrived as %+v after one of %s", row.WebhookID, a.Notification, last)
		}
		if taken > p.again[row.WebhookID] {
			p.t.Errorf("%s of %s arrived again at %s although it had been taken", row.WebhookID, row.ResourceID, a.at)
		}
		last = a.DeliveredAt
		if a.settled {
			taken++
		}
	}
	if row.Status == webhook.Delivered && taken == 0 {
		p.t.Errorf("%s of %s is recorded as delivered and nobody has taken it", row.WebhookID, row.ResourceID)
	}
}

// checkOrder: where every connection is had, each first try arrives, and in order.
func (p *post) checkOrder(name string, resources []string) {
	var came []string
	for _, a := range p.arrivals {
		if slices.Contains(resources, a.ResourceID) && !slices.Contains(came, a.ResourceID) {
			came = append(came, a.ResourceID)
		}
	}
	if !slices.Equal(came, resources) {
		p.t.Errorf("series %s arrived as %v, want %v", name, came, resources)
	}
}

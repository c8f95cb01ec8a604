package account_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tributary/internal/account"
	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/needs"
	"tributary/internal/schema"
	"tributary/internal/secret"
)

func TestAKeyFindsItsClient(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := open(t, d)
		for _, live := range []bool{false, true} {
			c, key, err := n.CreateClient(t.Context(), operator(),
				account.NewClient{Live: live, Config: account.Config{DisplayName: "Acme"}})
			if err != nil {
				t.Fatal(err)
			}
			caller, err := n.Authenticate(t.Context(), key.RevealText(), nowhere())
			if err != nil {
				t.Fatal(err)
			}
			if caller.ClientID != c.ID || caller.Live != live || caller.Kid != c.Keys[0].Kid ||
				caller.Config.DisplayName != "Acme" {
				t.Errorf("got %+v for %+v", caller, c)
			}
			if len(c.ID) != 32 || c.Live != live || states(c) != "active" {
				t.Errorf("got %+v", c)
			}
		}
	})
}

func TestEveryRefusalLooksTheSame(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := open(t, d)
	c, key := n.create(t, "acme")
	text := key.RevealText()
	if _, err := n.RevokeKey(t.Context(), operator(), "acme", c.Keys[0].Kid); err != nil {
		t.Fatal(err)
	}
	_, good := n.create(t, "other")
	goodText := good.RevealText()
	want := ""
	for name, given := range map[string]string{
		"nothing": "", "no key": "hello", "revoked": text, "unknown kid": secret.NewAPIKey(false).Text().RevealText(),
		"wrong secret":      goodText[:len(goodText)-1] + flip(goodText[len(goodText)-1]),
		"other environment": "trb_live_" + strings.TrimPrefix(goodText, "trb_test_"),
		"blank at the end":  goodText + " ",
		"a foreign secret":  goodText[:strings.LastIndexByte(goodText, '_')] + text[strings.LastIndexByte(text, '_'):],
		"very long":         strings.Repeat("x", 1<<20),
	} {
		caller, err := n.Authenticate(t.Context(), given, nowhere())
		if fault.KindOf(err) != fault.Unauthenticated || caller != (account.Caller{}) {
			t.Fatalf("%s: %+v, %v", name, caller, err)
		}
		if want == "" {
			want = err.Error()
		}
		if err.Error() != want {
			t.Errorf("%s says %q, others say %q", name, err, want)
		}
	}
	if !n.auth(t, good) {
		t.Error("the right key is refused")
	}
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

func TestAWarmKeyNeedsNeitherDatabaseNorMasterKey(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), db.Config{URL: dbtest.SQLiteURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Migrate(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	n := open(t, d)
	_, key := n.create(t, "acme")
	reader, err := account.Open(t.Context(), account.Options{DB: d, CheckURL: checkURL}) // no master key
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := reader.Authenticate(t.Context(), key.RevealText(), nowhere()); err != nil {
			t.Fatalf("with the database closed: %v", err)
		}
	}
	_, err = reader.Authenticate(t.Context(), secret.NewAPIKey(false).Text().RevealText(), nowhere())
	if fault.KindOf(err) == fault.Unauthenticated || err == nil {
		t.Errorf("a kid that nobody could look for must not be called wrong: %v", err)
	}
}

func TestAnotherNodeHearsOfAKeyAtOnceAndOfARevocationSoon(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		master := masterFile(t)
		same := func(o *account.Options) { o.Master = master }
		a := open(t, dbtest.Open(t, db.Config{URL: url}), same)
		b := open(t, dbtest.Open(t, db.Config{URL: url, NoWorkers: true}), same)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		c, key := a.create(t, "acme")
		if !b.auth(t, key) {
			t.Error("a key made by another node is not known")
		}
		wg.Go(func() {
			if err := b.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		changed := b.Changed()
		if _, err := a.RevokeKey(ctx, operator(), "acme", c.Keys[0].Kid); err != nil {
			t.Fatal(err)
		}
		if a.auth(t, key) {
			t.Error("revoked, and still accepted where it was revoked")
		}
		<-changed
		if b.auth(t, key) {
			t.Error("revoked, and still accepted by the other node")
		}
		changed = b.Changed()
		if _, err := a.Configure(ctx, operator(), "acme", func(c *account.Config) error {
			c.DisplayName = "Renamed"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		<-changed
		if p, err := b.Profile(ctx, "acme"); err != nil || p.Config.DisplayName != "Renamed" {
			t.Errorf("got %+v, %v", p, err)
		}
	})
}

func TestARestoredBackupIsReadFromTheBeginning(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	_, lost := n.create(t, "later")
	_, kept := n.create(t, "kept")
	err := n.d.Write(t.Context(), func(tx *db.Tx) error { // as a backup from before "later" would look
		for _, sql := range []string{"DELETE FROM api_keys WHERE client_id = 'later'",
			"DELETE FROM clients WHERE client_id = 'later'",
			"UPDATE clients SET version = 1", "UPDATE account_version SET version = 1"} {
			if err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.auth(t, lost) {
		t.Error("a key that the database does not have is accepted")
	}
	if !n.auth(t, kept) {
		t.Error("a key that the database has is refused")
	}
}

func TestInventedKidsCostABoundedNumberOfReads(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	ghost := secret.NewAPIKey(false).Text()
	before := n.auth(t, ghost)
	if before {
		t.Fatal("accepted")
	}
	if err := n.d.Close(); err != nil {
		t.Fatal(err)
	}
	// From here on every read of the database is an error that is not Unauthenticated.
	if n.auth(t, ghost) {
		t.Error("accepted")
	}
	reads := 0
	for range 500 {
		_, err := n.Authenticate(t.Context(), secret.NewAPIKey(false).Text().RevealText(), nowhere())
		if fault.KindOf(err) != fault.Unauthenticated {
			reads++
		}
	}
	if reads == 0 || reads > 200 {
		t.Errorf("%d of 500 invented kids reached the database", reads)
	}
}

func TestADamagedRowStopsOnlyItsOwnClient(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := open(t, d)
	_, bad := n.create(t, "bad")
	c, good := n.create(t, "good")
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		return tx.Exec("UPDATE clients SET config = '{', version = version + 10 WHERE client_id = 'bad'")
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.RevokeKey(t.Context(), operator(), "good", c.Keys[0].Kid); err != nil {
		t.Fatal(err)
	}
	if n.auth(t, good) {
		t.Error("a revocation was not seen because of another client's damaged row")
	}
	if n.auth(t, bad) {
		t.Error("a client without a readable configuration is served")
	}
}

func TestFailuresAreLimitedPerAddressAndPerKidButARightKeyPasses(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t), func(o *account.Options) { o.Failures = account.FailureLimit{PerSecond: 1, Burst: 5} })
	_, key := n.create(t, "acme")
	_, other := n.create(t, "other")
	text, ctx := key.RevealText(), t.Context()
	wrong := text[:len(text)-1] + flip(text[len(text)-1])
	kindOf := func(text, ip string) fault.Kind {
		_, err := n.Authenticate(ctx, text, netip.MustParseAddr(ip))
		return fault.KindOf(err)
	}
	synctest.Test(t, func(t *testing.T) {
		for i := range 5 {
			if k := kindOf("junk", "192.0.2.1"); k != fault.Unauthenticated {
				t.Fatalf("failure %d: %v", i+1, k)
			}
		}
		for _, ip := range []string{"192.0.2.1", "::ffff:192.0.2.1"} {
			if k := kindOf("junk", ip); k != fault.Limited {
				t.Errorf("past the limit, from %s: %v", ip, k)
			}
		}
		if k := kindOf("junk", "192.0.2.2"); k != fault.Unauthenticated {
			t.Errorf("another address: %v", k)
		}
		if _, err := n.Authenticate(ctx, text, netip.MustParseAddr("192.0.2.1")); err != nil {
			t.Errorf("the right key from a limited address: %v", err)
		}
		time.Sleep(time.Second)
		if a, b := kindOf("junk", "192.0.2.1"),
			kindOf("junk", "192.0.2.1"); a != fault.Unauthenticated || b != fault.Limited {
			t.Errorf("a second later: %v, then %v", a, b)
		}
		for i := range 5 { // one kid, from everywhere
			if k := kindOf(wrong, fmt.Sprintf("198.51.100.%d", i)); k != fault.Unauthenticated {
				t.Fatalf("failure %d of the kid: %v", i+1, k)
			}
		}
		if k := kindOf(wrong, "198.51.100.200"); k != fault.Limited {
			t.Errorf("the kid past its limit: %v", k)
		}
		if k := kindOf(text, "198.51.100.200"); k != fault.Internal { // KindOf(nil)
			t.Errorf("the right key of a limited kid: %v", k)
		}
		if !n.auth(t, other) {
			t.Error("another client is refused")
		}
		for i := range 6 { // a network of one owner
			want := fault.Unauthenticated
			if i == 5 {
				want = fault.Limited
			}
			if k := kindOf("junk", fmt.Sprintf("2001:db8::%x", i+1)); k != want {
				t.Errorf("address %d of a /64: %v", i+1, k)
			}
		}
	})
}

func TestASpikeOfFailuresRaisesOneAlert(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t), func(o *account.Options) { o.Failures = account.FailureLimit{SpikePerMinute: 20} })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 30 {
		if _, err := n.Authenticate(ctx, "junk", nowhere()); fault.KindOf(err) != fault.Unauthenticated {
			t.Fatal(err)
		}
	}
	wg.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for line := range n.log.lines {
		if strings.Contains(line, "alert="+string(alert.AuthFailuresSpike)) {
			break
		}
	}
	// Two more rounds of Run: the window has its alert and gets no second one.
	other := open(t, n.d, func(o *account.Options) { o.Master = n.master })
	other.create(t, "acme")
	for _, font := range []account.Font{account.Serif, account.Sans} {
		changed := n.Changed()
		if _, err := other.Configure(ctx, operator(), "acme", func(c *account.Config) error {
			c.Font = font
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		<-changed
	}
	var open []alert.Alert
	err := n.d.Read(ctx, func(r db.Reader) (err error) {
		open, err = alert.List(r, alert.Filter{Open: true})
		return err
	})
	if err != nil || len(open) != 1 || open[0].Times != 1 || !strings.Contains(open[0].Message, "30 requests") {
		t.Errorf("got %+v, %v", open, err)
	}
	if got := metric(t, n.metrics, "tributary_auth_failures_total", "malformed"); got != 30 {
		t.Errorf("the metric counts %v", got)
	}
}

func metric(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func TestTheRateLimitOfAClientHoldsAtItAndPastIt(t *testing.T) {
	t.Parallel()
	n := open(t, dbtest.SQLite(t))
	_, key, err := n.CreateClient(t.Context(), operator(), account.NewClient{ID: "acme",
		Config: account.Config{DisplayName: "Acme", Rate: account.Rate{PerSecond: 2, Burst: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	caller := must[account.Caller](t)(n.Authenticate(t.Context(), key.RevealText(), nowhere()))
	now := time.Now()
	spend := func(c account.Caller, at time.Time) (n int) {
		for ; n < 100; n++ {
			if err := c.Allow(at, 1); err != nil {
				if fault.KindOf(err) != fault.Limited {
					t.Fatal(err)
				}
				return n
			}
		}
		return n
	}
	if got := spend(caller, now); got != 4 {
		t.Errorf("burst of %d", got)
	}
	if got := spend(caller, now.Add(time.Second)); got != 2 {
		t.Errorf("%d in the next second", got)
	}
	for size, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 64 << 10: 1, 64<<10 + 1: 2, 1 << 20: 16} {
		if got := account.Cost(size); got != want {
			t.Errorf("%d bytes cost %d, want %d", size, got, want)
		}
	}
	later := now.Add(3 * time.Second) // the bucket is full
	if err := caller.Allow(later, 3); err != nil {
		t.Errorf("three of four: %v", err)
	}
	if err := caller.Allow(later, 2); fault.KindOf(err) != fault.Limited {
		t.Errorf("five of four: %v", err)
	}
	caller.Spend(later, 1<<20) // a debt, but no more than the burst
	if got := spend(caller, later.Add(time.Second)); got != 0 {
		t.Errorf("%d while in debt", got)
	}
	now = later.Add(4 * time.Second)
	if err := caller.Allow(now, 1<<20); err != nil {
		t.Errorf("the largest request of all with a full bucket: %v", err)
	}
	now = now.Add(-time.Second) // the next look is a second later
	rename := func(change func(*account.Config)) account.Caller {
		if _, err := n.Configure(t.Context(), operator(), "acme", func(c *account.Config) error {
			change(c)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return must[account.Caller](t)(n.Authenticate(t.Context(), key.RevealText(), nowhere()))
	}
	if got := spend(rename(func(c *account.Config) { c.DisplayName = "Other" }), now.Add(time.Second)); got != 0 {
		t.Errorf("another change of configuration gave %d fresh requests", got)
	}
	if got := spend(rename(func(c *account.Config) {
		c.Rate = account.Rate{PerSecond: 5, Burst: 7}
	}), now.Add(time.Second)); got != 7 {
		t.Errorf("the new limit gives %d", got)
	}
	if got := spend(rename(func(c *account.Config) { c.Rate = account.Rate{} }), now); got != 100 {
		t.Errorf("without a limit: stopped after %d", got)
	}
}

func TestAuthenticationGoesOnWhileEverythingChanges(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	n := open(t, d)
	_, key := n.create(t, "steady")
	n.create(t, "busy")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c, err := n.Authenticate(context.Background(), key.RevealText(), nowhere()); err != nil ||
					c.ClientID != "steady" {
					t.Errorf("got %+v, %v", c, err)
					return
				}
			}
		})
	}
	for i := range 10 {
		_, err := n.Configure(t.Context(), operator(), "busy", func(c *account.Config) error {
			c.DisplayName = fmt.Sprint("busy ", i)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestARevocationReachesAnotherNodeWithinASecond(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLiteURL(t)
	master := masterFile(t)
	dbtest.SQLite(t) // what databases are copied from is made outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		same := func(o *account.Options) { o.Master = master }
		a := open(t, dbtest.Open(t, db.Config{URL: url}), same)
		b := open(t, dbtest.Open(t, db.Config{URL: url, NoWorkers: true}), same)
		c, key := a.create(t, "acme")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		if !b.auth(t, key) {
			t.Error("a key made by another node is not known")
		}
		changed, began := b.Changed(), time.Now()
		if _, err := a.RevokeKey(ctx, operator(), "acme", c.Keys[0].Kid); err != nil {
			t.Fatal(err)
		}
		<-changed
		if took := time.Since(began); took > time.Second {
			t.Errorf("the other node heard of it after %s", took)
		}
		if b.auth(t, key) {
			t.Error("revoked, and still accepted by the other node")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAuthenticationOfAWarmKeyTakesUnderFiveMicroseconds(t *testing.T) {
	needs.Long(t, "it measures time; that a warm key asks no database is seen where that is closed")
	n, text := warm(t)
	const rounds = 2000
	best := time.Hour
	for range 20 { // the machine is shared: the best of some batches is what the code costs
		began := time.Now()
		for range rounds {
			if _, err := n.Authenticate(t.Context(), text, nowhere()); err != nil {
				t.Fatal(err)
			}
		}
		best = min(best, time.Since(began)/rounds)
	}
	t.Logf("%s per request", best)
	if best > 5*time.Microsecond && !raceDetector {
		t.Errorf("%s per request", best)
	}
}

func warm(t testing.TB) (*node, string) {
	n := open(t, dbtest.SQLite(t))
	_, key := n.create(t, "acme")
	return n, key.RevealText()
}

func BenchmarkAuthenticate(b *testing.B) {
	n, text := warm(b)
	ctx, from := context.Background(), netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := n.Authenticate(ctx, text, from); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSigningKeys(b *testing.B) {
	n, _ := warm(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := n.SigningKeys(ctx, "acme"); err != nil {
			b.Fatal(err)
		}
	}
}

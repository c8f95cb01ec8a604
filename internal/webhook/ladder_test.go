package webhook_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/mutate"
	"tributary/internal/needs"
	"tributary/internal/webhook"
)

func none(int64) int64      { return 0 }
func middle(n int64) int64  { return n / 2 }
func highest(n int64) int64 { return n - 1 }

// nominal is written out, not computed: 5 s doubling, capped at 10 h.
var nominal = [webhook.RetriesMax]time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second,
	160 * time.Second, 320 * time.Second, 640 * time.Second, 1280 * time.Second, 2560 * time.Second,
	5120 * time.Second, 10240 * time.Second, 20480 * time.Second, 10 * time.Hour, 10 * time.Hour,
	10 * time.Hour, 10 * time.Hour, 10 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

func TestLadderInstantByInstant(t *testing.T) {
	t.Parallel()
	var l webhook.Ladder
	var low, mid, high time.Duration
	for i, want := range nominal {
		n := i + 1
		if got := l.Nominal(n); got != want {
			t.Errorf("retry %d: nominal %s, want %s", n, got, want)
		}
		for _, c := range []struct {
			random func(int64) int64
			want   time.Duration
			sum    *time.Duration
		}{{none, want * 4 / 5, &low}, {middle, want, &mid}, {highest, want * 6 / 5, &high}} {
			got, ok := l.Delay(n, 0, c.random)
			if !ok || got != c.want {
				t.Errorf("retry %d: %s %v, want %s", n, got, ok, c.want)
			}
			*c.sum += got
		}
	}
	for _, n := range []int{-1, 0, 21, 22} {
		if d, ok := l.Delay(n, time.Hour, middle); ok {
			t.Errorf("there is a retry %d after %s", n, d)
		}
	}
	if low.Round(time.Hour) != 65*time.Hour || mid.Round(time.Hour) != 81*time.Hour ||
		high.Round(time.Hour) != 98*time.Hour {
		t.Errorf("the ladder lasts %s, %s, %s", low, mid, high)
	}
}

func TestLadderClimbedInVirtualTimeMakesTwentyOneTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var l webhook.Ladder
		want := begin
		tries := 0
		for {
			tries++ // the try fails at once
			if !time.Now().Equal(want) {
				t.Fatalf("try %d at %s, want %s", tries, time.Since(begin), want.Sub(begin))
			}
			d, ok := l.Delay(tries, 0, middle)
			if !ok {
				break
			}
			want = want.Add(nominal[tries-1])
			<-time.After(d)
		}
		if tries != 21 || time.Since(begin) != 292955*time.Second {
			t.Errorf("%d tries in %s", tries, time.Since(begin))
		}
	})
}

func TestRetryAfterIsHonouredUpToTwiceTheDelayAndNeverShortens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n           int
		asked, want time.Duration
	}{
		{1, 0, 5 * time.Second}, {1, 4 * time.Second, 5 * time.Second}, {1, 7 * time.Second, 7 * time.Second},
		{1, 10 * time.Second, 10 * time.Second}, {1, 11 * time.Second, 10 * time.Second},
		{1, 24 * time.Hour, 10 * time.Second},
		{14, 15 * time.Hour, 15 * time.Hour}, {20, 20 * time.Hour, 20 * time.Hour}, {20, 21 * time.Hour, 20 * time.Hour},
	} {
		if got, _ := (webhook.Ladder{}).Delay(c.n, c.asked, middle); got != c.want {
			t.Errorf("retry %d, asked %s: %s, want %s", c.n, c.asked, got, c.want)
		}
	}
}

func TestEveryDelayStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := webhook.Ladder{Base: time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(20*time.Hour)).Draw(t,
			"base"))}
		n := rapid.IntRange(1, webhook.RetriesMax).Draw(t, "n")
		asked := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "asked"))
		source := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		nominal := l.Nominal(n)
		got, ok := l.Delay(n, asked, source.Int64N)
		if !ok || got < nominal-nominal/5 || got > max(nominal+nominal/5, min(asked, 2*nominal)) ||
			got < min(asked, 2*nominal) {
			t.Fatalf("delay %s of nominal %s, asked %s", got, nominal, asked)
		}
		if nominal > webhook.RetryDelayMax || n > 1 && nominal < l.Nominal(n-1) {
			t.Fatalf("nominal %s", nominal)
		}
	})
}

func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const never = -1
	for value, want := range map[string]time.Duration{
		"": never, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-1": never, "1.5": never, "soon": never,
		"+3":                   never,
		"99999999999999999999": 365 * 24 * time.Hour, "9223372036854775807": 365 * 24 * time.Hour,
		"31536001": 365 * 24 * time.Hour,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		"Sunday, 01-Mar-26 12:01:00 GMT":                  time.Minute,
		"Sun Mar  1 12:02:00 2026":                        2 * time.Minute,
		"Fri, 31 Dec 9999 23:59:59 GMT":                   365 * 24 * time.Hour,
	} {
		got, ok := webhook.ParseRetryAfter(value, now)
		if ok != (want != never) || ok && got != want {
			t.Errorf("%q: %s %v, want %s", value, got, ok, want)
		}
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	needs.NotRaced(f, "inputs one after another")
	for _, s := range []string{"", "120", "Fri, 31 Dec 9999 23:59:59 GMT", "1e9", "-5"} {
		f.Add(s)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, value string) {
		if d, ok := webhook.ParseRetryAfter(value, time.Unix(1_800_000_000, 0)); d < 0 || d > 365*24*time.Hour ||
			!ok && d != 0 {
			t.Fatalf("%q: %s %v", value, d, ok)
		}
	})
}

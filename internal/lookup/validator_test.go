package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/authority/vies"
	"tributary/internal/country/taxid"
	"tributary/internal/lookup"
)

func validate(t *testing.T, v *lookup.Validator, country, number string) lookup.Result {
	t.Helper()
	r, err := v.Validate(context.Background(), lookup.Entry{Country: country, Number: number})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryDocumentedMagicNumberGivesItsOutcome(t *testing.T) {
	for _, row := range magicTable(t) {
		for country, number := range row.numbers {
			t.Run(country+number+" "+row.outcome, func(t *testing.T) {
				t.Parallel()
				r := newRegister(t, vies.Config{SlowFor: time.Millisecond}, lookup.VIESConfig{Tries: 2})
				got := validate(t, lookup.NewValidator(r.vies, true), country, number)
				if got.Format != lookup.FormatValid {
					t.Fatalf("%+v", got)
				}
				want := lookup.Result{Format: lookup.FormatValid, Status: lookup.StatusUnknown, IsBusiness: lookup.BusinessUnknown,
					ErrorCode: row.outcome}
				switch row.outcome {
				case "found", "slow":
					want.Status, want.IsBusiness, want.ErrorCode = lookup.StatusRegistered, lookup.BusinessYes, ""
				case "not_found":
					want.Status, want.IsBusiness, want.ErrorCode = lookup.StatusNotRegistered, lookup.BusinessNo, ""
				case "garbage", "drop_answer":
					want.ErrorCode = lookup.CodeUnavailable
				}
				if (want.Status == lookup.StatusUnknown) != got.AnsweredAt.IsZero() {
					t.Errorf("answered at %v", got.AnsweredAt)
				}
				if hidden := country == "DE" || want.Status != lookup.StatusRegistered; hidden != (got.BusinessName == "") {
					t.Errorf("name %q", got.BusinessName)
				}
				got.AnsweredAt, got.BusinessName, got.BusinessAddress = time.Time{}, "", ""
				if got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestWhatTheTextDecidesIsNeverAsked(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	v := lookup.NewValidator(r.vies, false)
	for _, c := range []struct {
		country, number string
		want            lookup.Result
	}{
		{"DE", "136695977", lookup.Result{Format: lookup.FormatInvalid, Status: lookup.StatusInvalid,
			IsBusiness: lookup.BusinessNo, ErrorCode: "field_not_valid"}},
		{"DE", "", lookup.Result{Format: lookup.FormatInvalid, Status: lookup.StatusInvalid, IsBusiness: lookup.BusinessNo,
			ErrorCode: "field_not_valid"}},
		{"QQ", "136695976", lookup.Result{Format: lookup.FormatInvalid, Status: lookup.StatusInvalid,
			IsBusiness: lookup.BusinessUnknown, ErrorCode: "unsupported_country"}},
		{"", "136695976", lookup.Result{Format: lookup.FormatInvalid, Status: lookup.StatusInvalid,
			IsBusiness: lookup.BusinessUnknown, ErrorCode: "unsupported_country"}},
		{"XX", "100", lookup.Result{Format: lookup.FormatInvalid, Status: lookup.StatusInvalid,
			IsBusiness: lookup.BusinessUnknown, ErrorCode: "unsupported_country"}},
		{"GB", "366303068", lookup.Result{Format: lookup.FormatValid, Status: lookup.StatusNotChecked,
			IsBusiness: lookup.BusinessUnknown}},
		{"MX", "EKU9003173C9", lookup.Result{Format: lookup.FormatValid, Status: lookup.StatusNotChecked,
			IsBusiness: lookup.BusinessUnknown}},
		{"JP", "1234567890123", lookup.Result{Format: lookup.FormatValid, Status: lookup.StatusNotChecked,
			IsBusiness: lookup.BusinessUnknown}},
	} {
		if got := validate(t, v, c.country, c.number); got != c.want {
			t.Errorf("%s %q: %+v", c.country, c.number, got)
		}
	}
	if n := r.asked().Count; n != 0 {
		t.Errorf("asked %d times", n)
	}
	if got := validate(t, lookup.NewValidator(nil, false), "DE", germany); got.Status != lookup.StatusNotChecked {
		t.Errorf("without a register: %+v", got)
	}
}

func TestEverySpellingIsAskedAsTheRegisterSpellsIt(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	v := lookup.NewValidator(r.vies, false)
	for _, c := range []struct{ country, number, asked string }{
		{"gr", "GR 094.012.834", "EL094012834"}, {"EL", "EL094012835", ""}, {"BE", "444.503.092", "BE0444503092"},
		{"HU", "12892312-2-42", "HU12892312"}, {"XI", "GB366303068", "XI366303068"}, {"IE", "3+12345B", "IE3+12345B"},
	} {
		before := r.asked().Count
		got := validate(t, v, c.country, c.number)
		a := r.asked()
		if c.asked == "" {
			if a.Count != before || got.Status != lookup.StatusInvalid {
				t.Errorf("%s: %+v", c.number, got)
			}
			continue
		}
		last := a.Requests[len(a.Requests)-1]
		if last.CountryCode+last.VATNumber != c.asked || got.Status != lookup.StatusRegistered {
			t.Errorf("%s %s: asked %+v, got %+v", c.country, c.number, last, got)
		}
	}
}

// manyEntries makes n distinct valid numbers of several member states. The
// check digits are computed here: to search for them would cost more than the
// tests that want them.
func manyEntries(tb testing.TB, n int) []lookup.Entry {
	tb.Helper()
	tens := func(sum int) int { return (10 - sum%10) % 10 }
	forms := []struct {
		country, form string
		weights       []int
		check         func(sum int) int // above 9: there is no such number
	}{
		{"EE", "1%07d", []int{3, 7, 1, 3, 7, 1, 3, 7}, tens},
		{"FI", "1%06d", []int{7, 9, 10, 5, 8, 4, 2}, func(sum int) int { return (11 - sum%11) % 11 }},
		{"PL", "526%06d", []int{6, 5, 7, 2, 3, 4, 5, 6, 7}, func(sum int) int { return sum % 11 }},
		{"HU", "1%06d", []int{9, 7, 3, 1, 9, 7, 3}, tens},
	}
	entries := make([]lookup.Entry, 0, n)
	for i := 0; len(entries) < n; i++ {
		f := forms[i%len(forms)]
		number, sum := fmt.Sprintf(f.form, i), 0
		for at, weight := range f.weights {
			sum += weight * int(number[at]-'0')
		}
		if check := f.check(sum); check < 10 {
			entries = append(entries, lookup.Entry{Country: f.country, Number: number + string(rune('0'+check))})
		}
	}
	if last := entries[n-1]; !taxid.Check(last.Country, last.Number).Valid {
		tb.Fatalf("%+v is not valid", last)
	}
	return entries
}

func TestBatchOfTenThousandThroughTheRegister(t *testing.T) {
	distinct, twice := 9_000/manyFactor(), 500/manyFactor()
	entries := manyEntries(t, distinct)
	entries = append(entries, entries[:twice]...) // duplicates
	for i := range twice {
		entries = append(entries, lookup.Entry{Country: "DE", Number: fmt.Sprint(i)})
	}
	r := newRegister(t, vies.Config{Latency: 500 * time.Microsecond}, lookup.VIESConfig{CacheEntries: 100})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := before.HeapAlloc
	counts := map[lookup.Status]int{}
	answered := make([]int, len(entries))
	err := lookup.NewValidator(r.vies, false).ValidateAll(context.Background(), entries,
		func(i int, got lookup.Result) error {
			answered[i]++
			counts[got.Status]++
			if i%500 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&after)
				peak = max(peak, after.HeapAlloc)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range answered {
		if n != 1 {
			t.Fatalf("entry %d was answered %d times", i, n)
		}
	}
	if counts[lookup.StatusRegistered] != distinct+twice || counts[lookup.StatusInvalid] != twice {
		t.Errorf("%v", counts)
	}
	a := r.asked()
	if a.Count != distinct || a.Outcomes["found"] != distinct || a.Peak.Global > 16 || a.Peak.States["PL"] > 4 ||
		a.Peak.States["PL"] < 2 {
		t.Errorf("asked %d times: %v", a.Count, a.Outcomes)
	}
	grown := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d entries, heap grew by at most %d KiB, peak %d calls", len(entries), grown>>10, a.Peak.Global)
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
}

func TestAnOutageDoesNotHoldUpABatch(t *testing.T) {
	t.Parallel()
	entries := manyEntries(t, 600)
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{Tries: 2})
	r.script(`{"outages":["PL"]}`)
	unknown := 0
	err := lookup.NewValidator(r.vies, false).ValidateAll(context.Background(), entries,
		func(i int, got lookup.Result) error {
			switch {
			case entries[i].Country == "PL":
				if got.Status != lookup.StatusUnknown || got.IsBusiness != lookup.BusinessUnknown ||
					got.ErrorCode != "MS_UNAVAILABLE" {
					t.Errorf("%+v", got)
				}
				unknown++
			case got.Status != lookup.StatusRegistered:
				t.Errorf("%+v: %+v", entries[i], got)
			}
			return nil
		})
	if err != nil || unknown < 90 {
		t.Errorf("%d unknown, %v", unknown, err)
	}
	// Four places, two tries each: then the state is known to be out.
	if n := r.asked().Outcomes["MS_UNAVAILABLE"]; n > 8 {
		t.Errorf("a state that is out was asked %d times", n)
	}
}

func TestCancelStopsABatch(t *testing.T) {
	t.Parallel()
	entries := manyEntries(t, 2_000)
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the client canceled")
	handed, after := 0, 0
	err := lookup.NewValidator(r.vies, false).ValidateAll(ctx, entries, func(int, lookup.Result) error {
		if ctx.Err() != nil {
			after++
		}
		if handed++; handed == 100 {
			cancel(why)
		}
		return nil
	})
	if !errors.Is(err, why) || handed != 100 || after != 0 {
		t.Errorf("%v after %d results, %d too many", err, handed, after)
	}
	if n := r.asked().Count; n > 200 {
		t.Errorf("%d questions for 100 results", n)
	}
}

func TestAnErrorOfTheReceiverStopsABatch(t *testing.T) {
	t.Parallel()
	full := errors.New("no room")
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	v := lookup.NewValidator(r.vies, false)
	for name, entries := range map[string][]lookup.Entry{
		"asked":     manyEntries(t, 300),
		"local":     {{Country: "DE", Number: "1"}, {Country: "DE", Number: "2"}},
		"last one":  {{Country: "DE", Number: germany}},
		"duplicate": {{Country: "DE", Number: germany}, {Country: "DE", Number: "DE " + germany}},
	} {
		handed := 0
		err := v.ValidateAll(context.Background(), entries, func(int, lookup.Result) error {
			handed++
			return full
		})
		if !errors.Is(err, full) || handed != 1 {
			t.Errorf("%s: %v after %d results", name, err, handed)
		}
	}
}

func TestACancelAfterTheLastResultCostsNothing(t *testing.T) {
	t.Parallel()
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	handed := 0
	err := lookup.NewValidator(r.vies, false).ValidateAll(ctx, []lookup.Entry{{Country: "DE", Number: germany}},
		func(int, lookup.Result) error { handed++; cancel(); return nil })
	if err != nil || handed != 1 {
		t.Errorf("%v after %d results", err, handed)
	}
}

// However entries repeat and whatever they say, each is answered once, as it
// would be alone, and no number is asked twice.
func TestABatchAnswersLikeSingles(t *testing.T) {
	t.Parallel()
	alone := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	single := lookup.NewValidator(alone.vies, false)
	r := newRegister(t, vies.Config{}, lookup.VIESConfig{})
	pool := append(manyEntries(t, 12), lookup.Entry{Country: "DE", Number: germany},
		lookup.Entry{Country: "DE", Number: "DE 136.695.976"},
		lookup.Entry{Country: "IT", Number: "99200000000"}, lookup.Entry{Country: "IT", Number: "IT-99400000008"},
		lookup.Entry{Country: "GB", Number: "1"},
		lookup.Entry{Country: "QQ", Number: "1"}, lookup.Entry{Country: "JP", Number: "1234"})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(rapid.SampledFrom(pool), 0, 40).Draw(t, "entries")
		vies, err := lookup.NewVIES(lookup.VIESConfig{BaseURL: r.server.URL + vies.Path})
		if err != nil {
			t.Fatal(err)
		}
		defer vies.Close()
		answered := make([]int, len(entries))
		before := r.asked().Count
		err = lookup.NewValidator(vies, false).ValidateAll(context.Background(), entries,
			func(i int, got lookup.Result) error {
				answered[i]++
				want, err := single.Validate(context.Background(), entries[i])
				got.AnsweredAt, want.AnsweredAt = time.Time{}, time.Time{}
				if err != nil || got != want {
					t.Errorf("%+v: %+v, alone %+v %v", entries[i], got, want, err)
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		distinct := map[string]bool{}
		for i := range entries {
			if answered[i] != 1 {
				t.Fatalf("entry %d was answered %d times", i, answered[i])
			}
			if state, number, ok := taxid.Check(entries[i].Country, entries[i].Number).VIES(); ok {
				distinct[state+number] = true
			}
		}
		if n := r.asked().Count - before; n != len(distinct) {
			t.Fatalf("%d questions for %d numbers", n, len(distinct))
		}
	})
}

func BenchmarkLocal10000(b *testing.B) {
	entries := manyEntries(b, 10_000)
	v := lookup.NewValidator(nil, false)
	for b.Loop() {
		if err := v.ValidateAll(context.Background(), entries, func(int, lookup.Result) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

package console_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tributary/internal/console"
	"tributary/internal/mutate"
)

func TestDurationsReadLikeWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "under 1 ms"}, {0, "under 1 ms"}, {999 * time.Microsecond, "under 1 ms"},
		{340 * time.Millisecond, "340 ms"}, {time.Second, "1 s"},
		{4200 * time.Millisecond, "4.2 s"}, {59 * time.Second, "59 s"}, {time.Minute, "1 min"},
		{200 * time.Second, "3 min 20 s"}, {time.Hour, "1 h"},
		{26 * time.Hour, "1 d 2 h"}, {48 * time.Hour, "2 d"},
	} {
		if got := console.Span(c.d); got != c.want {
			t.Errorf("%s: %q, want %q", c.d, got, c.want)
		}
	}
}

func TestMoneyHasTheDecimalsOfItsCurrency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{22710, "EUR", "227.10 EUR"}, {-5, "eur", "−0.05 EUR"}, {1234567, "JPY", "1\u202f234\u202f567 JPY"},
		{1234567, "KWD", "1\u202f234.567 KWD"}, {12, "???", "12 ???"}, {0, "", "0"},
	} {
		if got := console.Money(c.minor, c.currency); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

func TestAPrintedAmountFindsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minor := rapid.Int64Range(-1<<53, 1<<53).Draw(t, "minor")
		currency := rapid.SampledFrom([]string{"EUR", "JPY", "KWD"}).Draw(t, "currency")
		text := strings.TrimSuffix(console.Money(minor, currency), " "+currency)
		got, err := console.MinorUnits(text)
		if err != nil || got != max(minor, -minor) {
			t.Fatalf("%q: %d %v, want %d", text, got, err, minor)
		}
	})
}

func TestLongIDsKeepBothEnds(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"": "", "acme": "acme", "0123456789abcdef": "0123456789abcdef",
		"01a1ddda-ca1f-7ce3-9993-6ca84ce7c56a": "01a1ddda…e7c56a", "ßßßßßßßßßßßßßßßßß": "ßßßßßßßß…ßßßßßß"} {
		if got := console.Short(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestDatesOfSearchesAreRead(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)
	for _, text := range []string{"2026-11-15T08:30", "2026-11-15T08:30:00", "2026-11-15 08:30:00",
		"2026-11-15T09:30:00+01:00"} {
		if got, err := console.ReadMoment(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s %v", text, got, err)
		}
	}
	if got, err := console.ReadMoment(""); err != nil || !got.IsZero() {
		t.Errorf("nothing: %s %v", got, err)
	}
	if _, err := console.ReadMoment("yesterday"); err == nil {
		t.Error("yesterday was read")
	}
}

func TestNothingLeadsAwayFromTheConsole(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{
		"", "/", "https://evil.example", "//evil.example", "/\\evil.example", "/console", "/console/\\evil",
		"/console\\..\\", "javascript:alert(1)",
		"/console/a\r\nSet-Cookie: x=y", "/console/sign-out", "/console/sign-in?next=x", "/console/live/transactions",
		"/consolex/", "/metrics",
	} {
		if got := console.Local(evil); got != "/console/" {
			t.Errorf("%q leads to %q", evil, got)
		}
	}
	if got := console.Local("/console/transactions?q=1"); got != "/console/transactions?q=1" {
		t.Errorf("a page of ours became %q", got)
	}
}

func TestBodiesAreShownAsTheyCanBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"", ""}, {"  \n", ""}, {`{"a":[1,2]}`, "{\n  \"a\": [\n    1,\n    2\n  ]\n}"}, {`{"a":`, `{"a":`},
		{"<x/>", "<x/>"}, {"\xff\xfe\x00", "3 bytes that are not text"},
	} {
		if got := console.Readable([]byte(c.body)); got != c.want {
			t.Errorf("%q: %q, want %q", c.body, got, c.want)
		}
	}
}

func TestPlotsAreWellFormedAndSayTheirSums(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40)
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [3]int64 {
			return [3]int64{n.Draw(t, "accepted"), n.Draw(t, "succeeded"), n.Draw(t, "failed")}
		}), 0, 100).Draw(t, "rows")
		svg := string(console.Plot(`A "title" & <more>`, rows...))
		bars, failed := 0, 0
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, svg)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
				bars++
				if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
					t.Fatal(svg)
				}
			}
		}
		for _, r := range rows {
			for _, v := range r[1:] {
				if v > 0 {
					failed++
				}
			}
		}
		if bars != failed {
			t.Fatalf("%d bars for %d counts that are not zero", bars, failed)
		}
		if strings.Contains(svg, "style=") {
			t.Fatal("an inline style would be refused by our own policy")
		}
	})
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int64{0: 1, 1: 1, 2: 2, 3: 5, 7: 10, 11: 20, 51: 100,
		4_000_000_000_000_000: 5_000_000_000_000_000} {
		if got := console.NiceMax(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

func FuzzWhatAnAddressMaySay(f *testing.F) {
	for _, text := range []string{"227.10", "1 227,10", "-", "2026-11-15", "/console/x", "99999999999999999999", "\xff"} {
		f.Add(text)
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := console.MinorUnits(text); err == nil && n < 0 {
			t.Errorf("%q is %d", text, n)
		}
		if at, err := console.ReadMoment(text); err == nil && text != "" && at.Location() != time.UTC {
			t.Errorf("%q is not in UTC", text)
		}
		if got := console.Local(text); !strings.HasPrefix(got, "/console/") || strings.ContainsAny(got, "\\\r\n") {
			t.Errorf("%q leads to %q", text, got)
		}
		console.Readable([]byte(text))
	})
}

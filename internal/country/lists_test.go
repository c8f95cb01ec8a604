package country_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tributary/internal/country"
)

// shelf is an authority that lists by time, so many entries at most.
type shelf struct {
	all   []country.Listed
	shown int
	lists int
	lost  string
	got   int

	others string
}

func (s *shelf) list(_ context.Context, from, to time.Time, most int) (list []country.Listed, more bool, err error) {
	s.lists++
	for _, l := range s.all {
		if !l.At.Before(from) && !l.At.After(to) {
			list = append(list, l)
		}
	}
	if most > 0 && len(list) > min(most, s.shown) {
		return list[:min(most, s.shown)], true, nil
	}
	return list, false, nil
}

func (s *shelf) get(_ context.Context, l country.Listed) (country.Document, error) {
	s.got++
	switch l.Name {
	case s.lost:
		return country.Document{}, errors.New("it is not there")
	case s.others:
		return country.Document{}, country.ErrAnothers
	}
	return country.Document{Format: "XML", Bytes: []byte("<" + l.Name + "/>")}, nil
}

func (s *shelf) walk(t *testing.T, now time.Time, limit int) (seen map[string]int, cursor string, err error) {
	t.Helper()
	seen = map[string]int{}
	lists := country.Lists{Span: 35 * 24 * time.Hour, Least: time.Second, Again: time.Minute, List: s.list, Get: s.get}
	for looks, more := 0, true; more; looks++ {
		got, err := lists.Look(t.Context(), country.Inquiry{Cursor: cursor, Limit: limit, From: begin}, now)
		if err != nil {
			return seen, cursor, err
		}
		if len(got.Documents) > limit || got.More && got.Cursor == cursor || looks > 1000 {
			t.Fatalf("look %d: %d documents, from %q to %q", looks, len(got.Documents), cursor, got.Cursor)
		}
		for _, d := range got.Documents {
			seen[d.AuthorityID]++
		}
		cursor, more = got.Cursor, got.More
	}
	return seen, cursor, nil
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Whatever the crowd, each document comes once, and the mark ends a little before now.
func TestListsBringEveryDocumentOnce(t *testing.T) {
	t.Parallel()
	now := begin.AddDate(0, 3, 0)
	for name, at := range map[string]func(n int) time.Time{
		"spread over months":   func(n int) time.Time { return begin.Add(time.Duration(n) * 13 * time.Hour) },
		"in one hour":          func(n int) time.Time { return begin.AddDate(0, 1, 0).Add(time.Duration(n) * 20 * time.Second) },
		"in one second":        func(int) time.Time { return begin.AddDate(0, 1, 0) },
		"in one second, parts": func(n int) time.Time { return begin.AddDate(0, 1, 0).Add(time.Duration(n) * time.Millisecond) },
		"on the last day":      func(n int) time.Time { return now.Add(-time.Duration(n+1) * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{shown: 20}
			for n := range 150 {
				s.all = append(s.all, country.Listed{At: at(n), Name: fmt.Sprintf("d%03d", n)})
			}
			seen, cursor, err := s.walk(t, now, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(seen) != len(s.all) {
				t.Errorf("%d of %d came", len(seen), len(s.all))
			}
			for id, times := range seen {
				if times != 1 {
					t.Errorf("%s came %d times", id, times)
				}
			}
			if want := (country.Mark{At: now.Add(-time.Minute)}).String(); cursor != want {
				t.Errorf("the mark is %q, want %q", cursor, want)
			}
		})
	}
}

// What is stored is not got again: the looks of an overlap cost the authority a list and nothing else.
func TestListsGetWhatIsNotStored(t *testing.T) {
	t.Parallel()
	s, now := &shelf{shown: 20}, begin.AddDate(0, 0, 1)
	for n := range 50 {
		s.all = append(s.all, country.Listed{At: now.Add(-time.Duration(n+1) * time.Second), Name: fmt.Sprintf("d%02d", n)})
	}
	here := map[string]bool{}
	in := country.Inquiry{Limit: 10, From: begin, Stored: func(_ context.Context, ids []string) (map[string]bool, error) {
		stored := map[string]bool{}
		for _, id := range ids {
			stored[id] = here[id]
		}
		return stored, nil
	}}
	lists := country.Lists{Span: 35 * 24 * time.Hour, Least: time.Second, Again: time.Hour, List: s.list, Get: s.get}
	walk := func() {
		for more := true; more; {
			got, err := lists.Look(t.Context(), in, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range got.Documents {
				here[d.AuthorityID] = true
			}
			in.Cursor, more = got.Cursor, got.More
		}
	}
	walk()
	s.all = append(s.all, country.Listed{At: now.Add(-30 * time.Minute), Name: "late"})
	walk()
	if len(here) != 51 || s.got != 51 {
		t.Errorf("%d documents came, %d were got; want 51 of each", len(here), s.got)
	}
	in.Stored = func(context.Context, []string) (map[string]bool, error) {
		return nil, errors.New("the database is away")
	}
	in.Cursor = country.Mark{At: now.Add(-5 * time.Second)}.String()
	if got, err := lists.Look(t.Context(), in, now); err == nil || got.Cursor != "" {
		t.Errorf("a look that cannot know what is stored ended with %q, %v", got.Cursor, err)
	}
}

// One that is listed and cannot be got is not gone over.
func TestListsNeverGoOverWhatCannotBeGot(t *testing.T) {
	t.Parallel()
	s := &shelf{shown: 20, lost: "d3"}
	for n := range 6 {
		s.all = append(s.all, country.Listed{At: begin.Add(time.Duration(n) * time.Hour), Name: fmt.Sprint("d", n)})
	}
	now := begin.AddDate(0, 0, 2)
	seen, cursor, err := s.walk(t, now, 2)
	if err == nil || !strings.Contains(err.Error(), "d3") || len(seen) != 3 || seen["d4"] > 0 {
		t.Fatalf("%v %v", seen, err)
	}
	s.lost = ""
	lists := country.Lists{Span: 35 * 24 * time.Hour, Least: time.Second, List: s.list, Get: s.get}
	got, err := lists.Look(t.Context(), country.Inquiry{Cursor: cursor, Limit: 2, From: begin}, now)
	if err != nil || len(got.Documents) == 0 || got.Documents[0].AuthorityID != "d3" {
		t.Errorf("%+v %v", got, err)
	}
}

// What is another company's is gone over, also where nothing else is there.
func TestListsGoOverWhatIsAnothers(t *testing.T) {
	t.Parallel()
	s := &shelf{shown: 20, others: "d1"}
	for n := range 3 {
		s.all = append(s.all, country.Listed{At: begin.Add(time.Duration(n) * time.Hour), Name: fmt.Sprint("d", n)})
	}
	for limit := 1; limit <= 3; limit++ {
		if seen, _, err := s.walk(t, begin.AddDate(0, 0, 2), limit); err != nil || len(seen) != 2 || seen["d1"] > 0 {
			t.Errorf("%d at once: %v %v", limit, seen, err)
		}
	}
}

func TestMarksAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, m := range []country.Mark{{}, {At: begin}, {At: begin.Add(time.Microsecond), After: "a|b"}} {
		got, err := country.ReadMark(m.String())
		if err != nil || !got.At.Equal(m.At) || got.After != m.After {
			t.Errorf("%+v is %q, read as %+v %v", m, m.String(), got, err)
		}
	}
	if _, err := country.ReadMark("page 2"); err == nil {
		t.Error("a cursor without a time is read")
	}
	in := country.Inquiry{Cursor: country.Mark{At: begin, After: "x"}.String(), From: begin.AddDate(0, 0, 1)}
	if m, err := in.Mark(); err != nil || !m.At.Equal(in.From) || m.After != "" {
		t.Errorf("a day behind the mark: %+v %v", m, err)
	}
}

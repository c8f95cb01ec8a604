package fr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
)

const (
	lookEvery = 2 * time.Second // at a double; a real platform is asked every minute
	lookFirst = 30 * 24 * time.Hour
)

// fetch asks a platform for the statuses of a company's invoices and reports. No type
// of flow is published for those of reports, so every message of a life cycle is read.
func fetch() *country.Fetch {
	return &country.Fetch{Every: lookEvery, Timeout: 40 * time.Second, Look: look}
}

func look(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking for statuses: the channel is a %T", in.Channel)
	}
	got, err := ch.look(ctx, in)
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for statuses: %w", err)
	}
	return got, nil
}

// place is where a look has ended: behind an instant, and behind some flows of
// that very instant. A platform answers what is later than an instant, so the look
// begins a millisecond before it and leaves out what it had.
type place struct {
	at   time.Time
	seen []string
}

func (p place) String() string {
	if p.at.IsZero() {
		return ""
	}
	return p.at.UTC().Format(time.RFC3339Nano) + "|" + strings.Join(p.seen, ",")
}

func readPlace(cursor string) (p place, err error) {
	if cursor == "" {
		return p, nil
	}
	at, seen, _ := strings.Cut(cursor, "|")
	if p.at, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return p, fmt.Errorf("the cursor %q: %w", clip([]byte(cursor)), err)
	}
	p.seen = strings.Split(seen, ",")
	return p, nil
}

// behind moves the place behind a flow.
func (p place) behind(f *flow) place {
	if f.Updated.After(p.at) {
		return place{f.Updated, []string{f.ID}}
	}
	return place{p.at, append(p.seen[:len(p.seen):len(p.seen)], f.ID)}
}

// look reads what lies behind the cursor, oldest first. It decides nothing: a status
// names an invoice by its number, and another may have that; whose it is only a poll
// knows, which compares it with the flow. Where the platform has one
// client for all companies it shows those of others, too: they are left out.
func (ch *channel) look(ctx context.Context, in country.Inquiry) (got country.Fetched, err error) {
	at, err := readPlace(in.Cursor)
	if err != nil {
		return got, err
	}
	after := at.at.Add(-time.Millisecond)
	if at.at.IsZero() {
		after = ch.now().Add(-lookFirst)
	}
	own := company(&in.Supplier)
	page, err := ch.search(ctx, own.siren, condition{After: &after, Direction: []string{directionIn}}, in.Credentials)
	if err != nil {
		return got, err
	}
	slices.SortStableFunc(page, func(a, b flow) int { return a.Updated.Compare(b.Updated) })
	got.More = len(page) >= pageMost
	for i := range page {
		one := &page[i]
		if one.Updated.Before(at.at) || one.Updated.Equal(at.at) && slices.Contains(at.seen, one.ID) {
			continue
		}
		if len(got.Messages) >= in.Limit {
			got.More = true
			break
		}
		if one.Syntax != syntaxStatus { // an invoice that somebody sent
			at = at.behind(one)
			continue
		}
		s, err := ch.status(ctx, own.siren, one.ID, in.Credentials)
		if err != nil {
			return country.Fetched{}, err
		}
		at = at.behind(one)
		if s == nil {
			continue
		}
		if news := s.news(); s.siren == own.siren && len(news) > 0 {
			got.Messages = append(got.Messages, country.Message{Key: news[0].Key, Handle: s.handle, Receipt: country.Receipt{News: news}, Raw: s.text})
		}
	}
	if before, _ := readPlace(in.Cursor); got.More && len(page) > 0 && at.String() == before.String() {
		at = place{at: at.at.Add(time.Millisecond)} // a page full of what is known: more than that there is not of an instant
	}
	got.Cursor = at.String()
	if !ch.at.Simulated {
		got.Wait = time.Minute
	}
	if got.More {
		got.Wait = 0
	}
	return got, nil
}

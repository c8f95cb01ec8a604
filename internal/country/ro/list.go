package ro

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/transaction"
)

// listedFor is how far back ANAF's list reaches.
const listedFor = 59 * 24 * time.Hour

// listingsMax are the companies whose lists are kept: up to 20,000 lines each.
const listingsMax = 8

// A list has pages of 500 lines, and a company has 1,500 of them a day. Uploads whose
// answers are lost one after another wait for a reading that serves all of them: at ANAF
// a node reads no more pages than a day grants, however many are lost.
const (
	pageLines     = 500
	pagePauseReal = time.Minute
	pagePause     = 2 * time.Second // at a double
)

// listings are the lists that were read last, one of a company and filter.
type listings struct {
	pause time.Duration // after each page of a list
	mu    sync.Mutex
	known country.Memory[string, *listing]
}

func newListings(real bool) *listings {
	l := &listings{pause: pagePause, known: country.Memory[string, *listing]{Max: listingsMax}}
	if real {
		l.pause = pagePauseReal
	}
	return l
}

// listing is one of them. Whoever holds its turn reads it and changes it.
type listing struct {
	turn      chan struct{}
	from      time.Time // it tells of what was uploaded since
	readAt    time.Time // when reading it began
	wanted    time.Time // since when the next reading tells, for those who wait for it; zero: nobody does
	readUntil time.Time // when reading it ended
	documents []message
}

func (l *listing) pages() int { return 1 + len(l.documents)/pageLines }

func (l *listings) of(key string) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.known.Get(key)
	if !ok {
		one = &listing{turn: make(chan struct{}, 1)}
		l.known.Put(key, one)
	}
	return one
}

// sentSince lists what ANAF has of a company since a filing was prepared, from the last
// reading where that tells of it.
func (ch *channel) sentSince(ctx context.Context, f country.Filing, filter string, c country.Credentials) ([]message, error) {
	l := ch.lists.of(f.Supplier + "/" + filter)
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another's list of %s: %w", f.Supplier, context.Cause(ctx))
	}
	defer func() { <-l.turn }()
	from := f.PreparedAt.Add(-clocksApart).Truncate(time.Minute)
	if tells := !f.LostAt.IsZero() && !l.readAt.Before(f.LostAt) && !l.from.After(from); tells {
		return l.documents, nil
	}
	if l.wanted.IsZero() || from.Before(l.wanted) {
		l.wanted = from
	}
	begun := time.Now()
	if next := l.readUntil.Add(time.Duration(l.pages()) * ch.lists.pause); begun.Before(next) && !f.LostAt.IsZero() {
		return nil, &country.Exhausted{Quota: quotaLists, Subject: f.Supplier, Until: next, Alone: true}
	}
	all, err := ch.sent(ctx, f.Supplier, filter, l.wanted, c)
	if err != nil {
		return nil, err
	}
	l.from, l.readAt, l.readUntil, l.documents, l.wanted = l.wanted, begun, time.Now(), all, time.Time{}
	return all, nil
}

// archived is a document of an archive with its day: neither ever changes.
type archived struct {
	day   en16931.Date
	entry country.Entry
}

// Registered lists what ANAF holds of a company's documents of a day. The list
// says nothing of them but their archives, which are fetched, each once.
func (ch *channel) Registered(ctx context.Context, s country.Supplier, day country.Day, c country.Credentials) ([]country.Entry, error) {
	begin, err := time.Parse(time.DateOnly, day.String())
	if err != nil {
		return nil, fmt.Errorf("listing the documents of %s: %w", day, err)
	}
	if begin.Before(ch.now().Add(-listedFor)) {
		return nil, fmt.Errorf("listing the documents of %s: %w: ANAF's reaches back 60 days", day, country.ErrNoList)
	}
	// A document may be uploaded before its day begins elsewhere, and any time after.
	sent, err := ch.sent(ctx, fiscal(s.TaxNumber), filterSent, begin.AddDate(0, 0, -1), c)
	if err != nil {
		return nil, fmt.Errorf("listing the documents of %s: %w", day, err)
	}
	var all []country.Entry
	for _, m := range sent {
		if !digits(m.Index) {
			continue
		}
		one, known := ch.read.Get(m.Index)
		if !known {
			a, err := ch.fetch(ctx, m.ID, m.Index, c)
			if err != nil {
				return nil, fmt.Errorf("listing the documents of %s: %w", day, err)
			}
			if one, err = readEntry(a, m.ID); err != nil {
				return nil, fmt.Errorf("listing the documents of %s: %w", day, err)
			}
			ch.read.Put(m.Index, one)
		}
		if string(one.day) == day.String() {
			all = append(all, one.entry)
		}
	}
	return all, nil
}

// readEntry reads what an archive says of its document.
func readEntry(a archive, id string) (archived, error) {
	d, _, err := en16931.Read(a.content)
	if err != nil {
		return archived{}, fmt.Errorf("the archive of %s: %w", a.index, err)
	}
	e := country.Entry{Number: d.Number, AuthorityID1: a.index, AuthorityID2: id, SHA256: country.SHA256(a.content),
		Kind: transaction.Invoice, Currency: d.Currency, Customer: d.Buyer.VATID,
		Gross: cents(d.Totals.Gross), Net: cents(d.Totals.Net), Tax: cents(d.Totals.Tax), Lines: lines(d)}
	if len(d.Preceding) > 0 {
		e.Kind, e.Reference = transaction.Adjustment, d.Preceding[0].Number
	}
	if d.IsCreditNote() {
		e.Kind = transaction.Credit
	}
	if d.Totals.Rounding.Given() { // the sums are not the sale's own
		e.Gross, e.Net, e.Tax, e.Lines = nil, nil, nil, nil
	}
	return archived{d.IssueDate, e}, nil
}

// lines are what each line amounts to; nil: one is not in cents.
func lines(d *en16931.Invoice) (all []int64) {
	for _, l := range d.Lines {
		amount := cents(l.Net)
		if amount == nil {
			return nil
		}
		all = append(all, *amount)
	}
	return all
}

// cents are minor units of an amount with two decimals; nil: it has others.
func cents(d en16931.Decimal) *int64 {
	whole, rest, _ := strings.Cut(d.String(), ".")
	if len(rest) != 2 {
		return nil
	}
	n, err := strconv.ParseInt(whole+rest, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

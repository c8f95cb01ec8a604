package fr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/internal/country"
	"tributary/internal/country/en16931"
	"tributary/internal/country/facturx"
	"tributary/internal/incoming"
)

// What others send to a company are flows of its platform, each with the file as the
// seller made it. Flows are searched by when they changed; platforms do not all answer in
// that order, so only a page that is not full is known to be the whole.
const (
	receiveSpan  = 30 * 24 * time.Hour
	receiveLeast = time.Second
	receiveAgain = time.Hour        // how late a platform may show what came
	receiveTwice = time.Minute      // the same of a double
	receivePause = 15 * time.Minute // at a platform itself
	quotaFlows   = "flows"
)

// receive asks for what others have sent to a company.
func receive(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking for received invoices: the channel is a %T", in.Channel)
	}
	b := buying{ch, company(&in.Supplier).siren, in.Credentials}
	lists := country.Lists{Span: receiveSpan, Least: receiveLeast, Again: receiveTwice, List: b.list, Get: b.get}
	if ch.at.Real() {
		lists.Again, lists.Pause = receiveAgain, receivePause
	}
	got, err := lists.Look(ctx, in, ch.now())
	var no *refusal
	if errors.As(err, &no) && no.limited() {
		err = &country.Exhausted{Quota: quotaFlows, Subject: b.siren, Until: ch.now().Add(no.wait)}
	}
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", b.siren, err)
	}
	return got, nil
}

// buying is a company at its platform.
type buying struct {
	ch    *channel
	siren string
	c     country.Credentials
}

// list searches flows that changed between two instants. A second that fills more than a
// page is read on page by page, which has to be in order then.
func (b buying) list(ctx context.Context, from, to time.Time, most int) (list []country.Listed, more bool, err error) {
	after, before := from.UTC().Truncate(time.Millisecond).Add(-time.Millisecond), to.UTC()
	seen := map[string]bool{}
	for range pagesMax {
		page, err := b.ch.search(ctx, b.siren, condition{After: &after, Before: &before, Type: []string{flowPurchase},
			Direction: []string{directionIn}}, b.c)
		if err != nil {
			return nil, false, err
		}
		full, known := len(page) >= pageMost, len(seen)
		if full && most > 0 {
			return nil, true, nil
		}
		if full && !slices.IsSortedFunc(page, func(x, y flow) int { return x.Updated.Compare(y.Updated) }) {
			return nil, false, fmt.Errorf("the platform shows more than %d flows of a second, and in no order", pageMost)
		}
		for i := range page {
			one := &page[i]
			if seen[one.ID] || one.Updated.Before(from) {
				continue
			}
			seen[one.ID] = true
			if one.Direction != directionOut && one.Ack.Status != ackError { // what the platform refuses never reaches its buyer
				list = append(list, country.Listed{At: one.Updated, Name: one.ID, Of: one.Syntax + "|" + one.SHA256})
			}
		}
		switch {
		case !full:
			return list, most > 0 && len(list) > most, nil
		case len(seen) == known:
			return nil, false, fmt.Errorf("the platform has more than %d flows of one instant", pageMost)
		}
		after = page[len(page)-1].Updated.Add(-time.Millisecond)
	}
	return nil, false, fmt.Errorf("the platform shows more than %d pages of a second", pagesMax)
}

// get fetches the file of a flow. A platform that has one client for all companies may
// show those of others, too.
func (b buying) get(ctx context.Context, l country.Listed) (country.Document, error) {
	file, err := b.ch.file(ctx, b.siren, l.Name, country.DocumentBytesMax, b.c)
	if err != nil {
		return country.Document{}, err
	}
	syntax, sum, _ := strings.Cut(l.Of, "|")
	d := country.Document{Format: "XML", Bytes: file}
	space, root := incoming.Root(file)
	read, isInvoice := en16931.ReadIncoming, slices.ContainsFunc(en16931.Formats(), func(f country.Format) bool {
		return f.Space == space && f.Root == root
	})
	if !isInvoice && facturx.Is(file) {
		d.Format, read, isInvoice = "PDF", facturx.Read, true
	}
	if !isInvoice && !strings.EqualFold(country.SHA256(file), sum) {
		return country.Document{}, fmt.Errorf("what the platform answers is no invoice in %s: %s", syntax, clip(file))
	}
	var says *incoming.Document
	err = country.Safely("read a received invoice", func() (err error) {
		says, err = read(file)
		return err
	})
	if err != nil {
		return d, nil // whoever takes it says why it cannot be read
	}
	if to := buyer(&says.Receiver).siren; to != "" && to != b.siren {
		return country.Document{}, country.ErrAnothers
	}
	return d, nil
}

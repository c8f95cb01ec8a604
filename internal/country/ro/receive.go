package ro

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tributary/internal/country"
)

// What others send to a company lies in ANAF's list of messages for 60 days (filter P), and
// each document in an archive, as it was uploaded.
const (
	lookEvery = 2 * time.Second  // at a double
	lookPause = 15 * time.Minute // at ANAF itself
	lookAgain = 2 * time.Hour    // how late ANAF may list what came
	lookTwice = time.Minute      // the same of a double
	listLeast = time.Minute
)

// look asks for what others have sent to a company.
func look(ctx context.Context, in country.Inquiry) (country.Fetched, error) {
	ch, ours := in.Channel.(*channel)
	if !ours {
		return country.Fetched{}, fmt.Errorf("looking for received invoices: the channel is a %T", in.Channel)
	}
	const day = 24 * time.Hour
	if oldest := ch.now().Add(day - listedFor).Truncate(day); in.From.Before(oldest) {
		in.From = oldest // ANAF has nothing older; it stays for a day, because a mark before it begins anew
	}
	cif := fiscal(in.Supplier.TaxNumber)
	lists := country.Lists{Span: listedFor, Least: listLeast, Again: lookTwice,
		List: func(ctx context.Context, from, to time.Time, most int) ([]country.Listed, bool, error) {
			return ch.received(ctx, asking{cif: cif, from: from, to: to, filter: filterReceived, pages: 1}, most, in.Credentials)
		},
		Get: func(ctx context.Context, l country.Listed) (country.Document, error) {
			a, err := ch.fetch(ctx, l.Of, l.Name, in.Credentials)
			if err == nil && len(a.refusals()) > 0 {
				err = fmt.Errorf("the archive of %s holds errors, not a document", l.Name)
			}
			return country.Document{Format: "XML", Bytes: a.content}, err
		}}
	if ch.at.Real() {
		lists.Again, lists.Pause = lookAgain, lookPause
	}
	got, err := lists.Look(ctx, in, ch.now())
	if err != nil {
		return country.Fetched{}, fmt.Errorf("looking for invoices to %s: %w", cif, err)
	}
	return got, nil
}

// received reads a list. Its times have minutes alone, and no zone: everything of one
// list stands under the instant at which it begins, and is told apart by its index.
func (ch *channel) received(ctx context.Context, a asking, most int, c country.Credentials) (list []country.Listed, more bool, err error) {
	if most == 0 {
		a.pages = pagesMax
	}
	if now := ch.now(); a.to.After(now) {
		a.to = now
	}
	messages, more, err := ch.messages(ctx, a, c)
	if err != nil || more && most == 0 {
		if err == nil {
			err = fmt.Errorf("ANAF lists more than %d pages of a minute", pagesMax)
		}
		return nil, false, err
	}
	for _, m := range messages {
		if !strings.HasPrefix(m.Type, typeReceived) {
			continue
		}
		if !digits(m.Index) || !digits(m.ID) {
			return nil, false, fmt.Errorf("ANAF lists a document without index or archive: %q %q", m.Index, m.ID)
		}
		list = append(list, country.Listed{At: a.from, Name: m.Index, Of: m.ID})
	}
	return list, more || most > 0 && len(list) > most, nil
}

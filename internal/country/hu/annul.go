package hu

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tributary/internal/country"
	"tributary/internal/fault"
	"tributary/internal/official/navwire"
	"tributary/internal/xmltree"
)

// annulPolls is how often the state of an annulment is asked for before it is
// shown as it is: somebody waits at a terminal.
const annulPolls = 10

// Annul asks for the technical annulment of a report (specification 2.4). NAV then
// waits for a person who agrees in its portal. A second one for the same invoice
// is refused with ANNULMENT_IN_PROGRESS, so that asking again does no harm.
func (ch *channel) Annul(ctx context.Context, f country.Filing, a country.Annulment,
	c country.Credentials) (country.Annulled, error) {
	if a.Code == "" {
		a.Code = navwire.ErraticData
	}
	if flaws := annulmentFlaws(a); len(flaws) > 0 {
		return country.Annulled{}, fault.New(fault.Invalid, "NAV would not take the annulment").With(flaws...)
	}
	u, err := ch.user(f.Supplier, c)
	if err != nil {
		return country.Annulled{}, err
	}
	w := xmltree.NewWriter(1024)
	w.Declare()
	w.Start("InvoiceAnnulment", "xmlns", navwire.SpaceAnnul)
	w.Leaves("annulmentReference", f.Number, "annulmentTimestamp", ch.now().UTC().Format(navwire.TimeLayout),
		"annulmentCode", a.Code, "annulmentReason", a.Reason)
	w.End()
	batch := []entry{{operation: navwire.Annul, data: base64.StdEncoding.EncodeToString(w.Bytes())}}
	id, _, err := u.report(ctx, navwire.ManageAnnulment, batch)
	if err != nil {
		return country.Annulled{}, err
	}
	return u.annulled(ctx, id)
}

// annulmentFlaws finds what NAV's structure would refuse.
func annulmentFlaws(a country.Annulment) (found []fault.Fault) {
	if !slices.Contains(navwire.AnnulmentCodes(), a.Code) {
		found = append(found, fault.At("code", fault.FieldNotValid, "must be one of %s",
			strings.Join(navwire.AnnulmentCodes(), ", ")))
	}
	if strings.TrimSpace(a.Reason) == "" || utf8.RuneCountInString(a.Reason) > navwire.ReasonMax {
		found = append(found, fault.At("reason", fault.FieldNotValid, "must have 1 to %d characters", navwire.ReasonMax))
	}
	return found
}

// annulled asks what became of an annulment until NAV has looked at it.
func (u user) annulled(ctx context.Context, id string) (country.Annulled, error) {
	out := country.Annulled{ID: id, State: navwire.Received}
	for range annulPolls {
		t, err := u.transaction(ctx, id, false)
		if err != nil {
			return out, fmt.Errorf("NAV accepted the annulment as %s, but its status cannot be read: %w", id, err)
		}
		if p, ok := t.at(1); ok {
			out.State = p.status
			switch p.status {
			case navwire.Done:
				if t.verification != "" {
					out.State = t.verification
				}
				return out, nil
			case navwire.Aborted:
				out.Faults = p.refusals()
				return out, nil
			}
		}
		select {
		case <-time.After(u.ch.Limits().PollEvery):
		case <-ctx.Done():
			return out, nil
		}
	}
	return out, nil
}

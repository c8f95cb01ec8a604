package recovery

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/inbox"
	"tributary/internal/operation"
	"tributary/internal/transaction"
)

// Reconciliation is our successes of one supplier and day beside what its
// authority holds.
type Reconciliation struct {
	ClientID   string     `json:"client_id"`
	SupplierID string     `json:"supplier_id"`
	Country    string     `json:"country_code"`
	Day        string     `json:"day"`
	Ours       int        `json:"ours"`
	Theirs     int        `json:"theirs"`
	Agreed     int        `json:"agreed"`
	Open       int        `json:"open"` // ours that are still PROCESSING: no difference, not yet an agreement
	Differing  []Disagree `json:"differences"`
}

// The ways to disagree.
const (
	OnlyHere       = "only_here"       // SUCCESS here, unknown to the authority
	OnlyThere      = "only_there"      // the authority holds it, we do not
	OtherID        = "other_id"        // both have the number, under different ids
	CancelledThere = "cancelled_there" // the authority holds it as cancelled, we know of no cancellation
	StandsThere    = "stands_there"    // we cancelled it with success, the authority holds it as valid
)

// Disagree is one difference.
type Disagree struct {
	Kind          string `json:"kind"`
	Number        string `json:"number"`
	TransactionID string `json:"transaction_id,omitempty"`
	OperationID   string `json:"operation_id,omitempty"`
	Ours          string `json:"our_authority_id,omitempty"`
	Theirs        string `json:"their_authority_id,omitempty"`
}

// Day reads a day of the form YYYY-MM-DD.
func Day(text string) (country.Day, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return country.Day{}, fault.New(fault.Invalid, "%q is not a day of the form YYYY-MM-DD", text)
	}
	return country.Day{Year: at.Year(), Month: at.Month(), Day: at.Day()}, nil
}

// Reconcile asks the authority for everything it holds of a supplier with a
// document date, and compares. Of an authority that tells by itself and cannot be
// asked, what it told is compared. It changes nothing.
//
// Failure policy: what could not be read whole, here or there, is an error,
// never a difference.
func (s *Recovery) Reconcile(ctx context.Context, at filing.Place, day country.Day) (Reconciliation, error) {
	var supplier country.Supplier
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		supplier, err = s.cfg.Companies.Supplier(r, at.Scope, at.SupplierID)
		return err
	})
	if err != nil {
		return Reconciliation{}, fmt.Errorf("read the supplier: %w", err)
	}
	out := Reconciliation{ClientID: at.Scope, SupplierID: at.SupplierID, Country: supplier.CountryCode, Day: day.String(),
		Differing: []Disagree{}}
	pack, _ := s.cfg.Atlas.Pack(supplier.CountryCode)
	register, err := s.register(pack, at.Live)
	if err != nil {
		return out, err
	}
	credentials, err := s.cfg.Companies.Credentials(ctx, at.Scope, at.SupplierID)
	if err != nil {
		return out, fmt.Errorf("open the supplier's credentials: %w", err)
	}
	// Ours first: what is settled meanwhile is then at worst known to the
	// authority alone for a moment, and asking again shows it.
	ours, err := s.held(ctx, at, dayWithin(day, s.cfg.Atlas.Zone(supplier.Address, pack)))
	if err != nil {
		return out, err
	}
	var theirs []country.Entry
	if register.Limits().Tells {
		theirs, err = s.told(ctx, ours)
	} else {
		theirs, err = register.Registered(ctx, supplier, day, credentials)
	}
	var used *country.Exhausted
	switch {
	case errors.As(err, &used):
		return out, fault.New(fault.Unavailable, "nothing was compared: %v", used).
			With(fault.Fault{Code: fault.AuthorityWait, Type: fault.TaxAuthority, Message: used.Error()})
	case err != nil:
		return out, fmt.Errorf("query the authority's documents: %w", err)
	}
	out.compare(ours, theirs)
	return out, nil
}

// told is what an authority that cannot be asked has said by itself: of our
// documents those that it took, under the ids that its messages name.
func (s *Recovery) told(ctx context.Context, ours []operation.Own) (theirs []country.Entry, err error) {
	ids := make([]string, len(ours))
	for i, own := range ours {
		ids[i] = own.OperationID
	}
	var said map[string][]country.Receipt
	err = s.db.Read(ctx, func(r db.Reader) error {
		said, err = inbox.Said(r, s.db, ids)
		return err
	})
	for _, own := range ours {
		for _, r := range said[own.OperationID] {
			if r.Outcome == country.Accepted {
				theirs = append(theirs, country.Entry{Number: own.Number, AuthorityID1: r.AuthorityID1})
				break // what comes later is about the same document
			}
		}
	}
	return theirs, err
}

// listing is a channel whose authority lists what it holds.
type listing interface {
	country.Channel
	country.Register
}

// register is the authority's list, where it has one.
func (s *Recovery) register(pack country.Pack, live country.Live) (listing, error) {
	none := fault.New(fault.Invalid, "the authority of %s does not list its documents", pack.Code)
	if pack.Connect == nil {
		return nil, none
	}
	channel, err := s.cfg.Atlas.Channel(pack.Code, live)
	if err != nil {
		return nil, err
	}
	if register, ok := channel.(listing); ok {
		return register, nil
	}
	return nil, none
}

// dayWithin is a day as instants.
func dayWithin(day country.Day, at *time.Location) [2]time.Time {
	return [2]time.Time{
		time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, at),
		time.Date(day.Year, day.Month, day.Day+1, 0, 0, 0, 0, at),
	}
}

// held reads what we filed of a supplier in a span of document dates.
func (s *Recovery) held(ctx context.Context, at filing.Place, within [2]time.Time) (list []operation.Own, err error) {
	err = s.db.Read(ctx, func(r db.Reader) error {
		list, err = operation.OwnBetween(r, at, within)
		return err
	})
	return list, err
}

// compare pairs by number. One number can stand for several documents where a
// country restarts its numbers, so pairs are taken off one by one.
func (out *Reconciliation) compare(ours []operation.Own, theirs []country.Entry) {
	there := map[string][]country.Entry{}
	for _, e := range theirs {
		there[e.Number] = append(there[e.Number], e)
	}
	out.Theirs = len(theirs)
	// Successes take their partner before those that are still on their way;
	// cancellations come last, because some authorities list them as documents
	// and others only show them at their original.
	rank := func(own operation.Own) int {
		switch {
		case own.Kind == transaction.Cancellation || own.Mends:
			return 2
		case own.Status != filing.Success:
			return 1
		}
		return 0
	}
	sort.SliceStable(ours, func(i, j int) bool { return rank(ours[i]) < rank(ours[j]) })
	for _, own := range ours {
		partner, found := take(there, own)
		if own.Status != filing.Success {
			out.Open++
			continue
		}
		if (own.Kind == transaction.Cancellation || own.Mends) && !found {
			continue
		}
		out.Ours++
		d := Disagree{Number: own.Number, TransactionID: own.TransactionID, OperationID: own.OperationID,
			Ours: own.AuthorityID, Theirs: partner.AuthorityID1}
		switch {
		case !found:
			d.Kind = OnlyHere
		case partner.AuthorityID1 != "" && own.AuthorityID != "" && partner.AuthorityID1 != own.AuthorityID:
			d.Kind = OtherID
		case partner.Cancelled && !own.Cancelled:
			d.Kind = CancelledThere
		case !partner.Cancelled && own.Cancelled:
			d.Kind = StandsThere
		default:
			out.Agreed++
			continue
		}
		out.Differing = append(out.Differing, d)
	}
	for number, rest := range there {
		for _, e := range rest {
			out.Differing = append(out.Differing, Disagree{Kind: OnlyThere, Number: number, Theirs: e.AuthorityID1})
		}
	}
	sort.SliceStable(out.Differing, func(i, j int) bool { return out.Differing[i].Number < out.Differing[j].Number })
}

// take finds the authority's entry for a document, by id where both have one.
func take(there map[string][]country.Entry, own operation.Own) (country.Entry, bool) {
	rest := there[own.Number]
	if len(rest) == 0 {
		return country.Entry{}, false
	}
	at := 0
	for i, e := range rest {
		if e.AuthorityID1 != "" && e.AuthorityID1 == own.AuthorityID {
			at = i
		}
	}
	found := rest[at]
	there[own.Number] = append(rest[:at:at], rest[at+1:]...)
	return found, true
}

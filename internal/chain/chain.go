// Package chain is the chain in which an authority wants the filings of a supplier
// to hang: its head, our links, and what the authority's own head says about them.
//
// It owns the table chains, a row for each lane that has one, and writes it in
// filing's commits only.
package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/operation"
)

// linksLook is how many of a lane's last filings are searched for a link.
const linksLook = 2000

// Chain is a supplier's chain as it is stored.
type Chain struct {
	Lane string
	Head country.Link       // zero: not begun
	Open map[int64]OpenLink // of operations that have not ended, by position
}

// OpenLink is a link whose operation has not ended.
type OpenLink struct {
	country.Link
	OperationID string
	Stage       operation.Stage
	Number      string    // at the authority
	DatedAt     time.Time // of the document
	SentAt      time.Time // zero: never
}

// Read reads the chain of a lane.
func Read(r db.Reader, lane string) (c Chain, err error) {
	c = Chain{Lane: lane, Open: map[int64]OpenLink{}}
	if c.Head, err = HeadOf(r, lane); err != nil || c.Head.Position == 0 {
		return c, err
	}
	links, err := db.Collect(r, scanOpen, `SELECT o.operation_id, o.stage, o.dated_at, o.sent_at, f.filing FROM operations o JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.lane = $1 AND o.due_at IS NOT NULL AND o.stage IN ('prepared', 'sent', 'pending')`, lane)
	if err != nil {
		return c, fmt.Errorf("read the open links: %w", err)
	}
	for _, l := range links {
		c.Open[l.Position] = l
	}
	return c, nil
}

func scanOpen(scan func(...any) error) (l OpenLink, err error) {
	var text string
	var dated int64
	if err := scan(&l.OperationID, &l.Stage, &dated, db.NullInstant(&l.SentAt), &text); err != nil {
		return l, err
	}
	f, err := operation.ReadFiling(text, nil)
	l.Link, l.Number, l.DatedAt = f.Link, f.Number, db.FromMicros(dated)
	return l, err
}

// PastLink is a link of ours, with what became of its operation.
type PastLink struct {
	country.Link
	Status operation.Status
}

// Links are our last links, open or ended, newest first. A position can
// stand there twice: with a link that the authority did not take, and with the
// one that took its place.
func (c Chain) Links(r db.Reader, scope string) ([]PastLink, error) {
	links, err := db.Collect(r, func(scan func(...any) error) (l PastLink, err error) {
		var text string
		if err := scan(&l.Status, &text); err != nil {
			return l, err
		}
		f, err := operation.ReadFiling(text, nil)
		l.Link = f.Link
		return l, err
	}, `SELECT o.status, f.filing FROM operations o JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.client_id = $1 AND o.lane = $2 ORDER BY o.operation_id DESC LIMIT $3`, scope, c.Lane, linksLook)
	if err != nil {
		return nil, fmt.Errorf("look for links: %w", err)
	}
	return links, nil
}

// Has finds the authority's head among our links.
func (c Chain) Has(links []PastLink, head country.Link) (country.Link, bool) {
	if c.Head.Position == head.Position && c.Head.Hash == head.Hash {
		return c.Head, true
	}
	i := slices.IndexFunc(links, func(l PastLink) bool { return l.Position == head.Position && l.Hash == head.Hash })
	if i < 0 {
		return country.Link{}, false
	}
	return links[i].Link, true
}

// headTimeout is how long an authority may take to say where a chain stands.
const headTimeout = 5 * time.Minute

// Head asks an authority for the last link that it holds of a supplier; zero:
// the chain is not begun there.
func Head(ctx context.Context, keeper country.ChainKeeper, s country.Supplier, c country.Credentials) (country.Link, error) {
	call, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	head, begun, err := keeper.Head(call, s, c)
	if err != nil {
		return country.Link{}, fmt.Errorf("ask the authority for the head of the chain: %w", err)
	}
	if !begun {
		return country.Link{}, nil
	}
	return head, nil
}

// Mend is what the authority's head says about a refused link.
type Mend int

const (
	Stop Mend = iota // it does not explain the refusal: a person decides
	// the authority counts the link, or lacks one that is still on its way: asked for, or the same bytes again
	Wait
	Relink // the link hangs on one that the authority refused and did not count
)

// Explain holds the authority's head against our links, of which the one at
// position first was refused. The head comes back as we have it.
func (c Chain) Explain(links []PastLink, head country.Link, first int64) (Mend, country.Link) {
	if head.Position > 0 {
		ours, found := c.Has(links, head)
		if !found {
			return Stop, head // somebody else's
		}
		head = ours
	}
	what := Relink
	switch {
	case head.Position == first-1:
		return Stop, head // the link does follow it: the authority contradicts itself
	case head.Position >= first:
		what = Wait
	}
	for _, l := range links {
		switch {
		case l.Position <= head.Position || l.Position >= first:
		case l.Status == operation.Success:
			return Stop, head // it confirmed a link and does not hold it
		case l.Status == operation.Processing:
			what = Wait
		}
	}
	return what, head
}

// Store moves the head from where it was read; anything else would fork the chain.
func Store(tx *db.Tx, lane string, from int64, head country.Link) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if from == 0 {
		return tx.Insert("chains", "lane,position,link", []any{lane, head.Position, string(text)})
	}
	return tx.ExecOne("UPDATE chains SET position = $1, link = $2 WHERE lane = $3 AND position = $4", head.Position,
		string(text), lane, from)
}

// Reset makes a link the head, whatever it was; at position 0 the chain begins anew.
func Reset(tx *db.Tx, lane string, head country.Link) error {
	if err := tx.Exec("DELETE FROM chains WHERE lane = $1", lane); err != nil || head.Position == 0 {
		return err
	}
	return Store(tx, lane, 0, head)
}

// HeadOf reads the last link that was made in a lane; zero: none.
func HeadOf(r db.Reader, lane string) (head country.Link, err error) {
	var text string
	switch err := r.Row("SELECT link FROM chains WHERE lane = $1", lane).Scan(&text); {
	case errors.Is(err, db.ErrNoRows):
		return head, nil
	case err != nil:
		return head, fmt.Errorf("read the chain: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return head, fmt.Errorf("read the chain: %w", err)
	}
	return head, nil
}

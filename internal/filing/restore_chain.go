package filing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// linksLook is how many of a lane's last filings are searched for a link.
const linksLook = 2000

// ownChain is a supplier's chain as the database has it.
type ownChain struct {
	lane string
	head country.Link        // zero: not begun
	open map[int64]*openLink // of operations that have not ended, by position
}

// openLink is a link whose operation has not ended.
type openLink struct {
	country.Link
	id    string
	stage Stage
}

func (q *question) chainLane() string {
	return laneName(q.scope, q.lease.Row.code, q.lease.Row.live, q.lease.ID, 0)
}

func readOwnChain(r db.Reader, lane string) (c ownChain, err error) {
	c = ownChain{lane: lane, open: map[int64]*openLink{}}
	var text string
	switch err := r.Row("SELECT link FROM chains WHERE lane = $1", lane).Scan(&text); {
	case errors.Is(err, db.ErrNoRows):
		return c, nil
	case err != nil:
		return c, fmt.Errorf("read the chain: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &c.head); err != nil {
		return c, fmt.Errorf("read the chain: %w", err)
	}
	links, err := db.Collect(r, func(scan func(...any) error) (l *openLink, err error) {
		var text string
		l = &openLink{}
		if err := scan(&l.id, &l.stage, &text); err != nil {
			return nil, err
		}
		l.Link, err = linkIn(text)
		return l, err
	}, `SELECT o.operation_id, o.stage, f.filing FROM operations o JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.lane = $1 AND o.due_at IS NOT NULL AND o.stage IN ('prepared', 'sent', 'pending')`, lane)
	if err != nil {
		return c, fmt.Errorf("read the open links: %w", err)
	}
	for _, l := range links {
		c.open[l.Position] = l
	}
	return c, nil
}

func linkIn(filing string) (country.Link, error) {
	f, err := ReadFiling(filing, nil)
	return f.Link, err
}

// ownLink is a link of ours, with what became of its operation.
type ownLink struct {
	country.Link
	status Status
}

// lastLinks are our last links, open or ended, newest first. A position can
// stand there twice: with a link that the authority did not take, and with the
// one that took its place.
func (c ownChain) lastLinks(r db.Reader, scope string) ([]ownLink, error) {
	links, err := db.Collect(r, func(scan func(...any) error) (l ownLink, err error) {
		var text string
		if err := scan(&l.status, &text); err != nil {
			return l, err
		}
		l.Link, err = linkIn(text)
		return l, err
	}, `SELECT o.status, f.filing FROM operations o JOIN filings f ON f.operation_id = o.operation_id
		WHERE o.client_id = $1 AND o.lane = $2 ORDER BY o.operation_id DESC LIMIT $3`, scope, c.lane, linksLook)
	if err != nil {
		return nil, fmt.Errorf("look for links: %w", err)
	}
	return links, nil
}

// has finds the authority's head among our links.
func (c ownChain) has(links []ownLink, head country.Link) (country.Link, bool) {
	if c.head.Position == head.Position && c.head.Hash == head.Hash {
		return c.head, true
	}
	i := slices.IndexFunc(links, func(l ownLink) bool { return l.Position == head.Position && l.Hash == head.Hash })
	if i < 0 {
		return country.Link{}, false
	}
	return links[i].Link, true
}

// compareChain says whether the chain may go on where the backup left it: the
// authority's last link is ours, and whatever we have behind it has not ended,
// so that it is asked for, or sent, in order. Anything else would put a second
// link on one predecessor.
//
// An authority that cannot say its head is judged by its list: no document
// that we do not know means that no link was added.
func (q *question) compareChain(ctx context.Context) (askState, error) {
	keeper, ok := q.channel.(country.ChainKeeper)
	if !ok {
		if q.found > 0 {
			return stateChain, nil
		}
		return stateAsked, nil
	}
	head, err := q.theirHead(ctx, keeper)
	if err != nil {
		return "", err
	}
	state := stateChain
	err = q.db.Read(ctx, func(r db.Reader) error {
		own, err := readOwnChain(r, q.chainLane())
		if err != nil || head.Position > own.head.Position {
			return err
		}
		for p := head.Position + 1; p <= own.head.Position; p++ {
			if own.open[p] == nil {
				return nil // the authority does not hold a link that it confirmed
			}
		}
		if head.Position == 0 {
			state = stateAsked // not begun there, nothing of ours has ended
			return nil
		}
		links, err := own.lastLinks(r, q.scope)
		if _, found := own.has(links, head); found && err == nil {
			state = stateAsked
		}
		return err
	})
	return state, err
}

func (q *question) theirHead(ctx context.Context, keeper country.ChainKeeper) (country.Link, error) {
	call, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	head, begun, err := keeper.Head(call, q.supplier, q.creds)
	if err != nil {
		return country.Link{}, fmt.Errorf("ask the authority for the head of the chain: %w", err)
	}
	if !begun {
		return country.Link{}, nil
	}
	return head, nil
}

// Chain is a supplier's chain before and after a person decided about it.
type Chain struct {
	Lane   string       `json:"lane"`
	Before country.Link `json:"before"`
	After  country.Link `json:"after"`
	Anew   int          `json:"prepared_anew"` // filings that the authority does not hold and that get new links
}

// ResumeChain lets the chain of a supplier go on that was stopped: after a
// restored backup, or because the authority refused a link. head is the link on which the next one is built; zero asks
// the authority, and is fault.Invalid where that cannot say. Filings of ours
// that the authority does not hold get new links behind it; those it holds stay
// as they are and are asked for. also joins the commit, for whoever keeps a
// log; it may be nil.
//
// Failure policy: everything is decided in one commit, while the supplier is
// held: no holder of the lane can send an old link meanwhile.
func (s *Service) ResumeChain(ctx context.Context, scope, supplierID string, head country.Link, also func(tx *db.Tx, c Chain) error) (c Chain, err error) {
	q := &question{Service: s, scope: scope, lease: &db.Lease[askRow]{ID: supplierID, Key: scope}}
	if err := q.reopen(ctx); err != nil {
		return c, err
	}
	if head == (country.Link{}) {
		keeper, ok := q.channel.(country.ChainKeeper)
		if !ok {
			return c, fault.New(fault.Invalid, "the authority of %s does not say where a chain stands: give the last link", q.lease.Row.code)
		}
		if head, err = q.theirHead(ctx, keeper); err != nil {
			return c, err
		}
	}
	absent, err := q.absent(ctx)
	if err != nil {
		return c, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if c, err = q.rebuild(tx, head, absent); err != nil || also == nil {
			return err
		}
		return also(tx, c)
	})
	if err != nil {
		return Chain{}, fmt.Errorf("resume the chain of %s: %w", supplierID, err)
	}
	return c, nil
}

// reopen learns about a stopped chain.
func (q *question) reopen(ctx context.Context) error {
	err := q.db.Read(ctx, func(r db.Reader) error {
		state, err := heldState(r, q.scope, q.lease.ID)
		if err != nil {
			return err
		}
		if state != stateChain {
			return notStopped(state)
		}
		row := &q.lease.Row
		var live bool
		err = r.Row("SELECT country, live, first_day, ahead, found FROM restored_suppliers WHERE supplier_id = $1", q.lease.ID).
			Scan(&row.code, &live, &row.nextDay, &row.ahead, &row.found)
		row.live, q.next, q.found = country.Live(live), row.nextDay, row.found
		return err
	})
	if err != nil {
		return err
	}
	return q.open(ctx)
}

func notStopped(state askState) error {
	return fault.New(fault.Conflict, "the supplier's chain is not stopped: it is %q", string(state))
}

// absent lists the open operations of the chain whose documents the authority
// does not hold. One without a list is taken at its word: what it refused, and
// what was never sent, it does not hold.
func (q *question) absent(ctx context.Context) (ids []string, err error) {
	type open struct {
		id, number, day string
		stage           Stage
	}
	var list []open
	err = q.db.Read(ctx, func(r db.Reader) error {
		list, err = db.Collect(r, func(scan func(...any) error) (o open, err error) {
			var text string
			var dated int64
			if err := scan(&o.id, &o.stage, &dated, &text); err != nil {
				return o, err
			}
			f, err := ReadFiling(text, nil)
			o.number, o.day = f.Number, db.FromMicros(dated).In(q.zone).Format("2006-01-02")
			return o, err
		}, `SELECT o.operation_id, o.stage, o.dated_at, f.filing FROM operations o JOIN filings f ON f.operation_id = o.operation_id
			WHERE o.lane = $1 AND o.due_at IS NOT NULL AND o.stage IN ('prepared', 'sent')`, q.chainLane())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the open links: %w", err)
	}
	register, listed := q.channel.(country.Register)
	byDay := map[string]map[string]bool{}
	for _, o := range list {
		if listed && byDay[o.day] == nil {
			day, err := Day(o.day)
			if err != nil {
				return nil, err
			}
			call, cancel := context.WithTimeout(ctx, askTimeout)
			theirs, err := register.Registered(call, q.supplier, day, q.creds)
			cancel()
			listed = !errors.Is(err, country.ErrNoList)
			if err != nil && listed {
				return nil, fmt.Errorf("ask the authority what it holds: %w", err)
			}
			byDay[o.day] = map[string]bool{}
			for _, e := range theirs {
				byDay[o.day][e.Number] = true
			}
		}
		if listed && !byDay[o.day][o.number] || !listed && o.stage == Prepared {
			ids = append(ids, o.id)
		}
	}
	return ids, nil
}

// rebuild takes the new head, undoes the links that lead nowhere, and lets go.
func (q *question) rebuild(tx *db.Tx, head country.Link, absent []string) (Chain, error) {
	state, err := heldState(tx, q.scope, q.lease.ID)
	if err != nil {
		return Chain{}, err
	}
	if state != stateChain {
		return Chain{}, notStopped(state) // somebody was faster
	}
	own, err := readOwnChain(tx, q.chainLane())
	if err != nil {
		return Chain{}, err
	}
	steps := []func() error{
		func() error { return q.relink(tx, own.lane, head, absent) },
		func() error {
			return tx.Exec("UPDATE restored_suppliers SET state = 'asked', trouble = '' WHERE supplier_id = $1", q.lease.ID)
		},
		func() error { return letGo(tx, q.scope, q.lease.ID) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return Chain{}, err
		}
	}
	return Chain{Lane: own.lane, Before: own.head, After: head, Anew: len(absent)}, nil
}

// relink sets the head on which the next link is built, and lets operations be
// prepared anew behind it.
func (s *Service) relink(tx *db.Tx, lane string, head country.Link, absent []string) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	ids := db.Strings(absent)
	if err := tx.Exec("DELETE FROM filings WHERE "+s.db.In("operation_id", "$1"), ids); err != nil {
		return err
	}
	if err := tx.Exec("UPDATE operations SET stage = 'received', due_at = accepted_at, sent_at = NULL, tries = 0, doubts = '' WHERE "+
		s.db.In("operation_id", "$1")+" AND status = 'PROCESSING'", ids); err != nil {
		return err
	}
	if err := tx.Exec("DELETE FROM chains WHERE lane = $1", lane); err != nil || head.Position == 0 {
		return err // at position 0 it begins anew
	}
	return tx.Insert("chains", "lane,position,link", []any{lane, head.Position, string(text)})
}

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
)

// Whose the bytes are. A database that was restored, or copied for a rehearsal,
// takes what its original has kept since for forgotten. So the store carries a
// mark, STORE/owner, and the database knows it: before a sweep, and once a minute
// while files are kept, the mark is replaced by a new one that only this database
// has. A database that finds a mark it does not know is older than the store, or a
// copy of another: it leaves a complaint in STORE/contested, which stops the other
// one too, and neither removes a byte until an operator says which one is real
// ([Claim]). The other one stays stopped.
//
// Failure policy: nothing is removed where in doubt. The new mark is in the database
// before it is in the store, and believed after it is there, so a crash in between
// is no doubt. What stands on shelves between the last sweep that a restored
// database remembers and its restoration is kept until somebody releases it.
const (
	ownerName     = "owner"
	contestedName = "contested/"
	markEvery     = time.Minute // while files are kept
	markTriesMax  = 3           // looks while another node moves the mark
	markBytesMax  = 100
	marksKnown    = 64 // of ours, the last ones: a node that was slow may put an older one back

	heldOpen = "9999" // held until the restoration has ended; after every shelf
)

// States of the mark.
const (
	stateOurs      = "ours"
	stateClaimed   = "claimed"   // an operator said so; the next look takes the store over
	stateContested = "contested" // another database uses the store
)

const (
	owned       = "mark, next_mark, state, held_from, held_to"
	nextMarkSQL = "UPDATE document_store SET next_mark = CASE WHEN next_mark = '' THEN $1 ELSE next_mark END WHERE one = 1 RETURNING " + owned
	ownerSQL    = "SELECT " + owned + " FROM document_store WHERE one = 1"
	markedSQL   = `UPDATE document_store SET mark = substr(next_mark || ' ' || mark, 1, $2), next_mark = '', state = 'ours'
		WHERE one = 1 AND next_mark = $1 AND state <> 'contested'`
	contestSQL = "UPDATE document_store SET state = 'contested' WHERE one = 1 AND mark = $1 AND next_mark = $2 AND state = 'ours'"
	holdSQL    = `UPDATE document_store SET held_from = CASE WHEN held_from = '' OR swept_to < held_from THEN swept_to ELSE held_from END,
		held_to = CASE WHEN held_to > $1 THEN held_to ELSE $1 END WHERE one = 1`
	holdEndSQL = "UPDATE document_store SET held_to = $1 WHERE one = 1 AND held_to = '" + heldOpen + "'"
	claimSQL   = "UPDATE document_store SET state = 'claimed', next_mark = '' WHERE one = 1"
	unholdSQL  = "UPDATE document_store SET held_from = '', held_to = '' WHERE one = 1"
)

// Ownership is what the database knows of its store.
type Ownership struct {
	State    string `json:"state"`               // ours, claimed, contested
	HeldFrom string `json:"held_from,omitempty"` // hours (UTC) of which nothing is removed
	HeldTo   string `json:"held_to,omitempty"`   // "9999": until the restoration has ended

	mark, next string // mark: the last [marksKnown] of ours, newest first
}

// knows reports whether a mark in the store is one of ours; a new store has none.
func (o Ownership) knows(mark string) bool {
	return mark == o.next || mark == "" && o.mark == "" || slices.Contains(strings.Fields(o.mark), mark)
}

// Certain reports whether bytes may be removed at all.
func (o Ownership) Certain() bool { return o.State != stateContested && o.HeldTo != heldOpen }

func (o Ownership) holds(shelf string) bool { return o.HeldFrom <= shelf && shelf < o.HeldTo }

// OwnershipOf reads it; the zero value where no store was registered.
func OwnershipOf(r db.Reader) (o Ownership, err error) {
	err = o.scan(r.Row(ownerSQL).Scan)
	if err != nil && !errors.Is(err, db.ErrNoRows) {
		return o, fmt.Errorf("read whose the documents are: %w", err)
	}
	return o, nil
}

func (o *Ownership) scan(scan func(...any) error) error {
	return scan(&o.mark, &o.next, &o.State, &o.HeldFrom, &o.HeldTo)
}

// Hold has nothing removed while a restoration is open, and afterwards nothing that the backup may not know.
func Hold(tx *db.Tx) error { return tx.Exec(holdSQL, heldOpen) }

// EndHold ends the first half of Hold: the restoration is over now.
func EndHold(tx *db.Tx, now time.Time) error {
	return tx.Exec(holdEndSQL, shelfOf(now.Add(shelfLength)))
}

// Claim says that this database is the one whose documents the store holds. What
// it may not know of by now stays held.
func Claim(tx *db.Tx, now time.Time) error {
	if err := tx.Exec(claimSQL); err != nil {
		return fmt.Errorf("claim the documents: %w", err)
	}
	return tx.Exec(holdSQL, shelfOf(now.Add(shelfLength)))
}

// Release has what was held swept like everything else.
func Release(tx *db.Tx) error {
	o, err := OwnershipOf(tx)
	switch {
	case err != nil:
		return err
	case o.HeldTo == heldOpen:
		return fault.New(fault.Conflict, "the restore has not finished: see tributary recovery list")
	case o.HeldTo == "":
		return fault.New(fault.Conflict, "no documents are held")
	}
	for shelf := o.HeldFrom; shelf < o.HeldTo; shelf = shelfOf(shelfEnd(shelf)) {
		if err := tx.Exec(repeatSQL, shelf); err != nil {
			return fmt.Errorf("have shelf %s swept again: %w", shelf, err)
		}
	}
	return tx.Exec(unholdSQL)
}

// prove looks whether the store is ours and moves its mark. false: it is not, and somebody was told.
func (w sweep) prove(ctx context.Context) (o Ownership, ours bool, err error) {
	for range markTriesMax {
		err := w.s.db.Write(ctx, func(tx *db.Tx) (err error) {
			// One statement: between two another node may have moved the mark.
			return o.scan(tx.Row(nextMarkSQL, ids.New()).Scan)
		})
		if err != nil {
			return o, false, fmt.Errorf("mark the document store: %w", err)
		}
		if o.State == stateContested {
			return o, false, w.s.complain(ctx)
		}
		fits, err := w.s.fits(ctx, o)
		if err != nil {
			return o, false, err
		}
		if fits {
			return o, true, w.s.mark(ctx, o)
		}
		if contested, err := w.s.contest(ctx, o); err != nil || contested {
			return o, false, err
		}
	}
	return o, false, errors.New("mark the document store: other nodes keep moving it")
}

// fits compares the store's mark with ours. A store that was claimed is ours whatever it says.
func (s *Store) fits(ctx context.Context, o Ownership) (bool, error) {
	complaints := 0
	err := s.bucket.each(ctx, s.prefix+contestedName, func(keys []string) error {
		complaints += len(keys)
		if o.State != stateClaimed {
			return nil
		}
		for _, key := range keys {
			if err := s.bucket.remove(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look who else uses the document store: %w", err)
	}
	if o.State == stateClaimed {
		return true, nil
	}
	there, err := s.bucket.get(ctx, s.prefix+ownerName, markBytesMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the mark of the document store: %w", err)
	}
	return complaints == 0 && o.knows(string(there)), nil
}

// mark writes the next mark.
func (s *Store) mark(ctx context.Context, o Ownership) error {
	if err := s.note(ctx, ownerName, o.next); err != nil {
		return fmt.Errorf("mark the document store: %w", err)
	}
	if err := s.db.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec(markedSQL, o.next, marksKnown*(len(o.next)+1))
	}); err != nil {
		return fmt.Errorf("mark the document store: %w", err)
	}
	return nil
}

// note puts a few bytes into the store and, in a folder, syncs them.
func (s *Store) note(ctx context.Context, name, text string) error {
	if err := s.bucket.put(ctx, s.prefix+name, NewFile([]byte(text))); err != nil {
		return err
	}
	if s.folder == nil {
		return nil
	}
	path := filepath.FromSlash(s.prefix + name)
	return s.folder.syncEach([]string{path})
}

// contest stops this database and, by a complaint, the other one; false: another node of ours has moved the mark.
func (s *Store) contest(ctx context.Context, o Ownership) (contested bool, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec(contestSQL, o.mark, o.next); err != nil {
			return err
		}
		now, err := OwnershipOf(tx)
		contested = now.State == stateContested
		return err
	})
	if err != nil || !contested {
		return false, err
	}
	return true, errors.Join(s.note(ctx, contestedName+ids.New(),
		"by the database that knew "+o.mark[:min(len(o.mark), len(o.next))]+"\n"), s.complain(ctx))
}

func (s *Store) complain(ctx context.Context) error {
	const message = "the document store bears the mark of another database, or of a later state of this one: nothing is removed until an operator says which one is real"
	if s.cfg.Alerts == nil {
		s.log.Error(message)
		return nil
	}
	return s.cfg.Alerts.Raise(ctx, alert.DocumentsContested, "documents", message)
}

// stays reports whether the store is still ours: asked before every shelf, because the other database may have come since.
func (w sweep) stays(ctx context.Context) (bool, error) {
	for range markTriesMax {
		var before, after Ownership
		read := func(into *Ownership) error {
			return w.s.db.Read(ctx, func(r db.Reader) (err error) {
				*into, err = OwnershipOf(r)
				return err
			})
		}
		if err := read(&before); err != nil {
			return false, err
		}
		fits, err := w.s.fits(ctx, before)
		if err != nil || fits && before.Certain() {
			return err == nil, err
		}
		if err := read(&after); err != nil || after == before {
			return false, err
		}
	}
	return false, nil
}

// markWhileKeeping moves the mark once a minute while files are kept, so that a
// database that lost them sees it. Trouble with it is no trouble of whoever keeps files.
func (s *Store) markWhileKeeping(ctx context.Context) {
	s.mu.Lock()
	due := s.now().Sub(s.marked) >= markEvery
	if due {
		s.marked = s.now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if _, _, err := (sweep{s}).prove(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("mark the document store", "error", err)
	}
}

// open are the shelves of a list that are not held.
func (o Ownership) open(shelves []string) []string {
	return slices.DeleteFunc(shelves, o.holds)
}

package files

import (
	"errors"
	"fmt"

	"tributary/internal/db"
)

const (
	attachmentColumns = "client_id,operation_id,kind,type,resource_id,place,shelf,sha256,size,created_at,archive,archive_at,name"

	ofSQL       = "SELECT " + attachmentColumns + " FROM attachments WHERE client_id = $1 AND operation_id = $2"
	resourceSQL = "SELECT " + attachmentColumns + " FROM attachments WHERE resource_id = $1"

	registerSQL = "INSERT INTO document_store (one, store_id, open_from, swept_to) VALUES (1, $1, $2, $2) ON CONFLICT (one) DO NOTHING"
	storeSQL    = "SELECT store_id, open_from FROM document_store WHERE one = 1"
	openSQL     = "SELECT open_from FROM document_store WHERE one = 1"
	closeSQL    = "UPDATE document_store SET open_from = $1 WHERE one = 1 AND open_from < $1"
	sweptSQL    = "SELECT swept_to FROM document_store WHERE one = 1"
	advanceSQL  = "UPDATE document_store SET swept_to = $1 WHERE one = 1 AND swept_to < $1"

	againSQL  = "SELECT shelf FROM document_sweeps WHERE shelf < $1 ORDER BY shelf"
	repeatSQL = "INSERT INTO document_sweeps (shelf) VALUES ($1) ON CONFLICT (shelf) DO NOTHING"
	doneSQL   = "DELETE FROM document_sweeps WHERE shelf = $1"

	mentionedSQL = "SELECT sha256 FROM attachments WHERE shelf = $1 AND place = 'store' AND archive = '' AND "
)

// shelfLock is the advisory lock on PostgreSQL that Attach shares and closing a
// shelf has alone; any number that nobody else uses. SQLite has one writer.
const shelfLock = 7420436

// signedName stands in the place of a client's own name where an original came in a signed envelope.
const signedName = ".p7m"

func (a *Attachment) row() []any {
	name := a.Name
	if a.Signed {
		name = signedName
	}
	return []any{a.ClientID, a.OperationID, a.Kind, a.Type, a.ResourceID, a.Place, a.shelf, a.SHA256, a.Size,
		db.Micros(a.CreatedAt), a.spot.archive, a.spot.at, name}
}

func scanAttachment(scan func(...any) error) (a Attachment, err error) {
	var created int64
	err = scan(&a.ClientID, &a.OperationID, &a.Kind, &a.Type, &a.ResourceID, &a.Place, &a.shelf, &a.SHA256, &a.Size,
		&created, &a.spot.archive, &a.spot.at, &a.Name)
	a.CreatedAt = db.FromMicros(created)
	if a.Kind == Original {
		a.Signed, a.Name = a.Name == signedName, ""
	}
	return a, err
}

// resource finds an attachment; ok is false when there is none.
func resource(r db.Reader, id string) (a Attachment, ok bool, err error) {
	a, err = scanAttachment(r.Row(resourceSQL, id).Scan)
	if errors.Is(err, db.ErrNoRows) {
		return Attachment{}, false, nil
	}
	if err != nil {
		return Attachment{}, false, fmt.Errorf("read attachment %s: %w", id, err)
	}
	return a, true, nil
}

// holdOpen keeps shelves from first on from being closed until the commit, and
// answers ErrNotKept when that is too late.
func (s *Store) holdOpen(tx *db.Tx, first string) error {
	if s.db.Engine() == "postgres" {
		// A statement of its own: the next one must see what was committed before the lock was ours.
		if err := tx.Exec("SELECT pg_advisory_xact_lock_shared($1)", shelfLock); err != nil {
			return err
		}
	}
	var open string
	if err := tx.Row(openSQL).Scan(&open); err != nil {
		return fmt.Errorf("read which shelves are open: %w", err)
	}
	s.heard(open)
	if first < open {
		return fmt.Errorf("attach from shelf %s, open from %s: %w", first, open, ErrNotKept)
	}
	return nil
}

// closeShelves refuses every later Attach from a shelf before to.
func (w sweep) closeShelves(tx *db.Tx, to string) error {
	if w.s.db.Engine() == "postgres" {
		if err := tx.Exec("SELECT pg_advisory_xact_lock($1)", shelfLock); err != nil {
			return err
		}
	}
	return tx.Exec(closeSQL, to)
}

// heard remembers which shelves are closed, so that nothing is kept on them
// even when the clock is behind the one by which they were closed.
func (s *Store) heard(open string) {
	s.mu.Lock()
	s.floor = max(s.floor, open)
	s.mu.Unlock()
}

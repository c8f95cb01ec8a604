package received

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/operation"
	"tributary/internal/result"
)

// Arrival is a document that came.
type Arrival struct {
	Scope string
	Live  bool
	Media Media
	Bytes []byte

	Source      string // Upload, or the endpoint that brought it
	AuthorityID string // its name there; "" of an upload
	// another name that the source gave it; "": none
	AuthorityID2 string
	CompanyID    string // to whom the source says it came; "": the document says it
}

// name is the source's own name of the document; "" where it has none.
func (a *Arrival) name() string {
	if a.AuthorityID == "" {
		return ""
	}
	return a.Source + "|" + a.CompanyID + "|" + a.AuthorityID
}

// attempts is how often a file is kept anew whose shelf was closed meanwhile.
const attempts = 3

// Take stores a document and answers its operation; fresh is false where it was here before.
func (d *Documents) Take(ctx context.Context, a Arrival) (operationID string, fresh bool, err error) {
	if len(a.Bytes) == 0 || len(a.Bytes) > BytesMax {
		return "", false, fmt.Errorf("a received document has %d bytes", len(a.Bytes))
	}
	file := files.NewFile(a.Bytes)
	for n := 1; ; n++ {
		if err := d.cfg.Files.Keep(ctx, file); err != nil {
			return "", false, fmt.Errorf("keep a received document: %w", err)
		}
		id, err := uuid.NewV7()
		if err != nil {
			return "", false, err
		}
		err = d.db.Write(ctx, func(tx *db.Tx) error {
			operationID, fresh, err = d.take(tx, &a, file, id.String())
			return err
		})
		if !errors.Is(err, files.ErrNotKept) || n == attempts {
			return operationID, fresh, err
		}
	}
}

// take stores what is new of an arrival in the caller's write.
func (d *Documents) take(tx *db.Tx, a *Arrival, file files.File, id string) (operationID string, fresh bool, err error) {
	// Two calls with one document must not both find it new.
	if err := tx.Lock("received|" + a.Scope); err != nil {
		return "", false, err
	}
	bytesName := "sha256:" + file.SHA256
	same, err := findName(tx, a.Scope, bytesName)
	if err != nil {
		return "", false, err
	}
	if own := a.name(); own != "" {
		named, err := findName(tx, a.Scope, own)
		if err != nil {
			return "", false, err
		}
		switch {
		case named == "" && same != "": // it was uploaded before: from now on it has its name
			return same, false, tx.Insert("received_names", nameColumns, []any{a.Scope, own, same})
		case named != "" && same == "":
			shown := result.Arrival{ID: id, Status: operation.Failure, Faults: []fault.Fault{{Code: fault.CodeConflict,
				Type: fault.General, Message: fmt.Sprintf("%s brought another document under the id %s, which operation %s has",
					a.Source, a.AuthorityID, named)}}}
			return id, true, d.setAside(tx, a, file, shown)
		case named == "":
			err = tx.Insert("received_names", nameColumns, []any{a.Scope, own, id})
		}
		if err != nil {
			return "", false, err
		}
	}
	if same != "" {
		if a.Source == Upload {
			err = readAgain(tx, a.Scope, same)
		}
		return same, false, err
	}
	return id, true, d.insert(tx, a, file, result.Arrival{ID: id, Status: operation.Processing})
}

// setAside keeps a document that comes under the name of another one.
func (d *Documents) setAside(tx *db.Tx, a *Arrival, file files.File, shown result.Arrival) error {
	if err := d.insert(tx, a, file, shown); err != nil {
		return err
	}
	return d.cfg.Alerts.RaiseIn(tx, alert.ReceivedAside, a.Scope, shown.Faults[0].Message+"; it is kept as operation "+shown.ID)
}

// insert stores a new operation with its original.
func (d *Documents) insert(tx *db.Tx, a *Arrival, file files.File, shown result.Arrival) error {
	shown.At, shown.AuthorityID, shown.AuthorityID2 = tx.Now(), a.AuthorityID, a.AuthorityID2
	now, processing := db.Micros(tx.Now()), shown.Status == operation.Processing
	due, settled := any(now), any(nil)
	if !processing {
		due, settled = nil, now
	}
	err := tx.Insert(table, insertColumns, []any{shown.ID, a.Scope, a.Live, a.Source, a.AuthorityID, a.AuthorityID2, a.CompanyID, now, now,
		settled, string(shown.Status), string(a.Media), file.Size, file.SHA256, !processing, result.Arrived(shown).Encode(), due})
	if err != nil {
		return fmt.Errorf("store a received document: %w", err)
	}
	if err := tx.Insert("received_names", nameColumns, []any{a.Scope, "sha256:" + file.SHA256, shown.ID}); err != nil {
		return fmt.Errorf("store the name of a received document: %w", err)
	}
	original := files.Attachment{ClientID: a.Scope, OperationID: shown.ID, Kind: files.Original, Type: string(a.Media),
		Place: files.InStore, SHA256: file.SHA256, Size: file.Size}
	if a.Media == Signed {
		original.Type, original.Signed = string(XML), true
	}
	if err := d.cfg.Files.Attach(tx, original); err != nil {
		return err
	}
	if processing {
		tx.Wake(table)
		return nil
	}
	return d.cfg.Hooks.Notify(tx, told(a.Scope, shown.ID))
}

// readAgain lets a document that ended in FAILURE be looked at once more.
func readAgain(tx *db.Tx, scope, id string) error {
	tx.Wake(table)
	return tx.Exec(againSQL, db.Micros(tx.Now()), scope, id)
}

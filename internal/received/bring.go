package received

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/files"
)

// Stored answers which documents of a source and a company are here already, by their names there.
func (d *Documents) Stored(ctx context.Context, scope, source, companyID string, ids []string) (stored map[string]bool, err error) {
	names, idOf := make([]string, len(ids)), make(map[string]string, len(ids))
	for n, id := range ids {
		a := Arrival{Source: source, AuthorityID: id, CompanyID: companyID}
		names[n] = a.name()
		idOf[names[n]] = id
	}
	stored = map[string]bool{}
	err = d.db.Read(ctx, func(r db.Reader) error {
		found, err := db.Collect(r, func(scan func(...any) error) (name string, err error) { return name, scan(&name) },
			"SELECT name FROM received_names WHERE client_id = $1 AND "+d.db.In("name", "$2"), scope, db.Strings(names))
		for _, name := range found {
			stored[idOf[name]] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for stored documents: %w", err)
	}
	return stored, nil
}

// Bring stores documents of a source in one write, together with what follows from it:
// with is called in that write with the operation of each document, in order, and how
// many were not here before. Nothing is stored where it fails. The write may run twice.
func (d *Documents) Bring(ctx context.Context, list []Arrival, with func(tx *db.Tx, operations []string, fresh int) error) error {
	kept := make([]files.File, len(list))
	ids := make([]string, len(list))
	for n := range list {
		if len(list[n].Bytes) == 0 || len(list[n].Bytes) > BytesMax || list[n].AuthorityID == "" || list[n].CompanyID == "" {
			return fmt.Errorf("the document %q of %s has %d bytes, for company %q", list[n].AuthorityID, list[n].Source,
				len(list[n].Bytes), list[n].CompanyID)
		}
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		kept[n], ids[n] = files.NewFile(list[n].Bytes), id.String()
	}
	for n := 1; ; n++ {
		if err := d.cfg.Files.Keep(ctx, kept...); err != nil {
			return fmt.Errorf("keep received documents: %w", err)
		}
		err := d.db.Write(ctx, func(tx *db.Tx) error {
			operations, fresh := make([]string, len(list)), 0
			for n := range list {
				id, isNew, err := d.take(tx, &list[n], kept[n], ids[n])
				if err != nil {
					return err
				}
				if operations[n] = id; isNew {
					fresh++
				}
			}
			return with(tx, operations, fresh)
		})
		if !errors.Is(err, files.ErrNotKept) || n == attempts {
			return err
		}
	}
}

package received

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tributary/internal/db"
	"tributary/internal/files"
)

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

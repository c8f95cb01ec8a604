package operator

import (
	"context"
	"strings"
	"unicode/utf8"

	"tributary/internal/db"
	"tributary/internal/fault"
)

// View is a list of transactions that an operator has given a name.
type View struct {
	Name  string
	Query string // the part of its address after the question mark
}

// Limits of saved views.
const (
	ViewsMax     = 20 // of one operator
	ViewNameMax  = 40 // characters
	ViewQueryMax = 2000
)

// SaveView keeps a list under a name, for this operator alone. A name that is
// taken gets the new list.
func (o *Operators) SaveView(ctx context.Context, s Session, v View) error {
	v.Name = strings.Join(strings.Fields(v.Name), " ")
	switch {
	case v.Name == "":
		return invalidView(fault.At("name", fault.FieldRequired, "must be given"))
	case utf8.RuneCountInString(v.Name) > ViewNameMax:
		return invalidView(fault.At("name", fault.FieldNotValid, "must have at most %d characters", ViewNameMax))
	case len(v.Query) > ViewQueryMax:
		return invalidView(fault.At("query", fault.FieldNotValid, "must have at most %d bytes", ViewQueryMax))
	}
	return o.db.Write(ctx, func(tx *db.Tx) error {
		var others int
		err := tx.Row("SELECT count(*) FROM operator_views WHERE operator = $1 AND name <> $2", s.Name, v.Name).Scan(&others)
		if err != nil {
			return err
		}
		if others >= ViewsMax {
			return fault.New(fault.Conflict, "an operator has at most %d saved views; remove one first", ViewsMax)
		}
		err = tx.Exec(`INSERT INTO operator_views (operator, name, query) VALUES ($1, $2, $3)
			ON CONFLICT (operator, name) DO UPDATE SET query = excluded.query`, s.Name, v.Name, v.Query)
		if err != nil {
			return err
		}
		return o.RecordIn(tx, s.Actor(), Act{Action: "view.saved", Subject: v.Name, After: map[string]any{"query": v.Query}})
	})
}

func invalidView(f fault.Fault) error { return fault.New(fault.Invalid, "Invalid view.").With(f) }

// RemoveView forgets a saved view; one that is gone is no error.
func (o *Operators) RemoveView(ctx context.Context, s Session, name string) error {
	return o.db.Write(ctx, func(tx *db.Tx) error {
		if err := tx.Exec("DELETE FROM operator_views WHERE operator = $1 AND name = $2", s.Name, name); err != nil {
			return err
		}
		return o.RecordIn(tx, s.Actor(), Act{Action: "view.removed", Subject: name})
	})
}

// Views are what an operator has saved, by name.
func (o *Operators) Views(r db.Reader, name string) ([]View, error) {
	return db.Collect(r, func(scan func(...any) error) (v View, err error) { return v, scan(&v.Name, &v.Query) },
		"SELECT name, query FROM operator_views WHERE operator = $1 ORDER BY name", name)
}

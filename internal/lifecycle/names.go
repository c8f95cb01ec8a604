package lifecycle

import (
	"context"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
)

// names are those that an authority gave to our filings.
type names struct {
	db *db.DB
	at country.Environment
}

// Names are those of channels that go through an authority's list.
func Names(d *db.DB) func(at country.Environment) country.Names {
	return func(at country.Environment) country.Names { return names{d, at} }
}

func (n names) Others(ctx context.Context, operationID string, list []string) (map[string]bool, error) {
	others := map[string]bool{}
	err := n.db.Read(ctx, func(r db.Reader) error {
		rows, err := r.Query("SELECT handle FROM filing_handles WHERE country = $1 AND live = $2 AND operation_id <> $3 AND "+n.db.In("handle", "$4"),
			n.at.Code, bool(n.at.Live), operationID, db.Strings(list))
		if err != nil {
			return err
		}
		return rows.Each(func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			others[name] = true
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for the filings of %d names: %w", len(list), err)
	}
	return others, nil
}

func (n names) Belongs(ctx context.Context, operationID, name, sha256 string) error {
	err := n.db.Write(ctx, func(tx *db.Tx) error {
		return tx.Exec(belongsSQL, name, sha256, operationID)
	})
	if err != nil {
		return fmt.Errorf("keep the name %s: %w", name, err)
	}
	return nil
}

// belongsSQL goes from an operation to its company's lanes, and over what was sent in them.
const belongsSQL = `INSERT INTO filing_handles (country, live, handle, operation_id)
	SELECT me.country, me.live, $1, o.operation_id FROM operations me
	JOIN lanes its ON its.lane = me.lane
	JOIN lanes l ON l.client_id = its.client_id AND l.supplier_id = its.supplier_id AND l.country = its.country AND l.environment = its.environment
	JOIN operations o ON o.lane = l.lane AND o.due_at IS NOT NULL AND o.stage = 'sent'
	JOIN filings f ON f.operation_id = o.operation_id AND f.sha256 = $2
	WHERE me.operation_id = $3 ON CONFLICT (country, live, handle, operation_id) DO NOTHING`

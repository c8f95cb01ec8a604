package received

import (
	"errors"
	"fmt"
	"time"

	"tributary/internal/db"
)

// row is a document that is to be read.
type row struct {
	scope                     string
	live                      bool
	media                     Media
	authorityID, authorityID2 string
	companyID                 string // "" where the document says it
	acceptedAt                time.Time
	bytes, crashes            int64
}

const (
	rowColumns    = "client_id, live, media, authority_id, authority_id_2, company_id, accepted_at, bytes, crashes"
	nameColumns   = "client_id,name,operation_id"
	insertColumns = "operation_id,client_id,live,source,authority_id,authority_id_2,company_id,dated_at,accepted_at,settled_at,status,media," +
		"bytes,sha256,aside,result,due_at"

	nameSQL  = "SELECT operation_id FROM received_names WHERE client_id = $1 AND name = $2"
	againSQL = `UPDATE received SET status = 'PROCESSING', settled_at = NULL, crashes = 0, due_at = $1
		WHERE client_id = $2 AND operation_id = $3 AND status = 'FAILURE' AND NOT aside AND result IS NOT NULL`
	beginSQL = "UPDATE received SET crashes = crashes + 1 WHERE operation_id = $1 RETURNING crashes"
	restSQL  = "UPDATE received SET crashes = 0 WHERE operation_id = $1"
	endSQL   = `UPDATE received SET status = $1, settled_at = $2, company_id = $3, sender_id = $4, sender_key = $5, country = $6,
		kind = $7, number = $8, dated_at = $9, result = $10, crashes = 0 WHERE operation_id = $11`
	unreferSQL = "DELETE FROM received_references WHERE client_id = $1 AND operation_id = $2"
)

func scanRow(scan func(...any) error) (w row, err error) {
	var accepted int64
	err = scan(&w.scope, &w.live, &w.media, &w.authorityID, &w.authorityID2, &w.companyID, &accepted, &w.bytes, &w.crashes)
	w.acceptedAt = db.FromMicros(accepted)
	return w, err
}

// findName answers the operation that has a name; "" for none.
func findName(r db.Reader, scope, name string) (id string, err error) {
	err = r.Row(nameSQL, scope, name).Scan(&id)
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for a received document: %w", err)
	}
	return id, nil
}

package filing

import (
	"errors"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// Filed is an operation with what was filed of it.
type Filed struct {
	Place         Place
	TransactionID string
	Status        Status
	Filing        country.Filing // without its report
}

// FiledOf finds what an operation filed. One that filed nothing is fault.NotFound.
func FiledOf(r db.Reader, operationID string) (out Filed, err error) {
	var text string
	var live bool
	err = r.Row(`SELECT o.client_id, o.country, o.live, o.supplier_id, o.transaction_id, o.status, f.filing
		FROM operations o JOIN filings f ON f.operation_id = o.operation_id WHERE o.operation_id = $1`, operationID).
		Scan(&out.Place.Scope, &out.Place.Code, &live, &out.Place.SupplierID, &out.TransactionID, &out.Status, &text)
	if errors.Is(err, db.ErrNoRows) {
		return out, fault.New(fault.NotFound, "nothing was filed with an authority by operation %q", operationID)
	}
	if err != nil {
		return out, fmt.Errorf("look for the filing of %s: %w", operationID, err)
	}
	out.Place.Live = country.Live(live)
	out.Filing, err = ReadFiling(text, nil)
	return out, err
}

package recovery

import (
	"context"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/filing"
	"tributary/internal/operation"
)

// Annul asks the authority to forget a report of ours, see [country.Annuller].
// record keeps that it was asked before it is, and what was answered.
//
// Failure policy: our own records stay as they are: the document stands, and
// whether its report does is for a person at the authority to say. A request
// whose answer is lost may be made again; the authority refuses a second one.
func (s *Recovery) Annul(ctx context.Context, operationID string, why country.Annulment,
	record func(tx *db.Tx, of operation.Filed, said *country.Annulled) error) (country.Annulled, error) {
	var of operation.Filed
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		of, err = operation.FiledOf(r, operationID)
		return err
	})
	if err != nil {
		return country.Annulled{}, err
	}
	if of.Status != filing.Success {
		return country.Annulled{}, fault.New(fault.Invalid, "operation %s is %s: only accepted reports can be annulled",
			operationID, of.Status)
	}
	channel, err := s.cfg.Atlas.Channel(of.Place.Code, of.Place.Live)
	if err != nil {
		return country.Annulled{}, fmt.Errorf("reach the authority of %s: %w", of.Place.Code, err)
	}
	annuller, ok := channel.(country.Annuller)
	if !ok {
		return country.Annulled{}, fault.New(fault.Invalid,
			"the authority of %s does not support annulment: correct the document", of.Place.Code)
	}
	credentials, err := s.cfg.Companies.Credentials(ctx, of.Place.Scope, of.Place.SupplierID)
	if err != nil {
		return country.Annulled{}, fmt.Errorf("open the supplier's credentials: %w", err)
	}
	if err := s.db.Write(ctx, func(tx *db.Tx) error { return record(tx, of, nil) }); err != nil {
		return country.Annulled{}, fmt.Errorf("record the annulment: %w", err)
	}
	said, err := annuller.Annul(ctx, of.Filing, why, credentials)
	said, err = said.Bounded(), country.BoundedError(err)
	if err != nil {
		return said, fmt.Errorf("ask the authority to annul the report of %s: %w", operationID, err)
	}
	if err := s.db.Write(ctx, func(tx *db.Tx) error { return record(tx, of, &said) }); err != nil {
		return said, fmt.Errorf("record the authority's answer, %s %s: %w", said.ID, said.State, err)
	}
	return said, nil
}

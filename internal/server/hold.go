package server

import (
	"context"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
)

// HoldCompany sets whether a company is under a legal hold and notes who did it,
// in one write. It answers whose company it is.
func HoldCompany(ctx context.Context, d *db.DB, by audit.Actor, companyID string, hold bool) (clientID string, err error) {
	operators := operator.New(operator.Config{DB: d})
	err = d.Write(ctx, func(tx *db.Tx) (err error) {
		if clientID, err = onboarding.Hold(tx, companyID, hold); err != nil {
			return err
		}
		return operators.RecordIn(tx, by, operator.Act{Action: "company.legal_hold", Subject: companyID, ClientID: clientID, After: map[string]bool{"legal_hold": hold}})
	})
	return clientID, err
}

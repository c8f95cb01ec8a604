package server

import (
	"context"

	"tributary/internal/audit"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/files"
	"tributary/internal/onboarding"
	"tributary/internal/operator"
)

// HoldCompany sets whether a company is under a legal hold and notes who did it,
// in one write. It answers whose company it is.
func (x Maintenance) HoldCompany(ctx context.Context, by audit.Actor, companyID string,
	hold bool) (clientID string, err error) {
	operators := x.operators()
	err = x.DB.Write(ctx, func(tx *db.Tx) (err error) {
		if clientID, err = onboarding.Hold(tx, companyID, hold); err != nil {
			return err
		}
		return operators.RecordIn(tx, by, operator.Act{Action: "company.legal_hold", Subject: companyID, ClientID: clientID,
			After: map[string]bool{"legal_hold": hold}})
	})
	return clientID, err
}

// DocumentsVerdict is what an operator decides about the document store after a
// restored backup, or beside a copied database.
type DocumentsVerdict struct {
	Claim   bool   `json:"claim"`   // this database is the real one
	Release bool   `json:"release"` // what the backup may not know is removed like everything else
	Reason  string `json:"reason"`  // why, for the audit log
}

// JudgeDocuments stores a verdict, if there is one, and answers how things stand.
func (x Maintenance) JudgeDocuments(ctx context.Context, by audit.Actor,
	v DocumentsVerdict) (own files.Ownership, err error) {
	if v.Claim || v.Release {
		if v.Reason == "" {
			return own, fault.New(fault.Invalid, "--reason is required: it is kept in the audit log")
		}
		operators := x.operators()
		err = x.DB.Write(ctx, func(tx *db.Tx) error {
			action := "documents.released"
			if v.Claim {
				action = "documents.claimed"
				if err := files.Claim(tx, tx.Now()); err != nil {
					return err
				}
			}
			if v.Release {
				if err := files.Release(tx); err != nil {
					return err
				}
			}
			return operators.RecordIn(tx, by, operator.Act{Action: action, Subject: "documents", After: v})
		})
	}
	if err == nil {
		err = x.DB.Read(ctx, func(r db.Reader) error {
			own, err = files.OwnershipOf(r)
			return err
		})
	}
	return own, err
}

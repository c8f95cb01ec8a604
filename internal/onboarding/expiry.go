package onboarding

import (
	"context"
	"fmt"
	"time"

	"tributary/internal/alert"
	"tributary/internal/db"
)

const (
	expiryEvery  = time.Hour
	expiryAtOnce = 200 // alarms in one write
)

// RaiseExpiryAlarms raises the alarms of certificates and logins that end within 30, 7 and
// 1 days, each once per certificate, and returns how many it raised. An alarm
// and the mark that it was raised are one commit, so none is lost and none
// repeats.
func (c *Companies) RaiseExpiryAlarms(ctx context.Context) (raised int, err error) {
	for _, stage := range alert.Expiring() {
		for {
			n := 0
			err := c.db.Write(ctx, func(tx *db.Tx) error {
				n, err = c.raiseStage(tx, stage.Days, stage.Name)
				return err
			})
			if err != nil {
				return raised, fmt.Errorf("raise alarms of certificates that end within %d days: %w", stage.Days, err)
			}
			raised += n
			if n < expiryAtOnce {
				break
			}
		}
	}
	return raised, nil
}

type ending struct {
	clientID, companyID, externalID string
	at                              int64
	alarmed                         int64
}

func (c *Companies) raiseStage(tx *db.Tx, days int, name alert.Name) (int, error) {
	limit := db.Micros(c.now().Add(time.Duration(days) * 24 * time.Hour))
	due, err := db.Collect(tx, func(scan func(...any) error) (e ending, err error) {
		err = scan(&e.clientID, &e.companyID, &e.externalID, &e.at, &e.alarmed)
		return e, err
	}, endingSQL, limit, days, expiryAtOnce)
	if err != nil {
		return 0, err
	}
	for _, e := range due {
		err := tx.Exec("UPDATE company_credentials SET alarmed = $1 WHERE client_id = $2 AND company_id = $3", days,
			e.clientID, e.companyID)
		if err != nil {
			return 0, err
		}
		message := fmt.Sprintf("the tax credentials of company %s (external_id %q, client %s) expire at %s",
			e.companyID, e.externalID, e.clientID, db.FromMicros(e.at).Format(time.RFC3339))
		if c.cfg.Alerts == nil {
			tx.OnCommit(func() { c.log.Error(message, "alert", string(name), "subject", e.companyID) })
			continue
		}
		if err := c.cfg.Alerts.RaiseIn(tx, name, e.companyID, message); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

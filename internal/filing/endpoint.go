package filing

import (
	"context"
	"fmt"

	"tributary/internal/country"
	"tributary/internal/db"
	"tributary/internal/fault"
)

// EndpointChanged ends our own pause of lanes that stand still for a reason that
// a new address or identity of their authority may have taken away. Whoever holds
// a lane at this instant goes by the ladder of retries.
func (s *Service) EndpointChanged(ctx context.Context, at country.Environment) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		tx.Wake(laneQueue.Table)
		return tx.Exec("UPDATE lanes SET "+soonAgain+" WHERE lane LIKE $1 AND lease_until IS NULL AND reason IN ($3, $4, $5, $6)",
			"%|"+at.Code+"|"+environment(at.Live)+"|%", db.Micros(tx.Now()),
			string(fault.AuthorityNotConfigured), string(fault.AuthorityUnreachable), string(fault.AuthorityError), string(fault.CredentialsInvalid))
	})
	if err != nil {
		return fmt.Errorf("end the pauses at %s: %w", at, err)
	}
	return nil
}

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
	return s.endPauses(ctx, at, fault.AuthorityNotConfigured, fault.AuthorityUnreachable, fault.AuthorityError, fault.CredentialsInvalid)
}

// endPauses has lanes of an endpoint that stand still for one of these reasons visited at once.
func (s *Service) endPauses(ctx context.Context, at country.Environment, reasons ...fault.Code) error {
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		tx.Wake(laneQueue.Table)
		return tx.Exec("UPDATE lanes SET "+soonAgain+" WHERE lane LIKE $1 AND lease_until IS NULL AND "+s.db.In("reason", "$3"),
			"%|"+at.Code+"|"+environment(at.Live)+"|%", db.Micros(tx.Now()), db.Strings(texts(reasons)))
	})
	if err != nil {
		return fmt.Errorf("end the pauses at %s: %w", at, err)
	}
	return nil
}

func texts(codes []fault.Code) (list []string) {
	for _, c := range codes {
		list = append(list, string(c))
	}
	return list
}

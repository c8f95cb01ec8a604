package ro

import (
	"context"
	"time"

	"tributary/internal/country"
)

// Names of what ANAF grants.
const (
	quotaCalls     = "calls"
	quotaStates    = "stareMesaj"
	quotaLists     = "listaMesaje"
	quotaDownloads = "descarcare"
	quotaAnswers   = "RASP"
)

// quotas are ANAF's, as its answers name them: of the service a minute; of a document
// and of a company a day of Bucharest.
func quotas() []country.Quota {
	const day = 24 * time.Hour
	return []country.Quota{
		{Name: quotaCalls, Per: time.Minute, Most: 1000},
		{Name: quotaStates, Per: day, Most: 100, Zone: zone, Alone: true},
		// Filing reads lists only for uploads whose answer was lost: those wait, and what has not been sent goes on.
		{Name: quotaLists, Per: day, Most: 1500, Zone: zone, Alone: true},
		{Name: quotaDownloads, Per: day, Most: 10, Zone: zone, Alone: true},
		{Name: quotaAnswers, Per: day, Most: 1000, Zone: zone},
	}
}

const zone = "Europe/Bucharest"

// spend takes a call of the service, and one of a kind about a subject.
func (ch *channel) spend(ctx context.Context, name, subject string) error {
	for _, q := range quotas() {
		if q.Name != quotaCalls && q.Name != name {
			continue
		}
		about := subject
		if q.Name == quotaCalls {
			about = ""
		}
		if err := ch.at.Spend(ctx, q, about); err != nil {
			return err
		}
	}
	return nil
}

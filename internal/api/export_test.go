package api

import (
	"maps"
	"time"
)

// Routes lists the table as "METHOD path".
func (a *API) Routes() (all []string) {
	for _, r := range a.routes() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// Details lists the members of answers that are described, as "Schema.member".
func Details() (all []string) {
	for _, table := range []map[string]detail{details, countryDetails} {
		for key := range maps.Keys(table) {
			all = append(all, key)
		}
	}
	return all
}

// Refusals is the memory that keeps the log quiet under overload.
func Refusals() func(now time.Time) (silent int64, speak bool) { return new(refusals).next }

package api

import "maps"

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

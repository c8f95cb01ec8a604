package operation

import (
	"tributary/internal/country"
)

// Place is where an operation belongs: a client's supplier in a country and environment.
type Place struct {
	Scope      string
	Code       string
	Live       country.Live
	SupplierID string
}

// Environment is the authority of a place.
func (p Place) Environment() country.Environment {
	return country.Environment{Code: p.Code, Live: p.Live}
}

// Place is where the operation belongs.
func (o *Accepted) Place() Place {
	return Place{Scope: o.Scope, Code: o.Code, Live: o.Live, SupplierID: o.SupplierID}
}

// Environment is how live and test are stored.
func Environment(live country.Live) string {
	if live {
		return "live"
	}
	return "test"
}

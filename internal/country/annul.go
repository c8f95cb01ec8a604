package country

import (
	"context"

	"tributary/internal/fault"
)

// Annuller is the optional ability of a [Channel] whose authority can be asked to
// forget a report that was wrong, of a document that is right and stands. What
// clients correct are documents, so it is an operator's command and nothing else;
// our own records keep their SUCCESS.
type Annuller interface {
	// Annul asks for it. An error means that it is not known whether the authority
	// took the request; asking again does no harm.
	Annul(ctx context.Context, f Filing, a Annulment, c Credentials) (Annulled, error)
}

// Annulment says why.
type Annulment struct {
	Code   string `json:"code"`   // of the authority's list; "" is its most general one
	Reason string `json:"reason"` // in words
}

// Annulled is what the authority said to it.
type Annulled struct {
	ID     string        `json:"authority_id"` // of the request
	State  string        `json:"state"`        // in the authority's words
	Faults []fault.Fault `json:"errors,omitempty"`
}

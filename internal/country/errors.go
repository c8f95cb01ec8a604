package country

import "errors"

// ErrNotTaken marks an error after which the authority certainly holds nothing of the call.
var ErrNotTaken = errors.New("the authority took nothing")

// ErrCredentials marks an error that only new credentials can mend: expired,
// revoked, unreadable or refused by the authority before it read the filing.
var ErrCredentials = errors.New("the supplier's credentials do not work")

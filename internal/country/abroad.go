package country

import (
	"fmt"
	"net/http"

	"tributary/internal/guard"
)

// strangers is how addresses are called that somebody outside names: a register
// that a participant of a network has chosen, for one. The operator's own
// addresses are not of that kind, see [Endpoint].HTTP.
type strangers struct {
	guard  *guard.Guard
	client *http.Client
}

// dialStrangers answers the way to strangers of simulated authorities, who live
// on this machine, and to all others.
func dialStrangers(d guard.Dialer) (all [2]strangers, err error) {
	demo, err := guard.New(guard.Config{Demo: true})
	if err != nil {
		return all, fmt.Errorf("making the guard of simulated authorities: %w", err)
	}
	if d.Guard == nil {
		if d.Guard, err = guard.New(guard.Config{}); err != nil {
			return all, fmt.Errorf("making the guard: %w", err)
		}
	}
	for i, way := range []guard.Dialer{{Guard: demo, Resolver: d.Resolver}, d} {
		transport := newTransport()
		transport.Proxy = nil // the dialer knows the operator's proxy, and vets what it is asked for
		transport.DialContext = way.DialContext
		all[i] = strangers{guard: way.Guard, client: newClient(transport)}
	}
	return all, nil
}

func (a *Atlas) letAbroad(at *Endpoint) {
	way := a.abroad[1]
	if at.Simulated {
		way = a.abroad[0]
	}
	at.Abroad, at.Vet = way.client, way.guard.Parse
}

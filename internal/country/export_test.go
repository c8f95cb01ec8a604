package country

import "net/http"

// NewClient is the client that packs get.
var NewClient = newClient

// CallersMax bounds the clients that are kept at an authority.
const CallersMax = callersMax

// All are the clients that are kept.
func (c *Callers) All() (list []*http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		list = append(list, client)
	}
	return list
}

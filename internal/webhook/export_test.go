package webhook

import "net/url"

// WatchReply feeds a reply in the given pieces to what watches a connection, for
// the comparison with the standard library's parser.
func WatchReply(pieces ...[]byte) (status int, within bool) {
	var w replyWatch
	for _, p := range pieces {
		if !w.feed(p) {
			return w.status, false
		}
	}
	return w.status, true
}

// Hop is where a Location leads from an address, as it will be called.
func (g *Guard) Hop(from, location string) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	u, err := g.parseHop(base, location)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

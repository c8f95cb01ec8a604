package webhook

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// widerMax bounds the sets of open networks that are kept at the same time. Each
// has connections of its own; one that comes again after it was dropped only
// connects anew.
const widerMax = 64

// wider are the senders of clients to whom the operator opened private networks.
// Each set of networks has its own connections: one that was made with a wider
// permission must never serve a client without it.
type wider struct {
	config SenderConfig
	mu     sync.Mutex
	all    map[string]*Sender
	order  []string // least recently used first
}

// For returns the sender for a client with private networks of its own; with
// none it is s itself.
func (s *Sender) For(allow []netip.Prefix) *Sender {
	if len(allow) == 0 || s.wider == nil {
		return s
	}
	return s.wider.of(allow)
}

func (w *wider) of(allow []netip.Prefix) *Sender {
	texts := make([]string, len(allow))
	for i, p := range allow {
		texts[i] = p.Masked().String()
	}
	slices.Sort(texts)
	key := strings.Join(slices.Compact(texts), " ")
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.all[key]
	if s == nil {
		config := w.config
		config.Guard = config.Guard.With(allow)
		s = config.sender()
		w.all[key] = s
	} else {
		w.order = slices.DeleteFunc(w.order, func(k string) bool { return k == key })
	}
	w.order = append(w.order, key)
	if len(w.order) > widerMax {
		// Tries in progress end as they would; their connections are not kept.
		w.all[w.order[0]].transport.CloseIdleConnections()
		delete(w.all, w.order[0])
		w.order = w.order[1:]
	}
	return s
}

func (w *wider) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.all {
		s.transport.CloseIdleConnections()
	}
}

package account

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	paceSourcesMax = 8192 // of which something is remembered

	// A network that owns one IPv6 address usually owns its /64.
	ipv6Bits = 64
)

// Pace bounds how often each of many sources does something, in bounded memory:
// of too many the ones that were quiet longest are forgotten.
type Pace struct {
	perSecond, burst int

	mu      sync.Mutex
	buckets recent[*rate.Limiter]
}

// NewPace lets each source do so much.
func NewPace(perSecond, burst int) *Pace {
	return &Pace{perSecond: perSecond, burst: max(burst, 1), buckets: newRecent[*rate.Limiter](paceSourcesMax)}
}

// Spend counts one; a positive answer says how long its source has to wait, and counts nothing.
func (p *Pace) Spend(who string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	bucket, ok := p.buckets.get(who)
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(p.perSecond), p.burst)
		p.buckets.put(who, bucket)
	}
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// Network is whose an address is, as far as limits care.
func Network(ip netip.Addr) string {
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	if p, err := ip.WithZone("").Prefix(ipv6Bits); err == nil {
		return p.String()
	}
	return ip.String()
}

package filing

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Everything that is taken together is loaded, drawn and settled together, so
// what bounds memory is bytes, not a number of operations. A body stands for what
// is made of it: decoded, filed and printed it takes a multiple of its size.
const (
	takenBytesMax    = 2 << 20  // of bodies, of one visit
	endpointBytesMax = 4 << 20  // of all visits of a node at one authority
	workBytesMax     = 16 << 20 // of all visits of a node
)

// room is what bodies may take that are in work. An authority that hangs keeps
// what its visits hold, so it has a part of the whole and never all of it.
type room struct {
	all *semaphore.Weighted

	mu sync.Mutex
	of map[string]*semaphore.Weighted // by endpoint
}

func newRoom() *room {
	return &room{all: semaphore.NewWeighted(workBytesMax), of: map[string]*semaphore.Weighted{}}
}

func (r *room) at(endpoint string) *semaphore.Weighted {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ok := r.of[endpoint]
	if !ok {
		own = semaphore.NewWeighted(endpointBytesMax)
		r.of[endpoint] = own
	}
	return own
}

// acquire waits for room, first among those of the same authority.
func (r *room) acquire(ctx context.Context, endpoint string, bytes int64) error {
	own := r.at(endpoint)
	if err := own.Acquire(ctx, bytes); err != nil {
		return err
	}
	if err := r.all.Acquire(ctx, bytes); err != nil {
		own.Release(bytes)
		return err
	}
	return nil
}

func (r *room) release(endpoint string, bytes int64) {
	r.all.Release(bytes)
	r.at(endpoint).Release(bytes)
}

// within are the first of what is due that may be taken together: at least one.
func within(due []candidate, most int64) []candidate {
	sum := int64(0)
	for i, c := range due {
		if sum += c.bytes; sum > most && i > 0 {
			return due[:i]
		}
	}
	return due
}

// reserveBytes waits until this node has room for operations; see visit.freeBytes.
func (v *visit) reserveBytes(ctx context.Context, chosen []candidate) error {
	sum := int64(0)
	for _, c := range chosen {
		sum += c.bytes
	}
	sum = min(sum, endpointBytesMax)
	if err := v.room.acquire(ctx, endpointOf(v.lease.ID), sum); err != nil {
		return fmt.Errorf("wait for room: %w", err)
	}
	v.bytes = sum
	return nil
}

// freeBytes gives the room of a batch back.
func (v *visit) freeBytes() {
	v.room.release(endpointOf(v.lease.ID), v.bytes)
	v.bytes = 0
}

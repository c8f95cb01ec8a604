package filing

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Everything that is taken together is loaded, drawn and settled together, so
// what bounds memory is bytes, not a number of operations. A body stands for what
// is made of it: decoded, filed and printed it takes a multiple of its size.
const (
	takenBytesMax = 4 << 20  // of bodies, of one visit
	workBytesMax  = 16 << 20 // of bodies, of all visits of a node
)

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
	sum = min(sum, workBytesMax)
	if err := v.room.Acquire(ctx, sum); err != nil {
		return fmt.Errorf("wait for room: %w", err)
	}
	v.bytes = sum
	return nil
}

// freeBytes gives the room of a batch back.
func (v *visit) freeBytes() {
	v.room.Release(v.bytes)
	v.bytes = 0
}

func newRoom() *semaphore.Weighted { return semaphore.NewWeighted(workBytesMax) }
